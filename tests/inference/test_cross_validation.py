"""Cross-validated values: equal to plain refitting, calibrated on known truths, honest about folds and clusters."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from scipy import stats
from sklearn.decomposition import PCA, KernelPCA, TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, KernelParityPCA, MMDFairPCA, ParityPCA, RobustFairPCA
from fairpca.inference import cross_validate_groups
from fairpca.inference._checks import as_source
from fairpca.inference._fitting import fit_to_moments
from fairpca.inference._fold_study import FoldStudy
from fairpca.inference._folds import make_folds
from fairpca.metrics import reconstruction_loss
from fairpca.moments import group_moments


def by_hand(estimator, X, groups, splits, own_weights, weights=None):
    """Row values by refitting on the rows of each fold: error, corrected loss."""
    weights = np.ones(len(X)) if weights is None else weights
    d = estimator.n_components
    error, corrected = np.empty(len(X)), np.empty(len(X))

    def own_basis(rows, mean):
        centred = (X[rows] - mean) * np.sqrt(weights[rows])[:, None]
        return np.linalg.svd(centred, full_matrices=False)[2][:d].T

    full_mean = weights @ X / weights.sum()
    for train, test in splits:
        if isinstance(estimator, PCA):
            fitted = sklearn.base.clone(estimator).fit(X[train])
        else:
            fitted = sklearn.base.clone(estimator).fit(
                X[train], sensitive_features=groups[train], sample_weight=weights[train]
            )
        mean = fitted.mean_
        for a in np.unique(groups):
            rows = test[groups[test] == a]
            x = X[rows] - mean
            total = (x**2).sum(axis=1)
            own = ((x @ own_basis(np.flatnonzero(groups == a), full_mean)) ** 2).sum(axis=1)
            without = ((x @ own_basis(train[groups[train] == a], mean)) ** 2).sum(axis=1)
            method = ((x @ fitted.components_.T) ** 2).sum(axis=1)
            error[rows] = total - method
            corrected[rows] = own_weights[a] * own + (1 - own_weights[a]) * without - method
    return error, corrected


def own_weights_of(X, groups, splits, weights=None):
    """How a study with these folds weights own components, for two of them."""
    source = as_source(X, groups, weights)
    study = FoldStudy(source, make_folds(source, splits, None, 0))
    return dict(zip(study.labels, study._own_weights(2), strict=True))


def t_quantile(values):
    """Of the degrees of freedom that the kurtosis leaves."""
    return stats.t.ppf(0.975, min(2 * len(values) / (stats.kurtosis(values, fisher=False) - 1), len(values) - 1))


ESTIMATORS = [PCA(2), FairPCA(2), RobustFairPCA(2), ParityPCA(2)]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_one_pass_equals_refitting(estimator, two_groups):
    X, groups = two_groups
    splits = list(StratifiedKFold(5, shuffle=True, random_state=1).split(X, groups))
    figures = cross_validate_groups(estimator, X, sensitive_features=groups, cv=splits)
    error, corrected = by_hand(estimator, X, groups, splits, own_weights_of(X, groups, splits))
    for label in "ab":
        rows = groups == label
        for found, values in ((figures.error, error), (figures.corrected_loss, corrected)):
            assert found.by_group[label].value == pytest.approx(values[rows].mean(), rel=1e-6)
        half = t_quantile(error[rows]) * error[rows].std(ddof=1) / np.sqrt(rows.sum())
        assert figures.error.by_group[label].high - error[rows].mean() == pytest.approx(half, rel=1e-5)
    differences = [corrected[groups == label] for label in "ab"]
    spread = np.sqrt(sum(values.var(ddof=1) / len(values) for values in differences))
    gap = figures.corrected_loss.gap
    assert 1.96 * spread < (gap.high - gap.low) / 2 < 2.3 * spread
    assert gap.value == pytest.approx(abs(differences[0].mean() - differences[1].mean()), rel=1e-6)


def test_weights_count_like_repeated_rows(two_groups, rng):
    X, groups = two_groups
    weights = rng.integers(0, 3, len(X)).astype(float)
    splits = list(StratifiedKFold(4, shuffle=True, random_state=1).split(X, groups))
    figures = cross_validate_groups(FairPCA(2), X, sensitive_features=groups, cv=splits, sample_weight=weights)
    own_weights = own_weights_of(X, groups, splits, weights)
    error, corrected = by_hand(FairPCA(2), X, groups, splits, own_weights, weights)
    for label in "ab":
        rows = groups == label
        for found, values in ((figures.error, error), (figures.corrected_loss, corrected)):
            expected = np.average(values[rows], weights=weights[rows])
            assert found.by_group[label].value == pytest.approx(expected, rel=1e-6)
    assert figures.counts == {label: weights[groups == label].sum() for label in "ab"}


def test_loss_in_sample_is_the_papers(two_groups):
    X, groups = two_groups
    figures = cross_validate_groups(FairPCA(2), X, sensitive_features=groups)
    fitted = FairPCA(2).fit(X, sensitive_features=groups)
    expected = reconstruction_loss(X, fitted, sensitive_features=groups)
    assert {label: one.value for label, one in figures.loss.by_group.items()} == pytest.approx(dict(expected))
    assert figures.loss.overall == pytest.approx(expected.overall)


def test_transformers_with_an_inverse(two_groups):
    """A projection judged through inverse_transform has the same values as through its components."""
    X, groups = two_groups
    X = X - X.mean(axis=0)
    direct = cross_validate_groups(PCA(2), X, sensitive_features=groups, random_state=0)
    piped = cross_validate_groups(make_pipeline(PCA(2)), X, sensitive_features=groups, random_state=0)
    for name in ("error", "loss", "corrected_loss"):
        for label in "ab":
            assert getattr(piped, name).by_group[label].value == pytest.approx(
                getattr(direct, name).by_group[label].value, abs=1e-9
            )
    assert piped.corrected_loss.gap.low == pytest.approx(direct.corrected_loss.gap.low, abs=0.02)
    assert cross_validate_groups(TruncatedSVD(2), X, sensitive_features=groups).n_components == 2


@pytest.mark.parametrize("estimator", [FairPCA(2), ParityPCA(2), PCA(2)], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_frozen_estimator_is_evaluated_as_it_is(estimator, weighted, two_groups):
    X, groups = two_groups
    some, weights = slice(None, None, 2), np.ones(len(X)) if weighted else None
    options = {} if isinstance(estimator, PCA) else {"sensitive_features": groups[some]}
    fitted = sklearn.base.clone(estimator).fit(X[some], **options)
    before = fitted.components_.copy()
    figures = cross_validate_groups(
        FrozenEstimator(fitted), X, sensitive_features=groups, sample_weight=weights, random_state=0
    )
    assert (fitted.components_ == before).all()
    squares = ((X - fitted.inverse_transform(fitted.transform(X))) ** 2).sum(axis=1)
    for label, found in figures.error.by_group.items():
        assert found.value == pytest.approx(squares[groups == label].mean(), rel=1e-12)


def test_a_frozen_estimator_must_be_fitted(two_groups):
    X, groups = two_groups
    with pytest.raises(NotFittedError, match="not fitted yet"):
        cross_validate_groups(FrozenEstimator(FairPCA(2)), X, sensitive_features=groups)


def test_estimators_that_need_rows(rng):
    X, groups = rng.normal(size=(80, 3)), np.repeat([0, 1], 40)
    figures = cross_validate_groups(MMDFairPCA(1, tolerance=0.5, max_iter=3), X, sensitive_features=groups, cv=3)
    assert figures.error.by_group[0].low < figures.error.by_group[0].value


def test_pipelines_pass_the_groups_on(two_groups):
    X, groups = two_groups
    with sklearn.config_context(enable_metadata_routing=True):
        figures = cross_validate_groups(make_pipeline(StandardScaler(), FairPCA(2)), X, sensitive_features=groups, cv=3)
    assert figures.n_components == 2


def test_random_groups_are_rarely_called_different(rng):
    X = rng.normal(size=(300, 8)) * np.linspace(2, 1, 8)
    labels = np.repeat([0, 1, 2], [60, 90, 150])
    claims = [
        cross_validate_groups(PCA(3), X, sensitive_features=rng.permutation(labels), cv=5, random_state=i)
        for i in range(100)
    ]
    assert np.mean([one.corrected_loss.gap_excludes_zero for one in claims]) <= 0.13
    # In the sample, the same groups differ as a rule: the smaller, the larger the loss.
    assert np.mean([one.loss.by_group[0].value > one.loss.by_group[2].value for one in claims]) >= 0.8


def test_corrected_loss_is_nearly_unbiased(rng):
    """Normal groups with known covariances: the loss of the fitted components in the population is known."""
    scales = {0: np.linspace(3, 1, 8), 1: np.linspace(1, 3, 8)}
    sizes, d, errors, covered = {0: 80, 1: 240}, 2, [], []
    for i in range(120):
        X = np.vstack([rng.normal(size=(sizes[a], 8)) * scales[a] for a in (0, 1)])
        groups = np.repeat([0, 1], list(sizes.values()))
        basis = PCA(d).fit(X).components_.T
        truth = {a: np.sort(s**2)[-d:].sum() - ((s[:, None] * basis) ** 2).sum() for a, s in scales.items()}
        figures = cross_validate_groups(PCA(d), X, sensitive_features=groups, random_state=i)
        plain, corrected = figures.loss.by_group, figures.corrected_loss.by_group
        errors.append([plain[0].value - truth[0], corrected[0].value - truth[0]])
        difference = corrected[0].value - corrected[1].value
        gap = figures.corrected_loss.gap
        covered.append(abs(difference - (truth[0] - truth[1])) <= (gap.high - gap.low) / 2)
    (plug_in, corrected), spread = np.mean(errors, axis=0), np.std(errors, axis=0)[1] / np.sqrt(120)
    assert abs(corrected) <= abs(plug_in) / 2 + 2 * spread
    assert np.mean(covered) >= 0.88


def test_own_components_are_weighted_by_how_they_overfit(rng):
    """To first order (K - 1) / (2K - 1), where eigenvalues are apart; nothing where they are all equal."""
    groups = np.repeat([0, 1], [400, 1600])
    splits = list(StratifiedKFold(5).split(groups, groups))
    apart = rng.normal(size=(2000, 8)) * np.r_[10.0, 9.0, np.full(6, 0.3)]
    assert own_weights_of(apart, groups, splits)[0] == pytest.approx((5 / 4) / (1 + 5 / 4), rel=0.05)
    equal = rng.normal(size=(2000, 8))
    assert own_weights_of(equal, groups, splits)[0] < 0.05


def test_noise_is_not_called_a_difference(rng):
    """60 of 2000 rows of pure noise: every subspace is as good as the best, and the sample's optimum is not."""
    groups, claims, gaps = np.repeat([0, 1], [60, 1940]), [], []
    for i in range(60):
        X = rng.normal(size=(2000, 15))
        figures = cross_validate_groups(PCA(4), X, sensitive_features=groups, random_state=i)
        claims.append(figures.claimed)
        by_group = figures.corrected_loss.by_group
        gaps.append(by_group[0].value - by_group[1].value)
    assert np.mean(claims) <= 0.12
    assert abs(np.mean(gaps)) <= 3 * np.std(gaps) / np.sqrt(60)


