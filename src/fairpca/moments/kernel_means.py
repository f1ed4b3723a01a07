"""Means of a Gaussian kernel over all pairs of rows, by group, and their derivatives by the frame that projects them.

With rows z_i = V^T x_i, weights u_i that sum to one in each group and K_ij = exp(-|z_i - z_j|^2 / (2 sigma^2)), the
k x k *kernel means* are

``M_ab = sum_{i in a, j in b} u_i u_j K_ij``.

One pass over the triangle of blocks of K gives, for each row i and group b, ``F_ib = sum_{j in b} u_j K_ij`` and
``P_ib = sum_{j in b} u_j K_ij z_j``; from these

``dM_ab / dV = -(T_ab + T_ba) / sigma^2``,   ``T_ab = sum_{i in a} u_i x_i (F_ib z_i - P_ib)^T``.

With several bandwidths the kernel is the mean of theirs: M and its F are summed with that mean, and T with
``S = sum_s K_s (sigma_1 / sigma_s)^2`` over their number, sigma_1 being the widest.

Time O(n^2 d + n k p d), memory of one block per thread: the matrix K is never held, and ``X^T K X`` (O(n^2 p)) is never
formed.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy.linalg.blas import daxpy
from scipy.spatial.distance import cdist

from fairpca.linalg import blas_threads, single_blas_thread
from fairpca.moments._grouped_sample import GroupedSample, KernelMeans
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


#: Kernel means (with fields or without) of a sample projected by a frame.
Kernel = Callable[[GroupedSample, np.ndarray, bool], KernelMeans]


def exact_kernel(bandwidth: Bandwidth) -> Kernel:
    """:func:`kernel_means` as a :data:`Kernel`."""
    return lambda sample, basis, gradient: kernel_means(sample, basis, bandwidth, gradient=gradient)


def kernel_means(
    sample: GroupedSample, basis: np.ndarray | None, bandwidth: Bandwidth, *, gradient: bool = False
) -> KernelMeans:
    """Exact kernel means of the rows projected by ``basis`` (or as they are, if None), in one blocked pass.

    Many rows in one or two dimensions are summed over a grid instead (see :mod:`fairpca.moments.grid_means`).
    """
    scores = sample.rows if basis is None else sample.rows @ basis
    if sample.n_rows > GRID_ROWS and scores.shape[1] <= 2:
        grid = GridMeans(scores, bandwidth)
        if grid.fits:
            return grid.means(sample, gradient)
    # One limit around everything: the threads of a parallel product would wait busily and take a core from the blocks.
    with single_blas_thread():
        return _Pairs(sample, scores, KernelScales(bandwidth)).means(gradient)


def kernel_matrix(scores: np.ndarray, bandwidth: Bandwidth) -> np.ndarray:
    """The whole of K, for few rows."""
    scales = KernelScales(bandwidth)
    scaled = _scaled(scores, scales)
    kernel = np.zeros((len(scaled), len(scaled)))
    for top in range(0, len(scaled), _BLOCK[0]):
        rows = slice(top, top + _BLOCK[0])
        exponents = _exponents(scaled[rows], scaled)
        for _, part in scales.kernels(exponents, np.empty_like(exponents)):
            kernel[rows] += part
    kernel /= scales.count
    return kernel


def _scaled(scores: np.ndarray, scales: KernelScales) -> np.ndarray:
    with np.errstate(over="ignore"):
        scaled = scores / scales.widest
    if not np.isfinite(scaled).all():
        raise ValueError(
            f"bandwidth={scales.widest:g} is too small next to the distances between the rows; raise bandwidth."
        )
    return scaled


def _exponents(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """``-|z_i - z_j|^2 / 2`` from differences; where these are too large for a number, the kernel is 0."""
    return -0.5 * cdist(left, right, "sqeuclidean")


_Block = tuple[int, slice, int, slice]


class _Pairs:
    """Sums over all pairs of rows, with scores z in units of the widest bandwidth."""

    def __init__(self, sample: GroupedSample, scores: np.ndarray, scales: KernelScales) -> None:
        self._sample, self._scaled, self._scales = sample, _scaled(scores, scales), scales
        (n, d), ones = scores.shape, np.ones((len(scores), 1))
        with np.errstate(over="ignore"):
            squares = -0.5 * np.einsum("ij,ij->i", self._scaled, self._scaled)[:, None]
        # One product gives the whole exponent: z_i . z_j - |z_i|^2 / 2 - |z_j|^2 / 2. Its rounding is about eps |z|^2,
        # with z in units of the narrowest sigma: at most eps^0.6 (4e-10) is accepted.
        self._near = -2.0 * squares.min() * scales.largest_factor <= np.finfo(float).eps ** -0.4
        self._left, self._right = np.hstack([self._scaled, squares, ones]), np.hstack([self._scaled, ones, squares])
        # Zeros up to a multiple of four columns: a product with an odd number of them costs more.
        self._carried = sample.weights[:, None] * np.hstack([ones, self._scaled, np.zeros((n, -(d + 1) % 4))])

    def means(self, gradient: bool) -> KernelMeans:
        values, sums = self._all_sums(gradient)
        return KernelMeans(values, self._fields(sums) if gradient else None)

    def _all_sums(self, gradient: bool) -> tuple[np.ndarray, np.ndarray]:
        """The values and, for the gradient, what :meth:`_weighted` finds for each group and row."""
        n, cores = len(self._scaled), blas_threads()
        if cores == 1 or n * n <= 2 * _THREAD_WORTH:
            return self._sums(gradient, list(_triangle(self._sample.starts, _BLOCK)))
        # Fixed shares of about the same size keep the order of the sums, and so the result, the same in every run.
        tasks = sorted(_triangle(self._sample.starts, _THREADED_BLOCK), key=_n_entries)
        shares = [tasks[first::cores] for first in range(min(cores, len(tasks)))]
        with ThreadPoolExecutor(cores) as pool:
            values, sums = zip(*pool.map(functools.partial(self._sums, gradient), shares), strict=True)
        return functools.reduce(np.add, values), functools.reduce(np.add, sums)

    def _sums(self, gradient: bool, tasks: Sequence[_Block]) -> tuple[np.ndarray, np.ndarray]:
        k, weights, scales = len(self._sample.labels), self._sample.weights, self._scales
        values, sums = np.zeros((k, k)), np.zeros((k if gradient else 0, *self._carried.shape))
        buffers = np.empty((2, max(map(_n_entries, tasks))))
        # The sums of S for the gradient hold each kernel factor / included times, so the narrowest needs no pass.
        included = scales.largest_factor if gradient else np.inf
        for task in tasks:
            a, rows, b, columns = task
            block, spare = buffers[:, : _n_entries(task)].reshape(2, rows.stop - rows.start, -1)
            if self._near:
                np.matmul(self._left[rows], self._right[columns].T, out=block)
            else:
                block[:] = _exponents(self._scaled[rows], self._scaled[columns])
            value = 0.0
            for factor, kernel in scales.kernels(block, spare):
                if gradient and kernel is spare:  # block += factor * kernel, in one pass
                    daxpy(spare.reshape(-1), block.reshape(-1), a=factor)
                if factor < included:
                    value += (1.0 - factor / included) * float(weights[rows] @ (kernel @ weights[columns]))
            if gradient:
                weighted = self._weighted(block, rows, columns)
                value += float(weights[rows] @ weighted[:, 0]) / included
                sums[b, rows] += weighted
                if rows != columns:
                    sums[a, columns] += self._weighted(block.T, columns, rows)
            values[a, b] += value
            if rows != columns:
                values[b, a] += value
        return values / scales.count, sums / scales.count

    def _weighted(self, block: np.ndarray, rows: slice, columns: slice) -> np.ndarray:
        """For each row i, ``sum_j u_j S_ij`` and ``sum_j u_j S_ij z_j`` over the columns; far away, ``z_j - z_i``."""
        if self._near:
            return block @ self._carried[columns]
        weights, found = self._sample.weights[columns], np.zeros((len(block), self._carried.shape[1]))
        found[:, 0] = block @ weights
        for c, (here, there) in enumerate(zip(self._scaled[rows].T, self._scaled[columns].T, strict=True), 1):
            found[:, c] = (block * (there - here[:, None])) @ weights
        return found

    def _fields(self, sums: np.ndarray) -> np.ndarray:
        """``-(1 / sigma_1^2) sum_{i in a} u_i x_i (sum_{j in b} u_j S_ij (z_i - z_j))^T``, of shape (k, k, p, d)."""
        inner = sums[:, :, 1 : 1 + self._scaled.shape[1]]
        if self._near:
            inner = inner - sums[:, :, :1] * self._scaled
        inner = inner * (self._sample.weights[:, None] / self._scales.widest)
        groups = [slice(first, last) for first, last in itertools.pairwise(self._sample.starts)]
        return np.stack([self._sample.rows[group].T @ inner[:, group] for group in groups])


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


def _n_entries(task: _Block) -> int:
    _, rows, _, columns = task
    return int((rows.stop - rows.start) * (columns.stop - columns.start))
