"""Many features: operators give what matrices give, with a bound that holds, and never a p x p matrix."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from fairpca import FairPCA
from fairpca._validation import check_groups
from fairpca.estimators import _base
from fairpca.moments import GroupFactors, group_moments


def leading_directions(rng, n, p, rank=40):
    """Two groups with a spectrum of 1 / i that share half of their leading directions, and noise."""
    directions = np.linalg.qr(rng.standard_normal((p, rank + rank // 2)))[0]
    own = np.arange(rank)
    own[1::2] = rank + np.arange(rank // 2)
    groups = np.arange(n) % 2
    X = rng.standard_normal((n, p)) * np.sqrt(0.1 / p)
    for a, chosen in enumerate((np.arange(rank), own)):
        rows = groups == a
        X[rows] += (rng.standard_normal((rows.sum(), rank)) / np.sqrt(np.arange(1, rank + 1))) @ directions[:, chosen].T
    return X, groups


@pytest.fixture
def small_threshold(monkeypatch):
    monkeypatch.setattr(_base, "MANY_FEATURES", 100)
    monkeypatch.setattr(_base, "FEW_ROWS", 0)  # the space of few rows has tests of its own


def with_matrices(monkeypatch, *args, **kwargs):
    with monkeypatch.context() as context:
        context.setattr(_base, "MANY_FEATURES", 10**9)
        return FairPCA(*args).fit(**kwargs)


@pytest.mark.parametrize("center", ["pooled", "group"])
@pytest.mark.parametrize("kind", ["dense", "sparse", "weighted", "sorted"])
def test_products_are_those_of_the_moments(rng, center, kind):
    X = rng.normal(size=(60, 9)) + 3
    groups = np.sort(rng.integers(0, 3, 60)) if kind == "sorted" else rng.integers(0, 3, 60)
    weight = rng.integers(0, 3, 60).astype(float) if kind == "weighted" else None
    X = sparse.csr_array(X * (rng.random(X.shape) < 0.3)) if kind == "sparse" else X
    factors = GroupFactors(X, check_groups(groups, 60), weight, center=center)
    moments = group_moments(X, groups, sample_weight=weight)
    vectors = rng.normal(size=(9, 4))
    matrices = moments.second_moments(center)
    assert np.allclose(factors.images(vectors), matrices @ vectors)
    assert np.allclose(factors.traces(), np.einsum("aii->a", matrices))
    assert np.allclose(factors.pooled_form(vectors), vectors.T @ moments.pooled_covariance() @ vectors)
    assert np.isclose(factors.pooled_variance(), np.trace(moments.pooled_covariance()))


@pytest.mark.usefixtures("small_threshold")
@pytest.mark.parametrize("criterion", ["loss", "error", "variance", "nash"])
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


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_holds_when_the_subspace_misses_the_answer(seed):
    """Stopped after one step, far from the answer: the bound must still be one (or none)."""
    from fairpca.problems import balanced_problem
    from fairpca.solvers import minimise_on_operators

    rng = np.random.default_rng(seed)
    X, groups = leading_directions(rng, 200, 120)
    factors = GroupFactors(X, check_groups(groups, 200))
    exact = FairPCA(4).fit(X, sensitive_features=groups)
    for steps in (1, 2, 3):
        solution = minimise_on_operators(
            lambda best: balanced_problem("loss", factors.traces()[:, None, None], best),
            factors,
            4,
            scale=1.0,
            tol=1e-12,
            max_iter=steps,
            rng=np.random.default_rng(seed),
        )
        assert solution.result.lower_bound <= exact.lower_bound_ + 1e-10
    assert np.isfinite(solution.result.lower_bound)


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
    with pytest.raises(ValueError, match="kept no moments"):
        pca.partial_fit(X, sensitive_features=groups)


@pytest.mark.parametrize("few_rows", [0, 2000])
def test_bad_input_is_refused_as_with_matrices(rng, monkeypatch, few_rows):
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


class _Matrices:
    """Operators with the matrices at hand."""

    def __init__(self, matrices):
        self.matrices = matrices
        self.n_matrices, self.size = matrices.shape[:2]

    def images(self, vectors):
        return self.matrices @ vectors


@pytest.mark.parametrize("seed", range(20))
def test_what_the_subspace_leaves_out_is_bounded_from_above(seed):
    """A subspace that misses the leading direction altogether: the proof has to notice, or to give no bound."""
    from fairpca.solvers.range.operator_dual import _Part, _Span

    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.standard_normal((2, 60, 60)))[0]
    matrices = vectors * (1.0 / np.arange(1, 61)) @ vectors.transpose(0, 2, 1)
    weights = np.array([0.7, 0.3])
    span = _Span(_Matrices(matrices), 1.0, 12, rng)
    leading = np.linalg.eigh(np.tensordot(weights, matrices, axes=1))[1][:, -1:]
    span.basis = np.linalg.qr(span.basis - leading @ (leading.T @ span.basis))[0]
    span._images = matrices @ span.basis
    span.forms = span.basis.T @ span._images
    rest = np.eye(60) - span.basis @ span.basis.T
    outside = np.linalg.eigvalsh(rest @ np.tensordot(weights, matrices, axes=1) @ rest)[-1]
    part = _Part(span.basis, np.tensordot(weights, span._images, axes=1))
    for last in (1e9, 0.0, 1.01 * outside):  # one step of the power iteration, all of them, polynomials after them
        assert span._bound_outside(part, weights, last, rng) >= outside
    best = np.linalg.eigvalsh(np.tensordot(weights, matrices, axes=1))[-3:].sum()
    for tol in (np.inf, 0.0):  # the whole subspace only, or its leading directions too
        assert span.proven_support(weights, 3, tol, rng) >= best


def test_polynomials_bound_closely_where_powers_do_not():
    from fairpca.solvers.range.operator_dual import _Part, _Span

    rng = np.random.default_rng(0)
    values = np.concatenate([[2.0, 1.9], np.linspace(1.0, 0.0, 298)])  # flat, from half of the second value on
    span = _Span(_Matrices(np.diag(values)[None]), 1.0, 2, rng)
    part = _Part(np.eye(300)[:, :2], np.diag(values)[:, :2])
    bound = span._bound_outside(part, np.ones(1), 1.1, rng)
    assert 1.0 <= bound < 1.06


@pytest.mark.parametrize("value", [1.05, 1.5, 4.0])
def test_polynomials_find_an_eigenvalue_of_which_the_probe_has_just_enough(value):
    from fairpca.solvers.range.operator_dual import _LEAST_PRODUCT, _chebyshev_bound

    probe = np.array([[_LEAST_PRODUCT]])
    assert np.isclose(_chebyshev_bound(lambda vectors: value * vectors, probe, 1.0, value), value, rtol=1e-6)


def test_unsettled_directions_do_not_spoil_the_proof_for_settled_ones():
    from fairpca.solvers.range.operator_dual import _Span

    rng = np.random.default_rng(0)
    values = np.concatenate([[3.0, 2.9, 2.89, 2.88, 2.87], np.linspace(2.7, 0.0, 195)])
    span = _Span(_Matrices(np.diag(values)[None]), 1.0, 10, rng)
    unsettled = np.vstack([np.zeros((5, 5)), np.linalg.qr(rng.standard_normal((195, 5)))[0]])
    span.basis = np.hstack([np.eye(200)[:, :5], unsettled])
    span._images = span._apply(span.basis)
    assert span.proven_support(np.ones(1), 2, np.inf, rng) > 6.5  # of the whole subspace alone
    assert np.isclose(span.proven_support(np.ones(1), 2, 0.0, rng), 5.9, rtol=1e-12)


@pytest.mark.usefixtures("small_threshold")
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_flat_spectra_are_certified_too(rng, monkeypatch, kind):
    """Noise alone: eigenvalues follow each other closely, and no subspace of a few directions holds much."""
    if kind == "dense":
        X = rng.normal(size=(160, 130))
        X[:, 0] *= 5.0
    else:
        X = sparse.random_array((250, 200), density=0.05, rng=rng, format="csr")
    groups = np.arange(X.shape[0]) % 2
    found = FairPCA(2).fit(X, sensitive_features=groups)
    exact = with_matrices(monkeypatch, 2, X=X, sensitive_features=groups)
    total = exact.explained_variance_.sum() / exact.explained_variance_ratio_.sum()
    assert found.converged_
    assert found.lower_bound_ <= exact.objective_ + 1e-10 * total
    assert np.abs(found.group_losses_ - exact.group_losses_).max() <= 2e-5 * total
    assert found.objective_ - found.lower_bound_ <= 2e-5 * total
