"""The AUC of scores on test rows: its value, its confidence interval, and the level that random groups reach."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtri

from fairpca._validation import rng_for

__all__ = [
    "JudgedScores",
    "Reading",
    "auc_interval",
    "codes_of_units",
    "contrasts",
    "joint_levels",
    "random_largest",
    "share_below",
]

#: Up to this many groups, classifiers are trained for every pair; with more, for each group against the rest.
_PAIRED_GROUPS = 4
#: Number of random assignments for the level; of 199, the 190th is exceeded by chance in at most 5 % of cases.
_DRAWS, _LEVEL = 199, 0.95
#: Entries of a block of random assignments.
_BLOCK_ENTRIES = 4_000_000
#: With at most this many different scores, rows are counted by score, which is faster than sorting.
_FEW_SCORES = 64
#: With fewer misordered units than this, DeLong's variance is not reliable.
_FEW = 3.0


@dataclass(frozen=True)
class Reading:
    """The held-out AUC of one classifier for one pair of groups, with a confidence interval.

    Attributes
    ----------
    family : str
        The family of the classifier.
    groups : tuple of two labels
        The groups it distinguishes; the second is "rest" for one-vs-rest.
    auc : float
        On held-out rows.
    low, high : float
        A confidence interval.

    See Also
    --------
    readability : Computes readings of several classifiers and pairs.

    Examples
    --------
    >>> from fairpca.datasets import make_same_moments
    >>> from fairpca.metrics import readability
    >>> X, groups = make_same_moments(200, random_state=0)
    >>> found = readability(X, sensitive_features=groups, family="linear", random_state=0)
    >>> [reading.family for reading in found.readings]
    ['linear']
    """

    family: str
    groups: tuple[Any, Any]
    auc: float
    low: float
    high: float


def contrasts(n_groups: int) -> list[tuple[int, int | None]]:
    """Which groups to distinguish: every pair if there are few groups, otherwise each against the rest (None)."""
    if n_groups <= _PAIRED_GROUPS:
        return list(combinations(range(n_groups), 2))
    return [(a, None) for a in range(n_groups)]


def codes_of_units(codes: np.ndarray, units: np.ndarray) -> np.ndarray:
    """The group of each cluster: that of one of its rows."""
    found = np.empty(units.max() + 1, dtype=np.intp)
    found[units] = codes
    return found


class JudgedScores:
    """The scores of a trained classifier on the test rows, for one group against another or against the rest."""

    def __init__(self, family: str, labels: tuple[Any, Any], codes: tuple[int, int | None], scores: np.ndarray) -> None:
        self.family, self.labels = family, labels
        self._first, self._second = codes
        self._scores = scores
        self._order = np.argsort(scores, kind="stable")
        ordered = scores[self._order]
        self._ties = np.flatnonzero(np.r_[True, ordered[1:] > ordered[:-1]])

    def _members(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first = codes == self._first
        return first, ~first if self._second is None else codes == self._second

    def judge(self, codes: np.ndarray, units: np.ndarray) -> tuple[float, float, int]:
        """AUC, its standard error, and the number of clusters in the smaller group."""
        first, second = self._members(codes)
        below, above = self._scores[first], self._scores[second]
        of_second = share_below(below, above)
        of_first = 1.0 - share_below(above, below)
        auc = float(of_second.mean())
        influence = np.zeros(len(codes))
        counts = []
        for members, shares in ((first, of_first), (second, of_second)):
            counts.append(len(np.unique(units[members])))
            influence[members] = (shares - auc) / len(shares) * np.sqrt(counts[-1] / max(counts[-1] - 1, 1))
        error = float(np.sqrt((np.bincount(units, influence) ** 2).sum()))
        return auc, error, min(counts)

    def auc(self, divisions: np.ndarray) -> np.ndarray:
        """AUC for each of several assignments of the rows to groups, of shape (count, n)."""
        of_first, of_second = self._counts(divisions)
        below = np.cumsum(of_first, axis=1) - 0.5 * of_first
        return (below * of_second).sum(axis=1) / (of_first.sum(axis=1) * of_second.sum(axis=1))

    def _counts(self, divisions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each assignment, the number of members of both groups at each different score, in ascending order."""
        if len(self._ties) > _FEW_SCORES:
            first, second = self._members(divisions[:, self._order])
            sums = [np.add.reduceat(part, self._ties, axis=1, dtype=float) for part in (first, second)]
            return sums[0], sums[1]
        rank = np.repeat(np.arange(len(self._ties)), np.diff(np.r_[self._ties, len(self._order)]))
        at_score = np.zeros((len(self._order), len(self._ties)), dtype=np.float32)  # counts up to 2^24 are exact
        at_score[self._order, rank] = 1.0
        first, second = (part.astype(np.float32) @ at_score for part in self._members(divisions))
        return first.astype(float), second.astype(float)


