"""Running sums over blocks of the rows of one group, from which its moments are made."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.linalg import blas

from fairpca.moments._sparse_shift import DENSE_COLUMN

__all__ = ["WIDE", "GroupTotal"]

#: From this many features on, it pays to compute only one triangle of a symmetric matrix.
WIDE = 256
_TILE = 128


class GroupTotal:
    """Running sums of one group: scatter within blocks, and the blocks' counts and means."""

    def __init__(self, product: np.ndarray) -> None:
        self._within = np.zeros(product.shape)
        self._product = product  # work space, shared by all groups; float32 for a MixedPrecisionTotal
        self._triangular = False  # whether only the upper triangle has been summed so far
        self._counts: list[float] = []
        self._means: list[np.ndarray] = []

    @property
    def has_rows(self) -> bool:
        return bool(self._counts)

    def add_dense(self, rows: np.ndarray, weights: np.ndarray | None) -> None:
        """Add rows; they are overwritten."""
        count = float(len(rows)) if weights is None else float(weights.sum())
        factors = np.ones(len(rows)) if weights is None else weights
        wide = rows.shape[1] >= WIDE and rows.flags.c_contiguous
        # numpy and scipy each have BLAS threads that spin for a while after a call: use only one of the two per block.
        mean = blas.dgemv(1.0 / count, rows.T, factors) if wide else factors @ rows / count
        rows -= mean  # a rounding error of the mean changes the scatter only by its square
        if weights is not None:
            rows *= np.sqrt(weights)[:, None]
        if wide:  # adds the upper triangle in place; numpy would fill, mirror and add a whole matrix
            self._within = blas.dsyrk(1.0, rows.T, beta=1.0, c=self._within.T, lower=1, overwrite_c=1).T
            self._triangular = True
        else:
            self._within += np.matmul(rows.T, rows, out=self._product)  # numpy uses a symmetric rank-k update for it
        self._remember(count, mean)

    def add_sparse(self, rows: sparse.csr_matrix, weights: np.ndarray | None) -> None:
        """Add sparse rows without converting them to dense, except for columns that are mostly nonzero."""
        weights = np.ones(rows.shape[0]) if weights is None else weights
        count = float(weights.sum())
        rows = rows.tocsc().astype(np.float64)
        filled = np.diff(rows.indptr) > DENSE_COLUMN * rows.shape[0]
        mean = (rows.T @ weights) / count
        root = np.sqrt(weights)[:, None]
        scatter = np.zeros_like(self._within)
        thin = rows[:, ~filled].multiply(root).tocsr()
        thin_mean = mean[~filled]
        scatter[np.ix_(~filled, ~filled)] = (thin.T @ thin).toarray() - count * np.outer(thin_mean, thin_mean)
        if filled.any():
            full = (rows[:, filled].toarray() - mean[filled]) * root
            # The centred dense columns sum to zero, so their products with sparse columns need no further centring.
            cross = (thin.T @ full).T
            scatter[np.ix_(filled, filled)] = full.T @ full
            scatter[np.ix_(filled, ~filled)] = cross
            scatter[np.ix_(~filled, filled)] = cross.T
        self._within += scatter
        self._remember(count, mean)

    def _remember(self, count: float, mean: np.ndarray) -> None:
        self._counts.append(count)
        self._means.append(mean)

    def finish(self) -> tuple[float, np.ndarray, np.ndarray]:
        counts, means = np.array(self._counts), np.stack(self._means)
        total = counts.sum()
        mean = means[0] + (counts / total) @ (means - means[0])
        offsets = (means - mean) * np.sqrt(counts)[:, None]
        if self._triangular:
            self._within = blas.dsyrk(1.0, offsets.T, beta=1.0, c=self._within.T, lower=1, overwrite_c=1).T
            self._mirror()
        else:
            self._within += offsets.T @ offsets
        return float(total), mean, self._within

    def _mirror(self) -> None:
        """Copy the upper triangle to the lower one in tiles: a plain transpose would cause a cache miss per entry."""
        size = len(self._within)
        for start in range(0, size, _TILE):
            stop = min(start + _TILE, size)
            tile = self._within[start:stop, start:stop]
            tile[:] = np.triu(tile) + np.triu(tile, 1).T
            self._within[stop:, start:stop] = self._within[start:stop, stop:].T
