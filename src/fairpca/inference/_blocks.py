"""Random blocks of rows within every group, from which folds are made again and again without another pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._labels import quoted
from fairpca._validation import Groups, check_number, check_several_groups, rng_for
from fairpca.inference._checks import CountedRows, check_clusters
from fairpca.moments import GroupMoments
from fairpca.moments._folds import FoldMoments
from fairpca.moments._sources import Cells, GivenCells, RandomCells, RowSource, cell_moments, row_counts, spread_evenly

__all__ = ["Blocks", "make_blocks"]

#: Blocks per group: the spread between divisions of 40 blocks into ten folds tells how much fits vary (docs/chance.md).
N_BLOCKS = 40
#: Moments of all cells of group and block are kept up to this many bytes; beyond that every division takes a pass.
_CELL_BYTES = 1 << 30


@dataclass(frozen=True)
class Blocks:
    """Rows divided at random within every group; clusters stay whole.

    Attributes
    ----------
    labels : tuple
        The groups.
    cells : Cells
        The cell of group and block of each row.
    group, block : ndarray of shape (n_cells,)
        Of each cell.
    stratum : ndarray of shape (n_blocks,)
        The group within which each block was formed; clusters with rows of several groups belong to one of them.
    counts, sizes : ndarray of shape (n_groups,)
        Rows of each group, and its independent units: rows, or clusters.
    unit : {"rows", "clusters"}
    """

    labels: tuple[Any, ...]
    cells: Cells
    group: np.ndarray
    block: np.ndarray
    stratum: np.ndarray
    counts: np.ndarray
    sizes: np.ndarray
    seed: int
    unit: str = "rows"

    def folds(self, n_folds: int, number: int) -> np.ndarray:
        """The fold of each cell in one of the random divisions, stratified by group."""
        rng, fold = rng_for(self.seed, f"division {number}"), np.empty(len(self.stratum), dtype=np.intp)
        for a in range(len(self.labels)):
            members = np.flatnonzero(self.stratum == a)
            fold[members] = spread_evenly(len(members), n_folds, rng)
        return fold[self.block]

    def moments(self, source: RowSource) -> GroupMoments | None:
        """The moments of all cells from one pass over the rows; None if they would take too much memory."""
        if len(self.group) * source.n_features**2 * 8 > _CELL_BYTES:
            return None
        return cell_moments(source, self.cells)

    def fold_moments(self, source: RowSource, kept: GroupMoments | None, n_folds: int, number: int) -> FoldMoments:
        """The folds of a division: merged from cells that were kept, or by another pass over the rows."""
        folds, k = self.folds(n_folds, number), len(self.labels)
        if kept is not None:
            return FoldMoments.of_cells(kept, self.group, folds, self.labels)
        cells = cell_moments(
            source, _MergedCells(self.labels, (n_folds,) * k, self.cells, self.group * n_folds + folds)
        )
        numbers = np.arange(k * n_folds)
        return FoldMoments.of_cells(cells, numbers // n_folds, numbers % n_folds, self.labels)

    def same_fold(self, n_folds: int) -> float:
        """The probability that two blocks of a group lie in the same fold."""
        n_blocks = int(np.bincount(self.stratum).max())
        return (n_blocks / n_folds - 1.0) / (n_blocks - 1.0)


@dataclass(frozen=True)
class _MergedCells:
    """Cells that are unions of others."""

    labels: tuple[Any, ...]
    n_cells: tuple[int, ...]
    cells: Cells
    merged: np.ndarray

    def codes(self, number: int, groups: Groups) -> np.ndarray:
        return self.merged[self.cells.codes(number, groups)]


def make_blocks(source: RowSource, n_folds: int, clusters: Any, seed: int) -> Blocks:
    """Divide the rows of every group into as many blocks as the folds need, or as it has rows."""
    check_number("cv", n_folds, at_least=2, integer=True)
    if isinstance(source, CountedRows):
        codes = check_clusters(clusters, source)
        return _of_rows(source, n_folds, seed) if codes is None else _of_clusters(source, codes, n_folds, seed)
    if clusters is not None:
        raise ValueError("clusters are supported for rows in memory only; pass a random sample of the clusters.")
    counts = row_counts(source)
    check_several_groups(counts, sum(counts.values()))
    numbers = _numbers_of_blocks(counts, n_folds, "rows")
    stratum = np.repeat(np.arange(len(counts)), numbers)
    cells = RandomCells(tuple(counts), numbers, seed)
    sizes = np.array([*counts.values()])
    return Blocks(tuple(counts), cells, stratum, np.arange(len(stratum)), stratum, sizes, sizes, seed)


def _numbers_of_blocks(sizes: Mapping[Any, int], n_folds: int, unit: str) -> tuple[int, ...]:
    label, size = min(sizes.items(), key=lambda item: item[1])
    if size < n_folds:
        raise ValueError(
            f"Group {quoted(label)} has {size} {unit}, fewer than the {n_folds} folds: use a smaller cv, or merge the "
            "group with another one."
        )
    return tuple(min(max(N_BLOCKS, 2 * n_folds), one) for one in sizes.values())


def _of_rows(source: CountedRows, n_folds: int, seed: int) -> Blocks:
    labels, codes = source.groups.labels, source.groups.codes
    sizes = np.bincount(codes, minlength=len(labels))
    numbers = _numbers_of_blocks(dict(zip(labels, sizes.tolist(), strict=True)), n_folds, "rows")
    starts, rng = np.cumsum([0, *numbers]), rng_for(seed, "blocks")
    block = np.empty(len(codes), dtype=np.intp)
    for a, count in enumerate(numbers):
        block[codes == a] = starts[a] + spread_evenly(int(sizes[a]), count, rng)
    stratum = np.repeat(np.arange(len(labels)), numbers)
    cells = GivenCells(labels, numbers, block)
    return Blocks(labels, cells, stratum, np.arange(len(stratum)), stratum, sizes, sizes, seed)


def _of_clusters(source: CountedRows, clusters: np.ndarray, n_folds: int, seed: int) -> Blocks:
    """Every cluster lies in one block, formed within the group that most of its rows have."""
    labels, codes = source.groups.labels, source.groups.codes
    rows = np.zeros((clusters.max() + 1, len(labels)))
    np.add.at(rows, (clusters, codes), 1.0)
    home, lengths = rows.argmax(axis=1), rows.sum(axis=1)
    sizes = (rows > 0).sum(axis=0)
    homes = np.bincount(home, minlength=len(labels))
    numbers = _numbers_of_blocks(dict(zip(labels, homes.tolist(), strict=True)), n_folds, "clusters")
    starts, rng = np.cumsum([0, *numbers]), rng_for(seed, "blocks")
    of_cluster = np.empty(len(home), dtype=np.intp)
    for a, count in enumerate(numbers):
        members = rng.permutation(np.flatnonzero(home == a))
        members = members[np.argsort(-lengths[members], kind="stable")]  # each round deals clusters of about one size
        rounds = [rng.permutation(count) for _ in range(-(-len(members) // count))]
        of_cluster[members] = starts[a] + np.concatenate(rounds)[: len(members)]
    pairs, cell = np.unique(of_cluster[clusters] * len(labels) + codes, return_inverse=True)
    cells = GivenCells(
        labels, tuple(np.bincount(pairs % len(labels), minlength=len(labels)).tolist()), cell.reshape(-1)
    )
    stratum, counts = np.repeat(np.arange(len(labels)), numbers), np.bincount(codes, minlength=len(labels))
    return Blocks(labels, cells, pairs % len(labels), pairs // len(labels), stratum, counts, sizes, seed, "clusters")
