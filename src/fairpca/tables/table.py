"""Reading a data file into features, groups and label, and saying aloud what was done with each column."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fairpca._files import row_index
from fairpca.tables.arrow import (
    arrow_kind,
    check_unique,
    column_of_arrow,
    import_pyarrow,
    loses_digits,
    plain_values,
    unusable_columns,
)
from fairpca.tables.columns import MISSING_LEVEL, is_number, label_text, number_text, read_column

__all__ = ["Encoder", "Table", "TableData", "prepare_table", "read_table"]

#: A text column with more levels than this is an identifier or free text, not a category.
MAX_LEVELS = 100
#: More groups than this are a measurement.
MAX_GROUPS = 20
#: Figures of a smaller group say nothing, and it cannot be divided into rows to fit and rows to judge.
MIN_GROUP_ROWS = 10
#: Squares of larger numbers may overflow when summed: standardising would turn the column into zeros.
_LARGEST = 1e150
#: Whole numbers below this are exact in double precision.
_EXACT_INTEGERS = 2.0**53
_FEATURE = "a feature of the model"
_GROUP_SEPARATOR = ", "
#: How files start that are no text.
_MAGIC = {b"PAR1": ("Parquet", ".parquet"), b"ARROW1": ("Feather", ".feather"), b"FEA1": ("Feather", ".feather")}


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
    unusable: dict[str, str] = field(default_factory=dict)
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
            raise ValueError(f"{self.name} has no column {name!r} ({purpose}); it has {known}{more}.")
        return self.columns[name]

    def values(self, name: str, purpose: str) -> np.ndarray:
        """The column, to compute with."""
        column = self.column(name, purpose)
        if name in self.unusable:
            raise ValueError(self.unusable[name])
        return column

    def texts(self, name: str, purpose: str) -> np.ndarray:
        """The column as text, each value as the file has it."""
        values = self.values(name, purpose)
        return _as_text(self.written.get(name, values))

    def labels(self, name: str, purpose: str) -> np.ndarray:
        """The same, but '1' for '1.0' where all numbers are written as Python writes them: pandas adds the zero."""
        texts = self.texts(name, purpose)
        known = set(texts) - {MISSING_LEVEL}
        if name in self.written and all(is_number(text) and repr(float(text)) == text for text in known):
            return _as_text(self.columns[name])
        return texts


def read_table(path: Any, keep: Sequence[str] = ()) -> Table:
    """Read CSV (comma, semicolon or tab; UTF-8), Parquet or Feather, by the ending of the name.

    Parameters
    ----------
    path : path-like
        ``.parquet`` (or ``.pq``) and ``.feather`` (or ``.arrow``) need pyarrow; everything else is read as CSV with a
        header line.
    keep : list of str
        Columns to hold in ``Table.kept`` as well, as the file has them.

    Returns
    -------
    Table

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from fairpca.tables.table import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "people.csv"
    ...     _ = path.write_text("age,city\\n31,Bonn\\n,Ulm\\n")
    ...     table = read_table(path)
    >>> table.columns["age"], table.columns["city"].tolist()
    (array([31., nan]), ['Bonn', 'Ulm'])
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give a CSV, Parquet or Feather file.")
    content = path.read_bytes()
    reader = {"Parquet": _read_parquet, "Feather": _read_feather, None: _read_csv}[arrow_kind(path)]
    table = reader(content, path.name, keep)
    if not table.columns or not table.n_rows:
        raise ValueError(f"{path.name} holds no rows.")
    return replace(table, sha256=hashlib.sha256(content).hexdigest())


def _read_csv(content: bytes, name: str, keep: Sequence[str]) -> Table:
    _check_text(content, name)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content[: problem.start].count(b"\n") + 1
        raise ValueError(
            f"{name} is not UTF-8 (byte 0x{content[problem.start]:02x} in line {line}); convert it first, for example "
            f"with: iconv -f latin1 -t utf-8 {name} > converted.csv"
        ) from None
    if not text.strip():
        raise ValueError(f"{name} is empty.")
    header = text[: text.find("\n")] if "\n" in text else text
    delimiter = max(",;\t", key=header.count)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True))
    except csv.Error as problem:
        raise ValueError(f"{name} is not valid CSV: {problem}.") from None
    return _table_of_rows(rows, name, keep, delimiter)


