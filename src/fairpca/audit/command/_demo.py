"""``fairpca demo``: the audit of the bundled data."""

from __future__ import annotations

import argparse
import json
from typing import Any

from fairpca._display import number
from fairpca._labels import label_text
from fairpca._progress import Progress
from fairpca.audit import audit
from fairpca.audit.command._audit import REPORT_ENDINGS, provenance
from fairpca.audit.command._options import add_jobs_option, dimensions
from fairpca.audit.command._output import check_output, output_name
from fairpca.audit.command._tables import comparison_text, format_table
from fairpca.datasets import load_german_credit
from fairpca.model_selection import Comparison, MethodResult

__all__ = ["add_demo", "demo_text"]

#: Numbers of components shown in the tables, if they were requested.
_SHOWN = (2, 5, 10)


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
            data.data, sensitive_features=data.sensitive_features, y=data.target,
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
    print(demo_text(found.comparison))
    print(f"\nReport with all methods: {found.save(arguments.out).resolve()}")
    return 0


def demo_text(found: Comparison) -> str:
    """The tables of an audit, and the optimality certificate of FairPCA."""
    balanced = [result for result in found.results if result.method == "FairPCA"]
    rows = [
        [str(result.n_components), *(number(one.value) for one in (*_losses(found, result), *_losses_of(result))), gap]
        for result, gap in ((result, f"{max(result.certificate or 0.0, 0.0):.0e}") for result in balanced)
    ]
    labels = [label_text(label) for label in found.groups]
    heads = ["d", *(f"PCA {label}" for label in labels), *(f"FairPCA {label}" for label in labels), "duality gap"]
    return "\n".join(
        [
            "German credit: 1000 applicants, 57 standardised features, groups by sex",
            "",
            comparison_text(found, shown=[d for d in found.dimensions if d in _SHOWN] or None),
            "",
            "Losses in the sample, and the proof: FairPCA makes the larger one as small as any projection can",
            *format_table(heads, rows),
            "",
            "error: mean squared distance between a group's rows and their reconstruction.",
            "loss:  how much of that error the group has only because it shares the components with the other one.",
            "For these rows no projection can lower the larger loss by more than the duality gap, which is relative to",
            "the total variance. What holds on new rows is in the tables above.",
        ]
    )


def _losses(found: Comparison, result: MethodResult) -> list[Any]:
    """Losses of ordinary PCA with the same number of components."""
    return _losses_of(found["PCA", result.n_components])


def _losses_of(result: MethodResult) -> list[Any]:
    return list(result.loss.by_group.values())
