"""Draw a random sample of rows from a stream of unknown length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from fairpca._validation import Groups
from fairpca.moments import RowBlock

__all__ = ["LabelledBlock", "RowSample"]


@dataclass(frozen=True)
class LabelledBlock(RowBlock):
    """A block of rows with the class of each row, if there is a label."""

    classes: Groups | None = None


class RowSample:
    """A uniform random sample of the rows of a stream: the rows with the smallest random keys.

    Which rows are drawn depends on the seed and on the rows, not on how they are divided into blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca._validation import check_groups
    >>> from fairpca.tables.sampling import LabelledBlock, RowSample
    >>> block = LabelledBlock([np.array([1.0, 2.0, 3.0])], check_groups(["f", "m", "f"], 3))
    >>> sample = RowSample(2, seed=0)
    >>> for _ in sample.watch([block]):
    ...     pass
    >>> X, groups, classes = sample.rows()
    >>> X.shape, len(groups), classes
    ((2, 1), 2, None)
    """

    def __init__(self, size: int, seed: int) -> None:
        self._size, self._rng = size, np.random.default_rng(seed)
        self._limit = np.inf if size else 0.0
        self._parts: list[tuple[np.ndarray, ...]] = []  # keys, features, groups, and classes if any

    def watch(self, blocks: Iterable[LabelledBlock]) -> Iterator[LabelledBlock]:
        """Pass the blocks through and sample from them on the way."""
        for block in blocks:
            keys = self._rng.random(len(block))
            chosen = np.flatnonzero(keys < self._limit)
            if len(chosen):
                self._parts.append((keys[chosen], *_rows_of(block, chosen)))
                if sum(len(part[0]) for part in self._parts) > 1.5 * self._size:
                    self._thin_out()
            yield block

    def rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Features, groups and classes of the sample, in file order."""
        self._thin_out()
        _, X, groups, *classes = self._parts[0]
        return X.astype(np.float64), groups.astype(str), classes[0] if classes else None

    def _thin_out(self) -> None:
        whole = tuple(map(np.concatenate, zip(*self._parts, strict=True)))
        keys = whole[0]
        if len(keys) > self._size:
            kept = np.sort(np.argpartition(keys, self._size)[: self._size])
            whole = tuple(values[kept] for values in whole)
            self._limit = keys[kept].max(initial=0.0)
        self._parts = [whole]


def _rows_of(block: LabelledBlock, chosen: np.ndarray) -> list[np.ndarray]:
    found = [np.column_stack([column[chosen] for column in block.columns]), _texts(block.groups, chosen)]
    return found if block.classes is None else [*found, _texts(block.classes, chosen)]


def _texts(groups: Groups, chosen: np.ndarray) -> np.ndarray:
    return np.array(groups.labels, dtype=object)[groups.codes[chosen]]
