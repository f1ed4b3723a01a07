"""A sample of the rows, from which standard errors come."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from fairpca._validation import Groups, rng_for
from fairpca.inference._blocks import Blocks
from fairpca.moments._sources import RowSource

__all__ = ["RowSample", "sample_rows"]

#: Independent units of each group from which standard errors are found, if it has more: they are then off by 0.7 %.
_UNITS_FOR_ERRORS = 10_000


@dataclass(frozen=True)
class RowSample:
    """A random sample of the rows of every group, or all of them.

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


def sample_rows(source: RowSource, blocks: Blocks, clusters: np.ndarray | None) -> RowSample:
    """Draw a sample that is large enough for standard errors, in one pass over the rows."""
    share = np.minimum(1.0, _UNITS_FOR_ERRORS / blocks.sizes)
    draw = partial(_drawn, blocks, clusters, share)
    parts = source.map_reduce(draw, lambda parts: [one for part in parts for one in part])
    X, *columns = zip(*parts, strict=True)
    index, cell, weights = map(np.concatenate, columns)
    rows = X[0] if len(X) == 1 else sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X)
    group, unit = blocks.group[cell], np.arange(len(cell)) if clusters is None else clusters[index]
    drawn = np.array([len(np.unique(unit[group == a])) for a in range(len(share))])
    return RowSample(rows, index, group, cell, unit, weights, np.minimum(drawn / blocks.sizes, 1.0))


def _drawn(
    blocks: Blocks,
    clusters: np.ndarray | None,
    share: np.ndarray,
    number: int,
    X: Any,
    groups: Groups,
    weights: np.ndarray | None,
) -> list[tuple]:
    """Some rows of a chunk, or all rows of some clusters: with their numbers, cells and weights."""
    cell = blocks.cells(number, groups)
    weights = np.ones(len(cell)) if weights is None else weights
    drawn = weights > 0
    if (share < 1.0).any():
        rng = rng_for(blocks.seed, f"rows {number}")
        luck = rng.random(len(cell) if clusters is None else int(clusters.max()) + 1, dtype=np.float32)
        drawn &= (luck if clusters is None else luck[clusters]) < share[blocks.group[cell]]
    chosen = np.flatnonzero(drawn)
    return [(X if len(chosen) == len(cell) else X[chosen], chosen, cell[chosen], weights[chosen])]
