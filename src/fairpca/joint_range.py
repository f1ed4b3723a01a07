"""The joint range of symmetric matrices: what a d-dimensional subspace captures of each of them.

For weights w of any sign, ``max_P <sum_a w_a A_a, P>`` over rank-d projectors (or their convex hull, the Fantope)
is attained at the leading eigenvectors. This oracle is all that a moment-based method needs. :class:`Minimax` is the
simplest function to minimise over the joint range.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fairpca.linalg import eigenvalue_sum_bound, leading_sums, top_eigenpairs
from fairpca.protocols import Expansion, RangeProblem, RelaxedSolution, SolverResult, Status

_log = logging.getLogger(__name__)

#: Extra eigenpairs below the d-th that are computed: they reveal ties and enlarge the subspace of the search.
EXTRA = 3


@dataclass(frozen=True)
class RangePoint:
    """A point of the joint range that supports it in the direction ``weights``."""

    weights: np.ndarray
    support: float
    captured: np.ndarray
    basis: np.ndarray
    below: np.ndarray
    values: np.ndarray  # eigenvalues of the basis and of the vectors below


class JointRange:
    """Symmetric matrices of shape (k, p, p) and the dimension d of the subspaces."""

    #: Whether the matrices are small enough to be formed.
    forms_matrices = True

    def __init__(self, matrices: np.ndarray, dimension: int) -> None:
        self.matrices = matrices
        self.dimension = dimension
        self.calls = 0

    @property
    def n_matrices(self) -> int:
        return self.matrices.shape[0]

    @property
    def size(self) -> int:
        return self.matrices.shape[1]

    @functools.cached_property
    def traces(self) -> np.ndarray:
        """``tr A_a``: what all dimensions together capture."""
        return np.einsum("aii->a", self.matrices)

    @property
    def flat(self) -> np.ndarray:
        """The matrices as rows of p^2 entries."""
        return self.matrices.reshape(self.n_matrices, -1)

    def images(self, basis: np.ndarray) -> np.ndarray:
        """``A_a V`` as one product, of shape (k, p, m): much faster than many small ones."""
        stacked = self.matrices.reshape(-1, self.size)
        return (stacked @ basis).reshape(self.n_matrices, self.size, -1)

    def forms(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """``U^T A_a V``, of shape (k, m, n)."""
        rows = self.images(left).transpose(0, 2, 1).reshape(-1, self.size)
        return (rows @ right).reshape(self.n_matrices, left.shape[1], -1)

    def combine(self, weights: np.ndarray) -> np.ndarray:
        used = np.flatnonzero(weights)
        if len(used) == 1 and weights[used[0]] == 1.0:
            return self.matrices[used[0]]
        return (weights @ self.flat).reshape(self.size, self.size)

    @property
    def base(self) -> JointRange:
        """The range of the matrices that these are combinations of: itself, unless it is a :class:`CombinedRange`."""
        return self

    def mixed(self, values: np.ndarray) -> np.ndarray:
        """The combinations of one row of values per matrix of the base."""
        return values

    def inner(self, matrix: np.ndarray) -> np.ndarray:
        """``<A_a, P>`` for a symmetric matrix."""
        return self.flat @ matrix.ravel()

    def captured(self, basis: np.ndarray) -> np.ndarray:
        """``c_a = <A_a, V V^T>``."""
        return self.images(basis).reshape(self.n_matrices, -1) @ basis.ravel()

    def errors(self, basis: np.ndarray) -> np.ndarray:
        """``z_a = tr A_a - c_a``: what V leaves out."""
        return self.traces - self.captured(basis)

    def point(self, weights: np.ndarray, *, start: np.ndarray | None = None, whole: bool = False) -> RangePoint:
        """The oracle: one eigenproblem. If ``whole``, it is solved for all eigenvectors, so none can be missed."""
        self.calls += 1
        weights, d = np.asarray(weights, dtype=float), self.dimension
        count = self.size if whole else min(self.size, d + EXTRA)
        values, vectors = top_eigenpairs(self.combine(weights), count, start=start)
        basis = np.ascontiguousarray(vectors[:, :d])
        return RangePoint(
            weights, float(values[:d].sum()), self.captured(basis), basis, vectors[:, d : d + EXTRA], values
        )

    def support(self, weights: np.ndarray) -> float:
        """``phi(w)`` alone, which takes eigenvalues only."""
        self.calls += 1
        return float(np.linalg.eigvalsh(self.combine(weights))[-self.dimension :].sum())

    @functools.cached_property
    def best(self) -> np.ndarray:
        """The most that can be captured of each matrix alone."""
        if self.n_matrices == 2:
            return np.array([self.vertex(a).support for a in range(2)])
        return leading_sums(self.matrices, self.dimension)[:, -1]

    def vertex(self, a: int) -> RangePoint:
        """The point at which matrix a alone is captured best; found once."""
        if a not in self._vertices:
            unit = np.zeros(self.n_matrices)
            unit[a] = 1.0
            self._vertices[a] = self.point(unit)
        return self._vertices[a]

    @functools.cached_property
    def _vertices(self) -> dict[int, RangePoint]:
        return {}

    def proven_support(self, point: RangePoint) -> float:
        """An upper bound on phi(w) that does not rely on the eigensolver; infinite if it missed an eigenvector."""
        return eigenvalue_sum_bound(self.combine(point.weights), point.basis)

    def spectrum(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All eigenvalues of the weighted sum, descending, and eigenvectors."""
        self.calls += 1
        values, vectors = np.linalg.eigh(self.combine(weights))
        return values[::-1], np.ascontiguousarray(vectors[:, ::-1])

    def within(self, forms: np.ndarray) -> JointRange:
        """The joint range of subspaces of a span, given the forms ``Q^T A_a Q`` of the base in its basis."""
        return JointRange(forms, self.dimension)


