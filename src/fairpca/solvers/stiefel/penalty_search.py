"""Searches within a tolerance, ``min f(V)`` subject to ``h_j(V) <= tolerance``, from one frame: steps and their number.

A path follows the minimisers of ``f + rho |h|_q`` as rho grows, or lowers f from a frame within the tolerance; the
method of multipliers then makes the constraints active. Small tolerances make this a narrow curved valley; the
problem's Gauss-Newton curvature, used as a preconditioner, takes out most of its steepness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairpca.linalg import Geodesic
from fairpca.protocols import PenaltyPoint, PenaltyProblem
from fairpca.solvers.stiefel.augmented_lagrangian import AugmentedTerm
from fairpca.solvers.stiefel.feasibility import constraint_norm, lower_largest, minimise_constraint, minimise_largest
from fairpca.solvers.stiefel.geometry import horizontal, retract_polar
from fairpca.solvers.stiefel.quasi_newton import Objective, StiefelResult, minimise_on_stiefel

__all__ = [
    "ACTIVE",
    "GROWTH",
    "LARGEST_PENALTY",
    "ROUNDING",
    "Callback",
    "PenaltyResult",
    "PenaltySearch",
    "callback_state",
    "norm_term",
    "penalised",
    "result_at",
]

#: Factor by which rho grows, and its largest value (Lee et al. 2022).
GROWTH, LARGEST_PENALTY = 2.0, 1e10
#: Error from rounding alone of a constraint, a difference of numbers up to one.
ROUNDING = 1e-15
#: Accuracy while rho still grows, and at the rho that is kept; f is of the order of one.
_PATH_ACCURACY, _FINAL_ACCURACY = 2e-3, 1e-4
#: The same where rounding must not show, with what is then aimed at, its relative error and the number of steps to it.
_REFINED_ACCURACY, _REFINED_AIM, _REFINED_ERROR, _REFINEMENTS = 1e-9, 1.0 - 1e-7, 1e-10, 6
#: The relative error that is enough where rounding keeps the gradient from that accuracy.
_ROUNDED_ERROR = 1e-6
#: Iterations between two computations of the curvature.
_PATH_ITERATIONS, _FINAL_ITERATIONS = 40, 60
#: The constraint counts as active from this share of the tolerance on.
ACTIVE = 0.998
#: Multipliers times what their constraints lack to that, next to the loss: what inactive constraints may cost.
_IDLE_COST = 1e-4
_AIM = 0.9992
_ACTIVATION_STEPS = 12
#: Share of the tolerance up to which a frame within it may ascend, how often the term that keeps it there is made
#: stiffer, and the weight of the constraints that this is expected to take, next to the stiffest.
_ASCENT_AIM, _ASCENTS, _ASCENT_PRICE = 0.9, 3, 0.1
#: Share of the tolerance beyond which an ascent has left the region it began in: nothing leads back there.
_ESCAPED = 1.3
#: Multiple of the tolerance from which no ascent leads within it.
_OUT_OF_REACH = 10.0
#: Length of the step by which a search leaves a saddle point, and of those, in turn, by which it leaves its region.
_KICK, _HOPS = 0.03, (0.6, 1.0)
#: Hops in all, hops in a row that may be of no use, and where all so far have led back: then few tell enough.
_MOST_HOPS, _IDLE_HOPS, _RETURNS = 24, 6, 2
#: Difference of losses, next to the loss, below which two solutions are taken for the same one.
_SAME = 1e-3
#: Halvings of the path on which the tolerance is crossed.
_CROSSING_STEPS = 12
#: A tolerance is worth at least this share of the variance, which keeps the method of multipliers stiff.
_LEAST_PRICE = 1e-3
#: Frames from which the largest constraint is minimised, after a few steps from each candidate: at least so many, or
#: one of every twenty; and how different they are, as the squared sine of an angle: narrow kernels make narrow valleys.
_LOWEST_STARTS, _CANDIDATES_PER_START, _FIRST_STEPS, _DIFFERENT = 12, 20, 4, 0.003
#: How far from the lowest of them frames are tried again, how many at a time, from how many of these it is minimised,
#: and how many times in a row this may be of no use.
_NEAR, _NEAR_FRAMES, _NEAR_STARTS, _IDLE_ROUNDS = (0.6, 1.5), 10, 2, 4


@dataclass(frozen=True)
class PenaltyResult:
    """The frame kept, with its own values: ``constraint`` is the largest ``h_j``."""

    basis: np.ndarray
    loss: float
    constraint: float
    penalty: float
    gradient_norm: float
    n_iter: int
    feasible: bool


Callback = Callable[[dict[str, Any]], Any]


#: From the ``h_j`` to a value that is added to the loss, and its derivative by each ``h_j``.
Term = Callable[[np.ndarray], tuple[float, np.ndarray]]


def norm_term(weight: float) -> Term:
    """``rho |h|_q``, in which the largest ``h_j`` counts most; for a single constraint, ``rho h``."""

    def term(constraints: np.ndarray) -> tuple[float, np.ndarray]:
        value, slopes = constraint_norm(constraints)
        return weight * value, weight * slopes

    return term


def penalised(problem: PenaltyProblem, term: Term) -> Objective:
    """The loss plus the term."""

    def value_and_gradient(basis: np.ndarray) -> tuple[float, np.ndarray]:
        here = problem.evaluate(basis)
        value, weights = term(here.constraints)
        return here.loss + value, here.loss_gradient + here.constraint_gradient(weights)

    return value_and_gradient


def result_at(
    basis: np.ndarray, here: PenaltyPoint, penalty: float, inner: StiefelResult, n_iter: int, tolerance: float
) -> PenaltyResult:
    constraint = float(here.constraints.max())
    return PenaltyResult(basis, here.loss, constraint, penalty, inner.gradient_norm, n_iter, constraint <= tolerance)


def _different(frames: Sequence[np.ndarray], count: int) -> list[np.ndarray]:
    """The first so many whose subspaces are not close to one another."""
    chosen: list[np.ndarray] = []
    for frame in frames:
        overlaps = [float(np.linalg.norm(other.T @ frame)) ** 2 for other in chosen]
        if len(chosen) < count and max(overlaps, default=0.0) < frame.shape[1] - _DIFFERENT:
            chosen.append(frame)
    return chosen


def _moved(basis: np.ndarray, length: float, rng: np.random.Generator) -> np.ndarray:
    """A frame so far away, in a random direction."""
    noise = horizontal(basis, rng.standard_normal(basis.shape))
    return retract_polar(basis, length * noise / max(float(np.linalg.norm(noise)), np.finfo(float).tiny))


def _price(basis: np.ndarray, here: PenaltyPoint) -> float:
    """The rho that best balances the slopes of the loss and of the largest constraint, not negative."""
    largest = (here.constraints == here.constraints.max()).astype(float)
    slope = horizontal(basis, here.constraint_gradient(largest))
    along = -float(np.vdot(slope, horizontal(basis, here.loss_gradient)))
    return max(along, 0.0) / max(float(np.vdot(slope, slope)), np.finfo(float).tiny)


def _goes_on(count: int, idle: int, returns: int, most_idle: int) -> bool:
    """Whether to hop again, after ``count`` hops: the last ``idle`` were of no use, ``returns`` led back in all."""
    return count < _MOST_HOPS and idle < (_RETURNS if returns == count else most_idle)


def callback_state(stage: str, result: PenaltyResult) -> dict[str, Any]:
    return {
        "stage": stage,
        "n_iter": result.n_iter,
        "penalty": result.penalty,
        "loss": result.loss,
        "constraint": result.constraint,
    }


class PenaltySearch:
    """One place that owns the penalty steps, their number and the calls of the callback."""

    def __init__(
        self,
        problem: PenaltyProblem,
        tolerance: float,
        max_iter: int,
        callback: Callback | None,
        outside: np.ndarray | None,
    ) -> None:
        self.problem, self.tolerance, self.callback, self.outside = problem, tolerance, callback, outside
        self.max_iter, self.n_iter, self.stopped = max_iter, 0, False

    def solve(self, basis: np.ndarray, term: Term, weight: float, stage: str) -> PenaltyResult:
        """Minimise the loss plus the term from ``basis``, renewing the curvature as the frame moves.

        ``weight`` is about what the largest constraint weighs in the term.
        """
        rough = stage in ("grow", "ascend")
        tol = {"activate": _FINAL_ACCURACY, "refine": _REFINED_ACCURACY}.get(stage, _PATH_ACCURACY)
        self.n_iter += 1
        for _ in range(2 if rough else 3):
            inner = minimise_on_stiefel(
                penalised(self.problem, term),
                basis,
                tol=tol,
                max_iter=_PATH_ITERATIONS if rough else _FINAL_ITERATIONS,
                invariant=self.problem.invariant,
                noise=weight * self.problem.noise,
                precondition=self._preconditioner(basis, weight),
            )
            basis = inner.basis
            if inner.converged or inner.n_iter == 0:
                break
        here = self.problem.evaluate(basis)
        reached = float(term(here.constraints)[1].max())
        return self._told(stage, result_at(basis, here, reached, inner, self.n_iter, self.tolerance))

    def _told(self, stage: str, result: PenaltyResult) -> PenaltyResult:
        """The result, after the callback has heard of it and may have asked to stop."""
        if self.callback is not None and self.callback(callback_state(stage, result)):
            self.stopped = True
        return result

    def _preconditioner(self, basis: np.ndarray, penalty: float) -> Callable[[np.ndarray], np.ndarray] | None:
        curvature = self.problem.curvature(basis)
        if curvature is None:
            return None
        # f is a quadratic form, so its curvature is of the size of f itself, spread over the columns.
        loss_curvature = 2.0 * max(abs(self.problem.evaluate(basis).loss), 1e-8) / basis.shape[1]
        return curvature.preconditioner(penalty, loss_curvature)

    def grow(self, basis: np.ndarray, penalty: float) -> PenaltyResult:
        """Raise rho until the constraints hold, or until raising it no longer changes anything."""
        result = self.solve(basis, norm_term(penalty), penalty, "grow")
        stuck = 0
        for _ in range(1, self.max_iter):
            if result.feasible or self.stopped or stuck > 8 or penalty >= LARGEST_PENALTY:
                break
            penalty *= GROWTH
            before = result
            result = self.solve(result.basis, norm_term(penalty), penalty, "grow")
            stuck = stuck + 1 if result.constraint > 0.999 * before.constraint else 0
        return result

    def ascend(self, basis: np.ndarray) -> PenaltyResult:
        """From a frame within the tolerance, lower the loss up to where the constraints (nearly) reach it.

        The term that keeps them there is zero inside, so one search does what a falling rho takes many for.
        """
        here = self.problem.evaluate(basis)
        if here.constraints.max() > _OUT_OF_REACH * self.tolerance:
            return self._end_at(basis, "ascend")
        multipliers: np.ndarray = np.zeros(len(here.constraints))
        stiffness = 2.0 * self._headroom(here.loss) / self.tolerance**2
        for _ in range(_ASCENTS):
            term = AugmentedTerm(multipliers, stiffness, _ASCENT_AIM * self.tolerance)
            weight = max(float(multipliers.max()), _ASCENT_PRICE * stiffness * self.tolerance)
            result = self.solve(basis, term, weight, "ascend")
            if result.feasible or self.stopped:
                break
            stiffness *= 4.0
            if result.constraint <= _ESCAPED * self.tolerance:  # otherwise once more from the frame within
                basis, multipliers = result.basis, np.full_like(multipliers, result.penalty)
        return result

    def advance(self, inside: PenaltyResult) -> PenaltyResult:
        """From an end with slack, as far towards ``outside`` as the tolerance allows, if that lowers the loss.

        A penalty cannot leave a frame at which loss and constraints are stationary together, such as one of
        directions in which the rows do not vary at all.
        """
        if inside.constraint >= ACTIVE * self.tolerance or self.stopped or self.outside is None:
            return inside
        path, low, high = Geodesic(inside.basis, self.outside), 0.0, 1.0
        for _ in range(_CROSSING_STEPS):
            middle = 0.5 * (low + high)
            here = self.problem.evaluate(path.basis(middle))
            if here.constraints.max() > _AIM * self.tolerance:
                high = middle
            else:
                low = middle
        basis = path.basis(low)
        here = self.problem.evaluate(basis)
        if not (here.loss < inside.loss and here.constraints.max() <= self.tolerance):
            return inside
        constraint = float(here.constraints.max())
        return replace(inside, basis=basis, loss=here.loss, constraint=constraint, penalty=_price(basis, here))

    def worth(self, end: PenaltyResult, best: PenaltyResult) -> bool:
        """Whether an end could still win: its slack, at the price rho, might buy more than the lead of the best."""
        slack = max(np.log(self.tolerance / max(end.constraint, 1e-300)), 0.0)
        gain = end.penalty * end.constraint * min(slack, 3.0) * GROWTH
        same = abs(end.loss - best.loss) <= _SAME * abs(best.loss) and slack < 0.1
        return not self.stopped and not same and end.loss - gain < best.loss

    def activate(self, inside: PenaltyResult) -> PenaltyResult:
        """From a feasible end, let the constraints reach the tolerance from below, within a fifth of a per cent.

        By the method of multipliers rather than by lowering rho: where h is not convex along the path, no rho
        has a minimiser with h = tolerance, and h jumps over it.
        """
        if self.stopped:
            return inside
        # Where a reflection maps the problem to itself, as with directions in which the rows do not vary, searches end
        # on its mirror, which may be a saddle point.
        best, basis = inside, _moved(inside.basis, _KICK, np.random.default_rng(0))
        here = self.problem.evaluate(basis)
        multipliers = inside.penalty * constraint_norm(here.constraints)[1]
        stiffness = 2.0 * max(inside.penalty, self._headroom(here.loss) / self.tolerance) / self.tolerance
        target, error = _AIM * self.tolerance, np.inf
        for _ in range(_ACTIVATION_STEPS):
            term = AugmentedTerm(multipliers, stiffness, target)
            trial = self.solve(basis, term, float(multipliers.max()), "activate")
            basis = trial.basis
            if trial.feasible and not (best.feasible and trial.loss > best.loss):
                best = trial
            constraints = self.problem.evaluate(basis).constraints
            multipliers = term(constraints)[1]
            if self.stopped or (trial.feasible and self._is_active(trial, constraints, multipliers)):
                break
            if abs(trial.constraint - target) > 0.3 * error:
                stiffness *= 3.0
            error = abs(trial.constraint - target)
        return best

    def hop(self, best: PenaltyResult, rng: np.random.Generator) -> PenaltyResult:
        """Leave a solution by random steps and search again, as long as that now and then leads to a better one.

        Where all of the first hops lead back, there is nothing else near, and the search ends soon.
        """
        idle = returns = count = 0
        while _goes_on(count, idle, returns, _IDLE_HOPS) and not self.stopped:
            start = _moved(best.basis, _HOPS[count % len(_HOPS)], rng)
            trial = self.ascend(minimise_constraint(self.problem, start, target=_ASCENT_AIM * self.tolerance))
            if trial.feasible and (trial.loss < best.loss or self.worth(trial, best)):
                trial = self.activate(trial)
            better = trial.feasible and trial.loss < best.loss - _IDLE_COST * abs(best.loss)
            returns += trial.feasible and abs(trial.loss - best.loss) <= _SAME * abs(best.loss)
            idle, best = (0, trial) if better else (idle + 1, best)
            count += 1
        return best

    def refine(self, active: PenaltyResult) -> PenaltyResult:
        """Make the term stiffer from step to step, until the multipliers no longer change."""
        # Computed again, in another order, the value must still be within a tolerance that is small.
        target = min(_REFINED_AIM * self.tolerance, max(self.tolerance - 4.0 * ROUNDING, ACTIVE * self.tolerance))
        best, trial, error = active, active, np.inf
        multipliers = active.penalty * constraint_norm(self.problem.evaluate(active.basis).constraints)[1]
        stiffness = 2.0 * max(active.penalty, self._headroom(active.loss) / self.tolerance) / self.tolerance
        for _ in range(_REFINEMENTS):
            term = AugmentedTerm(multipliers, stiffness, target)
            trial = self.solve(trial.basis, term, float(multipliers.max()), "refine")
            multipliers = term(self.problem.evaluate(trial.basis).constraints)[1]
            within = trial.constraint <= 0.5 * (target + self.tolerance)
            if within and trial.loss <= best.loss + _IDLE_COST * abs(best.loss):
                best = trial
            missed = abs(trial.constraint - target)
            converged = trial.gradient_norm <= _REFINED_ACCURACY
            if self.stopped or missed <= _REFINED_ERROR * target:
                break
            # Where rounding hides the gradient, a search can go on for very long.
            if not converged and (missed > 0.5 * error or missed <= _ROUNDED_ERROR * target):
                break
            if converged:  # otherwise a stiffer term would only make it harder
                stiffness *= 10.0
            error = missed
        return best

    def _is_active(self, trial: PenaltyResult, constraints: np.ndarray, multipliers: np.ndarray) -> bool:
        """Whether the largest constraint reaches the tolerance, and those that do not cost (almost) nothing."""
        missing = np.maximum(ACTIVE * self.tolerance - constraints, 0.0)
        return bool(missing.min() <= 0.0 and multipliers @ missing <= _IDLE_COST * abs(trial.loss))

    def _headroom(self, loss: float) -> float:
        """What leaving the tolerance could bring at most: a term that costs as much keeps a search from doing so."""
        lowest = -1.0 if self.outside is None else self.problem.evaluate(self.outside).loss
        return max(loss - lowest, _LEAST_PRICE)

    def closest(self, ends: Sequence[PenaltyResult], spares: Iterable[np.ndarray]) -> PenaltyResult:
        """No frame within the tolerance was found: the least violation that can be reached from the ends and spares."""
        best = min(ends, key=lambda end: end.constraint)
        if self.stopped:
            return best
        candidates = [*(end.basis for end in ends), *spares]
        count = max(_LOWEST_STARTS, len(candidates) // _CANDIDATES_PER_START)
        found = [best, *self._lowest(candidates, count)]
        if not any(end.feasible for end in found):
            found.append(self._lowest_around(min(found, key=lambda end: end.constraint)))
        feasible = [self.advance(end) for end in found if end.feasible]
        if feasible:
            return self.activate(min(feasible, key=lambda end: end.loss))
        return min(found, key=lambda end: end.constraint)

    def _lowest_around(self, best: PenaltyResult) -> PenaltyResult:
        """Leave the least violation found by random steps, as :meth:`hop` does: random frames miss narrow valleys."""
        rng = np.random.default_rng(0)
        idle = returns = count = 0
        while _goes_on(count, idle, returns, _IDLE_ROUNDS) and not (best.feasible or self.stopped):
            frames = [_moved(best.basis, length, rng) for length in np.linspace(*_NEAR, _NEAR_FRAMES)]
            trial = min(self._lowest(frames, _NEAR_STARTS), key=lambda end: end.constraint)
            gain = best.constraint - trial.constraint
            returns += abs(gain) <= _SAME * best.constraint
            lower = gain > max(_IDLE_COST * best.constraint, self.problem.noise)
            idle, best = (0, trial) if lower else (idle + 1, best)
            count += 1
        return best

    def _lowest(self, candidates: Sequence[np.ndarray], count: int) -> list[PenaltyResult]:
        """Minimisers of the largest constraint, from as many of the candidates; a few steps tell which."""
        lowered = [lower_largest(self.problem, basis, max_iter=_FIRST_STEPS) for basis in candidates]
        found: list[PenaltyResult] = []
        for start in _different(sorted(lowered, key=self._largest), count):
            found.append(self._end_at(minimise_largest(self.problem, start), "lower"))
            if self.stopped:
                break
        return found

    def _end_at(self, basis: np.ndarray, stage: str) -> PenaltyResult:
        """The values at a frame that no penalty step led to.

        With its penalty, the tolerance would be worth as much as leaving it could bring.
        """
        self.n_iter += 1
        here = self.problem.evaluate(basis)
        penalty, largest = self._headroom(here.loss) / self.tolerance, float(here.constraints.max())
        result = PenaltyResult(basis, here.loss, largest, penalty, np.nan, self.n_iter, largest <= self.tolerance)
        return self._told(stage, result)

    def _largest(self, basis: np.ndarray) -> float:
        return float(self.problem.evaluate(basis).constraints.max())
