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
from fairpca._labels import label_text
from fairpca._progress import Progress
from fairpca.cli._options import add_comparison_options, add_data_options, load, wanted_dimensions
from fairpca.cli._output import check_output, output_name
from fairpca.cli._tables import clean, comparison_text
from fairpca.cli._thresholds import EXIT_CODE, NAMES, check_thresholds, failed_thresholds, threshold
from fairpca.moments import GroupMoments
from fairpca.report import Audit, audit
from fairpca.report._pdf import find_browser
from fairpca.tables import StreamedTable, TableData

__all__ = ["REPORT_ENDINGS", "add_audit", "check_json", "label_options", "provenance", "test_options", "write_json"]

REPORT_ENDINGS = (".html", ".htm")
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
  fairpca audit credit.csv --sensitive sex --fail-if "loss_gap_p < 0.01" --fail-if "FairPCA.auc@5 > 0.7"

exit codes: 0 success, 2 an error in the file or the arguments (with one clear message), 3 a --fail-if condition is
met (after all outputs are written), 130 interrupted
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
        "--pdf", metavar="FILE", type=_pdf_name,
        help="also print the report to FILE, which must end in .pdf; needs Chromium, Chrome or Edge",
    )  # fmt: skip
    parser.add_argument(
        "--fail-if", action="append", default=[], type=threshold, metavar="CONDITION",
        help="exit with code 3 if the condition is met for any number of components, such as 'loss_gap_p < 0.01' or "
        "'FairPCA.corrected_loss_gap@5 > 1'; may be repeated. Names: " + ", ".join(NAMES),
    )  # fmt: skip
    parser.set_defaults(run=_run)


def _pdf_name(text: str) -> str:
    if not text.lower().endswith(".pdf"):
        raise argparse.ArgumentTypeError(f"{text!r} does not end in .pdf")
    return text


def _run(arguments: argparse.Namespace) -> int:
    check_output(arguments.out, arguments.data, endings=REPORT_ENDINGS)
    check_json(arguments)
    check_thresholds(arguments, arguments.components)
    if arguments.pdf is not None:
        check_output(arguments.pdf, arguments.data, option="--pdf")
        find_browser()
    data = load(arguments)
    if arguments.json != "-":
        print_remarks(data)
    found = _audit(arguments, data)
    path = found.save(arguments.out)
    failed = failed_thresholds(found.comparison, arguments.fail_if)
    if arguments.json:
        described = {"data": describe(data), **found.figures, "report": str(path)}
        write_json(described | {"fail_if": [one.text for one in arguments.fail_if], "failed": failed}, arguments.json)
    if arguments.json != "-":
        print(comparison_text(found.comparison, full=arguments.full_table))
        print(f"\nReport: {path.resolve()}")
    if arguments.pdf is not None:
        printed = found.save_pdf(arguments.pdf)
        print(f"PDF: {printed.resolve()}", file=sys.stderr if arguments.json == "-" else sys.stdout)
    for line in failed:
        print(f"fairpca: {line}", file=sys.stderr)
    return EXIT_CODE if failed else 0


def _audit(arguments: argparse.Namespace, data: TableData) -> Audit:
    with Progress(quiet=arguments.quiet or arguments.json == "-") as progress:
        return audit(
            data.X, data.groups, data.class_codes,
            n_components=wanted_dimensions(arguments.components, data.X.shape[1]),
            methods=arguments.methods,
            feature_names=data.feature_names,
            title=f"{data.table.name}: PCA by {' and '.join(arguments.sensitive)}",
            points=arguments.points,
            random_state=arguments.seed,
            **test_options(arguments, data),
            remarks=data.remarks,
            provenance=provenance(arguments.command_line, arguments.seed, data),
            n_jobs=arguments.jobs,
            progress=progress,
            moments=whole_moments(data),
            **label_options(arguments, data),
        )  # fmt: skip


def label_options(arguments: argparse.Namespace, data: TableData) -> dict[str, Any]:
    """The name of the label and of its classes, in the order of ``data.class_codes``."""
    if data.label is None:
        return {}
    preparation = getattr(data, "preparation", None)
    names = np.unique(data.label).tolist() if preparation is None else preparation.classes
    return {"label_name": arguments.label, "class_names": [label_text(name) for name in names]}


def test_options(arguments: argparse.Namespace, data: TableData) -> dict[str, Any]:
    """Options of the permutation test: the clusters of the rows, and the number of random divisions."""
    return {
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
        check_output(arguments.json, arguments.data, option="--json")


def write_json(values: dict[str, Any], target: str) -> None:
    """Print the values (``-``), or write them to a file atomically."""
    text = json.dumps(values, indent=2, allow_nan=False)
    if target == "-":
        print(text)
    else:
        print(f"Values: {write_text(target, text + chr(10)).resolve()}")


def print_remarks(data: TableData) -> None:
    """Print the group sizes and how the columns were treated."""
    whole = whole_moments(data)
    found, counts = np.unique(data.groups, return_counts=True) if whole is None else (whole.labels, whole.counts)
    sizes = ", ".join(f"{clean(label)} ({count:,.0f})" for label, count in zip(found, counts, strict=True))
    print(f"{data.table.name}: {sum(counts):,.0f} rows; groups {sizes}")
    for remark in data.remarks:
        print(textwrap.fill(clean(remark, 2000), 112, initial_indent="  ", subsequent_indent="    ", **_WHOLE_WORDS))
    print(flush=True)


def whole_moments(data: TableData) -> GroupMoments | None:
    """Moments of all rows if ``data`` is a sample of a streamed file, else None."""
    return data.moments if isinstance(data, StreamedTable) else None


def describe(data: TableData) -> dict[str, Any]:
    """The data set as an entry of the JSON output."""
    return {
        "file": data.table.name,
        "sha256": data.table.sha256,
        "rows": _file_rows(data),
        "columns": len(data.table.columns),
        "features": data.feature_names,
        "remarks": data.remarks,
        "preparation": data.preparation.as_dict(),
    }


def _file_rows(data: TableData) -> int:
    """Rows of the file; of a streamed one, those that were used."""
    whole = whole_moments(data)
    return data.table.n_rows if whole is None else round(whole.total_count)


def provenance(command_line: Sequence[str], seed: int, data: TableData | None) -> dict[str, str]:
    """What a reader needs to repeat the audit."""
    lines = {"date": today(), "command": shlex.join(["fairpca", *command_line]), "seed": str(seed)}
    if data is not None:
        lines["file"] = f"{data.table.name}: {_file_rows(data):,} rows x {len(data.table.columns)} columns"
        lines["SHA-256 of the file"] = data.table.sha256
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
