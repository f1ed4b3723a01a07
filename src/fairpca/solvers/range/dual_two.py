"""Two matrices: a bracketing, superlinear search for the best weight in [0, 1].

The bound G(s) at w = (1 - s, s) is concave (unimodal for the Nash criterion). Each evaluation gives value, slope
and curvature, so there is a parabola at each end of the bracket; the next point is where the smaller of the two is
largest. That is the Newton step where G is smooth, and the crossing of two branches where G has a kink, which happens
where the d-th and the next eigenvalue tie.

The subspace itself lies on the geodesic between the eigenspaces at both ends, at the point where both groups are
balanced. It is exact at a tie, and second-order accurate elsewhere. Where the next step should be the last, the path
starts at the nearest eigenspace in the direction in which it turns with s, and the bound needs eigenvalues only.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from fairpca.joint_range import Incumbent, JointRange, RangePoint
from fairpca.linalg import Geodesic, orthonormalise
from fairpca.protocols import LineExpansion, RangeProblem, SolverResult, Status

#: Points are kept this far from the ends of the bracket: far enough to land on the other side of the optimum, while
#: the gap that this causes is only of the order of its square.
_MARGIN = 1e-7
_NARROWEST = 4e-16
#: The next step is expected to be the last if it gains at most this multiple of the square root of the tolerance.
_LAST_GAIN = 0.1
_SECANT_STEPS = 4
#: An imbalance below this share of what is captured is rounding.
_BALANCED = 1e-14
#: Eigenvalues that differ by less than this share of the largest count as tied.
_TIE, _TINY = 1e-15, 1e-200
#: If the d-th and the next one do, almost, the eigenspace may be far from the balanced one.
_NEARLY_TIED = 1e-6


@dataclass(frozen=True)
class _LinePoint:
    """The bound at s with its derivatives, and the derivative of the leading eigenvectors in their complement."""

    s: float
    value: float
    slope: float
    curvature: float
    point: RangePoint
    turn: np.ndarray
    tied: bool

    def parabola(self, s: float) -> float:
        step = s - self.s
        return self.value + step * (self.slope + 0.5 * step * self.curvature)

    def peak(self) -> float:
        return self.s - self.slope / self.curvature if self.curvature < 0 else np.inf * np.sign(self.slope)


def solve_pair(problem: RangeProblem, joint: JointRange, *, tol: float, max_iter: int) -> SolverResult:
    """Minimise F(c(V)) for k = 2, to a duality gap of ``tol``."""
    found = Incumbent(problem, joint)
    low, high = (_visit(problem, joint, found, weights) for weights in np.eye(2))
    gaps: list[float] = []
    for _ in found.steps(tol, max_iter):
        slow = len(gaps) > 3 and gaps[-1] > 0.5 * gaps[-3]
        s, gain = _slow_step(low, high, found.n_iter) if slow else _model_peak(low, high, found.bound)
        margin = min(_MARGIN, 0.1 * (high.s - low.s))
        s = min(max(s, low.s + margin), high.s - margin)
        # The error of the subspace is of the order of the square of the gain, but for ties of eigenvalues.
        if gain <= np.sqrt(tol) or slow or low.tied or high.tied:
            if _closes(problem, joint, found, low, high, s, tol):
                return found.result(tol, Status.MAX_ITER)
            gaps.append(found.gap)
        else:
            gaps.append(gain)
        middle = _visit(problem, joint, found, np.array([1.0 - s, s]))
        low, high = (middle, high) if middle.slope > 0 else (low, middle)
        if high.s - low.s < _NARROWEST:
            break
    if found.n_iter:  # an eigenspace that closes the gap is balanced only up to the tolerance
        found.try_basis(*_balanced_between(problem, joint, low.point.basis, high.point.basis, found.weights))
    return found.result(tol, Status.MAX_ITER)


def _visit(problem: RangeProblem, joint: JointRange, found: Incumbent, weights: np.ndarray) -> _LinePoint:
    """Evaluate the bound and its derivatives at some weights, and try both the bound and the eigenspace."""
    s, d = float(weights[1]), joint.dimension
    point = joint.vertex(int(s)) if s in (0.0, 1.0) else joint.whole_point(weights)
    if point.below.shape[1] < joint.size - d:
        point = joint.whole_point(weights)
    assert point.values is not None
    assert point.images is not None
    image = point.images[1] - point.images[0]
    coupling = point.below.T @ image
    scale = max(abs(point.values[0]), abs(point.values[-1]))
    gaps = np.maximum(point.values[:d] - point.values[d:, None], max(_TIE * scale, _TINY))
    turn, tied = coupling / gaps, d < joint.size and bool(gaps[0, -1] <= _NEARLY_TIED * scale)
    slope, curvature = float(point.captured[1] - point.captured[0]), 2.0 * float(np.vdot(coupling, turn))
    phi = LineExpansion(point.support, slope, curvature)
    visited = _LinePoint(s, *problem.along(s, phi), point, turn, tied)
    found.try_bound(visited.value, point)
    found.try_basis(problem.value(point.captured), point.basis)
    return visited


def _closes(
    problem: RangeProblem,
    joint: JointRange,
    found: Incumbent,
    low: _LinePoint,
    high: _LinePoint,
    s: float,
    tol: float,
) -> bool:
    """Look for the subspace, and try to finish at ``s`` without its eigenvectors; return whether the gap closed."""
    near = min(low, high, key=lambda end: abs(end.s - s))
    weights = np.array([1.0 - s, s])
    if near.parabola(s) - near.value <= _LAST_GAIN * np.sqrt(tol):
        ahead = near.point.below @ ((s - near.s) * near.turn)
        _try_balanced_along(problem, joint, found, near.point, ahead, weights)
        support = joint.support(weights)
        there = dataclasses.replace(near.point, weights=weights, support=support)
        found.try_bound(problem.bound(weights, support), there)
    if found.gap > tol:
        found.try_basis(*_balanced_between(problem, joint, low.point.basis, high.point.basis, weights))
    return found.gap <= tol


def _try_balanced_along(
    problem: RangeProblem,
    joint: JointRange,
    found: Incumbent,
    start: RangePoint,
    ahead: np.ndarray,
    weights: np.ndarray,
) -> None:
    """Try the balanced subspace on the path start + t * ahead, which is near t = 1, by the secant method."""
    (t_before, before), t = (0.0, problem.imbalance(start.captured, weights)), 1.0
    for _ in range(_SECANT_STEPS):
        basis = orthonormalise(start.basis + t * ahead)
        captured = joint.captured(basis)
        found.try_basis(problem.value(captured), basis)
        after = problem.imbalance(captured, weights)
        if before == after or abs(after) <= _BALANCED * float(np.abs(captured).sum()):
            break
        t_before, before, t = t, after, t - after * (t - t_before) / (after - before)


def _middle(low: _LinePoint, high: _LinePoint) -> tuple[float, float]:
    return 0.5 * (low.s + high.s), np.inf


def _slow_step(low: _LinePoint, high: _LinePoint, n_iter: int) -> tuple[float, float]:
    """In turn: the peak of the better end's parabola, which the other end may have hidden, and the middle."""
    peak = max(low, high, key=lambda end: end.value).peak()
    return (peak, np.inf) if n_iter % 2 and low.s < peak < high.s else _middle(low, high)


