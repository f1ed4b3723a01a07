"""Whether columns reveal the group: the held-out AUC of strong classifiers, or of single features, against chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import resample

from fairpca._display import fixed
from fairpca._frames import feature_names_of
from fairpca._labels import label_text
from fairpca._optional import require
from fairpca._validation import Groups, check_choice, seed_from, split_off_groups
from fairpca.metrics._half_space import HalfSpace
from fairpca.metrics._reading import (
    Contrast,
    Reader,
    auc_interval,
    check_rows,
    contrasts,
    joint_levels,
    random_aucs,
    rows_to_train_and_judge,
    train_and_score,
)

__all__ = ["Readability", "Reading", "adversary_gap", "half_space_gaps", "proxies", "readability"]

_FAMILIES = ("boosting", "linear", "rbf")
_COVERAGE = 0.95
#: Maximum number of training rows for the RBF kernel.
_RBF_ROWS = 4000
#: A feature with more different values is divided into this many bins of equal size.
_BINS = 32
#: Pseudo-rows added to every bin, in the proportions of all rows: a bin with few rows is not reliable.
_PRIOR_ROWS = 2.0
#: Readings that are written out.
_SHOWN = 10
#: The margins of a support vector machine are at +-1; scores that differ by less are its solver's rounding.
_SCORE_ROUNDING = 1e-6


@dataclass(frozen=True)
class Reading:
    """How well one classifier, or one feature, tells two groups apart on held-out rows.

    Attributes
    ----------
    by : str
        The family of the classifier, or the name of the feature.
    groups : tuple of two labels
        The groups it tells apart; the second is "rest" for one-vs-rest.
    auc : float
        Of held-out rows.
    low, high : float
        A confidence interval.

    See Also
    --------
    readability, proxies : Return readings of several classifiers or features.

    Examples
    --------
    >>> from fairpca.metrics import Reading
    >>> Reading("age", ("female", "male"), auc=0.6, low=0.55, high=0.65).by
    'age'
    """

    by: str
    groups: tuple[Any, Any]
    auc: float
    low: float
    high: float

    def __str__(self) -> str:
        values = ", ".join(f"{name} {fixed(getattr(self, name), 3)}" for name in ("auc", "low", "high"))
        return f"{self.by}: {' against '.join(map(label_text, self.groups))}, {values}"


@dataclass(frozen=True, repr=False)
class Readability:
    """How well classifiers, or single features, predict the group on held-out rows.

    Attributes
    ----------
    auc : float
        The largest of ``readings``: 0.5 is no information, 1 is perfect separation.
    low, high : float
        A 95 % confidence interval for the largest AUC of these trained classifiers on new rows.
    level : float
        The 95 % quantile of the largest AUC over random groups.
    by : str
        The classifier or feature with the largest AUC.
    groups : tuple of two labels
        The groups it tells apart; the second is "rest" for one-vs-rest.
    n_rows : int
        Number of test rows.
    readings : tuple of Reading
        Of :func:`proxies`: one per feature, by decreasing AUC.
    draws : ndarray of shape (199,)
        The largest AUC of each of the random groups: the same groups for any scores of the same rows and seed.

    See Also
    --------
    readability, proxies : Compute it.

    Examples
    --------
    >>> from fairpca.datasets import make_same_moments
    >>> from fairpca.metrics import readability
    >>> X, groups = make_same_moments(200, random_state=0)
    >>> found = readability(X, sensitive_features=groups, family="linear", random_state=0)
    >>> found.by, found.low <= found.auc <= found.high
    ('linear', True)
    """

    auc: float
    low: float
    high: float
    level: float
    by: str
    groups: tuple[Any, Any]
    n_rows: int
    readings: tuple[Reading, ...]
    draws: np.ndarray = field(repr=False, compare=False)

    @property
    def readable(self) -> bool:
        """Whether the AUC exceeds the level of random groups."""
        return self.auc > self.level

    @property
    def found(self) -> tuple[Reading, ...]:
        """The readings above the level that the largest one reaches with random groups."""
        return tuple(reading for reading in self.readings if reading.auc > self.level)

    def __repr__(self) -> str:
        first, second = map(label_text, self.groups)
        said = (
            f"Readability: {self.by} tells {first} from {second} with AUC {self.auc:.3f} ({self.low:.3f} to "
            f"{self.high:.3f}) on {self.n_rows} held-out rows, {'more' if self.readable else 'no more'} than random "
            f"groups (up to {self.level:.3f})"
        )
        if len(self.readings) == 1:
            return said
        return "\n".join([f"{said}; {len(self.found)} of {len(self.readings)} do", *map(str, self.found[:_SHOWN])])

    def to_frame(self) -> Any:
        """One row per reading, as a pandas DataFrame."""
        pandas = require("pandas", "to_frame", otherwise="The attribute readings is available without it.")
        rows = [(one.by, *one.groups, one.auc, one.low, one.high) for one in self.readings]
        return pandas.DataFrame(rows, columns=["by", "group", "against", "auc", "low", "high"])


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
    families = _FAMILIES if check_choice("family", family, (*_FAMILIES, "all")) == "all" else (family,)
    seed = seed_from(random_state)
    rng = np.random.RandomState(seed)
    train, judged, units = rows_to_train_and_judge(check_rows(X, sensitive_features), train, clusters, rng)
    readers = [
        Reader(one, contrast, train_and_score(_make_reader(one, rng.randint(2**31)), train, contrast, judged[0]))
        for contrast in contrasts(len(judged[1]))
        for one in families
    ]
    return _judged(readers, judged[1], units, seed)


def _make_reader(family: str, seed: int) -> Any:
    """An unfitted classifier of the family."""
    if family == "linear":
        return HalfSpace(random_state=seed)
    if family == "rbf":
        return make_pipeline(StandardScaler(), _Machine(class_weight="balanced", random_state=seed))
    return HistGradientBoostingClassifier(random_state=seed)


class _Machine(SVC):
    """Trained on at most 4000 rows: its time grows at least quadratically."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> _Machine:
        if len(X) > _RBF_ROWS:
            X, y = resample(X, y, replace=False, n_samples=_RBF_ROWS, stratify=y, random_state=self.random_state)
        return super().fit(X, y)


