"""``fairpca audit``: from a file to a table and a report."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import sys
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import scipy
import sklearn

import fairpca
from fairpca._files import is_standard_output, write_text
from fairpca._progress import Progress
from fairpca.audit.command._options import (
    add_comparison_options,
    add_data_options,
    load,
    option_names,
    wanted_dimensions,
)
from fairpca.audit.command._output import check_output, output_name
from fairpca.audit.command._tables import clean, details_text, screen_text
from fairpca.audit.command._thresholds import EXIT_CODE, KINDS, check_conditions, condition, conditions_met
from fairpca.audit.prepare import Prepared
from fairpca.audit.report import Audit, audit

__all__ = ["REPORT_ENDINGS", "add_audit", "check_json", "label_options", "provenance", "test_options", "write_json"]

REPORT_ENDINGS = (".html", ".htm")
#: Remarks about columns and rows that fit on one screen with the rest.
_REMARKS = 4
_WIDTH = 112
_WHOLE_WORDS: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}

_DESCRIPTION = """\
Does PCA treat the groups in your data differently, and what would it cost to fix that?

Reads the file, leaves the sensitive and the label column out of the features, fits ordinary PCA and the methods that
balance quality between groups (FairPCA, RobustFairPCA) or remove the group from the scores (ParityPCA, MMDFairPCA),
prints the values of each, and writes a report that opens in a browser without a network connection.

  error       mean squared distance between a group's rows and their reconstruction
  loss        how much of that error the group has only because it shares the components with the others
  expected by chance
              the average loss of random groups of the same sizes: components fitted to one group overfit its rows
  corrected loss
              the loss with both sides evaluated on new rows, with an interval
  adjusted p  how often a random division into groups of these sizes shows a loss this large somewhere
  gap         difference between the groups with the largest and the smallest value
  variance    share of the variance that the components keep
  MMD²        distance between the groups' distributions of scores
  adversary   how well a linear classifier separates the groups by their scores (0: not at all, 1: perfectly)
  Δ           difference between groups in a classifier's decisions: demographic parity, equal opportunity,
              equalized odds
"""
_EXAMPLES = """\
examples:
  fairpca audit credit.csv --sensitive sex --label default
  fairpca audit people.parquet --sensitive sex --sensitive region --drop id --components 2,5,10 --out people.html
  fairpca audit credit.csv --sensitive sex --json values.json
  fairpca audit credit.csv --sensitive sex --fail-if losses --fail-if readable:ParityPCA

