"""Shift the mostly nonzero columns of a sparse matrix towards zero, where centring loses no precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

#: Columns of a sparse matrix with a larger share of nonzero entries are treated as dense, so as to centre them exactly.
_DENSE_COLUMN = 0.5


def shift_dense_columns(X: Any) -> tuple[Any, np.ndarray]:
    """Return ``X - shift`` and ``shift``, which is nonzero only for the mostly nonzero columns of a sparse X.

    Sparse rows are squared without centring, and the means are subtracted from the sums. That loses precision in
    columns whose mean is large relative to their spread, and only mostly nonzero columns can be like that. A dense X
    needs no shift, because it can be centred itself. The shift is the median, which is
    one of the values, so that indicators stay whole numbers.
    """
    shift = np.zeros(X.shape[1])
    if not sparse.issparse(X):
        return X, shift
    filled = np.bincount(X.indices, minlength=X.shape[1]) > _DENSE_COLUMN * X.shape[0]
    if not filled.any():
        return X, shift
    middle = X.shape[0] // 2
    shift[filled] = np.partition(X[:, filled].toarray(), middle, axis=0)[middle]
    ones = sparse.csr_array(np.ones((X.shape[0], 1)))
    return (X - ones @ sparse.csr_array(shift[None])).tocsr(), shift
