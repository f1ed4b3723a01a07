"""``fairpca reproduce``: a paper's figures beside ours."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from fairpca._progress import Progress
from fairpca.reproductions import PAPERS, reproduce

__all__ = ["add_reproduce"]

_VARIABLE = "FAIRPCA_DATA"


def add_reproduce(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "reproduce", help="a paper's published figures beside ours",
        description="Repeats the experiments of a paper on its authors' public data, and says for each published "
        "figure: ours, theirs, the difference and a verdict. Writes a report (Markdown), tables (CSV) and figures.",
        epilog="papers: " + "; ".join(f"{name} ({title})" for name, title in PAPERS.items()),
    )  # fmt: skip
    parser.add_argument("paper", metavar="PAPER", choices=list(PAPERS), help=", ".join(PAPERS))
    parser.add_argument(
        "--data", metavar="DIR",
        help=f"the authors' data folder, or one that holds it as PAPER (default: the variable {_VARIABLE})",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="a smaller run, within a minute, that judges nothing")
    parser.add_argument(
        "--slips",
        action="store_true",
        help="also repeat the known slips of the authors' scripts, to trace their figures",
    )
    parser.add_argument("--out", metavar="DIR", help="folder for the results (default: fairpca-PAPER)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    out = Path(arguments.out or f"fairpca-{arguments.paper}")
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"--out {out} is a file; give the name of a folder.")
    data = arguments.data or os.environ.get(_VARIABLE)
    with Progress(quiet=arguments.quiet) as progress:
        outcome = reproduce(arguments.paper, data, quick=arguments.quick, slips=arguments.slips, progress=progress)
        report = outcome.write(out)
    print(outcome)
    print(f"\nReport: {report}")
    # A quick run does not repeat the experiment, so it cannot fail to reproduce it.
    return 0 if outcome.quick or outcome.succeeded else 1
