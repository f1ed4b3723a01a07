"""Read CSV, Parquet and Feather files into memory."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fairpca._arrow import arrow_kind, import_pyarrow, readable, row_index
from fairpca.tables.arrow import (
    check_file,
    check_unique,
    column_of_arrow,
    loses_digits,
    plain_values,
    unusable_columns,
)
from fairpca.tables.columns import CsvColumn, read_column
from fairpca.tables.compression import decompressed
from fairpca.tables.errors import Remedy, TableError
from fairpca.tables.labels import value_text
from fairpca.tables.missing import USUAL_TOKENS, MissingTokens
from fairpca.tables.table import Table, is_missing

__all__ = ["read_table", "table_of_arrow"]

#: The first bytes of files that are not text.
_MAGIC = {b"PAR1": ("Parquet", ".parquet"), b"ARROW1": ("Feather", ".feather"), b"FEA1": ("Feather", ".feather")}


def read_table(
    path: Any, keep: Sequence[str] = (), *, delimiter: str | None = None, missing: MissingTokens = USUAL_TOKENS
) -> Table:
    """Read a CSV (comma, semicolon or tab; UTF-8), Parquet or Feather file, depending on its extension.

    Parameters
    ----------
    path : path-like
        ``.parquet`` (or ``.pq``) and ``.feather`` (or ``.arrow``) need pyarrow; everything else is read as CSV with a
        header line, compressed if its name ends in ``.gz`` or ``.zst``.
    keep : list of str
        Columns to store unchanged in ``Table.kept`` as well.
    delimiter : str, optional
        The character between the values of a CSV file. Default: comma, semicolon or tab, whichever is most frequent in
        the header line.
    missing : MissingTokens
        Texts that mean a missing value.

    Returns
    -------
    Table
        All columns, numbers as float64 and text as str.

    See Also
    --------
    prepare_table : The next step.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from fairpca.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "people.csv"
    ...     _ = path.write_text("age,city\\n31,Bonn\\n,Ulm\\n")
    ...     table = read_table(path)
    >>> table.columns["age"], table.columns["city"].tolist()
    (array([31., nan]), ['Bonn', 'Ulm'])
    """
    path, kind = Path(path), arrow_kind(path)
    check_file(path)
    _check_delimiter(delimiter, path.name, kind)
    content = path.read_bytes()
    if kind is None:
        table = _read_csv(decompressed(content, path.name), path.name, keep, delimiter, missing)
    else:
        table = {"Parquet": _read_parquet, "Feather": _read_feather}[kind](content, path.name, keep, missing)
    if not table.columns or not table.n_rows:
        raise TableError(f"{path.name} has no rows")
    return replace(table, sha256=hashlib.sha256(content).hexdigest())


def _check_delimiter(delimiter: str | None, name: str, kind: str | None) -> None:
    if delimiter is None:
        return
    if kind is not None:
        raise TableError(f"{name} is a {kind} file, which has no delimiter", Remedy("omit it", "delimiter"))
    if len(delimiter) != 1 or delimiter in '"\r\n\0 ':
        problem = f"The delimiter {delimiter!r} is not a single character other than a quotation mark or a space"
        raise TableError(problem, Remedy("give one such as ';'", "delimiter"))


def _read_csv(content: bytes, name: str, keep: Sequence[str], delimiter: str | None, missing: MissingTokens) -> Table:
    _check_text(content, name)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content[: problem.start].count(b"\n") + 1
        raise TableError(
            f"{name} is not encoded in UTF-8 (byte 0x{content[problem.start]:02x} in line {line})",
            f"convert it first, for example with `iconv -f latin1 -t utf-8 {name} > converted.csv`",
        ) from None
    if not text.strip():
        raise TableError(f"{name} is empty")
    header = text[: text.find("\n")] if "\n" in text else text
    delimiter = delimiter or max(",;\t", key=header.count)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True))
    except csv.Error as problem:
        raise TableError(f"{name} is not valid CSV ({problem})", "correct it") from None
    return _table_of_rows(rows, name, keep, delimiter, missing)


def _check_text(content: bytes, name: str) -> None:
    """Raise an error if there are zero bytes: UTF-8 text has none, UTF-16 and UTF-32 text has many."""
    if b"\0" not in content:
        return
    encoding = _wide_encoding(content)
    if encoding is not None:
        raise TableError(
            f"{name} is encoded in {encoding}, not in UTF-8",
            "save it as UTF-8",
            f"convert it with `iconv -f {encoding} -t UTF-8 {name} > converted.csv`",
        )
    for magic, (kind, ending) in _MAGIC.items():
        if content.startswith(magic):
            raise TableError(f"{name} is not a text file but {kind}", f"rename it so that it ends in {ending}")
    raise TableError(f"{name} is not a text file", "use CSV", "name Parquet and Feather files .parquet and .feather")


def _wide_encoding(content: bytes) -> str | None:
    """Detect UTF-16 or UTF-32 by the byte order mark, or by the zero bytes of a first line in Latin letters."""
    for encoding, mark in (("UTF-32", b"\xff\xfe\0\0"), ("UTF-32", b"\0\0\xfe\xff"), ("UTF-16", b"\xff\xfe"),
                           ("UTF-16", b"\xfe\xff")):  # fmt: skip
        if content.startswith(mark):
            return encoding
    start = content[:64]
    if start[1::2] == bytes(len(start) // 2) and start[::2].isascii():
        return "UTF-16LE"
    return "UTF-16BE" if start[::2] == bytes((len(start) + 1) // 2) and start[1::2].isascii() else None


def _table_of_rows(
    rows: list[list[str]], name: str, keep: Sequence[str], delimiter: str, missing: MissingTokens
) -> Table:
    texts = _columns_of_rows(rows, name)
    found = {column: read_column(values, delimiter, missing) for column, values in texts.items()}
    return Table(
        name,
        {column: read.values for column, read in found.items()},
        "",
        unusable={
            column: TableError(
                f"Column {column!r} of {name} {read.doubt}",
                "write them with a decimal point",
                Remedy("leave the column out", "drop"),
            )
            for column, read in found.items()
            if read.doubt
        },
        kept={column: list(texts[column]) for column in keep if column in texts},
        written={column: read.written for column, read in found.items() if read.written is not None},
        commas={column: read.commas for column, read in found.items() if read.commas},
        as_label={
            column: (label.values, label.written)
            for column, read in found.items()
            if (label := _as_label(texts[column], read, delimiter, missing)) is not None
        },
        delimiter=delimiter,
        missing=missing,
    )


def _columns_of_rows(rows: list[list[str]], name: str) -> dict[str, tuple[str, ...]]:
    names = [text.strip() or f"column {number}" for number, text in enumerate(rows[0], start=1)]
    check_unique(names, name)
    numbered = [(number, row) for number, row in enumerate(rows[1:], start=2) if row]
    for number, row in numbered:
        if len(row) != len(names):
            raise TableError(f"{name}, line {number}: {len(row)} values, but the header names {len(names)} columns")
    if not numbered:
        raise TableError(f"{name} has a header but no rows")
    return dict(zip(names, zip(*(row for _, row in numbered), strict=True), strict=True))


def _as_label(texts: Sequence[str], read: CsvColumn, delimiter: str, missing: MissingTokens) -> CsvColumn | None:
    """The column as groups or classes, if it has other missing values then."""
    absent = np.flatnonzero(is_missing(read.values)).tolist()
    if not missing.kept_in_labels(texts[i] for i in absent):
        return None
    return read_column(texts, delimiter, missing, label=True)


def _read_parquet(content: bytes, name: str, keep: Sequence[str], missing: MissingTokens) -> Table:
    arrow = import_pyarrow(name)
    import pyarrow.parquet

    with readable(name, "Parquet"):
        source = pyarrow.parquet.ParquetFile(arrow.BufferReader(content))
        check_unique(source.schema_arrow.names, name)  # before reading, since pyarrow's own message is less clear
        return table_of_arrow(source.read(), name, keep, missing=missing)


def _read_feather(content: bytes, name: str, keep: Sequence[str], missing: MissingTokens) -> Table:
    arrow = import_pyarrow(name)
    import pyarrow.feather

    with readable(name, "Feather"):
        return table_of_arrow(pyarrow.feather.read_table(arrow.BufferReader(content)), name, keep, missing=missing)


def table_of_arrow(source: Any, name: str, keep: Sequence[str], *, missing: MissingTokens = USUAL_TOKENS) -> Table:
    """Convert an Arrow table or record batch, in which only the tokens that the user added mean a missing value."""
    names = source.schema.names
    check_unique(names, name)
    unusable = unusable_columns(source.schema, name)
    columns = {
        column: np.full(source.num_rows, "", dtype=object) if column in unusable else column_of_arrow(values, missing)
        for column, values in zip(names, source.columns, strict=True)
    }
    kept = {column: plain_values(source.column(column)) for column in keep if column in names}
    written = {
        column: np.array([value_text(value) or "" for value in plain_values(values).to_pylist()], dtype=object)
        for column, values in zip(names, source.columns, strict=True)
        if loses_digits(values)
    }
    added = MissingTokens((), missing.added)
    return Table(name, columns, "", unusable, row_index(source.schema), kept, written, missing=added)
