"""Cross-validated values: equal to plain refitting, calibrated on known truths, honest about folds and clusters."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.decomposition import PCA, KernelPCA, TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, KernelParityPCA, MMDFairPCA, ParityPCA, RobustFairPCA
from fairpca._validation import seed_from
from fairpca.datasets import load_german_credit
from fairpca.inference import cross_validate_groups, loss_test
from fairpca.inference._checks import as_source
from fairpca.inference._fitting import fit_to_moments
from fairpca.inference._study import Study
from fairpca.inference.cross_validation import evaluations
from fairpca.metrics import reconstruction_loss
from fairpca.model_selection import compare
from fairpca.moments import group_moments


def by_hand(estimator, X, groups, fold, own_weights, weights=None):
    """Row values by refitting on the rows of each fold: error, corrected loss, change against ordinary PCA."""
    weights = np.ones(len(X)) if weights is None else weights
    d, values = estimator.n_components, np.empty((len(X), 3))

    def own_basis(rows, mean):
        centred = (X[rows] - mean) * np.sqrt(weights[rows])[:, None]
        return np.linalg.svd(centred, full_matrices=False)[2][:d].T

    full_mean = weights @ X / weights.sum()
    for number in range(fold.max() + 1):
        train, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        options = {} if isinstance(estimator, PCA) else {"sensitive_features": groups[train]}
        options |= {} if isinstance(estimator, PCA) else {"sample_weight": weights[train]}
        fitted = sklearn.base.clone(estimator).fit(X[train], **options)
        mean = weights[train] @ X[train] / weights[train].sum()
        for a in np.unique(groups):
            rows = test[groups[test] == a]
            x = X[rows] - mean
            bases = (
                own_basis(np.flatnonzero(groups == a), full_mean),
                own_basis(train[groups[train] == a], mean),
                own_basis(train, mean),
                fitted.components_.T,
            )
            own, without, ordinary, method = (((x @ basis) ** 2).sum(axis=1) for basis in bases)
            corrected = own_weights[a] * own + (1 - own_weights[a]) * without - method
            values[rows] = np.column_stack([(x**2).sum(axis=1) - method, corrected, ordinary - method])
    return values


def study_of(X, groups, n_folds, weights=None, clusters=None, seed=0):
    return Study(as_source(X, groups, weights), n_folds, clusters, seed)


def own_weights_of(study, d=2):
    """How a study weights own components."""
    return dict(zip(study.labels, study.divisions[0].own_weights(d), strict=True))


ESTIMATORS = [PCA(2), FairPCA(2), RobustFairPCA(2), ParityPCA(2)]
NAMES = ("error", "corrected_loss", "change")


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
@pytest.mark.parametrize("weighted", [False, True])
def test_cells_equal_refitting(estimator, weighted, two_groups, rng):
    """Every value is the mean over five divisions, of which each is a cross-validation by refitting to rows."""
    if weighted and isinstance(estimator, PCA):
        pytest.skip("scikit-learn's PCA takes no weights")
    X, groups = two_groups
    weights = rng.integers(0, 3, len(X)).astype(float) if weighted else None
    options = {"sensitive_features": groups, "sample_weight": weights}
    found = cross_validate_groups(estimator, X, cv=5, **options)
    kept = np.ones(len(X), dtype=bool) if weights is None else weights > 0
    study = study_of(X, groups, 5, weights)
    part = None if weights is None else weights[kept]
    by_division = [
        by_hand(estimator, X[kept], groups[kept], study.fold_of_rows(number), own_weights_of(study), part)
        for number in range(5)
    ]
    for label in "ab":
        rows = groups[kept] == label
        means = np.array(
            [np.average(one[rows], axis=0, weights=None if part is None else part[rows]) for one in by_division]
        )
        for column, name in enumerate(NAMES):
            assert getattr(found, name)[label] == pytest.approx(means[:, column].mean(), rel=1e-6, abs=1e-10)
        if weights is None:
            # Rows, from the first division, and fits, from the spread between divisions; few degrees of freedom add
            # to the length, so that this is the least half-width.
            s = by_division[0][rows, 0].std(ddof=1) / np.sqrt(rows.sum())
            same = (40 / 5 - 1) / 39
            error = np.sqrt(s**2 + 3 / 8 * (1 - same) / same * means[:, 0].var(ddof=1))
            half = found.error[label].high - found.error[label]
            assert 1.95996 * error <= half * (1 + 1e-9) <= 2.3 * error
    assert found.counts == {label: int((groups[kept] == label).sum()) for label in "ab"}
    if weights is not None:
        assert found.weights == {label: weights[groups == label].sum() for label in "ab"}


def test_four_codes_for_one_loss_are_one():
    X, sex = load_german_credit(return_X_s=True)
    fitted = PCA(5).fit(X)
    found = [
        reconstruction_loss(X, fitted, sensitive_features=sex)["female"],
        loss_test(X, sensitive_features=sex, n_components=5, n_permutations=19).by_group["female"].loss,
        loss_test(X, sensitive_features=sex, n_components=5, n_permutations=0).by_group["female"].loss,
        cross_validate_groups(PCA(5), X, sensitive_features=sex).loss["female"].value,
        compare(X, sensitive_features=sex, n_components=5, methods=["PCA"], n_permutations=19)["PCA", 5]
        .loss["female"]
        .value,
    ]
    assert np.ptp(found) <= 1e-12 * 57


def test_intervals_of_several_numbers_of_components_hold_together(two_groups):
    X, groups = two_groups
    together = cross_validate_groups(FairPCA(), X, sensitive_features=groups, n_components=[1, 2, 3])
    alone = cross_validate_groups(FairPCA(2), X, sensitive_features=groups)
    assert list(together) == [1, 2, 3]
    for name in ("error", "corrected_loss"):
        one, other = getattr(together[2], name).gap, getattr(alone, name).gap
        assert (one, one.low, one.high) == (other, other.low, other.high)
        assert one.joint_low < other.joint_low <= other.low
    assert together[2].change["a"].joint_low < alone.change["a"].joint_low < alone.change["a"].low


def test_claims_are_what_joint_intervals_exclude(two_groups):
    X, groups = two_groups
    found = cross_validate_groups(FairPCA(), X, sensitive_features=groups, n_components=[1, 2])
    for one in found.values():
        kinds = {claim.kind for claim in one.claims}
        assert ("losses" in kinds) == one.claimed == (one.corrected_loss.gap.joint_low > 0)
        assert ("errors" in kinds) == (one.error.gap.joint_low > 0)
        changed = {claim.groups[0] for claim in one.claims if claim.kind == "change"}
        assert changed == {label for label, change in one.change.items() if change.excludes_zero}
    assert cross_validate_groups(PCA(1), X, sensitive_features=groups).claimed  # these groups do differ


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("deficient", [False, True])
def test_rounding_is_no_difference(k, deficient, rng):
    for seed in range(8):
        X, d = rng.normal(size=(60 * k, 5)), 5
        if deficient:
            X, d = X[:, :3] @ rng.normal(size=(3, 5)), 3
        groups = rng.permutation(np.arange(len(X)) % k)
        for estimator in (PCA(d), FairPCA(d)):
            found = cross_validate_groups(estimator, X, sensitive_features=groups, cv=5, random_state=seed)
            assert not found.claims
            assert found.keeps_everything
            assert "keeps everything" in found.sentence


def test_a_seed_of_the_users_does_not_divide_the_rows(two_groups):
    """Rows in the order of ``default_rng(0)`` must not fall into folds by that order."""
    groups = np.random.default_rng(0).permutation(np.repeat([0, 1], 150))
    X = np.random.default_rng(0).normal(size=(300, 3))
    fold = study_of(X, groups, 5).fold_of_rows()
    for number in range(5):
        assert np.abs(np.bincount(groups[fold == number]) - 30).max() <= 3


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
    study = study_of(X, groups, 10, seed=seed_from(0))
    evidence = study.evidence("PCA", PCA(2).fit(X), study.fit_without_folds(PCA(2))[:1])  # of the first division
    direct = evaluations(study, [evidence], 0.95)[0]
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
    labels, two = np.repeat([0, 1, 2], [60, 90, 150]), np.repeat([0, 1], [90, 210])
    found = [
        cross_validate_groups(
            FairPCA(), X, sensitive_features=rng.permutation(two), n_components=[1, 3], cv=5, random_state=i
        )
        for i in range(60)
    ]
    claimed = [{claim.kind for one in each.values() for claim in one.claims} for each in found]
    for kind in ("losses", "errors"):
        assert np.mean([kind in kinds for kinds in claimed]) <= 0.15
    # In the sample, the same groups differ as a rule: the smaller, the larger the loss of ordinary PCA.
    ordinary = [cross_validate_groups(PCA(3), X, sensitive_features=rng.permutation(labels), cv=5) for _ in range(20)]
    assert np.mean([one.loss[0] > one.loss[2] for one in ordinary]) >= 0.8


def test_the_interval_of_a_change_knows_that_the_fit_varies(rng):
    """The change of the returned components is known; the rows alone would cover it in four of five draws."""
    variances, covered = np.linspace(2.0, 1.0, 8) ** 2, []
    groups = np.repeat([0, 1], [90, 210])
    for i in range(80):
        X = rng.normal(size=(300, 8)) * np.sqrt(variances)
        fitted, ordinary = FairPCA(2).fit(X, sensitive_features=groups), PCA(2).fit(X)
        errors = [-(one.components_**2 @ variances).sum() for one in (fitted, ordinary)]
        change = cross_validate_groups(FairPCA(2), X, sensitive_features=groups, random_state=i).change
        covered += [one.low <= errors[0] - errors[1] <= one.high for one in change.values()]
    assert np.mean(covered) >= 0.9


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
    """To first order K / (2K - 1), where eigenvalues are apart; nothing where they are all equal."""
    groups = np.repeat([0, 1], [400, 1600])
    apart = rng.normal(size=(2000, 8)) * np.r_[10.0, 9.0, np.full(6, 0.3)]
    assert own_weights_of(study_of(apart, groups, 5))[0] == pytest.approx(5 / 9, rel=0.05)
    equal = rng.normal(size=(2000, 8))
    assert own_weights_of(study_of(equal, groups, 5))[0] < 0.05


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
    study = study_of(X, groups, 10)
    for number in range(5):
        fold = study.fold_of_rows(number)
        for label, size in (("a", 20), ("b", 10)):
            assert np.abs(np.bincount(fold[groups == label]) - size).max() <= 4  # whole blocks of rows
    assert (study.fold_of_rows(0) != study.fold_of_rows(1)).mean() > 0.5
    persons = np.arange(300) // 4  # some of them have rows of both groups
    fold = study_of(X, groups, 5, clusters=persons).fold_of_rows()
    assert all(len(set(fold[persons == person])) == 1 for person in range(75))
    assert np.bincount(fold).min() >= 40


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
    from fairpca.inference import _blocks

    X, groups = two_groups
    all_rows = cross_validate_groups(FairPCA(2), X, sensitive_features=groups)
    monkeypatch.setattr(_blocks, "_UNITS_FOR_ERRORS", 60)
    sampled = cross_validate_groups(FairPCA(2), X, sensitive_features=groups)
    for label in "ab":
        exact, part = all_rows.error.by_group[label], sampled.error.by_group[label]
        assert part.value == exact.value
        assert part.high - part.low == pytest.approx(exact.high - exact.low, rel=0.4)
        assert part.high - part.low != exact.high - exact.low


def test_moments_that_do_not_fit_into_memory_are_formed_again(two_groups, monkeypatch):
    X, groups = two_groups
    options = {"sensitive_features": groups, "n_components": [1, 3]}
    kept = cross_validate_groups(FairPCA(), X, **options)
    monkeypatch.setattr("fairpca.inference._blocks._CELL_BYTES", 0)
    anew = cross_validate_groups(FairPCA(), X, **options)
    for d in (1, 3):
        for label in "ab":
            ours, theirs = anew[d].change[label], kept[d].change[label]
            assert (ours, ours.low, ours.joint_high) == pytest.approx((theirs, theirs.low, theirs.joint_high))


@pytest.mark.parametrize("estimator", [PCA(2), FairPCA(2)], ids=lambda estimator: type(estimator).__name__)
def test_the_unit_of_weights_changes_nothing(estimator, two_groups, rng):
    X, groups = two_groups
    weights = rng.uniform(0.5, 2.0, len(X))
    plain, small, large = (
        cross_validate_groups(estimator, X, sensitive_features=groups, sample_weight=unit * weights, cv=5)
        for unit in (1.0, 0.1, 1000.0)
    )
    for other in (small, large):
        assert other.counts == plain.counts
        for name in ("error", "loss", "corrected_loss", "change"):
            for ours, theirs in zip(getattr(other, name).values(), getattr(plain, name).values(), strict=True):
                assert (ours, ours.low, ours.joint_high) == pytest.approx(
                    (theirs, theirs.low, theirs.joint_high), rel=1e-5, abs=1e-9, nan_ok=True
                )


def test_small_groups_and_dominating_rows_are_flagged(rng):
    X, groups = rng.normal(size=(120, 30)), np.repeat([0, 1], [20, 100])
    few = cross_validate_groups(PCA(2), X, sensitive_features=groups, cv=4)
    assert any("Fewer rows than the 30 features: “0” (20)" in remark for remark in few.remarks)
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
    assert figures.sentence.startswith(
        "On new rows, under PCA with 2 components, the loss of “b” is larger than that of “a”"
    )
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
    figures = cross_validate_groups(FairPCA(2), X, sensitive_features=groups, cv=5)
    rotation = np.linalg.qr(rng.normal(size=(7, 7)))[0]
    turned = cross_validate_groups(FairPCA(2), X @ rotation - 3.0, sensitive_features=groups == "b", cv=5)
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
    ours = fit_to_moments(PCA(3), group_moments(X, sensitive_features=np.arange(700) % 2))
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_", "noise_variance_", "mean_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(ours.components_ * theirs.components_, axis=1)), 1.0, rtol=1e-9)


def test_progress_is_told(two_groups):
    X, groups = two_groups
    calls: list[tuple] = []
    cross_validate_groups(PCA(2), X, sensitive_features=groups, cv=4, progress=lambda *call: calls.append(call))
    assert calls == [(0, 4, "folds"), (4, 4, "folds")]


def test_errors_name_the_argument_and_the_remedy(two_groups):
    X, groups = two_groups
    few = np.where(np.arange(300) < 4, "few", "many")
    with pytest.raises(ValueError, match="Group 'few' has 4 rows, fewer than the 10 folds: use a smaller cv"):
        cross_validate_groups(PCA(2), X, sensitive_features=few)
    with pytest.raises((TypeError, ValueError), match="cv"):
        cross_validate_groups(PCA(2), X, sensitive_features=groups, cv="ten")
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
    assert dict(one.error) == dict(two.error)
    fewer = cross_validate_groups(LeadingByLabel(2), X, 1 - y, sensitive_features=groups, cv=4)
    assert fewer.error.overall != one.error.overall
