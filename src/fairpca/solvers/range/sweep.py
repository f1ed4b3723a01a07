"""Two matrices: a certified search along the boundary of the joint range, for a maximum of concave functions.

Let z_a = tr A_a - <A_a, P>, and F(z) = max_m J_m(z) with concave J_m, such that all convex combinations of their
gradients lie in a cone that excludes zero. Then the minimum of F over the (convex) set of all z is attained on the part
of the boundary where ``min w . z`` is attained for weights w in that cone, and the oracle traces this part as w
rotates. Weights may be negative.

Between two neighboring oracle points the boundary lies in the triangle formed by the points and the intersection of
their supporting lines. A concave function lies above its linear interpolant on a triangle, so the smallest maximum of
the interpolants, a tiny linear program, is a lower bound for the piece. Pieces are split best-first until the smallest
bound meets the best value: a certified global optimum, although F has many local minima.
"""

from __future__ import annotations

import heapq
import itertools
import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from fairpca.joint_range import JointRange
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
#: New directions stay at least this share of the angle away from both old ones.
_MARGIN = 0.02


@dataclass(frozen=True, eq=False)
class BoundaryPoint:
    """A point z of the range, the subspace that attains it, and weights for which ``w . z`` is smallest."""

    weights: np.ndarray
    errors: np.ndarray
    basis: np.ndarray


class _Boundary:
    """Oracle points of the range of errors, for directions of any sign."""

    def __init__(self, joint: JointRange) -> None:
        self.joint = joint

    def point(self, weights: np.ndarray, start: np.ndarray | None = None) -> BoundaryPoint:
        weights = weights / np.linalg.norm(weights)
        point = self.joint.point(weights, start=start)
        if self.joint.size > _PROVE_SIZE:
            bound = self.joint.proven_support(point)
            if bound - point.support > 1e-12 * max(1.0, abs(point.support)):
                point = self.joint.point(weights, second_order=True)
        return BoundaryPoint(weights, self.joint.traces - point.captured, point.basis)


def _chord_normal(left: BoundaryPoint, right: BoundaryPoint) -> np.ndarray | None:
    chord = right.errors - left.errors
    length = float(np.hypot(*chord))
    if length <= _FLAT:
        return None
    normal = np.array([chord[1], -chord[0]]) / length
    # Of the two normals of the chord, take the one on the side of the weights of both ends.
    return normal if normal @ (left.weights + right.weights) > 0 else -normal


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
    apex = left.errors + line * (length * fall / turn)
    return np.clip(apex, 0.0, None)


def _least_maximum(vertices: np.ndarray) -> float:
    """The minimum over a simplex of the maximum of linear functions, given their values at the vertices (rows).

    For one or two functions the minimum is at a vertex, or on an edge where both are equal.
    """
    values = vertices.max(axis=1)
    best = float(values.min())
    if vertices.shape[1] == 1:
        return best
    excess = vertices[:, 0] - vertices[:, 1]
    for i, j in itertools.combinations(range(len(vertices)), 2):
        if excess[i] * excess[j] < 0:
            t = excess[i] / (excess[i] - excess[j])
            best = min(best, float(vertices[i, 0] + t * (vertices[j, 0] - vertices[i, 0])))
    return best


@dataclass(frozen=True, eq=False)
class _Piece:
    """The part of the boundary between two neighboring points, and a lower bound on F there."""

    left: BoundaryPoint
    right: BoundaryPoint
    left_pieces: np.ndarray
    right_pieces: np.ndarray
    bound: float
    depth: int
    flat: bool = False

    @property
    def has_kink(self) -> bool:
        """Whether the larger of the two functions changes between the ends."""
        if len(self.left_pieces) == 1:
            return False
        return float(np.diff(self.left_pieces)[0] * np.diff(self.right_pieces)[0]) < 0


def sweep_range(problem: ConcavePieces, joint: JointRange, *, tol: float, max_iter: int) -> SolverResult:
    """Minimise F over d-dimensional subspaces, to a gap of ``tol`` relative to the value.

    The matrices are expected to be scaled to size one; the gap is then at most ``tol`` on that scale as well.
    """
    search = _Search(problem, joint)
    while search.open and search.gap > search.allowed(tol) and joint.calls < max_iter:
        search.refine()
    search.polish()
    return SolverResult(
        basis=search.best.basis,
        objective=search.value,
        lower_bound=search.bound,
        weights=search.best.weights / np.abs(search.best.weights).sum(),
        status=Status.OPTIMAL if search.gap <= search.allowed(tol) else Status.MAX_ITER,
        n_iter=search.steps,
        n_oracle_calls=joint.calls,
        history=search.history,
    )


