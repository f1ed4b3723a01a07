"""The search within limits, and the paper's penalty method, where the constrained optimum is known in closed form."""

from dataclasses import dataclass

import numpy as np
import pytest

from fairpca.linalg import top_eigenpairs
from fairpca.solvers.reference.repms import repms
from fairpca.solvers.stiefel.within_limits import LimitedSearch


@dataclass
class Point:
    loss: float
    loss_gradient: np.ndarray
    constraints: np.ndarray
    _gradient: np.ndarray

    def constraint_gradient(self, weights):
        return weights[0] * self._gradient


def search(problem, tolerance, report=lambda stage, solution: False):
    return LimitedSearch(problem, tolerance, np.random.default_rng(0), report)


class TwoForms:
    """max <A, P> subject to <B, P> <= tolerance, B >= 0: top eigenvectors of A - rho B for the right rho."""

    invariant = True
    noise = 0.0

    def __init__(self, size, seed):
        rng = np.random.default_rng(seed)
        first, second = rng.normal(size=(2, size, size))
        self.A = first @ first.T / np.trace(first @ first.T)
        self.B = second[:, :3] @ second[:, :3].T
        self.n_evaluations = 0

    def evaluate(self, V):
        self.n_evaluations += 1
        return Point(-np.vdot(V, self.A @ V), -2 * self.A @ V, np.array([np.vdot(V, self.B @ V)]), 2 * self.B @ V)

    def curvature(self, V):
        return None

    def optimum(self, d, tolerance):
        """By bisection on rho: exact, since the joint range of two forms is convex."""
        low, high = 0.0, 1e6
        for _ in range(200):
            rho = 0.5 * (low + high)
            basis = top_eigenpairs(self.A - rho * self.B, d)[1]
            low, high = (rho, high) if np.vdot(basis, self.B @ basis) > tolerance else (low, rho)
        return np.vdot(basis, self.A @ basis)


@pytest.mark.parametrize("seed", range(5))
def test_the_constraint_is_active_and_the_loss_optimal(seed):
    problem = TwoForms(12, seed)
    start = top_eigenpairs(problem.A, 3)[1]
    tolerance = 0.05 * problem.evaluate(start).constraints[0]
    result = search(problem, tolerance).solve([start])
    assert result.feasible
    best = problem.optimum(3, tolerance)
    assert -result.loss <= best * (1 + 1e-9)
    assert -result.loss == pytest.approx(best, rel=1e-6)
    assert result.constraint == pytest.approx(tolerance, rel=1e-5)
    here = problem.evaluate(result.basis)
    assert (result.loss, result.constraint) == (here.loss, here.constraints[0])
    # What a unit of the tolerance is worth, by a slightly larger one.
    slope = (problem.optimum(3, 1.001 * tolerance) - best) / (0.001 * tolerance)
    assert result.penalty == pytest.approx(slope, rel=5e-3)


class ThreeRegions:
    """Lines in the plane at the angle s / 2: ``h = 1 + cos 3 s`` is small near s = 60, 180 and 300 degrees."""

    invariant = True
    noise = 0.0
    favoured = np.deg2rad(75)  # where the loss is lowest

    def evaluate(self, V):
        (x,), (y,) = V
        cosine, sine = x * x - y * y, 2 * x * y
        slopes = 2 * np.array([[x, y], [-y, x]])  # of cosine and of sine
        weights = np.array([np.cos(self.favoured), np.sin(self.favoured)])
        loss = -0.5 * (1 + weights @ [cosine, sine])
        loss_gradient = -0.5 * (weights[0] * slopes[:, :1] + weights[1] * slopes[:, 1:])
        gradient = (12 * cosine**2 - 3) * 2 * np.array([[x], [-y]])
        return Point(loss, loss_gradient, np.array([1 + 4 * cosine**3 - 3 * cosine]), gradient)

    def curvature(self, V):
        return None

    @staticmethod
    def line(degrees):
        return np.array([[np.cos(np.deg2rad(degrees / 2))], [np.sin(np.deg2rad(degrees / 2))]])


@pytest.mark.parametrize("region", [180, 300])
def test_a_new_tolerance_is_followed_within_its_region(region):
    problem = ThreeRegions()
    inside = search(problem, 0.02).solve([problem.line(region)], alone=True)
    for other in (0.018, 0.022):
        found = search(problem, other).follow(inside)
        assert 0.99 * other <= found.constraint <= other
        assert abs(np.vdot(found.basis, inside.basis)) > 0.999


def test_random_frames_and_hops_lead_to_the_best_region():
    problem = ThreeRegions()
    alone = search(problem, 0.02).solve([problem.line(180)], alone=True)
    assert abs(np.vdot(alone.basis, problem.line(180))) > np.cos(np.deg2rad(5))
    found = search(problem, 0.02).solve([problem.line(180)])
    assert found.feasible
    assert found.loss < alone.loss - 0.1
    assert abs(np.vdot(found.basis, problem.line(60))) > np.cos(np.deg2rad(5))


class ThreeLevels(ThreeRegions):
    """The same, out of reach: h is at least 0.51, and 0.75 in the region around 180 degrees."""

    def evaluate(self, V):
        here = super().evaluate(V)
        constraints = here.constraints + 0.5 + 0.4 * (1 + here.loss)
        return Point(here.loss, here.loss_gradient, constraints, here._gradient + 0.4 * here.loss_gradient)


def test_out_of_reach_the_least_violation_of_all_regions_is_found():
    problem = ThreeLevels()
    found = search(problem, 0.05).solve([problem.line(180)])
    least = min(problem.evaluate(problem.line(angle)).constraints[0] for angle in np.linspace(0, 360, 3601))
    assert not found.feasible
    assert found.constraint == pytest.approx(least, rel=1e-4)

    forms = TwoForms(5, 3)  # three directions are penalised: 4 of 5 dimensions cannot avoid them all
    least = np.linalg.eigvalsh(forms.B)[:4].sum()
    found = search(forms, 0.5 * least).solve([top_eigenpairs(forms.A, 4)[1]])
    assert not found.feasible
    assert found.constraint == pytest.approx(least, rel=1e-6)


def test_paper_method_is_feasible_but_stops_inside():
    problem = TwoForms(12, 1)
    start = top_eigenpairs(problem.A, 3)[1]
    tolerance = 0.05 * problem.evaluate(start).constraints[0]
    paper = repms(problem, start, tolerance=tolerance, penalty=0.1, report=lambda stage, solution: False)
    assert paper.feasible
    assert paper.constraint < 0.99 * tolerance
    assert search(problem, tolerance).solve([start]).loss < paper.loss


@pytest.mark.parametrize("tolerance", [1.0, 1e-9])
@pytest.mark.parametrize("last", [1, 2, 5])
def test_every_step_is_reported_and_nothing_is_tried_after_a_stop(tolerance, last):
    problem, stages = TwoForms(5, 3), []
    start = top_eigenpairs(problem.A, 4)[1]
    found = search(problem, tolerance, lambda stage, solution: stages.append(stage) or len(stages) == last)
    result = found.solve([start, start])
    assert len(stages) == last
    assert result.constraint == problem.evaluate(result.basis).constraints.max()
