"""Command line: one small function a command."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

import fairpca
from fairpca.cli._demo import demo_rows, demo_text

__all__ = ["main"]

_OPTIONAL = ("pandas", "pyarrow", "cvxpy-base", "scs", "matplotlib", "dask")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 2 after one clear sentence about what was wrong with the call."""
    arguments = _parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except BrokenPipeError:  # the reader went away, for example `fairpca demo | head`
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print("fairpca: interrupted", file=sys.stderr)
        return 130
    except (ValueError, TypeError, OSError, ImportError) as problem:
        print(f"fairpca: {problem}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fairpca",
        description="Principal component analysis with balanced quality and parity between groups.",
    )
    parser.add_argument("--version", action="version", version=f"fairpca {fairpca.__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    demo = commands.add_parser(
        "demo",
        help="compare ordinary PCA and FairPCA on the bundled German credit data",
        description="Error and loss of each group under ordinary PCA and under FairPCA, for several numbers of "
        "components, on the bundled German credit data (1000 applicants, groups by sex).",
    )
    demo.add_argument(
        "--components",
        type=_dimensions,
        default=[1, 2, 3, 5, 10],
        metavar="LIST",
        help="numbers of components, such as 1,2,5 or 1-10 (default: 1,2,3,5,10)",
    )
    demo.add_argument("--json", action="store_true", help="print the figures as JSON, for scripts")
    demo.set_defaults(run=_run_demo)
    info = commands.add_parser("info", help="versions of fairpca and of what it uses")
    info.set_defaults(run=_run_info)
    return parser


def _dimensions(text: str) -> list[int]:
    """Parse ``1,2,5`` or ``1-10`` or a mixture."""
    numbers: list[int] = []
    try:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            numbers += range(int(first), int(last if dash else first) + 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list such as 1,2,5 or 1-10") from None
    if not numbers or min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} holds no number of components from 1 upwards")
    return sorted(set(numbers))


def _run_demo(arguments: argparse.Namespace) -> int:
    rows = demo_rows(arguments.components)
    print(json.dumps(rows, indent=2) if arguments.json else demo_text(rows))
    return 0


def _run_info(arguments: argparse.Namespace) -> int:
    print(f"fairpca       {fairpca.__version__}")
    print(f"python        {platform.python_version()} on {platform.system()} {platform.machine()}")
    for package in ("numpy", "scipy", "scikit-learn", *_OPTIONAL):
        try:
            print(f"{package:<13} {version(package)}")
        except PackageNotFoundError:
            print(f"{package:<13} not installed (optional)")
    return 0
