"""Second-order descent: the quadratic model, stationary ends, and the program for the multipliers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.solvers.cases import random_case, random_moments

from fairpca.joint_range import ErrorsView, JointRange, Minimax
from fairpca.problems.balanced import NashWelfare
from fairpca.solvers.range.subspace_sqp import _maximise_on_orthant, _Quadratic, maximise_on_simplex, refine_subspace
from fairpca.solvers.stiefel.geometry import horizontal, random_frame


def test_the_step_maximises_the_quadratic_model(rng):
    """``2 <B V, D> - <D, H D> / 2`` with H = 2 (D V^T B V - B D), at a V near the leading eigenvectors, where H > 0."""
    joint, weights = JointRange(random_moments(rng), 2), np.array([0.2, 0.3, 0.5])
    combined = joint.combine(weights)
    basis = np.linalg.qr(joint.point(weights).basis + 0.05 * rng.normal(size=(7, 2)))[0]
    model = _Quadratic(ErrorsView(Minimax(np.zeros(3)), joint.traces), joint, basis, weights)

    def gain(step):
        curved = 2.0 * (step @ (basis.T @ combined @ basis) - combined @ step)
        return 2.0 * np.vdot(combined @ basis, step) - 0.5 * np.vdot(step, curved)

    best = model.step(weights, model._stiffness(0.0))
    assert np.allclose(basis.T @ best, 0, atol=1e-12)
    assert np.isclose(gain(best), 0.5 * ((weights @ model.factor(0.0)) ** 2).sum())
    for _ in range(20):
        assert gain(best + 0.1 * horizontal(basis, rng.normal(size=(7, 2)))) < gain(best)


@pytest.mark.parametrize("smooth", [False, True])
def test_refinement_descends_to_a_stationary_point(rng, smooth):
    joint = JointRange(random_moments(rng), 2)
    problem = NashWelfare() if smooth else Minimax(np.array([joint.point(unit).support for unit in np.eye(3)]))
    start = random_frame(rng, 7, 2)
    value, basis, weights, _ = refine_subspace(ErrorsView(problem, joint.traces), joint, start, np.full(3, 1 / 3))
    assert value < problem.value(joint.captured(start))
    assert np.isclose(value, problem.value(joint.captured(basis)), atol=1e-13)
    stationarity = horizontal(basis, joint.combine(weights) @ basis)
    assert np.linalg.norm(stationarity) < 1e-5
    assert (weights >= -1e-12).all()


@pytest.mark.parametrize("seed", range(4))
def test_descents_end_quadratically_where_the_relaxation_needs_extra_rank(seed):
    """The Hessian is indefinite there; steps with its absolute value gained a constant share each (60 steps)."""
    matrices = random_moments(np.random.default_rng(seed), k=20, size=20)
    joint = JointRange(matrices, 3)
    problem = ErrorsView(Minimax(joint.traces), joint.traces)
    start = joint.point(np.full(20, 0.05)).basis
    end = refine_subspace(problem, joint, start, np.full(20, 0.05), max_iter=200)
    again = refine_subspace(problem, joint, end.basis, end.multipliers, max_iter=200)
    assert end.n_iter <= 40
    assert end.value - again.value <= 1e-13


@pytest.mark.parametrize("seed", range(4))
def test_pieces_descend_to_a_stationary_point(seed):
    matrices, problem = random_case(seed, 3, 6, 0.05)
    joint = JointRange(matrices, 2)
    start = random_frame(np.random.default_rng(seed), 6, 2)
    end = refine_subspace(problem, joint, start, np.eye(6)[0], max_iter=200)
    errors = joint.traces - joint.captured(end.basis)
    assert end.value < problem.value(joint.traces - joint.captured(start))
    assert np.isclose(end.value, problem.value(errors), rtol=1e-12)
    assert np.isclose(end.multipliers.sum(), 1)
    assert end.multipliers.min() >= 0
    inactive = problem.pieces(errors) < end.value - 1e-6
    assert np.abs(end.multipliers[inactive]).max(initial=0.0) < 1e-6
    weights = end.multipliers @ problem.gradients(problem.guarded(errors))
    assert np.linalg.norm(horizontal(end.basis, joint.combine(weights) @ end.basis)) < 1e-5


def test_orthant_program_is_stationary(rng):
    captured, factor = rng.uniform(0.1, 2, 4), rng.standard_normal((4, 3))
    weights = _maximise_on_orthant(captured, factor)
    assert weights.min() > 0
    assert np.allclose(1 / weights, captured + factor @ (weights @ factor), rtol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_simplex_program_meets_its_optimality_conditions(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 13))
    factor = rng.standard_normal((m, int(rng.integers(1, m + 1))))
    linear, quadratic = rng.standard_normal(m), factor @ factor.T
    weights = maximise_on_simplex(linear, factor)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    slopes = linear - quadratic @ weights
    assert slopes.max() - weights @ slopes <= 1e-8
    start = np.full(m, 1 / m)
    assert np.allclose(factor.T @ maximise_on_simplex(linear, factor, start=start), factor.T @ weights, atol=1e-6)
    other = minimize(
        lambda w: 0.5 * w @ quadratic @ w - linear @ w,
        start,
        bounds=[(0, 1)] * m,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        method="SLSQP",
    )
    assert linear @ weights - 0.5 * weights @ quadratic @ weights >= -other.fun - 1e-9
