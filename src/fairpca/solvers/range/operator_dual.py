"""For very many features: the search over weights with an oracle that needs products with vectors only.

The oracle is a block Lanczos method on the weighted sum, started from the last point; the search itself takes place in
the span of what it finds, as with matrices. The most that can be captured of each matrix alone comes from that matrix's
own products. No p x p matrix is ever formed. Bounds come from :mod:`fairpca.solvers.range.krylov`.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from fairpca.joint_range import JointRange, RangePoint
from fairpca.linalg import orthonormalise
from fairpca.protocols import MakeProblem, MomentOperators, RangeSolution, RelaxedSolution, SolverResult, Status
from fairpca.solvers.range.dual import minimise_on_range
from fairpca.solvers.range.krylov import Apply, Krylov

#: Shares of the tolerance: for the search, for each proof, and for what an oracle point may lack.
_SEARCH, _PROOF, _POINT = 0.2, 0.3, 0.02
_MOST_STEPS = 500


class OperatorRange(JointRange):
    """The joint range of matrices divided by ``scale``, one or one each, that are known by their products only."""

    forms_matrices = False

    def __init__(
        self,
        operators: MomentOperators,
        dimension: int,
        *,
        scale: float | np.ndarray,
        tol: float,
        max_iter: int,
        rng: np.random.Generator,
    ) -> None:
        self._operators, self._scale = operators, np.broadcast_to(scale, operators.n_matrices)
        self.dimension, self.calls = dimension, 0
        self._tol, self._max_iter, self._rng = tol, max_iter, rng

    @property
    def n_matrices(self) -> int:
        return self._operators.n_matrices

    @property
    def size(self) -> int:
        return self._operators.size

    @functools.cached_property
    def matrices(self) -> np.ndarray:  # type: ignore[override]
        """Only where d is a large part of p."""
        return self.images(np.eye(self.size))

    def images(self, basis: np.ndarray) -> np.ndarray:
        return self._operators.images(basis) / self._scale[:, None, None]

    def point(self, weights: np.ndarray, *, start: np.ndarray | None = None, whole: bool = False) -> RangePoint:
        return self._point(weights, self._converged(weights, start))

    def _point(self, weights: np.ndarray, krylov: Krylov) -> RangePoint:
        values, vectors = krylov.leading()
        basis = np.ascontiguousarray(vectors[:, : self.dimension])
        below, unknown = vectors[:, self.dimension :], np.full(self.n_matrices, np.nan)
        return RangePoint(weights, krylov.support(), unknown, basis, below, values)

    def proven_support(self, point: RangePoint) -> float:
        krylov = self._converged(point.weights, np.hstack([point.basis, point.below]))
        return krylov.prove(_PROOF * self._tol, self._max_iter)

    @functools.cached_property
    def _vertices(self) -> dict[int, RangePoint]:
        return self._ends[0]

    @property
    def best(self) -> np.ndarray:
        """Sums of Ritz values, which are never too large."""
        return np.array([self._vertices[a].support for a in range(self.n_matrices)])

    @property
    def most(self) -> np.ndarray:
        """Upper bounds on what can be captured of each matrix alone; infinite where there is no proof."""
        return self._ends[1]

    @functools.cached_property
    def _ends(self) -> tuple[dict[int, RangePoint], np.ndarray]:
        points, most = {}, []
        for a, unit in enumerate(np.eye(self.n_matrices)):
            krylov = self._converged(unit, None)
            most.append(krylov.prove(_PROOF * self._tol, self._max_iter))
            points[a] = self._point(unit, krylov)
        return points, np.array(most)

    def _converged(self, weights: np.ndarray, start: np.ndarray | None) -> Krylov:
        scaled = weights / self._scale

        def apply(vectors: np.ndarray) -> np.ndarray:
            self.calls += 1  # products with all matrices together
            return self._operators.combined(scaled, vectors)

        krylov = Krylov(apply, self.size, self.dimension, self._rng)
        krylov.begin(start)
        krylov.converge(_POINT * self._tol, self._max_iter)
        return krylov


def minimise_on_operators(
    make_problem: MakeProblem,
    operators: MomentOperators,
    dimension: int,
    *,
    scale: float | np.ndarray,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
) -> RangeSolution:
    """Minimise F(c(V)) for the matrices divided by ``scale``, one or one each; ``make_problem`` takes the b_a.

    The search uses sums of Ritz values for the b_a. These are never too large, so its lower bound holds for the exact
    b_a. The objective is computed with upper bounds on the b_a, so it is never too small, and the gap covers both.
    """
    joint = OperatorRange(operators, dimension, scale=scale, tol=tol, max_iter=max_iter, rng=rng)
    result = minimise_on_range(make_problem(joint.best), joint, tol=_SEARCH * tol, max_iter=max_iter, rng=rng)
    captured, proven = joint.captured(result.basis), np.isfinite(joint.most).all()
    best = np.where(np.isfinite(joint.most), joint.most, joint.best)
    objective = make_problem(best).value(captured)
    bound = result.lower_bound if proven else -np.inf
    closed = objective - bound <= tol
    unproven = Status.UNPROVEN if result.status in (Status.OPTIMAL, Status.MAX_ITER) else result.status
    relaxed = result.relaxed or RelaxedSolution(result.basis, np.ones(dimension))
    return RangeSolution(
        dataclasses.replace(
            result, objective=objective, lower_bound=bound, status=Status.OPTIMAL if closed else unproven
        ),
        best,
        captured,
        joint.captured(relaxed.basis * np.sqrt(relaxed.eigenvalues)),
    )


def leading_of_operator(
    apply: Apply, size: int, dimension: int, *, tol: float, rng: np.random.Generator, max_iter: int = _MOST_STEPS
) -> SolverResult:
    """The leading eigenvectors of a positive semidefinite matrix, with minus the sum of their values as objective."""
    krylov = Krylov(apply, size, dimension, rng)
    krylov.begin()
    bound = -krylov.prove(tol, max_iter)
    basis = orthonormalise(krylov.leading()[1][:, :dimension])
    closed = -krylov.support() - bound <= tol
    return SolverResult(
        basis, -krylov.support(), bound, np.zeros(0), Status.OPTIMAL if closed else Status.UNPROVEN, 1, krylov.products
    )


def best_of_operators(
    operators: MomentOperators, dimension: int, *, tol: float, rng: np.random.Generator
) -> np.ndarray:
    """The most that can be captured of each matrix alone, to about ``tol``; never too large."""
    joint = OperatorRange(operators, dimension, scale=1.0, tol=tol / _POINT, max_iter=_MOST_STEPS, rng=rng)
    return np.array([joint.point(unit).support for unit in np.eye(operators.n_matrices)])
