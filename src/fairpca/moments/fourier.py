"""Kernel means by random Fourier features: sums over rows instead of pairs of rows."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaincinv

from fairpca.moments._grouped_sample import GroupedSample, KernelMeans
from fairpca.moments.bandwidths import Bandwidth, widths_of

#: Rows whose features are computed together: few enough for the cache (2048 rows take twice as long).
_CHUNK = 256


class FourierKernel:
    """Orthogonal random Fourier features: ``K_ij ~ mean_r cos(w_r . (z_i - z_j))``, cost linear in the rows.

    The frequencies are normal with covariance I / sigma^2, but orthogonal within each block of d (Yu et al.
    2016) and with stratified lengths, both of which lower the variance of the estimate and leave it unbiased.
    ``MMD^2(a, b)`` becomes ``mean_r |phi_a(w_r) - phi_b(w_r)|^2`` with the groups' empirical characteristic
    functions phi: a single sum over the rows. Several bandwidths share the features equally.
    """

    def __init__(self, bandwidth: Bandwidth, dimension: int, n_features: int, rng: np.random.Generator) -> None:
        widths = widths_of(bandwidth)
        each = -(-n_features // len(widths))  # the same number for each scale, so that the mean is that of the kernels
        self.frequencies = np.hstack([_normal_frequencies(dimension, each, rng) / sigma for sigma in widths])

    def __call__(self, sample: GroupedSample, basis: np.ndarray, gradient: bool) -> KernelMeans:
        (d, n_features), k = self.frequencies.shape, len(sample.labels)

        def chunk_means(rows: slice) -> np.ndarray:
            return np.asarray(sample.weights[rows].astype(np.float32) @ self._waves(sample, basis, rows), dtype=float)

        means = sample.sum_chunks(chunk_means, _CHUNK)
        values = means @ means.T / n_features
        if not gradient:
            return KernelMeans(values)
        cosines, sines = np.hsplit(means, 2)
        # The derivative of C_b cos(w . z) + S_b sin(w . z) by z, for every group b.
        slopes = np.hstack([sines, -cosines])[:, :, None] * np.tile(self.frequencies, 2).T / n_features
        slopes = np.hstack(list(slopes)).astype(np.float32)

        def chunk_fields(rows: slice) -> np.ndarray:
            weighted = sample.rows[rows] * sample.weights[rows][:, None]
            return weighted.T @ (self._waves(sample, basis, rows) @ slopes).astype(float)

        fields = sample.sum_chunks(chunk_fields, _CHUNK).reshape(k, -1, k, d)
        return KernelMeans(values, np.moveaxis(fields, 2, 1))

    def mean_derivatives(self, sample: GroupedSample, basis: np.ndarray) -> np.ndarray:
        """``sum_{i in a} u_i x_i phi_r'(w_r . z_i)`` for the cosine and sine features, of shape (k, p, 2 features).

        Times ``w_r^T`` this is the derivative by V of the feature means of group a (scaled so that squared
        norms are means over the features).
        """

        def chunk_derivatives(rows: slice) -> np.ndarray:
            cosines, sines = np.hsplit(self._waves(sample, basis, rows), 2)
            weighted = sample.rows[rows] * sample.weights[rows][:, None]
            return weighted.T @ np.hstack([-sines, cosines]).astype(float)

        return sample.sum_chunks(chunk_derivatives, _CHUNK) / np.sqrt(self.frequencies.shape[1])

    def _waves(self, sample: GroupedSample, basis: np.ndarray, rows: slice) -> np.ndarray:
        """Cosines, then sines, in single precision: their rounding is far below the features' sampling error."""
        angles = ((sample.rows[rows] @ basis) @ self.frequencies).astype(np.float32)
        return np.hstack([np.cos(angles), np.sin(angles)])


def _normal_frequencies(dimension: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Standard normal columns, orthogonal within each block of ``dimension``, with stratified lengths."""
    n_blocks = -(-count // dimension)
    rotations = [np.linalg.qr(rng.standard_normal((dimension, dimension)))[0] for _ in range(n_blocks)]
    strata = (rng.permutation(count) + rng.random(count)) / count
    lengths = np.sqrt(2.0 * gammaincinv(0.5 * dimension, strata))  # quantiles of the chi distribution
    return np.hstack(rotations)[:, :count] * lengths
