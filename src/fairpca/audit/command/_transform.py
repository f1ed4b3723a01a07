"""``fairpca transform``: scores of the rows of a file under a saved model."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from fairpca._arrow import arrow_kind
from fairpca._files import is_stream, replace_file
from fairpca._optional import require
from fairpca._progress import Progress
from fairpca.audit.command._options import open_table
from fairpca.audit.command._output import Command, check_output
from fairpca.audit.model import Scores, load
from fairpca.audit.preparation import Preparation
from fairpca.audit.table import Table
from fairpca.audit.texts import MISSING_TOKENS, MissingTokens

__all__ = ["TRANSFORM"]

#: Endings of files that are written as CSV.
_TEXT_ENDINGS = {"", ".csv", ".txt"}


def _run(arguments: argparse.Namespace) -> int:
    check_output(arguments.out, arguments.data, arguments.model)
    kind = _kind_of_output(arguments.out)
    model = load(arguments.model)
    names = [str(name) for name in model.get_feature_names_out()]
    keep = list(dict.fromkeys(arguments.keep))
    both = next((name for name in keep if name in names), None)
    if both is not None:
        raise ValueError(f"--keep {both}: a score has the same name; rename the column in the file.")
    table = open_table(arguments, _missing_tokens(model.preparation, arguments))
    with Progress(quiet=arguments.quiet) as progress:
        scores = Scores(model.preparation, table, keep, estimator=model.estimator, progress=progress)

        def write(stream: BinaryIO) -> None:
            with _writer(stream, kind) as add:
                for batch, found in scores:
                    kept = {name: _kept(batch.column(name), table) for name in keep}
                    add(kept | dict(zip(names, found.T, strict=True)))

        path = replace_file(arguments.out, write)
    for remark in scores.remarks():
        print(f"fairpca: {remark}", file=sys.stderr)
    print(f"{scores.n_rows:,} rows, {len(names)} scores each: {path}")
    return 0


def _kept(column: Any, table: Table) -> Any:
    """A column as it is in the file: text, if that is a CSV file."""
    import pyarrow.compute

    if hasattr(column, "dictionary"):
        column = column.cast(column.type.value_type)
    return column if table.delimiter is None else pyarrow.compute.utf8_ltrim(column, " ")


def _kind_of_output(path: str) -> str | None:
    """'Parquet', 'Feather' or None for CSV."""
    kind = arrow_kind(path)
    if kind is None and Path(path).suffix.lower() not in _TEXT_ENDINGS and not is_stream(path):
        raise ValueError(f"--out {path}: scores are written as .csv, .parquet (or .pq) and .feather (or .arrow) only.")
    return kind


def _missing_tokens(preparation: Preparation, arguments: argparse.Namespace) -> MissingTokens:
    """Those of the fit and those given here; a fit to a Parquet or Feather file does not use the usual ones."""
    tokens = preparation.tokens
    usual = MISSING_TOKENS if preparation.delimiter is None else tokens.usual
    return MissingTokens(usual if arguments.usual_missing else (), (*tokens.added, *arguments.missing))


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
    """Values to write to a CSV file, None where missing; numbers that Python would format differently become text."""
    if isinstance(column, np.ndarray):
        return [None if value != value else value for value in column.tolist()]  # a missing score is an empty cell
    import pyarrow
    from pyarrow import types

    kind = column.type
    if types.is_integer(kind) or types.is_boolean(kind) or types.is_float64(kind) or types.is_string(kind):
        return column.to_pylist()
    try:
        return column.cast(pyarrow.string()).to_pylist()
    except (pyarrow.ArrowException, ValueError):  # Arrow cannot cast lists and similar types to text
        return column.to_pylist()


def _arrow_values(column: Any) -> Any:
    import pyarrow

    return pyarrow.array(column, from_pandas=True) if isinstance(column, np.ndarray) else column


TRANSFORM = Command(
    "transform",
    _run,
    "apply a saved model to a file",
    "Writes the scores of every row, in the order of the file. Columns are matched by name and prepared as they were "
    "when the model was fitted; the groups are not needed. A row that lacks a number has no scores, unless the model "
    "was fitted with --impute.",
    "example: fairpca transform model.npz new.csv --keep id --out scores.csv",
)
