"""Reconstruction metrics against their definitions on rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import NotFittedError

from fairpca import FairPCA, KernelParityPCA
from fairpca.metrics import (
    GroupValues,
    communality,
    explained_variance_ratio,
    reconstruction_error,
    reconstruction_loss,
)


def row_errors(X, components, mean):
    centred = X - mean
    return np.square(centred - centred @ components.T @ components).sum(axis=1)


def test_error_of_any_projector(two_groups):
    X, groups = two_groups
    train, test = X[::2], X[1::2]
    labels = groups[1::2]
    ordinary = PCA(3).fit(train)
    own = FairPCA(3).fit(train, sensitive_features=groups[::2])
    uncentred = TruncatedSVD(3, algorithm="arpack").fit(train)
    cases = [
        (ordinary, ordinary.components_, ordinary.mean_),
        (own, own.components_, own.mean_),
        (uncentred, uncentred.components_, 0.0),
        (ordinary.components_, ordinary.components_, test.mean(axis=0)),
    ]
    for projector, components, mean in cases:
        rows = row_errors(test, components, mean)
        values = reconstruction_error(test, projector, sensitive_features=labels)
        assert np.isclose(values["a"], rows[labels == "a"].mean())
        assert np.isclose(values["b"], rows[labels == "b"].mean())
        assert np.isclose(values.overall, rows.mean())
        assert np.isclose(reconstruction_error(test, projector), rows.mean())
        assert np.isclose(values.gap, abs(values["a"] - values["b"]))
        assert values.max == max(values["a"], values["b"])
        assert values.min == min(values["a"], values["b"])
    assert np.isclose(reconstruction_error(test, ordinary), -own.score(test), rtol=0.5)
    assert np.isclose(reconstruction_error(test, own), -own.score(test))


def test_loss_is_error_beyond_the_best(two_groups):
    X, groups = two_groups
    own = FairPCA(3).fit(X, sensitive_features=groups)
    losses = reconstruction_loss(X, own, sensitive_features=groups)
    for label in "ab":
        rows = (X - own.mean_)[groups == label]
        best = (np.linalg.svd(rows, compute_uv=False)[3:] ** 2).sum() / len(rows)
        error = row_errors(X, own.components_, own.mean_)[groups == label].mean()
        assert np.isclose(losses[label], error - best)
    assert np.isclose(reconstruction_loss(X, PCA(3, svd_solver="full").fit(X)), 0, atol=1e-10)


def test_group_centring(two_groups):
    X, groups = two_groups
    components = np.eye(7)[:2]
    values = reconstruction_error(X, components, sensitive_features=groups, center="group")
    for label in "ab":
        rows = X[groups == label]
        assert np.isclose(values[label], rows[:, 2:].var(axis=0).sum())


def test_explained_variance_ratio(two_groups):
    X, groups = two_groups
    ordinary = PCA(2).fit(X)
    values = explained_variance_ratio(X, ordinary, sensitive_features=groups)
    assert np.isclose(values.overall, ordinary.explained_variance_ratio_.sum())
    errors = reconstruction_error(X, ordinary, sensitive_features=groups)
    for label in "ab":
        total = np.square(X - X.mean(axis=0))[groups == label].sum(axis=1).mean()
        assert np.isclose(values[label], 1 - errors[label] / total)
    assert explained_variance_ratio(np.ones((4, 3)), np.eye(3)[:1]) == 1.0


def test_gap_and_the_groups_it_is_between(two_groups):
    X, groups = two_groups
    own = FairPCA(2).fit(X, sensitive_features=groups)
    assert reconstruction_loss(X, own, sensitive_features=groups).gap < 1e-9
    errors = reconstruction_error(X, own, sensitive_features=groups)
    high, low = errors.between
    assert errors.gap == errors[high] - errors[low] == errors.max - errors.min


def test_weights_and_sparse(two_groups, rng):
    X, groups = two_groups
    weights = rng.integers(0, 3, len(X))
    components = np.eye(7)[:2]
    values = reconstruction_error(X, components, sensitive_features=groups, sample_weight=weights)
    repeated = reconstruction_error(
        np.repeat(X, weights, axis=0), components, sensitive_features=np.repeat(groups, weights)
    )
    assert dict(values) == pytest.approx(dict(repeated))
    assert reconstruction_error(sparse.csr_array(X), components) == pytest.approx(reconstruction_error(X, components))


def test_bad_calls(two_groups):
    X, _ = two_groups
    with pytest.raises(ValueError, match="orthonormal"):
        reconstruction_error(X, np.ones((1, 7)))
    with pytest.raises(ValueError, match="X has 7 features"):
        reconstruction_error(X, np.eye(6)[:2])
    with pytest.raises(ValueError, match="mean has shape"):
        reconstruction_error(X, np.eye(7)[:2], mean=np.zeros(3))
    with pytest.raises(ValueError, match="center='median'"):
        reconstruction_error(X, np.eye(7)[:2], center="median")


def test_group_values_is_a_mapping():
    values = GroupValues({"a": 1.0, "b": 3.0}, 2.0)
    assert list(values) == ["a", "b"]
    assert dict(values) == {"a": 1.0, "b": 3.0}
    assert (values.max, values.min, values.gap, values.overall) == (3.0, 1.0, 2.0, 2.0)


def test_only_fitted_linear_estimators_are_measured(two_groups):
    X, groups = two_groups
    kernel = KernelParityPCA().fit(X, sensitive_features=groups)
    for measure in (reconstruction_error, reconstruction_loss, explained_variance_ratio):
        with pytest.raises(NotFittedError, match="projector is a FairPCA that is not fitted; call its fit first"):
            measure(X, FairPCA())
        with pytest.raises(ValueError, match="projector is a KernelParityPCA, which has no components_"):
            measure(X, kernel)
    with pytest.raises(NotFittedError, match="projector is a FairPCA that is not fitted"):
        communality(FairPCA())


def test_reference_rows_find_the_own_components(two_groups):
    """Both sides are judged on new rows; the own optimum is not fitted to them again."""
    X, groups = two_groups
    train, new = np.arange(0, 300, 2), np.arange(1, 300, 2)
    pca = PCA(2).fit(X[train])
    values = reconstruction_loss(X[new], pca, sensitive_features=groups[new], reference=(X[train], groups[train]))
    for label in "ab":
        mine, known = X[new][groups[new] == label] - pca.mean_, X[train][groups[train] == label] - pca.mean_
        own = np.linalg.svd(known, full_matrices=False)[2][:2]
        expected = ((mine @ own.T) ** 2).sum(axis=1).mean() - ((mine @ pca.components_.T) ** 2).sum(axis=1).mean()
        assert values[label] == pytest.approx(expected)
        assert values[label] < reconstruction_loss(X[new], pca, sensitive_features=groups[new])[label]
    assert values.overall == pytest.approx(0.0, abs=1e-12)  # the own components of all rows are those of PCA


def test_reference_on_the_same_rows_is_the_papers_loss(two_groups):
    X, groups = two_groups
    pca = PCA(3).fit(X)
    plain = reconstruction_loss(X, pca, sensitive_features=groups)
    referred = reconstruction_loss(X, pca, sensitive_features=groups, reference=(X, groups))
    assert dict(referred) == pytest.approx(dict(plain))


def test_reference_is_checked(two_groups):
    X, groups = two_groups
    pca = PCA(2).fit(X)
    with pytest.raises(TypeError, match="reference must be a pair"):
        reconstruction_loss(X, pca, sensitive_features=groups, reference=X)
    with pytest.raises(ValueError, match="no rows of group 'b'"):
        reconstruction_loss(X, pca, sensitive_features=groups, reference=(X[:200], groups[:200]))
    with pytest.raises(ValueError, match="reference has 3 features"):
        reconstruction_loss(X, pca, sensitive_features=groups, reference=(X[:, :3], groups))


METRICS = [
    reconstruction_error,
    reconstruction_loss,
    explained_variance_ratio,
]


def numbers_of(values):
    return [values.overall, *values.values()] if isinstance(values, GroupValues) else [values]


@pytest.mark.parametrize("center", ["pooled", "group"])
@pytest.mark.parametrize("metric", METRICS)
def test_weights_count_like_repeated_rows(metric, center, two_groups, rng):
    X, groups = two_groups
    counts = rng.integers(0, 4, len(X))
    ordinary = PCA(3).fit(X)
    for projector in (ordinary, ordinary.components_):  # a bare matrix takes the mean of the rows, weighted too
        weighted = metric(X, projector, sensitive_features=groups, sample_weight=counts, center=center)
        repeated = metric(
            np.repeat(X, counts, axis=0), projector, sensitive_features=np.repeat(groups, counts), center=center
        )
        np.testing.assert_allclose(numbers_of(weighted), numbers_of(repeated), rtol=1e-10)
        plain = metric(X, projector, sensitive_features=groups, center=center)
        assert not np.allclose(numbers_of(plain), numbers_of(weighted), rtol=1e-6)


@pytest.mark.parametrize("metric", METRICS)
def test_center_of_groups_is_that_of_rows_moved_to_their_own_means(metric, two_groups):
    X, groups = two_groups
    components = PCA(3).fit(X).components_
    moved = X - np.where((groups == "a")[:, None], X[groups == "a"].mean(axis=0), X[groups == "b"].mean(axis=0))
    found = metric(X, components, sensitive_features=groups, center="group")
    expected = metric(moved, components, sensitive_features=groups, mean=np.zeros(7))
    np.testing.assert_allclose(numbers_of(found), numbers_of(expected), rtol=1e-9)
    assert not np.allclose(numbers_of(found), numbers_of(metric(X, components, sensitive_features=groups)), rtol=1e-6)


@pytest.mark.parametrize("metric", METRICS)
def test_a_given_mean_replaces_the_projectors(metric, two_groups):
    X, groups = two_groups
    ordinary, point = PCA(3).fit(X), np.arange(7.0)
    found = metric(X, ordinary, sensitive_features=groups, mean=point)
    expected = metric(X - point, ordinary.components_, sensitive_features=groups, mean=np.zeros(7))
    np.testing.assert_allclose(numbers_of(found), numbers_of(expected), rtol=1e-9)


@pytest.mark.parametrize("center", ["pooled", "group"])
@pytest.mark.parametrize("metric", [reconstruction_error, reconstruction_loss])
def test_relative_values_are_shares_of_the_variance_of_these_rows(two_groups, metric, center):
    X, groups = two_groups
    pca = PCA(2).fit(X)
    options = {"sensitive_features": groups, "center": center}
    plain, relative = metric(X, pca, **options), metric(X, pca, relative=True, **options)
    offsets = {g: X[groups == g].mean(axis=0) if center == "group" else X.mean(axis=0) for g in "ab"}
    totals = {g: np.square(X[groups == g] - offsets[g]).sum() / (groups == g).sum() for g in "ab"}
    for g in "ab":
        assert np.isclose(relative[g], plain[g] / totals[g])
    assert np.isclose(relative.overall, plain.overall / (2 / 3 * totals["a"] + 1 / 3 * totals["b"]))
    assert np.isclose(metric(X, pca, relative=True), metric(X, pca) / np.trace(np.cov(X.T, ddof=0)))


def test_relative_loss_on_new_rows_and_relative_error_complement_the_kept_share(two_groups):
    X, groups = two_groups
    pca = PCA(2).fit(X[::2])
    new, labels = X[1::2], groups[1::2]
    kept = explained_variance_ratio(new, pca, sensitive_features=labels)
    errors = reconstruction_error(new, pca, sensitive_features=labels, relative=True)
    assert np.allclose([errors[g] + kept[g] for g in "ab"], 1.0)
    options = {"sensitive_features": labels, "reference": (X[::2], groups[::2])}
    plain, relative = (reconstruction_loss(new, pca, relative=flag, **options) for flag in (False, True))
    for g in "ab":
        assert np.isclose(relative[g], plain[g] / np.square(new[labels == g] - pca.mean_).sum(axis=1).mean())


def test_relative_error_of_a_group_without_variance_is_zero(rng):
    X, groups = rng.normal(size=(20, 3)), np.arange(20) % 2
    X[groups == 0] = 1.0
    assert reconstruction_error(X, np.eye(3)[:1], sensitive_features=groups, center="group", relative=True)[0] == 0.0


def test_relative_must_be_a_flag(two_groups):
    X, groups = two_groups
    for metric in (reconstruction_error, reconstruction_loss):
        with pytest.raises(TypeError, match="relative must be True or False"):
            metric(X, PCA(2).fit(X), sensitive_features=groups, relative="yes")
