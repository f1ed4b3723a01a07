"""Squared reconstruction errors of single rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["row_errors"]

#: How many numbers of X are centred at a time.
_BLOCK_NUMBERS = 1_000_000


def row_errors(X: Any, components: np.ndarray, mean: np.ndarray, encoder: np.ndarray | None = None) -> np.ndarray:
    """``|x - mean - V T^T (x - mean)|^2`` for each row of a dense or sparse matrix, in float64.

    The rows of ``components`` are the columns of V, those of ``encoder`` the columns of T; without it, T = V.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.estimators._row_errors import row_errors
    >>> row_errors(np.array([[3.0, 4.0], [0.0, 1.0]]), np.array([[1.0, 0.0]]), np.zeros(2))
    array([16.,  1.])
    """
    encoder = components if encoder is None else encoder
    if sparse.issparse(X):
        return _sparse_row_errors(X, components, mean, encoder)
    errors = np.empty(X.shape[0])
    step = max(_BLOCK_NUMBERS // X.shape[1], 1)
    for start in range(0, X.shape[0], step):
        rows = X[start : start + step] - mean  # centred first: means may be large relative to the residuals
        rows -= (rows @ encoder.T) @ components
        errors[start : start + step] = np.einsum("ij,ij->i", rows, rows)
    return errors


def _sparse_row_errors(X: Any, components: np.ndarray, mean: np.ndarray, encoder: np.ndarray) -> np.ndarray:
    """``|x|^2 - 2 (V^T x).(T^T x) + |T^T x|^2`` about the mean: no dense matrix of the size of X."""
    squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    distances = squares - 2.0 * (X @ mean) + mean @ mean
    projected, scores = (X @ matrix.T - mean @ matrix.T for matrix in (components, encoder))
    return np.maximum(distances - np.einsum("ij,ij->i", scores, 2.0 * projected - scores), 0.0)