class CombinedRange(JointRange):
    """The joint range of combinations ``sum_a slopes_ma A_a`` of few matrices, however many combinations there are."""

    def __init__(self, base: JointRange, slopes: np.ndarray) -> None:
        self._base, self._slopes = base, slopes
        self.dimension, self.calls = base.dimension, 0

    @functools.cached_property
    def matrices(self) -> np.ndarray:  # type: ignore[override]
        return np.tensordot(self._slopes, self._base.matrices, axes=1)

    @property
    def base(self) -> JointRange:
        return self._base

    def mixed(self, values: np.ndarray) -> np.ndarray:
        return self._slopes @ values

    @property
    def n_matrices(self) -> int:
        return len(self._slopes)

    @property
    def size(self) -> int:
        return self._base.size

    def combine(self, weights: np.ndarray) -> np.ndarray:
        return self._base.combine(weights @ self._slopes)

    def inner(self, matrix: np.ndarray) -> np.ndarray:
        return self.mixed(self._base.inner(matrix))

    def captured(self, basis: np.ndarray) -> np.ndarray:
        return self.mixed(self._base.captured(basis))

    def images(self, basis: np.ndarray) -> np.ndarray:
        images = self._base.images(basis)
        return self.mixed(images.reshape(len(images), -1)).reshape(-1, *basis.shape)

    def within(self, forms: np.ndarray) -> CombinedRange:
        return CombinedRange(self._base.within(forms), self._slopes)


class Minimax:
    """F(c) = max_a (offset_a - c_a), the convex function that searches over a joint range themselves rely on."""

    normalised = True

    def __init__(self, offsets: np.ndarray) -> None:
        self.offsets = np.asarray(offsets, dtype=float)

    def value(self, captured: np.ndarray) -> float:
        return float((self.offsets - captured).max())

    def bound(self, weights: np.ndarray, support: float) -> float:
        return float(weights @ self.offsets - support)

    def dual(self, weights: np.ndarray) -> Expansion:
        return Expansion(float(weights @ self.offsets), self.offsets, np.zeros_like(weights))

    def scaled_weights(self, weights: np.ndarray, support: float) -> np.ndarray:
        return weights

    def rescale(self, value: float, scale: float, n_groups: int) -> float:
        return value * scale


class ErrorsView:
    """A problem as a function of the errors z_a = tr A_a - c_a, which is what searches over subspaces descend on.

    The pieces ``offset_a - c_a`` are linear in z; for Nash welfare, which is no maximum, they stand for the -c_a.
    """

    def __init__(self, problem: RangeProblem, traces: np.ndarray) -> None:
        self._problem, self._traces, self._shift = problem, traces, problem.offsets - traces
        self.normalised = problem.normalised

    def pieces(self, errors: np.ndarray) -> np.ndarray:
        return self._shift + errors

    def value(self, errors: np.ndarray) -> float:
        return self._problem.value(self._traces - errors)

    def gradients(self, errors: np.ndarray) -> Any:
        return sparse.identity(len(errors), format="csr")  # there may be thousands of groups

    def guarded(self, errors: np.ndarray) -> np.ndarray:
        return errors

    def cone(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array([1.0, 0.0]), np.array([0.0, 1.0])


class Incumbent:
    """The best subspace and the best bound so far; counts the steps and decides when to stop."""

    def __init__(self, problem: RangeProblem, joint: JointRange) -> None:
        self._problem, self._joint = problem, joint
        self.value, self.bound = np.inf, -np.inf
        self.basis = np.eye(joint.size, joint.dimension)
        self.weights = np.full(joint.n_matrices, 1.0 / joint.n_matrices)
        self._support = 1.0
        self.n_iter = 0

    @property
    def gap(self) -> float:
        return self.value - self.bound

    def steps(self, tol: float, max_iter: int) -> Iterator[int]:
        """Yield step numbers, starting at 1, until the gap closes or ``max_iter`` steps have been taken."""
        while self.gap > tol and self.n_iter < max_iter:
            self.n_iter += 1
            yield self.n_iter
            _log.info("step %d: value %.9g, bound %.9g, gap %.3g", self.n_iter, self.value, self.bound, self.gap)

    def try_basis(self, value: float, basis: np.ndarray) -> bool:
        """Keep the subspace if it is the best so far; return whether it is."""
        if not value < self.value:
            return False
        self.value, self.basis = value, basis
        return True

    def try_bound(self, bound: float, point: RangePoint) -> bool:
        """Keep the bound of an oracle point if it is the best so far; return whether it is."""
        if not bound > self.bound:
            return False
        self.bound, self.weights, self._support = bound, point.weights, point.support
        return True

    def try_point(self, point: RangePoint) -> bool:
        """Try both the subspace of an oracle point, which may itself be optimal, and its bound."""
        better = self.try_basis(self._problem.value(point.captured), point.basis)
        return self.try_bound(self._problem.bound(point.weights, point.support), point) or better

    def result(self, tol: float, otherwise: Status, relaxed: RelaxedSolution | None = None) -> SolverResult:
        """The result, with the status OPTIMAL if the gap closed and ``otherwise`` if not.

        A subspace that attains the bound also solves the relaxation.
        """
        closed = self.gap <= tol
        return SolverResult(
            basis=self.basis,
            objective=self.value,
            lower_bound=self.bound,
            weights=self._problem.scaled_weights(self.weights, self._support),
            status=Status.OPTIMAL if closed else otherwise,
            n_iter=self.n_iter,
            n_oracle_calls=self._joint.calls,
            relaxed=RelaxedSolution(self.basis, np.ones(self.basis.shape[1])) if closed or relaxed is None else relaxed,
        )
