"""Connects the parity problems to their solvers; everything here is scaled to a total variance of 1."""

from __future__ import annotations

import logging

import numpy as np
from scipy.linalg import null_space

from fairpca.estimators._erased import leading_of_covariance
from fairpca.joint_range import JointRange, Minimax
from fairpca.linalg import top_eigenpairs
from fairpca.problems.parity import MomentParity, covariance_bound, mean_penalty
from fairpca.protocols import SolverResult, Status
from fairpca.solvers.range.dual import minimise_on_range
from fairpca.solvers.reference.parity_sdp import solve_parity_sdp
from fairpca.solvers.stiefel.augmented_lagrangian import SmoothedResult, minimise_smoothed, restore_limits
from fairpca.solvers.stiefel.geometry import random_frame

__all__ = [
    "covariance_lower_bound",
    "largest_dimension",
    "solve_covariance_parity",
    "solve_mean_tolerance",
    "solve_parity",
]

_log = logging.getLogger(__name__)

#: The problem of means is cheap enough to be solved much more accurately than requested.
_MEAN_SHARE = 1e-4

#: Smallest tolerance relative to the total variance; differences below it are dominated by rounding errors.
_FINEST = 1e-9
#: A limit exceeded by less than this share is restored by a Newton step; by more, the penalty was too small.
_LIMIT_SHARE = 1e-6
_LIMIT_ROUNDING = 1e-12
_LARGEST_PENALTY = 1e12
_RANDOM_STARTS = 2


def solve_parity(
    problem: MomentParity, dimension: int, *, solver: str, tol: float, max_iter: int, rng: np.random.Generator
) -> SolverResult:
    """Solve by the method that the problem allows: closed form, exact search, or smoothing."""
    tol = max(tol, _FINEST)
    if solver == "sdp":
        return _by_sdp(problem, dimension, tol, max_iter)
    exact = _MEAN_SHARE * tol
    if len(problem.directions):
        means = solve_mean_tolerance(problem, dimension, tol=exact, max_iter=max_iter, rng=rng)
    else:
        means = leading_of_covariance(problem.covariance, dimension)
    if not problem.penalty > 0:
        return means
    result = solve_covariance_parity(problem, means.basis, tol=tol, max_iter=max_iter, rng=rng)
    multipliers = result.multipliers / problem.limit_unit if len(problem.directions) else result.multipliers
    bound = covariance_lower_bound(problem, result.basis, multipliers, tol=exact, max_iter=max_iter)
    _log.info("value %.9g, bound %.9g, gap %.3g", result.value, bound, result.value - bound)
    settled = Status.STATIONARY if result.converged else Status.MAX_ITER
    return SolverResult(
        basis=result.basis,
        objective=result.value,
        lower_bound=bound,
        weights=multipliers,
        status=Status.OPTIMAL if result.value - bound <= tol else settled,
        n_iter=means.n_iter + result.n_iter,
        n_oracle_calls=means.n_oracle_calls + result.n_evaluations,
    )


def _by_sdp(problem: MomentParity, dimension: int, tol: float, max_iter: int) -> SolverResult:
    found = solve_parity_sdp(
        problem.covariance,
        problem.differences(),
        problem.directions,
        dimension,
        penalty=problem.penalty,
        tolerance=problem.tolerance,
    )
    multipliers = np.zeros(len(problem.directions))
    if problem.penalty > 0:
        bound = covariance_lower_bound(problem, found.basis, multipliers, tol=tol, max_iter=max_iter)
    else:
        bound = -float(top_eigenpairs(problem.covariance, dimension)[0].sum())
    return SolverResult(
        basis=found.basis,
        objective=problem.value(found.basis),
        lower_bound=bound,
        weights=multipliers,
        status=Status.RELAXATION_SOLVED if found.finished else Status.MAX_ITER,
        n_iter=found.n_iter,
        n_oracle_calls=found.n_iter,
    )


def solve_mean_tolerance(
    problem: MomentParity, dimension: int, *, tol: float, max_iter: int, rng: np.random.Generator
) -> SolverResult:
    """``max <S, P>`` within the mean limits alone, by an exact penalty on the joint range.

    Limits are added once they are exceeded, and the penalty grows until it exceeds their multipliers. For two groups
    the joint range is that of two matrices, and the search is exact; the bound holds for any number of groups.
    """
    if not _may_be_feasible(problem, dimension, tol=tol, max_iter=max_iter, rng=rng):
        _raise_infeasible(dimension)
    rounds = _PenaltyRounds(problem, dimension)
    while rounds.raise_penalty():
        rounds.solve(tol=tol, max_iter=max_iter, rng=rng)
    basis, feasible = restore_limits(problem, rounds.result.basis)
    if not (feasible and _keeps_limits(problem, basis)):
        basis = _equal_means(problem, dimension)  # no penalty is large enough for a tolerance near zero
    objective = -float(np.einsum("pi,pi->", basis, problem.covariance @ basis))
    return SolverResult(
        basis=basis,
        objective=objective,
        lower_bound=rounds.result.lower_bound,
        weights=rounds.multipliers(),
        status=Status.OPTIMAL if objective - rounds.result.lower_bound <= tol / _MEAN_SHARE else Status.GAP,
        n_iter=rounds.n_iter,
        n_oracle_calls=rounds.n_oracle_calls,
    )


def _keeps_limits(problem: MomentParity, basis: np.ndarray) -> bool:
    squares = ((problem.directions @ basis) ** 2).sum(axis=1)
    return bool((squares <= (1 + _LIMIT_SHARE) * problem.tolerance**2).all())


