"""Classifiers that predict the group from a representation, and the rows they are trained and tested on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import check_array, check_random_state
from threadpoolctl import threadpool_limits

from fairpca._labels import label_texts
from fairpca._validation import Groups, check_groups, check_several_groups, split_off_groups
from fairpca.metrics._auc import codes_of_units

__all__ = [
    "FAMILIES",
    "LinearRule",
    "Rows",
    "check_rows",
    "check_train",
    "make_reader",
    "resolved",
    "rows_to_train_and_judge",
    "train_and_score",
]

FAMILIES = ("boosting", "linear", "rbf")
#: Share of test rows if no separate training rows are given.
_JUDGED_SHARE = 0.5
#: A coordinate whose spread is this small relative to the largest is rounding error; standardising would inflate it.
_COORDINATE_ROUNDING = 1e-10
#: Standardised scores that differ by less are equal up to rounding.
_TIE = 1e-9
#: Entries of a block of scores along many directions.
_BLOCK_ENTRIES = 2_000_000
#: Numbers of random directions, refined directions, refinement rounds (with decreasing steps), and trials per round.
_DIRECTIONS, _REFINED, _ROUNDS, _TRIALS = 200, 3, 6, 20

#: Scores and groups of the same rows.
Rows = tuple[np.ndarray, Groups]


def check_rows(Z: Any, sensitive_features: Any) -> Rows:
    """Validate scores and groups of the same rows."""
    Z, sensitive_features = split_off_groups(None, Z, sensitive_features)
    Z = check_array(Z, dtype=[np.float64, np.float32])
    groups = check_groups(sensitive_features, len(Z))
    check_several_groups(groups.labels, len(Z))
    return Z, groups


def check_train(train: Any, judged: Rows) -> Rows:
    """Validate separate training rows: they must have the same projection and the same groups."""
    if not isinstance(train, tuple | list) or len(train) != 2:
        raise TypeError("train must be a pair (X, sensitive_features) of other rows and their groups.")
    Z, groups = check_rows(*train)
    if Z.shape[1] != judged[0].shape[1]:
        raise ValueError(
            f"train has rows with {Z.shape[1]} columns, but X has {judged[0].shape[1]}; both must be scores of the "
            "same projection."
        )
    if groups.labels != judged[1].labels:
        raise ValueError(
            f"train contains the groups {label_texts(groups.labels)}, but sensitive_features contains "
            f"{label_texts(judged[1].labels)}; both sets of rows must have the same groups."
        )
    return Z, groups


def rows_to_train_and_judge(
    rows: Rows, train: Any, clusters: Any, rng: np.random.RandomState
) -> tuple[Rows, Rows, np.ndarray]:
    """Training rows, test rows, and the clusters of the test rows; without ``train`` the rows are halved."""
    units = _check_clusters(clusters, rows[1])
    return _divide(rows, units, rng) if train is None else (check_train(train, rows), rows, units)


def _check_clusters(clusters: Any, groups: Groups) -> np.ndarray:
    """The cluster of each row as an index; without clusters, each row is its own cluster."""
    n = len(groups.codes)
    if clusters is None:
        return np.arange(n)
    if np.ndim(clusters) != 1 or len(clusters) != n:
        raise ValueError(f"clusters has shape {np.shape(clusters)}, but X has {n} rows: pass one per row.")
    units = check_groups(clusters, n).codes.astype(np.intp)
    of_unit = codes_of_units(groups.codes, units)
    mixed = np.flatnonzero(of_unit[units] != groups.codes)
    if len(mixed):
        raise ValueError(
            f"clusters: the rows of cluster {np.asarray(clusters)[mixed[0]]!r} belong to several groups, so it "
            "cannot be assigned to one at random; use clusters within which sensitive_features is constant."
        )
    return units


def _divide(rows: Rows, units: np.ndarray, rng: np.random.RandomState) -> tuple[Rows, Rows, np.ndarray]:
    """Split into training and test rows, stratified by group and with clusters kept whole; also the test clusters."""
    Z, groups = rows
    of_unit = codes_of_units(groups.codes, units)
    if np.bincount(of_unit).min() < 2:
        raise ValueError(
            "A group in sensitive_features has a single row or cluster, which cannot be used for both training and "
            "testing; pass separate rows as train, or merge small groups."
        )
    splitter = StratifiedShuffleSplit(1, test_size=_JUDGED_SHARE, random_state=rng)
    _, held_out = next(splitter.split(of_unit, of_unit))
    judged = np.isin(units, held_out)
    parts = [(Z[mask], Groups(groups.labels, groups.codes[mask])) for mask in (~judged, judged)]
    return parts[0], parts[1], np.unique(units[judged], return_inverse=True)[1]


def resolved(train: np.ndarray, judged: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both sets of rows without the coordinates that are only rounding error, and with rounding removed from the rest.

    A classifier that uses only the order of values would take rounding error for information.
    """
    spread = train.std(axis=0)
    kept = spread > _COORDINATE_ROUNDING * spread.max(initial=0.0)
    unit = _COORDINATE_ROUNDING * spread[kept]
    first, second = (np.round(Z[:, kept] / unit) * unit for Z in (train, judged))
    return first, second


