"""LeacePCA: scores uncorrelated with the groups, the least error of all linear maps with that property."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import null_space
from sklearn.decomposition import PCA

from fairpca import LeacePCA, ParityPCA, load_model, save_model
from fairpca.datasets import load_german_credit
from fairpca.inference import cross_validate_groups, loss_test
from fairpca.inference._checks import as_source
from fairpca.inference._study import Study
from fairpca.metrics import explained_variance_ratio, reconstruction_error, reconstruction_loss
from fairpca.model_selection import METHODS, compare, frontier
from fairpca.moments import group_moments
from reproductions.datasets import load_splits


def correlations(scores, groups):
    """The largest absolute correlation of a score with the indicator of a group."""
    indicators = (np.asarray(groups)[:, None] == np.unique(groups)).astype(float)
    return np.abs(np.corrcoef(scores.T, indicators.T)[: scores.shape[1], scores.shape[1] :]).max()


@pytest.fixture
def german():
    return load_german_credit(return_X_s=True)


@pytest.fixture
def several(rng):
    """Four groups, correlated features of different units far from the origin, one that repeats others."""
    groups = rng.choice(list("abcd"), 400, p=[0.4, 0.3, 0.2, 0.1])
    X = rng.normal(size=(400, 8)) @ rng.normal(size=(8, 8))
    X += (groups[:, None] == np.array(list("abcd"))) @ rng.normal(size=(4, 8))
    X = X * np.array([1e3, 1, 1e-3, 1, 1, 10, 1, 1]) + 50.0
    return np.column_stack([X, X[:, 3] - X[:, 4]]), groups


@pytest.mark.parametrize("n_components", [1, 2, 5, 10])
def test_scores_are_uncorrelated_with_the_groups(german, several, n_components):
    X, sex = german
    assert correlations(LeacePCA(n_components).fit_transform(X, sensitive_features=sex), sex) < 1e-10
    X, groups = several
    n_components = min(n_components, 5)
    assert correlations(LeacePCA(n_components).fit_transform(X, sensitive_features=groups), groups) < 1e-10


@pytest.mark.filterwarnings("ignore:X contains the sensitive feature")  # as the files of COMPAS do
@pytest.mark.parametrize("name", ["German", "COMPAS"])
def test_scores_are_uncorrelated_on_the_papers_splits(shared_data, name):
    for split in load_splits(shared_data / "lee2022" / "datasets" / name, splits=[0, 1]):
        pca = LeacePCA(5).fit(split.X_train, sensitive_features=split.sensitive_train)
        assert correlations(pca.transform(split.X_train), split.sensitive_train) < 1e-10


def test_components_are_those_of_pca_of_the_erased_rows(several):
    X, groups = several
    pca = LeacePCA(3).fit(X, sensitive_features=groups)
    erased = pca.erase(X)
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(erased, X.mean(axis=0) + centred @ pca.erasure_.T, rtol=1e-9, atol=1e-9)
    ordinary = PCA(3, svd_solver="full").fit(erased)
    np.testing.assert_allclose(np.abs(np.diag(ordinary.components_ @ pca.components_.T)), 1.0, atol=1e-10)
    np.testing.assert_allclose(ordinary.explained_variance_, pca.explained_variance_, rtol=1e-9)
    scores = (erased - pca.mean_) @ pca.components_.T
    np.testing.assert_allclose(pca.transform(X), scores, rtol=1e-7, atol=1e-7 * np.abs(scores).max())


def least_error(X, groups, d):
    """Over all d linear scores uncorrelated with the groups and all linear reconstructions: reduced-rank regression."""
    centred = X - X.mean(axis=0)
    means = np.stack([centred[groups == label].mean(axis=0) for label in np.unique(groups)])
    allowed = centred @ null_space(means)
    fitted = allowed @ np.linalg.lstsq(allowed, centred, rcond=None)[0]
    kept = np.square(np.linalg.svd(fitted, compute_uv=False)[:d]).sum()
    return (np.square(centred).sum() - kept) / len(X)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_no_linear_map_has_a_smaller_error(two_groups, d):
    X, groups = two_groups
    pca = LeacePCA(d).fit(X, sensitive_features=groups)
    error = np.square(X - pca.inverse_transform(pca.transform(X))).sum(axis=1).mean()
    assert error == pytest.approx(least_error(X, groups, d), rel=1e-12)
    assert pca.explained_variance_ratio_.sum() == pytest.approx(1 - error / X.var(axis=0).sum(), rel=1e-12)
    orthogonal = ParityPCA(d).fit(X, sensitive_features=groups)
    assert pca.explained_variance_ratio_.sum() > orthogonal.explained_variance_ratio_.sum() + 1e-4
    total = X.var(axis=0).sum()
    assert pca.objective_ == pytest.approx(error - total)
    assert 0 <= pca.duality_gap_ < 1e-10 * total


def test_the_inverse_is_the_best_linear_reconstruction(two_groups):
    X, groups = two_groups
    pca = LeacePCA(2).fit(X, sensitive_features=groups)
    scores, centred = pca.transform(X), X - X.mean(axis=0)
    np.testing.assert_allclose(np.linalg.lstsq(scores, centred, rcond=None)[0], pca.components_, atol=1e-12)
    restored = pca.inverse_transform(scores)
    np.testing.assert_allclose(pca.erase(restored), restored, atol=1e-12)  # it lies among the erased rows


def test_equal_means_leave_ordinary_pca(rng):
    X = rng.normal(size=(60, 4)) * [3.0, 2.0, 1.0, 0.5]
    pca = LeacePCA(2).fit(np.vstack([X, X]), sensitive_features=np.repeat(["a", "b"], 60))
    ordinary = PCA(2).fit(np.vstack([X, X]))
    np.testing.assert_allclose(np.abs(ordinary.components_ @ pca.components_.T), np.eye(2), atol=1e-9)
    np.testing.assert_array_equal(pca.erasure_, np.eye(4))
    assert pca.erased_directions_.shape == (0, 4)
    np.testing.assert_array_equal(pca.projection_, pca.components_)


def test_erasure_and_row_errors_of_any_kind_of_rows(two_groups):
    X, groups = two_groups
    pca = LeacePCA(2).fit(X, sensitive_features=groups)
    errors = np.square(X - pca.inverse_transform(pca.transform(X))).sum(axis=1)
    for rows in (X, sparse.csr_array(X)):
        np.testing.assert_allclose(pca.score_samples(rows), -errors)
        assert pca.score(rows) == pytest.approx(-errors.mean())
        np.testing.assert_allclose(pca.erase(rows), pca.erase(X))
    assert pca.erase(X.astype(np.float32)).dtype == np.float32
    with pytest.raises(TypeError, match="use ParityPCA, or apply erase"):
        pca.to_sklearn()


def test_too_many_components(two_groups):
    X, groups = two_groups
    LeacePCA(6).fit(X, sensitive_features=groups)
    with pytest.raises(ValueError, match=r"only 6 directions of the 7 feature\(s\).*lower n_components\."):
        LeacePCA(7).fit(X, sensitive_features=groups)


def test_more_features_than_rows(rng, monkeypatch):
    monkeypatch.setattr("fairpca.estimators._base.MANY_FEATURES", 100)  # from there on, in the space of the rows
    X, groups = rng.normal(size=(40, 150)), np.arange(40) % 3
    X += groups[:, None] * rng.normal(size=150)
    wide = LeacePCA(3).fit(X, sensitive_features=groups)
    assert correlations(wide.transform(X), groups) < 1e-10
    errors = np.square(X - wide.inverse_transform(wide.transform(X))).sum(axis=1)
    np.testing.assert_allclose(wide.group_errors_, [errors[groups == a].mean() for a in range(3)], rtol=1e-9)
    np.testing.assert_allclose(np.cov(wide.transform(X).T), np.diag(wide.explained_variance_), atol=1e-8)
    assert wide._moments is None
    turned = np.linalg.qr(rng.normal(size=(150, 60)))[0]  # the same rows in few coordinates
    low = X[:, :60]
    embedded = LeacePCA(2).fit(low @ turned.T, sensitive_features=groups)
    direct = LeacePCA(2).fit(low, sensitive_features=groups)
    np.testing.assert_allclose(embedded.explained_variance_, direct.explained_variance_, rtol=1e-8)


def test_metrics_are_those_of_the_reconstructions(two_groups, rng):
    X, groups = two_groups
    pca = LeacePCA(2).fit(X, sensitive_features=groups)
    new = X[rng.permutation(300)[:80]] + rng.normal(size=(80, 7))
    labels = np.arange(80) % 2
    errors = np.square(new - pca.inverse_transform(pca.transform(new))).sum(axis=1)
    found = reconstruction_error(new, pca, sensitive_features=labels)
    assert dict(found) == pytest.approx({a: errors[labels == a].mean() for a in (0, 1)})
    total = np.square(new - pca.mean_).sum(axis=1)
    assert explained_variance_ratio(new, pca) == pytest.approx(1 - errors.sum() / total.sum())
    losses = reconstruction_loss(X, pca, sensitive_features=groups)
    assert [losses[label] for label in "ab"] == pytest.approx(pca.group_losses_)
    assert (pca.group_losses_ > 0).all()


def test_comparisons_report_the_reconstructions(two_groups):
    X, groups = two_groups
    assert METHODS["LeacePCA"].on_request
    found = compare(X, sensitive_features=groups, n_components=2, methods=["PCA", "LeacePCA"], n_permutations=19, cv=5)
    result = found["LeacePCA", 2]
    pca = LeacePCA(2).fit(X, sensitive_features=groups)
    assert result.explained_variance == pytest.approx(pca.explained_variance_ratio_.sum())
    assert [result.loss.by_group[label].value for label in "ab"] == pytest.approx(pca.group_losses_)
    curve = frontier(group_moments(X, sensitive_features=groups), methods={"LeacePCA": pca}, n_points=5)
    assert curve.methods["LeacePCA"].errors == pytest.approx(pca.group_errors_)


def test_cross_validated_errors_are_those_of_the_reconstructions(two_groups):
    X, groups = two_groups
    found = cross_validate_groups(LeacePCA(2), X, sensitive_features=groups, cv=4)
    study, errors = Study(as_source(X, groups, None), 4, None, 0), np.zeros(300)
    for number in range(5):
        fold = study.fold_of_rows(number)
        for k in range(4):
            pca = LeacePCA(2).fit(X[fold != k], sensitive_features=groups[fold != k])
            errors[fold == k] -= pca.score_samples(X[fold == k]) / 5
    for label in "ab":
        assert found.error[label] == pytest.approx(errors[groups == label].mean())


def test_permutation_tests_use_the_reconstructions(two_groups):
    X, groups = two_groups
    test = loss_test(X, sensitive_features=groups, estimator=LeacePCA(2), n_permutations=19)
    pca = LeacePCA(2).fit(X, sensitive_features=groups)
    assert [test.by_group[label].loss for label in "ab"] == pytest.approx(pca.group_losses_)
    other = LeacePCA(2).fit(X[::2], sensitive_features=groups[::2])
    fixed = loss_test(X, sensitive_features=groups, estimator=other, n_permutations=19)
    centred = X - X.mean(axis=0)
    left = centred - centred @ other.projection_.T @ other.components_
    best = [np.linalg.eigvalsh(part.T @ part / len(part))[:-2].sum() for part in (centred[:200], centred[200:])]
    errors = [np.square(part).sum(axis=1).mean() for part in (left[:200], left[200:])]
    assert [fixed.by_group[label].loss for label in "ab"] == pytest.approx(np.subtract(errors, best))


def test_saved_and_loaded(several, tmp_path):
    X, groups = several
    before = LeacePCA(2).fit(X, sensitive_features=groups)
    after = load_model(save_model(before, tmp_path / "model.npz"))
    np.testing.assert_array_equal(after.erasure_, before.erasure_)
    np.testing.assert_array_equal(after.transform(X), before.transform(X))
    after.partial_fit(X, sensitive_features=groups)
    assert after.n_samples_seen_ == 800
