"""Which features give the group away: what each alone tells about it, on held-out rows, beside chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._validation import legacy_generator
from fairpca.metrics._auc import JudgedScores, auc_interval, contrasts, level_of_random_groups
from fairpca.metrics._readers import Rows, check_rows, rows_to_train_and_judge

__all__ = ["Proxies", "Proxy", "proxies"]

_COVERAGE = 0.95
#: A feature of more different values is cut into so many parts of equal size.
_PARTS = 32
#: Rows that are added to every part, in the proportions of all: a part of few rows says little.
_PRIOR_ROWS = 2.0


@dataclass(frozen=True)
class Proxy:
    """What one feature alone tells about the group: its held-out AUC, with an interval, and for which groups."""

    feature: str
    auc: float
    low: float
    high: float
    groups: tuple[Any, Any]


@dataclass(frozen=True, repr=False)
class Proxies:
    """Features by how much each alone tells about the group, the strongest first.

    Attributes
    ----------
    features : tuple of Proxy
        All of them, by falling AUC.
    level : float
        What the largest AUC of all features stays under in 95 % of random divisions into groups.
    n_rows : int
        Rows on which the features were judged.
    """

    features: tuple[Proxy, ...]
    level: float
    n_rows: int

    @property
    def found(self) -> tuple[Proxy, ...]:
        """Those that tell more than the most telling feature of random groups does."""
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
    sensitive_features: Any,
    *,
    train: tuple[Any, Any] | None = None,
    feature_names: Sequence[str] | None = None,
    clusters: Any = None,
    random_state: Any = None,
) -> Proxies:
    """Find the features from which the group can be read, each taken alone.

    Each feature is cut into parts; on the training rows the odds of the groups in each part are counted, and on the
    other rows these odds are used as a score. Its AUC is the probability that the score is larger for a random row of
    one group than for one of the other: 0.5 says nothing, 1 separates.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The groups. Up to four: every pair, of which the largest AUC counts. More: each against the rest.
    train : tuple (X, sensitive_features), optional
        Other rows to count on; then all of ``X`` are judged. Without it half of the rows are counted on.
    feature_names : sequence of str, optional
        Default: the columns of a data frame, else ``column 0``, ``column 1`` and so on.
    clusters : array-like of shape (n_samples,), optional
        Rows that belong together, such as those of one person; see :func:`readability`.
    random_state : int, RandomState or None
        For the division and the level; None is reproducible too.

    Returns
    -------
    Proxies
        ``features`` by falling AUC, ``found`` for those beyond the level of random groups.

    See Also
    --------
    readability : What all columns together tell.

    Notes
    -----
    Each interval is that of one feature, at 95 %. The level is that of the largest AUC of all features, so with random
    groups some feature exceeds it in at most 5 % of cases. What a feature tells only together with others is not seen.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.metrics import proxies
    >>> rng = np.random.default_rng(0)
    >>> groups = rng.integers(0, 2, 400)
    >>> X = np.column_stack([rng.normal(size=400), rng.normal(size=400) + 2 * groups])
    >>> [one.feature for one in proxies(X, groups, feature_names=["age", "height"]).found]
    ['height']
    """
    rows = check_rows(X, sensitive_features)
    names = _names(X, feature_names, rows[0].shape[1])
    rng = legacy_generator(random_state)
    others, judged, units = rows_to_train_and_judge(rows, train, clusters, rng)
    codes = judged[1].codes
    readers = [list(_read(j, others, judged)) for j in range(len(names))]
    found = [_proxy(name, of_feature, codes, units) for name, of_feature in zip(names, readers, strict=True)]
    level = level_of_random_groups([one for of_feature in readers for one in of_feature], codes, units, rng)
    return Proxies(tuple(sorted(found, key=lambda one: -one.auc)), level, len(codes))


def _names(X: Any, given: Sequence[str] | None, count: int) -> list[str]:
    if given is None:
        given = list(X.columns) if hasattr(X, "columns") else [f"column {j}" for j in range(count)]
    if len(given) != count:
        raise ValueError(f"feature_names has {len(given)} entries, but X has {count} columns: give one per column.")
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
    """Of the rows of a group, those in each part; a part of few rows is drawn towards odds of 1."""
    size = counts.sum()
    return (counts + _PRIOR_ROWS * size / total) / size


def _parts(trained: np.ndarray, judged: np.ndarray) -> tuple[list[np.ndarray], int]:
    """The part of each row's value, for training and judged rows, and the number of parts."""
    values = np.unique(trained)
    if len(values) > _PARTS:
        values = np.unique(np.quantile(trained, np.linspace(0, 1, _PARTS + 1)[:-1], method="lower"))
    edges = values[1:]
    return [np.searchsorted(edges, column, side="right") for column in (trained, judged)], len(values)
