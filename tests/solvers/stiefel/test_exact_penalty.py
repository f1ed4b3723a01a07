"""Penalty methods on a problem whose constrained optimum is known in closed form."""

from dataclasses import dataclass

import numpy as np
import pytest

from fairpca.linalg import top_eigenpairs
from fairpca.solvers.stiefel.exact_penalty import follow_within, hop_within, minimise_within, refine_within, repms
from fairpca.solvers.stiefel.feasibility import minimise_constraint
from fairpca.solvers.stiefel.geometry import random_frame


@dataclass
class Point:
    loss: float
    loss_gradient: np.ndarray
    constraints: np.ndarray
    _gradient: np.ndarray

    def constraint_gradient(self, weights):
        return weights[0] * self._gradient


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
def test_the_constraint_is_active_and_the_variance_optimal(seed):
    problem = TwoForms(12, seed)
    start = top_eigenpairs(problem.A, 3)[1]
    at_start = problem.evaluate(start).constraints[0]
    tolerance = 0.05 * at_start
    result = minimise_within(problem, [start], tolerance=tolerance, penalty=0.1 / at_start)
    assert result.feasible
    assert 0.99 * tolerance <= result.constraint <= tolerance
    best = problem.optimum(3, tolerance)
    assert -result.loss <= best * (1 + 1e-9)
    assert -result.loss == pytest.approx(best, rel=2e-3)
    here = problem.evaluate(result.basis)
    assert (result.loss, result.constraint) == (here.loss, here.constraints[0])


@pytest.mark.parametrize("seed", range(3))
def test_a_refined_solution_is_that_of_the_closed_form(seed):
    problem = TwoForms(8, seed)
    start = top_eigenpairs(problem.A, 2)[1]
    tolerance = 0.05 * problem.evaluate(start).constraints[0]
    rough = minimise_within(problem, [start], tolerance=tolerance, penalty=0.1)
    result = refine_within(problem, rough, tolerance=tolerance)
    assert result.feasible
    assert result.constraint == pytest.approx(tolerance, rel=1e-6)
    assert -result.loss == pytest.approx(problem.optimum(2, result.constraint), rel=1e-9)
    assert abs(rough.loss - result.loss) > 1e-8


def test_an_interior_start_leads_to_the_same_optimum():
    problem = TwoForms(10, 7)
    start = random_frame(np.random.default_rng(0), 10, 2)
    interior = minimise_constraint(problem, start)
    assert problem.evaluate(interior).constraints[0] < 1e-8 * problem.evaluate(start).constraints[0]
    tolerance = 0.1
    result = minimise_within(problem, [], [interior], tolerance=tolerance, penalty=1.0)
    assert result.feasible
    assert -result.loss == pytest.approx(problem.optimum(2, tolerance), rel=5e-3)


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
    problem, tolerance = ThreeRegions(), 0.02
    edge = np.rad2deg(np.arccos(tolerance - 1)) / 3  # h at edge and at 120 - edge is the tolerance
    inside = minimise_within(problem, [], [problem.line(region)], tolerance=tolerance, penalty=1.0)
    assert abs(np.vdot(inside.basis, problem.line(region))) > np.cos(np.deg2rad(60 - edge) / 2) - 1e-6
    for other in (0.018, 0.022):
        found = follow_within(problem, inside, tolerance=other)
        assert 0.99 * other <= found.constraint <= other
        assert abs(np.vdot(found.basis, inside.basis)) > 0.999


def test_the_best_region_of_several_interiors():
    problem = ThreeRegions()
    interiors = [problem.line(region) for region in (180, 60, 300)]
    result = minimise_within(problem, [], interiors, tolerance=0.02, penalty=1.0)
    assert result.feasible
    assert abs(np.vdot(result.basis, problem.line(60))) > np.cos(np.deg2rad(5))


def test_paper_method_is_feasible_but_stops_inside():
    problem = TwoForms(12, 1)
    start = top_eigenpairs(problem.A, 3)[1]
    tolerance = 0.05 * problem.evaluate(start).constraints[0]
    options = {"tolerance": tolerance, "penalty": 0.1}
    paper = repms(problem, start, **options)
    ours = minimise_within(problem, [start], **options)
    assert paper.feasible
    assert paper.gradient_norm <= 1e-6
    assert paper.constraint < 0.99 * tolerance
    assert ours.loss < paper.loss


