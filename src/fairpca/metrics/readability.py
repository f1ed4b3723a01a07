"""Whether a representation reveals the group: the held-out AUC of a strong classifier, compared with chance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from fairpca._labels import label_text
from fairpca._optional import require
from fairpca._validation import check_choice, seed_from
from fairpca.metrics._auc import (
    JudgedScores,
    Reading,
    auc_interval,
    contrasts,
    joint_levels,
    random_largest,
    share_below,
)
from fairpca.metrics._readers import (
    FAMILIES,
    LinearRule,
    Rows,
    check_rows,
    make_reader,
    resolved,
    rows_to_train_and_judge,
    train_and_score,
)

__all__ = ["Readability", "Reading", "readability"]

_COVERAGE = 0.95
#: Maximum number of training rows for the RBF kernel; training time grows at least quadratically.
_RBF_ROWS = 4000


@dataclass(frozen=True, repr=False)
class Readability:
    """How well classifiers predict the group from a representation, on held-out rows.

    Attributes
    ----------
    auc : float
        The largest of ``readings``: 0.5 is no information, 1 is perfect separation.
    low, high : float
        A 95 % confidence interval for the largest AUC of these trained classifiers on new rows.
    level : float
        The 95 % quantile of the largest AUC over random groups.
    family : str
        The family with the largest AUC.
    groups : tuple of two labels
        The groups it distinguishes; the second is "rest" for one-vs-rest.
    n_rows : int
        Number of test rows.
    readings : tuple of Reading
    draws : ndarray of shape (199,)
        The largest AUC of each of the random groups: the same groups for any scores of the same rows and seed.

    See Also
    --------
    readability : Computes it.

    Examples
    --------
    >>> from fairpca.datasets import make_same_moments
    >>> from fairpca.metrics import readability
    >>> X, groups = make_same_moments(200, random_state=0)
    >>> found = readability(X, sensitive_features=groups, family="linear", random_state=0)
    >>> found.family, found.low <= found.auc <= found.high
    ('linear', True)
    """

    auc: float
    low: float
    high: float
    level: float
    family: str
    groups: tuple[Any, Any]
    n_rows: int
    readings: tuple[Reading, ...]
    draws: np.ndarray = field(repr=False, compare=False)

    @property
    def readable(self) -> bool:
        """Whether the AUC exceeds the level of random groups."""
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
        pandas = require("pandas", "to_frame", otherwise="The attribute readings is available without it.")
        names = ("family", "group", "against", "auc", "low", "high")
        rows = [(one.family, *one.groups, one.auc, one.low, one.high) for one in self.readings]
        return pandas.DataFrame(rows, columns=list(names))


def readability(
    X: Any,
    *,
    sensitive_features: Any,
    train: tuple[Any, Any] | None = None,
    family: str = "boosting",
    clusters: Any = None,
    random_state: Any = None,
) -> Readability:
    """How well a strong classifier predicts the group from a representation, on held-out rows.

    The AUC is the probability that the classifier's score is larger for a random row of one group than for a random row
    of the other. It is measured on held-out rows, with a confidence interval and the level that random groups reach.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_components)
        The representation.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The groups. Up to four: all pairs, and the largest AUC is reported. More: one-vs-rest.
    train : tuple (X, sensitive_features), optional
        Separate training rows, for example those on which the projection was fitted; then all of ``X`` are test
        rows. Without it, half of the rows are used for training and the other half for testing.
    family : {"boosting", "linear", "rbf", "all"}, default="boosting"
        The classifier: gradient boosting (``HistGradientBoostingClassifier``); the half-space that best separates the
        groups, by a search over directions and thresholds; a support vector machine with the RBF kernel (trained on at
        most 4000 rows); or all three, and the largest AUC is reported.
    clusters : array-like of shape (n_samples,), optional
        Rows that belong together, such as those of one person. They are kept on the same side of the split, and the
        interval and the level are based on clusters instead of rows. All rows of a cluster must have the same group.
    random_state : int, RandomState or None
        For the split, the classifiers and the level; None is a fixed seed.

    Returns
    -------
    Readability
        ``auc``, ``low``, ``high``, ``level``, and the readings behind them.

    See Also
    --------
    adversary_gap : The measure used in the papers.
    mmd2_test : A distance between the groups' distributions, which needs no classifier.

    Notes
    -----
    *Interval.* It applies to the classifiers as trained; others might predict better. Each AUC has DeLong's
    variance, summed over clusters (Obuchowski 1997), and an interval on the logit scale; close to 0 and 1, where that
    variance vanishes, the interval of Newcombe (2006) is used instead. For the largest of J readings, ``high`` is the
    largest upper end (it misses the largest AUC only if that reading's own interval does), and ``low`` is the largest
    lower end at the error ``0.025 / J``: a lower end above the largest AUC must be above its own.

    *Level.* Given the trained classifiers, all divisions of the judged rows into groups of these sizes are equally
    likely if the group is random. 199 of them are drawn, the same for all readings, and the largest AUC of each is
    recorded; the 190th smallest is exceeded by chance in at most 5 % of cases, whatever the sizes.

    An AUC below the level does not prove that the group cannot be predicted, only that these classifiers did not.

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
    >>> found = readability(Z, sensitive_features=groups)
    >>> found.auc > 0.75 > found.level
    True
    >>> readability(Z, sensitive_features=rng.permutation(groups)).readable
    False
    """
    families = FAMILIES if check_choice("family", family, (*FAMILIES, "all")) == "all" else (family,)
    seed = seed_from(random_state)
    rng = np.random.RandomState(seed)
    others, judged, units = rows_to_train_and_judge(check_rows(X, sensitive_features), train, clusters, rng)
    readers = list(_read(others, judged, families, rng))
    codes = judged[1].codes
    parts = [reader.judge(codes, units) for reader in readers]
    readings = tuple(
        Reading(reader.family, reader.labels, *auc_interval(*part, _COVERAGE))
        for reader, part in zip(readers, parts, strict=True)
    )
    low = max(auc_interval(*part, 1.0 - (1.0 - _COVERAGE) / len(parts))[1] for part in parts)
    most = max(readings, key=lambda reading: reading.auc)
    draws = random_largest(readers, codes, units, seed)
    return Readability(
        auc=most.auc,
        low=low,
        high=max(reading.high for reading in readings),
        level=float(joint_levels(np.array([most.auc]), draws[:, None])[0]),
        family=most.family,
        groups=most.groups,
        n_rows=len(codes),
        readings=readings,
        draws=draws,
    )


def _read(others: Rows, judged: Rows, families: tuple[str, ...], rng: np.random.RandomState) -> Iterator[JudgedScores]:
    labels = judged[1].labels
    for first, second in contrasts(len(labels)):
        names = (labels[first], "rest" if second is None else labels[second])
        rows = np.ones(len(others[0]), dtype=bool) if second is None else np.isin(others[1].codes, (first, second))
        train, Z = resolved(others[0][rows], judged[0])
        target = others[1].codes[rows] != first
        for family in families:
            scores = _scores_by(family, train, target, Z, rng) if Z.shape[1] else np.zeros(len(Z))
            yield JudgedScores(family, names, (first, second), scores)


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
    """Whether the half-space ranks the training rows better than the distance from its boundary does."""
    scores = reader.decision_function(train)
    return 0.5 * (1.0 + reader.gap_) > share_below(scores[~target], scores[target]).mean()
