"""``fairpca transform``: scores of the rows of a file under a saved model."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from fairpca._arrow import arrow_kind
from fairpca._files import is_stream, replace_file
from fairpca._optional import require
from fairpca._progress import Progress
from fairpca.cli._options import add_reading_options, is_streamed
from fairpca.cli._output import check_output, output_name
from fairpca.persistence import PreparedModel, load_model
from fairpca.persistence.prepared import missing_numbers_sentence, new_levels_sentence
from fairpca.tables import Table, read_table
from fairpca.tables.arrow import csv_values_of_arrow, open_arrow
from fairpca.tables.columns import exact_values
from fairpca.tables.missing import MISSING_TOKENS, MissingTokens
from fairpca.tables.reading import table_of_arrow

__all__ = ["add_transform"]

#: Values of a large file that are processed at a time.
_BATCH_NUMBERS = 2_000_000
_SHOWN_LEVELS = 3
#: Endings of files that are written as CSV.
_TEXT_ENDINGS = {"", ".csv", ".txt"}


def add_transform(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "transform", help="apply a saved model to a file",
        description="Writes the scores of every row, in the order of the file. Columns are matched by name and "
        "prepared as they were when the model was fitted; the groups are not needed. A row that lacks a number has no "
        "scores, unless the model was fitted with --impute.",
        epilog="example: fairpca transform model.npz new.csv --keep id --out scores.csv",
    )  # fmt: skip
    parser.add_argument("model", metavar="MODEL", help="a model that `fairpca fit` saved")
    parser.add_argument("data", metavar="DATA", help="a CSV, .parquet or .feather file with the same columns")
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="COLUMN",
        help="copy a column of the file, unchanged, next to the scores; may be repeated",
    )
    parser.add_argument(
        "--out",
        default="scores.csv",
        type=output_name,
        metavar="FILE",
        help="where the scores are written: .csv, .parquet or .feather, or - for CSV on the standard output (default: "
        "scores.csv)",
    )
    add_reading_options(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    check_output(arguments.out, arguments.data, arguments.model)
    kind = _kind_of_output(arguments.out)
    model = load_model(arguments.model)
    if not isinstance(model, PreparedModel):
        raise ValueError(
            f"{arguments.model} does not say how columns are prepared; use a model saved by `fairpca fit`, or Python."
        )
    scoring = _Scoring(model, arguments)
    streamed = is_streamed(arguments)

    def write(stream: BinaryIO) -> None:
        with Progress(quiet=arguments.quiet) as progress, _writer(stream, kind) as add:
            for table in _parts(arguments.data, scoring, progress) if streamed else [scoring.whole(arguments.data)]:
                add(scoring.columns(table))

    path = replace_file(arguments.out, write)
    scoring.warn()
    print(f"{scoring.n_rows:,} rows, {len(scoring.names)} scores each: {path}")
    return 0


def _kind_of_output(path: str) -> str | None:
    """'Parquet', 'Feather' or None for CSV."""
    kind = arrow_kind(path)
    if kind is None and Path(path).suffix.lower() not in _TEXT_ENDINGS and not is_stream(path):
        raise ValueError(f"--out {path}: scores are written as .csv, .parquet (or .pq) and .feather (or .arrow) only.")
    return kind


class _Scoring:
    """Turns tables into columns of scores; counts rows and collects levels that the model does not know."""

    def __init__(self, model: PreparedModel, arguments: argparse.Namespace) -> None:
        self._model, self.keep = model, list(dict.fromkeys(arguments.keep))
        self._delimiter = arguments.delimiter
        self.missing = _missing_tokens(model, arguments)
        self.names = [str(name) for name in model.get_feature_names_out()]
        both = next((name for name in self.keep if name in self.names), None)
        if both is not None:
            raise ValueError(f"--keep {both}: a score has the same name; rename the column in the file.")
        self.needed = list(dict.fromkeys([*model.encoder.columns, *self.keep]))
        #: Values per row: as it is read, and as it is passed to the estimator.
        self.width = len(self.needed) + len(model.encoder.offsets)
        self.n_rows = self._n_without = 0
        self._unknown: dict[str, set[str]] = {}
        self._absent = Counter[str]()

    def whole(self, path: str) -> Table:
        return read_table(path, self.keep, delimiter=self._delimiter, missing=self.missing)

    def columns(self, table: Table) -> dict[str, Any]:
        """Kept columns as in the file, and scores; a row without scores has missing values."""
        for name in self.keep:
            table.column(name, "to be kept")
        for name, levels in self._model.encoder.unknown_levels(table).items():
            self._unknown.setdefault(name, set()).update(levels[:_SHOWN_LEVELS])
        self._absent.update(self._model.encoder.missing_numbers(table))
        scores = self._model.transform_table(table)
        self.n_rows += len(scores)
        self._n_without += int(np.isnan(scores).any(axis=1).sum())
        return table.kept | dict(zip(self.names, scores.T, strict=True))

    def warn(self) -> None:
        """Report levels that the model does not know, and rows without scores."""
        for name, levels in self._unknown.items():
            print(f"fairpca: {new_levels_sentence(name, list(levels), self._model.encoder)}", file=sys.stderr)
        if self._n_without:
            sentence = missing_numbers_sentence(self._n_without, self.n_rows, dict(self._absent))
            print(f"fairpca: {sentence}", file=sys.stderr)


def _missing_tokens(model: PreparedModel, arguments: argparse.Namespace) -> MissingTokens:
    """Those of the fit and those given here; a fit to a Parquet or Feather file does not use the usual ones."""
    usual = MISSING_TOKENS if model.delimiter is None else model.missing.usual
    return MissingTokens(usual if arguments.usual_missing else (), (*model.missing.added, *arguments.missing))


def _parts(path: str, scoring: _Scoring, progress: Progress) -> Iterator[Table]:
    """The file in batches, with only the columns that are needed."""
    file = open_arrow(path)
    names = [name for name in scoring.needed if name in file.schema.names] or file.schema.names[:1]
    done = 0
    for batch in file.batches(names, max(_BATCH_NUMBERS // scoring.width, 1)):
        table = table_of_arrow(batch, file.name, scoring.keep, missing=scoring.missing)
        if not done:  # so that an error message lists all columns of the file
            table.columns.update({name: np.zeros(0) for name in file.schema.names if name not in names})
        yield table
        done += batch.num_rows
        progress(done, file.n_rows, "rows written")
    if not done:
        raise ValueError(f"{file.name} has no rows.")


@contextmanager
def _writer(stream: BinaryIO, kind: str | None) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that appends columns to the file."""
    if kind is not None:
        with _arrow_writer(stream, kind) as add:
            yield add
        return
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    writer = csv.writer(text)

    def add_lines(columns: dict[str, Any]) -> None:
        if not text.tell():
            writer.writerow(columns)
        writer.writerows(zip(*map(_csv_values, columns.values()), strict=True))

    try:
        yield add_lines
    finally:
        text.detach()  # flushes, and leaves the stream open


