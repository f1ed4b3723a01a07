"""``fairpca demo``: the audit of the bundled census table."""

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
from fairpca.datasets import load_adult

__all__ = ["add_demo"]

_TITLE = "Adult: 32,561 people of the US census of 1994, 43 standardised features, groups by sex"


def add_demo(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "demo",
        help="the audit of the bundled census table: start here",
        description="The audit of the bundled Adult table (32,561 people of the US census of 1994, groups by sex): "
        "what PCA does to each group on new rows, what each method changes, and at what price; with a report that "
        "opens in a browser.",
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
    data: Any = load_adult()
    with Progress(quiet=arguments.json) as progress:
        found = audit(
            data.data, sensitive_features=data.sensitive_features, y=data.target,
            n_components=arguments.components,
            feature_names=data.feature_names,
            title="Adult census: PCA by sex",
            remarks=["bundled with fairpca: 5 numeric columns, 6 columns one-hot encoded, all standardised",
                     "not among the features: sex (the groups), income over 50,000 dollars (the label), education "
                     "(the same as education-num), and the survey weights: each row counts once"],
            provenance=provenance(arguments.command_line, 0, None),
            n_jobs=arguments.jobs,
            progress=progress,
            label_name="income",
            class_names=["up to 50K", "over 50K"],
        )  # fmt: skip
    if arguments.json:
        print(json.dumps(found.comparison.as_dict(), indent=2))
        return 0
    print(f"{_TITLE}\n")
    print((details_text if arguments.details else screen_text)(found.comparison))
    print(f"\nReport: {found.save(arguments.out).resolve()} (--details prints its tables here)")
    return 0
