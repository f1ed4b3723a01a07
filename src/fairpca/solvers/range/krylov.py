"""Leading eigenvectors of a matrix that is known only by its products, and a proof that none was missed.

Let Q be an orthonormal basis of a subspace, and write the matrix B in the basis (Q, its complement) as
``[[T, R^T], [R, N]]``. T and R are known from the products ``B Q``. With ``nu >= lambda_max(N)`` and
``s = lambda_d(T) - nu > 0`` (see :func:`fairpca.linalg.block_sum_bound`), the sum of the d largest eigenvalues of B is

    phi <= sum_{i <= d} max(lambda_i(T + R^T R / s), lambda_d(T)),

which exceeds the sum found in the subspace only by a term quadratic in the residuals. The number nu comes from a power
iteration on Gaussian vectors drawn after Q and B are fixed: if u is the leading eigenvector of N, then
``||N^q g|| >= lambda_max(N)^q |u . g|``, and the probability that all of r vectors have ``|u . g| <= 1/10`` is at most
``(0.08)^r``. With r = 10 the bound fails with a probability below 1e-10 (after Halko, Martinsson and Tropp 2011,
Lemma 4.1). The same argument holds for any polynomial in N; Chebyshev polynomials are used where powers are too slow.

The subspace grows by the residuals of the leading Ritz vectors, which is a block Lanczos method.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fairpca.linalg import block_sum_bound, extend_basis

#: Products of a symmetric positive semidefinite matrix with the columns of an array.
Apply = Callable[[np.ndarray], np.ndarray]

#: Number of Ritz vectors refined beyond the d wanted ones: they widen the spectral gap that governs convergence.
_EXTRA = 3
#: Number of Gaussian vectors in the proof, and the inner product with u that at least one of them must exceed.
_PROBES = 10
_LEAST_PRODUCT = 0.1
#: Largest power that is tried first, and the largest degree of the polynomials tried after that.
_POWERS = 4
_PROOF_STEPS = 60
#: The proof stops refining nu once it is below this share of the d-th eigenvalue.
_CLEAR = 0.6
#: Numbers that basis and images may hold together (32 MB); the subspace then begins anew with its leading half.
_MOST_NUMBERS = 4_000_000
#: Number of columns of the subspace in attempts at a proof, in units of the number of Ritz vectors refined.
_PROOF_WIDTHS = (4, 8, 16)
#: Residuals below this share of the largest eigenvalue are rounding.
_ROUNDING = 1e-9


class Krylov:
    """A growing orthonormal basis Q, the products B Q, and the Ritz pairs of the matrix B."""

    def __init__(self, apply: Apply, size: int, dimension: int, rng: np.random.Generator) -> None:
        self._matrix, self._rng, self.dimension, self.products = apply, rng, dimension, 0
        self.count = min(size, dimension + _EXTRA)
        self.part = Part(np.zeros((size, 0)), np.zeros((size, 0)))

    @property
    def basis(self) -> np.ndarray:
        return self.part.basis

    def _apply(self, vectors: np.ndarray) -> np.ndarray:
        self.products += 1
        return self._matrix(vectors)

    def begin(self, start: np.ndarray | None = None) -> None:
        """Random directions or, if given, vectors near the leading ones, and one random direction."""
        shape = (len(self.basis), self.count if start is None else 1)
        random = self._rng.standard_normal(shape)
        self.grow(self._apply(random) if start is None else np.hstack([start, random]))

    def grow(self, vectors: np.ndarray) -> bool:
        """Add directions; False if there is nothing to add."""
        size, width = self.basis.shape
        if (width + vectors.shape[1]) * 2 * size > max(_MOST_NUMBERS, 8 * self.count * size):
            self.part = self.part.leading(max(width // 2, self.count))
            width = self.basis.shape[1]
        basis = extend_basis(self.basis, vectors)
        if basis.shape[1] == width:
            return False
        self.part = Part(basis, np.hstack([self.part.images, self._apply(basis[:, width:])]))
        return True

    def converge(self, missing: float, max_steps: int) -> bool:
        """Grow until the sum of the d largest eigenvalues lacks no more than about ``missing``; False if it may."""
        for _ in range(max_steps):
            residuals, lacking = self._residuals()
            if lacking <= missing or not residuals.shape[1]:
                return True
            if not self.grow(residuals):
                return True
        return False

    def _residuals(self) -> tuple[np.ndarray, float]:
        """Residuals of the leading Ritz vectors, of unit length, and the part of the sum they may lack."""
        d = self.dimension
        values, vectors = self.part.values[::-1][: self.count], self.part.vectors[:, ::-1][:, : self.count]
        residuals = self.part.images @ vectors - self.basis @ (vectors * values)
        sizes = np.linalg.norm(residuals, axis=0)
        if len(values) < self.count:
            return residuals / np.maximum(sizes, np.finfo(float).tiny), np.inf
        # What a residual adds to its eigenvalue is at most its square divided by the distance to those outside.
        gaps = np.maximum(values[:d] - values[-1], max(1e-3 * values[0], np.finfo(float).tiny))
        large = sizes > _ROUNDING * max(values[0], np.finfo(float).tiny)
        return residuals[:, large] / sizes[large], float((sizes[:d] ** 2 / gaps).sum())

    def support(self) -> float:
        """The sum of the d largest Ritz values, which is never too large."""
        return float(self.part.values[-self.dimension :].sum())

    def leading(self) -> tuple[np.ndarray, np.ndarray]:
        """The largest Ritz values, descending, and their vectors."""
        return self.part.values[::-1][: self.count], self.basis @ self.part.vectors[:, ::-1][:, : self.count]

    def proven_support(self, accepted: float) -> float:
        """The bound from the module docstring; infinite if the complement cannot be shown to be small.

        The whole subspace leaves little outside, but its last Ritz vectors have large residuals. The leading Ritz
        vectors alone leave more outside, but their residuals are negligible. For a flat spectrum, only the latter may
        succeed.
        """
        last = float(self.part.values[-self.dimension])
        bound = self.part.support_bound(self.dimension, bound_outside(self._apply, self.part, last, self._rng))
        if bound - self.support() > accepted:
            leading = self.part.leading(self.count)
            outside = bound_outside(self._apply, leading, last, self._rng)
            bound = min(bound, leading.support_bound(self.dimension, outside))
        return bound

    def prove(self, accepted: float, max_steps: int) -> float:
        """The bound, after steps that make it exceed the sum by no more than ``accepted``, if that is possible.

        A wider subspace leaves less outside, which shortens the proof.
        """
        bound = np.inf
        for width in _PROOF_WIDTHS:
            self.converge(0.1 * accepted, max_steps)
            before = -1  # it may begin anew before it is as wide as this
            while before < self.basis.shape[1] < width * self.count:
                before = self.basis.shape[1]
                self.grow(self._residuals()[0])
            bound = min(bound, self.proven_support(accepted))
            if bound - self.support() <= accepted:
                break
        return bound


class Part:
    """The matrix B relative to an orthonormal basis Q: T = Q^T B Q and the residual R = B Q - Q T."""

    def __init__(self, basis: np.ndarray, images: np.ndarray) -> None:
        self.basis, self.images = basis, images
        form = basis.T @ images
        self._form = 0.5 * (form + form.T)
        self.values, self.vectors = np.linalg.eigh(self._form)

    def leading(self, count: int) -> Part:
        """The same for the leading Ritz vectors alone."""
        vectors = self.vectors[:, -count:]
        return Part(self.basis @ vectors, self.images @ vectors)

    def support_bound(self, dimension: int, outside: float) -> float:
        """An upper bound on the sum, given that no eigenvalue of the complement exceeds ``outside``."""
        slack = float(self.values[-dimension]) - outside
        if not slack > 0:
            return np.inf
        residual = self.images - self.basis @ self._form
        return block_sum_bound(self._form, residual, outside, slack, dimension)

    def outside(self, vectors: np.ndarray) -> np.ndarray:
        """Project on the complement, twice to remove rounding errors."""
        vectors = vectors - self.basis @ (self.basis.T @ vectors)
        return vectors - self.basis @ (self.basis.T @ vectors)


def bound_outside(apply: Apply, part: Part, last: float, rng: np.random.Generator) -> float:
    """``nu >= lambda_max(N)``, except with a probability below 1e-10; ``last`` is the d-th Ritz value."""

    def complement(vectors: np.ndarray) -> np.ndarray:
        return part.outside(apply(vectors))

    start = part.outside(rng.standard_normal((len(part.basis), _PROBES)))
    probes, sizes, bound = start, [1.0], np.inf
    for power in range(1, _POWERS + 1):
        probes = complement(probes)
        sizes.append(float(np.linalg.norm(probes, axis=0).max()))
        bound = min(bound, (sizes[-1] / _LEAST_PRODUCT) ** (1.0 / power))
        if bound < _CLEAR * last or not sizes[-1]:
            return bound
    edge = sizes[-1] / sizes[-2]  # near lambda_max(N), from below
    return min(bound, chebyshev_bound(complement, start, edge, last)) if edge < last else bound


def chebyshev_bound(complement: Apply, start: np.ndarray, edge: float, last: float) -> float:
    """The proof with Chebyshev polynomials on [0, edge] instead of powers: beyond ``edge`` they grow faster."""
    before, probes, bound = start, 2.0 / edge * complement(start) - start, np.inf
    for degree in range(1, _PROOF_STEPS + 1):
        growth = max(float(np.linalg.norm(probes, axis=0).max()) / _LEAST_PRODUCT, 1.0)
        bound = min(bound, 0.5 * edge * (1.0 + np.cosh(np.arccosh(growth) / degree)))
        if bound < 0.5 * (edge + last):
            break
        before, probes = probes, 2.0 * (2.0 / edge * complement(probes) - probes) - before
    return bound
