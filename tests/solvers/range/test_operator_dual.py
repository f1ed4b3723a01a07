"""The search without matrices: its bounds hold whatever the subspace misses, and the gap closes where possible."""

from __future__ import annotations

import numpy as np
import pytest
from tests.moments.cases import leading_directions
from tests.solvers.cases import solve

from fairpca import FairPCA
from fairpca._validation import check_groups
from fairpca.joint_range import JointRange
from fairpca.moments._factors import GroupFactors
from fairpca.problems.balanced import balanced_problem
from fairpca.solvers.range import krylov
from fairpca.solvers.range.krylov import _LEAST_PRODUCT, Krylov, Part, bound_outside, chebyshev_bound
from fairpca.solvers.range.operator_dual import minimise_on_operators


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_holds_when_the_subspace_misses_the_answer(seed):
    """Stopped after one step, far from the answer: the bound must still be valid (or infinite)."""
    rng = np.random.default_rng(seed)
    X, groups = leading_directions(rng, 200, 120)
    factors = GroupFactors(X, check_groups(groups, 200))
    exact = FairPCA(4).fit(X, sensitive_features=groups)
    for steps in (1, 2, 3):
        solution = minimise_on_operators(
            lambda best: balanced_problem("loss", factors.traces(), best),
            factors.second_moments(),
            4,
            scale=1.0,
            tol=1e-12,
            max_iter=steps,
            rng=np.random.default_rng(seed),
        )
        assert solution.result.lower_bound <= exact.lower_bound_ + 1e-10
    assert np.isfinite(solution.result.lower_bound)


class _Matrices:
    """Operators defined by explicit matrices."""

    def __init__(self, matrices):
        self.matrices = matrices
        self.n_matrices, self.size = matrices.shape[:2]

    def images(self, vectors):
        return self.matrices @ vectors

    def combined(self, weights, vectors):
        return np.tensordot(weights, self.matrices, axes=1) @ vectors


def krylov_with(basis, matrix, dimension, rng):
    """The search in a given subspace."""
    krylov = Krylov(lambda vectors: matrix @ vectors, len(matrix), dimension, rng)
    krylov.grow(basis)
    return krylov


@pytest.mark.parametrize("seed", range(20))
def test_what_the_subspace_leaves_out_is_bounded_from_above(seed):
    """A subspace that misses the leading direction entirely: the proof must detect this, or give no bound."""
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.standard_normal((2, 60, 60)))[0]
    matrices = vectors * (1.0 / np.arange(1, 61)) @ vectors.transpose(0, 2, 1)
    matrix = 0.7 * matrices[0] + 0.3 * matrices[1]
    leading = np.linalg.eigh(matrix)[1][:, -1:]
    basis = rng.standard_normal((60, 12))
    krylov = krylov_with(np.linalg.qr(basis - leading @ (leading.T @ basis))[0], matrix, 3, rng)
    rest = np.eye(60) - krylov.basis @ krylov.basis.T
    outside = np.linalg.eigvalsh(rest @ matrix @ rest)[-1]
    for last in (1e9, 0.0, 1.01 * outside):  # one step of the power iteration, all of them, polynomials after them
        assert bound_outside(lambda vectors: matrix @ vectors, krylov.part, last, rng) >= outside
    best = np.linalg.eigvalsh(matrix)[-3:].sum()
    for tol in (np.inf, 0.0):  # the whole subspace only, or its leading directions too
        assert krylov.proven_support(tol) >= best


def test_polynomials_bound_closely_where_powers_do_not():
    rng = np.random.default_rng(0)
    values = np.concatenate([[2.0, 1.9], np.linspace(1.0, 0.0, 298)])  # flat, from half of the second value on
    part = Part(np.eye(300)[:, :2], np.diag(values)[:, :2])
    bound = bound_outside(lambda vectors: values[:, None] * vectors, part, 1.1, rng)
    assert 1.0 <= bound < 1.06


@pytest.mark.parametrize("value", [1.05, 1.5, 4.0])
def test_polynomials_find_an_eigenvalue_that_the_probe_barely_contains(value):
    probe = np.array([[_LEAST_PRODUCT]])
    assert np.isclose(chebyshev_bound(lambda vectors: value * vectors, probe, 1.0, value), value, rtol=1e-6)


def test_inaccurate_directions_do_not_prevent_the_proof_for_accurate_ones():
    rng = np.random.default_rng(0)
    values = np.concatenate([[3.0, 2.9, 2.89, 2.88, 2.87], np.linspace(2.7, 0.0, 195)])
    unsettled = np.vstack([np.zeros((5, 5)), np.linalg.qr(rng.standard_normal((195, 5)))[0]])
    krylov = krylov_with(np.hstack([np.eye(200)[:, :5], unsettled]), np.diag(values), 2, rng)
    assert krylov.proven_support(np.inf) > 6.5  # of the whole subspace alone
    assert np.isclose(krylov.proven_support(0.0), 5.9, rtol=1e-12)


@pytest.mark.parametrize("k", [2, 3])
def test_the_result_equals_that_of_the_search_with_matrices(rng, k):
    frames = np.linalg.qr(rng.standard_normal((k, 60, 60)))[0]
    matrices = frames * 0.7 ** np.arange(60) @ frames.transpose(0, 2, 1)
    _, exact = solve(matrices, 3)
    solution = minimise_on_operators(
        lambda best: balanced_problem("loss", np.ones(k), best),
        _Matrices(matrices),
        3,
        scale=1.0,
        tol=1e-6,
        max_iter=100,
        rng=np.random.default_rng(0),
    )
    found, joint = solution.result, JointRange(matrices, 3)
    assert found.lower_bound <= exact.objective + 1e-12
    assert abs(found.objective - exact.objective) < 1e-5
    assert np.allclose(solution.captured, joint.captured(found.basis), atol=1e-10)
    root = found.relaxed.basis * np.sqrt(found.relaxed.eigenvalues)
    assert np.allclose(solution.relaxed_captured, joint.captured(root), atol=1e-10)
    best = joint.best
    assert (solution.best >= best - 1e-12).all()  # upper bounds
    assert np.allclose(solution.best, best, atol=1e-5)


def test_a_flat_spectrum_ends_without_a_proof_in_little_memory(monkeypatch):
    """The subspace begins anew before it is as wide as the attempts at a proof ask for."""
    monkeypatch.setattr(krylov, "_MOST_NUMBERS", 0)
    values = np.linspace(1.0, 0.9, 400)
    found = Krylov(lambda vectors: values[:, None] * vectors, 400, 5, np.random.default_rng(0))
    found.begin()
    assert found.prove(0.0, 3) >= values[:5].sum()
    assert found.basis.shape[1] <= 4 * found.count
