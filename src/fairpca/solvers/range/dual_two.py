"""Two matrices: a bracketing, superlinear search for the best weight in [0, 1].

The bound G(s) at w = (1 - s, s) is concave (unimodal for the Nash criterion). Each evaluation gives value, slope
and curvature, so there is a parabola at each end of the bracket; the next point is where the smaller of the two is
largest. That is the Newton step where G is smooth, and the crossing of two branches where G has a kink, which happens
where the d-th and the next eigenvalue tie.

The subspace itself lies on the geodesic between the eigenspaces at both ends, at the point where both groups are
balanced. It is exact at a tie, and second-order accurate elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from fairpca.joint_range import Incumbent, JointRange, RangePoint
from fairpca.linalg import Geodesic
from fairpca.protocols import LineExpansion, RangeProblem, SolverResult, Status

__all__ = ["solve_pair"]

#: Points are kept this far from the ends of the bracket: far enough to land on the other side of the optimum, while
#: the gap that this causes is only of the order of its square.
_MARGIN = 1e-7
_NARROWEST = 4e-16


@dataclass(frozen=True)
class _LinePoint:
    s: float
    value: float
    slope: float
    curvature: float
    point: RangePoint

    def parabola(self, s: float) -> float:
        step = s - self.s
        return self.value + step * (self.slope + 0.5 * step * self.curvature)

    def peak(self) -> float:
        return self.s - self.slope / self.curvature if self.curvature < 0 else np.inf * np.sign(self.slope)


def solve_pair(problem: RangeProblem, joint: JointRange, *, tol: float, max_iter: int) -> SolverResult:
    """Minimise F(c(V)) for k = 2, to a duality gap of ``tol``."""
    low, high = _evaluate(problem, joint, 0.0), _evaluate(problem, joint, 1.0)
    found = Incumbent(problem, joint)
    for end in (low, high):
        found.try_bound(end.value, end.point)
    found.try_basis(*_balanced_between(problem, joint, low, high, found.weights))
    gaps = [found.gap]
    for _ in found.steps(tol, max_iter):
        slow = len(gaps) > 3 and gaps[-1] > 0.5 * gaps[-3]
        margin = min(_MARGIN, 0.1 * (high.s - low.s))
        s = 0.5 * (low.s + high.s) if slow else _model_peak(low, high)
        middle = _evaluate(problem, joint, min(max(s, low.s + margin), high.s - margin))
        found.try_bound(middle.value, middle.point)
        low, high = (middle, high) if middle.slope > 0 else (low, middle)
        found.try_basis(*_balanced_between(problem, joint, low, high, found.weights))
        gaps.append(found.gap)
        if high.s - low.s < _NARROWEST:
            break
    return found.result(tol, Status.MAX_ITER)


def _evaluate(problem: RangeProblem, joint: JointRange, s: float) -> _LinePoint:
    point = joint.point(np.array([1.0 - s, s]), second_order=True)
    turn = np.array([-1.0, 1.0])
    phi = LineExpansion(point.support, float(turn @ point.captured), float(turn @ point.curvature @ turn))
    return _LinePoint(s, *problem.along(s, phi), point)


def _model_peak(low: _LinePoint, high: _LinePoint) -> float:
    """Where the smaller of the two parabolas is largest, inside the bracket."""
    usable = [end for end in (low, high) if np.isfinite(end.value) and np.isfinite(end.slope)]
    inside = [end.peak() for end in usable if low.s < end.peak() < high.s]
    if len(usable) == 2:
        inside += [s for s in _crossings(low, high) if low.s < s < high.s]
    if not inside:
        return 0.5 * (low.s + high.s)
    return max(inside, key=lambda s: min(end.parabola(s) for end in usable))


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
    problem: RangeProblem, joint: JointRange, low: _LinePoint, high: _LinePoint, weights: np.ndarray
) -> tuple[float, np.ndarray]:
    """The balanced subspace on the geodesic between both ends, or the better end."""
    path = Geodesic(low.point.basis, high.point.basis)
    forms = path.forms(joint.matrices)

    def imbalance(t: float) -> float:
        return problem.imbalance(path.captured(forms, t), weights)

    times = [0.0, 1.0]
    first, last = imbalance(0.0), imbalance(1.0)
    if first * last < 0:
        times.append(brentq(imbalance, 0.0, 1.0, xtol=1e-16, rtol=1e-15, disp=False))
    best = min(times, key=lambda t: problem.value(path.captured(forms, t)))
    basis = path.basis(best)
    return problem.value(joint.captured(basis)), basis
