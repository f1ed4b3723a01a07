"""Kernel means by random Fourier features: sums over rows instead of pairs of rows."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy.special import gammaincinv

from fairpca.linalg import blas_threads, single_blas_thread
from fairpca.moments._grouped_sample import GroupedSample
from fairpca.moments.bandwidths import Bandwidth, widths_of
from fairpca.moments.kernel_means import KernelMeans

#: Features of all rows are kept from value to gradient up to this many (8 bytes each), else computed twice.
_KEPT_ENTRIES = 40_000_000


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
        n_features = self.frequencies.shape[1]
        k = len(sample.starts) - 1
        chunks = list(self._chunks(sample.starts))
        keep = gradient and sample.n_rows * n_features <= _KEPT_ENTRIES
        with single_blas_thread(), ThreadPoolExecutor(blas_threads()) as pool:
            waves = functools.partial(self._waves, sample, basis)
            kept: Sequence = list(pool.map(waves, chunks)) if keep else [None] * len(chunks)
            means = functools.partial(self._chunk_mean, sample, waves)
            functions = np.zeros((k, n_features), dtype=complex)
            for (a, _), mean in zip(chunks, pool.map(means, chunks, kept), strict=True):
                functions[a] += mean
            values = (functions.conj() @ functions.T).real / n_features
            if not gradient:
                return KernelMeans(values)
            weigh = functools.partial(self._chunk_field, sample, functions, waves)
            fields = np.zeros((k, k, *basis.shape))
            for (a, _), field in zip(chunks, pool.map(weigh, chunks, kept), strict=True):
                fields[a] += field
        return KernelMeans(values, fields / n_features)

    def _waves(
        self, sample: GroupedSample, basis: np.ndarray, chunk: tuple[int, slice]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Cosines and sines, in single precision: their rounding is far below the features' sampling error."""
        angles = ((sample.rows[chunk[1]] @ basis) @ self.frequencies).astype(np.float32)
        return np.cos(angles), np.sin(angles)

    def _chunk_mean(
        self, sample: GroupedSample, waves: Callable, chunk: tuple[int, slice], kept: tuple | None
    ) -> np.ndarray:
        cosines, sines = waves(chunk) if kept is None else kept
        # Weights of the order of one keep single precision away from underflow.
        weights = sample.weights[chunk[1]]
        scale = weights.max()
        scaled = (weights / scale).astype(np.float32)
        return scale * ((scaled @ cosines).astype(float) + 1j * (scaled @ sines).astype(float))

    def _chunk_field(
        self,
        sample: GroupedSample,
        functions: np.ndarray,
        waves: Callable,
        chunk: tuple[int, slice],
        kept: tuple | None,
    ) -> np.ndarray:
        """Derivative of ``Re sum_r conj(phi_b) phi_a`` by V through the rows of this chunk, for each b."""
        cosines, sines = waves(chunk) if kept is None else kept
        rows = chunk[1]
        weighted = sample.rows[rows] * sample.weights[rows][:, None]
        fields = []
        for phi in functions:
            along_sine = (-phi.real * self.frequencies).T.astype(np.float32)
            along_cosine = (phi.imag * self.frequencies).T.astype(np.float32)
            slopes = cosines @ along_cosine
            slopes += sines @ along_sine
            fields.append(weighted.T @ slopes.astype(float))
        return np.stack(fields)

    def mean_derivatives(self, sample: GroupedSample, basis: np.ndarray) -> np.ndarray:
        """``sum_{i in a} u_i x_i phi_r'(w_r . z_i)`` for the cosine and sine features, of shape (k, p, 2 features).

        Times ``w_r^T`` this is the derivative by V of the feature means of group a (scaled so that squared
        norms are means over the features).
        """
        totals = np.zeros((len(sample.starts) - 1, sample.rows.shape[1], 2 * self.frequencies.shape[1]))
        for a, rows in self._chunks(sample.starts):
            angles = (sample.rows[rows] @ basis) @ self.frequencies
            weighted = (sample.rows[rows] * sample.weights[rows][:, None]).T
            totals[a] += np.hstack([weighted @ -np.sin(angles), weighted @ np.cos(angles)])
        return totals / np.sqrt(self.frequencies.shape[1])

    def _chunks(self, starts: np.ndarray, size: int = 2048) -> Iterator[tuple[int, slice]]:
        for a, (first, last) in enumerate(itertools.pairwise(starts)):
            yield from ((a, slice(r, min(r + size, last))) for r in range(first, last, size))


def _normal_frequencies(dimension: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Standard normal columns, orthogonal within each block of ``dimension``, with stratified lengths."""
    n_blocks = -(-count // dimension)
    rotations = [np.linalg.qr(rng.standard_normal((dimension, dimension)))[0] for _ in range(n_blocks)]
    strata = (rng.permutation(count) + rng.random(count)) / count
    lengths = np.sqrt(2.0 * gammaincinv(0.5 * dimension, strata))  # quantiles of the chi distribution
    return np.hstack(rotations)[:, :count] * lengths
