"""The pieces of the exact solver, each against its definition."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca.joint_range import JointRange
from fairpca.problems import Minimax, NashWelfare
from fairpca.solvers.range.fantope import _fantope_derivatives, _fermi_level, _occupation, solve_fantope
from fairpca.solvers.range.rounding import reduce_rank
from fairpca.solvers.range.subspace_sqp import refine_subspace
from fairpca.solvers.stiefel import horizontal, random_frame, retract, tangent


def moments(rng, k=3, size=7):
    factors = rng.normal(size=(k, size, size))
    return factors @ factors.transpose(0, 2, 1) / size


@pytest.mark.parametrize("mu", [1.0, 1e-3, 1e-9])
def test_occupation_maximises(mu):
    energies = np.array([-5.0, -1e-6, 0.0, 1e-9, 0.3, 40.0])
    x = _occupation(energies, mu)
    rest = _occupation(-energies, mu)
    assert ((x > 0) & (rest > 0)).all()
    assert np.allclose(x + rest, 1.0)
    assert np.allclose(energies + mu / x - mu / rest, 0, atol=1e-6 * (np.abs(energies) + mu))


def test_fermi_level_fills_exactly(rng):
    values = np.sort(rng.normal(size=12))[::-1]
    for mu in (1.0, 1e-4, 1e-12):
        smooth, occupation = _fermi_level(values, 4, mu)
        assert np.isclose(occupation.sum(), 4, atol=1e-10)
        if mu < 1e-10:
            assert np.isclose(smooth, values[:4].sum(), atol=1e-8)


def test_smoothed_support_derivatives(rng):
    joint = JointRange(moments(rng), 3)
    weights, mu, step = rng.random(3), 0.05, 1e-5

    def support(w):
        spectrum = joint.spectrum(w)
        value, occupation = _fermi_level(spectrum.values, 3, mu)
        return value, *_fantope_derivatives(spectrum.rotated, occupation, mu)

    _, gradient, curvature = support(weights)
    for a in range(3):
        ahead, behind = support(weights + step * np.eye(3)[a]), support(weights - step * np.eye(3)[a])
        assert np.isclose((ahead[0] - behind[0]) / (2 * step), gradient[a], rtol=1e-6)
        assert np.allclose((ahead[1] - behind[1]) / (2 * step), curvature[a], rtol=1e-4, atol=1e-7)


def test_fantope_solution_is_feasible_and_optimal(rng):
    joint = JointRange(moments(rng, k=4), 2)
    best = np.array([joint.point(unit).support for unit in np.eye(4)])
    problem = Minimax(best)
    bounds = []
    for tol in (1e-7, 1e-11):
        solution = solve_fantope(problem, joint, tol=tol)
        assert np.isclose(solution.weights.sum(), 1)
        assert np.isclose(solution.eigenvalues.sum(), 2, atol=1e-9)
        bounds.append(problem.bound(solution.weights, joint.point(solution.weights).support))
    assert abs(bounds[1] - bounds[0]) < 1e-7
    captured = np.einsum("pi,apq,qi,i->a", solution.vectors, joint.matrices, solution.vectors, solution.eigenvalues)
    assert 0 <= problem.value(captured) - bounds[1] < 1e-5
    attained = refine_subspace(problem, joint, solution.vectors[:, :2], solution.weights)[0]
    assert -1e-12 <= attained - bounds[1] < 1e-10  # this case has an optimum of rank 2


def test_rank_reduction_keeps_what_it_must(rng):
    matrices = moments(rng, k=2, size=8)
    vectors = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    eigenvalues = np.array([1.0, 0.9, 0.7, 0.5, 0.4, 0.3, 0.2, 0.0])
    reduced = reduce_rank(matrices, vectors, eigenvalues)
    before = np.einsum("pi,apq,qi,i->a", vectors, matrices, vectors, eigenvalues)
    after = np.einsum("pi,apq,qi,i->a", reduced.basis, matrices, reduced.basis, reduced.eigenvalues)
    assert np.allclose(after, before, atol=1e-10)
    assert np.isclose(reduced.eigenvalues.sum(), 4.0)
    assert (reduced.eigenvalues <= 1 + 1e-12).all()
    assert (reduced.eigenvalues >= 0).all()
    fractional = ((reduced.eigenvalues > 1e-6) & (reduced.eigenvalues < 1 - 1e-6)).sum()
    assert fractional * (fractional + 1) // 2 <= 3
    assert np.allclose(reduced.basis.T @ reduced.basis, np.eye(reduced.rank), atol=1e-10)


@pytest.mark.parametrize("smooth", [False, True])
def test_refinement_descends_to_a_stationary_point(rng, smooth):
    joint = JointRange(moments(rng), 2)
    problem = NashWelfare() if smooth else Minimax(np.array([joint.point(unit).support for unit in np.eye(3)]))
    start = random_frame(rng, 7, 2)
    value, basis, weights = refine_subspace(problem, joint, start, np.full(3, 1 / 3))
    assert value < problem.value(joint.captured(start))
    assert np.isclose(value, problem.value(joint.captured(basis)), atol=1e-13)
    stationarity = horizontal(basis, joint.combine(weights) @ basis)
    assert np.linalg.norm(stationarity) < 1e-5
    assert (weights >= -1e-12).all()


@pytest.mark.parametrize("kind", ["qr", "polar"])
def test_stiefel_properties(rng, kind):
    basis = random_frame(rng, 9, 4)
    ambient = rng.normal(size=(9, 4))
    for project in (tangent, horizontal):
        once = project(basis, ambient)
        assert np.allclose(project(basis, once), once)  # idempotent
        assert np.isclose(np.vdot(once, ambient - once), 0, atol=1e-12)  # orthogonal
    step = tangent(basis, ambient)
    assert np.allclose(basis.T @ step + step.T @ basis, 0, atol=1e-12)
    assert np.allclose(retract(basis, np.zeros_like(step), kind), basis)
    for size in (1e-2, 1e-3):
        moved = retract(basis, size * step, kind)
        assert np.allclose(moved.T @ moved, np.eye(4), atol=1e-12)
        assert np.linalg.norm(moved - basis - size * step) < 10 * size**2 * np.linalg.norm(step) ** 2