def _equal_means(problem: MomentParity, dimension: int) -> np.ndarray:
    """The best subspace in which the limited differences vanish altogether."""
    frame = null_space(problem.directions)
    if dimension > frame.shape[1]:
        _raise_infeasible(dimension)
    return frame @ top_eigenpairs(frame.T @ problem.covariance @ frame, dimension)[1]


class _PenaltyRounds:
    """Repeated minimisation with a growing penalty on the limits exceeded so far."""

    def __init__(self, problem: MomentParity, dimension: int) -> None:
        self._problem, self._dimension = problem, dimension
        values, basis = top_eigenpairs(problem.covariance, dimension)
        self.result = SolverResult(basis, -values.sum(), -values.sum(), np.ones(1), Status.OPTIMAL, 1, 1)
        self.n_iter = self.n_oracle_calls = 1
        self._active = np.zeros(len(problem.directions), dtype=bool)
        largest = (problem.directions**2).sum(axis=1).max(initial=0.0)
        self._penalty = 10.0 / max(largest, problem.tolerance**2)

    def raise_penalty(self) -> bool:
        """Return whether a limit is exceeded; if it is already penalised, raise the penalty.

        A limit that is not yet penalised may be exceeded only by rounding: if the subspace contains the difference of
        means, no small rotation lowers it to first order, and a Newton step could lead anywhere.
        """
        squares = ((self._problem.directions @ self.result.basis) ** 2).sum(axis=1)
        accepted = np.where(self._active, _LIMIT_SHARE, _LIMIT_ROUNDING)
        passed = squares > (1 + accepted) * self._problem.tolerance**2
        if (passed & self._active).any():
            self._penalty *= 10.0
        self._active |= passed
        return bool(passed.any()) and self._penalty <= _LARGEST_PENALTY

    def solve(self, *, tol: float, max_iter: int, rng: np.random.Generator) -> None:
        problem = self._problem
        matrices, penalised = mean_penalty(
            problem.covariance, problem.directions[self._active], problem.tolerance, self._penalty
        )
        self.result = _on_range(matrices, penalised, self._dimension, tol=tol, max_iter=max_iter, rng=rng)
        self.n_iter += self.result.n_iter
        self.n_oracle_calls += self.result.n_oracle_calls

    def multipliers(self) -> np.ndarray:
        multipliers = np.zeros(len(self._active))
        multipliers[self._active] = self._penalty * self.result.weights[1:]
        return multipliers


def largest_dimension(problem: MomentParity, *, tol: float, max_iter: int, rng: np.random.Generator) -> int:
    """The largest dimension of which not provably every subspace exceeds a limit."""
    dimension = len(problem.covariance)
    while not _may_be_feasible(problem, dimension, tol=_MEAN_SHARE * max(tol, _FINEST), max_iter=max_iter, rng=rng):
        dimension -= 1
    return dimension


def _may_be_feasible(
    problem: MomentParity, dimension: int, *, tol: float, max_iter: int, rng: np.random.Generator
) -> bool:
    """False if provably no subspace satisfies the limits, which can only happen for a nearly full dimension."""
    directions = problem.directions
    if not len(directions) or dimension <= directions.shape[1] - np.linalg.matrix_rank(directions):
        return True
    squares = np.einsum("ja,jb->jab", directions, directions)
    closest = _on_range(-squares, Minimax(np.zeros(len(squares))), dimension, tol=tol, max_iter=max_iter, rng=rng)
    return closest.lower_bound <= (1 + _LIMIT_SHARE) * problem.tolerance**2


def _raise_infeasible(dimension: int) -> None:
    raise ValueError(
        f"mean_tolerance is too small for n_components={dimension}: no projection with that many dimensions was "
        "found whose group means are that close. Raise mean_tolerance or lower n_components."
    )


def _on_range(
    matrices: np.ndarray,
    minimax: Minimax,
    dimension: int,
    *,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
) -> SolverResult:
    joint = JointRange(matrices, dimension)
    return minimise_on_range(minimax, joint, tol=tol, max_iter=max_iter, rng=rng)


def solve_covariance_parity(
    problem: MomentParity, start: np.ndarray, *, tol: float, max_iter: int, rng: np.random.Generator
) -> SmoothedResult:
    """Solve the penalised problem, starting from the unpenalised solution, the relaxation and random frames."""
    starts = [start, _relaxed(problem, start, np.zeros(len(problem.directions)), tol, max_iter, rng).basis]
    starts += [random_frame(rng, *start.shape) for _ in range(_RANDOM_STARTS)]
    return minimise_smoothed(problem, starts, tol=tol, max_iter=max_iter)


def covariance_lower_bound(
    problem: MomentParity, basis: np.ndarray, multipliers: np.ndarray, *, tol: float, max_iter: int
) -> float:
    """A proven lower bound on the penalised problem: its Lagrangian at these multipliers, relaxed to a joint range."""
    rng = np.random.default_rng(0)
    result = _relaxed(problem, basis, multipliers, tol, max_iter, rng)
    return result.lower_bound - float(multipliers.sum()) * problem.tolerance**2


def _relaxed(
    problem: MomentParity,
    basis: np.ndarray,
    multipliers: np.ndarray,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
) -> SolverResult:
    """The relaxation of the pair of groups whose covariances differ most at ``basis``: two matrices, exact."""
    directions = problem.directions
    covariance = problem.covariance - (directions.T * multipliers) @ directions
    difference = problem.largest_difference(basis)
    matrices, minimax = covariance_bound(covariance, difference[None], problem.penalty, basis.shape[1])
    return _on_range(matrices, minimax, basis.shape[1], tol=tol, max_iter=max_iter, rng=rng)