def test_a_tolerance_out_of_reach_gives_the_least_violation():
    problem = TwoForms(5, 3)  # three directions are penalised: 3 of 5 dimensions cannot avoid them all
    start = top_eigenpairs(problem.A, 4)[1]
    least = np.linalg.eigvalsh(problem.B)[:4].sum()
    result = minimise_within(problem, [start], tolerance=0.5 * least, penalty=1.0, max_iter=60)
    assert not result.feasible
    assert result.constraint == pytest.approx(least, rel=1e-6)


def test_callback_sees_each_step_and_can_stop():
    problem = TwoForms(12, 2)
    start = top_eigenpairs(problem.A, 3)[1]
    news = []

    def callback(state):
        news.append(state)
        return len(news) == 2

    minimise_within(problem, [start], tolerance=1e-4, penalty=0.01, callback=callback)
    assert [state["n_iter"] for state in news] == [1, 2]
    assert set(news[0]) == {"stage", "n_iter", "penalty", "loss", "constraint"}
    assert news[1]["penalty"] == 2 * news[0]["penalty"]


def test_hops_lead_to_the_best_region_and_end_soon_where_there_is_only_one():
    problem, rng = ThreeRegions(), np.random.default_rng(0)
    poor = minimise_within(problem, [], [problem.line(180)], tolerance=0.02, penalty=1.0)
    best = minimise_within(problem, [], [problem.line(60)], tolerance=0.02, penalty=1.0)
    assert best.loss < poor.loss - 0.1
    found = hop_within(problem, poor, rng, tolerance=0.02)
    assert found.feasible
    assert found.loss == pytest.approx(best.loss, rel=1e-3)
    assert found.constraint == problem.evaluate(found.basis).constraints[0]

    convex = TwoForms(12, 0)
    start = top_eigenpairs(convex.A, 3)[1]
    tolerance = 0.05 * convex.evaluate(start).constraints[0]
    alone = minimise_within(convex, [start], tolerance=tolerance, penalty=0.1)
    steps = []
    again = hop_within(convex, alone, rng, tolerance=tolerance, outside=start, callback=lambda state: steps.append(1))
    assert again.feasible
    assert again.loss <= alone.loss
    assert len(steps) < 12  # two hops, each an ascent and a few steps until the constraint is active


class ThreeLevels(ThreeRegions):
    """The same, out of reach: h is at least 0.51, and 0.75 in the region around 180 degrees."""

    def evaluate(self, V):
        here = super().evaluate(V)
        constraints = here.constraints + 0.5 + 0.4 * (1 + here.loss)
        return Point(here.loss, here.loss_gradient, constraints, here._gradient + 0.4 * here.loss_gradient)


def test_hops_lead_to_the_least_violation():
    problem, stages = ThreeLevels(), []
    interiors = [problem.line(180)]
    options = {"tolerance": 0.05, "penalty": 1.0}
    found = minimise_within(problem, [], interiors, callback=lambda state: stages.append(state["stage"]), **options)
    degrees = np.linspace(0, 360, 3601)
    least = min(problem.evaluate(problem.line(angle)).constraints[0] for angle in degrees)
    assert not found.feasible
    assert found.constraint == pytest.approx(least, rel=1e-4)
    assert found.n_iter <= len(stages)
    assert set(stages) == {"ascend", "lower"}

    few = []
    minimise_within(
        problem, [], interiors, callback=lambda state: few.append(1) or state["stage"] == "lower", **options
    )
    assert len(few) == 1 + stages.index("lower")  # nothing is begun after a stop


def test_a_solution_beyond_the_tolerance_is_left_alone():
    problem = TwoForms(5, 3)
    start = top_eigenpairs(problem.A, 4)[1]
    result = minimise_within(problem, [start], tolerance=1e-6, penalty=1.0, max_iter=5)
    assert not result.feasible
    assert hop_within(problem, result, np.random.default_rng(0), tolerance=1e-6) is result


def test_nothing_is_tried_after_a_stop():
    """Neither from further starts and interiors, nor until the constraint is active, nor beyond the tolerance."""
    problem = TwoForms(12, 2)
    start = top_eigenpairs(problem.A, 3)[1]
    interiors = [minimise_constraint(problem, random_frame(np.random.default_rng(i), 12, 3)) for i in range(3)]
    for tolerance in (1.0, 1e-9):
        news = []
        options = {"tolerance": tolerance, "penalty": 0.01, "callback": lambda state, news=news: news.append(1) or True}
        minimise_within(problem, [start, start], interiors, spares=interiors, **options)
        assert len(news) == 1
