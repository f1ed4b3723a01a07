"""Sources of rows that are visited more than once: memory, an iterable of chunks, a Dask collection.

A source applies a function to every chunk and merges the results. Cells subdivide each group: into folds for
cross-validation, or into blocks that a permutation test moves between groups.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.utils import _safe_indexing

from fairpca._validation import Groups, check_several_groups, code_type, ordered_labels, rng_for
from fairpca.moments._accumulate import accumulate, checked_chunks
from fairpca.moments._group_moments import GroupMoments

#: Above this many rows per cell, the cell of each row is drawn independently.
_DRAWN_ROWS = 10_000
#: ``function(number of the chunk, X, groups, weights) -> value``
ChunkFunction = Callable[[int, Any, Groups, "np.ndarray | None"], Any]
#: ``function(number of the chunk, groups) -> the cell of each row``, the same in every pass.
Cells = Callable[[int, Groups], np.ndarray]


class RowSource(Protocol):
    """Rows that can be visited repeatedly; ``owns_threads`` if no scheduler processes chunks in parallel."""

    owns_threads: bool

    @property
    def n_features(self) -> int: ...

    def map_reduce(self, function: ChunkFunction, merge: Callable[[Sequence[Any]], Any]) -> Any:
        """Apply ``function`` to every chunk that has rows, and merge the values; both must be picklable for Dask."""


@dataclass(frozen=True)
class MemorySource:
    """Validated rows in memory with positive weight, as a single chunk; ``kept`` marks these among the rows given."""

    X: Any
    groups: Groups
    weights: np.ndarray | None = None
    kept: np.ndarray | None = None
    owns_threads = True

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    @property
    def n_given(self) -> int:
        return self.X.shape[0] if self.kept is None else len(self.kept)

    def select(self, values: Any) -> Any:
        """Of a column with an entry for every row given, those of these rows."""
        return values if values is None or self.kept is None else _safe_indexing(values, self.kept)

    def map_reduce(self, function: ChunkFunction, merge: Callable[[Sequence[Any]], Any]) -> Any:
        return function(0, self.X, self.groups, self.weights)


class ChunkSource:
    """An iterable that yields ``(X, sensitive_features[, sample_weight])`` tuples anew in every pass."""

    owns_threads = True

    def __init__(self, chunks: Iterable[tuple]) -> None:
        if isinstance(chunks, Iterator):
            raise TypeError(
                "X is an iterator, which can be read only once, but several passes are needed: give a list of chunks, "
                "or an object whose __iter__ starts again (for Parquet files: fairpca.moments.arrow.ParquetChunks)."
            )
        self._chunks = chunks
        self.n_features = next(checked_chunks(chunks))[1][0].shape[1]

    def map_reduce(self, function: ChunkFunction, merge: Callable[[Sequence[Any]], Any]) -> Any:
        values = (function(number, *chunk) for number, chunk in checked_chunks(self._chunks))
        return functools.reduce(lambda merged, value: merge([merged, value]), values)


def random_cells(number: int, groups: Groups, *, n_cells: Mapping[Any, int], seed: int) -> np.ndarray:
    """:data:`Cells` of random rows, as many in each group as given, of sizes as even as possible in each chunk."""
    return spread_by_group(groups, n_cells, rng_for(seed, f"cells {number}"))


def spread_by_group(groups: Groups, n_cells: Mapping[Any, int], rng: np.random.Generator) -> np.ndarray:
    """A random cell of its group for each row; cells are numbered group by group, in the order of ``n_cells``.

    A group that is not among them has rows of weight zero only, which add nothing to any cell.
    """
    first = dict(zip(n_cells, np.cumsum([0, *n_cells.values()]), strict=False))
    cells = np.zeros(len(groups.codes), dtype=np.intp)
    for code, label in enumerate(groups.labels):
        if label in n_cells:
            rows = np.flatnonzero(groups.codes == code)
            cells[rows] = first[label] + spread_evenly(len(rows), n_cells[label], rng)
    return cells


def spread_evenly(n_rows: int, n_cells: int, rng: np.random.Generator) -> np.ndarray:
    """A random cell for each row; sizes differ by at most one, and which cells are larger is random as well.

    For very many rows each cell is drawn independently, which is much faster; sizes then vary by one percent or less.
    """
    if n_rows > _DRAWN_ROWS * n_cells:
        return rng.integers(n_cells, size=n_rows, dtype=np.uint16)
    return (rng.permutation(n_rows) + rng.integers(n_cells)) % n_cells


def cell_moments(source: RowSource, cells: Cells, n_cells: int) -> GroupMoments:
    """Moments of every cell that has rows, in one pass; the labels are the numbers of the cells."""
    labels, parallel = tuple(range(n_cells)), source.owns_threads

    def moments(number: int, X: Any, groups: Groups, weights: np.ndarray | None) -> GroupMoments:
        codes = cells(number, groups).astype(code_type(n_cells), copy=False)
        return accumulate(X, Groups(labels, codes), weights, parallel=parallel)

    return source.map_reduce(moments, merge_moments)


def merge_moments(parts: Sequence[Any]) -> Any:
    """Of one kind: moments of groups, or with attributes."""
    return parts[0].merge(*parts[1:])


def row_counts(source: RowSource) -> dict[Any, int]:
    """Rows of positive weight in each of several groups, in the order of the labels."""
    found = source.map_reduce(_count, lambda parts: sum(parts, Counter()))
    check_several_groups(found, sum(found.values()))
    return {label: found[label] for label in ordered_labels(found)}


def _count(number: int, X: Any, groups: Groups, weights: np.ndarray | None) -> Counter:
    codes = groups.codes if weights is None else groups.codes[weights > 0]
    counts = np.bincount(codes, minlength=len(groups)).tolist()
    return +Counter(dict(zip(groups.labels, counts, strict=True)))
