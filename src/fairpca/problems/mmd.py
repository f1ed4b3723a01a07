"""Distributional parity: the squared maximum mean discrepancy between projected groups (Lee et al. 2022).

With rows z_i = V^T x_i, weights u_i that sum to one in each group and K_ij = exp(-|z_i - z_j|^2 / (2
sigma^2)), all that matters are the k x k *kernel means*

``M_ab = sum_{i in a, j in b} u_i u_j K_ij``,   ``MMD^2(a, b) = M_aa + M_bb - 2 M_ab``.

One pass over the triangle of blocks of K gives, for each row i and group b, ``F_ib = sum_{j in b} u_j K_ij``
and
``P_ib = sum_{j in b} u_j K_ij z_j``; from these

``dM_ab / dV = -(T_ab + T_ba) / sigma^2``,   ``T_ab = sum_{i in a} u_i x_i (F_ib z_i - P_ib)^T``.

With several bandwidths the kernel is the mean of theirs: M and its F are summed with that mean, and T with
``sum_s K_s (sigma_1 / sigma_s)^2`` over their number, sigma_1 being the widest.

Time O(n^2 d + n k p d), memory of one block a thread: the matrix K is never held, and ``X^T K X`` (O(n^2 p))
is never formed.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg.blas import daxpy, saxpy
from scipy.special import gammaincinv

from fairpca.linalg import single_blas_thread
from fairpca.moments import GroupedSample
from fairpca.problems._scales import Bandwidth, KernelScales, check_bandwidth, halved_bandwidths, widths_of
from fairpca.protocols import Curvature

__all__ = [
    "Bandwidth",
    "DiscrepancyProblem",
    "FourierKernel",
    "KernelMeans",
    "PartitionedSample",
    "all_pairs",
    "check_bandwidth",
    "cross_means",
    "exact_kernel",
    "exact_means",
    "halved_bandwidths",
    "kernel_matrix",
    "kernel_means",
    "pair_discrepancies",
    "random_level",
    "squared_distance_median",
]

#: Rows and columns of a block: with a second one of its size for narrower kernels it stays in the second-level cache
#: from the product through the exponential.
_BLOCK = (128, 384)
#: Fourier features of all rows are kept from value to gradient up to this many (8 bytes each), else computed
#: twice.
_KEPT_ENTRIES = 40_000_000
#: Below this number of kernel entries a second thread costs more than it brings.
_THREAD_WORTH = 300_000


@dataclass(frozen=True)
class KernelMeans:
    """``values`` M of shape (k, k) and, if asked for, ``fields`` T of shape (k, k, p, d) with ``scale``
    1/sigma^2.
    """

    values: np.ndarray
    fields: np.ndarray | None = None
    scale: float = 0.0

    def gradient(self, coefficients: np.ndarray) -> np.ndarray:
        """Gradient of ``sum_ab C_ab M_ab`` with respect to V, for symmetric C."""
        assert self.fields is not None
        return (-2.0 * self.scale) * np.tensordot(coefficients, self.fields, axes=2)


class PartitionedSample(Protocol):
    """Rows in many places, of which only sums can be had; each part is a :class:`GroupedSample` with all labels."""

    labels: tuple[Any, ...]
    counts: np.ndarray
    weight_squares: np.ndarray

    @property
    def n_rows(self) -> int: ...

    def sum_over_parts(self, function: Callable[..., np.ndarray], *arguments: Any) -> np.ndarray: ...

    def sum_over_pairs(self, basis: np.ndarray, function: Callable[..., np.ndarray], *arguments: Any) -> np.ndarray: ...


#: Kernel means (with gradient fields or without) of a sample projected by a frame.
Kernel = Callable[[Any, np.ndarray, bool], KernelMeans]


def kernel_means(
    sample: GroupedSample,
    basis: np.ndarray | None,
    bandwidth: Bandwidth,
    *,
    gradient: bool = False,
    dtype: type = np.float64,
) -> KernelMeans:
    """Exact kernel means of the rows projected by ``basis`` (or as they are, if None), in one blocked pass.

    ``dtype=numpy.float32`` computes the kernel in single precision (sums over blocks stay double): two to
    three times faster, with an error of about 1e-8 in M.
    """
    # One limit around everything: the threads of a parallel product would wait busily and take a core from the blocks.
    with single_blas_thread():
        return _kernel_means(sample, basis, KernelScales(bandwidth), gradient, dtype)


def _kernel_means(
    sample: GroupedSample, basis: np.ndarray | None, scales: KernelScales, gradient: bool, dtype: type
) -> KernelMeans:
    scaled = _scaled(sample.rows if basis is None else sample.rows @ basis, scales)
    starts, weights = sample.starts, sample.weights
    sums, departures = _row_sums(scaled, weights, starts, scales, with_scores=gradient, dtype=dtype)
    values = np.add.reduceat(sums * weights, starts[:-1], axis=1)
    values = 0.5 * (values + values.T)
    if departures is None:
        return KernelMeans(values)
    inner = departures * weights
    fields = np.stack(
        [
            [(field[:, first:last] @ sample.rows[first:last]).T for field in inner]
            for first, last in itertools.pairwise(starts)
        ]
    )
    return KernelMeans(values, fields, 1.0 / scales.widest)


def exact_means(sample: GroupedSample | PartitionedSample, basis: np.ndarray, bandwidth: Bandwidth) -> np.ndarray:
    """The values alone, in double precision, also of rows in many parts: then by pairs of parts."""
    if isinstance(sample, GroupedSample):
        return kernel_means(sample, basis, bandwidth).values
    with single_blas_thread():
        return sample.sum_over_pairs(basis, cross_means, bandwidth)


def cross_means(first: GroupedSample, second: GroupedSample, bandwidth: Bandwidth) -> np.ndarray:
    """``sum_{i in a, j in b} u_i u_j K_ij`` over rows i of one part and j of another, of shape (k, k).

    Parts may lack groups. The rows are taken as they are (scores), a block at a time.
    """
    scales = KernelScales(bandwidth)
    left, right = (_scaled(part.rows, scales) for part in (first, second))
    exponents = _exponents_between(left, right, scales)
    members = [_membership(part) for part in (first, second)]
    total = np.zeros((len(first.labels), len(second.labels)))
    height, width = _BLOCK
    for top in range(0, len(left), height):
        rows = slice(top, top + height)
        for start in range(0, len(right), width):
            columns = slice(start, start + width)
            block = scales.mean(exponents(rows, columns))
            total += members[0][rows].T @ (block @ members[1][columns])
    return total


def kernel_matrix(scores: np.ndarray, bandwidth: Bandwidth) -> np.ndarray:
    """The whole of K, for few rows."""
    scales = KernelScales(bandwidth)
    scaled = _scaled(scores, scales)
    exponents = _exponents_between(scaled, scaled, scales)
    kernel = np.empty((len(scaled), len(scaled)))
    for top in range(0, len(scaled), _BLOCK[0]):
        rows = slice(top, top + _BLOCK[0])
        kernel[rows] = scales.mean(np.minimum(exponents(rows, slice(None)), 0.0))
    return kernel


def _scaled(scores: np.ndarray, scales: KernelScales) -> np.ndarray:
    with np.errstate(over="ignore"):
        scaled = scores / scales.widest
    if not np.isfinite(scaled).all():
        raise ValueError(
            f"bandwidth={scales.widest:g} is too small next to the distances between the rows; raise bandwidth."
        )
    return scaled


def _half_squares(scaled: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return -0.5 * np.einsum("ij,ij->i", scaled, scaled)


def _resolves(half_squares: np.ndarray, scales: KernelScales, dtype: Any = np.float64) -> bool:
    """Whether ``z_i . z_j - |z_i|^2 / 2 - |z_j|^2 / 2`` leaves distances between near rows enough digits.

    Its rounding is about eps |z|^2, with z in units of the narrowest sigma: at most eps^0.6 is accepted (4e-10 in
    double precision).
    """
    largest = -2.0 * half_squares.min(initial=0.0) * scales.largest_factor
    return bool(largest <= float(np.finfo(dtype).eps) ** -0.4)


def _exponents_between(
    left: np.ndarray, right: np.ndarray, scales: KernelScales
) -> Callable[[slice, slice], np.ndarray]:
    """From some of the left rows and some of the right ones to ``-|z_i - z_j|^2 / 2``."""
    of_left, of_right = _half_squares(left), _half_squares(right)
    if not (_resolves(of_left, scales) and _resolves(of_right, scales)):
        return lambda rows, columns: _exponents_by_differences(left[rows], right[columns])

    def by_product(rows: slice, columns: slice) -> np.ndarray:
        block = left[rows] @ right[columns].T
        block += of_left[rows, None]
        block += of_right[columns]
        return block

    return by_product


def _exponents_by_differences(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The same however far the rows are from the origin; a distance too large for a number has the kernel 0."""
    block = np.zeros((len(left), len(right)))
    with np.errstate(over="ignore"):
        for of_left, of_right in zip(left.T, right.T, strict=True):
            block -= 0.5 * (of_left[:, None] - of_right) ** 2
    return block


