"""Means of a Gaussian kernel over all pairs of rows, by group, and their derivatives by the frame that projects them.

With rows z_i = V^T x_i, weights u_i that sum to one in each group and K_ij = exp(-|z_i - z_j|^2 / (2 sigma^2)), the
k x k *kernel means* are

``M_ab = sum_{i in a, j in b} u_i u_j K_ij``.

One pass over the triangle of blocks of K gives, for each row i and group b, ``F_ib = sum_{j in b} u_j K_ij`` and
``P_ib = sum_{j in b} u_j K_ij z_j``; from these

``dM_ab / dV = -(T_ab + T_ba) / sigma^2``,   ``T_ab = sum_{i in a} u_i x_i (F_ib z_i - P_ib)^T``.

With several bandwidths the kernel is the mean of theirs: M and its F are summed with that mean, and T with
``sum_s K_s (sigma_1 / sigma_s)^2`` over their number, sigma_1 being the widest.

Time O(n^2 d + n k p d), memory of one block per thread: the matrix K is never held, and ``X^T K X`` (O(n^2 p)) is never
formed.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.blas import daxpy, saxpy

from fairpca.linalg import single_blas_thread
from fairpca.moments._grouped_sample import GroupedSample
from fairpca.moments.bandwidths import Bandwidth, KernelScales
from fairpca.moments.grid_means import GridMeans

#: Rows and columns of a block: with a second one of its size for narrower kernels it stays in the second-level cache
#: from the product through the exponential. Threads take larger ones: an operation shorter than it takes to wake a
#: thread that waits for the interpreter is over before that thread can go on, so that they run one after the other.
_BLOCK, _THREADED_BLOCK = (128, 384), (512, 768)
#: Below this number of kernel entries a second thread costs more than it brings.
_THREAD_WORTH = 300_000
#: From this number of rows on, a grid is faster in two dimensions.
GRID_ROWS = 20_000


@dataclass(frozen=True)
class KernelMeans:
    """``values`` M of shape (k, k) and, if asked for, ``fields`` T of shape (k, k, p, d) with ``scale`` 1/sigma^2."""

    values: np.ndarray
    fields: np.ndarray | None = None
    scale: float = 0.0

    def gradient(self, coefficients: np.ndarray) -> np.ndarray:
        """Gradient of ``sum_ab C_ab M_ab`` with respect to V, for symmetric C."""
        assert self.fields is not None
        return (-2.0 * self.scale) * np.tensordot(coefficients, self.fields, axes=2)


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

    Many rows in one or two dimensions are summed over a grid instead (see :mod:`fairpca.moments.grid_means`).

    ``dtype=numpy.float32`` computes the kernel in single precision (sums over blocks stay double): two to
    three times faster, with an error of about 1e-8 in M.
    """
    few = sample.rows.shape[1] if basis is None else basis.shape[1]
    if sample.n_rows > GRID_ROWS and few <= 2:
        grid = GridMeans(sample.rows if basis is None else sample.rows @ basis, bandwidth)
        if grid.fits:
            transforms = grid.spread(sample)
            fields = grid.fields(transforms, sample) if gradient else None
            return KernelMeans(grid.values(transforms), fields, -1.0)
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
    return sums[:, -1 if apart else 0] / scales.count, departures


def _over_threads(work: Callable[[Sequence[_Block]], np.ndarray], starts: np.ndarray) -> np.ndarray:
    """Sums (k, n, columns) over all blocks, with the rows as the last axis."""
    n = int(starts[-1])
    if available_cores() == 1 or n * n <= 2 * _THREAD_WORTH:
        sums = work(list(_triangle(starts, _BLOCK)))
    else:
        tasks = list(_triangle(starts, _THREADED_BLOCK))
        n_threads = min(available_cores(), len(tasks))
        own, *others = _shares(tasks, n_threads)
        with ThreadPoolExecutor(max(len(others), 1)) as pool:
            awaited = [pool.submit(work, share) for share in others]
            sums = functools.reduce(np.add, (future.result() for future in awaited), work(own))
    return np.ascontiguousarray(sums.transpose(0, 2, 1))


_Block = tuple[int, slice, int, slice]


def _triangle(starts: np.ndarray, block: tuple[int, int]) -> Iterator[_Block]:
    """Blocks (group, rows, group, columns) that cover each unordered pair of rows once.

    A row block meets its own rows in a square block of its own; the others lie strictly to the right of it.
    """
    height, width = block
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
    for task in sorted(tasks, key=_n_entries, reverse=True):
        lightest = loads.index(min(loads))
        shares[lightest].append(task)
        loads[lightest] += _n_entries(task)
    return shares


def _n_entries(task: _Block) -> int:
    _, rows, _, columns = task
    return int((rows.stop - rows.start) * (columns.stop - columns.start))


def _sum_blocks(
    left: np.ndarray,
    right: np.ndarray,
    carried: np.ndarray,
    shape: tuple[int, ...],
    scales: KernelScales,
    tasks: Sequence[_Block],
) -> np.ndarray:
    sums = np.zeros(shape)
    buffers = np.empty((2, max(map(_n_entries, tasks))), dtype=left.dtype)
    for a, rows, b, columns in tasks:
        height, width = rows.stop - rows.start, columns.stop - columns.start
        block, spare = buffers[:, : height * width].reshape(2, height, width)
        np.matmul(left[rows], right[columns].T, out=block)
        # Of values only the sum over all rows matters, so a pair of rows may count twice at one of them.
        times = 1.0 if rows == columns else 2.0
        weights = times * carried[columns, 0]
        if shape[2] == 1:
            sums[b, rows, 0] += sum(kernel @ weights for _, kernel in scales.kernels(block, spare))
            continue
        values = _replace_by_slopes(scales, block, spare, weights)
        products = block @ carried[columns]
        sums[b, rows] += products
        if scales.count > 1:
            sums[b, rows, -1] += values + products[:, 0] * (times / scales.largest_factor)
        if rows != columns:
            sums[a, columns] += block.T @ carried[rows]
    return sums


def _replace_by_slopes(
    scales: KernelScales, exponents: np.ndarray, spare: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """``S = sum_s f_s K_s``, with ``f_s = (sigma_1 / sigma_s)^2``, takes the place of the exponents.

    Returns the kernels times the weights, added up, but for the share of them in ``S / f`` of the narrowest kernel:
    S is multiplied by the weights later on, which saves one pass over that kernel.
    """
    total: np.ndarray = np.zeros(len(exponents))
    for factor, kernel in scales.kernels(exponents, spare):
        if factor < scales.largest_factor:
            total += (kernel @ weights) * (1.0 - factor / scales.largest_factor)
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


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
