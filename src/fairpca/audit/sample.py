"""Draw a random sample of rows from a stream of unknown length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["RowSample"]


class RowSample:
    """A uniform random sample of the rows of a stream: the rows with the smallest random keys.

    Which rows are drawn depends on the seed and on the rows, not on how they are divided into blocks. Without a size,
    all rows are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.audit.sample import RowSample
    >>> sample = RowSample(2, seed=0)
    >>> sample.add([np.array([1.0, 2.0, 3.0]), np.array([7, 8, 9])])
    >>> numbers, others = sample.rows()
    >>> others - numbers, len(numbers)
    (array([6., 6.]), 2)
    """

    def __init__(self, size: int | None, seed: int) -> None:
        self._size, self._rng = size, np.random.default_rng(seed)
        self._limit = 0.0 if size == 0 else np.inf
        self._parts: list[tuple[np.ndarray, ...]] = []  # keys, and the arrays of each block

    def add(self, arrays: Sequence[np.ndarray]) -> None:
        """Add the rows of a block: the first axis of each array."""
        if self._size is None:
            self._parts.append(tuple(arrays))
            return
        keys = self._rng.random(len(arrays[0]))
        chosen = np.flatnonzero(keys < self._limit)
        if len(chosen) or not self._parts:
            self._parts.append((keys[chosen], *(array[chosen] for array in arrays)))
            if sum(len(part[0]) for part in self._parts) > 1.5 * self._size:
                self._thin_out()

    def rows(self) -> tuple[np.ndarray, ...]:
        """The arrays of the sample, in the order of the rows."""
        if self._size is None:
            return tuple(map(np.concatenate, zip(*self._parts, strict=True)))
        self._thin_out()
        return self._parts[0][1:]

    def _thin_out(self) -> None:
        whole = tuple(map(np.concatenate, zip(*self._parts, strict=True)))
        keys = whole[0]
        if self._size is not None and len(keys) > self._size:
            kept = np.sort(np.argpartition(keys, self._size)[: self._size])
            whole = tuple(values[kept] for values in whole)
            self._limit = keys[kept].max(initial=0.0)
        self._parts = [whole]
