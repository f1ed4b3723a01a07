"""Distributional parity: the squared maximum mean discrepancy between projected groups (Lee et al. 2022).

All that matters of the rows projected by V are the k x k kernel means M of :mod:`fairpca.moments.kernel_means`:

``MMD^2(a, b) = M_aa + M_bb - 2 M_ab``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca.moments._grouped_sample import GroupedSample, KernelMeans
from fairpca.moments.fourier import FourierKernel
from fairpca.moments.kernel_means import Kernel
from fairpca.protocols import Curvature


def all_pairs(n_groups: int) -> np.ndarray:
    """Index pairs a < b, of shape (n_pairs, 2)."""
    return np.stack(np.triu_indices(n_groups, 1), axis=1)


def pair_discrepancies(values: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """``MMD^2(a, b) = M_aa + M_bb - 2 M_ab`` for each pair; never below zero, which rounding could."""
    a, b = pairs.T
    return np.maximum(values[a, a] + values[b, b] - 2 * values[a, b], 0.0)


@dataclass(frozen=True)
class RandomLevels:
    """The mean of ``MMD^2`` (biased) over random assignments of the rows to groups of the same sizes, for each pair.

    With signed weights c that sum to zero, a random permutation has ``E c_i c_j = -sum c^2 / (n (n - 1))``, hence
    ``E c^T K c = (sum_i c_i^2) (1 - mean of K_ij over i != j)``; no permutation need be drawn. With weights w of the
    rows, which stay with them, ``sum c^2`` is ``n (1/n_a + 1/n_b) sum w^2 / (sum w)^2`` to first order, and the mean of
    K is weighted: right where weights do not depend on what the rows are. It is an affine function of the kernel means,
    ``constant - <slopes, M>``, with slopes of shape (n_pairs, 2, 2) for the entries of each pair. ``floor`` keeps it
    positive where all rows coincide.
    """

    pairs: np.ndarray
    constants: np.ndarray
    slopes: np.ndarray
    floor: float = 0.0

    @classmethod
    def of(cls, sample: GroupedSample, pairs: np.ndarray, floor: float = 0.0) -> RandomLevels:
        counts = sample.counts.astype(float)[pairs]
        shares = counts if sample.shares is None else sample.shares[pairs]
        shares = shares / shares.sum(axis=1, keepdims=True)
        squares = (sample.weight_squares[pairs] * shares**2).sum(axis=1)  # sum w^2 / (sum w)^2
        constants = counts.sum(axis=1) * squares * (1.0 / counts).sum(axis=1) / (1.0 - squares)
        return cls(pairs, constants, constants[:, None, None] * shares[:, :, None] * shares[:, None, :], floor)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """The level of each pair."""
        return np.maximum(self._plain(values), self.floor)

    def slopes_at(self, values: np.ndarray) -> np.ndarray:
        """Minus the derivative of each level by the kernel means of its pair."""
        return self.slopes * (self._plain(values) > self.floor)[:, None, None]

    def _plain(self, values: np.ndarray) -> np.ndarray:
        blocks = values[self.pairs[:, :, None], self.pairs[:, None, :]]
        return self.constants - (self.slopes * blocks).sum(axis=(1, 2))


def random_level(sample: GroupedSample, values: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """The :class:`RandomLevels` at these kernel means."""
    return RandomLevels.of(sample, pairs)(values)


@dataclass(frozen=True)
class DiscrepancyPoint:
    """Loss and constraints at a frame; gradients of any combination on demand.

    ``slopes`` of shape (n_pairs, 2, 2) are the derivatives of the constraints by the kernel means of each pair.
    """

    loss: float
    loss_gradient: np.ndarray
    constraints: np.ndarray
    means: KernelMeans
    pairs: np.ndarray
    slopes: np.ndarray

    def constraint_gradient(self, weights: np.ndarray) -> np.ndarray:
        """Gradient of ``sum_j weights_j h_j``."""
        coefficients = np.zeros_like(self.means.values)
        np.add.at(
            coefficients,
            (self.pairs[:, :, None], self.pairs[:, None, :]),
            weights[:, None, None] * self.slopes,
        )
        return self.means.gradient(coefficients)


class DiscrepancyProblem:
    """``min -<S, V V^T> / tr S`` subject to ``MMD^2(a, b) <= limit(a, b)`` for the given pairs of groups.

    The constraints are ``MMD^2(a, b) * tolerance / limit(a, b)``, so that one tolerance serves all pairs: the largest
    limit, unless it is given. Without ``limits`` they are MMD^2 itself. Limits that are :class:`RandomLevels` change
    with V, and ``tolerance`` is a unit only.

    ``invariant`` tells that value and constraints depend on the subspace only; random features do not quite.
    ``features`` (and ``curvature_sample``, if fewer rows will do) are those of the curvature model, without
    which there is none. ``noise`` is the error of the kernel means where they are not computed in double
    precision.
    """

    def __init__(
        self,
        sample: GroupedSample,
        covariance: np.ndarray,
        kernel: Kernel,
        pairs: np.ndarray,
        features: FourierKernel | None = None,
        curvature_sample: GroupedSample | None = None,
        noise: float = 0.0,
        limits: np.ndarray | RandomLevels | None = None,
        tolerance: float | None = None,
    ) -> None:
        self._sample, self._kernel, self._pairs = sample, kernel, pairs
        self._levels = limits if isinstance(limits, RandomLevels) else None
        # Of the frame evaluated last, if they change; a curvature model takes them from there.
        self._factors = np.ones(len(pairs))
        if limits is not None and not isinstance(limits, RandomLevels):
            tolerance = float(limits.max()) if tolerance is None else tolerance
            self._factors = tolerance / limits
        self.tolerance = 1.0 if tolerance is None else tolerance
        self._curvature_sample: Any = sample if curvature_sample is None else curvature_sample
        total = float(np.trace(covariance))
        self._covariance = covariance / (total if total > 0 else 1.0)
        self.invariant = not isinstance(kernel, FourierKernel)
        self.noise = noise
        self._features = features
        self.n_evaluations = 0

    @property
    def n_rows(self) -> int:
        return self._sample.n_rows

    def evaluate(self, basis: np.ndarray) -> DiscrepancyPoint:
        self.n_evaluations += 1
        image = self._covariance @ basis
        means = self._kernel(self._sample, basis, True)
        discrepancies = pair_discrepancies(means.values, self._pairs)
        slopes = np.tile([[1.0, -1.0], [-1.0, 1.0]], (len(self._pairs), 1, 1))
        if self._levels is not None:
            levels = self._levels(means.values)
            self._factors = self.tolerance / levels
            slopes += (discrepancies / levels)[:, None, None] * self._levels.slopes_at(means.values)
        constraints, slopes = discrepancies * self._factors, slopes * self._factors[:, None, None]
        loss = -float(np.vdot(basis, image))
        return DiscrepancyPoint(loss, -2.0 * image, constraints, means, self._pairs, slopes)

    def curvature(self, basis: np.ndarray) -> Curvature | None:
        """Gauss-Newton: h is a squared norm of a difference of feature means, so J^T J with their derivative.

        What is left out is proportional to that difference, which the constraint makes small.
        """
        if self._features is None:
            return None
        slopes = self._features.mean_derivatives(self._curvature_sample, basis)
        a, b = self._pairs.T
        frequencies = np.tile(self._features.frequencies, 2)
        differences = (slopes[a] - slopes[b]) * np.sqrt(self._factors)[:, None, None]
        jacobian = differences[:, :, None, :] * frequencies  # (pairs, p, d, 2 features)
        jacobian = np.moveaxis(jacobian, 0, -1).reshape(basis.size, -1)
        if jacobian.shape[0] <= jacobian.shape[1]:
            values, vectors = np.linalg.eigh(jacobian @ jacobian.T)
        else:
            values, rotation = np.linalg.eigh(jacobian.T @ jacobian)
            kept = values > 1e-14 * values[-1]
            values = values[kept]
            vectors = jacobian @ (rotation[:, kept] / np.sqrt(values))
        return Curvature(2.0 * np.maximum(values, 0.0), vectors)
