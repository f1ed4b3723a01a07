"""Random blocks of rows within every group: folds are made of them again and again without another pass.

A cell is the rows that a group has in a block: the whole block, unless clusters have rows of several groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from fairpca._labels import quoted
from fairpca._validation import Groups, check_number, rng_for
from fairpca.inference._checks import check_clusters
from fairpca.moments import GroupMoments
from fairpca.moments._folds import FoldMoments
from fairpca.moments._sources import (
    Cells,
    MemorySource,
    RowSource,
    cell_moments,
    random_cells,
    row_counts,
    spread_by_group,
    spread_evenly,
)

__all__ = ["Blocks", "RowSample", "make_blocks"]

#: Blocks per group: the spread between divisions of 40 blocks into ten folds tells how much fits vary (docs/chance.md).
N_BLOCKS = 40
#: Moments of all cells of group and block are kept up to this many bytes; beyond that every division takes a pass.
_CELL_BYTES = 1 << 30
#: Independent units of each group from which standard errors are found, if it has more: they are then off by 0.7 %.
_UNITS_FOR_ERRORS = 10_000


@dataclass(frozen=True)
class RowSample:
    """A random sample of the rows of every group, or all of them: standard errors come from it.

    Attributes
    ----------
    X : array or CSR matrix
    index, group, cell, unit : integer arrays
        Of each row: its number among all rows of its chunk, its group, its cell of group and block, and the row or
        cluster that it counts as.
    weights : ndarray
    share : ndarray of shape (n_groups,)
        The share of each group's units that is in the sample.
    """

    X: Any
    index: np.ndarray
    group: np.ndarray
    cell: np.ndarray
    unit: np.ndarray
    weights: np.ndarray
    share: np.ndarray


@dataclass(frozen=True)
class Blocks:
    """Rows divided at random within every group; clusters stay whole.

    Attributes
    ----------
    counts : dict
        Label -> rows of the group.
    sizes : ndarray of shape (n_groups,)
        Independent units of each group: rows, or clusters.
    clusters : ndarray or None
        Of each row in memory.
    cells : callable
        Finds the cell of group and block of each row.
    group, block : ndarray of shape (n_cells,)
        Of each cell.
    stratum : ndarray of shape (n_blocks,)
        The group within which each block was formed; clusters with rows of several groups belong to one of them.
    """

    counts: dict[Any, int]
    sizes: np.ndarray
    clusters: np.ndarray | None
    cells: Cells
    group: np.ndarray
    block: np.ndarray
    stratum: np.ndarray
    seed: int

    @property
    def labels(self) -> tuple[Any, ...]:
        return tuple(self.counts)

    def folds(self, n_folds: int, number: int) -> np.ndarray:
        """The fold of each cell in one of the random divisions, stratified by group."""
        rng, fold = rng_for(self.seed, f"division {number}"), np.empty(len(self.stratum), dtype=np.intp)
        for a in range(len(self.counts)):
            members = np.flatnonzero(self.stratum == a)
            fold[members] = spread_evenly(len(members), n_folds, rng)
        return fold[self.block]

    def moments(self, source: RowSource) -> GroupMoments | None:
        """The moments of all cells from one pass over the rows; None if they would take too much memory."""
        if len(self.group) * source.n_features**2 * 8 > _CELL_BYTES:
            return None
        return cell_moments(source, self.cells, len(self.group))

    def fold_moments(self, source: RowSource, kept: GroupMoments | None, n_folds: int, number: int) -> FoldMoments:
        """The folds of a division: merged from cells that were kept, or by another pass over the rows."""
        folds = self.folds(n_folds, number)
        if kept is not None:
            return FoldMoments(kept, self.group, folds, self.labels)
        merged, n_cells = self.group * n_folds + folds, len(self.counts) * n_folds
        cells = cell_moments(source, lambda *chunk: merged[self.cells(*chunk)], n_cells)
        return FoldMoments(cells, *np.divmod(np.arange(n_cells), n_folds), self.labels)

    def same_fold(self, n_folds: int) -> float:
        """The probability that two blocks of a group lie in the same fold."""
        n_blocks = int(np.bincount(self.stratum).max())
        return (n_blocks / n_folds - 1.0) / (n_blocks - 1.0)

    @property
    def unit(self) -> str:
        return "rows" if self.clusters is None else "clusters"

    def sample(self, source: RowSource) -> RowSample:
        """Draw rows, or all rows of some clusters, that are enough for standard errors, in one pass over the rows."""
        share, clusters = np.minimum(1.0, _UNITS_FOR_ERRORS / self.sizes), self.clusters

        def draw(number: int, X: Any, groups: Groups, weights: np.ndarray | None) -> list[tuple]:
            cell = self.cells(number, groups)
            weights = np.ones(len(cell)) if weights is None else weights
            drawn = weights > 0
            if (share < 1.0).any():
                rng = rng_for(self.seed, f"rows {number}")
                luck = rng.random(len(cell) if clusters is None else int(clusters.max()) + 1, dtype=np.float32)
                drawn &= (luck if clusters is None else luck[clusters]) < share[self.group[cell]]
            chosen = np.flatnonzero(drawn)
            return [(X if len(chosen) == len(cell) else X[chosen], chosen, cell[chosen], weights[chosen])]

        parts = source.map_reduce(draw, lambda parts: [one for part in parts for one in part])
        X, *columns = zip(*parts, strict=True)
        index, cell, weights = map(np.concatenate, columns)
        rows = X[0] if len(X) == 1 else sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X)
        group, unit = self.group[cell], np.arange(len(cell)) if clusters is None else clusters[index]
        drawn = np.array([len(np.unique(unit[group == a])) for a in range(len(share))])
        return RowSample(rows, index, group, cell, unit, weights, np.minimum(drawn / self.sizes, 1.0))


def make_blocks(source: RowSource, n_folds: int, clusters: Any, seed: int) -> Blocks:
    """Divide the rows of every group into as many blocks as the folds need, or as it has rows."""
    check_number("cv", n_folds, at_least=2, integer=True)
    members, counts = check_clusters(clusters, source), row_counts(source)
    if members is not None:
        assert isinstance(source, MemorySource)
        return _of_clusters(source, counts, members, n_folds, seed)
    numbers = _numbers_of_blocks(counts, n_folds, "rows")
    cells: Cells = partial(random_cells, n_cells=numbers, seed=seed)
    if isinstance(source, MemorySource):
        cells = partial(_given, spread_by_group(source.groups, numbers, rng_for(seed, "blocks")))
    group = np.repeat(np.arange(len(counts)), [*numbers.values()])
    return Blocks(counts, np.array([*counts.values()]), None, cells, group, np.arange(len(group)), group, seed)


def _numbers_of_blocks(sizes: Mapping[Any, int], n_folds: int, unit: str) -> dict[Any, int]:
    label, size = min(sizes.items(), key=lambda item: item[1])
    if size < n_folds:
        raise ValueError(
            f"Group {quoted(label)} has {size} {unit}, fewer than the {n_folds} folds: use a smaller cv, or merge the "
            "group with another one."
        )
    return {label: min(max(N_BLOCKS, 2 * n_folds), one) for label, one in sizes.items()}


def _given(cells: np.ndarray, number: int, groups: Groups) -> np.ndarray:
    """The cells of rows in memory, which are a single chunk."""
    return cells


def _of_clusters(source: MemorySource, counts: dict[Any, int], clusters: np.ndarray, n_folds: int, seed: int) -> Blocks:
    """Every cluster lies in one block, formed within the group that most of its rows have."""
    codes, k, rng = source.groups.codes, len(counts), rng_for(seed, "blocks")
    rows = np.bincount(clusters * k + codes, minlength=k * (clusters.max() + 1)).reshape(-1, k)
    home = rows.argmax(axis=1)
    homes = dict(zip(counts, np.bincount(home, minlength=k).tolist(), strict=True))
    numbers = [*_numbers_of_blocks(homes, n_folds, "clusters").values()]
    starts, of_cluster = np.cumsum([0, *numbers]), np.empty(len(home), dtype=np.intp)
    for a, count in enumerate(numbers):
        members = rng.permutation(np.flatnonzero(home == a))
        members = members[np.argsort(-rows[members].sum(axis=1), kind="stable")]  # those of one size, in turn
        rounds = [rng.permutation(count) for _ in range(-(-len(members) // count))]
        of_cluster[members] = starts[a] + np.concatenate(rounds)[: len(members)]
    pairs, cell = np.unique(of_cluster[clusters] * k + codes, return_inverse=True)
    block, group = np.divmod(pairs, k)
    cells = partial(_given, cell.reshape(-1))
    stratum = np.repeat(np.arange(k), numbers)
    return Blocks(counts, (rows > 0).sum(axis=0), clusters, cells, group, block, stratum, seed)
