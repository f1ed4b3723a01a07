"""``fairpca info``: versions, for bug reports."""

from __future__ import annotations

import argparse
import json
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import fairpca

__all__ = ["add_info"]

_REQUIRED = ("numpy", "scipy", "scikit-learn")
_OPTIONAL = ("pandas", "pyarrow", "cvxpy-base", "scs", "matplotlib", "dask")


def add_info(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("info", help="versions of fairpca and its dependencies")
    parser.add_argument("--json", action="store_true", help="print them as JSON")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    found: dict[str, str | None] = {
        "fairpca": fairpca.__version__,
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
    }
    found |= {package: _version(package) for package in (*_REQUIRED, *_OPTIONAL)}
    if arguments.json:
        print(json.dumps(found, indent=2))
    else:
        for name, text in found.items():
            print(f"{name:<13} {text or 'not installed (optional)'}")
    return 0


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