def _judged(readers: Sequence[Reader], groups: Groups, units: np.ndarray, seed: int) -> Readability:
    """Every reading with its interval, and the largest of them with the level that random groups reach."""
    parts = [reader.judge(groups.codes, units) for reader in readers]
    readings = tuple(
        Reading(one.by, _labels_of(one.contrast, groups), *auc_interval(*part, _COVERAGE))
        for one, part in zip(readers, parts, strict=True)
    )
    most = max(readings, key=lambda reading: reading.auc)
    draws = random_aucs(readers, groups.codes, units, seed).max(axis=0)
    return Readability(
        auc=most.auc,
        low=max(auc_interval(*part, 1.0 - (1.0 - _COVERAGE) / len(parts))[1] for part in parts),
        high=max(reading.high for reading in readings),
        level=float(joint_levels(np.array([most.auc]), draws[:, None])[0]),
        by=most.by,
        groups=most.groups,
        n_rows=len(groups.codes),
        readings=readings,
        draws=draws,
    )


def _labels_of(contrast: Contrast, groups: Groups) -> tuple[Any, Any]:
    first, second = contrast
    return groups.labels[first], "rest" if second is None else groups.labels[second]


def adversary_gap(
    X: Any,
    *,
    sensitive_features: Any,
    family: Any = "linear",
    train: tuple[Any, Any] | None = None,
    random_state: Any = None,
) -> float:
    """How well a rule trained to distinguish the groups separates them: Delta_A of Olfat and Aswani (2019).

    ``sup |P(h(z) <= t | a) - P(h(z) <= t | b)|`` over the functions h of a family and thresholds t: 0 if no function
    in the family distinguishes the groups, 1 if one separates them. The rule is found on training rows and evaluated on
    test rows; one that takes each group for the other there has the value 0. For more than two groups, the result is
    the largest over all pairs, each with its own rule.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_components)
        The representation.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The groups.
    family : {"linear", "rbf", "boosting"} or classifier, default="linear"
        The classifiers of :func:`readability`, or any of scikit-learn with a ``decision_function`` or
        ``predict_proba``. Of "linear", the half-space itself is evaluated, with the threshold found on the training
        rows; of the others, the largest difference between the groups' empirical distribution functions of their score.
    train : tuple (X, sensitive_features), optional
        Separate training rows, for example those on which the projection was fitted; then all of ``X`` are test
        rows. Without it, half of the rows are used for training. With the rows of ``X`` themselves the measure is that
        of equation (3) of Lee et al. (2022): with a flexible family it is large for any X.
    random_state : int, RandomState or None, default=None
        For the split and the classifier; None is a fixed seed.

    Returns
    -------
    float
        Between 0 and 1.

    See Also
    --------
    readability : A stronger classifier, with a confidence interval.

    Notes
    -----
    On n_a and n_b held-out rows even a random score reaches about ``0.63 sqrt(1 / n_a + 1 / n_b)``, and a
    rule whose threshold was chosen on the training rows ``0.20 sqrt(1 / n_a + 1 / n_b)`` on average.

    A linear support vector machine cannot replace the search over half-spaces: if two groups have equal means on the
    training rows, the best linear function under a smooth convex loss is constant, whatever else differs, and its gap
    of 0 is not informative. See :func:`readability` for a stronger classifier and a confidence interval.

    References
    ----------
    Olfat and Aswani (2019). Convex Formulations for Fair Principal Component Analysis. AAAI.

    Lee, Kim, Olfat, Hasegawa-Johnson and Yoo (2022). Fast and Efficient MMD-Based Fair PCA via Optimization over
    Stiefel Manifold. AAAI.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.metrics import adversary_gap
    >>> rng = np.random.default_rng(0)
    >>> groups = np.repeat(["a", "b"], 200)
    >>> Z = rng.normal(size=(400, 2))
    >>> Z[:200, 0] += 3
    >>> adversary_gap(Z, sensitive_features=groups) > 0.8
    True
    >>> adversary_gap(Z[:, 1:], sensitive_features=groups) < 0.25
    True
    """
    seed = seed_from(random_state)
    if isinstance(family, str) or not hasattr(family, "fit"):
        family = _make_reader(check_choice("family", family, _FAMILIES), seed)
    readers, codes, _ = _adversaries(family, X, sensitive_features, train, None, seed)
    return max(reader.distance(codes) for reader in readers)


