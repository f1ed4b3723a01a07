"""Checks of moments that were computed elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairpca._labels import quoted

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


def _is_scatter(matrix: np.ndarray, rounding: float) -> bool:
    """Whether a matrix is symmetric and positive semidefinite, up to the rounding of sums in single precision.

    ``rounding`` is that of the scatter of equal rows, whose entries would all be zero.
    """
    slack = _SCATTER_ROUNDING * float(np.abs(matrix).max(initial=0.0)) + rounding
    if np.abs(matrix - matrix.T).max(initial=0.0) > slack:
        return False
    try:
        np.linalg.cholesky(matrix + (len(matrix) * slack + np.finfo(float).tiny) * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        return False
    return True


def check_moments(labels: tuple[Any, ...], counts: np.ndarray, means: np.ndarray, scatters: np.ndarray) -> None:
    """Raise unless these can be the moments of data."""
    unfit = [repr(label) for label, count in zip(labels, counts, strict=True) if not 0 < count < np.inf]
    if unfit:
        raise ValueError(
            f"counts of the groups {', '.join(unfit)} are not positive numbers; leave out groups without rows."
        )
    for name, values in (("means", means), ("scatters", scatters)):
        if not np.isfinite(values).all():
            raise ValueError(f"{name} contain missing or infinite values; drop or fill them in before summing.")
    for label, count, mean, scatter in zip(labels, counts, means, scatters, strict=True):
        if not _is_scatter(scatter, count * (np.finfo(float).eps * np.abs(mean).max(initial=0.0)) ** 2):
            raise ValueError(
                f"scatters of the group {quoted(label)} are not a valid scatter matrix: it must be symmetric "
                "without negative eigenvalues. Sum (x - mean)(x - mean)^T over the group's rows."
            )
