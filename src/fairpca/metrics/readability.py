"""Whether the group can be read off a representation: the held-out AUC of a strong classifier, beside chance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtri
from sklearn.model_selection import StratifiedShuffleSplit

from fairpca._labels import label_text
from fairpca._optional import require
from fairpca._random import legacy_generator
from fairpca._validation import Groups, check_choice, check_groups
from fairpca.metrics._readers import (
    FAMILIES,
    LinearRule,
    Rows,
    check_rows,
    check_train,
    make_reader,
    resolved,
    train_and_score,
)

__all__ = ["Readability", "Reading", "readability"]

#: Share of the rows on which the readers are judged where no other rows are given to train on.
_JUDGED_SHARE = 0.5
#: Up to this many groups every pair has readers of its own; beyond, each group is read against the rest.
_PAIRED_GROUPS = 4
#: Divisions at random that give the level; with 199 the 190th is exceeded by chance in at most 5 % of cases.
_DRAWS, _LEVEL = 199, 0.95
_COVERAGE = 0.95
#: Rows on which the RBF machine is trained at most; its time grows with their square and more.
_RBF_ROWS = 4000
#: Entries of a block of random divisions.
_BLOCK_ENTRIES = 4_000_000
#: With fewer units than this on the wrong side DeLong's variance has too little to go by.
_FEW = 3.0


@dataclass(frozen=True)
class Reading:
    """What one classifier reads: its held-out AUC for one pair of groups, with an interval."""

    family: str
    groups: tuple[Any, Any]
    auc: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class Readability:
    """How well the group can be read off a representation, on rows that the readers were not trained on.

    Attributes
    ----------
    auc : float
        The largest of ``readings``: 0.5 says nothing, 1 separates.
    low, high : float
        A 95 % interval for the largest AUC of these trained classifiers on new rows.
    level : float
        What random groups stay under in 95 % of cases.
    family : str
        Which family reads most.
    groups : tuple of two labels
        Which groups it tells apart; the second is "rest" where one group is read against all others.
    n_rows : int
        Rows on which the classifiers were judged.
    readings : tuple of Reading
    """

    auc: float
    low: float
    high: float
    level: float
    family: str
    groups: tuple[Any, Any]
    n_rows: int
    readings: tuple[Reading, ...]

    @property
    def readable(self) -> bool:
        """Whether more is read than random groups would show."""
        return self.auc > self.level

    def __repr__(self) -> str:
        first, second = map(label_text, self.groups)
        verdict = "more" if self.readable else "no more"
        return (
            f"Readability: {self.family} tells {first} from {second} with AUC {self.auc:.3f} ({self.low:.3f} to "
            f"{self.high:.3f}) on {self.n_rows} held-out rows, {verdict} than random groups (up to {self.level:.3f})"
        )

    def to_frame(self) -> Any:
        """One row per reading, as a pandas DataFrame."""
        pandas = require("pandas", "to_frame", otherwise="The attribute readings needs nothing.")
        names = ("family", "group", "against", "auc", "low", "high")
        rows = [(one.family, *one.groups, one.auc, one.low, one.high) for one in self.readings]
        return pandas.DataFrame(rows, columns=list(names))


def readability(
    scores: Any,
    sensitive_features: Any,
    *,
    train: tuple[Any, Any] | None = None,
    family: str = "boosting",
    clusters: Any = None,
    random_state: Any = None,
) -> Readability:
    """How well a strong classifier reads the group off a representation, on rows it was not trained on.

    The AUC is the probability that the classifier's score is larger for a random row of one group than for one of the
    other. It is measured on held-out rows, with an interval and with the level that random groups reach.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_components)
        The representation.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The groups. Up to four: every pair, of which the largest AUC counts. More: each against the rest.
    train : tuple (scores, sensitive_features), optional
        Other rows to train on, for example those on which the projection was fitted; then all of ``scores`` are
        judged. Without it half of the rows are trained on, the other half judged.
    family : {"boosting", "linear", "rbf", "all"}, default="boosting"
        Who reads: gradient boosting (``HistGradientBoostingClassifier``); the half-space that tells the groups apart
        best, by a search over directions and thresholds; a support vector machine with the RBF kernel (trained on at
        most 4000 rows); or all three, of which the largest AUC counts.
    clusters : array-like of shape (n_samples,), optional
        Rows that belong together, such as those of one person. They stay on one side of the division, and interval and
        level count clusters instead of rows. All rows of a cluster must have the same group.
    random_state : int, RandomState or None
        For the division, the readers and the level; None is reproducible too.

    Returns
    -------
    Readability
        ``auc``, ``low``, ``high``, ``level``, and the readings behind them.

    See Also
    --------
    adversary_gap : The measure of the papers.
    mmd2_test : A distance between the groups' distributions, which needs no classifier.

    Notes
    -----
    *Interval.* It is about the classifiers as they were trained; others might read more. Each AUC has DeLong's
    variance, summed over clusters (Obuchowski 1997), and an interval on the logit scale; next to 0 and 1, where that
    variance vanishes, the one of Newcombe (2006) instead. For the largest of J readings, ``high`` is the largest upper
    end (it misses the largest AUC only if that reading's own interval does), and ``low`` the largest lower end at the
    error ``0.025 / J``: a lower end above the largest AUC must be above its own.

    *Level.* Given the trained classifiers, all divisions of the judged rows into groups of these sizes are equally
    likely if the group is random. 199 of them are drawn, the same for all readings, and the largest AUC of each is
    noted; the 190th smallest is exceeded by chance in at most 5 % of cases, whatever the sizes.

    An AUC below the level is no proof that nothing can be read: it says that these classifiers did not.

    References
    ----------
    DeLong, DeLong and Clarke-Pearson (1988). Comparing the areas under two or more correlated receiver operating
    characteristic curves. Biometrics.

    Obuchowski (1997). Nonparametric analysis of clustered ROC curve data. Biometrics.

    Newcombe (2006). Confidence intervals for an effect size measure based on the Mann-Whitney statistic, part 2.
    Statistics in Medicine.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.metrics import readability
    >>> rng = np.random.default_rng(0)
    >>> groups = np.repeat(["a", "b"], 300)
    >>> Z = rng.normal(size=(600, 2)) * np.where(groups == "b", 3.0, 1.0)[:, None]  # equal means
    >>> found = readability(Z, groups)
    >>> found.auc > 0.75 > found.level
    True
    >>> readability(Z, rng.permutation(groups)).readable
    False
    """
    families = FAMILIES if check_choice("family", family, (*FAMILIES, "all")) == "all" else (family,)
    rng = legacy_generator(random_state)
    judged = check_rows(scores, sensitive_features)
    units = _check_clusters(clusters, judged[1])
    if train is None:
        others, judged, units = _divide(judged, units, rng)
    else:
        others = check_train(train, judged)
    readers = list(_read(others, judged, families, rng))
    codes = judged[1].codes
    parts = [reader.judge(codes, units) for reader in readers]
    readings = tuple(
        Reading(reader.family, reader.labels, *_interval(*part, _COVERAGE))
        for reader, part in zip(readers, parts, strict=True)
    )
    low = max(_interval(*part, 1.0 - (1.0 - _COVERAGE) / len(parts))[1] for part in parts)
    most = max(readings, key=lambda reading: reading.auc)
    return Readability(
        auc=most.auc,
        low=low,
        high=max(reading.high for reading in readings),
        level=_level(readers, codes, units, rng),
        family=most.family,
        groups=most.groups,
        n_rows=len(codes),
        readings=readings,
    )


def _check_clusters(clusters: Any, groups: Groups) -> np.ndarray:
    """The cluster of each row as an index; without clusters every row is one."""
    n = len(groups.codes)
    if clusters is None:
        return np.arange(n)
    if np.ndim(clusters) != 1 or len(clusters) != n:
        raise ValueError(f"clusters has shape {np.shape(clusters)}, but scores has {n} rows: give one per row.")
    units = check_groups(clusters, n).codes.astype(np.intp)
    of_unit = _codes_of_units(groups.codes, units)
    mixed = np.flatnonzero(of_unit[units] != groups.codes)
    if len(mixed):
        raise ValueError(
            f"clusters: the rows of cluster {np.asarray(clusters)[mixed[0]]!r} belong to several groups, so that it "
            "cannot be given to one at random; use clusters within which sensitive_features is constant."
        )
    return units


def _codes_of_units(codes: np.ndarray, units: np.ndarray) -> np.ndarray:
    """The group of each cluster: that of one of its rows."""
    found = np.empty(units.max() + 1, dtype=np.intp)
    found[units] = codes
    return found


def _divide(rows: Rows, units: np.ndarray, rng: np.random.RandomState) -> tuple[Rows, Rows, np.ndarray]:
    """Rows to train on and rows to judge, clusters whole and groups in proportion; and the clusters of the latter."""
    Z, groups = rows
    of_unit = _codes_of_units(groups.codes, units)
    if np.bincount(of_unit).min() < 2:
        raise ValueError(
            "A group in sensitive_features has a single row or cluster, which cannot be both trained on and judged; "
            "give other rows as train, or merge small groups."
        )
    splitter = StratifiedShuffleSplit(1, test_size=_JUDGED_SHARE, random_state=rng)
    _, held_out = next(splitter.split(of_unit, of_unit))
    judged = np.isin(units, held_out)
    parts = [(Z[mask], Groups(groups.labels, groups.codes[mask])) for mask in (~judged, judged)]
    return parts[0], parts[1], np.unique(units[judged], return_inverse=True)[1]


class _Reader:
    """The score that a trained classifier gives to each judged row, for one group against another or the rest."""

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
        of_second = _share_below(below, above)
        of_first = 1.0 - _share_below(above, below)
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
        first, second = self._members(divisions[:, self._order])
        of_first, of_second = (np.add.reduceat(part, self._ties, axis=1, dtype=float) for part in (first, second))
        below = np.cumsum(of_first, axis=1) - 0.5 * of_first
        return (below * of_second).sum(axis=1) / (of_first.sum(axis=1) * of_second.sum(axis=1))


def _share_below(values: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """The share of the values below each threshold, equal ones counting half."""
    ordered = np.sort(values)
    sides = [np.searchsorted(ordered, thresholds, side=side) for side in ("left", "right")]
    return 0.5 * (sides[0] + sides[1]) / len(values)


def _read(others: Rows, judged: Rows, families: tuple[str, ...], rng: np.random.RandomState) -> Iterator[_Reader]:
    labels = judged[1].labels
    for first, second in _contrasts(len(labels)):
        names = (labels[first], "rest" if second is None else labels[second])
        rows = np.ones(len(others[0]), dtype=bool) if second is None else np.isin(others[1].codes, (first, second))
        train, Z = resolved(others[0][rows], judged[0])
        target = others[1].codes[rows] != first
        for family in families:
            scores = _scores_by(family, train, target, Z, rng) if Z.shape[1] else np.zeros(len(Z))
            yield _Reader(family, names, (first, second), scores)


def _contrasts(n_groups: int) -> list[tuple[int, int | None]]:
    if n_groups <= _PAIRED_GROUPS:
        return list(combinations(range(n_groups), 2))
    return [(a, None) for a in range(n_groups)]


def _scores_by(
    family: str, train: np.ndarray, target: np.ndarray, Z: np.ndarray, rng: np.random.RandomState
) -> np.ndarray:
    if family == "rbf" and len(train) > _RBF_ROWS:
        splitter = StratifiedShuffleSplit(1, train_size=_RBF_ROWS, random_state=rng)
        kept, _ = next(splitter.split(train, target))
        train, target = train[kept], target[kept]
    reader = make_reader(family, rng.randint(2**31))
    scores = train_and_score(reader, train, target, Z)
    if isinstance(reader, LinearRule) and _rule_beats_score(reader, train, target):
        return (scores > 0).astype(float)
    return scores


def _rule_beats_score(reader: LinearRule, train: np.ndarray, target: np.ndarray) -> bool:
    """Whether the half-space orders the training rows better than the distance from its boundary does."""
    scores = reader.decision_function(train)
    return 0.5 * (1.0 + reader.gap_) > _share_below(scores[~target], scores[target]).mean()


def _interval(auc: float, error: float, smaller: int, coverage: float) -> tuple[float, float, float]:
    """AUC and the two ends of an interval."""
    z = float(ndtri(0.5 + 0.5 * coverage))
    if min(auc, 1.0 - auc) * smaller < _FEW:
        return auc, _newcombe(auc, smaller, z), _newcombe(auc, smaller, -z)
    half = z * error / (auc * (1.0 - auc))
    return auc, float(expit(logit(auc) - half)), float(expit(logit(auc) + half))


def _newcombe(auc: float, size: int, z: float) -> float:
    """The AUC that lies z standard errors (Hanley and McNeil's, both groups of this size) below the given one."""

    def departure(value: float) -> float:
        shape = (1.0 - value) / (2.0 - value) + value / (1.0 + value)
        variance = value * (1.0 - value) * (1.0 + (size - 1) * shape) / size**2
        return auc - value - z * np.sqrt(variance)

    edge = 1e-9
    ends = (edge, min(auc, 1.0 - edge)) if z > 0 else (max(auc, edge), 1.0 - edge)
    return float(brentq(departure, *ends)) if departure(ends[0]) * departure(ends[1]) < 0 else float(np.round(ends[0]))


def _level(readers: list[_Reader], codes: np.ndarray, units: np.ndarray, rng: np.random.RandomState) -> float:
    """The quantile of the largest AUC over random assignments of the clusters to the groups."""
    of_unit = _codes_of_units(codes, units)
    size = max(_BLOCK_ENTRIES // len(codes), 1)
    largest = []
    for start in range(0, _DRAWS, size):
        draws = range(start, min(start + size, _DRAWS))
        divisions = np.stack([rng.permutation(of_unit)[units] for _ in draws])
        largest.append(np.max([reader.auc(divisions) for reader in readers], axis=0))
    ordered = np.sort(np.concatenate(largest))
    return float(ordered[int(np.ceil(_LEVEL * (_DRAWS + 1))) - 1])
