"""The Riemannian exact penalty method with smoothing of Lee et al. (2022), Algorithm 1, with their parameters."""

from __future__ import annotations

import numpy as np

from fairpca.protocols import PenaltyProblem
from fairpca.solvers.stiefel.within_limits import Report, Solution, minimise_term

_FIRST_ACCURACY, _LAST_ACCURACY, _ACCURACY_FACTOR = 1e-1, 1e-6, (1e-5) ** (1 / 5)
_SMALLEST_MOVE, _INNER_ITERATIONS = 1e-6, 300
_GROWTH, _LARGEST_PENALTY = 2.0, 1e10


def repms(
    problem: PenaltyProblem,
    start: np.ndarray,
    *,
    tolerance: float,
    penalty: float,
    report: Report,
    max_iter: int = 100,
) -> Solution:
    """From a minimiser of the constraints, as the authors do; ``penalty`` is the first rho.

    With several constraints, the sum is penalised. Doubling rho overshoots: the method ends with all of them well below
    the tolerance.
    """

    def total(constraints: np.ndarray) -> tuple[float, np.ndarray]:
        return float(constraints.sum()), np.ones(len(constraints))

    basis, accuracy, met, step = start, _FIRST_ACCURACY, False, 0
    basis = minimise_term(problem, basis, total, tol=1e-7, max_iter=_INNER_ITERATIONS, with_loss=False).basis
    while step < max_iter and not met:
        step += 1

        def penalised(constraints: np.ndarray, rho: float = penalty) -> tuple[float, np.ndarray]:
            return rho * float(constraints.sum()), np.full(len(constraints), rho)

        inner = minimise_term(problem, basis, penalised, tol=accuracy, max_iter=_INNER_ITERATIONS, precondition=False)
        moved = float(np.linalg.norm(inner.basis - basis))
        basis = inner.basis
        here = problem.evaluate(basis)
        multipliers = np.full(len(here.constraints), 2.0 * tolerance * penalty)
        solution = Solution(basis, here.loss, here.constraints, tolerance, multipliers)
        if report("repms", solution):
            break
        met = solution.feasible and moved <= _SMALLEST_MOVE and accuracy <= _LAST_ACCURACY
        accuracy = max(_LAST_ACCURACY, _ACCURACY_FACTOR * accuracy)
        if not solution.feasible:
            penalty = min(_GROWTH * penalty, _LARGEST_PENALTY)
    return solution
