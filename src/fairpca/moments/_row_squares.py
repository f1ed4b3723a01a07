"""For each row: its squared length after centring, and the part of it that given bases capture.

This is a declared exception to the use of moments only: standard errors of group statistics need the spread over the
rows, which second moments do not contain. Rows are visited once, sorted by cell within blocks as in
:mod:`fairpca.moments._accumulate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fairpca.linalg import blas_threads, single_blas_thread
from fairpca.moments._accumulate import blocks_by_group

__all__ = ["Views", "on_row_ranges", "row_squares"]

#: How many numbers of X form a block, which should stay in the cache while it is centred and multiplied.
_BLOCK_NUMBERS = 250_000
#: From this many numbers on, ranges of rows are worth a thread each.
_PARALLEL_SIZE = 1_000_000


@dataclass(frozen=True)
class Views:
    """For each cell, the centre of its rows and several bases whose captured squares are wanted.

    Attributes
    ----------
    centres : ndarray of shape (n_cells, p)
    bases : list of length n_cells, of lists of arrays of shape (p, d)
        The same number of bases in every cell; their dimensions may differ.
    """

    centres: np.ndarray
    bases: Sequence[Sequence[np.ndarray]]

    @property
    def n_bases(self) -> int:
        return len(self.bases[0])


def row_squares(X: Any, cells: np.ndarray, views: Views) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Squared length of each row about its cell's centre, and what each basis of the cell captures of it.

    Parameters
    ----------
    X : dense or CSR matrix of shape (n, p), validated
    cells : integer array of shape (n,)
        The cell of each row, which determines its centre and bases.
    views : Views

    Yields
    ------
    cell : int
    rows : ndarray
        Indices of some of the cell's rows.
    squares : ndarray of shape (len(rows), 1 + n_bases)

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.moments import Views, row_squares
    >>> views = Views(np.zeros((1, 2)), [[np.array([[1.0], [0.0]])]])
    >>> for cell, rows, squares in row_squares(np.array([[3.0, 4.0]]), np.zeros(1, dtype=int), views):
    ...     print(squares)
    [[25.  9.]]
    """
    stacked = [np.hstack(list(bases)) for bases in views.bases]
    owners = [_owners(bases) for bases in views.bases]
    step = min(max(_BLOCK_NUMBERS // X.shape[1], 1), X.shape[0])
    buffer = np.empty((step, X.shape[1]))
    for cell, rows in blocks_by_group(cells, len(stacked), step):
        block = _gather(X, rows, buffer[: len(rows)])
        block -= views.centres[cell]
        scores = block @ stacked[cell]
        scores *= scores
        squares = np.empty((len(rows), 1 + views.n_bases))
        squares[:, 0] = np.einsum("ij,ij->i", block, block)
        squares[:, 1:] = scores @ owners[cell]
        yield cell, rows, squares


def _gather(X: Any, rows: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Rows in float64, in reused memory that may be overwritten: a new array per block would cause page faults."""
    if sparse.issparse(X):
        out[:] = X[rows].toarray()
    elif X.flags.c_contiguous and X.dtype == out.dtype:
        X.take(rows, axis=0, out=out, mode="clip")
    else:
        out[:] = X[rows]
    return out


def _owners(bases: Sequence[np.ndarray]) -> np.ndarray:
    """Indicator matrix that sums the squared scores of each basis, of shape (sum of all dimensions, n_bases)."""
    sizes = [basis.shape[1] for basis in bases]
    return np.repeat(np.eye(len(sizes)), sizes, axis=0)


def on_row_ranges(X: Any, function: Callable[[slice], Any], *, parallel: bool = True) -> list[Any]:
    """Apply a function to ranges of the rows, each on its own thread if X is large enough."""
    n_rows = X.shape[0]
    n_threads = blas_threads() if parallel and n_rows * X.shape[1] >= _PARALLEL_SIZE else 1
    if n_threads == 1:
        return [function(slice(0, n_rows))]
    bounds = np.linspace(0, n_rows, n_threads + 1).astype(int).tolist()
    with single_blas_thread(), ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(function, map(slice, bounds[:-1], bounds[1:])))
