"""``fairpca info``: versions, for bug reports."""

from __future__ import annotations

import argparse
import json
import platform
from importlib.metadata import PackageNotFoundError, version

import fairpca
from fairpca.audit.command._output import Command

__all__ = ["INFO"]

_REQUIRED = ("numpy", "scipy", "scikit-learn")
_OPTIONAL = ("pandas", "pyarrow", "cvxpy-base", "scs", "matplotlib", "dask")


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


INFO = Command("info", _run, "versions of fairpca and its dependencies")