def _membership(part: GroupedSample) -> np.ndarray:
    """Weights in the column of each row's group, of shape (n, k)."""
    members = np.zeros((part.n_rows, len(part.labels)))
    members[np.arange(part.n_rows), np.repeat(np.arange(len(part.labels)), part.counts)] = part.weights
    return members


def exact_kernel(bandwidth: Bandwidth, dtype: type = np.float64) -> Kernel:
    """The exact pass as a :data:`Kernel`."""

    def kernel(sample: GroupedSample, basis: np.ndarray, gradient: bool) -> KernelMeans:
        return kernel_means(sample, basis, bandwidth, gradient=gradient, dtype=dtype)

    return kernel


def _row_sums(
    scaled: np.ndarray,
    weights: np.ndarray,
    starts: np.ndarray,
    scales: KernelScales,
    *,
    with_scores: bool,
    dtype: type,
) -> tuple[np.ndarray, np.ndarray | None]:
    """``F_ib = sum_{j in b} u_j K_ij`` (k, n) and ``sum_{j in b} u_j K_ij (z_i - z_j)`` (k, d, n), by groups b.

    K is the mean of the kernels; in the second sum each of them counts ``(sigma_1 / sigma_s)^2`` times.
    """
    n, d = scaled.shape
    half_squares = _half_squares(scaled)
    if not _resolves(half_squares, scales):
        shape = (len(starts) - 1, n, 1 + d if with_scores else 1)
        sums = _over_threads(functools.partial(_sum_far_blocks, scaled, weights, shape, scales), starts)
        return sums[:, 0], sums[:, 1:] if with_scores else None
    if not _resolves(half_squares, scales, dtype):
        dtype = np.float64
    squares, ones = half_squares[:, None], np.ones((n, 1))
    # One product gives the whole exponent: z_i . z_j - |z_i|^2 / 2 - |z_j|^2 / 2.
    left: np.ndarray = np.hstack([scaled, squares, ones]).astype(dtype)
    right: np.ndarray = np.hstack([scaled, ones, squares]).astype(dtype)
    apart = with_scores and scales.count > 1  # then F of the values is not that beside P, and has the last column
    # Zeros up to a multiple of four columns: a product with an odd number of them costs more.
    carried = np.hstack([ones, scaled, np.zeros((n, apart + -(d + 1 + apart) % 4))]) if with_scores else ones
    carried = (weights[:, None] * carried).astype(dtype)
    shape = (len(starts) - 1, n, carried.shape[1])
    sums = _over_threads(functools.partial(_sum_blocks, left, right, carried, shape, scales), starts)
    departures = (sums[:, :1] * scaled.T - sums[:, 1 : d + 1]) / scales.count if with_scores else None
    return sums[:, -1] / scales.count if apart else sums[:, 0], departures