def test_folds_hold_every_group_and_keep_clusters(two_groups):
    X, groups = two_groups
    source = as_source(X, groups, None)
    folds = make_folds(source, 10, None, 0)
    for label, size in (("a", 20), ("b", 10)):
        assert (np.bincount(folds.fold[groups == label]) == size).all()
    persons = np.arange(300) // 4
    together = make_folds(source, 5, persons, 0)
    for person in range(75):
        assert len(set(together.fold[persons == person])) == 1


def test_clusters_widen_the_intervals(rng):
    persons = np.repeat(np.arange(50), 6)
    X = rng.normal(size=(50, 5))[persons] + 0.1 * rng.normal(size=(300, 5))
    groups = (np.arange(50) % 2)[persons]
    by_row = cross_validate_groups(PCA(2), X, sensitive_features=groups, cv=5).error.by_group[0]
    by_person = cross_validate_groups(PCA(2), X, sensitive_features=groups, cv=5, clusters=persons).error.by_group[0]
    assert by_person.high - by_person.low > 1.8 * (by_row.high - by_row.low)
    # Rows of known persons are no new rows: their error is too small.
    assert by_person.value > by_row.value


def test_many_rows_are_sampled_for_standard_errors_only(two_groups, monkeypatch):
    from fairpca.inference import _fold_study

    X, groups = two_groups
    all_rows = cross_validate_groups(FairPCA(2), X, sensitive_features=groups)
    monkeypatch.setattr(_fold_study, "_ROWS_FOR_ERRORS", 60)
    sampled = cross_validate_groups(FairPCA(2), X, sensitive_features=groups)
    for label in "ab":
        exact, part = all_rows.error.by_group[label], sampled.error.by_group[label]
        assert part.value == exact.value
        assert part.high - part.low == pytest.approx(exact.high - exact.low, rel=0.4)
        assert part.high - part.low != exact.high - exact.low


