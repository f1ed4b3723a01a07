"""The half-space that best separates two groups of rows: a linear rule that equal means do not blind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from fairpca.metrics._reading import share_below

__all__ = ["HalfSpace"]

#: Standardised scores that differ by less are equal up to rounding.
_TIE = 1e-9
#: Numbers of random directions, refined directions, refinement rounds (with decreasing steps), and trials per round.
_DIRECTIONS, _REFINED, _ROUNDS, _TRIALS = 200, 3, 6, 20

#: Finds a direction from standardised rows, which of them belong to the second group, and a generator.
_Way = Callable[[np.ndarray, np.ndarray, np.random.RandomState], np.ndarray]


class HalfSpace(BaseEstimator):
    """The half-space ``w . z > t`` whose shares of the two groups differ most.

    A convex surrogate loss would not do: if the group means are equal, its minimum is the constant rule, whatever else
    differs. Given w, the best t is found exactly. Candidates for w are the coordinates, the difference of means,
    Fisher's discriminant and random directions; the best ones are refined by small random steps.

    With few rows, the best of many directions may be best by chance. So the rows are halved, and the search is used
    only if the direction that it finds on one half does at least as well on the other half as the difference of means
    and Fisher's discriminant.
    """

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, Z: np.ndarray, second: np.ndarray) -> HalfSpace:
        """``second`` marks the rows of the second group."""
        rng = check_random_state(self.random_state)
        self._scaler = StandardScaler().fit(Z)
        Z = self._scaler.transform(Z)
        way = _searched
        if Z.shape[1] > 1 and min(second.sum(), (~second).sum()) >= 4:
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


def _half_space(
    way: _Way, Z: np.ndarray, second: np.ndarray, rng: np.random.RandomState
) -> tuple[np.ndarray, float, float]:
    """A direction with its best threshold, oriented towards the second group, and the difference of shares."""
    direction = way(Z, second, rng)
    gap, threshold, sign = _best_threshold(Z @ direction, second)
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
    gaps = _gaps(Z, directions, second)
    best = [_refined(directions[:, i], gaps[i], Z, second, rng) for i in np.argsort(-gaps)[:_REFINED]]
    return max(best, key=lambda found: found[1])[0]


def _refined(
    direction: np.ndarray, gap: float, Z: np.ndarray, second: np.ndarray, rng: np.random.RandomState
) -> tuple[np.ndarray, float]:
    """Improve a direction by random steps of decreasing size that increase the gap."""
    for size in 0.5 ** np.arange(1, _ROUNDS + 1):
        trials = direction[:, None] + size * rng.standard_normal((len(direction), _TRIALS)) / np.sqrt(len(direction))
        trials /= np.linalg.norm(trials, axis=0)
        gaps = _gaps(Z, trials, second)
        if gaps.max() > gap:
            direction, gap = trials[:, gaps.argmax()], gaps.max()
    return direction, gap


def _gaps(Z: np.ndarray, directions: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The largest difference of shares along each direction."""
    return np.array([_best_threshold(Z @ direction, second)[0] for direction in directions.T])


def _best_threshold(scores: np.ndarray, second: np.ndarray) -> tuple[float, float, float]:
    """The largest gap, its threshold, and 1 if the second group is above it, otherwise -1."""
    order = np.argsort(scores)
    ordered = scores[order]
    # The share of the first group below, minus that of the second.
    below = np.cumsum(np.where(second, -1.0 / second.sum(), 1.0 / (~second).sum())[order])[:-1]
    below[np.diff(ordered) <= _TIE] = 0.0  # no threshold separates equal scores
    best = int(np.abs(below).argmax())
    threshold = 0.5 * (ordered[best] + ordered[best + 1])
    return abs(float(below[best])), float(threshold), 1.0 if below[best] >= 0 else -1.0
