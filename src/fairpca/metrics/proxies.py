"""Which features reveal the group: how well each one predicts it on held-out rows, compared with chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairpca._validation import seed_from
from fairpca.metrics._auc import JudgedScores, auc_interval, contrasts, joint_levels, random_largest
from fairpca.metrics._readers import Rows, check_rows, rows_to_train_and_judge

__all__ = ["Proxies", "Proxy", "proxies"]

_COVERAGE = 0.95
#: A feature with more different values is divided into this many bins of equal size.
_PARTS = 32
#: Pseudo-rows added to every bin, in the proportions of all rows: a bin with few rows is not reliable.
_PRIOR_ROWS = 2.0


@dataclass(frozen=True)
class Proxy:
    """How well one feature alone predicts the group: its held-out AUC, with a confidence interval, and the groups.

    Attributes
    ----------
    feature : str
        Its name.
    auc : float
        Held-out AUC of predicting the group from this feature alone.
    low, high : float
        A confidence interval.
    groups : tuple of two labels
        The groups it distinguishes.

    See Also
    --------
    proxies : Computes them for all features.

    Examples
    --------
    >>> from fairpca.metrics import Proxy
    >>> Proxy("age", auc=0.6, low=0.55, high=0.65, groups=("female", "male")).feature
    'age'
    """

    feature: str
    auc: float
    low: float
    high: float
    groups: tuple[Any, Any]


@dataclass(frozen=True, repr=False)
class Proxies:
    """Features by how well each one alone predicts the group, the strongest first.

    Attributes
    ----------
    features : tuple of Proxy
        All features, by decreasing AUC.
    level : float
        The 95 % quantile of the largest AUC of all features over random groups.
    n_rows : int
        Number of test rows.
    draws : ndarray of shape (199,)
        The largest AUC of all features for each of the random groups.

    See Also
    --------
    proxies : Computes them.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.metrics import proxies
    >>> credit = load_german_credit()
    >>> X, sex, names = credit.data[:, :8], credit.sensitive_features, credit.feature_names[:8]
    >>> found = proxies(X, sensitive_features=sex, feature_names=names, random_state=0)
    >>> len(found.features), found.n_rows
    (8, 500)
    """

    features: tuple[Proxy, ...]
    level: float
    n_rows: int
    draws: np.ndarray = field(repr=False, compare=False)

    @property
    def found(self) -> tuple[Proxy, ...]:
        """Features whose AUC exceeds the level that the best feature reaches with random groups."""
        return tuple(feature for feature in self.features if feature.auc > self.level)

    def __repr__(self) -> str:
        lines = [
            f"{len(self.found)} of {len(self.features)} features tell the groups apart better than random groups "
            f"(AUC up to {self.level:.3f}) on {self.n_rows} held-out rows"
        ]
        lines += [f"{one.feature}: AUC {one.auc:.3f} ({one.low:.3f} to {one.high:.3f})" for one in self.found[:10]]
        return "\n".join(lines)


def proxies(
    X: Any,
    *,
    sensitive_features: Any,
    train: tuple[Any, Any] | None = None,
    feature_names: Sequence[str] | None = None,
    clusters: Any = None,
    random_state: Any = None,
) -> Proxies:
    """Find the features that reveal the group, each on its own.

    Each feature is binned. The odds of the groups in each bin are estimated on the training rows and used as a score on
    the test rows. Its AUC is the probability that the score is larger for a random row of one group than for a random
    row of the other: 0.5 is no information, 1 is perfect separation.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The groups. Up to four: all pairs, and the largest AUC is reported. More: one-vs-rest.
    train : tuple (X, sensitive_features), optional
        Separate training rows; then all of ``X`` are test rows. Without it, half of the rows are used for training.
    feature_names : sequence of str, optional
        Default: the columns of a data frame, otherwise ``column 0``, ``column 1`` and so on.
    clusters : array-like of shape (n_samples,), optional
        Rows that belong together, such as those of one person; see :func:`readability`.
    random_state : int, RandomState or None
        For the split and the level; None is a fixed seed.

    Returns
    -------
    Proxies
        ``features`` by decreasing AUC, ``found`` for those above the level of random groups.

    See Also
    --------
    readability : How well all columns together predict the group.

    Notes
    -----
    Each 95 % confidence interval is for one feature. The level is for the largest AUC of all features, so with random
    groups some feature exceeds it in at most 5 % of cases. Features that reveal the group only in combination are not
    found.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.metrics import proxies
    >>> rng = np.random.default_rng(0)
    >>> groups = rng.integers(0, 2, 400)
    >>> X = np.column_stack([rng.normal(size=400), rng.normal(size=400) + 2 * groups])
    >>> [one.feature for one in proxies(X, sensitive_features=groups, feature_names=["age", "height"]).found]
    ['height']
    """
    rows = check_rows(X, sensitive_features)
    names = _names(X, feature_names, rows[0].shape[1])
    seed = seed_from(random_state)
    others, judged, units = rows_to_train_and_judge(rows, train, clusters, np.random.RandomState(seed))
    codes = judged[1].codes
    readers = [list(_read(j, others, judged)) for j in range(len(names))]
    found = [_proxy(name, of_feature, codes, units) for name, of_feature in zip(names, readers, strict=True)]
    draws = random_largest([one for of_feature in readers for one in of_feature], codes, units, seed)
    found.sort(key=lambda one: -one.auc)
    level = float(joint_levels(np.array([found[0].auc]), draws[:, None])[0])
    return Proxies(tuple(found), level, len(codes), draws)


def _names(X: Any, given: Sequence[str] | None, count: int) -> list[str]:
    if given is None:
        given = list(X.columns) if hasattr(X, "columns") else [f"column {j}" for j in range(count)]
    if len(given) != count:
        raise ValueError(f"feature_names has {len(given)} entries, but X has {count} columns: pass one per column.")
    return [str(name) for name in given]


def _proxy(name: str, readers: list[JudgedScores], codes: np.ndarray, units: np.ndarray) -> Proxy:
    """The largest AUC over pairs of groups."""
    judged = [(auc_interval(*reader.judge(codes, units), _COVERAGE), reader.labels) for reader in readers]
    (auc, low, high), labels = max(judged, key=lambda one: one[0][0])
    return Proxy(name, auc, low, high, labels)


def _read(j: int, others: Rows, judged: Rows) -> Iterator[JudgedScores]:
    labels = judged[1].labels
    parts, n_parts = _parts(others[0][:, j], judged[0][:, j])
    counts = np.zeros((len(labels), n_parts))
    np.add.at(counts, (others[1].codes, parts[0]), 1.0)
    for first, second in contrasts(len(labels)):
        of_first = counts[first]
        of_second = counts.sum(axis=0) - of_first if second is None else counts[second]
        odds = _shares(of_second, counts.sum()) / _shares(of_first, counts.sum())
        names = (labels[first], "rest" if second is None else labels[second])
        yield JudgedScores("feature", names, (first, second), odds[parts[1]])


def _shares(counts: np.ndarray, total: float) -> np.ndarray:
    """The shares of a group's rows in each bin; bins with few rows are shrunk towards odds of 1."""
    size = counts.sum()
    return (counts + _PRIOR_ROWS * size / total) / size


def _parts(trained: np.ndarray, judged: np.ndarray) -> tuple[list[np.ndarray], int]:
    """The bin of each row's value, for training and test rows, and the number of bins."""
    values = np.unique(trained)
    if len(values) > _PARTS:
        values = np.unique(np.quantile(trained, np.linspace(0, 1, _PARTS + 1)[:-1], method="lower"))
    edges = values[1:]
    return [np.searchsorted(edges, column, side="right") for column in (trained, judged)], len(values)