def _over_threads(work: Callable[[Sequence[_Block]], np.ndarray], starts: np.ndarray) -> np.ndarray:
    """Sums (k, n, columns) over all blocks, with the rows as the last axis."""
    n, tasks = int(starts[-1]), list(_triangle(starts))
    n_threads = min(_cores(), len(tasks)) if n * n > 2 * _THREAD_WORTH else 1
    if n_threads == 1:
        sums = work(tasks)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            sums = functools.reduce(np.add, pool.map(work, _shares(tasks, n_threads)))
    return np.ascontiguousarray(sums.transpose(0, 2, 1))


_Block = tuple[int, slice, int, slice]


def _triangle(starts: np.ndarray) -> Iterator[_Block]:
    """Blocks (group, rows, group, columns) that cover each unordered pair of rows once.

    A row block meets its own rows in a square block of its own; the others lie strictly to the right of it.
    """
    height, width = _BLOCK
    for a, (first, last) in enumerate(itertools.pairwise(starts)):
        for top in range(first, last, height):
            rows = slice(top, min(top + height, last))
            yield a, rows, a, rows
            yield from ((a, rows, a, slice(c, min(c + width, last))) for c in range(rows.stop, last, width))
            for b in range(a + 1, len(starts) - 1):
                end = starts[b + 1]
                yield from ((a, rows, b, slice(c, min(c + width, end))) for c in range(starts[b], end, width))


def _shares(tasks: Sequence[_Block], count: int) -> list[list[_Block]]:
    """About the same number of kernel entries for each thread.

    Fixed shares keep the order of the sums, and so the result, the same in every run.
    """
    shares: list[list[_Block]] = [[] for _ in range(count)]
    loads = [0] * count
    sizes = [(rows.stop - rows.start) * (columns.stop - columns.start) for _, rows, _, columns in tasks]
    for size, task in sorted(zip(sizes, tasks, strict=True), key=lambda pair: -pair[0]):
        lightest = loads.index(min(loads))
        shares[lightest].append(task)
        loads[lightest] += int(size)
    return shares


