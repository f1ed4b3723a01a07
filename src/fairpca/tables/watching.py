"""Track what passes over a file have found in each column, in memory that does not grow with the number of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairpca._validation import Groups
from fairpca.tables.checking import MAX_GROUPS
from fairpca.tables.reasons import unfit_reason
from fairpca.tables.row_numbers import RowNumbers

__all__ = ["FewValues", "SeenNumbers", "SeenTexts"]

#: Number of rows of a block that is enough to rule out most columns.
_FIRST_ROWS = 1000


class SeenNumbers:
    """Statistics of a numeric column over all rows, complete or not."""

    def __init__(self, name: str) -> None:
        self.n_known = self.n_missing = 0
        self._smallest, self._largest = np.inf, -np.inf
        self.row_numbers = RowNumbers(name)

    @property
    def magnitude(self) -> float:
        """The largest absolute value."""
        return max(self._largest, -self._smallest)

    def add(self, values: np.ndarray, absent: np.ndarray | None) -> None:
        known = values if absent is None else values[~absent]
        self.row_numbers.add(values, absent)
        self.n_known += len(known)
        self.n_missing += len(values) - len(known)
        self._smallest = min(self._smallest, float(known.min(initial=np.inf)))
        self._largest = max(self._largest, float(known.max(initial=-np.inf)))

    def unfit_reason(self) -> str | None:
        """Why the column is not a feature, once all rows were seen."""
        n_rows = self.n_known + self.n_missing
        return unfit_reason(self.n_known, n_rows, varies=self._smallest < self._largest)


class SeenTexts:
    """Statistics of a text column over all rows: different texts (up to ``limit`` + 1) and the non-missing count."""

    def __init__(self, limit: int) -> None:
        self._limit, self.texts = limit, set[str | None]()
        self.n_rows = self.n_known = 0

    @property
    def too_many(self) -> bool:
        return len(self.texts) > self._limit

    def add(self, codes: np.ndarray, texts: Sequence[str | None]) -> None:
        """Add rows: row ``i`` contains ``texts[codes[i]]``, None if it is missing."""
        counts = np.bincount(codes, minlength=len(texts)).tolist()
        self.n_rows += len(codes)
        self.n_known += sum(count for text, count in zip(texts, counts, strict=True) if text is not None)
        if not self.too_many:
            self.texts.update(text for text, count in zip(texts, counts, strict=True) if count)

    def unfit_reason(self) -> str | None:
        """Why the column is not a feature, once all rows were seen."""
        return unfit_reason(self.n_known, self.n_rows, varies=len(self.texts - {None}) > 1)


class FewValues:
    """The values of a column, as long as it is constant, or has few values that each occur in one group only."""

    def __init__(self) -> None:
        self._groups: dict[float, str | None] = {}  # None for several groups

    def __len__(self) -> int:
        return len(self._groups)

    def add(self, values: np.ndarray, groups: Groups) -> bool:
        """Add rows and return whether the condition still holds; the first rows are checked first, to save time."""
        codes, labels = groups.codes.astype(np.int64), groups.labels
        return self._add(values[:_FIRST_ROWS], codes[:_FIRST_ROWS], labels) and self._add(values, codes, labels)

    def _add(self, values: np.ndarray, codes: np.ndarray, labels: Sequence[str]) -> bool:
        found, positions = np.unique(values, return_inverse=True)
        if len(found) > MAX_GROUPS:
            return False
        for together in np.unique(positions.reshape(-1) * len(labels) + codes).tolist():
            position, code = divmod(together, len(labels))
            value, group = float(found[position]), labels[code]
            if self._groups.setdefault(value, group) != group:
                self._groups[value] = None
        return len(self) <= 1 or (len(self) <= MAX_GROUPS and None not in self._groups.values())
