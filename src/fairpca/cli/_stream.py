"""Files larger than memory: when the command streams one, and how."""

from __future__ import annotations

import argparse

from fairpca._progress import Progress
from fairpca.tables.arrow import is_arrow
from fairpca.tables.streaming import STREAM_NUMBERS, is_large
from fairpca.tables.summary import StreamedTable, stream_table

__all__ = ["add_stream_options", "is_streamed", "load_streamed"]


def add_stream_options(parser: argparse.ArgumentParser) -> None:
    """How a file is read."""
    parser.add_argument(
        "--stream",
        action="store_true",
        help="read a .parquet or .feather file batch by batch, with bounded memory; by default only beyond "
        f"{STREAM_NUMBERS:,} numbers (rows x columns)",
    )


def is_streamed(arguments: argparse.Namespace) -> bool:
    """Whether it was asked for, or the file's metadata say that it is large."""
    if arguments.stream and not is_arrow(arguments.data):
        raise ValueError(
            f"--stream reads .parquet and .feather files, not {arguments.data}; convert it first, for example with "
            "pyarrow.csv.open_csv and pyarrow.parquet.ParquetWriter."
        )
    return arguments.stream or is_large(arguments.data)


def load_streamed(arguments: argparse.Namespace, sample_rows: int = 0) -> StreamedTable:
    """Read the file once; ``sample_rows`` says how many of its rows are kept."""
    with Progress(quiet=arguments.quiet or arguments.json in (True, "-")) as progress:
        return stream_table(
            arguments.data, arguments.sensitive, getattr(arguments, "label", None),
            drop=arguments.drop, standardise=arguments.standardise, max_levels=arguments.max_levels,
            sample_rows=sample_rows, seed=getattr(arguments, "seed", 0), progress=progress,
        )  # fmt: skip
