"""The raw columns of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fairpca.tables.errors import TableError
from fairpca.tables.labels import MISSING_LEVEL, is_number, number_text
from fairpca.tables.missing import NO_TOKENS, MissingTokens

__all__ = ["Table", "as_text", "is_missing"]


@dataclass(frozen=True)
class Table:
    """Columns of a file: arrays of float64 (NaN where missing) or of str ('' where missing).

    Attributes
    ----------
    name : str
        Of the file.
    columns : dict of str to ndarray
        By name.
    sha256 : str
        Fingerprint of the file.
    unusable : dict of str to TableError
        The error to raise for each column that cannot be used.
    row_index : tuple of str
        The index columns of a pandas data frame.
    kept : dict
        Some columns unchanged: Arrow arrays, or the texts of a CSV file.
    written : dict of str to ndarray
        The original texts of numeric columns in which different texts have the same float64 value ('01' and '1').
    commas : dict of str to str
        How commas in a numeric column were interpreted.
    as_label : dict
        Columns in which a text such as "None" is a missing value, as they are to be read if they hold groups or
        classes, where it is not: values, and the original texts of numbers, if needed.
    delimiter : str or None
        How the file was read.
    missing : MissingTokens
        The texts that were read as missing values.

    See Also
    --------
    read_table : Returns it.

    Examples
    --------
    >>> import os, tempfile
    >>> from fairpca.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "people.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("age,job,sex\\n" + "30,a,f\\n41,b,m\\n52,b,f\\n28,a,m\\n" * 10)
    ...     table = read_table(path)
    >>> list(table.columns)
    ['age', 'job', 'sex']
    """

    name: str
    columns: dict[str, np.ndarray]
    sha256: str
    unusable: dict[str, TableError] = field(default_factory=dict)
    row_index: tuple[str, ...] = ()
    kept: dict[str, Any] = field(default_factory=dict)
    written: dict[str, np.ndarray] = field(default_factory=dict)
    commas: dict[str, str] = field(default_factory=dict)
    as_label: dict[str, tuple[np.ndarray, np.ndarray | None]] = field(default_factory=dict)
    delimiter: str | None = None
    missing: MissingTokens = NO_TOKENS

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.columns.values())))

    def column(self, name: str, purpose: str) -> np.ndarray:
        """Return the column, or raise an error that lists the available columns."""
        if name not in self.columns:
            known = ", ".join(repr(column) for column in list(self.columns)[:12])
            more = ", ..." if len(self.columns) > 12 else ""
            raise TableError(f"{self.name} has no column {name!r} ({purpose}); it has {known}{more}")
        return self.columns[name]

    def values(self, name: str, purpose: str) -> np.ndarray:
        """Return the column, or raise an error if it is not usable."""
        column = self.column(name, purpose)
        if name in self.unusable:
            raise self.unusable[name]
        return column

    def for_labels(self, names: Sequence[str]) -> Table:
        """The same table, with these columns read as groups or classes."""
        found = {name: self.as_label[name] for name in names if name in self.as_label}
        columns = self.columns | {name: values for name, (values, _) in found.items()}
        written = {name: texts for name, texts in self.written.items() if name not in found}
        written |= {name: texts for name, (_, texts) in found.items() if texts is not None}
        return replace(self, columns=columns, written=written) if found else self

    def texts(self, name: str, purpose: str) -> np.ndarray:
        """Return the column as text, each value as written in the file."""
        values = self.values(name, purpose)
        return as_text(self.written.get(name, values))

    def labels(self, name: str, purpose: str) -> np.ndarray:
        """Like :meth:`texts`, but '1' instead of '1.0' if all numbers have Python's format: pandas appends '.0'."""
        texts = self.texts(name, purpose)
        known = set(texts) - {MISSING_LEVEL}
        if name in self.written and all(is_number(text) and repr(float(text)) == text for text in known):
            return as_text(self.columns[name])
        return texts


def is_missing(column: np.ndarray) -> np.ndarray:
    return column == "" if column.dtype == object else ~np.isfinite(column)


def as_text(column: np.ndarray) -> np.ndarray:
    """Convert levels to text: whole numbers without a decimal point."""
    if column.dtype == object:
        return np.array([value if value != "" else MISSING_LEVEL for value in column], dtype=object)
    return np.array([number_text(value) for value in column.tolist()], dtype=object)
