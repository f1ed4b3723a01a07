"""Tables as streams of record batches: CSV, Parquet and Feather files, folders of them, and data frames.

A table can be read as often as needed, any of its columns at a time; one in memory is a stream, too. Columns of a CSV
file arrive as text; what the texts mean is decided in :mod:`fairpca.audit.survey`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fairpca._arrow import ArrowFile, arrow_kind, import_pyarrow
from fairpca._labels import is_missing
from fairpca._progress import Report
from fairpca.audit.csv_table import CsvTable
from fairpca.audit.errors import Remedy, TableError
from fairpca.audit.table import Table, check_unique, silent, sliced
from fairpca.audit.texts import MissingTokens, value_text

_FRAME = "the data frame"


def read_table(data: Any, *, delimiter: str | None = None, missing: MissingTokens | Iterable[str] = ()) -> Table:
    """Open a table: a file, a folder of files, or a data frame. Only names and types of the columns are read.

    Parameters
    ----------
    data : path, or data frame
        ``.parquet`` (or ``.pq``) and ``.feather`` (or ``.arrow``); every other name is a CSV file with a header line
        (UTF-8), compressed if it ends in ``.gz`` or ``.zst``. A folder stands for the files in it. A data frame is an
        object with ``__arrow_c_stream__`` (pandas, polars, duckdb, ...) or a mapping from names to columns.
    delimiter : str, optional
        The character between the values of a CSV file. Default: comma, semicolon or tab, whichever is most frequent in
        the header line.
    missing : MissingTokens, or iterable of str
        Texts that mean a missing value, besides the usual ones of CSV files.

    Returns
    -------
    Table

    See Also
    --------
    prepare : The next step.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from fairpca.audit import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "people.csv"
    ...     _ = path.write_text("age;city\\n31;Bonn\\n;Ulm\\n")
    ...     table = read_table(path)
    >>> list(table.types), table.delimiter
    (['age', 'city'], ';')
    """
    # Tokens of its own remember what was met.
    tokens = replace(missing) if isinstance(missing, MissingTokens) else MissingTokens(added=tuple(missing))
    if not isinstance(data, str | Path):
        return _FrameTable(data, delimiter, tokens)
    path = Path(data)
    import_pyarrow(path.name)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if path.is_dir():
        return _Several(path, delimiter, tokens)
    kind = arrow_kind(path)
    if kind is None:
        return CsvTable(path, delimiter, tokens)
    if delimiter is not None:
        raise TableError(f"{path.name} is a {kind} file, which has no delimiter", Remedy("omit it", "delimiter"))
    return _ArrowTable(path, tokens)


class _ArrowTable(Table):
    """A Parquet or Feather file."""

    def __init__(self, path: Path, missing: MissingTokens) -> None:
        self._file = file = ArrowFile(path)
        super().__init__(file.name, file.schema, MissingTokens((), missing.added))
        self.n_rows = file.n_rows

    def batches(self, names: Sequence[str], rows: int, progress: Report, doing: str) -> Iterator[Any]:
        done = 0
        for batch in self._file.batches(names, rows):
            done += batch.num_rows
            progress(done, self._file.n_rows, doing)
            yield batch

    def sha256(self) -> str:
        return self._file.sha256()


class _FrameTable(Table):
    """Columns in memory: one batch. With a delimiter, its texts are read like those of a CSV file."""

    def __init__(self, frame: Any, delimiter: str | None, missing: MissingTokens) -> None:
        import_pyarrow("a data frame")
        self._table = table = _arrow_table(frame)
        super().__init__(_FRAME, table.schema, missing if delimiter else MissingTokens((), missing.added))
        self.delimiter, self.n_rows = delimiter, table.num_rows

    def batches(self, names: Sequence[str], rows: int, progress: Report, doing: str) -> Iterator[Any]:
        # A batch for all of its chunks, so that different divisions of the same rows are read alike.
        return sliced(self._table.select(list(names)).combine_chunks().to_batches(), rows)


def _arrow_table(frame: Any) -> Any:
    import pyarrow

    if isinstance(frame, pyarrow.Table):
        return frame
    given = list(frame) if isinstance(frame, Mapping) else list(getattr(frame, "columns", ()))
    check_unique(list(map(str, given)), _FRAME)
    try:
        return pyarrow.table(frame)
    except (pyarrow.ArrowException, TypeError):  # values of several kinds in one column
        if not given:
            raise TypeError(f"{type(frame).__name__} is not a table: give a path, a data frame or a mapping.") from None
        return pyarrow.table({str(column): _arrow_column(frame[column]) for column in given})


def _arrow_column(column: Any) -> Any:
    import pyarrow

    try:
        return pyarrow.array(column, from_pandas=True)
    except (pyarrow.ArrowException, TypeError):
        values = np.asarray(column, dtype=object).tolist()
        return pyarrow.array([None if is_missing(value) else value_text(value) for value in values])


class _Several(Table):
    """The files of a folder, one after the other; all have the columns of the first."""

    def __init__(self, folder: Path, delimiter: str | None, missing: MissingTokens) -> None:
        kinds = (("*.parquet", "*.pq"), ("*.feather", "*.arrow"), ("*.csv", "*.csv.gz", "*.csv.zst"))
        found = (sorted(path for pattern in patterns for path in folder.glob(pattern)) for patterns in kinds)
        paths = next((several for several in found if several), None)
        if paths is None:
            raise IsADirectoryError(f"{folder} is a folder without .parquet, .feather or .csv files; give a file.")
        first, *others = self._parts = [read_table(path, delimiter=delimiter, missing=missing) for path in paths]
        super().__init__(folder.resolve().name, first.schema, first.missing)
        self.delimiter = first.delimiter
        for part in others:
            if part.types != first.types or part.delimiter != first.delimiter:
                raise TableError(
                    f"{part.name} and {first.name} of {self.name} differ in their columns, types or delimiters",
                    "convert one of them",
                )

    @property
    def n_rows(self) -> int | None:  # type: ignore[override]
        counts = [part.n_rows for part in self._parts]
        return None if None in counts else sum(counts)  # type: ignore[arg-type]

    def batches(self, names: Sequence[str], rows: int, progress: Report, doing: str) -> Iterator[Any]:
        for number, part in enumerate(self._parts):
            yield from part.batches(names, rows, silent, doing)
            progress(number + 1, len(self._parts), doing)

    def sha256(self) -> str:
        return hashlib.sha256("".join(part.sha256() for part in self._parts).encode()).hexdigest()
