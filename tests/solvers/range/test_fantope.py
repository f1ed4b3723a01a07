"""The smoothed support function and the interior-point search, each against its definition."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from tests.solvers.cases import random_moments

from fairpca.joint_range import ErrorsView, JointRange, Minimax
from fairpca.solvers.range.fantope import _fermi_level, _occupation, _SmoothSupport, solve_fantope
from fairpca.solvers.range.subspace_sqp import refine_subspace


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
    joint = JointRange(random_moments(rng), 3)
    weights, mu, step = rng.random(3), 0.05, 1e-5

    support = functools.partial(_SmoothSupport(joint), mu=mu)
    here = support(weights)
    for a in range(3):
        ahead, behind = support(weights + step * np.eye(3)[a]), support(weights - step * np.eye(3)[a])
        assert np.isclose((ahead.value - behind.value) / (2 * step), here.gradient[a], rtol=1e-6)
        change = (ahead.gradient - behind.gradient) / (2 * step)
        assert np.allclose(change, here.factor @ here.factor[a], rtol=1e-4, atol=1e-7)


def test_fantope_solution_is_feasible_and_optimal(rng):
    joint = JointRange(random_moments(rng, k=4), 2)
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
    attained = refine_subspace(
        ErrorsView(problem, joint.traces), joint, solution.vectors[:, :2], solution.weights
    ).value
    assert -1e-12 <= attained - bounds[1] < 1e-10  # this case has an optimum of rank 2


def test_drift_is_the_derivative_of_the_gradient_along_mu(rng):
    support, weights, mu = _SmoothSupport(JointRange(random_moments(rng), 3)), rng.random(3), 0.05
    ahead, behind = support(weights, mu + 1e-6), support(weights, mu - 1e-6)
    support(weights, mu)
    assert np.allclose((ahead.gradient - behind.gradient) / 2e-6, support.drift(mu), rtol=1e-5)


def test_curvature_may_leave_out_pairs_of_empty_eigenvectors(rng):
    """For a small mu, most eigenvectors are empty; the curvature without their pairs still is the derivative."""
    joint = JointRange(random_moments(rng, k=4, size=12), 3)
    support, weights, mu, step = _SmoothSupport(joint), rng.random(4), 1e-4, 1e-5
    here = support(weights, mu)
    assert (support.occupation < 1e-3).sum() >= 6
    for a, unit in enumerate(np.eye(4)):
        ahead, behind = support(weights + step * unit, mu), support(weights - step * unit, mu)
        change = (ahead.gradient - behind.gradient) / (2 * step)
        assert np.allclose(change, here.factor @ here.factor[a], rtol=0.02, atol=1e-3)
