"""Rows of Dask collections sorted by group, for the methods that compare whole distributions.

:class:`DaskSample` is the counterpart of :class:`~fairpca.moments.GroupedSample`: it sums any function of the rows
over chunks, or over pairs of chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fairpca._validation import Groups, check_groups, check_plain_matrix
from fairpca.moments._dask_chunks import aligned_chunks, compute, count_features, tree
from fairpca.moments._grouped_sample import GroupedSample

#: Number of chunks that one task compares with another chunk.
_PARTNERS = 16
GATHERED_ROWS = 64_000
"""At most this many rows are ever gathered in one place."""
GATHERED_NUMBERS = 20_000_000
"""At most this many numbers are ever gathered in one place."""


@dataclass(frozen=True, eq=False)
class _Plan:
    """How to turn a chunk into a :class:`GroupedSample`: the cells of all chunks, their total weights, one centre."""

    labels: tuple[Any, ...]
    cells: Callable[[Groups, Any], tuple[Groups, np.ndarray]]
    centre: np.ndarray
    totals: np.ndarray

    def part(self, X: Any, sensitive_features: Any, sample_weight: Any, y: Any) -> GroupedSample:
        """Rows sorted by cell; weights are normalised over all chunks, so they do not sum to one within a chunk."""
        k, n = len(self.labels), X.shape[0]
        if n == 0:
            return GroupedSample(self.labels, np.zeros((0, len(self.centre))), np.zeros(k + 1, np.intp), np.zeros(0))
        X = check_plain_matrix(X)
        cells, weights = self.cells(check_groups(sensitive_features, n), y)
        if sample_weight is not None:
            weights = weights * np.asarray(sample_weight, dtype=np.float64)
        code_of = {label: code for code, label in enumerate(self.labels)}
        codes = np.array([code_of.get(label, k) for label in cells.labels])[cells.codes]
        kept = np.flatnonzero((weights > 0) & (codes < k))
        order = kept[np.argsort(codes[kept], kind="stable")]
        rows = X[order].toarray() if sparse.issparse(X) else X[order]
        rows = np.asarray(rows, dtype=np.float64) - self.centre
        counts = np.bincount(codes[order], minlength=k)
        return GroupedSample(self.labels, rows, np.r_[0, np.cumsum(counts)], weights[order] / self.totals[codes[order]])


class DaskSample:
    """The rows of every chunk sorted by group, in place: what :class:`GroupedSample` is for an array.

    Only sums and small random samples ever leave the chunks. On a cluster the sorted chunks are kept in the workers'
    memory; other schedulers prepare them again for every sum, so that only a few chunks are in memory at a time.

    Attributes
    ----------
    labels : tuple of length k
    counts : ndarray of shape (k,)
        Number of rows in each group.
    weight_squares : ndarray of shape (k,)
        Sums of the squared weights; the weights of each group sum to one over all chunks.
    shares : ndarray of shape (k,)
        How the weight of all rows is divided between the groups.

    Examples
    --------
    >>> import dask.array as da, numpy as np
    >>> from fairpca.moments._dask_sample import DaskSample
    >>> X, groups = da.from_array(np.arange(8.0).reshape(4, 2), chunks=(2, 2)), np.array(["a", "b", "b", "b"])
    >>> sample = DaskSample.from_dask(X, groups, labels=("a", "b"), centre=np.zeros(2))
    >>> sample.counts
    array([1, 3])
    >>> sample.sum_over_parts(lambda part: part.weights @ part.rows)  # the sum of both group means
    array([4., 6.])
    """

    def __init__(self, parts: list[Any], plan: _Plan, sizes: np.ndarray, squares: np.ndarray) -> None:
        self._parts, self._plan, self._sizes = parts, plan, sizes
        self.labels, self.counts, self.weight_squares = plan.labels, sizes.sum(axis=0), squares
        self.shares = plan.totals / plan.totals.sum()

    @classmethod
    def from_dask(
        cls,
        X: Any,
        sensitive_features: Any,
        sample_weight: Any = None,
        y: Any = None,
        *,
        labels: tuple[Any, ...],
        centre: np.ndarray,
        cells: Callable[[Groups, Any], tuple[Groups, np.ndarray]] | None = None,
    ) -> DaskSample:
        """Count rows and weights of each group; ``cells`` may subdivide a chunk's groups or leave rows out."""
        import dask

        divide = cells or _as_they_are
        chunks = aligned_chunks(X, sensitive_features=sensitive_features, sample_weight=sample_weight, y=y)
        plan = _Plan(tuple(labels), divide, np.zeros(count_features(X)), np.ones(len(labels)))
        measure = dask.delayed(_sizes_and_weights, pure=False)
        sums = np.array(compute(*[measure(plan, *chunk) for chunk in chunks]))
        present = np.flatnonzero(sums[:, 0].sum(axis=0) > 0)
        sizes, weights, squares = np.moveaxis(sums[:, :, present], 1, 0)
        totals = weights.sum(axis=0)
        plan = _Plan(tuple(labels[code] for code in present), divide, centre, totals)
        prepare = dask.delayed(_prepare, pure=False)
        parts = [prepare(plan, *chunk) for chunk in chunks]
        if _on_cluster():
            parts = list(dask.persist(*parts))
        return cls(parts, plan, sizes.astype(np.int64), squares.sum(axis=0) / totals**2)

    @property
    def n_rows(self) -> int:
        return int(self.counts.sum())

    @property
    def largest_gathered(self) -> int:
        """The largest number of rows that may be gathered in one place."""
        return min(GATHERED_ROWS, GATHERED_NUMBERS // len(self._plan.centre))

    def sum_over_parts(self, function: Callable[..., np.ndarray], *arguments: Any) -> np.ndarray:
        """``sum_c function(rows of chunk c, *arguments)``; the function must be picklable on a cluster."""
        import dask

        apply, add = dask.delayed(function, pure=False), dask.delayed(_add, pure=False)
        return compute(tree(add, [apply(part, *arguments) for part in self._parts]))[0]

    def sum_over_pairs(self, basis: np.ndarray, function: Callable[..., np.ndarray], *arguments: Any) -> np.ndarray:
        """``sum_{c, c'} function(scores of chunk c, scores of chunk c', *arguments)``.

        Exchanging the two chunks must transpose the value of the function. A task receives the scores (not the rows)
        of one chunk and of a few others.
        """
        import dask

        project, compare = dask.delayed(_projected, pure=False), dask.delayed(_sum_of_pairs, pure=False)
        scores = [project(part, basis) for part in self._parts]
        sums = [
            compare(function, scores[i], scores[j : j + _PARTNERS], arguments, j == i)
            for i in range(len(scores))
            for j in range(i, len(scores), _PARTNERS)
        ]
        return compute(tree(dask.delayed(_add, pure=False), sums))[0]

    def subsample(self, size: int, rng: np.random.Generator) -> GroupedSample | DaskSample:
        """About ``size`` rows, drawn as in :meth:`GroupedSample.subsample`, or self if they are too many to gather."""
        if min(size, self.n_rows) > self.largest_gathered:
            return self
        shares = self.counts / self.n_rows
        wanted = np.minimum(self.counts, np.maximum(50, np.rint(size * shares).astype(np.int64)))
        picked = [_divide(rng, sizes, count) for sizes, count in zip(self._sizes.T, wanted, strict=True)]
        parts = self._pick(np.stack(picked, axis=1), rng)
        rows = np.concatenate([part.rows[_cell(part, a)] for a in range(len(self.labels)) for part in parts])
        weights = [np.concatenate([part.weights[_cell(part, a)] for part in parts]) for a in range(len(self.labels))]
        kept = np.array([part.sum() for part in weights])
        normalised = np.concatenate([part / total for part, total in zip(weights, kept, strict=True)])
        shares = self.shares * kept / (self.shares @ kept)
        return GroupedSample(self.labels, rows, np.r_[0, np.cumsum(wanted)], normalised, shares)

    def scores_at_random(
        self, basis: np.ndarray, size: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Scores of rows drawn uniformly from all groups together, and their weights (None if all are 1)."""
        if size >= self.n_rows:
            picked = self._sizes
        else:
            flat = _divide(rng, self._sizes.ravel(), size)
            picked = flat.reshape(self._sizes.shape)
        parts = self._pick(picked, rng, basis)
        weights = np.concatenate([part.weights * np.repeat(self._plan.totals, part.counts) for part in parts])
        return np.concatenate([part.rows for part in parts]), None if np.allclose(weights, 1.0) else weights

    def _pick(
        self, wanted: np.ndarray, rng: np.random.Generator, basis: np.ndarray | None = None
    ) -> list[GroupedSample]:
        """Draw the ``wanted`` number of rows, given per chunk and group."""
        import dask

        pick = dask.delayed(_pick_rows, pure=False)
        seeds = rng.integers(2**63, size=len(self._parts)).tolist()
        tasks = [pick(part, count, seed, basis) for part, count, seed in zip(self._parts, wanted, seeds, strict=True)]
        return list(compute(*tasks))


def _as_they_are(groups: Groups, y: Any) -> tuple[Groups, np.ndarray]:
    return groups, np.ones(len(groups.codes))


def _prepare(plan: _Plan, *chunk: Any) -> GroupedSample:
    return plan.part(*chunk)


def _sizes_and_weights(plan: _Plan, *chunk: Any) -> np.ndarray:
    """Number of rows and sums of weights and squared weights of each group, of shape (3, k)."""
    part = plan.part(*chunk)
    codes, k = np.repeat(np.arange(len(plan.labels)), part.counts), len(plan.labels)
    return np.stack(
        [np.bincount(codes, power, minlength=k) for power in (part.weights**0, part.weights, part.weights**2)]
    )


def _projected(part: GroupedSample, basis: np.ndarray) -> GroupedSample:
    return GroupedSample(part.labels, part.rows @ basis, part.starts, part.weights)


def _sum_of_pairs(
    function: Callable[..., np.ndarray],
    first: GroupedSample,
    others: Sequence[GroupedSample],
    arguments: tuple,
    with_itself: bool,
) -> np.ndarray:
    total: Any = 0.0
    for position, other in enumerate(others):
        value = function(first, other, *arguments)
        total = total + (value if with_itself and position == 0 else value + value.T)
    return total


def _pick_rows(part: GroupedSample, wanted: np.ndarray, seed: int, basis: np.ndarray | None) -> GroupedSample:
    rng = np.random.default_rng(seed)
    chosen = np.concatenate(
        [
            start + np.sort(rng.choice(count, int(size), replace=False))
            for start, count, size in zip(part.starts, part.counts, wanted, strict=False)
        ]
    ).astype(np.intp)
    rows = part.rows[chosen] if basis is None else part.rows[chosen] @ basis
    return GroupedSample(part.labels, rows, np.r_[0, np.cumsum(wanted)], part.weights[chosen])


def _divide(rng: np.random.Generator, sizes: np.ndarray, count: int) -> np.ndarray:
    """How many of ``count`` rows, drawn without replacement, fall into each of several sets."""
    return rng.multivariate_hypergeometric(sizes, int(count), method="marginals")


def _cell(part: GroupedSample, a: int) -> slice:
    return slice(part.starts[a], part.starts[a + 1])


def _add(values: Sequence[np.ndarray]) -> np.ndarray:
    return np.add.reduce(values)


def _on_cluster() -> bool:
    import dask.base

    scheduler = dask.base.get_scheduler()
    return type(getattr(scheduler, "__self__", None)).__module__.split(".")[0] == "distributed"
