"""Random blocks of rows within every group, from which folds are made again and again without another pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    members = check_clusters(clusters, source)
    if members is not None:
        assert isinstance(source, CountedRows)
        return _of_clusters(source, members, n_folds, seed)
    counts = row_counts(source)
    check_several_groups(counts, sum(counts.values()))
    numbers, sizes = _numbers_of_blocks(counts, n_folds, "rows"), np.array([*counts.values()])
    cells: Cells = RandomCells(tuple(counts), numbers, seed)
    if isinstance(source, CountedRows):
        cells = GivenCells(tuple(counts), numbers, _spread_rows(source.groups, numbers, rng_for(seed, "blocks")))
    stratum = np.repeat(np.arange(len(counts)), numbers)
    return Blocks(tuple(counts), cells, stratum, np.arange(len(stratum)), stratum, sizes, sizes, seed)


def _numbers_of_blocks(sizes: Mapping[Any, int], n_folds: int, unit: str) -> tuple[int, ...]:
    label, size = min(sizes.items(), key=lambda item: item[1])
    if size < n_folds:
        raise ValueError(
            f"Group {quoted(label)} has {size} {unit}, fewer than the {n_folds} folds: use a smaller cv, or merge the "
            "group with another one."
        )
    return tuple(min(max(N_BLOCKS, 2 * n_folds), one) for one in sizes.values())


def _spread_rows(groups: Groups, numbers: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    """The block of each row; blocks are numbered group by group."""
    starts, block = np.cumsum([0, *numbers]), np.empty(len(groups.codes), dtype=np.intp)
    for a, count in enumerate(numbers):
        rows = np.flatnonzero(groups.codes == a)
        block[rows] = starts[a] + spread_evenly(len(rows), count, rng)
    return block


def _of_clusters(source: CountedRows, clusters: np.ndarray, n_folds: int, seed: int) -> Blocks:
    """Every cluster lies in one block, formed within the group that most of its rows have."""
    labels, codes = source.groups.labels, source.groups.codes
    k, rng = len(labels), rng_for(seed, "blocks")
    rows = np.zeros((clusters.max() + 1, k))
    np.add.at(rows, (clusters, codes), 1.0)
    home = rows.argmax(axis=1)
    homes = np.bincount(home, minlength=k).tolist()
    numbers = _numbers_of_blocks(dict(zip(labels, homes, strict=True)), n_folds, "clusters")
    starts, of_cluster = np.cumsum([0, *numbers]), np.empty(len(home), dtype=np.intp)
    for a, count in enumerate(numbers):
        members = rng.permutation(np.flatnonzero(home == a))
        members = members[np.argsort(-rows[members].sum(axis=1), kind="stable")]  # those of one size, in turn
        rounds = [rng.permutation(count) for _ in range(-(-len(members) // count))]
        of_cluster[members] = starts[a] + np.concatenate(rounds)[: len(members)]
    pairs, cell = np.unique(of_cluster[clusters] * k + codes, return_inverse=True)
    block, group = np.divmod(pairs, k)
    cells = GivenCells(labels, tuple(np.bincount(group, minlength=k).tolist()), cell.reshape(-1))
    counts, sizes = rows.sum(axis=0).astype(int), (rows > 0).sum(axis=0)
    return Blocks(labels, cells, group, block, np.repeat(np.arange(k), numbers), counts, sizes, seed, "clusters")