def _sum_blocks(
    left: np.ndarray,
    right: np.ndarray,
    carried: np.ndarray,
    shape: tuple[int, ...],
    scales: KernelScales,
    tasks: Sequence[_Block],
) -> np.ndarray:
    sums = np.zeros(shape)
    buffers = np.empty((2, _BLOCK[0] * max(_BLOCK)), dtype=left.dtype)
    with_slopes = scales.count > 1 and shape[2] > 1
    for a, rows, b, columns in tasks:
        height, width = rows.stop - rows.start, columns.stop - columns.start
        block, spare = buffers[:, : height * width].reshape(2, height, width)
        np.matmul(left[rows], right[columns].T, out=block)
        if with_slopes:
            # Only the sum over all rows matters, so a pair of rows may count twice at one of them.
            weights = carried[columns, 0] * (1.0 if rows == columns else 2.0)
            sums[b, rows, -1] += _replace_by_slopes(scales, block, spare, weights)
        else:
            scales.mean(block, spare)
        sums[b, rows] += block @ carried[columns]
        if rows != columns:
            sums[a, columns] += block.T @ carried[rows]
    return sums


def _replace_by_slopes(
    scales: KernelScales, exponents: np.ndarray, spare: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """The kernels times the weights, added up; ``sum_s K_s (sigma_1 / sigma_s)^2`` takes the place of the exponents."""
    total: np.ndarray = np.zeros(len(exponents))
    for factor, kernel in scales.kernels(exponents, spare):
        total += kernel @ weights
        if kernel is spare:
            _add_multiple(exponents, factor, kernel)
    return total


def _add_multiple(total: np.ndarray, factor: float, added: np.ndarray) -> None:
    """``total += factor * added`` in one pass over both."""
    add = daxpy if total.dtype == np.float64 else saxpy
    add(added.reshape(-1), total.reshape(-1), a=factor)


def _sum_far_blocks(
    scaled: np.ndarray, weights: np.ndarray, shape: tuple[int, ...], scales: KernelScales, tasks: Sequence[_Block]
) -> np.ndarray:
    """As :func:`_sum_blocks`, for scores so large that only differences of rows keep their digits.

    Slower, and the first column is followed by sums of ``K_ij (z_i - z_j)`` itself, not of ``K_ij z_j``.
    """
    sums = np.zeros(shape)
    for a, rows, b, columns in tasks:
        left, right = scaled[rows], scaled[columns]
        block = _exponents_by_differences(left, right)
        for factor, kernel in scales.kernels(block, np.empty_like(block)):
            for c in range(shape[2]):
                product = kernel if c == 0 else factor * kernel * (left[:, [c - 1]] - right[:, c - 1])
                sums[b, rows, c] += product @ weights[columns]
                if rows != columns:
                    other = weights[rows] @ product
                    sums[a, columns, c] += other if c == 0 else -other
    return sums / scales.count


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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

    def __call__(self, sample: GroupedSample | PartitionedSample, basis: np.ndarray, gradient: bool) -> KernelMeans:
        if not isinstance(sample, GroupedSample):
            return self._of_parts(sample, basis, gradient)
        n_features = self.frequencies.shape[1]
        k = len(sample.starts) - 1
        chunks = list(self._chunks(sample.starts))
        keep = gradient and sample.n_rows * n_features <= _KEPT_ENTRIES
        with single_blas_thread(), ThreadPoolExecutor(_cores()) as pool:
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
        return KernelMeans(values, fields, -1.0 / n_features)

    def _of_parts(self, sample: PartitionedSample, basis: np.ndarray, gradient: bool) -> KernelMeans:
        """The same as sums over the parts: once for the characteristic functions, once more for their slopes."""
        n_features = self.frequencies.shape[1]
        with single_blas_thread():  # each part has a thread or process of its own
            functions = sample.sum_over_parts(self.part_functions, basis)
            values = (functions.conj() @ functions.T).real / n_features
            if not gradient:
                return KernelMeans(values)
            fields = sample.sum_over_parts(self.part_fields, basis, functions)
        return KernelMeans(values, fields, -1.0 / n_features)

    def part_functions(self, part: GroupedSample, basis: np.ndarray) -> np.ndarray:
        """What the rows of a part add to the groups' characteristic functions, of shape (k, features)."""
        functions = np.zeros((len(part.labels), self.frequencies.shape[1]), dtype=complex)
        waves = functools.partial(self._waves, part, basis)
        for chunk in self._chunks(part.starts):
            functions[chunk[0]] += self._chunk_mean(part, waves, chunk, None)
        return functions

    def part_fields(self, part: GroupedSample, basis: np.ndarray, functions: np.ndarray) -> np.ndarray:
        """What they add to the gradient fields, of shape (k, k, p, d)."""
        fields = np.zeros((len(functions), len(functions), *basis.shape))
        waves = functools.partial(self._waves, part, basis)
        for chunk in self._chunks(part.starts):
            fields[chunk[0]] += self._chunk_field(part, functions, waves, chunk, None)
        return fields

    def _waves(
        self, sample: GroupedSample, basis: np.ndarray, chunk: tuple[int, slice]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Cosines and sines, in single precision: their rounding is far below the sampling error of the
        features.
        """
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
        """``sum_{i in a} u_i x_i phi_r'(w_r . z_i)`` for the cosine and sine features, of shape (k, p, 2
        features).

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


def all_pairs(n_groups: int) -> np.ndarray:
    """Index pairs a < b, of shape (n_pairs, 2)."""
    return np.stack(np.triu_indices(n_groups, 1), axis=1)


def pair_discrepancies(values: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """``MMD^2(a, b) = M_aa + M_bb - 2 M_ab`` for each pair; never below zero, which rounding could."""
    a, b = pairs.T
    return np.maximum(values[a, a] + values[b, b] - 2 * values[a, b], 0.0)


def random_level(sample: GroupedSample | PartitionedSample, values: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """The mean of ``MMD^2`` (biased) over random assignments of the rows to groups of the same sizes, for
    each pair.

    With signed weights c that sum to zero, a random permutation has ``E c_i c_j = -sum c^2 / (n (n - 1))``,
    hence
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


def squared_distance_median(
    scores: np.ndarray,
    rng: np.random.Generator,
    weights: np.ndarray | None = None,
    max_pairs: int = 2_000_000,
) -> float:
    """Median of squared distances between different rows: all pairs, or a random choice if there are more.

    Weights count like repeated rows, whose distance is 0. Where more than half of the distances are 0 the
    median of the positive ones is taken instead, and 1 if all rows coincide.
    """
    if weights is not None:
        scores, weights = scores[weights > 0], weights[weights > 0]
    first, second, multiplicity = _row_pairs(len(scores), rng, weights, max_pairs)
    squares = np.zeros(len(first))
    for column in scores.T:
        squares += (column[first] - column[second]) ** 2
    # Identical rows may differ by rounding after a projection.
    smallest = 1e-20 * float(np.einsum("ij,ij->", scores, scores)) / max(len(scores), 1)
    positive = squares > smallest
    for kept in (slice(None), positive):
        chosen = None if multiplicity is None else multiplicity[kept]
        median = _median(squares[kept], chosen)
        if median > smallest:
            return median
    return 1.0


def _row_pairs(
    n: int, rng: np.random.Generator, weights: np.ndarray | None, max_pairs: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Index pairs and how often each counts; a row of weight w is w (w - 1) / 2 pairs with itself."""
    if n * (n - 1) // 2 <= max_pairs:
        first, second = np.triu_indices(n, 1)
        if weights is None:
            return first, second, None
        own = np.arange(n)
        repeats = np.maximum(0.5 * weights * (weights - 1.0), 0.0)
        multiplicity = np.r_[weights[first] * weights[second], repeats]
        return np.r_[first, own], np.r_[second, own], multiplicity
    if weights is None:
        first = rng.integers(0, n, max_pairs)
        return first, (first + rng.integers(1, n, max_pairs)) % n, None
    first, second = rng.choice(n, (2, max_pairs), p=weights / weights.sum())
    genuine = (first != second) | (rng.random(max_pairs) < 1.0 - 1.0 / weights[first])
    return first[genuine], second[genuine], None


def _median(values: np.ndarray, multiplicity: np.ndarray | None) -> float:
    """The median of values, each counted so often; the mean of the middle two, as numpy has it."""
    if not values.size:
        return 0.0
    if multiplicity is None:
        return float(np.median(values))
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(multiplicity[order])
    total = ends[-1]
    ranks = np.array([np.ceil(0.5 * total), np.floor(0.5 * total) + 1.0]) - 0.5
    middle = np.searchsorted(ends, np.minimum(ranks, total), side="left")
    return float(values[order][np.minimum(middle, len(values) - 1)].mean())


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
        """Gauss-Newton: h is a squared norm of a difference of feature means, so J^T J with the features'
        derivative.

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
