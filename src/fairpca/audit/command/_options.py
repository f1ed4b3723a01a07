"""All options, as one table, and loading the data that they describe."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Callable
from typing import Any

from fairpca._progress import Progress
from fairpca.audit.checks import MAX_LEVELS
from fairpca.audit.command._fail_if import KINDS, condition, known_method
from fairpca.audit.command._output import output_name
from fairpca.audit.prepare import STREAM_NUMBERS, Prepared, prepare
from fairpca.audit.read import read_table
from fairpca.audit.table import Table
from fairpca.audit.texts import MISSING_TOKENS, MissingTokens
from fairpca.estimators import ESTIMATORS
from fairpca.model_selection import METHODS

__all__ = ["OPTIONS", "add_options", "load", "open_table", "option_names"]

_ESTIMATORS = [name for name in ESTIMATORS if name != "LeaceEraser"]  # which has no scores
_ON_REQUEST = ", ".join(method.name for method in METHODS.values() if method.on_request)
#: A larger number of components is taken for a typing error.
_MOST_COMPONENTS = 100_000


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _whole(least: int) -> Callable[[str], int]:
    """A parser of whole numbers."""

    def parse(text: str) -> int:
        number = _integer(text)
        if number is None or number < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return number

    return parse


def _renaming(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not equals or not new:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form OLD=NEW")
    return old, new


def _dimensions(text: str) -> list[int]:
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


def _methods(text: str) -> list[str]:
    """Names of methods; PCA always comes first, since everything is compared with it."""
    names = [known_method(part) for part in text.split(",") if part.strip()]
    return list(dict.fromkeys(["PCA", *names]))


def _number_or_share(text: str) -> int | float:
    """``5``, or ``0.9`` for a share of the variance; the estimator checks the range."""
    return float(text) if "." in text else int(text)


def _setting(text: str) -> tuple[str, Any]:
    """``name=value``; a value that is not a Python literal is text."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    value = {"true": "True", "false": "False", "none": "None"}.get(value.lower(), value)
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


_MANY = {"action": "append", "default": []}

