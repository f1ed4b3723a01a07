"""The moments of very many features as linear operators: products with M_a, never the p x p matrix itself."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from fairpca._validation import Groups, check_choice, check_finite
from fairpca.linalg import blas_threads
from fairpca.moments._group_moments import Reduction, fixed_by_group
from fairpca.moments._sparse_shift import shift_dense_columns

#: Numbers centred or multiplied at a time: few enough to take little memory, enough rows for fast products.
_BLOCK_NUMBERS, _BLOCK_MIN_ROWS = 4_000_000, 512


class GroupFactors(Reduction):
    """Rows sorted by group, from which ``M_a V = X_a^T (X_a V)`` is computed, with the centring as a rank-one term.

    A dense X is copied once unless its rows are already sorted by group; a sparse X stays sparse. The attributes
    ``labels``, ``counts``, ``means`` and ``pooled_mean`` are those of :class:`~fairpca.moments.GroupMoments`. ``rows``
    are the sorted rows of positive weight, with their ``codes`` and ``weights``; mostly nonzero columns of a sparse X
    are shifted, and ``centre`` with them.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca._validation import check_groups
    >>> from fairpca.moments import group_moments
    >>> from fairpca.moments._factors import GroupFactors
    >>> rng = np.random.default_rng(0)
    >>> X, groups = rng.normal(size=(30, 5)), np.arange(30) % 2
    >>> factors = GroupFactors(X, check_groups(groups, 30))
    >>> V = rng.normal(size=(5, 2))
    >>> moments = group_moments(X, sensitive_features=groups)
    >>> np.allclose(factors.second_moments().images(V), moments.second_moments() @ V)
    True
    """

    def __init__(self, X: Any, groups: Groups, sample_weight: np.ndarray | None = None) -> None:
        weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        order = np.argsort(groups.codes, kind="stable")
        order = order[weights[order] > 0]
        self.rows, shift = shift_dense_columns(X)
        if len(order) < len(weights) or (np.diff(order) < 0).any():
            self.rows = self.rows[order]
        codes, self.codes, n_rows = np.unique(groups.codes[order], return_inverse=True, return_counts=True)
        self.weights, self._blocks = weights[order], []
        step = max(_BLOCK_NUMBERS // X.shape[1], _BLOCK_MIN_ROWS)
        for a, last in enumerate(np.cumsum(n_rows).tolist()):
            for start in range(last - int(n_rows[a]), last, step):
                part = slice(start, min(start + step, last))
                self._blocks.append(_Block(a, _rows_of(self.rows, part), self.weights[part]))
        self.labels = tuple(groups.labels[code] for code in codes)
        self.counts, means = np.zeros(len(codes)), np.zeros((len(codes), X.shape[1]))
        for a, rows, given in self._blocks:
            self.counts[a] += given.sum()
            means[a] += rows.T @ given
        means /= self.counts[:, None]
        if not np.isfinite(means).all() or len(order) < len(weights):
            check_finite(X)  # missing values always reach the mean, so clean data is usually spared this pass
        self._means, self.centre = means, self.shares @ means
        self.means, self.pooled_mean = means + shift, self.centre + shift
        self._within = np.zeros_like(means)
        for block in self._blocks:
            self._within[block.group] += _variation(block, means[block.group])
        if sparse.issparse(X):
            self._within = np.maximum(self._within - self.counts[:, None] * means * means, 0.0)

    @property
    def coordinates(self) -> GroupFactors:
        return self

    def forms(self, basis: np.ndarray, center: str = "pooled") -> np.ndarray:
        forms = basis.T @ self.second_moments(center).images(basis)
        return 0.5 * (forms + forms.transpose(0, 2, 1))

    def pooled_variances(self) -> np.ndarray:
        """The diagonal of ``S``."""
        offsets = self._means - self.centre
        return self._within.sum(axis=0) / self.total_count + self.shares @ offsets**2

    def second_moments(self, center: str = "pooled") -> MomentProducts:
        return MomentProducts(self._blocks, self.counts, self._centres(center))

    def traces(self, center: str = "pooled") -> np.ndarray:
        offsets = self._means - self._centres(center)
        return self._within.sum(axis=1) / self.counts + np.einsum("aj,aj->a", offsets, offsets)

    def _centres(self, center: str) -> np.ndarray:
        own = check_choice("center", center, ("pooled", "group")) == "group"
        return self._means if own else np.broadcast_to(self.centre, self._means.shape)

    def columns_fixed_by_group(self) -> np.ndarray:
        return fixed_by_group(self.counts, self.means, self._within.sum(axis=0))


class _Block(NamedTuple):
    """Rows of one group, and their weights."""

    group: int
    rows: Any
    weights: np.ndarray


def _rows_of(X: Any, part: slice) -> Any:
    """Some rows without copying them; scipy would copy a part of a sparse matrix."""
    if not sparse.issparse(X):
        return X[part]
    first, last = X.indptr[part.start], X.indptr[part.stop]
    pointers = X.indptr[part.start : part.stop + 1] - first
    return sparse.csr_array((X.data[first:last], X.indices[first:last], pointers), (len(pointers) - 1, X.shape[1]))


def _variation(block: _Block, mean: np.ndarray) -> np.ndarray:
    """Weighted sum of squares for each column: about the mean for dense rows, about zero for sparse ones."""
    rows, weights = block.rows, block.weights
    if sparse.issparse(rows):
        squares = np.square(rows.data, dtype=np.float64) * np.repeat(weights, np.diff(rows.indptr))
        return np.bincount(rows.indices, squares, minlength=len(mean))
    centred = rows - mean
    return weights @ np.square(centred, out=centred)


@dataclass(frozen=True, eq=False)
class MomentProducts:
    """Products with the ``M_a`` about given centres; the blocks of rows are in the order of the groups."""

    blocks: Sequence[_Block]
    counts: np.ndarray
    centres: np.ndarray

    @property
    def n_matrices(self) -> int:
        return len(self.counts)

    @property
    def size(self) -> int:
        return self.centres.shape[1]

    def images(self, vectors: np.ndarray) -> np.ndarray:
        """``M_a V`` for every group, of shape (k, p, m)."""
        images = np.empty((self.n_matrices, *vectors.shape))
        for a, unit in enumerate(np.eye(self.n_matrices)):
            images[a] = self.combined(unit, vectors)
        return images

    def combined(self, weights: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """``sum_a w_a M_a V``: two products with the rows of each group of nonzero weight, on all cores."""
        blocks = [block for block in self.blocks if weights[block.group]]
        n_threads = min(blas_threads(), len(blocks)) if sparse.issparse(blocks[0].rows) else 1
        if n_threads == 1:
            return self._combined(blocks, weights, vectors)
        with ThreadPoolExecutor(n_threads) as pool:
            parts = [blocks[start::n_threads] for start in range(n_threads)]
            images = pool.map(lambda part: self._combined(part, weights, vectors), parts)
            return functools.reduce(np.add, images)

    def _combined(self, blocks: Sequence[_Block], weights: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        narrow = vectors.astype(blocks[0].rows.dtype, copy=False)
        image, sums = np.zeros(vectors.shape), np.zeros((self.n_matrices, vectors.shape[1]))
        for a, rows, given in blocks:
            scores = rows @ narrow - (self.centres[a] @ vectors).astype(narrow.dtype)
            scores *= (given * (weights[a] / self.counts[a]))[:, None].astype(narrow.dtype)
            image += rows.T @ scores
            sums[a] += scores.sum(axis=0, dtype=np.float64)
        return image - self.centres.T @ sums
