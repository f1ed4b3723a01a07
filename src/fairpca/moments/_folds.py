"""The moments of every group in every fold: those of a training set are merged from the other folds."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca.moments._group_moments import GroupMoments

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
    >>> from fairpca.moments import group_moments
    >>> from fairpca.moments._folds import FoldMoments
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> cells = group_moments(X, sensitive_features=[0, 1, 2, 3, 0, 1])  # two groups times two folds
    >>> folds = FoldMoments.of_cells(cells, np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), ("a", "b"))
    >>> folds.training(0).counts  # the rows that are not in fold 0
    array([2., 1.])
    """

    parts: tuple[GroupMoments, ...]

    @classmethod
    def of_cells(cls, cells: GroupMoments, groups: np.ndarray, folds: np.ndarray, labels: Sequence[Any]) -> FoldMoments:
        """From the moments of cells, which are labelled by numbers; the group and fold of each such number."""
        numbers = np.asarray(cells.labels)
        parts = []
        for fold in range(int(folds.max()) + 1):
            members = [np.flatnonzero((folds[numbers] == fold) & (groups[numbers] == a)) for a in range(len(labels))]
            merged = [
                cells.pick(chosen, tuple(range(len(chosen)))).merge_groups(label)
                for label, chosen in zip(labels, members, strict=True)
                if len(chosen)
            ]
            parts.append(merged[0].merge(*merged[1:]))
        return cls(tuple(parts))

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