def share_below(values: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """The share of the values below each threshold, equal ones counting half."""
    ordered = np.sort(values)
    sides = [np.searchsorted(ordered, thresholds, side=side) for side in ("left", "right")]
    return 0.5 * (sides[0] + sides[1]) / len(values)


def auc_interval(auc: float, error: float, smaller: int, coverage: float) -> tuple[float, float, float]:
    """The AUC and the two ends of its confidence interval."""
    z = float(ndtri(0.5 + 0.5 * coverage))
    if min(auc, 1.0 - auc) * smaller < _FEW:
        return auc, _newcombe(auc, smaller, z), _newcombe(auc, smaller, -z)
    half = z * error / (auc * (1.0 - auc))
    return auc, float(expit(logit(auc) - half)), float(expit(logit(auc) + half))


def _newcombe(auc: float, size: int, z: float) -> float:
    """The AUC that is z standard errors (Hanley and McNeil's, both groups of this size) below the given one."""

    def departure(value: float) -> float:
        shape = (1.0 - value) / (2.0 - value) + value / (1.0 + value)
        variance = value * (1.0 - value) * (1.0 + (size - 1) * shape) / size**2
        return auc - value - z * np.sqrt(variance)

    edge = 1e-9
    ends = (edge, min(auc, 1.0 - edge)) if z > 0 else (max(auc, edge), 1.0 - edge)
    return float(brentq(departure, *ends)) if departure(ends[0]) * departure(ends[1]) < 0 else float(np.round(ends[0]))


def random_largest(readers: list[JudgedScores], codes: np.ndarray, units: np.ndarray, seed: int) -> np.ndarray:
    """The largest AUC of each of many random assignments of the clusters to the groups, of shape (199,).

    The assignments depend on the seed and the clusters only, so that they are the same for other scores of these rows.
    """
    rng, of_unit = rng_for(seed, "random groups"), codes_of_units(codes, units)
    size = max(_BLOCK_ENTRIES // len(codes), 1)
    largest = []
    for start in range(0, _DRAWS, size):
        draws = range(start, min(start + size, _DRAWS))
        divisions = np.stack([rng.permutation(of_unit)[units] for _ in draws])
        largest.append(np.max([reader.auc(divisions) for reader in readers], axis=0))
    return np.concatenate(largest)


def joint_levels(observed: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """For each of several statistics, a level that random groups exceed in any of them in at most 5 % of cases.

    Parameters
    ----------
    observed : ndarray of shape (m,)
    draws : ndarray of shape (n, m)
        The statistics of random groups: the same groups in each row.

    Notes
    -----
    The statistics are compared in standard deviations from their mean over all divisions, the observed one included:
    if the groups are random, all divisions are then equally likely to have the largest value, and the level is exact.
    A single statistic has the level of its rank.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.metrics._auc import joint_levels
    >>> draws = np.arange(199.0)[:, None]
    >>> bool(abs(joint_levels(np.array([5.0]), draws)[0] - 189.0) < 1e-9)  # the 190th smallest
    True
    """
    everything = np.vstack([observed, draws])
    centre, scale = everything.mean(axis=0), everything.std(axis=0)
    units = np.divide(draws - centre, scale, out=np.zeros_like(draws, dtype=float), where=scale > 0)
    largest = np.sort(units.max(axis=1))
    return centre + scale * largest[min(int(np.ceil(_LEVEL * (len(draws) + 1))), len(draws)) - 1]
