"""The units that a random division moves between groups: rows, persons with several rows, or blocks of rows.

Each kind of unit provides the sums over a selection of its units, about the pooled mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fairpca._validation import Groups
from fairpca.moments import GroupMoments

__all__ = ["BlockUnits", "ClusterUnits", "RowUnits", "Sums", "Units", "draw_division", "moments_of"]


@dataclass(frozen=True)
class Sums:
    """Weight, sum and sum of outer products of some units' rows, about the pooled mean."""

    weight: float
    total: np.ndarray
    squares: np.ndarray

    def minus(self, others: list[Sums]) -> Sums:
        """The sums of the remaining units when other units are removed."""
        return Sums(
            self.weight - sum(other.weight for other in others),
            self.total - sum(other.total for other in others),
            self.squares - sum(other.squares for other in others),
        )


class Units(Protocol):
    """``codes`` holds the true group of each unit, ``whole`` the sums over all of them."""

    codes: np.ndarray
    whole: Sums
    center: np.ndarray

    def sums(self, chosen: np.ndarray) -> Sums:
        """Sums over the units with these indices."""


class RowUnits:
    """Each row is a unit."""

    def __init__(self, X: np.ndarray, groups: Groups, weights: np.ndarray | None, center: np.ndarray) -> None:
        self.codes, self.center = groups.codes, center
        self._rows = np.ascontiguousarray(X, dtype=np.float64) - center  # rows are gathered a thousand times
        self._roots = None if weights is None else np.sqrt(weights)
        if self._roots is not None:
            self._rows *= self._roots[:, None]
        self.whole = self._sums_of(self._rows, self._roots)

    def sums(self, chosen: np.ndarray) -> Sums:
        roots = None if self._roots is None else self._roots[chosen]
        return self._sums_of(self._rows.take(chosen, axis=0), roots)

    @staticmethod
    def _sums_of(rows: np.ndarray, roots: np.ndarray | None) -> Sums:
        if roots is None:
            return Sums(float(len(rows)), np.ones(len(rows)) @ rows, rows.T @ rows)
        return Sums(float(roots @ roots), roots @ rows, rows.T @ rows)


class ClusterUnits:
    """All rows of a person together; ``clusters`` are codes from 0, and the rows of a person are of one group."""

    def __init__(self, rows: RowUnits, clusters: np.ndarray) -> None:
        self._rows, self.center, self.whole = rows, rows.center, rows.whole
        order = np.argsort(clusters, kind="stable")
        self._order, self._starts = order, np.searchsorted(clusters[order], np.arange(clusters.max() + 2))
        self.codes = rows.codes[order[self._starts[:-1]]]

    def sums(self, chosen: np.ndarray) -> Sums:
        starts, stops = self._starts[chosen], self._starts[chosen + 1]
        lengths = stops - starts
        offsets = np.repeat(starts - np.r_[0, np.cumsum(lengths)[:-1]], lengths)
        return self._rows.sums(self._order[offsets + np.arange(lengths.sum())])


class BlockUnits:
    """Blocks of rows formed at random within groups, of which only the moments are known."""

    def __init__(self, blocks: GroupMoments, codes: np.ndarray, center: np.ndarray) -> None:
        """``blocks`` has one label per block, ``codes`` the group of each."""
        self.codes, self.center = codes, center
        self._weights = blocks.counts
        self._totals = (blocks.means - center) * blocks.counts[:, None]
        self._squares = blocks.second_moments(center) * blocks.counts[:, None, None]
        self.whole = self.sums(np.arange(len(codes)))

    def sums(self, chosen: np.ndarray) -> Sums:
        return Sums(
            float(self._weights[chosen].sum()),
            self._totals[chosen].sum(axis=0),
            self._squares[chosen].sum(axis=0),
        )


def draw_division(sizes: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Numbers of the units in each group but the largest, of a random division into groups of these sizes."""
    smaller = np.delete(sizes, sizes.argmax())
    drawn = rng.choice(int(sizes.sum()), int(smaller.sum()), replace=False, shuffle=len(smaller) > 1)
    return np.split(drawn, np.cumsum(smaller)[:-1])


def group_sums(units: Units, smaller: list[np.ndarray], largest: int) -> list[Sums]:
    """Sums of every group; those of the largest follow from the whole."""
    found = [units.sums(chosen) for chosen in smaller]
    found.insert(largest, units.whole.minus(found))
    return found


def moments_of(sums: list[Sums], center: np.ndarray, labels: tuple[Any, ...]) -> GroupMoments:
    """The same sums as group moments."""
    counts = np.array([one.weight for one in sums])
    means = np.stack([one.total / one.weight for one in sums])
    scatters = np.stack([one.squares - np.outer(one.total, one.total) / one.weight for one in sums])
    return GroupMoments(labels, counts, means + center, scatters)
