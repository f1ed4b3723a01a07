"""``python -m reproductions PAPER --data FOLDER``, from a checkout: a paper's published values next to ours."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from fairpca._progress import Progress
from fairpca.audit.command import guarded
from reproductions import PAPERS, reproduce

__all__ = ["main"]

_VARIABLE = "FAIRPCA_DATA"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0, 1 if a published value is not reproduced, or 2 after one clear error message."""
    arguments = _parser().parse_args(argv)
    return guarded("reproductions", lambda: _run(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reproductions",
        description="Repeats the experiments of a paper on its authors' public data, and reports for each published "
        "value: ours, theirs, the difference and a verdict. Writes a report (Markdown), tables (CSV) and figures.",
        epilog="papers: " + "; ".join(f"{name} ({title})" for name, title in PAPERS.items()),
    )
    parser.add_argument("paper", metavar="PAPER", choices=list(PAPERS), help=", ".join(PAPERS))
    parser.add_argument(
        "--data", metavar="DIR",
        help=f"the authors' data folder, or one that holds it as PAPER (default: the environment variable {_VARIABLE})",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="a smaller run, within a minute, without verdicts")
    parser.add_argument(
        "--errata", action="store_true",
        help="also repeat the known errata of the authors' scripts, to trace their values",
    )  # fmt: skip
    parser.add_argument("--out", metavar="DIR", help="folder for the results (default: fairpca-PAPER)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    return parser


def _run(arguments: argparse.Namespace) -> int:
    out = Path(arguments.out or f"fairpca-{arguments.paper}")
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"--out {out} is a file; give the name of a folder.")
    data = arguments.data or os.environ.get(_VARIABLE)
    with Progress(quiet=arguments.quiet) as progress:
        outcome = reproduce(arguments.paper, data, quick=arguments.quick, errata=arguments.errata, progress=progress)
        report = outcome.write(out)
    print(outcome)
    print(f"\nReport: {report}")
    # A quick run does not repeat the experiment, so it cannot fail to reproduce it.
    return 0 if outcome.quick or outcome.succeeded else 1


if __name__ == "__main__":
    sys.exit(main())
