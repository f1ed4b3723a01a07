"""Sums of large float32 data: products of a few thousand rows in float32, sums over these parts in float64.

The error of a part is about ``u sqrt(v_i v_j)`` in entry (i, j), with ``u = 6e-8`` and ``v`` the diagonal of its
scatter matrix. The errors of different parts are independent, so over B parts the relative error falls as
``u / sqrt(B)``. Measured for 1e6 rows: 2e-8 of the largest variance, and twice as fast.

Two cases would lose precision, and both are detected. Means that are large relative to the spread would cause
cancellation: such blocks are centred first. Squares outside the range of float32 would overflow or vanish: such blocks
are multiplied in float64.
"""

from __future__ import annotations

import numpy as np

from fairpca.moments._group_moments import WIDE, GroupTotal

#: Below this mean square, the squares of a float32 column begin to lose precision or vanish.
_TINY_SQUARE = 1e-30
#: Number of rows from which the centre of a block is estimated; it need not be its mean.
_CENTRE_ROWS = 256
#: Sums over a column are formed in this many parts, so that few terms at a time are added in float32.
_SUM_PARTS = 32
_SUM_ROWS = 1024
#: Number of rows multiplied at once in float32: few enough to be accurate, enough to be fast.
_PRODUCT_ROWS = 4096


class MixedPrecisionTotal(GroupTotal):
    """Running sums of float32 rows, multiplied in float32.

    A block's squares are taken about a centre near its mean; the excess is subtracted at the end, for all blocks at
    once.
    """

    def __init__(self, scatter: np.ndarray, product: np.ndarray) -> None:
        super().__init__(scatter, product)
        self._far = False  # whether any block so far had to be centred first
        self._from_centre: list[np.ndarray] = []

    def add_dense(self, rows: np.ndarray, weights: np.ndarray | None) -> None:
        """Add float32 rows; they are overwritten."""
        if weights is None:
            count = float(len(rows))
            if not self._far and self._add_as_is(rows, count):
                return
            self._far = True
            self._add_centred(rows, None, count)
        else:
            roots, count = np.sqrt(weights).astype(np.float32), float(weights.sum())
            self._add_centred(rows, roots, count)

    def _add_as_is(self, rows: np.ndarray, count: float) -> bool:
        """Add rows without centring if every mean is within one standard deviation of zero; return whether it did."""
        mean = _sums(None, rows) / count
        squares = self._squares(rows)
        diagonal = squares.diagonal()
        near = bool((2.0 * count * mean * mean <= diagonal).all())
        if near and _in_range(rows, diagonal, count):
            self._add(squares, count, mean, 0.0)
            return True
        return False

    def _add_centred(self, rows: np.ndarray, roots: np.ndarray | None, count: float) -> None:
        centre = _round_centre(rows)
        rows -= centre
        if roots is not None:
            rows *= roots[:, None]
        squares = self._squares(rows)
        if not _in_range(rows, squares.diagonal(), count):
            rows = rows.astype(np.float64)
            squares = rows.T @ rows
        self._add(squares, count, _sums(roots, rows) / count, centre)

    def _squares(self, rows: np.ndarray) -> np.ndarray:
        """``rows.T @ rows``: float32 within parts of the rows, float64 over the parts."""
        n_parts = len(rows) // _PRODUCT_ROWS
        if n_parts < 2 or rows.shape[1] >= WIDE:  # matrices of that size should not be held several times
            return np.matmul(rows.T, rows, out=self._product)
        size = len(rows) // n_parts
        parts = rows[: size * n_parts].reshape(n_parts, size, -1)
        rest = rows[size * n_parts :]
        return np.matmul(parts.transpose(0, 2, 1), parts).sum(axis=0, dtype=np.float64) + rest.T @ rest

    def _add(self, squares: np.ndarray, count: float, mean: np.ndarray, centre: np.ndarray | float) -> None:
        """Add a block's squares about ``centre``, and its ``mean`` relative to that centre."""
        self._within += squares
        self._from_centre.append(mean)
        self._remember(count, mean + centre)

    def finish(self) -> tuple[float, np.ndarray, np.ndarray]:
        offsets = np.stack(self._from_centre) * np.sqrt(self._counts)[:, None]
        self._within -= offsets.T @ offsets
        return super().finish()


def _sums(weights: np.ndarray | None, rows: np.ndarray) -> np.ndarray:
    """``weights @ rows``, or plain sums: float32 within parts of the rows, float64 over the parts."""
    if not rows.flags.c_contiguous:  # gathered column by column
        return _sums_of_columns(np.ones(len(rows), np.float32) if weights is None else weights, rows.T)
    size, n_features = len(rows) // _SUM_PARTS, rows.shape[1]
    whole = size * _SUM_PARTS
    if weights is None:  # every _SUM_PARTS-th row belongs to one part: long rows make the product fast
        parts = np.ones(size, np.float32) @ rows[:whole].reshape(size, _SUM_PARTS * n_features)
        rest = rows[whole:].sum(axis=0, dtype=np.float64)
    else:
        parts = weights[:whole].reshape(_SUM_PARTS, 1, size) @ rows[:whole].reshape(_SUM_PARTS, size, n_features)
        rest = weights[whole:].astype(np.float64) @ rows[whole:]
    return parts.reshape(_SUM_PARTS, n_features).sum(axis=0, dtype=np.float64) + rest


def _sums_of_columns(weights: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The same for rows that are stored column by column, as ``columns @ weights``."""
    n_parts = len(weights) // _SUM_ROWS
    whole = n_parts * _SUM_ROWS
    parts = columns[:, :whole].reshape(len(columns), n_parts, _SUM_ROWS).transpose(1, 0, 2)
    sums = np.matmul(parts, weights[:whole].reshape(n_parts, _SUM_ROWS, 1))
    return sums.sum(axis=(0, 2), dtype=np.float64) + columns[:, whole:] @ weights[whole:].astype(np.float64)


def _round_centre(rows: np.ndarray) -> np.ndarray:
    """An approximate median of each column, rounded to a fraction of its spread: one or two deviations from the mean.

    Round numbers (counts, indicators) stay round, so their products are exact. Otherwise equal values would have equal
    rounding errors, which add up instead of cancelling. A constant column becomes exactly zero.
    """
    sample = np.sort(rows[:: max(len(rows) // _CENTRE_ROWS, 1)], axis=0)
    low, middle, high = sample[[len(sample) // 4, len(sample) // 2, 3 * len(sample) // 4]].astype(np.float64)
    with np.errstate(all="ignore"):  # without spread: the median itself; not finite: zero
        grid = np.exp2(np.floor(np.log2(high - low)) - 2)
        centre = np.where(high > low, np.rint(middle / grid) * grid, middle).astype(np.float32)
    centre[~np.isfinite(centre)] = 0.0
    return centre


def _in_range(rows: np.ndarray, diagonal: np.ndarray, count: float) -> bool:
    """Whether float32 could represent the squares: none overflowed, and none vanished except those of zeros."""
    if not np.isfinite(diagonal).all():
        return False
    small = diagonal < _TINY_SQUARE * count
    return not small.any() or not rows[:, small].any()
