"""The default solver: an exact search over the weights, certified by the dual bound.

Small problems are solved directly. Large ones are solved in the span of the leading eigenvectors found so far. One
full-size oracle call at the weights found there gives the bound and, if the gap does not close, the missing vectors
(a subspace method; it converges superlinearly because the model interpolates the value and gradient of phi).
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator, Sequence

import numpy as np

from fairpca.joint_range import Incumbent, JointRange, RangePoint
from fairpca.linalg import extend_basis, orthonormalise, scipy_threads_only
from fairpca.protocols import RangeProblem, RelaxedSolution, SolverResult, Status
from fairpca.solvers.range.dual_two import solve_pair
from fairpca.solvers.range.fantope import solve_fantope
from fairpca.solvers.range.rounding import reduce_rank
from fairpca.solvers.range.subspace_sqp import refine_subspace

__all__ = ["minimise_on_range"]

_log = logging.getLogger(__name__)

#: The subspace method pays off if the full problem is this many times larger than the first subspace ...
_REDUCTION = 3
#: ... and larger than this.
_SMALL = 100
_SUBSPACE_STEPS = 30
#: Number of random roundings tried if the relaxed optimum has rank above d: at least, and at most, ...
_ROUNDINGS = (8, 100)
#: ... and in between this number of multiplications, divided by those of one product of all matrices with a basis.
_ROUNDING_WORK = 1e7
#: Roundings end if this many of them led to the same best value, up to this share of the gap.
_AGREEING, _SAME = 3, 1e-3


def minimise_on_range(
    problem: RangeProblem,
    joint: JointRange,
    vertices: Sequence[RangePoint],
    *,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
) -> SolverResult:
    """Minimise F(c(V)) over d-dimensional subspaces; ``vertices`` are the optima of each matrix alone."""
    if joint.n_matrices == 1:
        return _single(problem, joint, vertices[0])
    width = sum(point.basis.shape[1] + point.below.shape[1] for point in vertices)
    if joint.size <= max(_SMALL, _REDUCTION * width):
        return _solve_dense(problem, joint, vertices, tol=tol, max_iter=max_iter, rng=rng)
    with scipy_threads_only():
        return _solve_in_subspaces(problem, joint, vertices, tol=tol, max_iter=max_iter, rng=rng)


def _single(problem: RangeProblem, joint: JointRange, point: RangePoint) -> SolverResult:
    value, relaxed = problem.value(point.captured), RelaxedSolution(point.basis, np.ones(joint.dimension))
    return SolverResult(point.basis, value, value, np.ones(1), Status.OPTIMAL, 0, joint.calls, relaxed)


def _solve_dense(
    problem: RangeProblem,
    joint: JointRange,
    vertices: Sequence[RangePoint] | None = None,
    *,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
) -> SolverResult:
    if joint.n_matrices == 2:
        return solve_pair(problem, joint, tol=tol, max_iter=max_iter)
    return _solve_many(problem, joint, vertices or joint.vertices(), tol=tol, rng=rng)


def _solve_many(
    problem: RangeProblem,
    joint: JointRange,
    vertices: Sequence[RangePoint],
    *,
    tol: float,
    rng: np.random.Generator,
) -> SolverResult:
    """Three or more matrices: the relaxation gives the bound, and rounding the best subspace of dimension d."""
    fantope = solve_fantope(problem, joint, tol=0.1 * tol)
    found = Incumbent(problem, joint)
    found.n_iter = fantope.n_iter

    def try_weights(weights: np.ndarray) -> None:
        found.try_point(joint.point(weights / weights.sum() if problem.normalised else weights))

    try_weights(fantope.weights)
    for vertex in vertices:
        found.try_point(vertex)
    _log.info("relaxation of %d matrices: bound %.9g", joint.n_matrices, found.bound)
    wanted = _prescribed(problem, fantope.weights, found.bound)
    relaxed = reduce_rank(joint.matrices, fantope.vectors, fantope.eigenvalues, wanted)
    agreeing = 0
    for start in _roundings(relaxed, fantope.vectors[:, : joint.dimension], joint, rng):
        if found.gap <= tol or agreeing == _AGREEING:
            break
        end = refine_subspace(problem, joint, start, fantope.weights, to_beat=found.value - tol)
        agreeing = _count_agreeing(agreeing, end.value, found)
        _log.info("rounding: value %.9g after %d steps, best %.9g", end.value, end.n_iter, min(end.value, found.value))
        if found.try_basis(end.value, end.basis):
            try_weights(end.multipliers)
            try_weights(np.where(end.multipliers > 1e-7 * end.multipliers.max(), end.multipliers, 0.0))
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
    missing = d - fixed.shape[1]
    if not 0 < missing < face.shape[1]:
        return
    affordable = _ROUNDING_WORK / (joint.n_matrices * joint.size**2 * d)
    for _ in range(int(np.clip(affordable, *_ROUNDINGS)) // 2):
        mixed = face @ orthonormalise(rng.standard_normal((face.shape[1], missing)))
        yield np.hstack([fixed, mixed])
        yield orthonormalise(rng.standard_normal(leading.shape))


def _solve_in_subspaces(
    problem: RangeProblem,
    joint: JointRange,
    vertices: Sequence[RangePoint],
    *,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
) -> SolverResult:
    columns = np.hstack([block for point in vertices for block in (point.basis, point.below)])
    span = orthonormalise(extend_basis(columns[:, :1], columns[:, 1:]))
    found = Incumbent(problem, joint)
    for _ in found.steps(-np.inf, _SUBSPACE_STEPS):
        inner = _solve_dense(problem, joint.restrict(span), tol=0.1 * tol, max_iter=max_iter, rng=rng)
        inner = _lifted(inner, span)
        point = joint.point(inner.weights, start=inner.basis)
        bound = problem.bound(inner.weights, point.support)
        if found.try_bound(bound, point):
            supporting = point
        wider = extend_basis(span, np.hstack([point.basis, point.below]))
        # If the gap is due to the rank rather than to missing vectors, more vectors do not help.
        if inner.lower_bound - bound <= 0.2 * tol or wider.shape[1] == span.shape[1]:
            break
        span = wider
    found.bound = problem.bound(found.weights, joint.proven_support(supporting))
    if not np.isfinite(found.bound):  # the iterative eigensolver missed a leading eigenvector
        return _solve_dense(problem, joint, tol=tol, max_iter=max_iter, rng=rng)
    found.try_basis(problem.value(joint.captured(inner.basis)), inner.basis)
    return found.result(tol, Status.MAX_ITER if inner.converged else inner.status, inner.relaxed)


def _lifted(inner: SolverResult, span: np.ndarray) -> SolverResult:
    """The result found in a subspace, expressed in the full space."""
    relaxed = inner.relaxed and RelaxedSolution(span @ inner.relaxed.basis, inner.relaxed.eigenvalues)
    return dataclasses.replace(inner, basis=span @ inner.basis, relaxed=relaxed)
