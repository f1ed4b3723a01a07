"""The default solver: an exact search over the weights, certified by the dual bound.

Small problems are solved directly. Large ones are solved in the span of leading eigenvectors of the weighted sums met
so far. One full-size oracle call at the weights found there gives the missing vectors and, once there are none, the
bound (a subspace method; it converges superlinearly because the model interpolates the value and gradient of phi). With
three or more matrices, the weights need no more accuracy at first than the subspace has, and rounding comes last.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator

import numpy as np

from fairpca.joint_range import EXTRA, ErrorsView, Incumbent, JointRange, RangePoint
from fairpca.linalg import extend_basis, orthonormalise, scipy_threads_only
from fairpca.protocols import RangeProblem, RelaxedSolution, SolverResult, Status
from fairpca.solvers.range.fantope import FantopeSolution, solve_fantope
from fairpca.solvers.range.rounding import reduce_rank
from fairpca.solvers.range.subspace_sqp import refine_subspace
from fairpca.solvers.range.sweep import sweep_range

_log = logging.getLogger(__name__)

#: The subspace method pays off if the full problem is this many times larger than the first subspace ...
_REDUCTION = 3
#: ... and larger than this.
_SMALL = 100
_SUBSPACE_STEPS = 30
#: The relaxation is solved to this share of the accuracy wanted of its bound. At first that is a share of the total
#: variance, and then this share of what the subspace was found to miss.
_RELAXATION_SHARE = 0.1
_FIRST_ACCURACY, _ACCURACY_AHEAD = 1e-2, 1e-2
#: Number of random roundings tried if the relaxed optimum has rank above d: at least, and at most, ...
_ROUNDINGS = (8, 100)
#: ... and in between this number of multiplications, divided by those of one product of all matrices with a basis.
_ROUNDING_WORK = 1e7
#: Roundings end if this many of them led to the same best value, up to this share of the gap.
_AGREEING, _SAME = 3, 1e-3


def minimise_on_range(
    problem: RangeProblem,
    joint: JointRange,
    *,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
) -> SolverResult:
    """Minimise F(c(V)) over d-dimensional subspaces."""
    if joint.n_matrices == 1:
        found = Incumbent(problem, joint)
        found.try_point(joint.vertex(0))
        return found.result(tol, Status.MAX_ITER)
    if joint.size <= max(_SMALL, _REDUCTION * (joint.dimension + EXTRA)):
        joint = joint if joint.forms_matrices else JointRange(joint.matrices, joint.dimension)
        return _solve_dense(problem, joint, tol=tol, max_iter=max_iter, rng=rng)
    with scipy_threads_only():
        return _solve_in_subspaces(problem, joint, tol=tol, max_iter=max_iter, rng=rng)


def _solve_dense(
    problem: RangeProblem, joint: JointRange, *, tol: float, max_iter: int, rng: np.random.Generator
) -> SolverResult:
    if joint.n_matrices == 2 and problem.normalised:
        return _solve_pair(problem, joint, tol=tol, max_iter=max_iter)
    return _solve_many(problem, joint, tol=tol, rng=rng)


def _solve_pair(problem: RangeProblem, joint: JointRange, *, tol: float, max_iter: int) -> SolverResult:
    """Two matrices: along the boundary of their range; every point visited there gives a bound."""
    found = Incumbent(problem, joint)

    def try_bound(point: RangePoint) -> None:
        total = point.weights.sum()
        scaled = dataclasses.replace(point, weights=point.weights / total, support=point.support / total)
        found.try_bound(problem.bound(scaled.weights, scaled.support), scaled)

    view = ErrorsView(problem, joint.traces)
    swept = sweep_range(view, joint, tol=tol, max_iter=max_iter, relative=False, visited=try_bound)
    found.try_basis(swept.objective, swept.basis)
    found.n_iter = swept.n_iter
    return found.result(tol, Status.MAX_ITER)


def _solve_many(
    problem: RangeProblem,
    joint: JointRange,
    fantope: FantopeSolution | None = None,
    *,
    tol: float,
    rng: np.random.Generator,
) -> SolverResult:
    """Three or more matrices: a local search, whose weights often prove that it is optimal.

    If they do not, the relaxation gives the bound, and rounding the best subspace of dimension d.
    """
    found, in_errors = Incumbent(problem, joint), ErrorsView(problem, joint.traces)

    def try_weights(weights: np.ndarray) -> None:
        found.try_point(joint.point(weights / weights.sum() if problem.normalised else weights))

    if fantope is None and problem.normalised:
        try_weights(found.weights)
        if found.gap > tol:
            end = refine_subspace(in_errors, joint, found.basis, found.weights)
            found.n_iter = end.n_iter
            found.try_basis(end.value, end.basis)
            try_weights(end.multipliers)
        _log.info("local search: value %.9g, bound %.9g, gap %.3g", found.value, found.bound, found.gap)
        if found.gap <= tol:
            return found.result(tol, Status.GAP)
    fantope = fantope or solve_fantope(problem, joint, tol=_RELAXATION_SHARE * tol)
    found.n_iter += fantope.n_iter
    try_weights(fantope.weights)
    found.try_point(joint.vertex(int(fantope.weights.argmax())))  # the only one that may be optimal
    _log.info("relaxation of %d matrices: bound %.9g", joint.n_matrices, found.bound)
    wanted = _prescribed(problem, fantope.weights, found.bound)
    relaxed = reduce_rank(joint.matrices, fantope.vectors, fantope.eigenvalues, wanted)
    agreeing = 0
    for start in _roundings(relaxed, fantope.vectors[:, : joint.dimension], joint, rng):
        if found.gap <= tol or agreeing == _AGREEING:
            break
        end = refine_subspace(in_errors, joint, start, fantope.weights, to_beat=found.value - tol)
        agreeing = _count_agreeing(agreeing, end.value, found)
        value, gap = min(end.value, found.value), min(end.value, found.value) - found.bound
        _log.info("rounding: value %.9g, best %.9g, bound %.9g, gap %.3g", end.value, value, found.bound, gap)
        found.try_basis(end.value, end.basis)
    return found.result(tol, Status.GAP, relaxed)


def _count_agreeing(count: int, value: float, found: Incumbent) -> int:
    """How many roundings led to the best value so far, including the last one with its ``value``."""
    if abs(value - found.value) <= _SAME * found.gap:
        return count + 1
    return 1 if value < found.value else count


def _prescribed(problem: RangeProblem, weights: np.ndarray, bound: float) -> np.ndarray:
    """The captured variances that optimality prescribes where a weight is positive: a'(w), minus F on the simplex."""
    captured = problem.dual(weights).gradient - (bound if problem.normalised else 0.0)
    return np.where(weights > 1e-7 * weights.max(), captured, np.nan)


