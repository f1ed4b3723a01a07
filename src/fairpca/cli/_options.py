"""Options shared by several commands, and loading the data that they describe."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from fairpca._progress import Progress
from fairpca.model_selection import METHODS
from fairpca.tables import StreamedTable, TableData, prepare_table, read_table, stream_table
from fairpca.tables.arrow import is_arrow
from fairpca.tables.checking import MAX_LEVELS
from fairpca.tables.streaming import STREAM_NUMBERS, is_large

__all__ = [
    "add_comparison_options",
    "add_data_options",
    "add_jobs_option",
    "add_seed_option",
    "add_stream_options",
    "dimensions",
    "is_streamed",
    "load",
    "load_in_memory",
    "load_streamed",
    "method_names",
    "wanted_dimensions",
]

_DEFAULT_MAX = 10
#: Rows of a streamed file that are kept for intervals, classifiers and figures.
_SAMPLE_ROWS = 50_000
#: A larger number of components is taken for a typing error.
_MOST_COMPONENTS = 100_000
#: The largest seed that numpy's random generators accept.
_LARGEST_SEED = 2**32 - 1


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """The file and the roles of its columns."""
    parser.add_argument("data", metavar="DATA", help="a CSV file with a header line, or a .parquet or .feather file")
    parser.add_argument(
        "--sensitive", action="append", required=True, metavar="COLUMN",
        help="the column that holds the groups, such as sex; repeat the option for combinations of several columns",
    )  # fmt: skip
    parser.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="COLUMN",
        help="leave a column out, such as an identifier; may be repeated",
    )
    parser.add_argument(
        "--no-standardise", "--no-standardize", dest="standardise", action="store_false",
        help="keep the columns' own units; by default each is scaled to standard deviation 1, since otherwise the "
        "columns with the largest values dominate",
    )  # fmt: skip
    parser.add_argument(
        "--max-levels",
        type=int,
        default=MAX_LEVELS,
        metavar="N",
        help=f"maximum number of distinct values of a text column (default: {MAX_LEVELS})",
    )
    add_stream_options(parser)


def add_stream_options(parser: argparse.ArgumentParser) -> None:
    """How a file is read."""
    parser.add_argument(
        "--stream",
        action="store_true",
        help="read a .parquet or .feather file batch by batch, with bounded memory; by default only files with more "
        f"than {STREAM_NUMBERS:,} values (rows x columns)",
    )


def add_comparison_options(parser: argparse.ArgumentParser) -> None:
    """What is compared, and how it is shown."""
    parser.add_argument(
        "--label",
        metavar="COLUMN",
        help="the target of later decisions, such as default; adds accuracy and the groups' differences in decisions",
    )
    parser.add_argument(
        "--components", type=dimensions, default=None, metavar="LIST",
        help=f"numbers of components, such as 1,2,5 or 1-10 (default: 1-{_DEFAULT_MAX}, up to the number of features)",
    )  # fmt: skip
    parser.add_argument(
        "--methods", type=method_names, default=None, metavar="LIST",
        help=f"methods to compare, separated by commas (default: all but FairPCA-relative): {', '.join(METHODS)}",
    )  # fmt: skip
    _add_chance_options(parser)
    add_jobs_option(parser)
    parser.add_argument(
        "--full-table", action="store_true", help="print all numbers of components, not only three of them"
    )
    parser.add_argument(
        "--json", nargs="?", const="-", type=_json_target, metavar="FILE",
        help="write every value to FILE, which must end in .json; without FILE, print them instead of the tables",
    )  # fmt: skip
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def _add_chance_options(parser: argparse.ArgumentParser) -> None:
    """Random seed, permutation test and sampling."""
    add_seed_option(parser)
    parser.add_argument(
        "--clusters", metavar="COLUMN",
        help="the person (household, patient, ...) that each row belongs to, where persons have several rows; it is "
        "not a feature",
    )  # fmt: skip
    parser.add_argument(
        "--repeated-rows", action="store_true",
        help="rows repeat persons whose identities are not known: print no p-value",
    )  # fmt: skip
    parser.add_argument(
        "--permutations", type=_whole_number(19), default=999, metavar="N",
        help="number of random divisions for the p-values, at least 19 (default: 999)",
    )  # fmt: skip
    parser.add_argument(
        "--sample-rows",
        type=int,
        default=_SAMPLE_ROWS,
        metavar="N",
        help="for a streamed file: rows drawn at random for p-values, intervals and values on new rows "
        f"(default: {_SAMPLE_ROWS:,}); losses in the sample and variance are always those of all rows",
    )


def add_seed_option(parser: argparse.ArgumentParser) -> None:
    """The random seed."""
    parser.add_argument(
        "--seed", type=_whole_number(0, _LARGEST_SEED), default=0, metavar="N",
        help="random seed (default: 0)",
    )  # fmt: skip


def add_jobs_option(parser: argparse.ArgumentParser) -> None:
    """The number of parallel processes."""
    parser.add_argument(
        "--jobs", type=_jobs, default=-1, metavar="N", help="number of parallel processes (default: all cores)"
    )


def _whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """A parser of whole numbers from ``least`` to ``most``."""
    wanted = f"of at least {least}" if most is None else f"from {least} to {most}"

    def parse(text: str) -> int:
        number = _integer(text)
        if number is None or number < least or (most is not None and number > most):
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number {wanted}")
        return number

    return parse


def _jobs(text: str) -> int:
    number = _integer(text)
    if not number:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes; give 1 or more, or -1 for all cores")
    return number


def _json_target(text: str) -> str:
    """Only names that end in .json: ``--json credit.csv`` would otherwise overwrite the data."""
    if text != "-" and not text.endswith(".json"):
        raise argparse.ArgumentTypeError(f"{text!r} does not end in .json; write --json alone to print the values")
    return text


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def dimensions(text: str) -> list[int]:
    """Parse ``1,2,5`` or ``1-10`` or a mixture."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        low, high = _integer(first), _integer(last if dash else first)
        if low is None or high is None:
            raise argparse.ArgumentTypeError(f"{text!r} is not a list such as 1,2,5 or 1-10")
        if high > _MOST_COMPONENTS:  # checked first: the range itself might not fit into memory
            raise argparse.ArgumentTypeError(f"{text!r} asks for more than {_MOST_COMPONENTS:,} components")
        numbers.update(range(low, high + 1))
    if not numbers or min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} contains no positive number of components")
    return sorted(numbers)