exit codes: 0 success, 2 an error in the file or the arguments (with one clear message), 3 a --fail-if claim is
made (after all outputs are written), 130 interrupted
"""


def add_audit(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "audit", help="does PCA treat the groups in a file differently? values and a report",
        description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add_data_options(parser)
    add_comparison_options(parser)
    parser.add_argument(
        "--out",
        default="fairpca-report.html",
        type=output_name,
        metavar="FILE",
        help="where the report is written: a name that ends in .html, or - for the standard output (default: "
        "fairpca-report.html)",
    )
    parser.add_argument(
        "--no-points",
        dest="points",
        action="store_false",
        help="do not draw individual rows in the report; for reports shared externally",
    )
    parser.add_argument(
        "--fail-if", action="append", default=[], type=condition, metavar="KIND[:METHOD]",
        help="exit with code 3 if such a claim is made, perhaps about one method only, such as losses or readable:"
        "ParityPCA; may be repeated. Kinds: " + ", ".join(KINDS),
    )  # fmt: skip
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    check_output(arguments.out, arguments.data, endings=REPORT_ENDINGS)
    check_json(arguments)
    check_conditions(arguments)
    data = load(arguments, sample_rows=arguments.sample_rows)
    if arguments.json != "-":
        print_remarks(data, arguments)
    found = _audit(arguments, data)
    path = found.save(arguments.out)
    failed = conditions_met(found.comparison, arguments.fail_if)
    if arguments.json:
        described = {"data": describe(data, arguments), **found.comparison.as_dict(), "report": str(path)}
        write_json(described | {"fail_if": [one.text for one in arguments.fail_if], "failed": failed}, arguments.json)
    if arguments.json != "-":
        print((details_text if arguments.details else screen_text)(found.comparison))
        print(f"\nReport: {path.resolve()} (--details prints its tables here)")
    for line in failed:
        print(f"fairpca: {line}", file=sys.stderr)
    return EXIT_CODE if failed else 0


def _audit(arguments: argparse.Namespace, data: Prepared) -> Audit:
    with Progress(quiet=arguments.quiet or arguments.json == "-") as progress:
        return audit(
            data.X, sensitive_features=data.groups, y=data.class_codes,
            n_components=wanted_dimensions(arguments.components, data.X.shape[1]),
            methods=arguments.methods,
            feature_names=data.feature_names,
            title=f"{data.table.name}: PCA by {' and '.join(arguments.sensitive)}",
            points=arguments.points,
            random_state=arguments.seed,
            **test_options(arguments, data),
            remarks=data.preparation.remarks(option_names(arguments)),
            provenance=provenance(arguments.command_line, arguments.seed, data),
            n_jobs=arguments.jobs,
            progress=progress,
            **label_options(arguments, data),
        )  # fmt: skip


def label_options(arguments: argparse.Namespace, data: Prepared) -> dict[str, Any]:
    """The name of the label and of its classes, in the order of ``data.class_codes``."""
    if data.label is None:
        return {}
    return {"label_name": arguments.label, "class_names": list(data.preparation.classes)}


def test_options(arguments: argparse.Namespace, data: Prepared) -> dict[str, Any]:
    """What is compared: persons, weights, the moments of all rows, and the number of random divisions."""
    return {
        "moments": data.moments if data.weights is None else None,  # with weights, all values are the sample's
        "clusters": data.clusters,
        "repeated_rows": arguments.repeated_rows,
        "n_permutations": arguments.permutations,
        "sample_weight": data.weights,
    }


def check_json(arguments: argparse.Namespace) -> None:
    """Fail early if the values cannot be written."""
    if arguments.json == "-" and is_standard_output(getattr(arguments, "out", os.devnull)):
        raise ValueError("--json prints the values, but --out sends the report to the same place; give a file to one.")
    if arguments.json not in (None, "-"):
        check_output(arguments.json, arguments.data, option="--json", endings=(".json",))


def write_json(values: dict[str, Any], target: str) -> None:
    """Print the values (``-``), or write them to a file atomically."""
    text = json.dumps(values, indent=2, allow_nan=False)
    if target == "-":
        print(text)
    else:
        print(f"Values: {write_text(target, text + chr(10)).resolve()}")


def print_remarks(data: Prepared, arguments: argparse.Namespace) -> None:
    """Print the group sizes and how the columns were treated; on one screen, only the beginning of that."""
    sizes = ", ".join(f"{clean(label)} ({count:,})" for label, count in data.preparation.groups.items())
    print(clean(f"{data.table.name}: {data.n_rows:,} rows; groups {sizes}", _WIDTH))
    remarks = [clean(remark, 2000) for remark in data.preparation.remarks(option_names(arguments))]
    whole = getattr(arguments, "details", True)
    shown = remarks if whole else remarks[:_REMARKS]
    for remark in shown:
        text = remark if whole else textwrap.shorten(remark, _WIDTH - 2, placeholder=" …", **_WHOLE_WORDS)
        print(textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="    ", **_WHOLE_WORDS))
    if len(remarks) > len(shown):
        print(f"  {len(remarks) - len(shown)} more remarks on columns and rows: --details prints all, whole")
    print(flush=True)


def describe(data: Prepared, arguments: argparse.Namespace) -> dict[str, Any]:
    """The data set as an entry of the JSON output."""
    return {
        "file": data.table.name,
        "sha256": data.table.sha256(),
        "rows": data.n_rows,
        "columns": len(data.table.types),
        "features": data.feature_names,
        "remarks": data.preparation.remarks(option_names(arguments)),
        "preparation": data.preparation.as_dict(),
    }


def provenance(command_line: Sequence[str], seed: int, data: Prepared | None) -> dict[str, str]:
    """What a reader needs to repeat the audit."""
    lines = {"date": today(), "command": shlex.join(["fairpca", *command_line]), "seed": str(seed)}
    if data is not None:
        lines["file"] = f"{data.table.name}: {data.n_rows:,} rows x {len(data.table.types)} columns"
        lines["SHA-256 of the file"] = data.table.sha256()
    lines["versions"] = (
        f"fairpca {fairpca.__version__}, numpy {np.__version__}, scipy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, Python {platform.python_version()}"
    )
    lines["system"] = f"{platform.system()} {platform.machine()}, {sys.byteorder}-endian"
    return lines


def today() -> str:
    """The date in UTC; that of SOURCE_DATE_EPOCH if set, so that a page can be built again byte for byte."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(given), tz=UTC) if given.isdecimal() else datetime.now(tz=UTC)
    return moment.strftime("%Y-%m-%d %H:%M UTC")
