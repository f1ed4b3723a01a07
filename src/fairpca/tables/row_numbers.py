"""Columns that only count or identify the rows, such as the index that pandas writes."""

from __future__ import annotations

import re

import numpy as np

__all__ = ["RowNumbers"]

#: Names of row numbers and identifiers; a column without a name is called "column 1" and so on, "Unnamed: 0" by pandas.
_NAMES = re.compile(
    r"(unnamed: ?\d+|column \d+|_?id|_?index|idx|level_0|__index_level_\d+__|row|rownames?|"
    r"(row|record|case)[ _.-]?(id|index|no|nr|num|number))"
)
#: Whole numbers below this are exact in double precision.
_EXACT_INTEGERS = 2.0**53
_COUNTS = "it counts the rows"
_IDENTIFIES = "it identifies the rows"


class RowNumbers:
    """Whether a column counts or identifies the rows, decided part by part.

    It does if every row has a whole number, and each is one more than the one before; or if it is named like an
    identifier and the numbers span at least as many values as there are rows, as different numbers do.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.tables.row_numbers import RowNumbers
    >>> RowNumbers("patient").add(np.arange(5.0), None).reason()
    'it counts the rows'
    >>> RowNumbers("ID").add(np.array([7.0, 3.0]), None).reason()
    'it identifies the rows'
    >>> RowNumbers("age").add(np.array([31.0, 47.0]), None).reason() is None
    True
    """

    def __init__(self, name: str) -> None:
        self._possible = self._consecutive = True
        self._named = _NAMES.fullmatch(name.strip().lower()) is not None
        self._n_rows, self._last = 0, np.nan
        self._smallest, self._largest = np.inf, -np.inf

    def add(self, values: np.ndarray, absent: np.ndarray | None) -> RowNumbers:
        """Add rows; ``absent`` marks missing values, None if there are none."""
        if not self._possible or not len(values):
            return self
        self._consecutive = self._consecutive and absent is None and self._follow(values)
        self._named = self._named and absent is None and bool((values == np.rint(values)).all())
        self._possible = self._consecutive or self._named
        if self._possible:
            self._n_rows += len(values)
            self._last = float(values[-1])
            self._smallest = min(self._smallest, float(values.min()))
            self._largest = max(self._largest, float(values.max()))
        return self

    def reason(self) -> str | None:
        """Why the column is not a feature, once all rows were added; None if it may be one."""
        if not self._possible or self._n_rows < 2:
            return None
        if self._consecutive:
            return _COUNTS
        return _IDENTIFIES if self._largest - self._smallest >= self._n_rows - 1 else None

    def _follow(self, values: np.ndarray) -> bool:
        first = float(values[0])
        if first != np.rint(first) or (self._n_rows and first != self._last + 1):
            return False
        if max(abs(first), abs(float(values[-1]))) >= _EXACT_INTEGERS:  # adding 1 may change nothing
            return False
        start = values[:3]  # most columns are ruled out by their first values
        return all(bool((part[1:] == part[:-1] + 1).all()) for part in (start, values))
