"""Moments of every group in every fold from one pass over the rows: cross-validation needs no further pass."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from fairpca.moments._group_moments import GroupMoments
from fairpca.moments._sources import Cells, RowSource, cell_moments

__all__ = ["FoldMoments"]

#: Up to this many features the merged moments of every training set are cached, because they are used several times.
_FEW_FEATURES = 200


@dataclass(frozen=True, eq=False)
class FoldMoments:
    """The moments of each fold; the moments of a training set are merged from the other folds.

    Attributes
    ----------
    parts : tuple of GroupMoments, one per fold

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca._validation import check_groups
    >>> from fairpca.moments import FoldMoments, GivenCells, MemorySource
    >>> rows = MemorySource(np.arange(12.0).reshape(6, 2), check_groups(list("aabbab"), 6))
    >>> cells = GivenCells(("a", "b"), (2, 2), np.array([0, 1, 2, 3, 1, 2]))  # groups times folds
    >>> folds = FoldMoments.from_source(rows, cells)
    >>> folds.training(0).counts  # the rows that are not in fold 0
    array([2., 1.])
    """

    parts: tuple[GroupMoments, ...]

    @classmethod
    def from_source(cls, source: RowSource, cells: Cells) -> FoldMoments:
        """Compute the folds in one pass over the rows; every group must have one cell per fold."""
        moments, n_folds = cell_moments(source, cells), cells.n_cells[0]
        by_fold: list[list[int]] = [[] for _ in range(n_folds)]
        for position, cell in enumerate(moments.labels):
            by_fold[cell % n_folds].append(position)
        return cls(tuple(_fold(moments, positions, cells.labels, n_folds) for positions in by_fold))

    def __len__(self) -> int:
        return len(self.parts)

    @functools.cached_property
    def whole(self) -> GroupMoments:
        """The moments of all rows."""
        return self.parts[0].merge(*self.parts[1:])

    @functools.cached_property
    def by_fold(self) -> GroupMoments:
        """The moments with each fold as one group: random blocks of all rows."""
        parts = [part.merge_groups(fold) for fold, part in enumerate(self.parts)]
        return parts[0].merge(*parts[1:])

    def training(self, fold: int) -> GroupMoments:
        """The moments of all rows except those of one fold."""
        if self.parts[0].n_features > _FEW_FEATURES:
            return self._without(fold)
        return self._trainings[fold]

    @functools.cached_property
    def _trainings(self) -> tuple[GroupMoments, ...]:
        return tuple(self._without(fold) for fold in range(len(self)))

    def _without(self, fold: int) -> GroupMoments:
        first, *others = (part for number, part in enumerate(self.parts) if number != fold)
        return first.merge(*others)


def _fold(moments: GroupMoments, positions: list[int], labels: tuple[Any, ...], n_folds: int) -> GroupMoments:
    return moments.pick(positions, tuple(labels[moments.labels[position] // n_folds] for position in positions))
