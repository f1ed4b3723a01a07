"""Reading a data file into features, groups and label, and saying aloud what was done with each column."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fairpca._files import row_index
from fairpca.datasets.arrow import (
    arrow_kind,
    check_unique,
    column_of_arrow,
    import_pyarrow,
    plain_values,
    unusable_columns,
)

__all__ = ["Encoder", "Table", "TableData", "is_number", "prepare_table", "read_table"]

#: Text that stands for "not known".
_MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
#: A text column with more levels than this is an identifier or free text, not a category.
MAX_LEVELS = 100
#: More groups than this are a measurement.
MAX_GROUPS = 20
#: Figures of a smaller group say nothing, and it cannot be divided into rows to fit and rows to judge.
MIN_GROUP_ROWS = 10
MISSING_LEVEL = "(missing)"
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
    as the file has them: Arrow arrays, or the texts of a CSV file.
    """

    name: str
    columns: dict[str, np.ndarray]
    sha256: str
    rows_before: int = 0
    unusable: dict[str, str] = field(default_factory=dict)
    row_index: tuple[str, ...] = ()
    kept: dict[str, Any] = field(default_factory=dict)

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
    >>> from fairpca.datasets.table import read_table
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
            f"with: iconv -f latin1 -t utf-8 {name}"
        ) from None
    if not text.strip():
        raise ValueError(f"{name} is empty.")
    header = text[: text.find("\n")] if "\n" in text else text
    delimiter = max(",;\t", key=header.count)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True))
    except csv.Error as problem:
        raise ValueError(f"{name} is not valid CSV: {problem}.") from None
    return _table_of_rows(rows, name, keep)


def _check_text(content: bytes, name: str) -> None:
    """Text holds no zero bytes, unless in UTF-16, which begins with a mark."""
    if b"\0" not in content or content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return
    for magic, (kind, ending) in _MAGIC.items():
        if content.startswith(magic):
            raise ValueError(f"{name} is not a text file but {kind}: rename it so that it ends in {ending}.")
    raise ValueError(f"{name} is not a text file; give CSV, or name Parquet and Feather files .parquet and .feather.")


def _table_of_rows(rows: list[list[str]], name: str, keep: Sequence[str]) -> Table:
    names = [text.strip() or f"column {number}" for number, text in enumerate(rows[0], start=1)]
    check_unique(names, name)
    numbered = [(number, row) for number, row in enumerate(rows[1:], start=2) if row]
    for number, row in numbered:
        if len(row) != len(names):
            raise ValueError(f"{name}, line {number}: {len(row)} values, but the header names {len(names)} columns.")
    if not numbered:
        raise ValueError(f"{name} has a header but no rows.")
    texts = dict(zip(names, zip(*(row for _, row in numbered), strict=True), strict=True))
    columns = {column: _typed(values) for column, values in texts.items()}
    return Table(name, columns, "", kept={column: list(texts[column]) for column in keep if column in texts})


def _typed(texts: Sequence[str]) -> np.ndarray:
    """Numbers where every known value is one, else text."""
    try:
        return np.array(texts, dtype=np.float64)
    except ValueError:
        pass
    stripped = [text.strip() for text in texts]
    known = ["" if text.lower() in _MISSING else text for text in stripped]
    try:
        return np.array([text or "nan" for text in known], dtype=np.float64)
    except ValueError:
        return np.array(known, dtype=object)


def exact_values(texts: Sequence[str]) -> list[Any]:
    """Texts of a CSV column as numbers, None where missing; as they are where a number would lose something ('007').

    Examples
    --------
    >>> from fairpca.datasets.table import exact_values
    >>> exact_values(["1", "", "1000000000000000001"]), exact_values(["0.5", "2"]), exact_values(["007", "8"])
    ([1, None, 1000000000000000001], [0.5, 2.0], ['007', '8'])
    """
    known = [None if text.strip().lower() in _MISSING else text for text in texts]
    given = [text for text in known if text is not None]
    if all(_is_whole(text) and -(2**63) <= int(text) < 2**63 for text in given):
        return [None if text is None else int(text) for text in known]
    if all(is_number(text) and (not _has_digits_only(text) or (_is_whole(text) and len(text) < 16)) for text in given):
        return [None if text is None else float(text) for text in known]
    return list(texts)


def _has_digits_only(text: str) -> bool:
    return text.strip().lstrip("+-").isdecimal()


def _is_whole(text: str) -> bool:
    """A whole number written as Python would write it."""
    return _has_digits_only(text) and str(int(text)) == text


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
    return Table(name, columns, "", rows_before, unusable, row_index(source.schema), kept)


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
            columns = np.array([position.get(text, -1) for text in _as_text(table.values(name, _FEATURE))], dtype=int)
            known = np.flatnonzero(columns >= 0)
            X[known, columns[known]] = 1.0
            start += len(levels)
        X -= self.offsets
        X /= self.scales
        return X

    def unknown_levels(self, table: Table) -> dict[str, list[str]]:
        """Values of text columns that the encoder has no column for."""
        found = {
            name: sorted(set(_as_text(table.values(name, _FEATURE))) - set(levels))
            for name, levels in self.levels.items()
        }
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

    Numeric columns are taken as they are, text columns are one-hot encoded; constant columns, columns that are mostly
    missing and copies of the groups are left out; rows with a missing group, label or number are dropped. Several
    sensitive columns make groups of their combinations. What was done is told in ``remarks``.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.datasets.table import Table, prepare_table
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
    numeric, levels = _without_copies(table, numeric, levels, groups, remarks)
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
            remarks.append(f"left out {name!r}: it is constant")
        else:
            kept.append(name)
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
    return Table(table.name, columns, table.sha256)


def _group_labels(table: Table, sensitive: Sequence[str]) -> np.ndarray:
    """Text labels; several columns are joined by :func:`joined_group`."""
    columns = [_as_text(table.columns[name]) for name in sensitive]
    labels = np.array([joined_group(parts) for parts in zip(*columns, strict=True)], dtype=object)
    check_group_counts(sensitive, *np.unique(labels.astype(str), return_counts=True))
    return labels.astype(str)


def joined_group(parts: Sequence[str]) -> str:
    """Parts as 'female, young'; one that holds the separator is quoted, so that different parts stay different.

    Examples
    --------
    >>> from fairpca.datasets.table import joined_group
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
    classes = _as_text(table.columns[label])
    check_classes(label, classes)
    return class_values(classes)


def class_values(texts: np.ndarray) -> np.ndarray:
    """Classes as numbers where every one of them is a number, so that 10 comes after 9; else as text.

    Whole numbers are integers, as they are written.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.datasets.table import class_values
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


def _without_copies(
    table: Table, numeric: list[str], levels: dict[str, tuple[str, ...]], groups: np.ndarray, remarks: list[str]
) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Columns from which the group can be read off exactly are the sensitive feature under another name."""
    copies = [name for name in (*numeric, *levels) if _fixed_by_group(table.columns[name], groups)]
    remarks += [f"left out {name!r}: the group can be read off it" for name in copies]
    return [name for name in numeric if name not in copies], {
        n: found for n, found in levels.items() if n not in copies
    }


def _fixed_by_group(column: np.ndarray, groups: np.ndarray) -> bool:
    return all(len(set(column[groups == group].tolist())) == 1 for group in np.unique(groups))


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


def number_text(value: float) -> str:
    if not math.isfinite(value):
        return MISSING_LEVEL
    return str(int(value)) if value == int(value) else repr(value)


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