def method_names(text: str) -> list[str]:
    """Parse method names; PCA always comes first, since everything is compared with it."""
    known = {name.lower(): name for name in METHODS}
    names = [part.strip() for part in text.split(",") if part.strip()]
    for name in names:
        if name.lower() not in known:
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(METHODS)}")
    return list(dict.fromkeys(["PCA", *(known[name.lower()] for name in names)]))


def wanted_dimensions(asked: list[int] | None, n_features: int) -> list[int]:
    """The requested numbers of components, or 1 to 10, up to the number of features."""
    return asked if asked is not None else list(range(1, min(_DEFAULT_MAX, n_features) + 1))


def is_streamed(arguments: argparse.Namespace) -> bool:
    """Whether streaming was requested, or the file is large according to its metadata."""
    if arguments.stream and not is_arrow(arguments.data):
        raise ValueError(
            f"--stream reads .parquet and .feather files, not {arguments.data}; convert it first, for example with "
            "pyarrow.csv.open_csv and pyarrow.parquet.ParquetWriter."
        )
    return arguments.stream or is_large(arguments.data)


def load(arguments: argparse.Namespace) -> TableData:
    """Read the file and split it into features, groups and label; a large file is streamed and sampled."""
    if is_streamed(arguments):
        if arguments.clusters is not None:
            raise ValueError("--clusters needs all rows in memory, but this file is streamed; give a smaller file.")
        if arguments.sample_rows < 1:
            raise ValueError(f"--sample-rows {arguments.sample_rows} must be a positive number.")
        return load_streamed(arguments, arguments.sample_rows)
    return load_in_memory(arguments)


def load_in_memory(arguments: argparse.Namespace) -> TableData:
    """Read all rows of the file into memory and split them into features, groups and label."""
    return prepare_table(
        read_table(arguments.data), arguments.sensitive, getattr(arguments, "label", None),
        drop=arguments.drop, standardise=arguments.standardise, max_levels=arguments.max_levels,
        clusters=getattr(arguments, "clusters", None),
    )  # fmt: skip


def load_streamed(arguments: argparse.Namespace, sample_rows: int = 0) -> StreamedTable:
    """Stream the file once; ``sample_rows`` of its rows are kept."""
    with Progress(quiet=arguments.quiet or arguments.json in (True, "-")) as progress:
        return stream_table(
            arguments.data, arguments.sensitive, getattr(arguments, "label", None),
            drop=arguments.drop, standardise=arguments.standardise, max_levels=arguments.max_levels,
            sample_rows=sample_rows, seed=getattr(arguments, "seed", 0), progress=progress,
        )  # fmt: skip
