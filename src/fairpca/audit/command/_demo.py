"""``fairpca demo``: the audit of the bundled census table."""

from __future__ import annotations

import argparse
import json
from typing import Any

from fairpca._progress import Progress
from fairpca.audit.command._audit import REPORT_ENDINGS, provenance, show
from fairpca.audit.command._output import Command, check_output
from fairpca.audit.report import audit
from fairpca.datasets import load_adult

__all__ = ["DEMO"]

_ABOUT = "32,561 people in US census data of 1994, 43 features, groups by sex"
_REMARKS = (
    "bundled with fairpca: 5 numeric columns, 6 columns one-hot encoded, all standardised",
    "not among the features: sex (the groups), income over 50,000 dollars (the label), education (the same as "
    "education-num), and the survey weights: each row counts once",
)


def _run(arguments: argparse.Namespace) -> int:
    if not arguments.json:
        check_output(arguments.out, endings=REPORT_ENDINGS)
    data: Any = load_adult()
    with Progress(quiet=arguments.json) as progress:
        found = audit(
            data.data,
            sensitive_features=data.sensitive_features,
            y=data.target,
            n_components=arguments.components,
            feature_names=data.feature_names,
            title="Adult census: PCA by sex",
            remarks=_REMARKS,
            provenance=provenance(arguments.command_line, 0),
            n_jobs=arguments.jobs,
            progress=progress,
            label_name="income",
            class_names=["up to 50K", "over 50K"],
        )
    if arguments.json:
        print(json.dumps(found.comparison.as_dict(), indent=2))
        return 0
    print(f"Adult: {_ABOUT}\n")
    show(found.comparison, str(found.save(arguments.out)), arguments)
    return 0


DEMO = Command(
    "demo",
    _run,
    "the audit of the bundled census table: start here",
    f"The audit of the bundled Adult table ({_ABOUT}): what PCA does to each group on new rows, what each method "
    "changes, and at what price; with a report that opens in a browser.",
    fixed={"out": "fairpca-report.html", "components": [1, 2, 3, 5, 10]},
)
