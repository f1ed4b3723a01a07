"""The half-space that best separates two groups of rows: a linear rule that equal means do not blind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from fairpca.metrics._reading import share_below

__all__ = ["HalfSpace"]

#: Standardised scores that differ by less are equal up to rounding.
_TIE = 1e-9
#: Entries of a block of scores along many directions.
_BLOCK_ENTRIES = 2_000_000
#: Numbers of random directions, refined directions, refinement rounds (with decreasing steps), and trials per round.
_DIRECTIONS, _REFINED, _ROUNDS, _TRIALS = 200, 3, 6, 20

#: Finds a direction from standardised rows, which of them belong to the second group, and a generator.
_Way = Callable[[np.ndarray, np.ndarray, np.random.RandomState], np.ndarray]


class HalfSpace(ClassifierMixin, BaseEstimator):
    """The half-space ``w . z > t`` whose shares of the two groups differ most.

    A convex surrogate loss would not do: if the group means are equal, its minimum is the constant rule, whatever else
    differs. Given w, the best t is found exactly. Candidates for w are the coordinates, the difference of means,
    Fisher's discriminant and random directions; the best ones are refined by small random steps.

    With few rows, the best of many directions may be best by chance. With ``validated=True`` the rows are halved, and
    the search is used only if the direction that it finds on one half does at least as well on the other half as the
    difference of means and Fisher's discriminant.
    """

    def __init__(self, validated: bool = True, random_state: Any = 0) -> None:
        self.validated = validated
        self.random_state = random_state

    def fit(self, Z: np.ndarray, y: np.ndarray) -> HalfSpace:
        self.classes_ = np.unique(y)
        second = y == self.classes_[-1]
        rng = check_random_state(self.random_state)
        self._scaler = StandardScaler().fit(Z)
        Z = self._scaler.transform(Z)
        way = _searched
        if self.validated and Z.shape[1] > 1 and min(second.sum(), (~second).sum()) >= 4:
            halves = next(StratifiedShuffleSplit(1, test_size=0.5, random_state=rng).split(Z, second))
            ways = (_searched, _fisher, _mean_difference)
            way = ways[int(np.argmax([_gap_elsewhere(one, Z, second, halves, rng) for one in ways]))]
        self._direction, self._threshold, gap = _half_space(way, Z, second, rng)
        scores = Z @ self._direction
        # Where only a tail differs, the side on which a row lies ranks rows better than its distance does.
        self._by_side = 0.5 * (1.0 + gap) > share_below(scores[~second], scores[second]).mean()
        return self

    def decision_function(self, Z: np.ndarray) -> np.ndarray:
        """Positive inside the half-space, where the second group is the more frequent one."""
        margin = self._scaler.transform(Z) @ self._direction - self._threshold
        return np.where(margin > 0, 1.0, -1.0) if self._by_side else margin

    def predict(self, Z: np.ndarray) -> np.ndarray:
        return self.classes_[(self.decision_function(Z) > 0).astype(int)]


def _half_space(
    way: _Way, Z: np.ndarray, second: np.ndarray, rng: np.random.RandomState
) -> tuple[np.ndarray, float, float]:
    """A direction with its best threshold, oriented towards the second group, and the difference of shares."""
    direction = way(Z, second, rng)
    gap, threshold, sign = (float(part[0]) for part in _best_thresholds(Z, direction[:, None], second))
    return sign * direction, sign * threshold, gap


def _gap_elsewhere(
    way: _Way, Z: np.ndarray, second: np.ndarray, halves: Sequence[np.ndarray], rng: np.random.RandomState
) -> float:
    """The sum of two gaps: on each half of the rows, the gap of the half-space found on the other half."""
    total = 0.0
    for here, there in (halves, halves[::-1]):
        direction, threshold, _ = _half_space(way, Z[here], second[here], rng)
        inside = Z[there] @ direction > threshold
        total += float(inside[second[there]].mean() - inside[~second[there]].mean())
    return total


def _mean_difference(Z: np.ndarray, second: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    return Z[second].mean(axis=0) - Z[~second].mean(axis=0)


def _fisher(Z: np.ndarray, second: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    within = sum(np.cov(Z[part].T, bias=True) for part in (second, ~second))
    return np.linalg.solve(within + 1e-9 * np.eye(Z.shape[1]), _mean_difference(Z, second, rng))


def _searched(Z: np.ndarray, second: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    d = Z.shape[1]
    if d == 1:
        return np.ones(1)
    known = [way(Z, second, rng) for way in (_mean_difference, _fisher)]
    directions = np.column_stack([np.eye(d), *known, rng.standard_normal((d, _DIRECTIONS))])
    lengths = np.linalg.norm(directions, axis=0)
    directions = directions[:, lengths > 0] / lengths[lengths > 0]
    gaps = _best_thresholds(Z, directions, second)[0]
    best = [_refined(directions[:, i], gaps[i], Z, second, rng) for i in np.argsort(-gaps)[:_REFINED]]
    return max(best, key=lambda found: found[1])[0]


def _refined(
    direction: np.ndarray, gap: float, Z: np.ndarray, second: np.ndarray, rng: np.random.RandomState
) -> tuple[np.ndarray, float]:
    """Improve a direction by random steps of decreasing size that increase the gap."""
    for size in 0.5 ** np.arange(1, _ROUNDS + 1):
        trials = direction[:, None] + size * rng.standard_normal((len(direction), _TRIALS)) / np.sqrt(len(direction))
        trials /= np.linalg.norm(trials, axis=0)
        gaps = _best_thresholds(Z, trials, second)[0]
        if gaps.max() > gap:
            direction, gap = trials[:, gaps.argmax()], gaps.max()
    return direction, gap


def _best_thresholds(Z: np.ndarray, directions: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, ...]:
    """For each direction, the largest gap, its threshold, and 1 if the second group is above it, otherwise -1."""
    size = max(_BLOCK_ENTRIES // len(Z), 1)
    blocks = (directions[:, start : start + size] for start in range(0, directions.shape[1], size))
    found = [_thresholds_of(Z @ block, second) for block in blocks]
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


def _thresholds_of(scores: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    order = np.argsort(scores, axis=0)
    ordered = np.take_along_axis(scores, order, axis=0)
    signed = np.where(second, -1.0 / second.sum(), 1.0 / (~second).sum())
    below = np.cumsum(signed[order], axis=0)[:-1]  # share of the first group below, minus that of the second
    below[np.diff(ordered, axis=0) <= _TIE] = 0.0  # no threshold separates equal scores
    best = np.abs(below).argmax(axis=0)
    columns = np.arange(scores.shape[1])
    thresholds = 0.5 * (ordered[best, columns] + ordered[best + 1, columns])
    return np.abs(below)[best, columns], thresholds, np.where(below[best, columns] >= 0, 1.0, -1.0)
