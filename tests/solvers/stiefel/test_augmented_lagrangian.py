"""Smoothing on problems whose solutions are known."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca.solvers.stiefel.augmented_lagrangian import AugmentedTerm, minimise_smoothed, restore_limits


class LargestForm:
    """max_j v^T A_j v on the unit sphere (d = 1), within (f . v)^2 <= delta^2 if f is given."""

    def __init__(self, matrices, direction=None, delta=1.0):
        self.matrices, self.delta = matrices, delta
        self.directions = np.zeros((0, matrices.shape[1])) if direction is None else direction[None]

    def _forms(self, basis):
        return np.einsum("pi,jpq,qi->j", basis, self.matrices, basis)

    def value(self, basis):
        return float(self._forms(basis).max())

    def smoothed(self, basis, temperature):
        forms = self._forms(basis)
        weights = np.exp((forms - forms.max()) / temperature)
        total = weights.sum()
        gradient = 2 * np.tensordot(weights / total, self.matrices, axes=1) @ basis
        return float(forms.max() + temperature * np.log(total)), gradient

    def smoothing_error(self, basis):
        return float(np.log(len(self.matrices)))

    def spread(self, basis):
        return float(np.ptp(self._forms(basis)))

    def limits(self, basis):
        return ((self.directions @ basis) ** 2).sum(axis=1) - self.delta**2

    def limits_gradient(self, basis, weights):
        return 2 * self.directions.T @ (weights[:, None] * (self.directions @ basis))


#: The forms cross where the minimum lies: x^2 and 1 - x^2 + small terms.
FORMS = np.array([np.diag([1.0, 0.0, 0.3]), np.diag([0.0, 1.0, 0.9])])


def sphere(count):
    points = np.random.default_rng(0).normal(size=(count, 3, 1))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def test_term_has_these_slopes_and_is_least_where_limits_are_kept():
    term = AugmentedTerm(np.array([0.0, 0.5, 2.0]), stiffness=3.0, target=0.1)
    limits = np.array([0.3, -0.2, 0.1])
    value, slopes = term(limits)
    for j, step in enumerate(1e-6 * np.eye(3)):
        assert (term(limits + step)[0] - term(limits - step)[0]) / 2e-6 == pytest.approx(slopes[j], abs=1e-8)
    assert slopes[2] == 2.0  # at its target a limit has its multiplier
    assert slopes[1] == 0.0  # far below it, none
    assert value == pytest.approx((0.6**2 - 0.5**2) / 6)


def test_minimum_at_a_kink():
    problem = LargestForm(FORMS)
    result = minimise_smoothed(problem, sphere(3), tol=1e-7, max_iter=500)
    # x^2 + 0.3 z^2 = y^2 + 0.9 z^2 and x^2 + y^2 + z^2 = 1: the value is least at z = 0.
    assert result.value == pytest.approx(0.5, abs=2e-7)
    assert result.converged
    assert problem.value(result.basis) == result.value
    assert min(problem.value(point) for point in sphere(20_000)) >= result.value - 1e-9


@pytest.mark.parametrize("delta", [0.01, 0.2, 0.6])
def test_minimum_within_a_limit(delta):
    problem = LargestForm(FORMS, np.array([1.0, 0.0, 0.0]), delta)
    result = minimise_smoothed(problem, sphere(3), tol=1e-7, max_iter=500)
    assert result.feasible
    assert result.converged
    assert abs(result.basis[0, 0]) <= delta * (1 + 1e-9)
    # At |x| = delta the second form decides: minimise y^2 + 0.9 z^2, so y = 0.
    assert result.value == pytest.approx(0.9 * (1 - delta**2), abs=1e-6)
    assert result.multipliers[0] > 0


def test_a_limit_that_does_not_bind_changes_nothing():
    free = minimise_smoothed(LargestForm(FORMS), sphere(3), tol=1e-7, max_iter=500)
    limited = LargestForm(FORMS, np.array([1.0, 0.0, 0.0]), 0.9)
    result = minimise_smoothed(limited, sphere(3), tol=1e-7, max_iter=500)
    assert result.value == pytest.approx(free.value, abs=2e-7)
    assert np.allclose(result.multipliers, 0.0)


def test_a_start_that_is_optimal_is_kept():
    problem = LargestForm(FORMS)
    optimal = np.array([[1.0], [1.0], [0.0]]) / np.sqrt(2)
    result = minimise_smoothed(problem, [optimal], tol=1e-3, max_iter=500)
    assert result.value <= problem.value(optimal)


def test_restoration_meets_the_limit_nearby():
    problem = LargestForm(FORMS, np.array([1.0, 0.0, 0.0]), 0.3)
    start = np.array([[0.32], [0.5], [0.0]])
    start /= np.linalg.norm(start)
    basis, feasible = restore_limits(problem, start)
    assert feasible
    assert problem.limits(basis)[0] <= 0
    assert np.linalg.norm(basis - start) < 2 * abs(start[0, 0] - 0.3) / np.sqrt(1 - 0.32**2)
    inside, _ = restore_limits(problem, basis)
    assert inside is basis
