"""``fairpca transform``: scores of the rows of a file under a saved model."""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np

from fairpca._files import replace_file
from fairpca.cli._audit import check_output
from fairpca.datasets.table import Encoder, Table, read_table
from fairpca.persistence import read_model

__all__ = ["add_transform"]


def add_transform(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "transform", help="apply a saved model to a file",
        description="Writes the scores of every row, in the order of the file. Columns are found by name and prepared "
        "as they were when the model was fitted; the group of a row is not needed.",
        epilog="example: fairpca transform model.npz new.csv --keep id --out scores.csv",
    )  # fmt: skip
    parser.add_argument("model", metavar="MODEL", help="a model that `fairpca fit` saved")
    parser.add_argument("data", metavar="DATA", help="a CSV, .parquet or .feather file with the same columns")
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="COLUMN",
        help="copy a column of the file beside the scores; may be repeated",
    )
    parser.add_argument(
        "--out",
        default="scores.csv",
        metavar="FILE",
        help="where the scores are written: .csv, .parquet or .feather (default: scores.csv)",
    )
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    check_output(arguments.out)
    saved = read_model(arguments.model)
    if not isinstance(saved.extra, dict) or "encoder" not in saved.extra:
        raise ValueError(
            f"{arguments.model} does not say how columns are prepared; use a model of `fairpca fit`, or Python."
        )
    encoder = Encoder.from_dict(saved.extra["encoder"])
    table = read_table(arguments.data)
    columns: dict[str, np.ndarray] = {name: table.column(name, "to be kept") for name in arguments.keep}
    _warn_of_new_levels(encoder, table)
    scores = saved.estimator.transform(encoder.encode(table))
    names = [str(name) for name in saved.estimator.get_feature_names_out()]
    columns |= dict(zip(names, scores.T, strict=True))
    path = replace_file(arguments.out, lambda temporary: _write(temporary, columns, Path(arguments.out).suffix.lower()))
    print(f"{len(scores):,} rows, {scores.shape[1]} scores each: {path}")
    return 0


def _warn_of_new_levels(encoder: Encoder, table: Table) -> None:
    for name, levels in encoder.unknown_levels(table).items():
        shown = ", ".join(map(repr, levels[:3]))
        print(
            f"fairpca: column {name!r} has values the model has not seen ({shown}); they count as none of its levels.",
            file=sys.stderr,
        )


def _write(path: Path, columns: dict[str, np.ndarray], kind: str) -> None:
    if kind in {".parquet", ".feather"}:
        _write_arrow(path, columns, kind)
        return
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


def _write_arrow(path: Path, columns: dict[str, np.ndarray], kind: str) -> None:
    try:
        import pyarrow
        import pyarrow.feather
        import pyarrow.parquet
    except ImportError:
        raise ImportError(f"Writing {kind} files needs pyarrow: pip install 'fairpca[arrow]'.") from None
    table = pyarrow.table({name: pyarrow.array(column.tolist()) for name, column in columns.items()})
    if kind == ".parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        pyarrow.feather.write_feather(table, str(path))
