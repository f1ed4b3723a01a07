"""``fairpca transform``: scores of the rows of a file under a saved model."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from functools import partial
from itertools import chain
from typing import Any, BinaryIO

import numpy as np

from fairpca._arrow import arrow_kind
from fairpca._files import replace_file
from fairpca._progress import Progress
from fairpca.audit.command._options import open_table
from fairpca.audit.command._output import Command, check_output
from fairpca.audit.model import Scores, load
from fairpca.audit.table import Table

__all__ = ["TRANSFORM"]

_ENDINGS = (".csv", ".txt", ".parquet", ".pq", ".feather", ".arrow")


def _run(arguments: argparse.Namespace) -> int:
    check_output(arguments.out, arguments.data, arguments.model, endings=_ENDINGS)
    model = load(arguments.model)
    names = [str(name) for name in model.get_feature_names_out()]
    keep = list(dict.fromkeys(arguments.keep))
    both = next((name for name in keep if name in names), None)
    if both is not None:
        raise ValueError(f"--keep {both}: a score has the same name; rename the column in the file.")
    table = open_table(arguments, model.preparation.tokens)
    with Progress(quiet=arguments.quiet) as progress:
        scores = Scores(model.preparation, table, keep, estimator=model.estimator, progress=progress)
        parts = (
            {name: _kept(batch.column(name), table) for name in keep} | dict(zip(names, found.T, strict=True))
            for batch, found in scores
        )
        path = replace_file(arguments.out, lambda stream: _write(stream, arrow_kind(arguments.out) or "CSV", parts))
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


def _write(stream: BinaryIO, kind: str, parts: Iterable[dict[str, Any]]) -> None:
    """Write columns, one part of the rows after the other; a missing score is null."""
    import pyarrow
    from pyarrow import csv, ipc, parquet

    makers: dict[str, Any] = {
        "CSV": partial(csv.CSVWriter, write_options=csv.WriteOptions(quoting_style="needed")),
        "Parquet": parquet.ParquetWriter,
        "Feather": ipc.new_file,
    }
    tables = (
        pyarrow.table({
            name: pyarrow.array(one, from_pandas=True) if isinstance(one, np.ndarray) else one
            for name, one in part.items()
        })
        for part in parts
    )  # fmt: skip
    first = next(tables)
    try:
        with makers[kind](stream, first.schema) as writer:
            for table in chain([first], tables):
                writer.write_table(table)
    except pyarrow.ArrowException as problem:  # Parquet has no calendar intervals, CSV no lists
        kept = ", ".join(f"{field.name} ({field.type})" for field in first.schema if field.type != pyarrow.float64())
        raise ValueError(
            f"--keep: {kind} files cannot hold one of {kept} ({problem}); leave it out, or write .feather."
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
