"""Draw a random sample of rows from a stream of unknown length."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from fairpca._validation import rng_for

Arrays = dict[Any, np.ndarray]
_KEY = ("key",)


class RowSample:
    """A uniform random sample of the rows of a stream: the rows with the smallest random keys.

    Which rows are drawn depends on the seed and on the rows, not on how they are divided into blocks. Without a size,
    all rows are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.audit.sample import RowSample
    >>> sample = RowSample(2, seed=0)
    >>> _ = sample.add({"x": np.array([1.0, 2.0, 3.0]), "y": np.array([7, 8, 9])})
    >>> rows = sample.rows()
    >>> rows["y"] - rows["x"]
    array([6., 6.])
    """

    def __init__(self, size: int | None, seed: int) -> None:
        self._size = sys.maxsize if size is None else size
        self._rng, self._limit = rng_for(seed, "rows"), np.inf
        self._parts: list[Arrays] = []

    def add(self, arrays: Arrays) -> Arrays:
        """Add the rows of a block, the first axis of each array, and return them."""
        keys = self._rng.random(len(next(iter(arrays.values()))))
        chosen = np.flatnonzero(keys < self._limit)
        self._parts.append({name: array[chosen] for name, array in (arrays | {_KEY: keys}).items()})
        if sum(len(part[_KEY]) for part in self._parts) > 1.5 * self._size:
            self.rows()
        return arrays

    def rows(self) -> Arrays:
        """The arrays of the sample, in the order of the rows."""
        whole = {name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]}
        if len(whole[_KEY]) > self._size:
            kept = np.sort(np.argpartition(whole[_KEY], self._size)[: self._size])
            whole = {name: values[kept] for name, values in whole.items()}
            self._limit = whole[_KEY].max()
        self._parts = [whole]
        return whole