def half_space_gaps(
    X: Any, *, sensitive_features: Any, train: tuple[Any, Any], clusters: Any, random_state: Any
) -> tuple[float, np.ndarray]:
    """:func:`adversary_gap` of the linear rule trained on ``train``, and that of 199 random groups of the test rows."""
    seed = seed_from(random_state)
    readers, codes, units = _adversaries(_make_reader("linear", seed), X, sensitive_features, train, clusters, seed)
    # The score of a rule has two values, so that its AUC is half of 1 plus the difference of shares.
    random = np.maximum(2.0 * random_aucs(readers, codes, units, seed).max(axis=0) - 1.0, 0.0)
    return max(reader.distance(codes) for reader in readers), random


def _adversaries(
    classifier: Any, X: Any, sensitive_features: Any, train: Any, clusters: Any, seed: int
) -> tuple[list[Reader], np.ndarray, np.ndarray]:
    """The classifier trained for every pair of groups, and the group and cluster of each test row.

    Of a half-space, the scores are the sides on which the test rows lie.
    """
    rows = check_rows(X, sensitive_features)
    train, judged, units = rows_to_train_and_judge(rows, train, clusters, np.random.RandomState(seed))
    readers = []
    for pair in combinations(range(len(judged[1])), 2):
        scores = train_and_score(clone(classifier), train, pair, judged[0])
        if isinstance(classifier, HalfSpace):
            scores = (scores > 0).astype(float)
        elif np.ptp(scores) <= _SCORE_ROUNDING:
            scores = np.zeros_like(scores)
        readers.append(Reader("adversary", pair, scores))
    return readers, judged[1].codes, units


def proxies(
    X: Any,
    *,
    sensitive_features: Any,
    train: tuple[Any, Any] | None = None,
    feature_names: Sequence[str] | None = None,
    clusters: Any = None,
    random_state: Any = None,
) -> Readability:
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
        Default: the columns of a data frame, otherwise x0, x1, ....
    clusters : array-like of shape (n_samples,), optional
        As in :func:`readability`.
    random_state : int, RandomState or None
        For the split and the level; None is a fixed seed.

    Returns
    -------
    Readability
        ``readings``, one per feature, by decreasing AUC; ``found`` for those above the level of random groups.

    See Also
    --------
    readability : How well all columns together predict the group.

    Notes
    -----
    Each interval of a reading is for one feature. The level is for the largest AUC of all features, so with random
    groups some feature exceeds it in at most 5 % of cases. Features that reveal the group only in combination are not
    found.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.metrics import proxies
    >>> rng = np.random.default_rng(0)
    >>> groups = rng.integers(0, 2, 400)
    >>> X = np.column_stack([rng.normal(size=400), rng.normal(size=400) + 2 * groups])
    >>> [one.by for one in proxies(X, sensitive_features=groups, feature_names=["age", "height"]).found]
    ['height']
    """
    X, sensitive_features = split_off_groups(None, X, sensitive_features)
    rows = check_rows(X, sensitive_features)
    names = feature_names_of(X, feature_names, rows[0].shape[1])
    seed = seed_from(random_state)
    train, judged, units = rows_to_train_and_judge(rows, train, clusters, np.random.RandomState(seed))
    readers = [
        Reader(str(j), contrast, odds)
        for j in range(len(names))
        for contrast, odds in _odds(train[0][:, j], train[1], judged[0][:, j])
    ]
    found = _judged(readers, judged[1], units, seed)
    best: dict[str, Reading] = {}  # by position, since names may repeat
    for one in found.readings:
        best[one.by] = max(best.get(one.by, one), one, key=lambda reading: reading.auc)
    named = [replace(one, by=names[int(j)]) for j, one in best.items()]
    return replace(found, by=names[int(found.by)], readings=tuple(sorted(named, key=lambda reading: -reading.auc)))


def _odds(trained: np.ndarray, groups: Groups, judged: np.ndarray) -> Iterator[tuple[Contrast, np.ndarray]]:
    """For every contrast, the odds of the second group in the bin of each test row, counted on the training rows.

    A bin with few rows is shrunk towards odds of 1.
    """
    values = np.unique(trained)
    if len(values) > _BINS:
        values = np.unique(np.quantile(trained, np.linspace(0, 1, _BINS + 1)[:-1], method="lower"))
    bins, at = (np.searchsorted(values[1:], column, side="right") for column in (trained, judged))
    counts = np.zeros((len(groups), len(values)))
    np.add.at(counts, (groups.codes, bins), 1.0)
    for first, second in contrasts(len(groups)):
        both = [counts[first], counts.sum(axis=0) - counts[first] if second is None else counts[second]]
        shares = [part / part.sum() + _PRIOR_ROWS / len(trained) for part in both]
        yield (first, second), (shares[1] / shares[0])[at]
