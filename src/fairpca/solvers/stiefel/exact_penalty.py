"""Smooth constrained problems on frames by penalties: ``min f(V)`` subject to ``h_j(V) <= tolerance``, ``h_j >= 0``.

``repms`` is Algorithm 1 of Lee et al. (2022) with their parameters. Doubling the penalty overshoots: it ends with h
well below the tolerance. ``minimise_within`` searches from several frames, with a norm for which the largest ``h_j``
counts most, and makes the constraints just active; ``hop_within`` tries whether there is a better solution elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from fairpca.protocols import PenaltyProblem
from fairpca.solvers.stiefel.penalty_search import (
    ACTIVE,
    GROWTH,
    LARGEST_PENALTY,
    ROUNDING,
    Callback,
    PenaltyResult,
    PenaltySearch,
    callback_state,
    norm_term,
    penalised,
    result_at,
)
from fairpca.solvers.stiefel.quasi_newton import minimise_on_stiefel

__all__ = ["ROUNDING", "PenaltyResult", "follow_within", "hop_within", "minimise_within", "refine_within", "repms"]

#: Parameters of the 2022 paper.
_FIRST_ACCURACY, _LAST_ACCURACY, _ACCURACY_FACTOR = 1e-1, 1e-6, (1e-5) ** (1 / 5)
_SMALLEST_MOVE = 1e-6
_INNER_ITERATIONS = 300
#: Ends of rough paths considered for refinement.
_REFINED = 3


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
            penalised(problem, norm_term(penalty)),
            basis,
            tol=accuracy,
            max_iter=_INNER_ITERATIONS,
            invariant=problem.invariant,
            # Times a penalty of 1e10 rounding is more than a search could gain, and would take all its iterations.
            noise=penalty * max(problem.noise, ROUNDING),
        )
        moved = float(np.linalg.norm(inner.basis - basis))
        basis = inner.basis
        here = problem.evaluate(basis)
        result = result_at(basis, here, penalty, inner, step, tolerance)
        if callback is not None and callback(callback_state("repms", result)):
            break
        met = result.feasible and moved <= _SMALLEST_MOVE and accuracy <= _LAST_ACCURACY
        accuracy = max(_LAST_ACCURACY, _ACCURACY_FACTOR * accuracy)
        if not result.feasible:
            penalty = min(GROWTH * penalty, LARGEST_PENALTY)
    return result


def minimise_within(
    problem: PenaltyProblem,
    starts: Sequence[np.ndarray],
    interiors: Sequence[np.ndarray] = (),
    *,
    tolerance: float,
    penalty: float,
    max_iter: int = 100,
    callback: Callback | None = None,
    spares: Iterable[np.ndarray] = (),
) -> PenaltyResult:
    """The best frame found with every ``h_j <= tolerance``; if none was, the one with the smallest ``max_j h_j``.

    ``max_iter`` bounds the penalty steps of each path.

    From each of ``starts`` rho grows until the constraints hold; from each of ``interiors``, frames where
    they (nearly) hold, the loss falls until they cease to. The most promising ends are refined until the constraint
    is active. Only if none was found, the largest ``h_j`` is minimised, also from the best of the ``spares``.
    """
    search = PenaltySearch(problem, tolerance, max_iter, callback, outside=starts[0] if starts else None)
    ends: list[PenaltyResult] = []
    for start in starts:
        if not search.stopped:
            ends.append(search.grow(start, penalty))
            # The same first rho would soon lead every start along the same path.
            penalty = float(np.sqrt(penalty * ends[0].penalty))
    for interior in interiors:
        if not search.stopped:
            ends.append(search.ascend(interior))
    feasible = [search.advance(end) for end in ends if end.feasible]
    feasible.sort(key=lambda end: end.loss)
    if not feasible:
        return search.closest(ends, spares)
    best = search.activate(feasible[0])
    for end in feasible[1:_REFINED]:
        if search.worth(end, best):
            best = min(best, search.activate(end), key=lambda result: result.loss)
    return best


def follow_within(
    problem: PenaltyProblem,
    earlier: PenaltyResult,
    *,
    tolerance: float,
    max_iter: int = 100,
    callback: Callback | None = None,
) -> PenaltyResult:
    """The solution near an earlier one, of a problem that has changed a little; a new path only if there is none."""
    search = PenaltySearch(problem, tolerance, max_iter, callback, outside=None)
    search.n_iter = earlier.n_iter
    constraint = float(problem.evaluate(earlier.basis).constraints.max())
    near = search.activate(replace(earlier, constraint=constraint, feasible=constraint <= tolerance))
    if near.feasible or search.stopped:
        return near
    penalty = max(earlier.penalty / 2.0, 1e-6)
    return minimise_within(
        problem, [near.basis], tolerance=tolerance, penalty=penalty, max_iter=max_iter, callback=callback
    )


def hop_within(
    problem: PenaltyProblem,
    result: PenaltyResult,
    rng: np.random.Generator,
    *,
    tolerance: float,
    outside: np.ndarray | None = None,
    max_iter: int = 100,
    callback: Callback | None = None,
) -> PenaltyResult:
    """The best of a solution and others in its neighbourhood, reached by random steps (basin hopping).

    ``outside`` is a frame of (almost) the lowest loss of all.
    """
    if not result.feasible:
        return result
    search = PenaltySearch(problem, tolerance, max_iter, callback, outside)
    search.n_iter = result.n_iter
    return search.hop(result, rng)


def refine_within(
    problem: PenaltyProblem, result: PenaltyResult, *, tolerance: float, callback: Callback | None = None
) -> PenaltyResult:
    """A more accurate solution, near one at which the constraint is active: rounding in X no longer shows in it."""
    if not (result.feasible and result.constraint >= ACTIVE * tolerance):
        return result
    search = PenaltySearch(problem, tolerance, 1, callback, outside=None)
    search.n_iter = result.n_iter
    return search.refine(result)
