"""``fairpca transform``: scores of the rows of a file under a saved model."""

from __future__ import annotations

import argparse
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


def _kind_of_output(path: str) -> str:
    kind = arrow_kind(path)
    if kind is None and Path(path).suffix.lower() not in _TEXT_ENDINGS and not is_stream(path):
        raise ValueError(f"--out {path}: scores are written as .csv, .parquet (or .pq) and .feather (or .arrow) only.")
    return kind or "CSV"


def _missing_tokens(preparation: Preparation, arguments: argparse.Namespace) -> MissingTokens:
    """Those of the fit and those given here; a fit to a Parquet or Feather file does not use the usual ones."""
    tokens = preparation.tokens
    usual = MISSING_TOKENS if preparation.delimiter is None else tokens.usual
    return MissingTokens(usual if arguments.usual_missing else (), (*tokens.added, *arguments.missing))


@contextmanager
def _writer(stream: BinaryIO, kind: str) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that appends columns to the file."""
    pyarrow, csv, parquet, ipc = (
        require(f"pyarrow{module}", f"Writing {kind} files") for module in ("", ".csv", ".parquet", ".ipc")
    )
    plain = csv.WriteOptions(quoting_style="needed")
    makers: dict[str, Callable[..., Any]] = {
        "CSV": lambda *given: csv.CSVWriter(*given, write_options=plain),
        "Parquet": parquet.ParquetWriter,
        "Feather": ipc.new_file,
    }
    make, opened = makers[kind], list[Any]()

    def add(columns: dict[str, Any]) -> None:
        table = pyarrow.table(
            {
                name: pyarrow.array(one, from_pandas=True) if isinstance(one, np.ndarray) else one
                for name, one in columns.items()
            }
        )  # a missing score is null
        if not opened:
            _check_kinds(make, table, kind)
            opened.append(make(stream, table.schema))
        opened[0].write_table(table)

    try:
        yield add
    finally:
        for writer in opened:
            writer.close()


def _check_kinds(make: Callable[..., Any], table: Any, kind: str) -> None:
    """Reject columns of a type that such files do not support: Parquet has no calendar intervals, CSV no lists."""
    import pyarrow

    for field in table.schema:
        try:
            with make(pyarrow.BufferOutputStream(), pyarrow.schema([field])) as writer:
                writer.write_table(table.select([field.name]).slice(0, 1))
        except pyarrow.ArrowException:
            raise ValueError(
                f"--keep {field.name}: {kind} files cannot hold {field.type}; leave it out, or write .feather."
            ) from None


TRANSFORM = Command(
    "transform",
    _run,
    "apply a saved model to a file",
    "Writes the scores of every row, in the order of the file. Columns are matched by name and prepared as they were "
    "when the model was fitted; the groups are not needed. A row that lacks a number has no scores, unless the model "
    "was fitted with --impute.",
    "example: fairpca transform model.npz new.csv --keep id --out scores.csv",
    {"out": "scores.csv"},
)
