"""What a random division moves between groups: rows, persons with several rows, or blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from fairpca._labels import quoted
from fairpca.inference._checks import check_clusters, check_one_group_each
from fairpca.moments import GroupMoments
from fairpca.moments._accumulate import accumulate
from fairpca.moments._sources import MemorySource, RowSource, cell_moments, random_cells, row_counts

__all__ = ["Movable", "movable_parts"]

#: With more numbers than this in memory, blocks of rows are moved instead of rows.
MANY_NUMBERS = 20_000_000
#: Minimum number of blocks in total and in the smallest group.
_MIN_BLOCKS, _MIN_BLOCKS_OF_GROUP = 100, 3
#: Maximum number of bytes for the moments of all blocks.
_BLOCK_BYTES = 1 << 30

#: From indices of parts to their weight, sum and sum of outer products, about the pooled mean.
Sums = Callable[[np.ndarray], Sequence[np.ndarray]]


class Movable:
    """The parts that are moved between groups.

    Parameters
    ----------
    unit : {"rows", "clusters", "blocks"}
    codes : ndarray
        The true group of each part.
    moments : GroupMoments
        Of the true groups.
    sums : callable
    clusters : ndarray, optional
        The part of each row, where parts are clusters.

    Attributes
    ----------
    true : tuple of ndarray and GroupMoments
        The true division, as :meth:`divide` returns random ones.
    """

    def __init__(
        self, unit: str, codes: np.ndarray, moments: GroupMoments, sums: Sums, clusters: np.ndarray | None = None
    ) -> None:
        self.unit, self.moments, self._sums, self._clusters = unit, moments, sums, clusters
        self._whole, self._sizes = sums(np.arange(len(codes))), np.bincount(codes)
        self.true = self._of_rows(codes), moments

    def _of_rows(self, codes: np.ndarray) -> np.ndarray:
        return codes if self._clusters is None else codes[self._clusters]

    def divide(self, rng: np.random.Generator) -> tuple[np.ndarray, GroupMoments]:
        """A random division into groups of the true sizes: the group of each row or block, and the groups' moments.

        Those of the largest group follow from the whole.
        """
        largest, n_parts = int(self._sizes.argmax()), int(self._sizes.sum())
        smaller = np.delete(self._sizes, largest)
        drawn = rng.choice(n_parts, int(smaller.sum()), replace=False, shuffle=len(smaller) > 1)
        codes, found, rest = np.full(n_parts, largest), [], self._whole
        members = np.split(drawn, np.cumsum(smaller)[:-1])
        for a, chosen in zip(np.delete(np.arange(len(self._sizes)), largest), members, strict=True):
            codes[chosen] = a
            found.append(self._sums(chosen))
            rest = [whole - part for whole, part in zip(rest, found[-1], strict=True)]
        found.insert(largest, rest)
        weights, totals, squares = (np.stack(column) for column in zip(*found, strict=True))
        means = totals / weights[:, None]
        scatters = squares - totals[:, :, None] * means[:, None]
        moments = GroupMoments(self.moments.labels, weights, means + self.moments.pooled_mean, scatters)
        return self._of_rows(codes), moments


def _row_sums(
    rows: np.ndarray, roots: np.ndarray, clusters: np.ndarray | None, chosen: np.ndarray
) -> Sequence[np.ndarray]:
    """Sums over rows, or over all rows of some clusters; the rows are multiplied by the roots of their weights."""
    if clusters is not None:
        chosen = np.flatnonzero(np.isin(clusters, chosen))
    rows, roots = rows.take(chosen, axis=0), roots[chosen]
    return roots @ roots, roots @ rows, rows.T @ rows


def _block_sums(sums: Sequence[np.ndarray], chosen: np.ndarray) -> Sequence[np.ndarray]:
    """Sums over blocks of rows, of which only the moments are known."""
    return [part[chosen].sum(axis=0) for part in sums]


def movable_parts(source: RowSource, clusters: Any, seed: int, *, needs_rows: bool) -> Movable:
    """Rows or clusters in memory, unless blocks of rows save time and are enough; otherwise blocks."""
    members = check_clusters(clusters, source)
    if not isinstance(source, MemorySource):
        return _blocks(source, seed)
    many = source.X.shape[0] * source.n_features > MANY_NUMBERS
    if members is None and not needs_rows and many and _MIN_BLOCKS * source.n_features**2 * 8 <= _BLOCK_BYTES:
        return _blocks(source, seed)
    unit, codes = "rows", source.groups.codes
    if members is not None:
        check_one_group_each(members, source.groups)
        unit, codes = "clusters", codes[np.unique(members, return_index=True)[1]]
    moments = accumulate(source.X, source.groups, source.weights)
    X = source.X.toarray() if sparse.issparse(source.X) else source.X
    roots = np.ones(len(X)) if source.weights is None else np.sqrt(source.weights)
    rows = np.ascontiguousarray(X, dtype=np.float64) - moments.pooled_mean  # they are gathered a thousand times
    rows *= roots[:, None]
    return Movable(unit, codes, moments, partial(_row_sums, rows, roots, members), members)


def _blocks(source: RowSource, seed: int) -> Movable:
    """Blocks formed at random within groups, of about the same size in all of them, so that they can be exchanged."""
    counts = row_counts(source)
    numbers = _blocks_per_group(counts, source.n_features)
    group = np.repeat(np.arange(len(counts)), [*numbers.values()])
    blocks = cell_moments(source, partial(random_cells, n_cells=numbers, seed=seed), len(group))
    codes = group[list(blocks.labels)]
    moments = blocks.merge_by(codes, tuple(counts))
    center, weights = moments.pooled_mean, blocks.counts
    squares = blocks.second_moments(center) * weights[:, None, None]
    sums = partial(_block_sums, (weights, (blocks.means - center) * weights[:, None], squares))
    return Movable("blocks", codes, moments, sums)


def _blocks_per_group(counts: dict[Any, int], n_features: int) -> dict[Any, int]:
    """Numbers of blocks such that all have about the same size: enough in total and in the smallest group."""
    n_rows, (smallest, least) = sum(counts.values()), min(counts.items(), key=lambda item: item[1])
    size = min(n_rows / _MIN_BLOCKS, least / _MIN_BLOCKS_OF_GROUP)
    if size < 1:
        raise ValueError(
            f"X has {n_rows} rows, {least} of them in group {quoted(smallest)}; blocks of rows need at least "
            f"{_MIN_BLOCKS}, and {_MIN_BLOCKS_OF_GROUP} in every group: pass the rows in memory, as one array."
        )
    numbers = {label: max(round(count / size), 1) for label, count in counts.items()}
    n_blocks = sum(numbers.values())
    if n_blocks * n_features**2 * 8 > _BLOCK_BYTES:
        raise ValueError(
            f"Group {quoted(smallest)} is so small ({least:,} of {n_rows:,} rows) that {n_blocks:,} blocks "
            "of rows would be needed; leave it out, merge it with another group, or pass a random sample of the rows "
            "in memory."
        )
    return numbers
