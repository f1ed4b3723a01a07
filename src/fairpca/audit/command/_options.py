"""Options shared by several commands, and loading the data that they describe."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from fairpca._progress import Progress
from fairpca.audit.checks import MAX_LEVELS
from fairpca.audit.prepare import STREAM_NUMBERS, Prepared, prepare
from fairpca.audit.read import read_table
from fairpca.audit.table import Table
from fairpca.audit.texts import MISSING_TOKENS, MissingTokens
from fairpca.model_selection import METHODS

__all__ = [
    "add_comparison_options",
    "add_data_options",
    "add_details_option",
    "add_jobs_option",
    "add_label_option",
    "add_reading_options",
    "add_seed_option",
    "dimensions",
    "load",
    "method_names",
    "open_table",
    "option_names",
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
        help="a CSV file with a header line (.csv, .csv.gz or .csv.zst), a .parquet or .feather file, or a folder of "
        "them",
    )  # fmt: skip
    parser.add_argument(
        "--sensitive", action="append", required=True, metavar="COLUMN",
        help="the column that holds the groups, such as sex; repeat the option for combinations of several columns",
    )  # fmt: skip
    parser.add_argument(
        "--merge", action="append", default=[], type=_renaming, metavar="OLD=NEW",
        help="a value of the sensitive columns to be counted as another, such as f=F; may be repeated",
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
        metavar="COLUMNS",
        help="leave columns out, such as identifiers: names separated by commas; may be repeated",
    )
    _add_feature_options(parser)
    add_reading_options(parser)
    parser.add_argument(
        "--stream",
        action="store_true",
        help="read the file batch by batch, with bounded memory; by default only files with more than "
        f"{STREAM_NUMBERS:,} values (rows x columns)",
    )


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
        "--min-level", type=float, default=None, metavar="N",
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
        "--delimiter", type=lambda text: {"tab": "\t", "\\t": "\t"}.get(text, text), default=None, metavar="C",
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


def add_label_option(parser: argparse.ArgumentParser, purpose: str) -> None:
    """The label and its positive class."""
    parser.add_argument("--label", metavar="COLUMN", help=purpose)
    parser.add_argument(
        "--positive", metavar="VALUE",
        help="the positive class of the label; all others count as negative (default: of two classes, the larger "
        "number, or the later in alphabetical order)",
    )  # fmt: skip


def add_details_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--details", action="store_true", help="print all values as tables, for all methods and numbers of components"
    )


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
    add_details_option(parser)
    parser.add_argument(
        "--json", nargs="?", const="-", metavar="FILE",
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
        type=_whole_number(1),
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
        "--jobs",
        type=_whole_number(1),
        default=-1,
        metavar="N",
        help="number of parallel processes (default: all cores)",
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


def _renaming(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not equals or not new:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form OLD=NEW")
    return old, new


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


def option_names(arguments: argparse.Namespace) -> dict[str, str]:
    """The options by the parameters that an error message or a remark may advise to change."""
    return {name: f"--{name.replace('_', '-')}" for name in vars(arguments)}


def open_table(arguments: argparse.Namespace, missing: MissingTokens | None = None) -> Table:
    """The file that the arguments name; nothing but its columns is read."""
    tokens = MissingTokens.of(arguments.missing, usual=arguments.usual_missing) if missing is None else missing
    return read_table(arguments.data, delimiter=arguments.delimiter, missing=tokens)


def load(arguments: argparse.Namespace, *, stream: bool | None = None, sample_rows: int = 0) -> Prepared:
    """Read the file and split it into features, groups and label; a large one is streamed and sampled."""
    names = ("sensitive", "label", "drop", "standardise", "max_levels", "min_level", "positive", "merge_small",
             "weights", "impute", "seed")  # fmt: skip
    with Progress(quiet=arguments.quiet or arguments.json in (True, "-")) as progress:
        return prepare(
            open_table(arguments), **{name: getattr(arguments, name) for name in names}, merge=dict(arguments.merge),
            clusters=getattr(arguments, "clusters", None), continuous=getattr(arguments, "continuous", ()),
            stream=arguments.stream or stream, sample_rows=sample_rows,
            progress=progress,
        )  # fmt: skip
