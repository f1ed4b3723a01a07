"""The columns of a file, before anything is done with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairpca.tables.errors import TableError
from fairpca.tables.labels import MISSING_LEVEL, is_number, number_text

__all__ = ["Table", "as_text", "is_missing"]


@dataclass(frozen=True)
class Table:
    """Columns of a file: arrays of float64 (NaN where missing) or of str ('' where missing).

    ``rows_before`` counts the rows of the file that come before these, where a table is a part of it; ``unusable``
    tells why a column makes no feature; ``row_index`` names the index of a pandas frame; ``kept`` holds some columns
    as the file has them: Arrow arrays, or the texts of a CSV file. ``written`` has the texts of columns of numbers
    that float64 does not tell apart ('01' and '1'), ``commas`` what those in a column of numbers were taken for.
    """

    name: str
    columns: dict[str, np.ndarray]
    sha256: str
    rows_before: int = 0
    unusable: dict[str, TableError] = field(default_factory=dict)
    row_index: tuple[str, ...] = ()
    kept: dict[str, Any] = field(default_factory=dict)
    written: dict[str, np.ndarray] = field(default_factory=dict)
    commas: dict[str, str] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.columns.values())))

    def column(self, name: str, purpose: str) -> np.ndarray:
        """The column, or a sentence that lists those there are."""
        if name not in self.columns:
            known = ", ".join(repr(column) for column in list(self.columns)[:12])
            more = ", ..." if len(self.columns) > 12 else ""
            raise TableError(f"{self.name} has no column {name!r} ({purpose}); it has {known}{more}")
        return self.columns[name]

    def values(self, name: str, purpose: str) -> np.ndarray:
        """The column, to compute with."""
        column = self.column(name, purpose)
        if name in self.unusable:
            raise self.unusable[name]
        return column

    def texts(self, name: str, purpose: str) -> np.ndarray:
        """The column as text, each value as the file has it."""
        values = self.values(name, purpose)
        return as_text(self.written.get(name, values))

    def labels(self, name: str, purpose: str) -> np.ndarray:
        """The same, but '1' for '1.0' where all numbers are written as Python writes them: pandas adds the zero."""
        texts = self.texts(name, purpose)
        known = set(texts) - {MISSING_LEVEL}
        if name in self.written and all(is_number(text) and repr(float(text)) == text for text in known):
            return as_text(self.columns[name])
        return texts


def is_missing(column: np.ndarray) -> np.ndarray:
    return column == "" if column.dtype == object else ~np.isfinite(column)


def as_text(column: np.ndarray) -> np.ndarray:
    """Levels as text: whole numbers without a decimal point."""
    if column.dtype == object:
        return np.array([value if value != "" else MISSING_LEVEL for value in column], dtype=object)
    return np.array([number_text(value) for value in column.tolist()], dtype=object)