class _Search:
    """The open pieces, ordered by their bounds, and the best point so far."""

    def __init__(self, problem: ConcavePieces, joint: JointRange) -> None:
        self._problem = problem
        self._boundary = _Boundary(joint)
        self._order = itertools.count()
        self.open: list[tuple[float, int, _Piece]] = []
        self.history: list[dict[str, Any]] = []
        self.steps = 0
        self.value = np.inf
        corners = [self._boundary.point(weights) for weights in self._corner_weights()]
        self.best = corners[0]
        # Sums of terms that nearly cancel are only as precise as the largest term.
        self._noise = _ROUNDING * max(1.0, float(np.abs(problem.cone()).max()))
        values = [self._visit(corner) for corner in corners]
        for i in range(len(corners) - 1):
            self._push(corners[i], corners[i + 1], values[i], values[i + 1])

    def _corner_weights(self) -> list[np.ndarray]:
        """Both ends of the cone and the axes between them, so that no supporting lines intersect at z_a < 0."""
        first, last = self._problem.cone()
        axes = [np.array([1.0, 0.0]), np.array([0.0, 1.0])]
        return [first] * bool(first[1]) + axes + [last] * bool(last[0])

    @property
    def bound(self) -> float:
        return min(self.open[0][0], self.value) if self.open else self.value

    @property
    def gap(self) -> float:
        return self.value - self.bound

    def allowed(self, tol: float) -> float:
        return max(tol * min(self.value, 1.0), self._noise)

    def refine(self) -> None:
        """Split the piece with the smallest bound."""
        self.steps += 1
        piece = heapq.heappop(self.open)[2]
        if piece.flat:
            # On a segment the minimum is at an end or where two functions are equal: no further split is needed.
            self._visit_ridge(piece)
        else:
            self._split_arc(piece)
        _log.info("step %d: value %.9g, bound %.9g, gap %.3g", self.steps, self.value, self.bound, self.gap)
        self.history.append(
            {"n_oracle_calls": self._boundary.joint.calls, "objective": self.value, "lower_bound": self.bound}
        )

    def polish(self) -> None:
        """Improve the best point beyond the tolerance: where F is smooth, the optimal direction is its gradient."""
        for _ in range(_POLISH_STEPS):
            before = self.value
            slopes = self._problem.value_and_slopes(self.best.errors)[1]
            self._visit(self._boundary.point(slopes, self.best.basis))
            if self.value >= before - _ROUNDING:
                return

    def _split_arc(self, piece: _Piece) -> None:
        if piece.has_kink:
            self._visit_ridge(piece)
        weights = self._direction(piece)
        middle = self._boundary.point(weights, piece.left.basis)
        if _height(piece, middle) <= _FLAT:
            # The chord lies on a supporting line: the piece is a segment, and its bound needs no apex.
            self._push(piece.left, piece.right, piece.left_pieces, piece.right_pieces, flat=True)
            return
        values = self._visit(middle)
        self._push(piece.left, middle, piece.left_pieces, values, depth=piece.depth + 1)
        self._push(middle, piece.right, values, piece.right_pieces, depth=piece.depth + 1)

    def _direction(self, piece: _Piece) -> np.ndarray:
        """The normal of the chord or, in every other split of a piece with a kink, a direction towards the kink."""
        normal = _chord_normal(piece.left, piece.right)
        middle = piece.left.weights + piece.right.weights if normal is None else normal
        if not piece.has_kink or piece.depth % 2 == 0:
            return middle
        before, after = np.diff(piece.left_pieces)[0], np.diff(piece.right_pieces)[0]
        t = float(np.clip(before / (before - after), _MARGIN, 1 - _MARGIN))
        # This assumes a circular arc, along which the direction rotates evenly.
        if t < 0.5:
            return (1 - 2 * t) * piece.left.weights + 2 * t * middle / np.linalg.norm(middle)
        return (2 * t - 1) * piece.right.weights + 2 * (1 - t) * middle / np.linalg.norm(middle)

    def _visit_ridge(self, piece: _Piece) -> BoundaryPoint:
        """Visit the point between both ends, in the range or on its boundary, where both functions are equal."""
        path = Geodesic(piece.left.basis, piece.right.basis)
        forms = path.forms(self._boundary.joint.matrices)

        def excess(t: float) -> float:
            return float(np.diff(self._problem.pieces(self._boundary.joint.traces - path.captured(forms, t)))[0])

        first, last = excess(0.0), excess(1.0)
        t = float(abs(last) < abs(first))
        if first * last < 0:  # if both differ only by rounding, either end is fine
            t = brentq(excess, 0.0, 1.0, xtol=1e-16, rtol=1e-15, disp=False)
        basis = path.basis(t)
        errors = self._boundary.joint.traces - self._boundary.joint.captured(basis)
        normal = _chord_normal(piece.left, piece.right)
        point = BoundaryPoint(piece.left.weights if normal is None else normal, errors, basis)
        self._visit(point)
        return point

    def _visit(self, point: BoundaryPoint) -> np.ndarray:
        values = self._problem.pieces(point.errors)
        if values.max() < self.value:
            self.value, self.best = float(values.max()), point
        return values

    def _push(
        self,
        left: BoundaryPoint,
        right: BoundaryPoint,
        left_pieces: np.ndarray,
        right_pieces: np.ndarray,
        *,
        depth: int = 0,
        flat: bool = False,
    ) -> None:
        corners = [left_pieces, right_pieces]
        if not flat:
            corners.append(self._problem.pieces(_apex(left, right)))
        bound = _least_maximum(np.stack(corners))
        if bound < self.value:
            piece = _Piece(left, right, left_pieces, right_pieces, bound, depth, flat)
            heapq.heappush(self.open, (bound, next(self._order), piece))


def _height(piece: _Piece, middle: BoundaryPoint) -> float:
    """The larger distance of the two ends of the chord from the supporting line at ``middle``."""
    ends = piece.left.errors - middle.errors, piece.right.errors - middle.errors
    return max(float(middle.weights @ end) for end in ends)


def trace_boundary(joint: JointRange, first: np.ndarray, last: np.ndarray, n_points: int) -> list[BoundaryPoint]:
    """Points of the boundary from direction ``first`` to ``last``, in order, and dense where it bends most.

    Pieces are split best-first, by the area of the triangle that contains the boundary.
    """
    boundary = _Boundary(joint)
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
        normal = _chord_normal(points[start], points[stop])
        if normal is None:
            continue
        points[middle] = boundary.point(normal, points[start].basis)
        push(start, middle)
        push(middle, stop)
    return [points[key] for key in sorted(points)]


def _triangle_area(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    return abs(float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))) / 2
