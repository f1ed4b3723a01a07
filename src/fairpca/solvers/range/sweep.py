"""Two matrices: a certified search along the boundary of the joint range, for a maximum of concave functions.

Let z_a = tr A_a - <A_a, P>, and F(z) = max_m J_m(z) with concave J_m, such that all convex combinations of their
gradients lie in a cone that excludes zero. Then the minimum of F over the (convex) set of all z is attained on the part
of the boundary where ``min w . z`` is attained for weights w in that cone, and the oracle traces this part as w
rotates. Weights may be negative.

Between two neighboring oracle points the boundary lies in the triangle formed by the points and the intersection of
their supporting lines. A concave function lies above its linear interpolant on a triangle, so the smallest maximum of
the interpolants, a tiny linear program, is a lower bound for the piece. Pieces are split best-first until the smallest
bound meets the best value: a certified global optimum, although F may have many local minima.

Where the largest function changes within a piece, the piece is split where an interpolation of the support function
``h(angle) = min w . z`` predicts that change: the boundary is ``z = h w + h' w'``, and h and h' are known at the ends.
The subspace comes from the geodesic between the ends, at the point where both functions are equal; that is exact where
eigenvalues tie.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from fairpca.joint_range import JointRange, RangePoint
from fairpca.linalg import Geodesic
from fairpca.protocols import ConcavePieces, SolverResult, Status

_log = logging.getLogger(__name__)

#: Beyond this size eigenpairs are computed iteratively, and a factorisation has to prove that none was missed.
_PROVE_SIZE = 500
#: Rounding error relative to the matrices, which are expected to be of size one.
_ROUNDING = 1e-14
#: A boundary piece flatter than this counts as a straight segment.
_FLAT = 2e-15
_POLISH_STEPS = 3
#: A predicted direction keeps this angle from both ends. If the change is this near to one of them, relative to the
#: piece, the direction goes beyond it by this share: then it lies on the other side, and both ends are near. The gap
#: that this causes is of the order of the square of the distance.
_MARGIN, _NEAR, _BEYOND = 1e-7, 0.1, 0.01


@dataclass(frozen=True, eq=False)
class BoundaryPoint:
    """A point z of the range, the subspace that attains it, and weights for which ``w . z`` is smallest."""

    weights: np.ndarray
    errors: np.ndarray
    basis: np.ndarray

    @property
    def angle(self) -> float:
        return math.atan2(self.weights[1], self.weights[0])


#: Called with every point of the boundary that is visited.
Visited = Callable[[RangePoint], None]


class _Boundary:
    """Oracle points of the range of errors ``z_a / scale_a``, for directions of any sign."""

    def __init__(self, joint: JointRange, scales: np.ndarray, visited: Visited | None = None) -> None:
        self.joint, self.scales, self._visited = joint, scales, visited

    def point(self, weights: np.ndarray, start: np.ndarray | None = None) -> BoundaryPoint:
        weights = weights / np.linalg.norm(weights)
        alone = np.flatnonzero(weights == 1.0)
        joint = self.joint
        point = joint.vertex(int(alone[0])) if alone.size else joint.point(weights / self.scales, start=start)
        if self.joint.size > _PROVE_SIZE:
            bound = self.joint.proven_support(point)
            if bound - point.support > 1e-12 * max(1.0, abs(point.support)):
                point = self.joint.point(point.weights, whole=True)
        if self._visited:
            self._visited(point)
        return BoundaryPoint(weights, (self.joint.traces - point.captured) / self.scales, point.basis)


def _apex(left: BoundaryPoint, right: BoundaryPoint) -> np.ndarray:
    """The intersection of the supporting lines, from angles and the chord only: stable for nearly parallel lines."""
    chord = right.errors - left.errors
    length = float(np.hypot(*chord))
    if length <= _FLAT:
        return left.errors
    along = chord / length
    rise, fall = max(float(left.weights @ along), 0.0), max(float(-right.weights @ along), 0.0)
    turn = rise * float(np.sqrt(max(1 - fall * fall, 0.0))) + fall * float(np.sqrt(max(1 - rise * rise, 0.0)))
    if turn <= 0.0:
        return 0.5 * (left.errors + right.errors)
    line = np.array([-left.weights[1], left.weights[0]])
    if line @ along < 0:
        line = -line
    return left.errors + line * (length * fall / turn)


def _chord_normal(left: BoundaryPoint, right: BoundaryPoint) -> np.ndarray:
    """The normal of the chord on the side of the weights of both ends; their mean if the ends coincide."""
    chord = right.errors - left.errors
    length = float(np.hypot(*chord))
    if length <= _FLAT:
        return left.weights + right.weights
    normal = np.array([chord[1], -chord[0]]) / length
    return normal if normal @ (left.weights + right.weights) > 0 else -normal


def _least_maximum(vertices: np.ndarray) -> float:
    """The minimum over a simplex of the maximum of linear functions, given their values at the vertices (rows).

    For one or two functions the minimum is at a vertex, or on an edge where both are equal.
    """
    best = float(vertices.max(axis=1).min())
    if vertices.shape[1] == 1:
        return best
    for first, second in itertools.combinations(vertices.tolist(), 2):
        before, after = first[0] - first[1], second[0] - second[1]
        if before * after < 0:
            best = min(best, first[0] + before / (before - after) * (second[0] - first[0]))
    return best


class _Piece(NamedTuple):
    """The part of the boundary between two neighboring points, ordered by a lower bound on F there.

    ``beyond`` is the point next to it that was an end before the last split. If the last prediction ``missed``, the
    next split is in the direction of the chord.
    """

    bound: float
    order: int
    left: BoundaryPoint
    right: BoundaryPoint
    beyond: BoundaryPoint | None
    missed: bool


def sweep_range(
    problem: ConcavePieces,
    joint: JointRange,
    *,
    tol: float,
    max_iter: int,
    relative: bool = True,
    visited: Visited | None = None,
) -> SolverResult:
    """Minimise F over d-dimensional subspaces, to a gap of ``tol``, with at most ``max_iter`` oracle calls.

    The larger matrix is expected to be of size one. If ``relative``, the gap is also relative to a value below one.
    """
    sizes = np.abs(joint.traces)
    scales = np.where(sizes > 0, sizes, 1.0)
    search = _Search(problem, _Boundary(joint, scales, visited), tol, relative)
    while search.gap > search.allowed and joint.calls < max_iter:
        search.refine()
    search.polish()
    weights = search.best.weights / scales
    return SolverResult(
        basis=search.best.basis,
        objective=search.value,
        lower_bound=search.bound,
        weights=weights / np.abs(weights).sum(),
        status=Status.OPTIMAL if search.gap <= search.allowed else Status.MAX_ITER,
        n_iter=search.steps,
        n_oracle_calls=joint.calls,
        history=search.history,
    )


class _Search:
    """The open pieces, smallest bound first, and the best point so far."""

    def __init__(self, problem: ConcavePieces, boundary: _Boundary, tol: float, relative: bool) -> None:
        self._problem, self._boundary, self._tol, self._relative = problem, boundary, tol, relative
        self._order = itertools.count()
        self._open: list[_Piece] = []
        self.history: list[dict[str, Any]] = []
        self.steps, self.value = 0, np.inf
        # The last ends between which the larger function changes.
        self._equal: tuple[BoundaryPoint, BoundaryPoint, BoundaryPoint | None] | None = None
        # Both ends of the cone and the axes between them, so that no supporting lines intersect at z_a < 0.
        first, last = (direction * boundary.scales for direction in problem.cone())
        corners = [first] * bool(first[1]) + list(np.eye(2)) + [last] * bool(last[0])
        # Sums of terms that nearly cancel are only as precise as the largest term.
        self._noise = _ROUNDING * max(1.0, float(np.abs(problem.cone()).max()))
        points = [self._visit(self._boundary.point(weights)) for weights in corners]
        for left, right in itertools.pairwise(points):
            self._push(left, right)

    @property
    def bound(self) -> float:
        return min(self._open[0].bound, self.value) if self._open else self.value

    @property
    def gap(self) -> float:
        return self.value - self.bound

    @property
    def allowed(self) -> float:
        return max(self._tol * (min(self.value, 1.0) if self._relative else 1.0), self._noise)

    def refine(self) -> None:
        """Split the piece with the smallest bound, where a prediction says or else in the direction of its chord."""
        self.steps += 1
        piece = heapq.heappop(self._open)
        left, right = piece.left, piece.right
        predicted = self._changes(left, right) and not piece.missed
        weights = self._predicted(left, right, piece.beyond) if predicted else _chord_normal(left, right)
        middle = self._visit(self._boundary.point(weights, left.basis))
        if max(float(middle.weights @ (end.errors - middle.errors)) for end in (left, right)) <= _FLAT:
            # The chord lies on a supporting line: the minimum is at an end, or where both functions are equal.
            self._visit_equal(left, right, weights)
        else:
            for first, last, replaced in ((left, middle, right), (middle, right, left)):
                missed = predicted and abs(self._excess(middle.errors)) > 0.5 * abs(self._excess(replaced.errors))
                self._push(first, last, replaced, missed)
        _log.info("step %d: value %.9g, bound %.9g, gap %.3g", self.steps, self.value, self.bound, self.gap)
        self.history.append(
            {"n_oracle_calls": self._boundary.joint.calls, "objective": self.value, "lower_bound": self.bound}
        )

    def polish(self) -> None:
        """Improve the best point beyond the tolerance: where F is smooth, the optimal direction is its gradient."""
        if self._equal:
            # Values tell subspaces apart only up to the square root of rounding, so the nearer ends decide.
            left, right, _ = self._equal
            middle = self._boundary.point(self._predicted(*self._equal), left.basis)
            ends = (left, middle) if self._changes(left, middle) else (middle, right)
            self._visit_equal(*ends, middle.weights, slack=self._noise)
        for _ in range(_POLISH_STEPS):
            before = self.value
            errors, scales = self.best.errors * self._boundary.scales, self._boundary.scales
            pieces = self._pieces(self.best.errors)
            largest = np.arange(len(pieces)) == pieces.argmax()
            slope = largest @ self._problem.gradients(self._problem.guarded(errors))  # sparse, with many groups
            self._visit(self._boundary.point(slope * scales, self.best.basis))
            if self.value >= before - _ROUNDING:
                return

    def _pieces(self, errors: np.ndarray) -> np.ndarray:
        return self._problem.pieces(errors * self._boundary.scales)

    def _excess(self, errors: np.ndarray) -> float:
        """The difference of the two functions; zero if there is only one."""
        values = self._pieces(errors)
        return float(values[0] - values[-1])

    def _changes(self, left: BoundaryPoint, right: BoundaryPoint) -> bool:
        """Whether the larger of the two functions changes between the ends."""
        return self._excess(left.errors) * self._excess(right.errors) < 0

    def _predicted(self, left: BoundaryPoint, right: BoundaryPoint, beyond: BoundaryPoint | None) -> np.ndarray:
        """The direction in which both functions are equal, by interpolation of the support function."""
        start, turn = left.angle, max(right.angle - left.angle, np.finfo(float).tiny)
        support = _interpolated([point for point in (left, right, beyond) if point is not None])

        def excess(t: float) -> float:
            angle = start + t * turn
            (height, along), cosine, sine = support(angle), math.cos(angle), math.sin(angle)
            return self._excess(np.array([height * cosine - along * sine, height * sine + along * cosine]))

        margin, t = min(_MARGIN / turn, 0.1), 0.5
        if excess(0.0) * excess(1.0) < 0:
            t = brentq(excess, 0.0, 1.0, xtol=1e-3 * margin, disp=False)
            t += _BEYOND * (t if t < _NEAR else t - 1.0 if t > 1.0 - _NEAR else 0.0)
            t = min(max(t, margin), 1.0 - margin)
        return np.array([math.cos(start + t * turn), math.sin(start + t * turn)])

    def _visit_equal(
        self, left: BoundaryPoint, right: BoundaryPoint, weights: np.ndarray, *, slack: float = 0.0
    ) -> None:
        """Visit the point between both ends where both functions are equal, or the end that comes nearest."""
        joint, scales = self._boundary.joint, self._boundary.scales
        path = Geodesic(left.basis, right.basis)
        basis = path.balanced(joint.matrices, lambda captured: self._excess((joint.traces - captured) / scales))
        self._visit(BoundaryPoint(weights, joint.errors(basis) / scales, basis), slack=slack)

    def _visit(self, point: BoundaryPoint, *, slack: float = 0.0) -> BoundaryPoint:
        value = self._problem.value(point.errors * self._boundary.scales)
        if value < self.value + slack:
            self.value, self.best = float(value), point
        return point

    def _push(
        self, left: BoundaryPoint, right: BoundaryPoint, beyond: BoundaryPoint | None = None, missed: bool = False
    ) -> None:
        apex = _apex(left, right)
        if self._changes(left, right) and (area := _triangle_area(left.errors, apex, right.errors)) > _FLAT:
            self._equal = left, right, beyond
            if area <= self._tol:  # the point where both are equal is as near to the boundary as is asked for
                nearer = left if self._excess(left.errors) * self._excess(apex) < 0 else right
                self._visit_equal(left, right, nearer.weights)
        bound = _least_maximum(np.stack([self._pieces(z) for z in (left.errors, apex, right.errors)]))
        if bound < self.value:
            heapq.heappush(self._open, _Piece(bound, next(self._order), left, right, beyond, missed))


def _interpolated(points: Sequence[BoundaryPoint]) -> Callable[[float], tuple[float, float]]:
    """The polynomial that equals h(angle) = ``w . z`` at these points, with its derivative: value and derivative."""
    angles, table, slopes = [], [], []
    for point in points:
        (cosine, sine), (first, second) = point.weights.tolist(), point.errors.tolist()
        angles += 2 * [point.angle]
        table += 2 * [cosine * first + sine * second]
        slopes += 2 * [cosine * second - sine * first]
    coefficients = table[:1]
    for order in range(1, len(angles)):  # divided differences; at equal angles the derivative
        table = [
            (table[i + 1] - table[i]) / (angles[i + order] - angles[i]) if angles[i + order] != angles[i] else slopes[i]
            for i in range(len(table) - 1)
        ]
        coefficients.append(table[0])

    def evaluate(angle: float) -> tuple[float, float]:
        value = derivative = 0.0
        for coefficient, node in zip(reversed(coefficients), reversed(angles), strict=True):
            derivative = derivative * (angle - node) + value
            value = value * (angle - node) + coefficient
        return value, derivative

    return evaluate


def trace_boundary(joint: JointRange, first: np.ndarray, last: np.ndarray, n_points: int) -> list[BoundaryPoint]:
    """Points of the boundary from direction ``first`` to ``last``, in order, and dense where it bends most.

    Pieces are split best-first, by the area of the triangle that contains the boundary.
    """
    boundary = _Boundary(joint, np.ones(2))
    ends = [boundary.point(np.asarray(weights, dtype=float)) for weights in (first, last)]
    turn = ends[0].weights[0] * ends[1].weights[1] - ends[0].weights[1] * ends[1].weights[0]
    points = {0.0: ends[0], 1.0: ends[1]}
    heap: list[tuple[float, float, float]] = []

    def push(start: float, stop: float) -> None:
        left, right = points[start], points[stop]
        apex = _apex(left, right)
        area = _triangle_area(left.errors, apex, right.errors)
        if area > _FLAT and abs(turn) > 0:
            heapq.heappush(heap, (-area, start, stop))

    push(0.0, 1.0)
    while heap and len(points) < n_points:
        _, start, stop = heapq.heappop(heap)
        middle = 0.5 * (start + stop)
        points[middle] = boundary.point(_chord_normal(points[start], points[stop]), points[start].basis)
        push(start, middle)
        push(middle, stop)
    return [points[key] for key in sorted(points)]


def _triangle_area(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    return abs(float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))) / 2
