"""Data frames as tables, read as the file that a model was fitted to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairpca.tables.columns import read_column
from fairpca.tables.errors import Remedy, TableError
from fairpca.tables.labels import number_text, value_text
from fairpca.tables.missing import MissingTokens
from fairpca.tables.table import Table

__all__ = ["column_names", "table_of_frame"]

_NAME = "the data frame"


def column_names(frame: Any) -> list[str] | None:
    """Column names of a pandas or polars data frame, an Arrow table or a mapping; None for other objects."""
    if isinstance(frame, Mapping):
        return [str(name) for name in frame]
    names = getattr(frame, "column_names", getattr(frame, "columns", None))
    return None if names is None or isinstance(frame, np.ndarray) else [str(name) for name in names]


def table_of_frame(
    frame: Any, columns: Mapping[str, Sequence[str] | None], delimiter: str | None, missing: MissingTokens
) -> Table:
    """Read columns of a data frame as those of a file would be.

    Parameters
    ----------
    frame : pandas or polars data frame, Arrow table, or mapping from names to sequences
    columns : dict of str to sequence of str or None
        The columns to read, and the levels of text columns.
    delimiter : str or None
        That of the CSV file whose reading is repeated; None for other files, whose texts are used as they are.
    missing : MissingTokens

    Examples
    --------
    >>> import pandas
    >>> from fairpca.tables.frames import table_of_frame
    >>> from fairpca.tables.missing import MissingTokens
    >>> frame = pandas.DataFrame({"age": [31, None], "city": ["Bonn ", "?"]})
    >>> table = table_of_frame(frame, {"age": None, "city": ("Bonn", "Ulm")}, ",", MissingTokens())
    >>> table.columns["age"], table.columns["city"].tolist()
    (array([31., nan]), ['Bonn', ''])
    """
    names = column_names(frame) or []
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise TableError(f"{_NAME} has two columns named {repeated!r}", "rename one")
    table = Table(_NAME, {}, "", delimiter=delimiter, missing=missing)
    for original, name in zip(_original_names(frame), names, strict=True):
        if name in columns:
            _add_column(table, name, frame[original], columns[name])
    others = {name: np.zeros(0) for name in names if name not in columns}  # for error messages that list the columns
    return replace(table, columns=table.columns | others)


def _original_names(frame: Any) -> list[Any]:
    """The names as the frame has them: a pandas frame may have numbers."""
    return list(frame) if isinstance(frame, Mapping) else list(getattr(frame, "column_names", frame.columns))


def _add_column(table: Table, name: str, column: Any, levels: Sequence[str] | None) -> None:
    array = np.asarray(column) if not hasattr(column, "to_pylist") else np.array(column.to_pylist(), dtype=object)
    if array.dtype.kind in "iuf" or (array.dtype.kind == "b" and levels is None):
        table.columns[name] = _numbers(array.astype(np.float64), table.missing)
        return
    texts = [_text(value, levels) for value in array.tolist()]
    if table.delimiter is None:
        table.columns[name] = np.array(["" if table.missing.is_added(text) else text for text in texts], dtype=object)
        return
    read = read_column(texts, table.delimiter, table.missing)
    table.columns[name] = read.values
    if read.written is not None:
        table.written[name] = read.written
    if read.doubt:
        problem = f"Column {name!r} of {table.name} {read.doubt}"
        table.unusable[name] = TableError(problem, "convert it to numbers", Remedy("leave the column out", "drop"))


def _numbers(values: np.ndarray, missing: MissingTokens) -> np.ndarray:
    return np.where(np.isin(values, missing.numbers), np.nan, values) if missing.numbers else values


def _text(value: Any, levels: Sequence[str] | None) -> str:
    """A value as a file would hold it; empty if it is missing."""
    if isinstance(value, str):
        return value
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(value, bool):  # pandas reads True, TRUE and true alike
        return next((level for level in levels or () if level.lower() == str(value).lower()), str(int(value)))
    if isinstance(value, float):
        return number_text(value) if math.isfinite(value) else ""
    return value_text(value) or ""
