"""Any number of matrices: the convex-concave procedure for a maximum of concave functions of the errors.

With z_a = tr A_a - <A_a, P> and F(z) = max_m J_m(z), J_m concave, the largest of the tangent planes of all J_m at a
point is an upper bound on F. Minimising it over the Fantope is the minimax problem of the dual solver, with one matrix
``sum_a (dJ_m / dz_a) A_a`` per piece; its solution is accepted only if F itself decreases at a subspace of dimension
d. Between such steps F is minimised locally.
"""

from __future__ import annotations

import logging

import numpy as np

from fairpca.joint_range import CombinedRange, JointRange, Minimax
from fairpca.protocols import SeparablePieces, SolverResult, Status
from fairpca.solvers.range.dual import minimise_on_range
from fairpca.solvers.range.fantope import solve_fantope
from fairpca.solvers.range.subspace_sqp import refine_subspace
from fairpca.solvers.stiefel.geometry import random_frame

_log = logging.getLogger(__name__)

#: Local steps need full eigendecompositions, so they are used up to this size; larger problems take full steps only.
_LOCAL_SIZE = 300
_RANDOM_STARTS = 4
#: All starts are followed to this accuracy, and only the best of them to the end.
_ROUGH = 1e-4
_FINALISTS = 2


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

    The starts are the solution for linear functions below the pieces, the leading eigenvectors of
    ``sum_a weights_a A_a`` and of each matrix alone, and random subspaces.
    """
    procedure = _Procedure(problem, joint, tol=tol, max_iter=max_iter, rng=rng)
    bound, suggestion = procedure.relaxation()
    procedure.bound = bound
    starts = [suggestion, *procedure.starts(weights)]
    if joint.size <= _LOCAL_SIZE:
        starts = procedure.finalists(starts, max(tol, _ROUGH))
    finished = [procedure.finish(basis) for basis in starts]
    basis, settled = min(finished, key=lambda end: procedure.value(end[0]))
    value = procedure.value(basis)
    certified = value - bound <= max(tol * min(value, 1.0), 1e-14)
    return SolverResult(
        basis=basis,
        objective=value,
        lower_bound=min(bound, value),
        weights=procedure.weights(basis),
        status=Status.OPTIMAL if certified else Status.STATIONARY if settled else Status.MAX_ITER,
        n_iter=procedure.steps,
        n_oracle_calls=joint.calls + procedure.calls,
        history=procedure.history,
    )


class _Procedure:
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
        self.steps = 0
        self.calls = 0
        self.bound = -np.inf
        self.history: list[dict] = []

    def errors(self, basis: np.ndarray) -> np.ndarray:
        return self._joint.errors(basis)

    def value(self, basis: np.ndarray) -> float:
        return self._problem.value(self.errors(basis))

    def relaxation(self) -> tuple[float, np.ndarray]:
        """A lower bound from linear functions below the pieces on the box of all possible errors."""
        units = np.eye(self._joint.n_matrices)
        low = np.array([self._joint.traces[a] - self._joint.point(unit).support for a, unit in enumerate(units)])
        high = np.array([self._joint.traces[a] + self._joint.point(-unit).support for a, unit in enumerate(units)])
        return self._minimise_linear(*self._problem.minorants(low, high))

    def starts(self, weights: np.ndarray) -> list[np.ndarray]:
        directions = [weights, *np.eye(self._joint.n_matrices)]
        spectral = [self._joint.point(direction).basis for direction in directions]
        size, d = self._joint.size, self._joint.dimension
        return spectral + [random_frame(self._rng, size, d) for _ in range(_RANDOM_STARTS)]

    def finalists(self, starts: list[np.ndarray], tol: float) -> list[np.ndarray]:
        """The best ends of rough descents; one that would hardly become one of them is abandoned."""
        ends: list[tuple[float, int]] = []
        bases = []
        for basis in starts:
            to_beat = ends[_FINALISTS - 1][0] if len(ends) >= _FINALISTS else np.inf
            bases.append(self.descend(basis, tol, to_beat))
            ends = sorted([*ends, (self.value(bases[-1]), len(bases) - 1)])
        return [bases[i] for _, i in ends[:_FINALISTS]]

    def descend(self, basis: np.ndarray, tol: float, to_beat: float = np.inf) -> np.ndarray:
        accepted = 0.1 * tol * min(self.value(basis), 1.0)
        pieces = self._problem.pieces(self._joint.errors(basis))
        start = np.eye(len(pieces))[int(pieces.argmax())]
        end = refine_subspace(
            self._problem, self._joint, basis, start, tol=accepted, max_iter=self._max_iter, to_beat=to_beat
        )
        self.steps += end.n_iter
        _log.info("descent: value %.9g, bound %.9g, gap %.3g", end.value, self.bound, end.value - self.bound)
        self.history.append({"objective": end.value})
        return end.basis

    def finish(self, basis: np.ndarray) -> tuple[np.ndarray, bool]:
        """Minimise the tangent planes globally, which can escape a local minimum, until F no longer decreases."""
        local = self._joint.size <= _LOCAL_SIZE
        if local:
            basis = self.descend(basis, self._tol)
        value = self.value(basis)
        for _ in range(self._max_iter):
            candidate = self._minimise_linear(*self._tangents(basis))[1]
            if local:
                candidate = self.descend(candidate, self._tol)
            self.steps += 1
            new = self.value(candidate)
            falling = new < value - 0.1 * self._tol * min(value, 1.0)
            if new < value:
                value, basis = new, candidate
            self.history.append({"objective": value})
            if not falling:
                return basis, True
        return basis, False

    def weights(self, basis: np.ndarray) -> np.ndarray:
        """Weights of the matrices for which the subspace is stationary: gradients of the pieces times multipliers."""
        slopes = self._tangents(basis)[1]
        multipliers = np.eye(len(slopes))[int(self._problem.pieces(self.errors(basis)).argmax())]
        if self._joint.size <= _LOCAL_SIZE:
            multipliers = refine_subspace(
                self._problem, self._joint, basis, multipliers, tol=np.inf, max_iter=1
            ).multipliers
        combined = multipliers @ slopes
        return combined / np.abs(combined).sum()

    def _tangents(self, basis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Constants and slopes of the tangent planes, which lie above the pieces."""
        errors = self._problem.guarded(self.errors(basis))
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
