"""What a random division moves between groups: rows, persons with several rows, or blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fairpca._labels import quoted
from fairpca._validation import check_several_groups
from fairpca.inference._checks import CountedRows, check_clusters, check_one_group_each
from fairpca.moments import GroupMoments
from fairpca.moments._accumulate import accumulate
from fairpca.moments._folds import FoldMoments
from fairpca.moments._sources import RandomCells, RowSource, cell_moments, row_counts

__all__ = ["Movable", "movable_parts"]

#: With more numbers than this in memory, blocks of rows are moved instead of rows.
MANY_NUMBERS = 20_000_000
#: Minimum number of blocks in total and in the smallest group.
_MIN_BLOCKS, _MIN_BLOCKS_OF_GROUP = 100, 3
#: Maximum number of bytes for the moments of all blocks.
_BLOCK_BYTES = 1 << 30

#: Weight, sum and sum of outer products of the parts with these indices, about the pooled mean.
Sums = Sequence[np.ndarray]


@dataclass
class Movable:
    """The parts that are moved between groups.

    Attributes
    ----------
    unit : {"rows", "clusters", "blocks"}
    codes : ndarray
        The true group of each part.
    moments : GroupMoments
        Of the true groups.
    sums : callable
        From indices of parts to :data:`Sums`.
    """

    unit: str
    codes: np.ndarray
    moments: GroupMoments
    sums: Callable[[np.ndarray], Sums]

    def __post_init__(self) -> None:
        self._whole = self.sums(np.arange(len(self.codes)))
        self._sizes = np.bincount(self.codes)

    def divide(self, rng: np.random.Generator) -> tuple[np.ndarray, GroupMoments]:
        """A random division into groups of the true sizes: the group of each part, and the moments of the groups.

        Those of the largest group follow from the whole.
        """
        largest = int(self._sizes.argmax())
        smaller = np.delete(self._sizes, largest)
        drawn = rng.choice(len(self.codes), int(smaller.sum()), replace=False, shuffle=len(smaller) > 1)
        codes, found, rest = np.full(len(self.codes), largest), [], self._whole
        members = np.split(drawn, np.cumsum(smaller)[:-1])
        for a, chosen in zip(np.delete(np.arange(len(self._sizes)), largest), members, strict=True):
            codes[chosen] = a
            found.append(self.sums(chosen))
            rest = [whole - part for whole, part in zip(rest, found[-1], strict=True)]
        found.insert(largest, rest)
        weights, totals, squares = (np.stack(column) for column in zip(*found, strict=True))
        means = totals / weights[:, None]
        scatters = squares - totals[:, :, None] * means[:, None]
        return codes, GroupMoments(self.moments.labels, weights, means + self.moments.pooled_mean, scatters)


class _RowSums:
    """Sums over rows, or over all rows of some clusters."""

    def __init__(self, source: CountedRows, clusters: np.ndarray | None, center: np.ndarray) -> None:
        X = source.X.toarray() if sparse.issparse(source.X) else source.X
        self._rows = np.ascontiguousarray(X, dtype=np.float64) - center  # rows are gathered a thousand times
        self._roots = np.ones(len(X)) if source.weights is None else np.sqrt(source.weights)
        self._rows *= self._roots[:, None]
        self._clusters = clusters

    def __call__(self, chosen: np.ndarray) -> Sums:
        if self._clusters is not None:
            chosen = np.flatnonzero(np.isin(self._clusters, chosen))
        rows, roots = self._rows.take(chosen, axis=0), self._roots[chosen]
        return roots @ roots, roots @ rows, rows.T @ rows


class _BlockSums:
    """Sums over blocks of rows, of which only the moments are known."""

    def __init__(self, blocks: GroupMoments, center: np.ndarray) -> None:
        self._weights = blocks.counts
        self._totals = (blocks.means - center) * blocks.counts[:, None]
        self._squares = blocks.second_moments(center) * blocks.counts[:, None, None]

    def __call__(self, chosen: np.ndarray) -> Sums:
        return tuple(part[chosen].sum(axis=0) for part in (self._weights, self._totals, self._squares))


def movable_parts(source: RowSource, clusters: Any, seed: int, *, needs_rows: bool) -> Movable:
    """Rows or clusters in memory, unless blocks of rows save time and are enough; otherwise blocks."""
    members = check_clusters(clusters, source)
    if not isinstance(source, CountedRows):
        return _blocks(source, seed)
    many = source.X.shape[0] * source.n_features > MANY_NUMBERS
    if members is None and not needs_rows and many and _MIN_BLOCKS * source.n_features**2 * 8 <= _BLOCK_BYTES:
        return _blocks(source, seed)
    codes = source.groups.codes
    if members is not None:
        check_one_group_each(members, source.groups)
        codes = codes[np.unique(members, return_index=True)[1]]
    moments = accumulate(source.X, source.groups, source.weights)
    unit = "rows" if members is None else "clusters"
    return Movable(unit, codes, moments, _RowSums(source, members, moments.pooled_mean))


def _blocks(source: RowSource, seed: int) -> Movable:
    """Blocks formed at random within groups, of about the same size in all of them, so that they can be exchanged."""
    counts = row_counts(source)
    check_several_groups(counts, sum(counts.values()))
    numbers = _blocks_per_group(counts, source.n_features)
    blocks = cell_moments(source, RandomCells(tuple(counts), numbers, seed))
    group = np.repeat(np.arange(len(counts)), numbers)
    moments = FoldMoments.of_cells(blocks, group, np.zeros_like(group), tuple(counts)).whole
    return Movable("blocks", group[list(blocks.labels)], moments, _BlockSums(blocks, moments.pooled_mean))


def _blocks_per_group(counts: dict[Any, int], n_features: int) -> tuple[int, ...]:
    """Numbers of blocks such that all have about the same size: enough in total and in the smallest group."""
    sizes = np.array(list(counts.values()))
    rows = min(sizes.sum() / _MIN_BLOCKS, sizes.min() / _MIN_BLOCKS_OF_GROUP)
    n_blocks = np.maximum(np.rint(sizes / rows), 1).astype(int)
    smallest = quoted(list(counts)[int(sizes.argmin())])
    if rows < 1:
        raise ValueError(f"Group {smallest} has {sizes.min()} rows; blocks of rows need at least 3.")
    if n_blocks.sum() * n_features**2 * 8 > _BLOCK_BYTES:
        raise ValueError(
            f"Group {smallest} is so small ({sizes.min():,} of {sizes.sum():,} rows) that {n_blocks.sum():,} blocks "
            "of rows would be needed; leave it out, merge it with another group, or pass a random sample of the rows "
            "in memory."
        )
    return tuple(n_blocks.tolist())