@contextmanager
def _arrow_writer(stream: BinaryIO, kind: str) -> Iterator[Callable[[dict[str, Any]], None]]:
    pyarrow, parquet, ipc = (
        require(module, f"Writing {kind} files") for module in ("pyarrow", "pyarrow.parquet", "pyarrow.ipc")
    )
    opened: list[Any] = []

    def add(columns: dict[str, Any]) -> None:
        table = pyarrow.table({name: _arrow_values(column) for name, column in columns.items()})
        if not opened:
            make = parquet.ParquetWriter if kind == "Parquet" else ipc.new_file
            _check_kinds(make, table.schema, kind)
            opened.append(make(stream, table.schema))
        opened[0].write_table(table)

    try:
        yield add
    finally:
        for writer in opened:
            writer.close()


def _check_kinds(make: Callable[..., Any], schema: Any, kind: str) -> None:
    """Reject columns of a type that such files do not support: Parquet has no calendar intervals."""
    import pyarrow

    for field in schema:
        try:
            make(pyarrow.BufferOutputStream(), pyarrow.schema([field])).close()
        except pyarrow.ArrowException:
            raise ValueError(
                f"--keep {field.name}: {kind} files cannot hold {field.type}; leave it out, or write .csv."
            ) from None


def _csv_values(column: Any) -> list[Any]:
    if isinstance(column, list):
        return column
    if not isinstance(column, np.ndarray):
        return csv_values_of_arrow(column)
    return [None if value != value else value for value in column.tolist()]  # a missing score is an empty cell


def _arrow_values(column: Any) -> Any:
    """Text from a CSV file becomes numbers if that loses no information."""
    import pyarrow

    if not isinstance(column, list):
        return pyarrow.array(column, from_pandas=True) if isinstance(column, np.ndarray) else column
    return pyarrow.array(exact_values(column))
