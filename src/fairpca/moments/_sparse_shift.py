"""Sparse rows with some columns that are mostly filled: those are moved next to zero, where no digits are lost."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["DENSE_COLUMN", "shift_dense_columns"]

#: Columns of a sparse matrix filled more than this are handled as dense, because they can be centred exactly.
DENSE_COLUMN = 0.5


def shift_dense_columns(X: Any) -> tuple[Any, np.ndarray]:
    """``X - shift`` and ``shift``, which is zero but for filled columns of a sparse X; a dense X can be centred itself.

    Sparse rows are squared as they are, and their means are subtracted from the sums. That loses the digits of columns
    far from zero, and only filled columns can be far from zero next to their spread.
    """
    shift = np.zeros(X.shape[1])
    if not sparse.issparse(X):
        return X, shift
    filled = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) > DENSE_COLUMN * X.shape[0])
    if not len(filled):
        return X, shift
    columns = X[:, filled].toarray().astype(np.float64)
    shift[filled] = columns.mean(axis=0)
    columns -= shift[filled]
    places = sparse.csr_array((np.ones(len(filled)), (np.arange(len(filled)), filled)), shape=(len(filled), X.shape[1]))
    others = sparse.diags_array(~np.isin(np.arange(X.shape[1]), filled), dtype=np.float64)
    return (X @ others + sparse.csr_array(columns) @ places).tocsr(), shift
