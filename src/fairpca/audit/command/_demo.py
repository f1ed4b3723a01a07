"""``fairpca demo``: the audit of the bundled data."""

from __future__ import annotations

import argparse
import json
from typing import Any

from fairpca._progress import Progress
from fairpca.audit import audit
from fairpca.audit.command._audit import REPORT_ENDINGS, provenance
from fairpca.audit.command._options import add_details_option, add_jobs_option, dimensions
from fairpca.audit.command._output import check_output, output_name
from fairpca.audit.command._tables import details_text, screen_text
from fairpca.datasets import load_german_credit

__all__ = ["add_demo"]

_TITLE = "German credit: 1000 applicants, 57 standardised features, groups by sex"


def add_demo(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "demo",
        help="the audit of the bundled German credit data: start here",
        description="The audit of the bundled German credit data (1000 applicants, groups by sex): what PCA does to "
        "each group, what chance alone would show, what holds on new rows, and what each method changes; with a "
        "report that opens in a browser.",
    )
    parser.add_argument(
        "--components",
        type=dimensions,
        default=[1, 2, 3, 5, 10],
        metavar="LIST",
        help="numbers of components, such as 1,2,5 or 1-10 (default: 1,2,3,5,10)",
    )
    parser.add_argument(
        "--out",
        default="fairpca-report.html",
        type=output_name,
        metavar="FILE",
        help="where the report is written, or - for the standard output (default: fairpca-report.html)",
    )
    add_jobs_option(parser)
    add_details_option(parser)
    parser.add_argument(
        "--json", action="store_true", help="print the values as JSON, for scripts, and write no report"
    )
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    if not arguments.json:
        check_output(arguments.out, endings=REPORT_ENDINGS)
    data: Any = load_german_credit()
    with Progress(quiet=arguments.json) as progress:
        found = audit(
            data.data, data.sensitive_features, data.target,
            n_components=arguments.components,
            feature_names=data.feature_names,
            title="German credit: PCA by sex",
            remarks=["bundled with fairpca: 7 numeric columns, 12 columns one-hot encoded, all standardised",
                     "not among the features: marital status and sex (the groups), credit risk (the label)"],
            provenance=provenance(arguments.command_line, 0, None),
            n_jobs=arguments.jobs,
            progress=progress,
            label_name="credit risk",
            class_names=["bad", "good"],
        )  # fmt: skip
    if arguments.json:
        print(json.dumps(found.comparison.as_dict(), indent=2))
        return 0
    print(f"{_TITLE}\n")
    print((details_text if arguments.details else screen_text)(found.comparison))
    print(f"\nReport: {found.save(arguments.out).resolve()} (--details prints its tables here)")
    return 0
