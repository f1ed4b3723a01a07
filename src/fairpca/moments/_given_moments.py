"""Checks of moments that were computed elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["in_order", "is_scatter"]

#: Entries of a scatter are off by this share of the largest at most, where rows are multiplied in single precision.
_SCATTER_ROUNDING = 1e-6


def in_order(name: str, values: Any, labels: tuple[Any, ...]) -> np.ndarray:
    """One entry per group as an array, from a mapping or a sequence."""
    if isinstance(values, Mapping):
        if set(values) != set(labels):
            raise ValueError(f"{name} has the groups {list(values)}, but covariances has {list(labels)}.")
        values = [values[label] for label in labels]
    array = np.array(values, dtype=float)
    if len(array) != len(labels):
        raise ValueError(f"{name} has {len(array)} entries, but there are {len(labels)} groups in covariances.")
    return array


def is_scatter(matrix: np.ndarray) -> bool:
    """Whether a matrix is symmetric and positive semidefinite, up to the rounding of sums in single precision."""
    slack = _SCATTER_ROUNDING * float(np.abs(matrix).max(initial=0.0))
    if np.abs(matrix - matrix.T).max(initial=0.0) > slack:
        return False
    try:
        np.linalg.cholesky(matrix + (len(matrix) * slack + np.finfo(float).tiny) * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        return False
    return True
