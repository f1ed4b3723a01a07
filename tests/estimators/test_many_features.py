"""Many features: operators give what matrices give, with a bound that holds, and never a p x p matrix."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from tests.moments.cases import leading_directions

from fairpca import FairPCA, RobustFairPCA, _validation
from fairpca.estimators import _base


@pytest.fixture
def small_threshold(monkeypatch):
    monkeypatch.setattr(_base, "MANY_FEATURES", 100)
    monkeypatch.setattr(_base, "FEW_ROWS", 0)  # the space of few rows has tests of its own


def with_matrices(monkeypatch, *args, **kwargs):
    with monkeypatch.context() as context:
        context.setattr(_base, "MANY_FEATURES", 10**9)
        return FairPCA(*args).fit(**kwargs)


@pytest.mark.usefixtures("small_threshold")
@pytest.mark.parametrize("criterion", ["loss", "error", "variance", "nash", "mean"])
def test_the_same_as_with_matrices(rng, monkeypatch, criterion):
    X, groups = leading_directions(rng, 300, 400)
    pca = FairPCA(4, criterion=criterion).fit(X, sensitive_features=groups)
    with monkeypatch.context() as context:
        context.setattr(_base, "MANY_FEATURES", 10**9)
        exact = FairPCA(4, criterion=criterion).fit(X, sensitive_features=groups)
    total = exact.explained_variance_[0] / exact.explained_variance_ratio_[0]
    unit = total if criterion != "nash" else 1.0
    assert pca.converged_
    assert pca.lower_bound_ <= exact.objective_ + 1e-12 * unit
    assert exact.objective_ - 1e-9 * unit <= pca.objective_ <= exact.objective_ + 1e-5 * unit
    assert pca.duality_gap_ <= 1.01e-5 * unit
    assert np.allclose(pca.group_errors_, exact.group_errors_, atol=1e-3 * total)
    assert np.allclose(pca.mean_, exact.mean_)
    assert np.allclose(pca.explained_variance_, exact.explained_variance_, atol=1e-3 * total)
    assert np.allclose(pca.components_ @ pca.components_.T, np.eye(4))


@pytest.mark.usefixtures("small_threshold")
def test_three_groups(rng, monkeypatch):
    X, _ = leading_directions(rng, 300, 200)
    groups = rng.integers(0, 3, 300)
    X[groups == 2] = X[groups == 2][:, ::-1]
    pca = FairPCA(3).fit(X, sensitive_features=groups)
    exact = with_matrices(monkeypatch, 3, X=X, sensitive_features=groups)
    assert pca.lower_bound_ <= exact.objective_ + 1e-12
    assert np.isclose(pca.objective_, exact.objective_, rtol=1e-3)


@pytest.mark.usefixtures("small_threshold")
def test_fewer_rows_than_the_subspace_could_hold(rng, monkeypatch):
    X, groups = leading_directions(rng, 24, 300)
    pca = FairPCA(3).fit(X, sensitive_features=groups)
    exact = with_matrices(monkeypatch, 3, X=X, sensitive_features=groups)
    assert pca.lower_bound_ <= exact.objective_ + 1e-12
    assert np.isclose(pca.objective_, exact.objective_, rtol=1e-4)


@pytest.mark.parametrize("few_rows", [0, 2000])  # operators, and the space of the rows
def test_memory_stays_far_below_a_matrix_of_all_features(rng, monkeypatch, few_rows):
    monkeypatch.setattr(_base, "FEW_ROWS", few_rows)
    n, p = 60, 6000
    X = sparse.random(n, p, density=0.02, format="csr", random_state=0)
    groups = np.arange(n) % 2
    tracemalloc.start()
    pca = FairPCA(3).fit(X, sensitive_features=groups)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.2 * p * p * 8
    assert pca.transform(X).shape == (n, 3)
    with pytest.raises(ValueError, match="fit keeps no moments"):
        pca.partial_fit(X, sensitive_features=groups)


@pytest.mark.parametrize("few_rows", [0, 2000])
def test_invalid_input_raises_as_with_matrices(rng, monkeypatch, few_rows):
    monkeypatch.setattr(_base, "FEW_ROWS", few_rows)
    X = rng.normal(size=(20, 3100))
    groups = np.arange(20) % 2
    with pytest.raises(ValueError, match="required"):
        FairPCA(2).fit(X)
    with pytest.raises(ValueError, match="single group"):
        FairPCA(2).fit(X, sensitive_features=np.zeros(20))
    with pytest.raises(ValueError, match="n_components"):
        FairPCA(4000).fit(X, sensitive_features=groups)
    with pytest.warns(UserWarning, match="column 7"):
        FairPCA(2).fit(np.where(np.arange(3100) == 7, groups[:, None], X), sensitive_features=groups)
    X[3, 5] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        FairPCA(2).fit(X, sensitive_features=groups)


@pytest.mark.usefixtures("small_threshold")
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_flat_spectra_are_certified_too(rng, monkeypatch, kind):
    """Noise alone: eigenvalues follow each other closely, and no subspace of a few directions holds much."""
    if kind == "dense":
        X = rng.normal(size=(160, 130))
        X[:, 0] *= 5.0
    else:
        X = sparse.csr_array(np.where(rng.random((250, 200)) < 0.05, rng.random((250, 200)), 0.0))
    groups = np.arange(X.shape[0]) % 2
    found = FairPCA(2).fit(X, sensitive_features=groups)
    exact = with_matrices(monkeypatch, 2, X=X, sensitive_features=groups)
    total = exact.explained_variance_.sum() / exact.explained_variance_ratio_.sum()
    assert found.converged_
    assert found.lower_bound_ <= exact.objective_ + 1e-10 * total
    assert np.abs(found.group_losses_ - exact.group_losses_).max() <= 2e-5 * total
    assert found.objective_ - found.lower_bound_ <= 2e-5 * total


def test_matrices_that_fill_the_memory_are_announced(rng, monkeypatch):
    X, groups = rng.normal(size=(40, 10)), np.arange(40) % 2
    monkeypatch.setattr(_validation, "free_memory", lambda: 4.0 * 2 * 2 * 8 * 100)
    RobustFairPCA(2).fit(X, sensitive_features=groups)  # a quarter, exactly
    monkeypatch.setattr(_validation, "free_memory", lambda: 4.0 * 2 * 2 * 8 * 99)
    with pytest.warns(UserWarning, match=r"RobustFairPCA with 2 groups and 10 features .* of free memory"):
        RobustFairPCA(2).fit(X, sensitive_features=groups)
