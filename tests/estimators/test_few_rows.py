"""Fewer rows than features: the problem in the space of the rows is the problem itself, to rounding."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

from fairpca import FairPCA, LeacePCA, ParityPCA, RobustFairPCA
from fairpca.estimators import _base
from fairpca.moments import group_moments

N_ROWS, N_FEATURES = 40, 90


@pytest.fixture
def rows(rng):
    groups = np.arange(N_ROWS) % 2
    X = rng.normal(size=(N_ROWS, N_FEATURES)) * np.linspace(2, 0.2, N_FEATURES) + 4.0
    X[groups == 1] = X[groups == 1][:, ::-1] + np.linspace(0, 0.4, N_FEATURES)
    return X, groups


def in_row_space(monkeypatch, estimator, *args, **kwargs):
    with monkeypatch.context() as context:
        context.setattr(_base, "MANY_FEATURES", 50)
        estimator.fit(*args, **kwargs)
    assert estimator._moments is None  # it went that way
    return estimator


def assert_same(ours, theirs, atol=1e-8):
    for name in ("mean_", "explained_variance_", "explained_variance_ratio_", "noise_variance_", "group_errors_",
                 "group_losses_", "objective_", "lower_bound_", "group_counts_"):  # fmt: skip
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=atol, rtol=1e-7, err_msg=name)
    assert ours.groups_.tolist() == theirs.groups_.tolist()
    assert ours.n_features_in_ == theirs.n_features_in_
    np.testing.assert_allclose(ours.components_ @ ours.components_.T, np.eye(len(ours.components_)), atol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "single precision", "sparse", "weighted", "frame"])
@pytest.mark.parametrize("criterion", ["loss", "error", "nash", "mean"])
def test_fair_pca_equals_the_solution_with_matrices(rows, rng, monkeypatch, kind, criterion):
    X, groups = rows
    weight = None
    if kind == "single precision":
        X = X.astype(np.float32)
    elif kind == "sparse":
        X = sparse.csr_array(X * (rng.random(X.shape) < 0.4))
    elif kind == "weighted":
        weight = rng.integers(0, 3, N_ROWS).astype(float)
    elif kind == "frame":
        X = pytest.importorskip("pandas").DataFrame(X, columns=[f"x{j}" for j in range(N_FEATURES)])
    given = {"sensitive_features": groups, "sample_weight": weight}
    ours = in_row_space(monkeypatch, FairPCA(3, criterion=criterion), X, **given)
    theirs = FairPCA(3, criterion=criterion).fit(X, **given)
    assert_same(ours, theirs)
    assert ours.converged_
    np.testing.assert_allclose(ours.components_, theirs.components_, atol=1e-5)
    # The attributes describe the returned components on the rows themselves.
    dense = np.asarray(X.toarray() if kind == "sparse" else X, dtype=float)
    moments = group_moments(dense, sensitive_features=groups, sample_weight=weight).second_moments()
    left = np.einsum("aii->a", moments) - np.einsum("di,aij,dj->a", ours.components_, moments, ours.components_)
    np.testing.assert_allclose(ours.group_errors_, left, rtol=1e-9)
    assert ours.relaxed_.components.shape[1] == N_FEATURES
    np.testing.assert_allclose(ours.relaxed_.group_losses, theirs.relaxed_.group_losses, atol=1e-8)
    np.testing.assert_allclose(
        abs(ours.relaxed_.inverse_transform(ours.relaxed_.transform(dense)) - dense).mean(),
        abs(theirs.relaxed_.inverse_transform(theirs.relaxed_.transform(dense)) - dense).mean(),
        rtol=1e-5,
    )


@pytest.mark.parametrize(
    "estimator",
    [
        RobustFairPCA(3),
        RobustFairPCA(2, penalty=20.0, radius=0.0),
        ParityPCA(3),
        ParityPCA(2, mean_tolerance=0.5),
        LeacePCA(3),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_other_estimators(rows, rng, monkeypatch, estimator, form):
    X, groups = rows
    X = X if form == "dense" else sparse.csr_array(X * (rng.random(X.shape) < 0.4))
    make = lambda: type(estimator)(**estimator.get_params())  # noqa: E731
    ours = in_row_space(monkeypatch, make(), X, sensitive_features=groups)
    assert_same(ours, make().fit(X, sensitive_features=groups), atol=1e-6)


def test_more_components_than_the_rows_span(rng, monkeypatch):
    """Directions along which no row varies count as components too, and a gap may be closed by capturing nothing."""
    X, groups = rng.normal(size=(6, 60)), np.arange(6) % 2
    X[groups == 1] *= 5
    for make in (lambda: FairPCA(7), lambda: RobustFairPCA(2, penalty=20.0, radius=0.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # groups smaller than n_components
            ours = in_row_space(monkeypatch, make(), X, sensitive_features=groups)
            theirs = make().fit(X, sensitive_features=groups)
        assert_same(ours, theirs, atol=1e-7)


def test_the_papers_subgradient_keeps_its_steps(rows, monkeypatch):
    X, groups = rows
    monkeypatch.setattr(_base, "MANY_FEATURES", 50)
    pca = RobustFairPCA(2, solver="subgradient", n_init=1, max_iter=5, random_state=0).fit(X, sensitive_features=groups)
    assert pca._moments is not None


@pytest.mark.parametrize("few_rows", [0, 10**6])
def test_a_sparse_column_far_from_zero_costs_no_digits(rng, monkeypatch, few_rows):
    """In the space of the rows, and with operators; filled columns are moved next to zero before they are squared."""
    monkeypatch.setattr(_base, "MANY_FEATURES", 50)
    monkeypatch.setattr(_base, "FEW_ROWS", few_rows)
    X = rng.normal(size=(120, 60)) * (rng.random((120, 60)) < 0.2) * np.linspace(3, 0.5, 60)
    X[:, 7] = 1e7 + rng.normal(size=120)
    groups = np.arange(120) % 2
    thin = FairPCA(2).fit(sparse.csr_array(X), sensitive_features=groups)
    filled = FairPCA(2).fit(X, sensitive_features=groups)
    assert np.allclose(thin.mean_, filled.mean_, rtol=1e-12)
    assert np.allclose(thin.group_errors_, filled.group_errors_, rtol=1e-6)
    assert np.allclose(thin.explained_variance_ratio_, filled.explained_variance_ratio_, rtol=1e-5)
