"""``fairpca audit`` and ``fairpca compare``: from a file to one screen, a report and every value."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from fairpca._files import is_standard_output, write_text
from fairpca._progress import Progress
from fairpca.audit.command._fail_if import EXIT_CODE, check_conditions, conditions_met
from fairpca.audit.command._info import versions
from fairpca.audit.command._options import load, option_names
from fairpca.audit.command._output import Command, check_output
from fairpca.audit.command._tables import WIDTH, clean, details_text, screen_text
from fairpca.audit.prepare import Prepared
from fairpca.audit.report import audit
from fairpca.model_selection import Comparison, compare

__all__ = ["AUDIT", "COMPARE", "print_remarks", "provenance", "show"]

REPORT_ENDINGS = (".html", ".htm")
#: Numbers of components of a comparison, unless they are named: up to this one.
_DEFAULT_MAX = 10
#: Remarks about columns and rows that fit on one screen with the rest.
_REMARKS = 3

_DESCRIPTION = """\
Does PCA treat the groups in your data differently, and what would it cost to fix that?

Reads the file, leaves the sensitive and the label column out of the features, fits ordinary PCA and the methods that
balance quality between groups (FairPCA, RobustFairPCA) or remove the group from the scores (ParityPCA, MMDFairPCA),
prints what that comes to, and writes a report that opens in a browser without a network connection.

  error       mean squared distance between a group's rows and their reconstruction
  loss        the part of it that components of the group's own would save
  expected by chance
              the average loss of random groups of the same sizes: components fitted to one group overfit its rows
  loss on new rows
              the loss with both sides evaluated on new rows (corrected loss), with an interval
  adjusted p  how often a random division into groups of these sizes shows a loss this large somewhere
  gap         difference between the groups with the largest and the smallest value
  variance    share of the variance that the components keep
  AUC         how well gradient boosting predicts the group from the scores of new rows (0.5: not at all)
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


def _run(arguments: argparse.Namespace) -> int:
    if arguments.out:
        check_output(arguments.out, arguments.data, endings=REPORT_ENDINGS)
    if arguments.json == "-" and is_standard_output(arguments.out or os.devnull):
        raise ValueError("--json prints the values, but --out sends the report to the same place; give a file to one.")
    if arguments.json not in (None, "-"):
        check_output(arguments.json, arguments.data, option="--json", endings=(".json",))
    check_conditions(arguments)
    data, talks = load(arguments), arguments.json != "-"
    if talks:
        print_remarks(data, arguments)
    found, path = _compared(arguments, data)
    values: dict[str, Any] = {"data": _described(data, arguments), **found.as_dict()}
    failed = conditions_met(found, arguments.fail_if)
    if path is not None:
        values |= {"report": path, "fail_if": [*map(str, arguments.fail_if)], "failed": failed}
    if arguments.json:
        text = json.dumps(values, indent=2, allow_nan=False)
        print(f"Values: {write_text(arguments.json, text + chr(10)).resolve()}" if talks else text)
    if talks:
        show(found, path, arguments)
    for line in failed:
        print(f"fairpca: {line}", file=sys.stderr)
    return EXIT_CODE if failed else 0


def _compared(arguments: argparse.Namespace, data: Prepared) -> tuple[Comparison, str | None]:
    """The comparison, and where its report was written, if one is wanted."""
    options: dict[str, Any] = {
        "sensitive_features": data.groups,
        "y": data.class_codes,
        "n_components": arguments.components or range(1, min(_DEFAULT_MAX, data.X.shape[1]) + 1),
        "methods": arguments.methods,
        "feature_names": data.feature_names,
        "moments": data.moments if data.weights is None else None,  # with weights, all values are the sample's
        "clusters": data.clusters,
        "repeated_rows": arguments.repeated_rows,
        "n_permutations": arguments.permutations,
        "sample_weight": data.weights,
        "random_state": arguments.seed,
        "n_jobs": arguments.jobs,
    }
    if data.label is not None:
        options |= {"label_name": arguments.label, "class_names": list(data.preparation.classes)}
    with Progress(quiet=arguments.quiet or arguments.json == "-") as progress:
        if not arguments.out:
            return compare(data.X, progress=progress, **options), None
        found = audit(
            data.X,
            title=f"{data.table.name}: PCA by {' and '.join(arguments.sensitive)}",
            points=arguments.points,
            remarks=data.preparation.remarks(option_names(arguments)),
            provenance=provenance(arguments.command_line, arguments.seed, data),
            progress=progress,
            **options,
        )
    return found.comparison, str(found.save(arguments.out))


def show(found: Comparison, report: str | None, arguments: argparse.Namespace) -> None:
    """Print what the comparison comes to, its tables if they are wanted, and where the report is."""
    print(screen_text(found))
    if arguments.details:
        print(f"\n{details_text(found)}")
    where = "" if report is None else f"\nReport: {os.path.abspath(report)}"
    if where or not arguments.details:
        print(where, "" if arguments.details else "(all values: --details)")


def print_remarks(data: Prepared, arguments: argparse.Namespace) -> None:
    """Print the group sizes and how the columns were treated; on one screen, only what is special about them."""
    sizes = ", ".join(f"{clean(label)} ({count:,})" for label, count in data.preparation.groups.items())
    print(clean(f"{data.table.name}: {data.n_rows:,} rows; groups {sizes}", WIDTH))
    remarks = data.preparation.remarks(option_names(arguments))
    shown = remarks
    if not getattr(arguments, "details", True):
        shown = [clean(text, WIDTH - 2) for text in remarks if text not in data.preparation.columns_used()][:_REMARKS]
    for text in shown:
        print(textwrap.fill(clean(text, 2000), WIDTH, initial_indent="  ", subsequent_indent="    "))
    if len(shown) < len(remarks):
        print(f"  {len(remarks) - len(shown)} more remarks on columns and rows (--details)")
    print(flush=True)


def _described(data: Prepared, arguments: argparse.Namespace) -> dict[str, Any]:
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


def provenance(command_line: Sequence[str], seed: int, data: Prepared | None = None) -> dict[str, str]:
    """What a reader needs to repeat the audit.

    The date is in UTC; that of SOURCE_DATE_EPOCH if set, so that a page can be built again byte for byte.
    """
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(given), tz=UTC) if given.isdecimal() else datetime.now(tz=UTC)
    date = moment.strftime("%Y-%m-%d %H:%M UTC")
    lines = {"date": date, "command": shlex.join(["fairpca", *command_line]), "seed": str(seed)}
    if data is not None:
        lines["file"] = f"{data.table.name}: {data.n_rows:,} rows x {len(data.table.types)} columns"
        lines["SHA-256 of the file"] = data.table.sha256()
    return lines | {"versions": ", ".join(f"{name} {one}" for name, one in versions().items() if one)}


AUDIT = Command(
    "audit",
    _run,
    "does PCA treat the groups in a file differently? one screen and a report",
    _DESCRIPTION,
    _EXAMPLES,
    {"out": "fairpca-report.html"},
)
COMPARE = Command(
    "compare",
    _run,
    "the values of an audit, without a report",
    "Fits the methods and prints the same as `fairpca audit`, but writes no report. "
    "In Python: fairpca.model_selection.compare.",
    "example: fairpca compare credit.csv --sensitive sex --components 5 --methods FairPCA,ParityPCA",
    {"out": "", "fail_if": []},
)