#: Initials of the commands that take it; the option with what follows it, or the name of a file; what ``--help`` says
#: of it (a ``%`` and its default are filled in); and how it is parsed, if it is not a text or a flag.
OPTIONS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("t", "MODEL", "a model that `fairpca fit` saved", {}),
    ("acft", "DATA", """a CSV file with a header line (.csv, .csv.gz or .csv.zst), a .parquet or .feather file, or a
folder of them""", {}),
    ("acf", "--sensitive COLUMN", """the column that holds the groups, such as sex; repeat the option for combinations
of several columns""", {"action": "append", "required": True}),
    ("f", "--continuous COLUMN", """a sensitive column that holds measurements, such as age: the scores become
uncorrelated with it (ParityPCA, LeacePCA); may be repeated""", _MANY),
    ("acf", "--label COLUMN", """the target of later decisions, such as default: not a feature. A comparison adds
accuracy and the groups' differences in decisions; some methods that are fitted use it""", {}),
    ("acf", "--positive VALUE", """the positive class of the label; all others count as negative (default: of two
classes, the larger number, or the later in alphabetical order)""", {}),
    ("acf", "--drop COLUMNS", """leave columns out, such as identifiers: names separated by commas; may be
repeated""", _MANY),
    ("acf", "--weights COLUMN", "the weight of each row, such as a survey weight: it counts like repeated rows", {}),
    ("ac", "--clusters COLUMN", """the person (household, patient, ...) that each row belongs to, where persons have
several rows; it is not a feature""", {}),
    ("ac", "--repeated-rows", "rows repeat persons whose identities are not known: print no p-value", {}),
    ("acf", "--merge OLD=NEW", """a value of the sensitive columns to be counted as another, such as f=F; may be
repeated""", {**_MANY, "type": _renaming}),
    ("acf", "--merge-small N", "merge the groups with fewer than N rows into one, 'other'",
     {"type": _whole(0), "default": 0}),
    ("acft", "--delimiter C", """the character between the values of a CSV file, or 'tab' (default: comma, semicolon or
tab, whichever is most frequent in the header)""", {"type": lambda text: {"tab": "\t", "\\t": "\t"}.get(text, text)}),
    ("acft", "--missing TOKEN", f"""a text or number that means a missing value, in every column; may be repeated. CSV
files: besides empty cells and {', '.join(MISSING_TOKENS)}, in upper or lower case; in the columns of groups and label,
NA, N/A and None are values unless named here""", _MANY),
    ("acft", "--no-missing", "only empty cells and what --missing names are missing values",
     {"dest": "usual_missing", "action": "store_false"}),
    ("acf", "--max-levels N", "maximum number of distinct values of a text column (default: %(default)s)",
     {"type": int, "default": MAX_LEVELS}),
    ("acf", "--min-level N", """pool the levels of a text column with fewer rows as 'other (rare)': a number of rows, or
a share such as 0.02 (default: 0.01 or 30 rows, whichever is more; a tenth of fewer than 300 rows); 0 pools
nothing""", {"type": float}),
    ("acf", "--impute median", """replace missing numbers by the column's median, with one more feature that says where;
by default such rows are dropped""", {"choices": ["median"]}),
    ("acf", "--no-standardise --no-standardize", """keep the columns' own units; by default each is scaled to standard
deviation 1, since otherwise the columns with the largest values dominate""",
     {"dest": "standardise", "action": "store_false"}),
    ("acf", "--stream", f"""read the file batch by batch, with bounded memory; by default only files with more than
{STREAM_NUMBERS:,} values (rows x columns)""", {}),
    ("ac", "--sample-rows N", """for a streamed file: rows drawn at random for p-values, intervals and values on new
rows (default: %(default)s); losses in the sample and variance are always those of all rows""",
     {"type": _whole(1), "default": 50_000}),
    ("acd", "--components LIST", """numbers of components, such as 1,2,5 or 1-10 (default: 1-10, up to the number of
features; of the demo 1,2,3,5,10)""", {"type": _dimensions}),
    ("f", "--components N", """number of components (default: 2), or a share such as 0.9: the fewest with which every
group keeps it""", {"type": _number_or_share, "default": 2}),
    ("ac", "--methods LIST", f"""methods to compare, separated by commas (default: all but {_ON_REQUEST}):
{', '.join(METHODS)}""", {"type": _methods}),
    ("f", "--method NAME", f"the estimator (default: FairPCA), one of {', '.join(_ESTIMATORS)}",
     {"choices": _ESTIMATORS, "default": "FairPCA"}),
    ("f", "--set NAME=VALUE", "a parameter of the estimator, such as criterion=error; may be repeated",
     {**_MANY, "type": _setting}),
    ("ac", "--permutations N", "number of random divisions for the p-values, at least 19 (default: %(default)s)",
     {"type": _whole(19), "default": 999}),
    ("acf", "--seed N", "random seed (default: 0)", {"type": _whole(0), "default": 0}),
    ("t", "--keep COLUMN", "copy a column of the file, unchanged, next to the scores; may be repeated", _MANY),
    ("adft", "--out FILE", """where the result is written, or - for the standard output (default: %(default)s): a report
ends in .html, a model in .npz, scores in .csv, .parquet or .feather""", {"type": output_name}),
    ("ac", "--json FILE", """write every value to FILE, which must end in .json; without FILE, print them instead of the
tables""", {"nargs": "?", "const": "-"}),
    ("dfi", "--json", "print the values as JSON, for scripts, and nothing else", {}),
    ("a", "--no-points", "do not draw individual rows in the report; for reports shared externally",
     {"dest": "points", "action": "store_false"}),
    ("a", "--fail-if KIND[:METHOD]", f"""exit with code 3 if such a claim is made, perhaps about one method only, such
as losses or readable:ParityPCA; may be repeated. Kinds: {', '.join(KINDS)}""", {**_MANY, "type": condition}),
    ("acd", "--details", "print all values as tables, for all methods and numbers of components", {}),
    ("acft", "--quiet", "no progress bar", {}),
    ("acd", "--jobs N", "number of parallel processes (default: all cores)", {"type": _whole(1), "default": -1}),
]  # fmt: skip


def add_options(parser: argparse.ArgumentParser, command: str) -> None:
    """The options of a command."""
    for commands, name, text, how in OPTIONS:
        if command[0] in commands:
            flags = [word for word in name.split() if word.startswith("--")]
            value = name.split()[-1]
            kind = {"action": "store_true"} if value in flags else {"metavar": value}
            parser.add_argument(*(flags or [value.lower()]), help=" ".join(text.split()), **{**kind, **how})


def option_names(arguments: argparse.Namespace) -> dict[str, str]:
    """The options by the parameters that an error message or a remark may advise to change."""
    return {name: f"--{name.replace('_', '-')}" for name in vars(arguments)}


def open_table(arguments: argparse.Namespace, tokens: MissingTokens) -> Table:
    """The file that the arguments name; the missing tokens that they add count besides those given."""
    usual = tokens.usual if arguments.usual_missing else ()
    given = MissingTokens(usual, (*tokens.added, *arguments.missing))
    return read_table(arguments.data, delimiter=arguments.delimiter, missing=given)


def load(arguments: argparse.Namespace, *, stream: bool | None = None) -> Prepared:
    """Read the file and split it into features, groups and label; a large one is streamed and sampled."""
    names = ("sensitive", "label", "drop", "standardise", "max_levels", "min_level", "positive", "merge_small",
             "weights", "impute", "seed", "clusters", "continuous", "sample_rows")  # fmt: skip
    given = {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}
    with Progress(quiet=arguments.quiet or arguments.json in (True, "-")) as progress:
        return prepare(
            open_table(arguments, MissingTokens()), merge=dict(arguments.merge), stream=arguments.stream or stream,
            progress=progress, **given,
        )  # fmt: skip
