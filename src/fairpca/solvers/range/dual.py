"""The default solver: exact in the weights, certified by the dual bound.

Small problems are solved as they are. Large ones are solved in the span of the leading eigenvectors met so far;
one full-size oracle call at the weights found there gives the bound and, where it does not close, the vectors
that were missing (a subspace method, superlinear because the model interpolates value and gradient of phi).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from fairpca.joint_range import JointRange, RangePoint
from fairpca.linalg import extend_basis, orthonormalise, scipy_threads_only
from fairpca.protocols import RangeProblem, RelaxedSolution, SolverResult, Status
from fairpca.solvers.range.dual_two import solve_pair
from fairpca.solvers.range.fantope import solve_fantope
from fairpca.solvers.range.rounding import reduce_rank
from fairpca.solvers.range.subspace_sqp import refine_subspace

__all__ = ["minimise_on_range"]

#: The subspace method pays when the full problem is this many times larger than the first subspace ...
_REDUCTION = 3
#: ... and not small in itself.
_SMALL = 100
_SUBSPACE_STEPS = 30
#: Random roundings tried where the relaxation is not of rank d.
_ROUNDINGS = 8


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
        return _solve_dense(problem, joint, tol=tol, max_iter=max_iter, rng=rng)
    with scipy_threads_only():
        return _solve_in_subspaces(problem, joint, vertices, tol=tol, max_iter=max_iter, rng=rng)


def _single(problem: RangeProblem, joint: JointRange, point: RangePoint) -> SolverResult:
    value = problem.value(point.captured)
    return SolverResult(point.basis, value, value, np.ones(1), Status.OPTIMAL, 0, joint.calls)


def _solve_dense(
    problem: RangeProblem, joint: JointRange, *, tol: float, max_iter: int, rng: np.random.Generator
) -> SolverResult:
    if joint.n_matrices == 2:
        result = solve_pair(problem, joint, tol=tol, max_iter=max_iter)
        relaxed = RelaxedSolution(result.basis, np.ones(result.basis.shape[1]))
        return dataclasses.replace(result, relaxed=relaxed)
    return _solve_many(problem, joint, tol=tol, rng=rng)


def _solve_many(problem: RangeProblem, joint: JointRange, *, tol: float, rng: np.random.Generator) -> SolverResult:
    """Three matrices or more: the relaxation for the bound, then the best subspace of the wanted rank."""
    fantope = solve_fantope(problem, joint, tol=0.1 * tol)
    record = _Record(problem, joint)
    for weights in (fantope.weights, *np.eye(joint.n_matrices)):
        record.try_weights(weights)
    wanted = _prescribed(problem, fantope.weights, record.bound)
    relaxed = reduce_rank(joint.matrices, fantope.vectors, fantope.eigenvalues, wanted)
    d = joint.dimension
    for start in _roundings(relaxed, fantope.vectors[:, :d], d, rng):
        if record.gap <= tol:
            break
        value, candidate, multipliers = refine_subspace(
            problem, joint, start, fantope.weights, to_beat=record.value - tol
        )
        if record.try_basis(value, candidate):
            record.try_weights(multipliers)
            record.try_weights(np.where(multipliers > 1e-7 * multipliers.max(), multipliers, 0.0))
    return SolverResult(
        basis=record.basis,
        objective=record.value,
        lower_bound=record.bound,
        weights=record.weights,
        status=Status.OPTIMAL if record.gap <= tol else Status.GAP,
        n_iter=fantope.n_iter,
        n_oracle_calls=joint.calls,
        # A subspace that attains the bound is itself an optimum of the relaxation, and the simplest one.
        relaxed=RelaxedSolution(record.basis, np.ones(d)) if record.gap <= tol else relaxed,
    )


def _prescribed(problem: RangeProblem, weights: np.ndarray, bound: float) -> np.ndarray:
    """The captured amounts that optimality prescribes where a weight is positive: a'(w), less F on the simplex."""
    captured = problem.dual(weights)[1] - (bound if problem.normalised else 0.0)
    return np.where(weights > 1e-7 * weights.max(), captured, np.nan)


class _Record:
    """The best subspace and the best bound met so far."""

    def __init__(self, problem: RangeProblem, joint: JointRange) -> None:
        self._problem, self._joint = problem, joint
        self.value, self.bound = np.inf, -np.inf
        self.basis = np.eye(joint.size, joint.dimension)
        self.weights = np.full(joint.n_matrices, 1.0 / joint.n_matrices)

    @property
    def gap(self) -> float:
        return self.value - self.bound

    def try_basis(self, value: float, basis: np.ndarray) -> bool:
        if value < self.value:
            self.value, self.basis = value, basis
            return True
        return False

    def try_weights(self, weights: np.ndarray) -> None:
        """One oracle call: a bound, and a subspace that may be the optimum itself."""
        if self._problem.normalised:
            weights = weights / weights.sum()
        point = self._joint.point(weights)
        self.try_basis(self._problem.value(point.captured), point.basis)
        bound = self._problem.bound(weights, point.support)
        if bound > self.bound:
            self.bound = bound
            self.weights = self._problem.scaled_weights(weights, point.support)


def _roundings(relaxed: RelaxedSolution, leading: np.ndarray, d: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Subspaces of dimension d near the relaxed optimum: the leading ones, then random ones of its face."""
    yield relaxed.basis[:, :d]
    yield leading
    whole = relaxed.eigenvalues > 1 - 1e-6
    fixed, face = relaxed.basis[:, whole], relaxed.basis[:, ~whole]
    missing = d - fixed.shape[1]
    if not 0 < missing < face.shape[1]:
        return
    for _ in range(_ROUNDINGS):
        mixed = face @ orthonormalise(rng.standard_normal((face.shape[1], missing)))
        yield np.hstack([fixed, mixed])


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
    bound, steps = -np.inf, 0
    while True:
        steps += 1
        inner = _solve_dense(problem, joint.restrict(span), tol=0.1 * tol, max_iter=max_iter, rng=rng)
        basis = span @ inner.basis
        point = joint.point(inner.weights, start=basis)
        new_bound = problem.bound(inner.weights, point.support)
        if new_bound > bound:
            bound, weights, supporting = new_bound, inner.weights, point
        wider = extend_basis(span, np.hstack([point.basis, point.below]))
        # Where the gap comes from rank rather than from missing vectors, more vectors do not help.
        missing = inner.lower_bound - new_bound
        if missing <= 0.2 * tol or steps >= _SUBSPACE_STEPS or wider.shape[1] == span.shape[1]:
            break
        span = wider
    bound = problem.bound(weights, joint.proven_support(supporting))
    if not np.isfinite(bound):  # the iterative eigensolver overlooked a leading vector
        return _solve_dense(problem, joint, tol=tol, max_iter=max_iter, rng=rng)
    gap = inner.objective - bound
    relaxed = None
    if inner.relaxed is not None:
        relaxed = RelaxedSolution(span @ inner.relaxed.basis, inner.relaxed.eigenvalues)
    return SolverResult(
        basis=basis,
        objective=problem.value(joint.captured(basis)),
        lower_bound=bound,
        weights=weights,
        status=Status.OPTIMAL if gap <= tol else inner.status if not inner.converged else Status.MAX_ITER,
        n_iter=steps,
        n_oracle_calls=joint.calls,
        relaxed=relaxed,
    )