def test_small_groups_and_dominating_rows_are_flagged(rng):
    X, groups = rng.normal(size=(120, 30)), np.repeat([0, 1], [20, 100])
    few = cross_validate_groups(PCA(2), X, sensitive_features=groups, cv=4)
    assert any("(20 rows for 30 features)" in remark for remark in few.remarks)
    X = rng.normal(size=(400, 5))
    X[:2] *= 80
    dominated = cross_validate_groups(PCA(2), X, sensitive_features=np.arange(400) % 2, cv=4)
    assert any("few rows dominate" in remark for remark in dominated.remarks)
    assert "dominate" in repr(dominated)
    plain = cross_validate_groups(PCA(2), rng.normal(size=(400, 5)), sensitive_features=np.arange(400) % 2, cv=4)
    assert plain.remarks == ()


def test_sentence_frame_and_html(two_groups):
    X, groups = two_groups
    figures = cross_validate_groups(PCA(2), X, sensitive_features=groups)
    assert figures.sentence.startswith("On new rows the losses of b and a differ: by ")
    shuffled = np.random.default_rng(0).permutation(groups)
    other = cross_validate_groups(PCA(2), X, sensitive_features=shuffled)
    assert other.sentence.startswith("On new rows no difference of losses is shown: ")
    frame = figures.to_frame().set_index("group")
    assert frame.loc["a", "corrected_loss_low"] == figures.corrected_loss.by_group["a"].low
    assert "<table>" in figures._repr_html_()
    assert "corrected loss" in repr(figures)


