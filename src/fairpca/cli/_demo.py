"""``fairpca demo``: the audit of the bundled data."""

from __future__ import annotations

import argparse
import json
from typing import Any

from sklearn.decomposition import PCA

from fairpca import FairPCA
from fairpca.cli._audit import provenance
from fairpca.cli._options import add_jobs_option, dimensions
from fairpca.cli._output import check_output
from fairpca.cli._progress import Progress
from fairpca.datasets import load_german_credit
from fairpca.metrics import GroupValues, reconstruction_error, reconstruction_loss
from fairpca.report import audit

__all__ = ["add_demo", "demo_rows", "demo_text"]


def add_demo(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "demo",
        help="the audit of the bundled German credit data: start here",
        description="Error and loss of each group under ordinary PCA and under FairPCA, for several numbers of "
        "components, on the bundled German credit data (1000 applicants, groups by sex); then the audit with all "
        "methods, as a report that opens in a browser.",
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
        metavar="FILE",
        help="where the report is written (default: fairpca-report.html)",
    )
    add_jobs_option(parser)
    parser.add_argument(
        "--json", action="store_true", help="print the figures as JSON, for scripts, and write no report"
    )
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.json:
        print(json.dumps(demo_rows(arguments.components), indent=2))
        return 0
    check_output(arguments.out)
    rows = demo_rows(arguments.components)
    print(demo_text(rows), flush=True)
    data: Any = load_german_credit()
    with Progress() as progress:
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
        )  # fmt: skip
    print(f"\nReport with all methods: {found.save(arguments.out).resolve()}")
    return 0


def demo_rows(dimensions: list[int]) -> list[dict[str, Any]]:
    """One row a number of components and method: error and loss of each group, and the certificate."""
    X, sex = load_german_credit(return_X_s=True)
    rows = []
    for d in dimensions:
        balanced = FairPCA(d).fit(X, sensitive_features=sex)
        ordinary = PCA(d, svd_solver="full").fit(X)
        for name, projector in (("PCA", ordinary), ("FairPCA", balanced)):
            errors = reconstruction_error(X, projector, sensitive_features=sex)
            losses = reconstruction_loss(X, projector, sensitive_features=sex)
            assert isinstance(errors, GroupValues)
            assert isinstance(losses, GroupValues)
            rows.append(
                {
                    "components": d,
                    "method": name,
                    "error": dict(errors),
                    "loss": dict(losses),
                    "loss_gap": losses.gap,
                    "explained_variance": float(projector.explained_variance_ratio_.sum()),
                    "relative_duality_gap": balanced.duality_gap_ / X.shape[1] if projector is balanced else None,
                }
            )
    return rows


def demo_text(rows: list[dict[str, Any]]) -> str:
    """The rows as a table, with the two sentences a reader needs."""
    groups = list(rows[0]["error"])
    width = 9 * len(groups) - 1
    lines = [
        "German credit: 1000 applicants, 57 standardised features, groups by sex",
        "",
        f"{'':>3}  {'':<7}  {'error of':>{width}}   {'loss of':>{width}}   {'gap of':>8}  {'explained':>9}",
        f"{'d':>3}  {'method':<7}  {_heads(groups)}   {_heads(groups)}   {'losses':>8}  {'variance':>9}",
    ]
    for row in rows:
        first = row["method"] == "PCA"
        lines.append(
            f"{row['components'] if first else '':>3}  {row['method']:<7}  {_cells(row['error'])}   "
            f"{_cells(row['loss'])}   {row['loss_gap']:>8.4f}  {row['explained_variance']:>9.1%}"
        )
    proof = max(row["relative_duality_gap"] for row in rows if row["method"] == "FairPCA")
    lines += [
        "",
        "error: mean squared distance between a group's rows and their reconstruction.",
        "loss:  how much of that error the group has only because it shares the components with the other one.",
        "FairPCA makes the larger loss as small as possible. Certificate: no projection has a larger loss smaller",
        f"than these by more than {proof:.0e} of the total variance (the largest duality gap above).",
    ]
    return "\n".join(lines)


def _heads(groups: list[str]) -> str:
    return " ".join(f"{group:>8.8}" for group in groups)


def _cells(values: dict[str, float]) -> str:
    return " ".join(f"{value:>8.4f}" for value in values.values())
