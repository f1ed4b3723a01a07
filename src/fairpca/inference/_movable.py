"""What a random division moves between groups: rows, persons with several rows, or blocks of rows."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from fairpca._validation import check_several_groups
from fairpca.inference._checks import CountedRows, check_clusters, check_one_group_each
from fairpca.moments import GroupMoments
from fairpca.moments._accumulate import accumulate
from fairpca.moments._sources import RandomCells, RowSource, cell_moments, row_counts

__all__ = ["Movable", "Sums", "draw_division", "group_sums", "movable_rows"]

#: With more numbers than this in memory, blocks of rows are moved instead of rows.
MANY_NUMBERS = 20_000_000
#: Minimum number of blocks in total and in the smallest group.
_MIN_BLOCKS, _MIN_BLOCKS_OF_GROUP = 100, 3
#: Maximum number of bytes for the moments of all blocks.
_BLOCK_BYTES = 1 << 30


class Sums(NamedTuple):
    """Weight, sum and sum of outer products of some rows, about the pooled mean."""

    weight: float
    total: np.ndarray
    squares: np.ndarray


class Movable(Protocol):
    """What is moved; ``codes`` holds the true group of each, ``whole`` the sums over all, ``unit`` its name."""

    codes: np.ndarray
    whole: Sums
    unit: str

    def sums(self, chosen: np.ndarray) -> Sums:
        """Sums over those with these indices."""


class _Rows:
    """Rows, or all rows of a person together; ``clusters`` are codes from 0."""

    def __init__(self, source: CountedRows, clusters: np.ndarray | None, center: np.ndarray) -> None:
        X = source.X.toarray() if sparse.issparse(source.X) else source.X
        self._rows = np.ascontiguousarray(X, dtype=np.float64) - center  # rows are gathered a thousand times
        self._roots = None if source.weights is None else np.sqrt(source.weights)
        if self._roots is not None:
            self._rows *= self._roots[:, None]
        self.codes, self.unit = source.groups.codes, "rows"
        self._order: np.ndarray | None = None
        if clusters is not None:
            self.unit, self._order = "clusters", np.argsort(clusters, kind="stable")
            self._starts = np.searchsorted(clusters[self._order], np.arange(clusters.max() + 2))
            self.codes = self.codes[self._order[self._starts[:-1]]]
        self.whole = self.sums(np.arange(len(self.codes)))

    def sums(self, chosen: np.ndarray) -> Sums:
        if self._order is not None:
            lengths = self._starts[chosen + 1] - self._starts[chosen]
            offsets = np.repeat(self._starts[chosen] - np.r_[0, np.cumsum(lengths)[:-1]], lengths)
            chosen = self._order[offsets + np.arange(lengths.sum())]
        rows = self._rows.take(chosen, axis=0)
        roots = np.ones(len(rows)) if self._roots is None else self._roots[chosen]
        return Sums(float(roots @ roots), roots @ rows, rows.T @ rows)


class _BlocksOfRows:
    """Blocks of rows formed at random within groups, of which only the moments are known."""

    unit = "blocks"

    def __init__(self, blocks: GroupMoments, codes: np.ndarray, center: np.ndarray) -> None:
        """``blocks`` has one label per block, ``codes`` the group of each."""
        self.codes = codes
        self._weights = blocks.counts
        self._totals = (blocks.means - center) * blocks.counts[:, None]
        self._squares = blocks.second_moments(center) * blocks.counts[:, None, None]
        self.whole = self.sums(np.arange(len(codes)))

    def sums(self, chosen: np.ndarray) -> Sums:
        parts = self._totals[chosen].sum(axis=0), self._squares[chosen].sum(axis=0)
        return Sums(float(self._weights[chosen].sum()), *parts)


def movable_rows(source: RowSource, clusters: Any, seed: int) -> tuple[Movable, GroupMoments]:
    """What is moved, and the moments of the true groups."""
    if isinstance(source, CountedRows):
        codes = check_clusters(clusters, source)
        if codes is not None or not _blocks_save_time(source):
            if codes is not None:
                check_one_group_each(codes, source.groups)
            moments = accumulate(source.X, source.groups, source.weights)
            return _Rows(source, codes, moments.pooled_mean), moments
    elif clusters is not None:
        raise ValueError("clusters are supported for rows in memory only; pass a random sample of the clusters.")
    return _blocks(source, seed)


def _blocks_save_time(source: CountedRows) -> bool:
    """Many numbers, and few enough features for the moments of a hundred blocks to fit into memory."""
    many = source.X.shape[0] * source.n_features > MANY_NUMBERS
    return many and _MIN_BLOCKS * source.n_features**2 * 8 <= _BLOCK_BYTES


def _blocks(source: RowSource, seed: int) -> tuple[Movable, GroupMoments]:
    """Blocks of about the same size in all groups, so that they can be exchanged."""
    counts = row_counts(source)
    check_several_groups(counts, sum(counts.values()))
    cells = RandomCells(tuple(counts), _blocks_per_group(counts, source.n_features), seed)
    blocks = cell_moments(source, cells)
    codes = np.searchsorted(np.cumsum(cells.n_cells), blocks.labels, side="right")
    chosen = [np.flatnonzero(codes == code) for code in range(len(cells.labels))]
    merged = [
        blocks.pick(members, tuple(range(len(members)))).merge_groups(label)
        for members, label in zip(chosen, cells.labels, strict=True)
    ]
    moments = merged[0].merge(*merged[1:])
    return _BlocksOfRows(blocks, codes, moments.pooled_mean), moments


def _blocks_per_group(counts: dict[Any, int], n_features: int) -> tuple[int, ...]:
    """Numbers of blocks such that all have about the same size: enough in total and in the smallest group."""
    sizes = np.array(list(counts.values()))
    rows = min(sizes.sum() / _MIN_BLOCKS, sizes.min() / _MIN_BLOCKS_OF_GROUP)
    n_blocks = np.maximum(np.rint(sizes / rows), 1).astype(int)
    smallest = list(counts)[int(sizes.argmin())]
    if rows < 1:
        raise ValueError(f"Group {smallest!r} has {sizes.min()} rows; blocks of rows need at least 3.")
    if n_blocks.sum() * n_features**2 * 8 > _BLOCK_BYTES:
        raise ValueError(
            f"Group {smallest!r} is so small ({sizes.min():,} of {sizes.sum():,} rows) that {n_blocks.sum():,} blocks "
            "of rows would be needed; leave it out, merge it with another group, or pass a random sample of the rows "
            "in memory."
        )
    return tuple(n_blocks.tolist())


def draw_division(sizes: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """What belongs to each group but the largest, in a random division into groups of these sizes."""
    smaller = np.delete(sizes, sizes.argmax())
    drawn = rng.choice(int(sizes.sum()), int(smaller.sum()), replace=False, shuffle=len(smaller) > 1)
    return np.split(drawn, np.cumsum(smaller)[:-1])


def group_sums(movable: Movable, smaller: list[np.ndarray], largest: int) -> list[Sums]:
    """Sums of every group; those of the largest follow from the whole."""
    found = [movable.sums(chosen) for chosen in smaller]
    rest = movable.whole
    for one in found:
        rest = Sums(rest.weight - one.weight, rest.total - one.total, rest.squares - one.squares)
    found.insert(largest, rest)
    return found
