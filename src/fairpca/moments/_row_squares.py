"""For single rows: the squared length after centring, and the squared scores on given directions.

This is a declared exception to the use of moments only: standard errors of group statistics need the spread over the
rows, which second moments do not contain.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

#: How many numbers of X form a block, which should stay in the cache while it is centred and multiplied.
_BLOCK_NUMBERS = 250_000


def row_squares(X: Any, rows: np.ndarray, centre: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Of shape (len(rows), 1 + n_directions): squared lengths, then squared scores on each column of ``directions``.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.moments._row_squares import row_squares
    >>> row_squares(np.array([[3.0, 4.0]]), np.array([0]), np.zeros(2), np.array([[1.0], [0.0]]))
    array([[25.,  9.]])
    """
    found = np.empty((len(rows), 1 + directions.shape[1]))
    step = max(_BLOCK_NUMBERS // X.shape[1], 1)
    for start in range(0, len(rows), step):
        block = X[rows[start : start + step]]
        block = (block.toarray() if sparse.issparse(block) else block) - centre
        part = found[start : start + step]
        part[:, 0] = np.einsum("ij,ij->i", block, block)
        np.square(block @ directions, out=part[:, 1:])
    return found
