"""Any number of matrices: descent from several starts on a maximum of concave functions of the errors, with a bound.

With z_a = tr A_a - <A_a, P> and F(z) = max_m J_m(z), J_m concave, linear functions below the J_m give a lower bound on
F: their largest is minimised over the Fantope, the minimax problem of the dual solver, with one matrix
``sum_a slope_ma A_a`` per piece. The same problem for tangent planes, which lie above the J_m, gives steps of the
convex-concave procedure, for matrices too large for second-order steps.
"""

from __future__ import annotations

import logging

import numpy as np

from fairpca.joint_range import CombinedRange, JointRange, Minimax
from fairpca.protocols import SeparablePieces, SolverResult, Status
from fairpca.solvers.range.dual import minimise_on_range
from fairpca.solvers.range.fantope import solve_fantope
from fairpca.solvers.range.subspace_sqp import refine_subspace

_log = logging.getLogger(__name__)

#: Second-order steps need full eigendecompositions, so they are used up to this size.
_LOCAL_SIZE = 300


def descend_pieces(
    problem: SeparablePieces,
    joint: JointRange,
    weights: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
) -> SolverResult:
    """Minimise F over d-dimensional subspaces: the best stationary point from several starts, and a lower bound.

    The starts are the solution for linear functions below the pieces, and the leading eigenvectors of
    ``sum_a weights_a A_a`` and of each matrix alone.
    """
    search = _Search(problem, joint, tol=tol, max_iter=max_iter, rng=rng)
    bound, suggestion = search.relaxation()
    starts = [suggestion, *(joint.point(direction).basis for direction in [weights, *np.eye(joint.n_matrices)])]
    descend = search.descend if joint.size <= _LOCAL_SIZE else search.descend_on_tangents
    for start in starts:
        descend(start)
        _log.info("descent: value %.9g, bound %.9g, gap %.3g", search.value, bound, search.value - bound)
    certified = search.value - bound <= max(tol * min(search.value, 1.0), 1e-14)
    return SolverResult(
        basis=search.basis,
        objective=search.value,
        lower_bound=min(bound, search.value),
        weights=search.weights(),
        status=Status.OPTIMAL if certified else Status.STATIONARY if search.settled else Status.MAX_ITER,
        n_iter=search.steps,
        n_oracle_calls=joint.calls + search.calls,
        history=search.history,
    )


class _Search:
    """The best subspace so far, and whether its descent came to an end."""

    def __init__(
        self,
        problem: SeparablePieces,
        joint: JointRange,
        *,
        tol: float,
        max_iter: int,
        rng: np.random.Generator,
    ) -> None:
        self._problem, self._joint = problem, joint
        self._tol, self._max_iter, self._rng = tol, max_iter, rng
        self.value, self.settled = np.inf, False
        self.steps, self.calls = 0, 0
        self.history: list[dict] = []

    def relaxation(self) -> tuple[float, np.ndarray]:
        """A lower bound from linear functions below the pieces on the box of all possible errors."""
        units, traces = np.eye(self._joint.n_matrices), self._joint.traces
        low = traces - [self._joint.point(unit).support for unit in units]
        high = traces + [self._joint.point(-unit).support for unit in units]
        return self._minimise_linear(*self._problem.minorants(low, high))

    def descend(self, basis: np.ndarray) -> None:
        """Second-order steps; a start that would hardly lead to a better end is abandoned."""
        errors = self._joint.errors(basis)
        accepted = 0.1 * self._tol * min(self._problem.value(errors), 1.0)
        end = refine_subspace(
            self._problem, self._joint, basis, self._largest_piece(errors), tol=accepted, max_iter=self._max_iter,
            to_beat=self.value,
        )  # fmt: skip
        self.steps += end.n_iter
        self._keep(end.value, end.basis, end.n_iter < self._max_iter)

    def descend_on_tangents(self, basis: np.ndarray) -> None:
        """Minimise the tangent planes globally until F no longer decreases."""
        value = self._problem.value(self._joint.errors(basis))
        for _ in range(self._max_iter):
            self.steps += 1
            candidate = self._minimise_linear(*self._tangents(basis))[1]
            before, new = value, self._problem.value(self._joint.errors(candidate))
            if new < value:
                value, basis = new, candidate
            settled = not new < before - 0.1 * self._tol * min(before, 1.0)
            if settled:
                break
        self._keep(value, basis, settled)

    def weights(self) -> np.ndarray:
        """Weights of the matrices for which the subspace is stationary: gradients of the pieces times multipliers."""
        slopes = self._tangents(self.basis)[1]
        multipliers = self._largest_piece(self._joint.errors(self.basis))
        if self._joint.size <= _LOCAL_SIZE:
            multipliers = refine_subspace(
                self._problem, self._joint, self.basis, multipliers, tol=np.inf, max_iter=1
            ).multipliers
        combined = multipliers @ slopes
        return combined / np.abs(combined).sum()

    def _keep(self, value: float, basis: np.ndarray, settled: bool) -> None:
        self.history.append({"objective": value})
        if value < self.value:
            self.value, self.basis, self.settled = value, basis, settled

    def _largest_piece(self, errors: np.ndarray) -> np.ndarray:
        """Multipliers that select the largest piece."""
        pieces = self._problem.pieces(errors)
        return np.eye(len(pieces))[int(pieces.argmax())]

    def _tangents(self, basis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Constants and slopes of the tangent planes, which lie above the pieces."""
        errors = self._problem.guarded(self._joint.errors(basis))
        slopes = self._problem.gradients(errors)
        return self._problem.pieces(errors) - slopes @ errors, slopes

    def _minimise_linear(self, constants: np.ndarray, slopes: np.ndarray) -> tuple[float, np.ndarray]:
        """``min_P max_m constants_m + slopes_m . z(P)``: a lower bound, and a subspace near the optimum."""
        mixed = CombinedRange(self._joint, slopes)
        problem = Minimax(constants + slopes @ self._joint.traces)
        if len(slopes) > 1 and mixed.size <= _LOCAL_SIZE:
            fantope = solve_fantope(problem, mixed, tol=0.1 * self._tol)
            point = mixed.point(fantope.weights / fantope.weights.sum())
            bound, basis = problem.bound(point.weights, point.support), fantope.vectors[:, : mixed.dimension]
        else:
            result = minimise_on_range(problem, mixed, tol=0.1 * self._tol, max_iter=self._max_iter, rng=self._rng)
            bound, basis = result.lower_bound, result.basis
        self.calls += mixed.calls
        return bound, basis
