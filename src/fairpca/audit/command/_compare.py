"""``fairpca compare``: the values of an audit, without a report."""

from __future__ import annotations

import argparse
from typing import Any

from fairpca._progress import Progress
from fairpca.audit.command._audit import (
    check_json,
    describe,
    label_options,
    print_remarks,
    test_options,
    write_json,
)
from fairpca.audit.command._options import add_comparison_options, add_data_options, load, wanted_dimensions
from fairpca.audit.command._tables import details_text, screen_text
from fairpca.model_selection import compare

__all__ = ["add_compare"]


def add_compare(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "compare", help="the values of an audit, without a report",
        description="Fits the methods and prints the same values as `fairpca audit`, but writes no report. "
        "In Python: fairpca.model_selection.compare.",
        epilog="example: fairpca compare credit.csv --sensitive sex --components 5 --methods FairPCA,ParityPCA",
    )  # fmt: skip
    add_data_options(parser)
    add_comparison_options(parser)
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    check_json(arguments)
    data = load(arguments, sample_rows=arguments.sample_rows)
    if arguments.json != "-":
        print_remarks(data, arguments)
    with Progress(quiet=arguments.quiet or arguments.json == "-") as progress:
        found = compare(
            data.X, sensitive_features=data.groups, y=data.class_codes,
            n_components=wanted_dimensions(arguments.components, data.X.shape[1]),
            methods=arguments.methods,
            **test_options(arguments, data),
            random_state=arguments.seed,
            n_jobs=arguments.jobs,
            progress=progress,
            feature_names=data.feature_names,
            **label_options(arguments, data),
        )  # fmt: skip
    if arguments.json:
        write_json({"data": describe(data, arguments), **found.as_dict()}, arguments.json)
    if arguments.json != "-":
        print((details_text if arguments.details else screen_text)(found))
    return 0