def _roundings(
    relaxed: RelaxedSolution, leading: np.ndarray, joint: JointRange, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Subspaces of dimension d: leading eigenvectors of the relaxed optimum, then random ones, every other in its face.

    The best subspace is usually near the face, but not always.
    """
    d = joint.dimension
    yield relaxed.basis[:, :d]
    yield leading
    whole = relaxed.eigenvalues > 1 - 1e-6
    fixed, face = relaxed.basis[:, whole], relaxed.basis[:, ~whole]
    affordable = _ROUNDING_WORK / (joint.n_matrices * joint.size**2 * d)
    for _ in range(int(np.clip(affordable, *_ROUNDINGS)) // 2):
        mixed = orthonormalise(rng.standard_normal((face.shape[1], d - fixed.shape[1])))
        yield np.hstack([fixed, face @ mixed])
        yield orthonormalise(rng.standard_normal(leading.shape))


def _solve_in_subspaces(
    problem: RangeProblem, joint: JointRange, *, tol: float, max_iter: int, rng: np.random.Generator
) -> SolverResult:
    span, found = _Span(joint), Incumbent(problem, joint)
    fantope = None if joint.n_matrices == 2 and problem.normalised else _settle_weights(problem, span, found, tol)
    for _ in found.steps(-np.inf, _SUBSPACE_STEPS):
        if joint.n_matrices == 2 and problem.normalised:
            inner = _solve_pair(problem, span.range, tol=0.1 * tol, max_iter=max_iter)
        else:
            inner = _solve_many(problem, span.range, fantope, tol=0.1 * tol, rng=rng)
        fantope = None
        inner = _lifted(inner, span.basis)
        point, bound = _visit(problem, span, found, inner.weights)
        # If the gap is due to the rank rather than to missing vectors, more vectors do not help.
        settled = inner.lower_bound - bound <= 0.2 * tol
        _log.info("subspace: value %.9g, bound %.9g, gap %.3g", inner.objective, bound, inner.objective - bound)
        if settled or not span.extend(point):
            break
    found.bound = problem.bound(found.weights, joint.proven_support(span.supporting))
    if not np.isfinite(found.bound) and joint.forms_matrices:  # the iterative eigensolver missed a leading eigenvector
        return _solve_dense(problem, joint, tol=tol, max_iter=max_iter, rng=rng)
    found.try_basis(problem.value(joint.captured(inner.basis)), inner.basis)
    return found.result(tol, Status.MAX_ITER if inner.converged else inner.status, inner.relaxed)


def _settle_weights(problem: RangeProblem, span: _Span, found: Incumbent, tol: float) -> FantopeSolution:
    """Extend the span until it contains what the relaxation needs; its weights are only as accurate as the span."""
    accuracy = _FIRST_ACCURACY
    for _ in found.steps(-np.inf, _SUBSPACE_STEPS):
        fantope = solve_fantope(problem, span.range, tol=_RELAXATION_SHARE * accuracy)
        weights = fantope.weights / (fantope.weights.sum() if problem.normalised else 1.0)
        point, bound = _visit(problem, span, found, weights)
        missing = problem.bound(weights, span.range.support(weights)) - bound
        settled = accuracy <= 0.1 * tol and missing <= 0.2 * tol
        if settled or not (span.extend(point) or accuracy > 0.1 * tol):
            break
        accuracy = min(accuracy, max(0.1 * tol, _ACCURACY_AHEAD * missing))
    return fantope


def _visit(problem: RangeProblem, span: _Span, found: Incumbent, weights: np.ndarray) -> tuple[RangePoint, float]:
    """The oracle at these weights, near the last point, and the bound it gives."""
    point = span.joint.point(weights, start=np.hstack([span.last.basis, span.last.below]))
    bound = problem.bound(weights, point.support)
    span.last = point
    if found.try_bound(bound, point):
        span.supporting = point
    _log.info("subspace of %d dimensions: bound %.9g", span.range.size, bound)
    return point, bound


class _Span:
    """An orthonormal basis of leading eigenvectors found so far, and the joint range of the subspaces of their span."""

    def __init__(self, joint: JointRange) -> None:
        self.joint, k = joint, joint.n_matrices
        # The search between two matrices visits both ends.
        first = [joint.vertex(0), joint.vertex(1)] if k == 2 else [joint.point(np.full(k, 1.0 / k))]
        self.last = self.supporting = first[0]
        self.basis = np.zeros((joint.size, 0))
        self._forms = np.zeros((joint.base.n_matrices, 0, 0))
        for point in first:
            self.extend(point)

    def extend(self, point: RangePoint) -> bool:
        """Add the eigenvectors of a point; False if there is nothing to add."""
        before = self.basis.shape[1]
        self.basis = extend_basis(self.basis, np.hstack([point.basis, point.below]))
        new = self.basis[:, before:]
        if not new.shape[1]:
            return False
        width = self.basis.shape[1]
        forms = np.empty((len(self._forms), width, width))
        forms[:, :before, :before] = self._forms
        forms[:, :, before:] = self.basis.T @ self.joint.base.images(new)
        forms[:, before:, :before] = forms[:, :before, before:].transpose(0, 2, 1)
        forms[:, before:, before:] += forms[:, before:, before:].transpose(0, 2, 1)
        forms[:, before:, before:] *= 0.5
        self._forms = forms
        self.range = self.joint.within(forms)
        return True


def _lifted(inner: SolverResult, span: np.ndarray) -> SolverResult:
    """The result found in a subspace, expressed in the full space."""
    relaxed = inner.relaxed and RelaxedSolution(span @ inner.relaxed.basis, inner.relaxed.eigenvalues)
    return dataclasses.replace(inner, basis=span @ inner.basis, relaxed=relaxed)
