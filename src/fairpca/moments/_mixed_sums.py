"""Sums of large float32 data: products of some thousand rows in float32, sums over these parts in float64.

A part is then off by about ``u sqrt(v_i v_j)`` in entry (i, j), with ``u = 6e-8`` and ``v`` the diagonal of its
scatter. These errors are independent from part to part, so over B parts the relative error falls as ``u / sqrt(B)``.
Measured: 2e-8 of the largest variance for 1e6 rows, twice as fast.

Two things would spoil that, and both are watched. A mean that is large next to the spread would cancel: such blocks
are centred first. Squares that leave the range of float32 would overflow or vanish: such blocks are multiplied in
float64.
"""

from __future__ import annotations

import numpy as np

from fairpca.moments._group_moments import WIDE, GroupTotal

__all__ = ["MixedTotal"]

#: Squares of a float32 column below this (on average) begin to lose digits or vanish.
_TINY_SQUARE = 1e-30
#: Rows from which the centre of a block is guessed; it need not be its mean.
_CENTRE_ROWS = 256
#: Sums over a column are formed in this many parts, so that float32 adds up few terms at a time.
_SUM_PARTS = 32
_SUM_ROWS = 1024
#: Rows that float32 multiplies at once: few enough for its accuracy, enough to be fast.
_PRODUCT_ROWS = 4096


class MixedTotal(GroupTotal):
    """The sums of float32 rows, multiplied in float32.

    A block's squares are taken about some centre near its mean; what that adds is removed at the end for all blocks
    at once.
    """

    def __init__(self, product: np.ndarray) -> None:
        super().__init__(product)
        self._far = False  # whether a block has had to be centred first
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
        """Spare the centring where every mean is within one standard deviation of zero."""
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
        if n_parts < 2 or rows.shape[1] >= WIDE:  # matrices so large are not held several times
            return np.matmul(rows.T, rows, out=self._product)
        size = len(rows) // n_parts
        parts = rows[: size * n_parts].reshape(n_parts, size, -1)
        rest = rows[size * n_parts :]
        return np.matmul(parts.transpose(0, 2, 1), parts).sum(axis=0, dtype=np.float64) + rest.T @ rest

    def _add(self, squares: np.ndarray, count: float, mean: np.ndarray, centre: np.ndarray | float) -> None:
        """Take over a block's squares about ``centre``, and its mean as seen from there."""
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
    if weights is None:  # every _SUM_PARTS-th row is one part: long rows make for a fast product
        parts = np.ones(size, np.float32) @ rows[:whole].reshape(size, _SUM_PARTS * n_features)
        rest = rows[whole:].sum(axis=0, dtype=np.float64)
    else:
        parts = weights[:whole].reshape(_SUM_PARTS, 1, size) @ rows[:whole].reshape(_SUM_PARTS, size, n_features)
        rest = weights[whole:].astype(np.float64) @ rows[whole:]
    return parts.reshape(_SUM_PARTS, n_features).sum(axis=0, dtype=np.float64) + rest


def _sums_of_columns(weights: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The same for rows that lie in memory column by column, as ``columns @ weights``."""
    n_parts = len(weights) // _SUM_ROWS
    whole = n_parts * _SUM_ROWS
    parts = columns[:, :whole].reshape(len(columns), n_parts, _SUM_ROWS).transpose(1, 0, 2)
    sums = np.matmul(parts, weights[:whole].reshape(n_parts, _SUM_ROWS, 1))
    return sums.sum(axis=(0, 2), dtype=np.float64) + columns[:, whole:] @ weights[whole:].astype(np.float64)


def _round_centre(rows: np.ndarray) -> np.ndarray:
    """A median of each column, rounded to a fraction of its spread: within a deviation or two of the mean.

    Round numbers (counts, indicators) stay round and their products exact: being alike, they would all round alike, and
    such errors add up instead of cancelling. A constant becomes exactly zero.
    """
    sample = np.sort(rows[:: max(len(rows) // _CENTRE_ROWS, 1)], axis=0)
    low, middle, high = sample[[len(sample) // 4, len(sample) // 2, 3 * len(sample) // 4]].astype(np.float64)
    with np.errstate(all="ignore"):  # no spread, or no number: the median itself, or zero
        grid = np.exp2(np.floor(np.log2(high - low)) - 2)
        centre = np.where(high > low, np.rint(middle / grid) * grid, middle).astype(np.float32)
    centre[~np.isfinite(centre)] = 0.0
    return centre


def _in_range(rows: np.ndarray, diagonal: np.ndarray, count: float) -> bool:
    """Whether float32 held the squares: none overflowed, and none vanished but those of zeros."""
    if not np.isfinite(diagonal).all():
        return False
    small = diagonal < _TINY_SQUARE * count
    return not small.any() or not rows[:, small].any()
