"""The exact solver: certificates, brute force, ties, large problems."""

from __future__ import annotations

import numpy as np
import pytest
from tests.solvers.cases import gap, relaxed_capture, solve, wishart

from fairpca.joint_range import JointRange
from fairpca.problems.balanced import CRITERIA
from fairpca.solvers.range.dual import _solve_in_subspaces


def assert_certified(problem, result, matrices, dimension, tol=1e-10):
    """Recompute all values of the result from its basis and weights alone."""
    joint = JointRange(matrices, dimension)
    assert np.allclose(result.basis.T @ result.basis, np.eye(dimension), atol=1e-12)
    value = problem.value(joint.captured(result.basis))
    assert np.isclose(value, result.objective, atol=1e-12)
    support = np.linalg.eigvalsh(np.tensordot(result.weights, matrices, axes=1))[-dimension:].sum()
    assert np.isclose(problem.bound(result.weights, support), result.lower_bound, atol=1e-11)
    assert -1e-13 <= value - result.lower_bound <= tol


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("dimension", [1, 2, 5, 9, 10])
def test_two_groups_are_certified(rng, criterion, dimension):
    for _ in range(5):
        matrices = wishart(rng, 2, 10)
        problem, result = solve(matrices, dimension, criterion)
        assert_certified(problem, result, matrices, dimension)
        assert result.n_oracle_calls - 2 <= (25 if criterion == "nash" else 15)  # Nash welfare has no pieces
        if criterion == "loss":
            first, second = problem.offsets - JointRange(matrices, dimension).captured(result.basis)
            assert abs(first - second) < 1e-10  # Theorem 4.5


@pytest.mark.parametrize("criterion", CRITERIA)
def test_two_dimensions_by_brute_force(rng, criterion):
    angles = np.linspace(0, np.pi, 200_001)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    for _ in range(10):
        matrices = wishart(rng, 2, 2)
        problem, result = solve(matrices, 1, criterion)
        captured = np.einsum("pn,apq,qn->an", circle, matrices, circle)
        brute = min(problem.value(column) for column in captured.T[::20])
        assert result.objective <= brute + 1e-12
        assert result.objective >= brute - 1e-3
        assert gap(result) <= 1e-10


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("k", [3, 5])
def test_random_subspaces_are_never_better_than_the_bound(rng, criterion, k):
    matrices = wishart(rng, k, 6)
    problem, result = solve(matrices, 2, criterion)
    joint = JointRange(matrices, 2)
    assert gap(result) >= -1e-13
    for _ in range(500):
        value = problem.value(joint.captured(np.linalg.qr(rng.normal(size=(6, 2)))[0]))
        assert value >= result.lower_bound - 1e-12
        assert value >= result.objective - 1e-3  # and hardly better than the best found


@pytest.mark.parametrize("criterion", ["loss", "error", "variance"])
def test_three_groups_attain_the_relaxation_or_report_a_gap(rng, criterion):
    for _ in range(10):
        matrices = wishart(rng, 3, 9)
        problem, result = solve(matrices, 3, criterion)
        relaxed = problem.value(relaxed_capture(matrices, result.relaxed))
        rank = len(result.relaxed.eigenvalues)
        assert abs(relaxed - result.lower_bound) < 1e-6  # the relaxation's two sides agree
        assert np.isclose(result.relaxed.eigenvalues.sum(), 3)
        assert rank <= 4  # at most one more for three groups
        assert result.converged == (gap(result) <= 1e-11)
        if rank == 3:
            assert gap(result) < 1e-9


def tied_cases(rng):
    frame = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    same = np.diag([3.0, 2.0, 1.0, 0.5, 0.2, 0.1])
    yield "identical groups", np.stack([same, same]), 2
    first, second = [5.0, 4.0, 1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 2.0, 6.0, 3.0, 0.0]
    yield "commuting", np.stack([(frame * first) @ frame.T, (frame * second) @ frame.T]), 2
    yield "isotropic", np.stack([np.eye(6), 2 * np.eye(6)]), 3
    yield "isotropic and not", np.stack([np.eye(6), same]), 2
    yield "rank one each", np.stack([np.outer(frame[0], frame[0]), np.outer(frame[1], frame[1])]), 1
    yield "no variance in one", np.stack([same, np.zeros((6, 6))]), 2
    yield "plane", np.stack([np.diag([1.0, 0.0]), np.diag([0.0, 1.0])]), 1
    yield "plane, tilted", np.stack([np.diag([2.0, 1.0]), np.array([[1.0, 0.5], [0.5, 1.0]])]), 1


@pytest.mark.parametrize("criterion", ["loss", "error", "variance"])
def test_ties_are_handled(rng, criterion):
    for name, matrices, dimension in tied_cases(rng):
        problem, result = solve(matrices, dimension, criterion)
        scale = np.einsum("aii->a", matrices).max()
        assert gap(result) <= 1e-10 * scale, name
        assert_certified(problem, result, matrices, dimension, tol=1e-10 * scale)
        assert result.n_oracle_calls <= 17 + 2, name
        if criterion == "loss" and name != "no variance in one":
            first, second = problem.offsets - JointRange(matrices, dimension).captured(result.basis)
            assert abs(first - second) < 1e-9 * scale, name


def test_commuting_two_groups_known_answer():
    """Axes only: the best single direction lies between e_1 and e_2 and splits the loss evenly."""
    matrices = np.stack([np.diag([2.0, 0.0, 0.0]), np.diag([0.0, 1.0, 0.0])])
    problem, result = solve(matrices, 1)
    # captured (2 c, 1 - c) for c = cos^2; losses 2 - 2c and c are equal at c = 2/3
    assert np.isclose(result.objective, 2 / 3, atol=1e-12)
    assert np.isclose(problem.value(np.array([4 / 3, 1 / 3])), 2 / 3)


def test_three_axes_need_extra_rank():
    """One dimension for three orthogonal groups: the relaxation uses three and reaches 2/3; so does rank one."""
    matrices = np.stack([np.diag(row) for row in np.eye(3)])
    _, result = solve(matrices, 1)
    assert np.isclose(result.objective, 2 / 3, atol=1e-9)
    assert np.isclose(result.lower_bound, 2 / 3, atol=1e-9)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_subspace_method_equals_the_direct_one(rng, k):
    size, d = 60, 3
    decay = 0.7 ** np.arange(size)
    frames = [np.linalg.qr(rng.normal(size=(size, size)))[0] for _ in range(k)]
    matrices = np.stack([(frame * decay) @ frame.T for frame in frames])
    problem, direct = solve(matrices, d)
    joint = JointRange(matrices, d)
    reduced = _solve_in_subspaces(problem, joint, tol=1e-10, max_iter=100, rng=np.random.default_rng(0))
    assert np.isclose(reduced.lower_bound, direct.lower_bound, atol=1e-9)
    if direct.converged:
        assert np.isclose(reduced.objective, direct.objective, atol=1e-9)
        assert gap(reduced) <= 1e-9
        captured = JointRange(matrices, d).captured
        assert np.allclose(captured(reduced.basis), captured(direct.basis), atol=1e-6)
