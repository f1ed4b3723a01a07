"""Connects the parity problems to their solvers; everything here is scaled to a total variance of 1."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
from scipy.linalg import null_space

from fairpca.estimators._erased import leading_of_covariance
from fairpca.joint_range import JointRange, Minimax
from fairpca.linalg import top_eigenpairs
from fairpca.problems.parity import MomentParity, covariance_bound, mean_penalty
from fairpca.protocols import SolverResult, Status
from fairpca.solvers.range.dual import minimise_on_range
from fairpca.solvers.reference.parity_sdp import solve_parity_sdp
from fairpca.solvers.stiefel.augmented_lagrangian import minimise_smoothed, restore_limits
from fairpca.solvers.stiefel.geometry import random_frame

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


@dataclass
class ParitySearch:
    """The search for a solution of a problem by the method that it allows: closed form, exact search, or smoothing."""

    problem: MomentParity
    tol: float
    max_iter: int
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.tol = max(self.tol, _FINEST)

    def solve(self, dimension: int) -> SolverResult:
        problem = self.problem
        if len(problem.directions):
            means = self._within_limits(dimension)
        else:
            means = leading_of_covariance(problem.covariance, dimension)
        if not problem.penalty > 0:
            return means
        starts = [means.basis, self._relaxed(means.basis, np.zeros(len(problem.directions)), self.tol).basis]
        starts += [random_frame(self.rng, *means.basis.shape) for _ in range(_RANDOM_STARTS)]
        result = minimise_smoothed(problem, starts, tol=self.tol, max_iter=self.max_iter)
        multipliers = result.multipliers / problem.limit_unit if len(problem.directions) else result.multipliers
        bound = self._lower_bound(result.basis, multipliers)
        _log.info("value %.9g, bound %.9g, gap %.3g", result.value, bound, result.value - bound)
        settled = Status.STATIONARY if result.converged else Status.MAX_ITER
        return SolverResult(
            basis=result.basis,
            objective=result.value,
            lower_bound=bound,
            weights=multipliers,
            status=Status.OPTIMAL if result.value - bound <= self.tol else settled,
            n_iter=means.n_iter + result.n_iter,
            n_oracle_calls=means.n_oracle_calls + result.n_evaluations,
        )

    def solve_by_sdp(self, dimension: int) -> SolverResult:
        """The rounded optimum of the paper's semidefinite relaxation."""
        problem = self.problem
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
            bound = self._lower_bound(found.basis, multipliers)
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

    def _within_limits(self, dimension: int) -> SolverResult:
        """``max <S, P>`` within the mean limits alone, by an exact penalty on the joint range.

        Limits are added once they are exceeded, and the penalty grows until it exceeds their multipliers. For two
        groups the joint range is that of two matrices, and the search is exact; the bound holds for any number of
        groups.
        """
        problem, directions = self.problem, self.problem.directions
        values, basis = top_eigenpairs(problem.covariance, dimension)
        result = SolverResult(basis, -values.sum(), -values.sum(), np.ones(1), Status.OPTIMAL, 1, 1)
        n_iter, n_oracle_calls, active, multipliers = (
            1,
            1,
            np.zeros(len(directions), dtype=bool),
            np.zeros(len(directions)),
        )
        penalty = 10.0 / max((directions**2).sum(axis=1).max(), problem.tolerance**2)
        while True:
            # A limit that is not yet penalised may be exceeded only by rounding: if the subspace contains the
            # difference of means, no small rotation lowers it to first order, and a Newton step could lead anywhere.
            exceeded = self._exceeded(result.basis, np.where(active, _LIMIT_SHARE, _LIMIT_ROUNDING))
            if (exceeded & active).any():
                penalty *= 10.0
            if not exceeded.any() or penalty > _LARGEST_PENALTY:
                break
            active |= exceeded
            matrices, penalised = mean_penalty(problem.covariance, directions[active], problem.tolerance, penalty)
            result = self._on_range(matrices, penalised, dimension)
            multipliers[active] = penalty * result.weights[1:]
            n_iter, n_oracle_calls = n_iter + result.n_iter, n_oracle_calls + result.n_oracle_calls
        basis, feasible = restore_limits(problem, result.basis)
        if not (
            feasible and ((directions @ basis) ** 2).sum(axis=1).max() <= (1 + _LIMIT_SHARE) * problem.tolerance**2
        ):
            basis = self._equal_means(dimension)  # no penalty is large enough for a tolerance near zero
        objective = -float(np.einsum("pi,pi->", basis, problem.covariance @ basis))
        return SolverResult(
            basis=basis,
            objective=objective,
            lower_bound=result.lower_bound,
            weights=multipliers,
            status=Status.OPTIMAL if objective - result.lower_bound <= self.tol else Status.GAP,
            n_iter=n_iter,
            n_oracle_calls=n_oracle_calls,
        )

    def _exceeded(self, basis: np.ndarray, accepted: np.ndarray | float) -> np.ndarray:
        """Which limits are exceeded by more than the accepted share."""
        squares = ((self.problem.directions @ basis) ** 2).sum(axis=1)
        return squares > (1 + accepted) * self.problem.tolerance**2

    def _equal_means(self, dimension: int) -> np.ndarray:
        """The best subspace in which the limited differences vanish altogether."""
        frame = null_space(self.problem.directions)
        if dimension > frame.shape[1]:
            raise ValueError(
                f"mean_tolerance is too small for n_components={dimension}: no projection with that many dimensions "
                "was found whose group means are that close. Raise mean_tolerance or lower n_components."
            )
        return frame @ top_eigenpairs(frame.T @ self.problem.covariance @ frame, dimension)[1]

    def _lower_bound(self, basis: np.ndarray, multipliers: np.ndarray) -> float:
        """A lower bound on the penalised problem: its Lagrangian at these multipliers, relaxed to a joint range."""
        relaxed = self._relaxed(basis, multipliers, _MEAN_SHARE * self.tol)
        return relaxed.lower_bound - float(multipliers.sum()) * self.problem.tolerance**2

    def _relaxed(self, basis: np.ndarray, multipliers: np.ndarray, tol: float) -> SolverResult:
        """The relaxation of the pair of groups whose covariances differ most at ``basis``: two matrices, exact."""
        problem, directions = self.problem, self.problem.directions
        covariance = problem.covariance - (directions.T * multipliers) @ directions
        difference = problem.largest_difference(basis)
        matrices, minimax = covariance_bound(covariance, difference[None], problem.penalty, basis.shape[1])
        return self._on_range(matrices, minimax, basis.shape[1], tol)

    def _on_range(
        self, matrices: np.ndarray, minimax: Minimax, dimension: int, tol: float | None = None
    ) -> SolverResult:
        tol, joint = _MEAN_SHARE * self.tol if tol is None else tol, JointRange(matrices, dimension)
        return minimise_on_range(minimax, joint, tol=tol, max_iter=self.max_iter, rng=self.rng)
