"""Distributional parity: the squared maximum mean discrepancy between projected groups (Lee et al. 2022).

All that matters of the rows projected by V are the k x k kernel means M of :mod:`fairpca.moments.kernel_means`:

``MMD^2(a, b) = M_aa + M_bb - 2 M_ab``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca.moments import GroupedSample
from fairpca.moments.fourier import FourierKernel
from fairpca.moments.kernel_means import Kernel, KernelMeans, PartitionedSample
from fairpca.protocols import Curvature

__all__ = ["DiscrepancyPoint", "DiscrepancyProblem", "all_pairs", "pair_discrepancies", "random_level"]


def all_pairs(n_groups: int) -> np.ndarray:
    """Index pairs a < b, of shape (n_pairs, 2)."""
    return np.stack(np.triu_indices(n_groups, 1), axis=1)


def pair_discrepancies(values: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """``MMD^2(a, b) = M_aa + M_bb - 2 M_ab`` for each pair; never below zero, which rounding could."""
    a, b = pairs.T
    return np.maximum(values[a, a] + values[b, b] - 2 * values[a, b], 0.0)


def random_level(sample: GroupedSample | PartitionedSample, values: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """The mean of ``MMD^2`` (biased) over random assignments of the rows to groups of the same sizes, for each pair.

    With signed weights c that sum to zero, a random permutation has ``E c_i c_j = -sum c^2 / (n (n - 1))``, hence
    ``E c^T K c = (sum_i c_i^2) (1 - mean of K_ij over i != j)``; no permutation need be drawn.
    """
    squares = sample.weight_squares
    counts = sample.counts.astype(float)
    levels = []
    for a, b in pairs:
        pair_counts = counts[[a, b]]
        n = pair_counts.sum()
        total = pair_counts @ values[np.ix_([a, b], [a, b])] @ pair_counts
        off_diagonal = (total - n) / (n * (n - 1))
        levels.append((squares[a] + squares[b]) * (1.0 - off_diagonal))
    return np.maximum(np.array(levels), 0.0)


@dataclass(frozen=True)
class DiscrepancyPoint:
    """Loss and constraints at a frame; gradients of any combination on demand."""

    loss: float
    loss_gradient: np.ndarray
    constraints: np.ndarray
    means: KernelMeans
    pairs: np.ndarray
    factors: np.ndarray

    def constraint_gradient(self, weights: np.ndarray) -> np.ndarray:
        """Gradient of ``sum_j weights_j h_j``."""
        coefficients = np.zeros_like(self.means.values)
        for weight, (a, b) in zip(weights * self.factors, self.pairs, strict=True):
            coefficients[[a, b], [a, b]] += weight
            coefficients[[a, b], [b, a]] -= weight
        return self.means.gradient(coefficients)


class DiscrepancyProblem:
    """``min -<S, V V^T> / tr S`` subject to ``MMD^2(a, b) <= limit(a, b)`` for the given pairs of groups.

    The constraints are ``MMD^2(a, b) * (largest limit) / limit(a, b)``, so that one tolerance, the largest limit,
    serves all pairs; without ``limits`` they are MMD^2 itself.

    ``invariant`` tells that value and constraints depend on the subspace only; random features do not quite.
    ``features`` (and ``curvature_sample``, if fewer rows will do) are those of the curvature model, without
    which there is none. ``noise`` is the error of the kernel means where they are not computed in double
    precision.
    """

    def __init__(
        self,
        sample: GroupedSample | PartitionedSample,
        covariance: np.ndarray,
        kernel: Kernel,
        pairs: np.ndarray,
        features: FourierKernel | None = None,
        curvature_sample: GroupedSample | None = None,
        noise: float = 0.0,
        limits: np.ndarray | None = None,
    ) -> None:
        self._sample, self._kernel, self._pairs = sample, kernel, pairs
        self.limits = np.ones(len(pairs)) if limits is None else limits
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

    @property
    def tolerance(self) -> float:
        """What every constraint must stay under."""
        return float(self.limits.max())

    @property
    def _factors(self) -> np.ndarray:
        return self.tolerance / self.limits

    def evaluate(self, basis: np.ndarray) -> DiscrepancyPoint:
        self.n_evaluations += 1
        image = self._covariance @ basis
        means = self._kernel(self._sample, basis, True)
        constraints = pair_discrepancies(means.values, self._pairs) * self._factors
        loss = -float(np.vdot(basis, image))
        return DiscrepancyPoint(loss, -2.0 * image, constraints, means, self._pairs, self._factors)

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