def test_an_exact_tie_has_two_groups(two_groups):
    X, _ = two_groups
    figures = cross_validate_groups(PCA(2), np.vstack([X, X]), sensitive_features=np.repeat([0, 1], 300), cv=3)
    assert len(set(figures.loss.between)) == 2
    assert figures.loss.gap.value == pytest.approx(0.0, abs=1e-12)
    assert figures.loss.gap.high > 0 > figures.loss.gap.low


def test_rotation_order_and_names_change_nothing(two_groups, rng):
    X, groups = two_groups
    splits = list(KFold(5, shuffle=True, random_state=0).split(X))
    figures = cross_validate_groups(FairPCA(2), X, sensitive_features=groups, cv=splits)
    rotation = np.linalg.qr(rng.normal(size=(7, 7)))[0]
    turned = cross_validate_groups(FairPCA(2), X @ rotation - 3.0, sensitive_features=groups == "b", cv=splits)
    assert turned.corrected_loss.gap.low == pytest.approx(figures.corrected_loss.gap.low, rel=1e-6)
    assert turned.error.by_group[True].value == pytest.approx(figures.error.by_group["b"].value, rel=1e-6)


def test_sparse_rows_equal_dense_ones(two_groups):
    from scipy import sparse

    X, groups = two_groups
    dense = cross_validate_groups(FairPCA(2), X, sensitive_features=groups)
    thin = cross_validate_groups(FairPCA(2), sparse.csr_matrix(X), sensitive_features=groups)
    assert thin.corrected_loss.gap.low == pytest.approx(dense.corrected_loss.gap.low, rel=1e-6)


