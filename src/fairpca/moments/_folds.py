"""The moments of every group in every fold: those of a training set are merged from the other folds."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from fairpca.moments._group_moments import GroupMoments


class FoldMoments:
    """The moments of each fold, merged from those of cells; those of a training set are merged from the other folds.

    Parameters
    ----------
    cells : GroupMoments
        Labelled by numbers.
    groups, folds : integer arrays
        The group and fold of each such number.
    labels : sequence
        Of the groups.

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
    >>> folds = FoldMoments(cells, np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), ("a", "b"))
    >>> folds.training(0).counts  # the rows that are not in fold 0
    array([2., 1.])
    """

    def __init__(self, cells: GroupMoments, groups: np.ndarray, folds: np.ndarray, labels: Sequence[Any]) -> None:
        numbers = list(cells.labels)
        group, fold = groups[numbers], folds[numbers]
        self.parts = tuple(
            cells.merge_by(np.where(fold == number, group, -1), labels) for number in range(int(folds.max()) + 1)
        )

    @functools.cached_property
    def whole(self) -> GroupMoments:
        """The moments of all rows."""
        return self.parts[0].merge(*self.parts[1:])

    def training(self, fold: int) -> GroupMoments:
        """The moments of all rows except those of one fold."""
        first, *others = (part for number, part in enumerate(self.parts) if number != fold)
        return first.merge(*others)