def make_reader(family: str, random_state: Any = 0) -> Any:
    """An unfitted classifier of the family."""
    if family == "linear":
        return LinearRule(random_state=random_state)
    if family == "rbf":
        return make_pipeline(StandardScaler(), SVC(kernel="rbf", class_weight="balanced"))
    return HistGradientBoostingClassifier(random_state=random_state)


def train_and_score(reader: Any, train: np.ndarray, target: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Train a classifier and return its scores of other rows: larger where it considers the second group more likely.

    In a single thread: the threads of boosting synchronize so often that on a busy machine they mostly wait for each
    other (2000 rows: seconds instead of 0.3).
    """
    with threadpool_limits(1, user_api="openmp"):
        reader.fit(train, target)
        return reader.decision_function(Z) if hasattr(reader, "decision_function") else reader.predict_proba(Z)[:, 1]


class LinearRule(ClassifierMixin, BaseEstimator):
    """The half-space ``sign (w . z - t) > 0`` that best separates two groups of rows.

    It maximises the difference between the groups' shares of rows inside, over directions w and thresholds t. A convex
    surrogate loss would not do: if the group means are equal, its minimum is the constant rule, whatever else differs.
    Given w, the best t is found exactly. Candidate directions are the coordinates, the difference of means, Fisher's
    discriminant and random directions; the best ones are refined by small random steps.

    With few rows, the best of many directions may be best by chance. With ``validated=True`` the rows are halved, and
    the search is used only if the direction that it finds on one half does at least as well on the other half as the
    difference of means and Fisher's discriminant.
    """

    def __init__(self, validated: bool = True, random_state: Any = 0) -> None:
        self.validated = validated
        self.random_state = random_state

    def fit(self, Z: np.ndarray, y: np.ndarray) -> LinearRule:
        self.classes_ = np.unique(y)
        second = y == self.classes_[-1]
        rng = check_random_state(self.random_state)
        self._scaler = StandardScaler().fit(Z)
        standardised = self._scaler.transform(Z)
        direction = self._way(standardised, second, rng)(standardised, second, rng)
        gap, threshold, sign = (float(part[0]) for part in _best_thresholds(standardised, direction[:, None], second))
        self.gap_, self._direction, self._threshold = gap, sign * direction, sign * threshold
        return self

    def _way(self, Z: np.ndarray, second: np.ndarray, rng: np.random.RandomState) -> Callable[..., np.ndarray]:
        """How to find the direction: by the search, unless a simpler method does better on held-out rows."""
        if not self.validated or Z.shape[1] == 1 or min(second.sum(), (~second).sum()) < 4:
            return _searched_direction
        splitter = StratifiedShuffleSplit(1, test_size=0.5, random_state=rng)
        halves = next(splitter.split(Z, second))
        ways = (_searched_direction, _fisher_direction, _mean_direction)
        gaps = [_gap_elsewhere(way, Z, second, halves, rng) for way in ways]
        return ways[int(np.argmax(gaps))]

    def decision_function(self, Z: np.ndarray) -> np.ndarray:
        """Positive inside the half-space, where the second group is the more frequent one."""
        return self._scaler.transform(Z) @ self._direction - self._threshold

    def predict(self, Z: np.ndarray) -> np.ndarray:
        return self.classes_[(self.decision_function(Z) > 0).astype(int)]


def _gap_elsewhere(
    way: Callable[..., np.ndarray],
    Z: np.ndarray,
    second: np.ndarray,
    halves: Sequence[np.ndarray],
    rng: np.random.RandomState,
) -> float:
    """The sum of two gaps: on each half of the rows, the gap of the half-space found on the other half."""
    total = 0.0
    for here, there in (halves, halves[::-1]):
        direction = way(Z[here], second[here], rng)
        _, threshold, sign = (float(part[0]) for part in _best_thresholds(Z[here], direction[:, None], second[here]))
        inside = sign * (Z[there] @ direction - threshold) > 0
        total += float(inside[second[there]].mean() - inside[~second[there]].mean())
    return total


def _mean_direction(Z: np.ndarray, second: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    return Z[second].mean(axis=0) - Z[~second].mean(axis=0)


def _fisher_direction(Z: np.ndarray, second: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    within = sum(np.cov(Z[part].T, bias=True) for part in (second, ~second))
    return np.linalg.solve(within + 1e-9 * np.eye(Z.shape[1]), _mean_direction(Z, second, rng))


def _searched_direction(Z: np.ndarray, second: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    directions = _first_directions(Z, second, rng)
    gaps = _best_thresholds(Z, directions, second)[0]
    best = [_refined(Z, directions[:, i], second, rng) for i in np.argsort(-gaps)[:_REFINED]]
    return max(best, key=lambda found: found[1])[0]


def _first_directions(Z: np.ndarray, second: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Unit vectors, of shape (d, count)."""
    d = Z.shape[1]
    if d == 1:
        return np.ones((1, 1))
    known = [way(Z, second, rng) for way in (_mean_direction, _fisher_direction)]
    directions = np.column_stack([np.eye(d), *known, rng.standard_normal((d, _DIRECTIONS))])
    lengths = np.linalg.norm(directions, axis=0)
    return directions[:, lengths > 0] / lengths[lengths > 0]


def _refined(
    Z: np.ndarray, direction: np.ndarray, second: np.ndarray, rng: np.random.RandomState
) -> tuple[np.ndarray, float]:
    """Improve a direction by random steps of decreasing size that increase the gap."""
    gap = float(_best_thresholds(Z, direction[:, None], second)[0][0])
    for size in 0.5 ** np.arange(1, _ROUNDS + 1) if len(direction) > 1 else ():
        trials = direction[:, None] + size * rng.standard_normal((len(direction), _TRIALS)) / np.sqrt(len(direction))
        trials /= np.linalg.norm(trials, axis=0)
        gaps = _best_thresholds(Z, trials, second)[0]
        if gaps.max() > gap:
            direction, gap = trials[:, gaps.argmax()], float(gaps.max())
    return direction, gap


def _best_thresholds(Z: np.ndarray, directions: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, ...]:
    """For each direction, the largest gap, its threshold, and 1 if the second group is above it, otherwise -1."""
    found = [_thresholds_of(Z @ block, second) for block in _column_blocks(directions, len(Z))]
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


def _column_blocks(directions: np.ndarray, n: int) -> Iterator[np.ndarray]:
    size = max(_BLOCK_ENTRIES // max(n, 1), 1)
    return (directions[:, start : start + size] for start in range(0, directions.shape[1], size))


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
