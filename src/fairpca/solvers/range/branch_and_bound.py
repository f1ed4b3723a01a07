"""A lower bound for subspaces of dimension d that is tighter than the convex relaxation: branch and bound.

The relaxation replaces projectors by 0 <= P <= I, and its optimum may have a few fractional eigenvalues. Let E hold
their eigenvectors, T those of eigenvalue one and R the rest, and let ``C = E^T P E``. A projector satisfies P^2 = P, so

    tr (C - C^2) = ||T^T P E||^2 + ||R^T P E||^2 <= tr T^T (I - P) T + tr R^T P R,

because row i of I - P (or P) has the squared norm ``(I - P)_ii`` (or ``P_ii``). The optimum of the relaxation violates
this inequality: the left side is positive, the right side zero. While every entry of C lies in an interval [l, h], its
square is at most ``(l + h) C_ij - l h``, which makes the inequality linear in P. Splitting the intervals tightens it,
and the smallest bound of all parts is a lower bound for every subspace of dimension d.

Linear conditions ``<G, P> >= g`` enter the minimax problem of a part as further terms, ``L + s (g - <G, P>)``: where
they hold, such a term is at most L, a lower bound that is known already.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import logging
from typing import NamedTuple

import numpy as np

from fairpca.joint_range import JointRange, Minimax
from fairpca.linalg import extend_basis
from fairpca.protocols import RangeProblem, RelaxedSolution, SolverResult, Status
from fairpca.solvers.range.fantope import solve_fantope

_log = logging.getLogger(__name__)

#: An eigenvalue of the relaxed optimum is fractional if it differs from one by more than this.
_FRACTIONAL = 1e-6
#: The slope s of the terms for linear conditions.
_SHARPNESS = 30.0
#: The bound of a part is computed to this share of the gap; intervals are split at least this share from their ends.
_ACCURACY, _MARGIN = 1e-3, 0.2


class _Part(NamedTuple):
    """Intervals for the entries of C, the bound there, and C at the optimum of the relaxation."""

    bound: float
    order: int
    low: np.ndarray
    high: np.ndarray
    entries: np.ndarray


def tighten_bound(
    problem: RangeProblem, joint: JointRange, result: SolverResult, *, tol: float, max_parts: int
) -> SolverResult:
    """Raise the lower bound of ``result`` until the gap is at most ``tol`` or there are ``max_parts`` parts.

    ``problem`` must be a largest term, ``max_a offset_a - c_a``. The subspace stays that of ``result``.
    """
    if result.converged or result.relaxed is None or not problem.normalised:
        return result
    search = _Search(problem, joint, result, result.relaxed)
    while search.gap > tol and search.n_parts < max_parts:
        search.split()
        _log.info("%d parts: value %.9g, bound %.9g, gap %.3g", search.n_parts, search.value, search.bound, search.gap)
    return dataclasses.replace(
        result,
        lower_bound=max(search.bound, result.lower_bound),
        status=Status.OPTIMAL if search.gap <= tol else Status.GAP,
        n_oracle_calls=result.n_oracle_calls + search.calls,
    )


class _Search:
    """The open parts, smallest bound first."""

    def __init__(
        self, problem: RangeProblem, joint: JointRange, result: SolverResult, relaxed: RelaxedSolution
    ) -> None:
        self._problem, self._joint, self._known = problem, joint, result.lower_bound
        self.value, self.calls, self._order = result.objective, 0, itertools.count()
        fractional = relaxed.eigenvalues < 1 - _FRACTIONAL
        whole, mixed = relaxed.basis[:, ~fractional], relaxed.basis[:, fractional]
        rest = extend_basis(relaxed.basis, np.eye(joint.size))[:, relaxed.basis.shape[1] :]
        self._n_whole = whole.shape[1]
        self._outside = rest @ rest.T - whole @ whole.T - mixed @ mixed.T
        rows, columns = np.triu_indices(mixed.shape[1])
        self._twice = np.where(rows == columns, 1.0, 2.0)
        self._entries = np.stack([_symmetric(mixed[:, i], mixed[:, j]) for i, j in zip(rows, columns, strict=True)])
        diagonal = rows == columns
        self._parts = [self._solve(np.where(diagonal, 0.0, -0.5), np.where(diagonal, 1.0, 0.5))]

    @property
    def n_parts(self) -> int:
        return len(self._parts)

    @property
    def bound(self) -> float:
        return min(self._parts[0].bound, self.value)

    @property
    def gap(self) -> float:
        return self.value - self.bound

    def split(self) -> None:
        """Divide the part with the smallest bound where the square of an entry is represented worst."""
        part = heapq.heappop(self._parts)
        entries = np.clip(part.entries, part.low, part.high)
        widths = part.high - part.low
        worst = int((self._twice * (entries - part.low) * (part.high - entries) + 1e-9 * widths).argmax())
        margin = _MARGIN * widths[worst]
        at = float(np.clip(entries[worst], part.low[worst] + margin, part.high[worst] - margin))
        low, high = part.low.copy(), part.high.copy()
        low[worst] = high[worst] = at
        for child in (self._solve(part.low, high), self._solve(low, part.high)):
            heapq.heappush(self._parts, child._replace(bound=max(child.bound, part.bound)))

    def condition(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, float]:
        """G and g such that ``<G, P> >= g`` for every projector whose C lies in these intervals."""
        slopes = self._twice * (low + high)
        return (
            self._outside + np.tensordot(slopes, self._entries, axes=1),
            float((self._twice * low * high).sum()) - self._n_whole,
        )

    def _solve(self, low: np.ndarray, high: np.ndarray) -> _Part:
        """The relaxation for one part."""
        condition, least = self.condition(low, high)
        conditions = np.concatenate([condition[None], self._entries, -self._entries])
        limits = np.concatenate([[least], low, -high])
        matrices = np.concatenate([self._joint.matrices, _SHARPNESS * conditions])
        problem = Minimax(np.concatenate([self._problem.offsets, self._known + _SHARPNESS * limits]))
        joint = JointRange(matrices, self._joint.dimension)
        fantope = solve_fantope(problem, joint, tol=_ACCURACY * max(self.value - self._known, 1e-9))
        point = joint.point(fantope.weights / fantope.weights.sum())
        optimum = (fantope.vectors * fantope.eigenvalues) @ fantope.vectors.T
        self.calls += joint.calls
        entries = np.tensordot(self._entries, optimum, axes=2)
        return _Part(problem.bound(point.weights, point.support), next(self._order), low, high, entries)


def _symmetric(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return 0.5 * (np.outer(left, right) + np.outer(right, left))