def _model_peak(low: _LinePoint, high: _LinePoint, bound: float) -> tuple[float, float]:
    """Where the smaller of the two parabolas is largest, inside the bracket, and by how much it exceeds the bound."""
    usable = [end for end in (low, high) if np.isfinite(end.value) and np.isfinite(end.slope)]
    inside = [end.peak() for end in usable if low.s < end.peak() < high.s]
    if len(usable) == 2:
        inside += [s for s in _crossings(low, high) if low.s < s < high.s]
    if not inside:
        return _middle(low, high)
    value, s = max((min(end.parabola(s) for end in usable), s) for s in inside)
    return s, value - bound


def _crossings(low: _LinePoint, high: _LinePoint) -> list[float]:
    """Zeros of the difference of the two parabolas, in a form that is stable for tiny curvature."""
    step = high.s - low.s
    a = 0.5 * (low.curvature - high.curvature)
    b = low.slope - high.slope + high.curvature * step
    c = low.value - high.value + high.slope * step - 0.5 * high.curvature * step * step
    root = b * b - 4 * a * c
    if root < 0:
        return []
    q = -0.5 * (b + np.copysign(np.sqrt(root), b))
    return [low.s + x for x in ((q / a if a else np.nan), (c / q if q else np.nan)) if np.isfinite(x)]


def _balanced_between(
    problem: RangeProblem, joint: JointRange, first: np.ndarray, last: np.ndarray, weights: np.ndarray
) -> tuple[float, np.ndarray]:
    """The balanced subspace on the geodesic between two, or the better of both."""
    path = Geodesic(first, last)
    forms = path.forms(joint.matrices)

    def imbalance(t: float) -> float:
        return problem.imbalance(path.captured(forms, t), weights)

    times = [0.0, 1.0]
    if imbalance(0.0) * imbalance(1.0) < 0:
        times.append(brentq(imbalance, 0.0, 1.0, xtol=1e-16, rtol=1e-15, disp=False))
    best = min(times, key=lambda t: problem.value(path.captured(forms, t)))
    basis = path.basis(best)
    return problem.value(joint.captured(basis)), basis
