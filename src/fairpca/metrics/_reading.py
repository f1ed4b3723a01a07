"""Reading the group off columns: training and test rows, the scores of a classifier, their AUC, and that of chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtri
from scipy.stats import ks_2samp
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import check_array
from threadpoolctl import threadpool_limits

from fairpca._labels import label_texts
from fairpca._validation import Groups, check_groups, check_several_groups, rng_for, split_off_groups

__all__ = [
    "Contrast",
    "Reader",
    "Rows",
    "auc_interval",
    "check_rows",
    "check_train",
    "contrasts",
    "joint_levels",
    "random_aucs",
    "rows_to_train_and_judge",
    "share_below",
    "train_and_score",
]

#: Share of test rows if no separate training rows are given.
_JUDGED_SHARE = 0.5
#: A coordinate whose spread is this small relative to the largest is rounding error; standardising would inflate it.
_COORDINATE_ROUNDING = 1e-10
#: Up to this many groups, classifiers are trained for every pair; with more, for each group against the rest.
_PAIRED_GROUPS = 4
#: Number of random assignments for the level; of 199, the 190th is exceeded by chance in at most 5 % of cases.
_DRAWS, _LEVEL = 199, 0.95
#: With fewer misordered units than this, DeLong's variance is not reliable.
_FEW = 3.0

#: Scores and groups of the same rows.
Rows = tuple[np.ndarray, Groups]
#: The codes of two groups to tell apart; the second is None for all the others.
Contrast = tuple[int, int | None]


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
    """Training rows, test rows, and the clusters of the test rows.

    Without ``train`` the rows are halved, stratified by group and with clusters kept whole.
    """
    Z, groups = rows
    units = _check_clusters(clusters, groups)
    if train is not None:
        return check_train(train, rows), rows, units
    of_unit = _codes_of_units(groups.codes, units)
    if np.bincount(of_unit).min() < 2:
        raise ValueError(
            "A group in sensitive_features has a single row or cluster, which cannot be used for both training and "
            "testing; pass separate rows as train, or merge small groups."
        )
    splitter = StratifiedShuffleSplit(1, test_size=_JUDGED_SHARE, random_state=rng)
    judged = np.isin(units, next(splitter.split(of_unit, of_unit))[1])
    parts = [(Z[mask], Groups(groups.labels, groups.codes[mask])) for mask in (~judged, judged)]
    return parts[0], parts[1], np.unique(units[judged], return_inverse=True)[1]


def _check_clusters(clusters: Any, groups: Groups) -> np.ndarray:
    """The cluster of each row as an index; without clusters, each row is its own cluster."""
    n = len(groups.codes)
    if clusters is None:
        return np.arange(n)
    if np.ndim(clusters) != 1 or len(clusters) != n:
        raise ValueError(f"clusters has shape {np.shape(clusters)}, but X has {n} rows: pass one per row.")
    units = check_groups(clusters, n).codes.astype(np.intp)
    mixed = np.flatnonzero(_codes_of_units(groups.codes, units)[units] != groups.codes)
    if len(mixed):
        raise ValueError(
            f"clusters: the rows of cluster {np.asarray(clusters)[mixed[0]]!r} belong to several groups, so it "
            "cannot be assigned to one at random; use clusters within which sensitive_features is constant."
        )
    return units


def _codes_of_units(codes: np.ndarray, units: np.ndarray) -> np.ndarray:
    """The group of each cluster: that of one of its rows."""
    found = np.empty(units.max() + 1, dtype=np.intp)
    found[units] = codes
    return found


def contrasts(n_groups: int) -> list[Contrast]:
    """Which groups to tell apart: every pair if there are few groups, otherwise each against the rest."""
    if n_groups <= _PAIRED_GROUPS:
        return list(combinations(range(n_groups), 2))
    return [(a, None) for a in range(n_groups)]


def train_and_score(reader: Any, train: Rows, contrast: Contrast, Z: np.ndarray) -> np.ndarray:
    """Train a classifier on two groups, and return its scores of other rows: larger where the second is more likely.

    Columns that are only rounding error are left out, and rounding is removed from the others: a classifier that uses
    only the order of values would take it for information. In a single thread: the threads of boosting synchronize so
    often that on a busy machine they mostly wait for each other (2000 rows: seconds instead of 0.3).
    """
    first, second = contrast
    rows = np.ones(len(train[0]), dtype=bool) if second is None else np.isin(train[1].codes, (first, second))
    X, target = train[0][rows], train[1].codes[rows] != first
    spread = X.std(axis=0)
    kept = spread > _COORDINATE_ROUNDING * spread.max(initial=0.0)
    if not kept.any():
        return np.zeros(len(Z))
    unit = _COORDINATE_ROUNDING * spread[kept]
    X, Z = (np.round(part[:, kept] / unit) * unit for part in (X, Z))
    with threadpool_limits(1, user_api="openmp"):
        reader.fit(X, target)
        return reader.decision_function(Z) if hasattr(reader, "decision_function") else reader.predict_proba(Z)[:, 1]


@dataclass(frozen=True)
class Reader:
    """The scores of the test rows by which two groups are told apart, and what they come from."""

    by: str
    contrast: Contrast
    scores: np.ndarray

    def judge(self, codes: np.ndarray, units: np.ndarray) -> tuple[float, float, int]:
        """AUC, its standard error, and the number of clusters in the smaller group."""
        first, second = self._members(codes)
        below, above = self.scores[first], self.scores[second]
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

    def distance(self, codes: np.ndarray) -> float:
        """How far the first group's distribution function of the scores is above that of the second, at most."""
        first, second = (self.scores[members] for members in self._members(codes))
        return float(ks_2samp(first, second, alternative="greater", method="asymp").statistic)

    def _members(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first = codes == self.contrast[0]
        return first, ~first if self.contrast[1] is None else codes == self.contrast[1]


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


def random_aucs(readers: Sequence[Reader], codes: np.ndarray, units: np.ndarray, seed: int) -> np.ndarray:
    """The AUC of every reader for 199 random assignments of the clusters to the groups, of shape (readers, 199).

    The assignments depend on the seed and the clusters only, so that they are the same for other scores of these rows.
    """
    rng, of_unit = rng_for(seed, "random groups"), _codes_of_units(codes, units)
    positions = [np.unique(reader.scores, return_inverse=True)[1] for reader in readers]
    found = np.empty((len(readers), _DRAWS))
    for i in range(_DRAWS):
        drawn = rng.permutation(of_unit)[units]
        members = [(drawn == a).astype(float) for a in range(int(codes.max()) + 1)]
        for j, (reader, position) in enumerate(zip(readers, positions, strict=True)):
            first, second = reader.contrast
            others = 1.0 - members[first] if second is None else members[second]
            found[j, i] = _auc(np.bincount(position, members[first]), np.bincount(position, others))
    return found


def _auc(first: np.ndarray, second: np.ndarray) -> float:
    """From how many rows of each group have each of the different scores, in ascending order; ties count half."""
    return float((np.cumsum(first) - 0.5 * first) @ second / (first.sum() * second.sum()))


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
    >>> from fairpca.metrics._reading import joint_levels
    >>> draws = np.arange(199.0)[:, None]
    >>> bool(abs(joint_levels(np.array([5.0]), draws)[0] - 189.0) < 1e-9)  # the 190th smallest
    True
    """
    everything = np.vstack([observed, draws])
    centre, scale = everything.mean(axis=0), everything.std(axis=0)
    units = np.divide(draws - centre, scale, out=np.zeros_like(draws, dtype=float), where=scale > 0)
    largest = np.sort(units.max(axis=1))
    return centre + scale * largest[min(int(np.ceil(_LEVEL * (len(draws) + 1))), len(draws)) - 1]
