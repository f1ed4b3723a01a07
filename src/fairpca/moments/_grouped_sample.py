"""Rows stored group by group, for the methods that compare whole distributions rather than moments."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fairpca._validation import Groups
from fairpca.linalg import blas_threads, single_blas_thread


@dataclass(frozen=True)
class KernelMeans:
    """``values`` M of shape (k, k) and, if asked for, ``fields`` of shape (k, k, p, d).

    The field (a, b) is the derivative of ``M_ab`` by V through the rows of group a alone.
    """

    values: np.ndarray
    fields: np.ndarray | None = None

    def gradient(self, coefficients: np.ndarray) -> np.ndarray:
        """Gradient of ``sum_ab C_ab M_ab`` with respect to V, for symmetric C."""
        assert self.fields is not None
        return 2.0 * np.tensordot(coefficients, self.fields, axes=2)


@dataclass(frozen=True, eq=False)
class GroupedSample:
    """Rows sorted by group: group a holds ``rows[starts[a]:starts[a + 1]]``.

    The declared exception to the rule that data leave this package as moments only. Rows are stored about a
    common centre, which changes no distance and keeps the digits of distances between rows far from the
    origin.

    Attributes
    ----------
    labels : tuple of length k
    rows : ndarray of shape (n, p)
    starts : ndarray of shape (k + 1,)
    weights : ndarray of shape (n,)
        They sum to one within each group.
    shares : ndarray of shape (k,) or None
        How the weight of all rows is divided between the groups; None: as their rows are.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca._validation import check_groups
    >>> from fairpca.moments._grouped_sample import GroupedSample
    >>> sample = GroupedSample.from_rows(np.arange(6.0).reshape(3, 2), check_groups(["b", "a", "b"], 3))
    >>> sample.labels, sample.starts.tolist()
    (('a', 'b'), [0, 1, 3])
    """

    labels: tuple[Any, ...]
    rows: np.ndarray
    starts: np.ndarray
    weights: np.ndarray
    shares: np.ndarray | None = None

    @classmethod
    def from_rows(
        cls, X: Any, groups: Groups, sample_weight: np.ndarray | None = None, centre: np.ndarray | None = None
    ) -> GroupedSample:
        """Sort checked rows; rows of weight zero and groups without rows are left out."""
        weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        kept = np.flatnonzero(weights > 0)
        order = kept[np.argsort(groups.codes[kept], kind="stable")]
        codes = groups.codes[order]
        rows = X[order].toarray() if sparse.issparse(X) else X[order]
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        weights = weights[order]
        rows -= (weights @ rows / weights.sum()) if centre is None else centre
        present, counts = np.unique(codes, return_counts=True)
        starts = np.r_[0, np.cumsum(counts)]
        totals = np.add.reduceat(weights, starts[:-1])
        labels = tuple(groups.labels[code] for code in present)
        return cls(labels, rows, starts, weights / np.repeat(totals, counts), totals / totals.sum())

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def sum_chunks(self, function: Callable[[slice], np.ndarray], size: int) -> np.ndarray:
        """``sum_c function(rows of chunk c)`` for each group, of shape (k, ...); threads share the chunks."""
        groups = [
            [slice(top, min(top + size, last)) for top in range(first, last, size)]
            for first, last in itertools.pairwise(self.starts)
        ]
        with single_blas_thread(), ThreadPoolExecutor(blas_threads()) as pool:
            return np.stack([functools.reduce(np.add, pool.map(function, chunks)) for chunks in groups])

    @property
    def counts(self) -> np.ndarray:
        return np.diff(self.starts)

    @property
    def weight_squares(self) -> np.ndarray:
        """Sum of the squared weights of each group."""
        return np.add.reduceat(self.weights**2, self.starts[:-1])

    def subsample(self, size: int, rng: np.random.Generator) -> GroupedSample:
        """About ``size`` rows without replacement, the groups in proportion but none below 50 of its rows."""
        if size >= self.n_rows:
            return self
        chosen, weights, starts, kept = [], [], [0], []
        for start, count in zip(self.starts[:-1], self.counts, strict=True):
            wanted = min(count, max(50, round(size * count / self.n_rows)))
            rows = start + np.sort(rng.choice(count, wanted, replace=False))
            chosen.append(rows)
            kept.append(self.weights[rows].sum())
            weights.append(self.weights[rows] / kept[-1])
            starts.append(starts[-1] + wanted)
        shares = None if self.shares is None else self.shares * kept / (self.shares @ kept)
        rows = self.rows[np.concatenate(chosen)]
        return GroupedSample(self.labels, rows, np.array(starts), np.concatenate(weights), shares)
