"""The constraints ``h_j(V) >= 0`` of a penalty problem alone: their norm, and frames at which they are smallest."""

from __future__ import annotations

import numpy as np

from fairpca.protocols import PenaltyProblem
from fairpca.solvers.stiefel.quasi_newton import minimise_on_stiefel

__all__ = ["constraint_norm", "lower_largest", "minimise_constraint", "minimise_largest"]

#: Norm of the constraints that is penalised, and those by which the largest alone is minimised: where three of them
#: meet, a lower power leads away.
_POWER, _POWERS = 8.0, (32.0, 128.0, 512.0)
#: Iterations between two computations of the curvature.
_ITERATIONS = 60


def constraint_norm(constraints: np.ndarray, power: float = _POWER) -> tuple[float, np.ndarray]:
    """``(sum_j h_j^q)^(1/q)`` and its slopes: at most ``m^(1/q)`` times the largest of m."""
    largest = float(constraints.max())
    if largest <= 0:
        return 0.0, np.ones(len(constraints))
    shares = constraints / largest
    size = float((shares**power).sum() ** (1.0 / power))
    return largest * size, (shares / size) ** (power - 1.0)


def minimise_constraint(
    problem: PenaltyProblem, start: np.ndarray, *, target: float = 0.0, max_iter: int = 300, power: float = _POWER
) -> np.ndarray:
    """Lower ``|h|_q`` alone, until it is at most ``target`` or no step lowers it further."""
    basis, left = start, max_iter

    def size(frame: np.ndarray) -> tuple[float, np.ndarray]:
        here = problem.evaluate(frame)
        value, slopes = constraint_norm(here.constraints, power)
        return value, here.constraint_gradient(slopes)

    first = max(size(start)[0], np.finfo(float).tiny)
    reached = first

    def objective(frame: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = size(frame)
        return value / first, gradient / first

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
            max_iter=min(_ITERATIONS, left),
            invariant=problem.invariant,
            noise=problem.noise / first,
            precondition=precondition,
            callback=lambda state: state.value * first <= target,
        )
        improved = reached / first - inner.value
        basis, left, reached = inner.basis, left - max(inner.n_iter, 1), inner.value * first
        if reached <= target or inner.converged or improved <= 1e-6 * inner.value:
            break
    return basis


def lower_largest(problem: PenaltyProblem, start: np.ndarray, *, max_iter: int) -> np.ndarray:
    """A few steps of :func:`minimise_largest`, which tell more of a start than its own value does."""
    return minimise_constraint(problem, start, max_iter=max_iter, power=_POWERS[0])


def minimise_largest(problem: PenaltyProblem, start: np.ndarray) -> np.ndarray:
    """Lower the largest ``h_j``, by norms that come ever closer to it.

    A norm in which others count too may lead away to where the largest is larger: then its end is not taken.
    """
    basis, here = start, problem.evaluate(start).constraints
    single = len(here) == 1
    for power in _POWERS[:1] if single else _POWERS:
        trial = minimise_constraint(problem, basis, max_iter=600 if single else 200, power=power)
        there = problem.evaluate(trial).constraints
        if there.max() <= here.max():
            basis, here = trial, there
    return basis
