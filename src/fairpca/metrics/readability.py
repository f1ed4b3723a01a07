"""Whether the group can be read off a representation: the held-out AUC of a strong classifier, beside chance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from fairpca._labels import label_text
from fairpca._optional import require
from fairpca._validation import check_choice, legacy_generator
from fairpca.metrics._auc import (
    JudgedScores,
    Reading,
    auc_interval,
    contrasts,
    level_of_random_groups,
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
#: Rows on which the RBF machine is trained at most; its time grows with their square and more.
_RBF_ROWS = 4000


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
    others, judged, units = rows_to_train_and_judge(check_rows(scores, sensitive_features), train, clusters, rng)
    readers = list(_read(others, judged, families, rng))
    codes = judged[1].codes
    parts = [reader.judge(codes, units) for reader in readers]
    readings = tuple(
        Reading(reader.family, reader.labels, *auc_interval(*part, _COVERAGE))
        for reader, part in zip(readers, parts, strict=True)
    )
    low = max(auc_interval(*part, 1.0 - (1.0 - _COVERAGE) / len(parts))[1] for part in parts)
    most = max(readings, key=lambda reading: reading.auc)
    return Readability(
        auc=most.auc,
        low=low,
        high=max(reading.high for reading in readings),
        level=level_of_random_groups(readers, codes, units, rng),
        family=most.family,
        groups=most.groups,
        n_rows=len(codes),
        readings=readings,
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
    """Whether the half-space orders the training rows better than the distance from its boundary does."""
    scores = reader.decision_function(train)
    return 0.5 * (1.0 + reader.gap_) > share_below(scores[~target], scores[target]).mean()