def test_ordinary_pca_from_moments_is_that_of_scikit_learn(rng):
    """With so many features only the leading eigenpairs are computed."""
    X = rng.normal(size=(700, 520)) * np.linspace(3.0, 0.5, 520)
    theirs = PCA(3, svd_solver="full").fit(X)
    ours = fit_to_moments(PCA(3), group_moments(X, np.arange(700) % 2))
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_", "noise_variance_", "mean_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(ours.components_ * theirs.components_, axis=1)), 1.0, rtol=1e-9)


def test_progress_is_told(two_groups):
    X, groups = two_groups
    calls: list[tuple] = []
    cross_validate_groups(PCA(2), X, sensitive_features=groups, cv=4, progress=lambda *call: calls.append(call))
    assert calls == [(done, 4, "folds") for done in range(5)]


def test_errors_name_the_argument_and_the_remedy(two_groups):
    X, groups = two_groups
    few = np.where(np.arange(300) < 4, "few", "many")
    with pytest.raises(ValueError, match="Group 'few' has 4 rows, fewer than the 10 folds: use a smaller cv"):
        cross_validate_groups(PCA(2), X, sensitive_features=few)
    with pytest.raises(ValueError, match="every row exactly once"):
        cross_validate_groups(PCA(2), X, sensitive_features=groups, cv=ShuffleSplit(3, random_state=0))
    with pytest.raises(ValueError, match="leaves some out"):
        cross_validate_groups(PCA(2), X, sensitive_features=groups, cv=TimeSeriesSplit(3))
    with pytest.raises(ValueError, match="has no rows of group"):
        cross_validate_groups(PCA(2), X, sensitive_features=groups, cv=KFold(10))
    persons = np.arange(300) // 3
    with pytest.raises(ValueError, match="divides some clusters"):
        cross_validate_groups(
            PCA(2), X, sensitive_features=groups, clusters=persons, cv=StratifiedKFold(3, shuffle=True)
        )
    with pytest.raises(ValueError, match="confidence"):
        cross_validate_groups(PCA(2), X, sensitive_features=groups, confidence=95)
    with pytest.raises(TypeError, match="no inverse_transform"):
        cross_validate_groups(KernelParityPCA(2), X, sensitive_features=groups)
    with pytest.raises(ValueError, match="does not accept it"):
        cross_validate_groups(KernelPCA(2), X, sensitive_features=groups, sample_weight=np.ones(300))
    with pytest.raises((TypeError, ValueError), match="cv"):
        cross_validate_groups(PCA(2), X, sensitive_features=groups, cv=1)


class LeadingByLabel(PCA):
    """Ordinary PCA of the rows of one class: its fit needs y."""

    def fit(self, X, y=None):
        return super().fit(X[np.asarray(y) == 1])


def test_y_reaches_the_fits_and_processes_change_nothing(two_groups):
    X, groups = two_groups
    y = (np.arange(len(X)) % 3 > 0).astype(int)
    one, two = (
        cross_validate_groups(LeadingByLabel(2), X, y, sensitive_features=groups, cv=4, n_jobs=n_jobs)
        for n_jobs in (None, 2)
    )
    assert one.error == two.error
    fewer = cross_validate_groups(LeadingByLabel(2), X, 1 - y, sensitive_features=groups, cv=4)
    assert fewer.error.overall != one.error.overall
