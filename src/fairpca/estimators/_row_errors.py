"""Squared reconstruction errors of single rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches

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
    errors = np.empty(X.shape[0])
    for block in gen_batches(X.shape[0], max(_BLOCK_NUMBERS // X.shape[1], 1)):
        rows = X[block].toarray() if sparse.issparse(X) else X[block]
        rows = rows - mean  # centred first: means may be large relative to the residuals
        rows -= (rows @ encoder.T) @ components
        errors[block] = np.einsum("ij,ij->i", rows, rows)
    return errors
