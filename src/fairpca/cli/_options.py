"""Options shared by several commands, and loading the data that they describe."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from fairpca._progress import Progress
from fairpca.model_selection import METHODS
from fairpca.tables import StreamedTable, TableData, prepare_table, read_table, stream_table
from fairpca.tables.arrow import is_arrow
from fairpca.tables.checking import MAX_LEVELS
from fairpca.tables.missing import MISSING_TOKENS, MissingTokens
from fairpca.tables.streaming import STREAM_NUMBERS, is_large

__all__ = [
    "add_comparison_options",
    "add_data_options",
    "add_jobs_option",
    "add_label_option",
    "add_reading_options",
    "add_seed_option",
    "dimensions",
    "is_streamed",
    "load",
    "load_in_memory",
    "load_streamed",
    "method_names",
    "missing_tokens",
    "needs_memory",
    "wanted_dimensions",
]

_ON_REQUEST = ", ".join(method.name for method in METHODS.values() if method.on_request)
_DEFAULT_MAX = 10
#: Rows of a streamed file that are kept for intervals, classifiers and figures.
_SAMPLE_ROWS = 50_000
#: A larger number of components is taken for a typing error.
_MOST_COMPONENTS = 100_000
#: The largest seed that numpy's random generators accept.
_LARGEST_SEED = 2**32 - 1


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """The file and the roles of its columns."""
    parser.add_argument(
        "data", metavar="DATA",
        help="a CSV file with a header line (.csv, .csv.gz or .csv.zst), or a .parquet or .feather file",
    )  # fmt: skip
    parser.add_argument(
        "--sensitive", action="append", required=True, metavar="COLUMN",
        help="the column that holds the groups, such as sex; repeat the option for combinations of several columns",
    )  # fmt: skip
    parser.add_argument(
        "--merge-small", type=_whole_number(0), default=0, metavar="N",
        help="merge the groups with fewer than N rows into one, 'other'",
    )  # fmt: skip
    parser.add_argument(
        "--weights",
        metavar="COLUMN",
        help="the weight of each row, such as a survey weight: it counts like repeated rows",
    )
    parser.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="COLUMN",
        help="leave a column out, such as an identifier; may be repeated",
    )
    _add_feature_options(parser)
    add_reading_options(parser)


def _add_feature_options(parser: argparse.ArgumentParser) -> None:
    """How columns become features."""
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
    parser.add_argument(
        "--min-level", type=_rows_or_share, default=None, metavar="N",
        help="pool the levels of a text column with fewer rows as 'other (rare)': a number of rows, or a share such as "
        "0.02 (default: 0.01 or 30 rows, whichever is more; a tenth of fewer than 300 rows); 0 pools nothing",
    )  # fmt: skip
    parser.add_argument(
        "--impute", choices=["median"], default=None,
        help="replace missing numbers by the column's median, with one more feature that says where; by default such "
        "rows are dropped",
    )  # fmt: skip


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """How a file is read."""
    parser.add_argument(
        "--delimiter", type=_delimiter, default=None, metavar="C",
        help="the character between the values of a CSV file, or 'tab' (default: comma, semicolon or tab, whichever is "
        "most frequent in the header)",
    )  # fmt: skip
    parser.add_argument(
        "--missing", action="append", default=[], metavar="TOKEN",
        help="a text or number that means a missing value, in every column; may be repeated. CSV files: besides empty "
        f"cells and {', '.join(MISSING_TOKENS)}, in upper or lower case; in the columns of groups and label, NA, N/A "
        "and None are values unless named here",
    )  # fmt: skip
    parser.add_argument(
        "--no-missing", dest="usual_missing", action="store_false",
        help="only empty cells and what --missing names are missing values",
    )  # fmt: skip
    parser.add_argument(
        "--stream",
        action="store_true",
        help="read a .parquet or .feather file batch by batch, with bounded memory; by default only files with more "
        f"than {STREAM_NUMBERS:,} values (rows x columns)",
    )


def add_label_option(parser: argparse.ArgumentParser, purpose: str) -> None:
    """The label and its positive class."""
    parser.add_argument("--label", metavar="COLUMN", help=purpose)
    parser.add_argument(
        "--positive", metavar="VALUE",
        help="the positive class of the label; all others count as negative (default: of two classes, the larger "
        "number, or the later in alphabetical order)",
    )  # fmt: skip


def add_comparison_options(parser: argparse.ArgumentParser) -> None:
    """What is compared, and how it is shown."""
    add_label_option(
        parser, "the target of later decisions, such as default; adds accuracy and the groups' differences in decisions"
    )
    parser.add_argument(
        "--components", type=dimensions, default=None, metavar="LIST",
        help=f"numbers of components, such as 1,2,5 or 1-10 (default: 1-{_DEFAULT_MAX}, up to the number of features)",
    )  # fmt: skip
    parser.add_argument(
        "--methods", type=method_names, default=None, metavar="LIST",
        help=f"methods to compare, separated by commas (default: all but {_ON_REQUEST}): {', '.join(METHODS)}",
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


def _rows_or_share(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e18 or (number >= 1 and number != int(number)):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number of rows nor a share of them below 1")
    return number


def _delimiter(text: str) -> str:
    """One character; a tab is hard to type."""
    character = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(character) != 1 or character in '"\r\n\0 ':
        raise argparse.ArgumentTypeError(f"{text!r} is not a single character such as ';', or 'tab'")
    return character


def missing_tokens(arguments: argparse.Namespace) -> MissingTokens:
    """Texts that mean a missing value."""
    return MissingTokens.of(arguments.missing, usual=arguments.usual_missing)


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


def needs_memory(arguments: argparse.Namespace) -> str | None:
    """The option that needs all rows in memory, if one was given."""
    options = ("clusters", "weights", "impute")
    return next((f"--{name}" for name in options if getattr(arguments, name, None) is not None), None)


def load(arguments: argparse.Namespace) -> TableData:
    """Read the file and split it into features, groups and label; a large file is streamed and sampled."""
    if is_streamed(arguments):
        if arguments.sample_rows < 1:
            raise ValueError(f"--sample-rows {arguments.sample_rows} must be a positive number.")
        return load_streamed(arguments, arguments.sample_rows)
    return load_in_memory(arguments)


def load_in_memory(arguments: argparse.Namespace) -> TableData:
    """Read all rows of the file into memory and split them into features, groups and label."""
    table = read_table(arguments.data, delimiter=arguments.delimiter, missing=missing_tokens(arguments))
    return prepare_table(
        table, arguments.sensitive, arguments.label, **_preparation_options(arguments),
        clusters=getattr(arguments, "clusters", None), weights=arguments.weights, impute=arguments.impute,
    )  # fmt: skip


def load_streamed(arguments: argparse.Namespace, sample_rows: int = 0) -> StreamedTable:
    """Stream the file once; ``sample_rows`` of its rows are kept."""
    option = needs_memory(arguments)
    if option is not None:
        raise ValueError(f"{option} needs all rows in memory, but this file is streamed; give a smaller file.")
    if arguments.delimiter is not None:
        raise ValueError(f"--delimiter is for CSV files, not {arguments.data}; omit it.")
    with Progress(quiet=arguments.quiet or arguments.json in (True, "-")) as progress:
        return stream_table(
            arguments.data, arguments.sensitive, arguments.label, **_preparation_options(arguments),
            missing=missing_tokens(arguments), sample_rows=sample_rows, seed=arguments.seed, progress=progress,
        )  # fmt: skip


def _preparation_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Options of a preparation in memory or batch by batch."""
    names = ("drop", "standardise", "max_levels", "min_level", "positive", "merge_small")
    return {name: getattr(arguments, name) for name in names}
