"""The certified sweep: against brute force, at ties, at zero error, and for large matrices."""

import numpy as np
import pytest

from fairpca.joint_range import JointRange
from fairpca.problems.robust import RobustGap
from fairpca.protocols import Status
from fairpca.solvers.range.sweep import sweep_range, trace_boundary


def random_case(seed, kind):
    """Two moment matrices of total size one, and a problem with any penalty and radii."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 9))
    d = int(rng.integers(1, p))
    factors = rng.standard_normal((2, p, int(rng.integers(1, p + 3))))
    factors *= np.exp(rng.uniform(0, 1.5) * rng.standard_normal((2, p, 1)))
    matrices = factors @ factors.transpose(0, 2, 1)
    if kind == "diagonal":
        matrices = matrices * np.eye(p)
    elif kind == "tied":
        matrices = np.rint(matrices * np.eye(p))
        matrices[0, 0, 0] += 1
    shares = rng.dirichlet([2, 2])
    matrices /= shares @ np.einsum("aii->a", matrices)
    radii = rng.choice([0, 1e-4, 0.01, 0.1, 1], 2) * rng.uniform(0, 1, 2)
    penalty = rng.choice([0, 0.1, 0.5, 1, 2.5, 10, 100])
    totals = np.einsum("aii->a", matrices)
    return JointRange(matrices, d), RobustGap(shares, radii, penalty, totals), rng


def errors_of(joint, basis):
    return np.maximum(np.einsum("aii->a", joint.matrices) - joint.captured(basis), 0)


def brute_force(joint, problem, rng):
    values = []
    for angle in np.linspace(0, 2 * np.pi, 91):
        values.append(problem.value(errors_of(joint, joint.point(np.array([np.cos(angle), np.sin(angle)])).basis)))
    for _ in range(30):
        basis = np.linalg.qr(rng.standard_normal((joint.size, joint.dimension)))[0]
        values.append(problem.value(errors_of(joint, basis)))
    return min(values)


@pytest.mark.parametrize("kind", ["general", "diagonal", "tied"])
@pytest.mark.parametrize("seed", range(15))
def test_global_optimum_with_a_certificate(seed, kind):
    joint, problem, rng = random_case(seed, kind)
    result = sweep_range(problem, joint, tol=1e-9, max_iter=500)
    assert result.status is Status.OPTIMAL
    assert 0 <= (result.objective - result.lower_bound) <= max(1e-9 * result.objective, 1e-14)
    np.testing.assert_allclose(result.basis.T @ result.basis, np.eye(joint.dimension), atol=1e-12)
    assert problem.value(errors_of(joint, result.basis)) == pytest.approx(result.objective, rel=1e-11)
    # No other subspace is better, and the bound is valid.
    assert brute_force(joint, problem, rng) >= result.lower_bound - 1e-13


@pytest.mark.parametrize("seed", range(12))
def test_looser_bounds_hold_too(seed):
    """Stopped early, the bound must still lie below the optimum."""
    joint, problem, _ = random_case(seed, "general")
    best = sweep_range(problem, joint, tol=1e-10, max_iter=500).objective
    for calls in (4, 6, 9):
        fresh = JointRange(joint.matrices, joint.dimension)
        early = sweep_range(problem, fresh, tol=1e-10, max_iter=calls)
        assert early.lower_bound <= best + 1e-13
        assert early.objective >= best - 1e-9 * best


def test_weights_give_the_subspace_as_a_weighted_pca():
    joint, problem, _ = random_case(3, "general")
    result = sweep_range(problem, joint, tol=1e-9, max_iter=500)
    point = joint.point(result.weights)
    assert result.weights @ joint.captured(result.basis) == pytest.approx(point.support, rel=1e-6)
    assert np.abs(result.weights).sum() == pytest.approx(1)


def test_flat_boundary_is_followed_to_the_ridge():
    """The optimum lies strictly inside a segment where eigenvalues tie: errors must be equal to balance."""
    matrices = np.stack([np.diag([2.0, 0.0, 1.0]), np.diag([0.0, 2.0, 1.0])]) / 3
    joint = JointRange(matrices, 1)
    problem = RobustGap(np.array([0.5, 0.5]), np.zeros(2), 5.0)
    result = sweep_range(problem, joint, tol=1e-12, max_iter=100)
    errors = errors_of(joint, result.basis)
    assert errors[0] == pytest.approx(errors[1], abs=1e-13)
    assert result.objective == pytest.approx(2 / 3, abs=1e-13)
    assert result.status is Status.OPTIMAL


def test_stopping_at_max_iter_is_reported():
    joint, problem, _ = random_case(1, "general")
    result = sweep_range(problem, joint, tol=1e-9, max_iter=5)
    assert result.status is Status.MAX_ITER
    assert (result.objective - result.lower_bound) > 1e-9 * result.objective


def test_group_of_deficient_rank():
    """One group fits into the subspace: its error is zero, where the square root has no finite slope."""
    rng = np.random.default_rng(0)
    thin, full = rng.standard_normal((6, 2)), rng.standard_normal((6, 9))
    matrices = np.stack([thin @ thin.T, full @ full.T])
    matrices /= np.trace(matrices.sum(axis=0))
    joint = JointRange(matrices, 3)
    problem = RobustGap(np.array([0.9, 0.1]), np.array([0.05, 0.01]), 0.05, np.einsum("aii->a", matrices))
    result = sweep_range(problem, joint, tol=1e-9, max_iter=300)
    assert result.status is Status.OPTIMAL
    assert brute_force(joint, problem, rng) >= result.lower_bound - 1e-13


def test_large_matrices_use_the_iterative_oracle():
    rng = np.random.default_rng(1)
    size = 600
    decay = np.exp(-np.arange(size) / 20)
    bases = [np.linalg.qr(rng.standard_normal((size, 60)))[0] for _ in range(2)]
    matrices = np.stack([(basis * decay[:60]) @ basis.T for basis in bases])
    matrices /= np.trace(matrices.mean(axis=0))
    joint = JointRange(matrices, 4)
    problem = RobustGap(np.array([0.7, 0.3]), np.array([0.01, 0.02]), 1.0, np.einsum("aii->a", matrices))
    result = sweep_range(problem, joint, tol=1e-6, max_iter=100)
    assert result.status is Status.OPTIMAL
    # The same problem in the 120 dimensions that matter, by the direct solver.
    span = np.linalg.qr(np.hstack(bases))[0]
    small = sweep_range(problem, joint.within(span.T @ joint.matrices @ span), tol=1e-6, max_iter=100)
    assert result.objective == pytest.approx(small.objective, rel=2e-6)


def test_traced_boundary_is_convex_and_supported():
    joint, _, rng = random_case(4, "general")
    points = trace_boundary(joint, np.array([1.0, 0.0]), np.array([0.0, 1.0]), 25)
    errors = np.array([point.errors for point in points])
    assert (np.diff(errors[:, 0]) >= -1e-12).all()
    assert (np.diff(errors[:, 1]) <= 1e-12).all()
    for _ in range(200):
        basis = np.linalg.qr(rng.standard_normal((joint.size, joint.dimension)))[0]
        other = errors_of(joint, basis)
        assert all(point.weights @ other >= point.weights @ point.errors - 1e-12 for point in points)
