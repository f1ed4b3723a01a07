"""``fairpca info``: versions, for bug reports."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

import fairpca
from fairpca.audit.command._output import Command

__all__ = ["INFO", "versions"]

_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "cvxpy-base", "scs", "matplotlib", "dask")


def versions() -> dict[str, str | None]:
    """What runs here; None for an optional package that is not installed."""
    found: dict[str, str | None] = {
        "fairpca": fairpca.__version__,
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}, {sys.byteorder}-endian",
    }
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def _run(arguments: argparse.Namespace) -> int:
    found = versions()
    if arguments.json:
        print(json.dumps(found, indent=2))
    else:
        for name, text in found.items():
            print(f"{name:<13} {text or 'not installed (optional)'}")
    return 0


INFO = Command("info", _run, "versions of fairpca and its dependencies")
