"""The joint range of symmetric matrices: what a d-dimensional subspace captures of each of them.

For weights w of any sign, ``max_P <sum_a w_a A_a, P>`` over rank-d projectors (or their convex hull, the Fantope)
is attained at the leading eigenvectors. Everything a moment-based method needs is this oracle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairpca.linalg import eigenvalue_sum_bound, top_eigenpairs

__all__ = ["JointRange", "RangePoint", "Spectrum"]

#: Extra eigenpairs below the cut that iterative calls ask for: they show ties and feed the subspace model.
_EXTRA = 3


@dataclass(frozen=True)
class RangePoint:
    """A point of the joint range that supports it in the direction ``weights``."""

    weights: np.ndarray
    support: float
    captured: np.ndarray
    basis: np.ndarray
    below: np.ndarray
    curvature: np.ndarray | None = None


@dataclass(frozen=True)
class Spectrum:
    """Full eigendecomposition of the weighted sum, descending, and the matrices in its basis."""

    values: np.ndarray
    vectors: np.ndarray
    rotated: np.ndarray


class JointRange:
    """Symmetric matrices of shape (k, p, p) and the dimension d of the subspaces."""

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

    def combine(self, weights: np.ndarray) -> np.ndarray:
        used = np.flatnonzero(weights)
        if len(used) == 1 and weights[used[0]] == 1.0:
            return self.matrices[used[0]]
        return np.tensordot(weights, self.matrices, axes=1)

    def captured(self, basis: np.ndarray) -> np.ndarray:
        """``c_a = <A_a, V V^T>``."""
        return np.einsum("pi,api->a", basis, self.matrices @ basis)

    def point(self, weights: np.ndarray, *, second_order: bool = False, start: np.ndarray | None = None) -> RangePoint:
        """The oracle: one eigenproblem."""
        self.calls += 1
        weights = np.asarray(weights, dtype=float)
        d = self.dimension
        count = self.size if second_order else min(self.size, d + _EXTRA)
        values, vectors = top_eigenpairs(self.combine(weights), count, start=start)
        basis = np.ascontiguousarray(vectors[:, :d])
        images = self.matrices @ basis
        captured = np.einsum("pi,api->a", basis, images)
        curvature = self._curvature(images, values, vectors) if second_order else None
        return RangePoint(weights, float(values[:d].sum()), captured, basis, vectors[:, d:], curvature)

    def proven_support(self, point: RangePoint) -> float:
        """An upper bound on phi(w) that does not trust the eigensolver; infinite if the solver missed something."""
        return eigenvalue_sum_bound(self.combine(point.weights), point.basis)

    def spectrum(self, weights: np.ndarray) -> Spectrum:
        """One full eigenproblem."""
        self.calls += 1
        values, vectors = np.linalg.eigh(self.combine(weights))
        values, vectors = values[::-1], np.ascontiguousarray(vectors[:, ::-1])
        return Spectrum(values, vectors, vectors.T @ self.matrices @ vectors)

    def restrict(self, basis: np.ndarray) -> JointRange:
        """The joint range of subspaces of span(basis): a part of this one, from inside."""
        return JointRange(basis.T @ (self.matrices @ basis), self.dimension)

    def _curvature(self, images: np.ndarray, values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Second derivatives of phi; infinite where eigenvalues tie at the cut."""
        d = self.dimension
        if d == self.size:
            return np.zeros((self.n_matrices, self.n_matrices))
        gaps = values[:d, None] - values[None, d:]
        coupling = images.transpose(0, 2, 1) @ vectors[:, d:]
        tiny = max(1e-15 * max(abs(values[0]), abs(values[-1])), 1e-200)
        return 2.0 * np.einsum("aij,bij,ij->ab", coupling, coupling, 1.0 / np.maximum(gaps, tiny))