def _check_text(content: bytes, name: str) -> None:
    """Text in UTF-8 holds no zero bytes; in UTF-16 and UTF-32 most letters have some."""
    if b"\0" not in content:
        return
    encoding = _wide_encoding(content)
    if encoding is not None:
        raise ValueError(
            f"{name} is text in {encoding}, not UTF-8; save it as UTF-8, or convert it with: "
            f"iconv -f {encoding} -t UTF-8 {name} > converted.csv"
        )
    for magic, (kind, ending) in _MAGIC.items():
        if content.startswith(magic):
            raise ValueError(f"{name} is not a text file but {kind}: rename it so that it ends in {ending}.")
    raise ValueError(f"{name} is not a text file; give CSV, or name Parquet and Feather files .parquet and .feather.")


def _wide_encoding(content: bytes) -> str | None:
    """UTF-16 or UTF-32 by their marks, or by the zeros of a first line in Latin letters."""
    for encoding, mark in (("UTF-32", b"\xff\xfe\0\0"), ("UTF-32", b"\0\0\xfe\xff"), ("UTF-16", b"\xff\xfe"),
                           ("UTF-16", b"\xfe\xff")):  # fmt: skip
        if content.startswith(mark):
            return encoding
    start = content[:64]
    if start[1::2] == bytes(len(start) // 2) and start[::2].isascii():
        return "UTF-16LE"
    return "UTF-16BE" if start[::2] == bytes((len(start) + 1) // 2) and start[1::2].isascii() else None


def _table_of_rows(rows: list[list[str]], name: str, keep: Sequence[str], delimiter: str) -> Table:
    names = [text.strip() or f"column {number}" for number, text in enumerate(rows[0], start=1)]
    check_unique(names, name)
    numbered = [(number, row) for number, row in enumerate(rows[1:], start=2) if row]
    for number, row in numbered:
        if len(row) != len(names):
            raise ValueError(f"{name}, line {number}: {len(row)} values, but the header names {len(names)} columns.")
    if not numbered:
        raise ValueError(f"{name} has a header but no rows.")
    texts = dict(zip(names, zip(*(row for _, row in numbered), strict=True), strict=True))
    found = {column: read_column(values, delimiter) for column, values in texts.items()}
    return Table(
        name,
        {column: read.values for column, read in found.items()},
        "",
        unusable={
            column: f"Column {column!r} of {name} {read.doubt}: write them with a point, or leave it out (--drop)."
            for column, read in found.items()
            if read.doubt
        },
        kept={column: list(texts[column]) for column in keep if column in texts},
        written={column: read.written for column, read in found.items() if read.written is not None},
        commas={column: read.commas for column, read in found.items() if read.commas},
    )


def _read_parquet(content: bytes, name: str, keep: Sequence[str]) -> Table:
    arrow = import_pyarrow(name)
    import pyarrow.parquet

    try:
        source = pyarrow.parquet.ParquetFile(arrow.BufferReader(content))
        check_unique(source.schema_arrow.names, name)  # before reading: pyarrow refuses it in other words
        return table_of_arrow(source.read(), name, keep)
    except (arrow.ArrowException, OSError) as problem:
        raise ValueError(f"{name} cannot be read as Parquet: {str(problem).splitlines()[0]}") from None


def _read_feather(content: bytes, name: str, keep: Sequence[str]) -> Table:
    arrow = import_pyarrow(name)
    import pyarrow.feather

    try:
        return table_of_arrow(pyarrow.feather.read_table(arrow.BufferReader(content)), name, keep)
    except (arrow.ArrowException, OSError) as problem:
        raise ValueError(f"{name} cannot be read as Feather: {str(problem).splitlines()[0]}") from None


def table_of_arrow(source: Any, name: str, keep: Sequence[str], *, rows_before: int = 0) -> Table:
    """An Arrow table or record batch."""
    names = source.schema.names
    check_unique(names, name)
    unusable = unusable_columns(source.schema, name)
    columns = {
        column: np.full(source.num_rows, "", dtype=object) if column in unusable else column_of_arrow(values)
        for column, values in zip(names, source.columns, strict=True)
    }
    kept = {column: plain_values(source.column(column)) for column in keep if column in names}
    written = {
        column: np.array([label_text(value) or "" for value in plain_values(values).to_pylist()], dtype=object)
        for column, values in zip(names, source.columns, strict=True)
        if loses_digits(values)
    }
    return Table(name, columns, "", rows_before, unusable, row_index(source.schema), kept, written)


@dataclass(frozen=True)
class Encoder:
    """From the columns of a table to a matrix: numbers as they are, text one-hot, then standardised.

    Kept with a saved model, so that new files are treated as the one it was fitted on.
    """

    numeric: tuple[str, ...]
    levels: dict[str, tuple[str, ...]]
    offsets: np.ndarray
    scales: np.ndarray

    @property
    def feature_names(self) -> list[str]:
        return [*self.numeric, *(f"{name}={level}" for name, levels in self.levels.items() for level in levels)]

    def encode(self, table: Table) -> np.ndarray:
        """The matrix of the table's rows; a level that was not there before is all zeros before standardising."""
        X = np.zeros((table.n_rows, len(self.offsets)))  # filled in place: it may be most of the memory there is
        for j, name in enumerate(self.numeric):
            X[:, j] = self._numbers(table, name)
        start = len(self.numeric)
        for name, levels in self.levels.items():
            position = {level: start + i for i, level in enumerate(levels)}
            columns = np.array([position.get(text, -1) for text in table.texts(name, _FEATURE)], dtype=int)
            known = np.flatnonzero(columns >= 0)
            X[known, columns[known]] = 1.0
            start += len(levels)
        X -= self.offsets
        X /= self.scales
        return X

    def unknown_levels(self, table: Table) -> dict[str, list[str]]:
        """Values of text columns that the encoder has no column for."""
        found = {name: sorted(set(table.texts(name, _FEATURE)) - set(levels)) for name, levels in self.levels.items()}
        return {name: values for name, values in found.items() if values}

    def as_dict(self) -> dict[str, Any]:
        """Plain lists, for JSON."""
        return {
            "numeric": list(self.numeric),
            "levels": {name: list(levels) for name, levels in self.levels.items()},
            "offsets": self.offsets.tolist(),
            "scales": self.scales.tolist(),
        }

    @classmethod
    def from_dict(cls, values: Any) -> Encoder:
        """The inverse of :meth:`as_dict`, checked: the file may come from a stranger."""
        try:
            numeric = tuple(str(name) for name in values["numeric"])
            levels = {str(name): tuple(str(level) for level in found) for name, found in values["levels"].items()}
            offsets, scales = (np.array(values[name], dtype=np.float64) for name in ("offsets", "scales"))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ValueError("The model's description of its columns is damaged.") from None
        encoder = cls(numeric, levels, offsets, scales)
        size = (len(encoder.feature_names),)
        if offsets.shape != size or scales.shape != size or not np.isfinite(offsets).all() or not (scales > 0).all():
            raise ValueError("The model's description of its columns is damaged.")
        return encoder

    def _numbers(self, table: Table, name: str) -> np.ndarray:
        column = table.values(name, _FEATURE)
        if column.dtype == object:  # numbers may have been written as text
            text = next((value for value in column if value and not is_number(value)), None)
            if text is not None:
                raise ValueError(f"{table.name}: column {name!r} must hold numbers, but contains {text!r}.")
            column = np.array([value or "nan" for value in column], dtype=np.float64)
        if not np.isfinite(column).all():
            row = table.rows_before + int(np.flatnonzero(~np.isfinite(column))[0]) + 1
            raise ValueError(
                f"{table.name}: column {name!r} has no finite number in row {row}; fill or drop such rows."
            )
        return column


@dataclass(frozen=True)
class TableData:
    """What the methods need, and ``remarks`` that say how it came out of the file."""

    X: np.ndarray
    groups: np.ndarray
    label: np.ndarray | None  # numbers where all classes are numbers, else text
    encoder: Encoder
    table: Table
    remarks: list[str] = field(default_factory=list)
    clusters: np.ndarray | None = None  # the person that each row belongs to

    @property
    def feature_names(self) -> list[str]:
        return self.encoder.feature_names

    @property
    def class_codes(self) -> np.ndarray | None:
        """The label as 0, 1, ... by the order of its classes, for classifiers that take fractions for measurements."""
        return None if self.label is None else np.unique(self.label, return_inverse=True)[1].reshape(-1)


def prepare_table(
    table: Table,
    sensitive: Sequence[str],
    label: str | None = None,
    *,
    drop: Sequence[str] = (),
    standardise: bool = True,
    max_levels: int = MAX_LEVELS,
    clusters: str | None = None,
) -> TableData:
    """Divide a table into features, groups and label; ``clusters`` names the column of persons with several rows.

    Numeric columns are taken as they are, text columns are one-hot encoded; columns that are constant, mostly missing
    or tell the group are left out; rows with a missing group, label or number are dropped. Several sensitive columns
    make groups of their combinations. What was done is told in ``remarks``.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.tables.table import Table, prepare_table
    >>> city = np.array(["a", "b"] * 20, dtype=object)
    >>> columns = {"x": np.arange(40.0), "city": city, "sex": np.repeat([0.0, 1.0], 20)}
    >>> data = prepare_table(Table("people.csv", columns, ""), ["sex"])
    >>> data.feature_names
    ['x', 'city=a', 'city=b']
    """
    if not sensitive:
        raise ValueError("Name at least one sensitive column.")
    roles = check_roles(table, sensitive, label, drop)
    if clusters is not None:
        table.values(clusters, "the column of clusters")
        roles = {*roles, clusters}
    others = [name for name in (label, clusters) if name is not None]
    remarks: list[str] = []
    features = _usable(table, [name for name in table.columns if name not in roles], remarks)
    table = _complete_rows(table, [*sensitive, *others], features, remarks)
    groups = _group_labels(table, sensitive)
    target = None if label is None else _class_labels(table, label)
    numeric = [name for name in features if table.columns[name].dtype != object]
    levels = {name: _levels(table, name, max_levels) for name in features if name not in numeric}
    told = [name for name in features if _tells_nothing_else(table.columns[name], name, groups, remarks)]
    numeric = [name for name in numeric if name not in told]
    levels = {name: found for name, found in levels.items() if name not in told}
    if not numeric and not levels:
        raise ValueError(f"{table.name} has no feature left besides {', '.join(map(repr, sorted(roles)))}.")
    for name in numeric:
        check_magnitude(table.name, name, table.columns[name])
    encoder = _fitted_encoder(table, numeric, levels, standardise)
    say_columns(encoder, [*sensitive, *others, *drop], standardise, remarks)
    persons = None if clusters is None else table.columns[clusters]
    return TableData(encoder.encode(table), groups, target, encoder, table, remarks, persons)


def check_roles(table: Table, sensitive: Sequence[str], label: str | None, drop: Sequence[str]) -> set[str]:
    for name in sensitive:
        table.values(name, "the sensitive column")
    for name in drop:
        table.column(name, "to be dropped")
    if label is not None:
        table.values(label, "the label")
        if label in sensitive:
            raise ValueError(f"Column {label!r} cannot be both the sensitive column and the label.")
    return {*sensitive, *drop, *([label] if label else [])}


def _usable(table: Table, names: list[str], remarks: list[str]) -> list[str]:
    """Columns that vary and are mostly known."""
    kept = []
    for name in without_row_index(names, table.row_index, remarks):
        column = table.values(name, "a feature")
        known = column[~_missing(column)]
        if len(known) < 0.5 * table.n_rows:
            remarks.append(f"left out {name!r}: {1 - len(known) / table.n_rows:.0%} of it is missing")
        elif len(set(known.tolist())) < 2:
            remarks.append(constant_remark(name))
        else:
            kept.append(name)
            if name in table.commas:
                remarks.append(f"read the commas in {name!r} as {table.commas[name]}")
    return kept


def without_row_index(names: Sequence[str], index: Sequence[str], remarks: list[str]) -> list[str]:
    """What names the rows says nothing about who is in them."""
    remarks += [f"left out {name!r}: the index of a pandas frame" for name in names if name in index]
    return [name for name in names if name not in index]


def _complete_rows(table: Table, needed: list[str], features: list[str], remarks: list[str]) -> Table:
    incomplete = np.zeros(table.n_rows, dtype=bool)
    for name in needed:
        incomplete |= _missing(table.columns[name])
    for name in features:
        if table.columns[name].dtype != object:
            incomplete |= _missing(table.columns[name])
    if incomplete.all():
        raise ValueError(f"Every row of {table.name} has a missing value; fill them, or drop the emptiest columns.")
    if incomplete.any():
        remarks.append(f"dropped {incomplete.sum()} of {table.n_rows} rows with a missing group, label or number")
    columns = {name: column[~incomplete] for name, column in table.columns.items()}
    written = {name: table.written[name][~incomplete] for name in needed if name in table.written}
    return Table(table.name, columns, table.sha256, written=written)


def _group_labels(table: Table, sensitive: Sequence[str]) -> np.ndarray:
    """Text labels; several columns are joined by :func:`joined_group`."""
    columns = [table.labels(name, "the sensitive column") for name in sensitive]
    labels = np.array([joined_group(parts) for parts in zip(*columns, strict=True)], dtype=object)
    check_group_counts(sensitive, *np.unique(labels.astype(str), return_counts=True))
    return labels.astype(str)


def joined_group(parts: Sequence[str]) -> str:
    """Parts as 'female, young'; one that holds the separator is quoted, so that different parts stay different.

    Examples
    --------
    >>> from fairpca.tables.table import joined_group
    >>> joined_group(["a, b", "c"]), joined_group(["a", "b, c"])
    ('"a, b", c', 'a, "b, c"')
    """
    return parts[0] if len(parts) == 1 else _GROUP_SEPARATOR.join(map(_quoted, parts))


def _quoted(part: str) -> str:
    if _GROUP_SEPARATOR not in part and not part.startswith('"'):
        return part
    doubled = part.replace('"', '""')
    return f'"{doubled}"'


def check_group_counts(sensitive: Sequence[str], labels: Sequence[str] | np.ndarray, counts: np.ndarray) -> None:
    """Refuse what makes no groups: a single value, a measurement, a handful of rows."""
    what = " x ".join(repr(name) for name in sensitive)
    if len(labels) < 2:
        raise ValueError(f"{what} contains a single group, {str(labels[0])!r}; at least two are needed.")
    check_few_groups(sensitive, len(labels))
    if counts.min() < MIN_GROUP_ROWS:
        raise ValueError(
            f"Group {str(labels[int(counts.argmin())])!r} of {what} has {counts.min():g} rows; figures of fewer than "
            f"{MIN_GROUP_ROWS} say nothing. Merge it with another group or drop its rows."
        )


def check_few_groups(sensitive: Sequence[str], count: int, *, so_far: bool = False) -> None:
    """``so_far``: there may be more."""
    if count > MAX_GROUPS:
        what = " x ".join(repr(name) for name in sensitive)
        raise ValueError(
            f"{what} has {'at least ' if so_far else ''}{count} different values; at most {MAX_GROUPS} make groups. If "
            "it is a measurement such as an age, add a column with a few ranges of it to the file."
        )


def _class_labels(table: Table, label: str) -> np.ndarray:
    classes = table.labels(label, "the label")
    check_classes(label, classes)
    return class_values(classes)


def class_values(texts: np.ndarray) -> np.ndarray:
    """Classes as numbers where every one of them is a number, so that 10 comes after 9; else as text.

    Whole numbers are integers, as they are written.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.tables.table import class_values
    >>> class_values(np.array(["10", "9"], dtype=object)), class_values(np.array(["10", "none"], dtype=object)).tolist()
    (array([10,  9]), ['10', 'none'])
    """
    found, codes = np.unique(texts.astype(str), return_inverse=True)
    if not all(is_number(text) for text in found):
        return texts
    numbers = np.array([float(text) for text in found])
    if not np.isfinite(numbers).all() or len(np.unique(numbers)) < len(found):  # '1' and '01' are two classes
        return texts
    whole = (numbers == np.round(numbers)).all() and np.abs(numbers).max() < _EXACT_INTEGERS
    return (numbers.astype(np.int64) if whole else numbers)[codes.reshape(-1)]


def check_classes(label: str, classes: np.ndarray) -> None:
    """Refuse a label from which nothing could be learnt."""
    check_class_counts(label, *np.unique(classes.astype(str), return_counts=True))


def check_class_counts(label: str, names: np.ndarray, counts: np.ndarray) -> None:
    found = names.tolist()
    if len(found) < 2:
        raise ValueError(f"The label {label!r} has a single value, {found[0]!r}; at least two classes are needed.")
    check_few_classes(label, len(found))
    if counts.min() < 4:
        raise ValueError(
            f"Class {found[counts.argmin()]!r} of the label {label!r} has {counts.min()} rows; too few to learn."
        )


def check_few_classes(label: str, count: int, *, so_far: bool = False) -> None:
    """``so_far``: there may be more."""
    if count > MAX_GROUPS:
        raise ValueError(
            f"The label {label!r} has {'at least ' if so_far else ''}{count} different values; it must be a class, "
            f"with at most {MAX_GROUPS}."
        )


def _levels(table: Table, name: str, max_levels: int) -> tuple[str, ...]:
    found = sorted(set(_as_text(table.columns[name])))
    check_levels(name, len(found), max_levels)
    return tuple(found)


def check_levels(name: str, count: int, max_levels: int, *, so_far: bool = False) -> None:
    """Refuse to one-hot encode names or free text."""
    if count > max_levels:
        raise ValueError(
            f"Column {name!r} is text with {'at least ' if so_far else ''}{count} different values, too many to "
            f"one-hot encode (limit {max_levels}): leave it out (--drop), group its values, or raise the limit "
            "(--max-levels)."
        )


def _tells_nothing_else(column: np.ndarray, name: str, groups: np.ndarray, remarks: list[str]) -> bool:
    """Whether a column is constant, or the sensitive feature under another name."""
    values, codes = np.unique(column, return_inverse=True)
    found, group_codes, counts = np.unique(groups, return_inverse=True, return_counts=True)
    if len(values) == 1:  # since rows were dropped
        remarks.append(constant_remark(name))
        return True
    if column.dtype != object and len(values) > MAX_GROUPS:
        return False  # a measurement
    together = np.unique(codes.reshape(-1) * len(found) + group_codes.reshape(-1))
    if len(together) > len(values) or not is_no_accident(len(values), counts):
        return False
    remarks.append(copy_remark(name))
    return True


def is_no_accident(n_values: int, group_counts: np.ndarray) -> bool:
    """Whether values that occur in one group each tell more than chance: they do if rows share them.

    Rows of random groups that share a value are of one group with the probability that two rows are.
    """
    n_rows = group_counts.sum()
    return bool((n_rows - n_values) * np.log(np.square(group_counts / n_rows).sum()) < np.log(1e-3))


def constant_remark(name: str) -> str:
    return f"left out {name!r}: it is constant"


def copy_remark(name: str) -> str:
    return f"left out {name!r}: the group can be read off it"


def check_magnitude(file: str, name: str, values: np.ndarray) -> None:
    """Refuse a column (of finite numbers) whose squares no number can hold."""
    largest = float(max(values.max(initial=0.0), -values.min(initial=0.0)))
    if largest > _LARGEST:
        raise ValueError(
            f"Column {name!r} of {file} holds numbers as large as {largest:.3g}, whose squares overflow: correct or "
            "rescale it, or leave it out (--drop)."
        )


def _fitted_encoder(table: Table, numeric: list[str], levels: dict[str, tuple[str, ...]], standardise: bool) -> Encoder:
    size = len(numeric) + sum(map(len, levels.values()))
    plain = Encoder(tuple(numeric), levels, np.zeros(size), np.ones(size))
    if not standardise:
        return plain
    X = plain.encode(table)
    scales = X.std(axis=0)
    return Encoder(tuple(numeric), levels, X.mean(axis=0), np.where(scales > 0, scales, 1.0))


def say_columns(encoder: Encoder, left_out: Sequence[str], standardise: bool, remarks: list[str]) -> None:
    said = []
    if encoder.numeric:
        said.append(f"{len(encoder.numeric)} numeric columns: {_some(encoder.numeric)}")
    if encoder.levels:
        sizes = [f"{name} ({len(levels)} levels)" for name, levels in encoder.levels.items()]
        said.append(f"{len(sizes)} text columns, one-hot encoded: {_some(sizes)}")
    said.append(f"not among the features: {_some(left_out)}")
    count = len(encoder.feature_names)
    said.append(f"{count} features, standardised" if standardise else f"{count} features, not standardised")
    remarks[:0] = said


def _some(names: Sequence[str], limit: int = 8) -> str:
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown}, ... ({len(names) - limit} more)"


def _missing(column: np.ndarray) -> np.ndarray:
    return column == "" if column.dtype == object else ~np.isfinite(column)


def _as_text(column: np.ndarray) -> np.ndarray:
    """Levels as text: whole numbers without a decimal point."""
    if column.dtype == object:
        return np.array([value if value != "" else MISSING_LEVEL for value in column], dtype=object)
    return np.array([number_text(value) for value in column.tolist()], dtype=object)
