"""Shift the mostly nonzero columns of a sparse matrix towards zero, where centring loses no precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

#: Columns of a sparse matrix with a larger share of nonzero entries are treated as dense, so as to centre them exactly.
DENSE_COLUMN = 0.5


def shift_dense_columns(X: Any) -> tuple[Any, np.ndarray]:
    """Return ``X - shift`` and ``shift``, which is nonzero only for the mostly nonzero columns of a sparse X.

    Sparse rows are squared without centring, and the means are subtracted from the sums. That loses precision in
    columns whose mean is large relative to their spread, and only mostly nonzero columns can be like that. A dense X
    needs no shift, because it can be centred itself. The shift is the median.
    """
    shift = np.zeros(X.shape[1])
    if not sparse.issparse(X):
        return X, shift
    filled = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) > DENSE_COLUMN * X.shape[0])
    if not len(filled):
        return X, shift
    columns = X[:, filled].toarray().astype(np.float64)
    shift[filled] = np.partition(columns, len(columns) // 2, axis=0)[
        len(columns) // 2
    ]  # one of the values: 0 and 1 stay whole
    columns -= shift[filled]
    places = sparse.csr_array((np.ones(len(filled)), (np.arange(len(filled)), filled)), shape=(len(filled), X.shape[1]))
    kept = np.setdiff1d(np.arange(X.shape[1]), filled)
    others = sparse.csr_array((np.ones(len(kept)), (kept, kept)), shape=(X.shape[1], X.shape[1]))
    return (X @ others + sparse.csr_array(columns) @ places).tocsr(), shift
