"""The moments of very many features as linear operators: products with M_a, never the p x p matrix itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fairpca._validation import Groups, check_choice, check_finite
from fairpca.moments._group_moments import Reduction, fixed_by_group
from fairpca.moments._sparse_shift import shift_dense_columns

__all__ = ["GroupFactors", "MomentProducts"]

#: Numbers centred at a time while the variances are summed.
_BLOCK_SIZE = 4_000_000


class GroupFactors(Reduction):
    """Rows sorted by group, from which ``M_a V = X_a^T (X_a V)`` is computed, with the centring as a rank-one term.

    A dense X is copied once unless its rows are already sorted by group; a sparse X stays sparse. The attributes
    ``labels``, ``counts``, ``means`` and ``pooled_mean`` are those of :class:`~fairpca.moments.GroupMoments`.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca._validation import check_groups
    >>> from fairpca.moments import GroupFactors, group_moments
    >>> rng = np.random.default_rng(0)
    >>> X, groups = rng.normal(size=(30, 5)), np.arange(30) % 2
    >>> factors = GroupFactors(X, check_groups(groups, 30))
    >>> V = rng.normal(size=(5, 2))
    >>> np.allclose(factors.second_moments().images(V), group_moments(X, groups).second_moments() @ V)
    True
    """

    def __init__(self, X: Any, groups: Groups, sample_weight: np.ndarray | None = None) -> None:
        weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        given = X
        order = np.argsort(groups.codes, kind="stable")
        order = order[weights[order] > 0]
        if len(order) < X.shape[0] or (np.diff(order) < 0).any():
            X = X[order]
        self._weights = weights[order]
        codes, starts = np.unique(groups.codes[order], return_index=True)
        ends = np.append(starts[1:], len(order))
        self._parts = [slice(start, end) for start, end in zip(starts, ends, strict=True)]
        self._X, shift = shift_dense_columns(X)
        self.labels = tuple(groups.labels[code] for code in codes)
        self.counts = np.array([self._weights[part].sum() for part in self._parts])
        means = np.stack([self._sum(part, self._weights[part]) for part in self._parts]) / self.counts[:, None]
        if not np.isfinite(means).all() or len(order) < len(weights):
            check_finite(given)  # missing values always reach the mean, so clean data is usually spared this pass
        self._means, self._centre = means, self.shares @ means
        self.means, self.pooled_mean = means + shift, self._centre + shift
        self._within = np.stack([self._variation(part, mean) for part, mean in zip(self._parts, means, strict=True)])

    def second_moments(self, center: str = "pooled") -> MomentProducts:
        return MomentProducts(self._X, self._weights, self._parts, self.counts, self._centres(center))

    def traces(self, center: str = "pooled") -> np.ndarray:
        offsets = self._means - self._centres(center)
        return self._within.sum(axis=1) / self.counts + np.einsum("aj,aj->a", offsets, offsets)

    def _centres(self, center: str) -> np.ndarray:
        own = check_choice("center", center, ("pooled", "group")) == "group"
        return self._means if own else np.broadcast_to(self._centre, self._means.shape)

    def pooled_variance(self) -> float:
        offsets = self._means - self._centre
        between = self.counts @ np.einsum("aj,aj->a", offsets, offsets)
        return float(self._within.sum() + between) / self.total_count

    def pooled_form(self, basis: np.ndarray) -> np.ndarray:
        scores = (self._X @ basis.astype(self._X.dtype, copy=False)).astype(np.float64) - self._centre @ basis
        return (scores * self._weights[:, None]).T @ scores / self.total_count

    def columns_fixed_by_group(self) -> np.ndarray:
        return fixed_by_group(self.counts, self.means, self._within.sum(axis=0))

    def _sum(self, part: slice, weights: np.ndarray) -> np.ndarray:
        return np.asarray(self._X[part].T @ weights, dtype=np.float64)

    def _variation(self, part: slice, mean: np.ndarray) -> np.ndarray:
        """Weighted sum of squares about the mean, for each column."""
        rows, weights = self._X[part], self._weights[part]
        if sparse.issparse(rows):
            rows = rows.astype(np.float64)
            return np.maximum(rows.multiply(rows).T @ weights - weights.sum() * mean * mean, 0.0)
        total = np.zeros(len(mean))
        step = max(_BLOCK_SIZE // len(mean), 1)
        for start in range(0, len(rows), step):
            block = rows[start : start + step] - mean
            np.square(block, out=block)
            total += weights[start : start + step] @ block
        return total


@dataclass(frozen=True, eq=False)
class MomentProducts:
    """Products with the ``M_a`` about given centres; ``parts`` are the row ranges of the groups."""

    X: Any
    weights: np.ndarray
    parts: Sequence[slice]
    counts: np.ndarray
    centres: np.ndarray

    @property
    def n_matrices(self) -> int:
        return len(self.parts)

    @property
    def size(self) -> int:
        return self.X.shape[1]

    def images(self, vectors: np.ndarray) -> np.ndarray:
        """``M_a V`` for every group, of shape (k, p, m); takes two products with the rows of each group."""
        narrow = vectors.astype(self.X.dtype, copy=False)
        images = np.empty((self.n_matrices, *vectors.shape))
        for a, part in enumerate(self.parts):
            scores = self.X[part] @ narrow - (self.centres[a] @ vectors).astype(narrow.dtype)
            scores *= (self.weights[part] / self.counts[a])[:, None].astype(narrow.dtype)
            images[a] = self.X[part].T @ scores
            images[a] -= np.outer(self.centres[a], scores.sum(axis=0, dtype=np.float64))
        return images
