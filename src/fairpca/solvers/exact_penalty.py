"""Smooth constrained problems on frames by penalties: ``min f(V)`` subject to ``h_j(V) <= tolerance``, ``h_j
>= 0``.

``repms`` is Algorithm 1 of Lee et al. (2022) with their parameters. Doubling the penalty overshoots: it ends
with h well below the tolerance. ``minimise_within`` follows the minimisers of ``f + rho sum_j h_j`` as rho
grows, then searches the multipliers at which the constraints are just active, from several starts. Small
tolerances make this a narrow curved valley; the problem's Gauss-Newton curvature, used as a preconditioner,
takes out most of its steepness.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairpca.protocols import PenaltyPoint, PenaltyProblem
from fairpca.solvers.quasi_newton import StiefelResult, minimise_on_stiefel

__all__ = ["PenaltyResult", "minimise_constraint", "minimise_within", "repms"]

#: Parameters of the 2022 paper.
_GROWTH, _LARGEST_PENALTY = 2.0, 1e10
_FIRST_ACCURACY, _LAST_ACCURACY, _ACCURACY_FACTOR = 1e-1, 1e-6, (1e-5) ** (1 / 5)
_SMALLEST_MOVE = 1e-6
_INNER_ITERATIONS = 300

#: Accuracy while rho still grows, and at the rho that is kept; f is of the order of one.
_PATH_ACCURACY, _FINAL_ACCURACY = 2e-3, 1e-4
#: Iterations between two computations of the curvature.
_PATH_ITERATIONS, _FINAL_ITERATIONS = 40, 60
#: The constraint counts as active from this share of the tolerance on.
_ACTIVE = 0.995
_AIM = 0.9985
_ACTIVATION_STEPS = 12
#: Ends of rough paths considered for refinement.
_REFINED = 3


@dataclass(frozen=True)
class PenaltyResult:
    """The frame kept, with its own figures: ``constraint`` is the largest ``h_j``."""

    basis: np.ndarray
    loss: float
    constraint: float
    penalty: float
    gradient_norm: float
    n_iter: int
    feasible: bool


Callback = Callable[[dict[str, Any]], Any]


class _Penalty:
    """``f + rho sum_j h_j``."""

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def term(self, constraints: np.ndarray) -> tuple[float, np.ndarray]:
        """Value of the penalty and its derivative by each ``h_j``."""
        return self.weight * float(constraints.sum()), np.full(len(constraints), self.weight)

    def objective(self, problem: PenaltyProblem) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        def value_and_gradient(basis: np.ndarray) -> tuple[float, np.ndarray]:
            here = problem.evaluate(basis)
            value, weights = self.term(here.constraints)
            return here.loss + value, here.loss_gradient + here.constraint_gradient(weights)

        return value_and_gradient


class _Augmented(_Penalty):
    """The augmented Lagrangian ``f + sum_j (max(0, l_j + kappa (h_j - target))^2 - l_j^2) / (2 kappa)``."""

    def __init__(self, multipliers: np.ndarray, stiffness: float, target: float) -> None:
        self.multipliers, self.stiffness, self.target = multipliers, stiffness, target
        super().__init__(float(multipliers.max()))

    def term(self, constraints: np.ndarray) -> tuple[float, np.ndarray]:
        weights = np.maximum(0.0, self.multipliers + self.stiffness * (constraints - self.target))
        value = float((weights**2 - self.multipliers**2).sum()) / (2 * self.stiffness)
        return value, weights


def repms(
    problem: PenaltyProblem,
    start: np.ndarray,
    *,
    tolerance: float,
    penalty: float,
    max_iter: int = 100,
    callback: Callback | None = None,
) -> PenaltyResult:
    """The Riemannian exact penalty method with the parameters of Lee et al. (2022), Algorithm 1.

    ``penalty`` is the first rho; the authors take ``1 / h`` at ordinary PCA.
    """
    basis, accuracy = start, _FIRST_ACCURACY
    step, met = 0, False
    while step < max_iter and not met:
        step += 1
        inner = minimise_on_stiefel(
            _Penalty(penalty).objective(problem),
            basis,
            tol=accuracy,
            max_iter=_INNER_ITERATIONS,
            invariant=problem.invariant,
            noise=penalty * problem.noise,
        )
        moved = float(np.linalg.norm(inner.basis - basis))
        basis = inner.basis
        here = problem.evaluate(basis)
        result = _result(basis, here, penalty, inner, step, tolerance)
        if callback is not None and callback(_news("repms", result)):
            break
        met = result.feasible and moved <= _SMALLEST_MOVE and accuracy <= _LAST_ACCURACY
        accuracy = max(_LAST_ACCURACY, _ACCURACY_FACTOR * accuracy)
        if not result.feasible:
            penalty = min(_GROWTH * penalty, _LARGEST_PENALTY)
    return result


def _result(
    basis: np.ndarray, here: PenaltyPoint, penalty: float, inner: StiefelResult, n_iter: int, tolerance: float
) -> PenaltyResult:
    constraint = float(here.constraints.max())
    return PenaltyResult(basis, here.loss, constraint, penalty, inner.gradient_norm, n_iter, constraint <= tolerance)


def _news(stage: str, result: PenaltyResult) -> dict[str, Any]:
    return {
        "stage": stage,
        "n_iter": result.n_iter,
        "penalty": result.penalty,
        "loss": result.loss,
        "constraint": result.constraint,
    }


def minimise_constraint(
    problem: PenaltyProblem, start: np.ndarray, *, target: float = 0.0, max_iter: int = 300
) -> np.ndarray:
    """Lower ``sum_j h_j`` alone, until it is at most ``target`` or no step lowers it further."""
    basis, left = start, max_iter
    first = max(float(problem.evaluate(start).constraints.sum()), np.finfo(float).tiny)

    def objective(frame: np.ndarray) -> tuple[float, np.ndarray]:
        here = problem.evaluate(frame)
        gradient = here.constraint_gradient(np.ones(len(here.constraints)))
        return float(here.constraints.sum()) / first, gradient / first

    while left > 0:
        curvature = problem.curvature(basis)
        # A little of the identity keeps the model definite where the constraint is flat.
        precondition = None
        if curvature is not None:
            floor = max(1e-4 * float(curvature.values.max()) / first, 1e-12)
            precondition = curvature.preconditioner(1.0 / first, floor)
        inner = minimise_on_stiefel(
            objective,
            basis,
            tol=1e-7,
            max_iter=min(_FINAL_ITERATIONS, left),
            invariant=problem.invariant,
            noise=problem.noise / first,
            precondition=precondition,
            callback=lambda state: state.value * first <= target,
        )
        improved = float(problem.evaluate(basis).constraints.sum()) / first - inner.value
        basis, left = inner.basis, left - max(inner.n_iter, 1)
        if inner.value * first <= target or inner.converged or improved <= 1e-6 * inner.value:
            break
    return basis


def minimise_within(
    problem: PenaltyProblem,
    starts: Sequence[np.ndarray],
    interiors: Sequence[np.ndarray] = (),
    *,
    tolerance: float,
    penalty: float,
    max_iter: int = 100,
    callback: Callback | None = None,
) -> PenaltyResult:
    """The best frame found with every ``h_j <= tolerance``; if none was, the one with the smallest ``max_j
    h_j``.

    ``max_iter`` bounds the penalty steps of each path.

    From each of ``starts`` rho grows until the constraints hold; from each of ``interiors``, frames where
    they (nearly) hold, it falls until they cease to. The most promising ends are refined until the constraint
    is active.
    """
    search = _Search(problem, tolerance, max_iter, callback)
    ends: list[PenaltyResult] = []
    for start in starts:
        ends.append(search.grow(start, penalty))
        # The same first rho would soon lead every start along the same path.
        penalty = float(np.sqrt(penalty * ends[0].penalty))
    scale = max([end.penalty for end in ends if end.feasible], default=1e-4 * _LARGEST_PENALTY)
    ends += [search.shrink(interior, 2.0 * scale) for interior in interiors]
    feasible = sorted((end for end in ends if end.feasible), key=lambda end: end.loss)
    if not feasible:
        return search.closest(ends)
    best = search.activate(feasible[0])
    for end in feasible[1:_REFINED]:
        if search.worth(end, best):
            best = min(best, search.activate(end), key=lambda result: result.loss)
    return best


class _Search:
    """One place that owns the penalty steps, their number and the news about them."""

    def __init__(self, problem: PenaltyProblem, tolerance: float, max_iter: int, callback: Callback | None) -> None:
        self.problem, self.tolerance, self.callback = problem, tolerance, callback
        self.max_iter, self.n_iter, self.stopped = max_iter, 0, False

    def solve(self, basis: np.ndarray, penalty: float | _Augmented, stage: str) -> PenaltyResult:
        """Minimise the penalised function from ``basis``, renewing the curvature as the frame moves."""
        function = penalty if isinstance(penalty, _Augmented) else _Penalty(penalty)
        rough = stage != "activate"
        tol = _PATH_ACCURACY if rough else _FINAL_ACCURACY
        self.n_iter += 1
        for _ in range(2 if rough else 3):
            inner = minimise_on_stiefel(
                function.objective(self.problem),
                basis,
                tol=tol,
                max_iter=_PATH_ITERATIONS if rough else _FINAL_ITERATIONS,
                invariant=self.problem.invariant,
                noise=function.weight * self.problem.noise,
                precondition=self._preconditioner(basis, function.weight),
            )
            basis = inner.basis
            if inner.converged or inner.n_iter == 0:
                break
        here = self.problem.evaluate(basis)
        weight = float(function.term(here.constraints)[1].max())
        result = _result(basis, here, weight, inner, self.n_iter, self.tolerance)
        if self.callback is not None and self.callback(_news(stage, result)):
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
        result = self.solve(basis, penalty, "grow")
        stuck = 0
        for _ in range(1, self.max_iter):
            if result.feasible or self.stopped or stuck > 8 or penalty >= _LARGEST_PENALTY:
                break
            penalty *= _GROWTH
            before = result
            result = self.solve(result.basis, penalty, "grow")
            stuck = stuck + 1 if result.constraint > 0.999 * before.constraint else 0
        return result

    def shrink(self, basis: np.ndarray, penalty: float) -> PenaltyResult:
        """Lower rho for as long as the constraints hold."""
        result = self.solve(basis, penalty, "shrink")
        for _ in range(1, self.max_iter):
            if not result.feasible or self.stopped or result.penalty < 1e-8:
                break
            lower = self.solve(result.basis, result.penalty / _GROWTH, "shrink")
            if not lower.feasible:
                break
            result = lower
        return result

    def worth(self, end: PenaltyResult, best: PenaltyResult) -> bool:
        """Whether an end could still win: its slack, at the price rho, might buy more than the lead of the
        best.
        """
        slack = max(np.log(self.tolerance / max(end.constraint, 1e-300)), 0.0)
        gain = end.penalty * end.constraint * min(slack, 3.0) * _GROWTH
        same = abs(end.loss - best.loss) <= 1e-3 * abs(best.loss) and slack < 0.1
        return not self.stopped and not same and end.loss - gain < best.loss

    def activate(self, inside: PenaltyResult) -> PenaltyResult:
        """From a feasible end, let the constraints reach the tolerance from below, within half a per cent.

        By the method of multipliers rather than by lowering rho: where h is not convex along the path, no rho
        has a minimiser with h = tolerance, and h jumps over it.
        """
        best, basis = inside, inside.basis
        multipliers = np.full(len(self.problem.evaluate(basis).constraints), inside.penalty)
        stiffness, target, error = 2.0 * inside.penalty / self.tolerance, _AIM * self.tolerance, np.inf
        for _ in range(_ACTIVATION_STEPS):
            trial = self.solve(basis, _Augmented(multipliers, stiffness, target), "activate")
            basis = trial.basis
            if trial.feasible and trial.loss <= best.loss:
                best = trial
            if self.stopped or (trial.feasible and trial.constraint >= _ACTIVE * self.tolerance):
                break
            multipliers = _Augmented(multipliers, stiffness, target).term(self.problem.evaluate(basis).constraints)[1]
            if abs(trial.constraint - target) > 0.3 * error:
                stiffness *= 3.0
            error = abs(trial.constraint - target)
        return best

    def closest(self, ends: Sequence[PenaltyResult]) -> PenaltyResult:
        """No frame within the tolerance was found: the least violation that can be reached from the ends."""
        nearest = sorted(ends, key=lambda end: end.constraint)[:2]
        found = [minimise_constraint(self.problem, end.basis, max_iter=600) for end in nearest]
        best = None
        for basis, end in zip(found, nearest, strict=True):
            here = self.problem.evaluate(basis)
            candidate = PenaltyResult(
                basis, here.loss, float(here.constraints.max()), end.penalty, np.nan, self.n_iter, False
            )
            if best is None or candidate.constraint < best.constraint:
                best = candidate
        assert best is not None
        if best.constraint > self.tolerance:
            return best
        # The minimiser of h itself is feasible after all.
        if not self.stopped:
            rescued = self.shrink(best.basis, best.penalty)
            if rescued.feasible:
                return self.activate(rescued)
        return replace(best, feasible=True)
