"""Packages that only some features need: imported on first use, with an error that says how to install them."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["require"]

#: Top-level package -> its display name, and the extra of fairpca that installs it.
_EXTRAS = {
    "cvxpy": ("CVXPY and SCS", "sdp"),
    "dask": ("Dask", "dask"),
    "distributed": ("Dask", "dask"),
    "matplotlib": ("matplotlib", "plot"),
    "pandas": ("pandas", "frame"),
    "pyarrow": ("pyarrow", "audit"),
    "safetensors": ("safetensors", "torch"),
    "torch": ("PyTorch", "torch"),
}


def require(module: str, purpose: str, *, otherwise: str = "") -> Any:
    """Import ``module``, or raise an ImportError that names the purpose, the install command and the alternative.

    Examples
    --------
    >>> from fairpca._optional import require
    >>> require("pandas", "to_frame").DataFrame.__name__
    'DataFrame'
    """
    package, extra = _EXTRAS[module.partition(".")[0]]
    try:
        return importlib.import_module(module)
    except ImportError:
        advice = f" {otherwise}" if otherwise else ""
        raise ImportError(f"{purpose} needs {package}: pip install 'fairpca[{extra}]'.{advice}") from None
