"""What can be learnt from a representation of rows on which it was not fitted: the group, and a label."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from fairpca.inference._intervals import critical_value, influence_by_group
from fairpca.metrics import GroupRates, Rate, explained_variance_ratio, group_rates, mmd2_test, readability
from fairpca.metrics._auc import joint_levels
from fairpca.metrics.adversary import adversary_gap_and_draws
from fairpca.metrics.decisions import MIN_ROWS, compare_rates

__all__ = [
    "DIFFERENCES",
    "Decisions",
    "HeldOut",
    "Measured",
    "Split",
    "measure",
    "sample_rows",
    "split_rows",
    "together",
]

#: Rows on which classifiers are trained and distributions compared; more would change the values little.
_MAX_ROWS = 2000
#: Random groups for a level; of 199, the 190th value is exceeded by chance in at most 5 % of cases.
_RANDOM_GROUPS = 199
#: Differences between groups in decisions.
DIFFERENCES = ("demographic_parity", "equal_opportunity", "equalized_odds")


@dataclass(frozen=True)
class Decisions:
    """Decisions of a classifier about held-out rows: the class that counts as positive, and rates by group."""

    positive: Any
    rates: GroupRates

    def as_dict(self, labels: Sequence[str]) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        rates = {
            name: {labels[code]: _plain_rate(rate) for code, rate in getattr(self.rates, name).items()}
            for name in ("selected", "true_positive", "false_positive")
        }
        differences = {name: asdict(getattr(self.rates, name)) for name in DIFFERENCES}
        for one in differences.values():
            one["between"] = None if one["between"] is None else [labels[code] for code in one["between"]]
        return {"positive": str(self.positive), "rates": rates, "differences": differences}


def _plain_rate(rate: Rate) -> dict[str, Any]:
    """Without rows there is no share, and JSON has no NaN."""
    return asdict(rate) | ({"value": None} if rate.rows == 0 else {})


@dataclass(frozen=True)
class HeldOut:
    """Values on rows that were not used in fitting.

    The level of random groups is what 19 of 20 random divisions stay under in all methods and numbers of components of
    the comparison.

    Attributes
    ----------
    explained_variance : float
    mmd2, mmd2_random : float
        Squared maximum mean discrepancy between the groups, the largest over pairs, and the level of random groups.
    adversary, adversary_random : float
        How far a linear rule tells the groups apart (0 to 1), and the level of random groups.
    auc, auc_low, auc_high, auc_random : float
        How well gradient boosting reads the group (0.5 to 1), a 95 % interval, and the level of random groups.
    auc_between, auc_rows : tuple, int
        The positions of the groups that it tells apart best (the second may be "rest"), and the held-out rows of the
        smaller of them.
    accuracy, baseline : float or None
        Of a logistic regression that predicts the label from the scores, and of always predicting the most frequent
        class; on all held-out rows.
    decisions : Decisions or None
        Its decisions by group, with the rows they rest on, for labels of two classes; the intervals of differences
        hold for all methods and numbers of components together.
    """

    explained_variance: float
    adversary: float
    auc: float
    auc_low: float
    auc_high: float
    auc_between: tuple[Any, Any]
    auc_rows: int
    mmd2: float
    adversary_random: float = math.nan
    auc_random: float = math.nan
    mmd2_random: float = math.nan
    accuracy: float | None = None
    baseline: float | None = None
    decisions: Decisions | None = None

    @property
    def readable(self) -> bool:
        """Whether the group can be read off the scores better than random groups can."""
        return self.auc > self.auc_random

    @property
    def demographic_parity(self) -> float | None:
        """Largest difference between groups in the share of positive decisions; None where rows are too few."""
        return None if self.decisions is None else self.decisions.rates.demographic_parity.value

    @property
    def equal_opportunity(self) -> float | None:
        """The same among rows whose label is the positive class."""
        return None if self.decisions is None else self.decisions.rates.equal_opportunity.value

    @property
    def equalized_odds(self) -> float | None:
        """The larger of the differences among rows of either class."""
        return None if self.decisions is None else self.decisions.rates.equalized_odds.value

    def as_dict(self, labels: Sequence[str]) -> dict[str, Any]:
        """Plain numbers and text, for JSON; ``labels`` are the groups in the order of their codes."""
        plain = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "decisions"}
        plain["auc_between"] = [one if one == "rest" else labels[one] for one in self.auc_between]
        plain |= {name: getattr(self, name) for name in DIFFERENCES}
        plain["decisions"] = None if self.decisions is None else self.decisions.as_dict(labels)
        return plain


@dataclass(frozen=True)
class Split:
    """Row numbers to fit on and to test on, and the smaller parts used by classifiers."""

    train: np.ndarray
    test: np.ndarray
    train_sample: np.ndarray
    test_sample: np.ndarray


def split_rows(
    codes: np.ndarray, y: np.ndarray | None, test_size: float, seed: int, clusters: np.ndarray | None = None
) -> Split:
    """Divide rows at random, each group (and class, where there are enough rows) in proportion; clusters stay whole."""
    strata = codes
    if y is not None:
        both = np.unique(np.column_stack([codes, np.unique(y, return_inverse=True)[1]]), axis=0, return_inverse=True)[1]
        both = both.reshape(-1)
        strata = both if np.bincount(both).min() >= 4 else codes
    train, test = _divide(strata, test_size, seed, clusters)
    parts = [sample_rows(rows, strata, _MAX_ROWS, seed) for rows in (train, test)]
    return Split(np.sort(train), np.sort(test), *parts)


def _divide(
    strata: np.ndarray, test_size: float, seed: int, clusters: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    if clusters is None:
        return train_test_split(np.arange(len(strata)), test_size=test_size, stratify=strata, random_state=seed)
    n_folds = max(2, round(1.0 / test_size))
    folds = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
    return next(iter(folds.split(strata, strata, clusters)))


def sample_rows(rows: np.ndarray, strata: np.ndarray, size: int, seed: int) -> np.ndarray:
    """At most ``size`` of the rows, every stratum in proportion."""
    if len(rows) <= size:
        return np.sort(rows)
    return np.sort(train_test_split(rows, train_size=size, stratify=strata[rows], random_state=seed)[0])


@dataclass(frozen=True)
class Measured:
    """Values of one method, and the random draws from which levels are found for all methods together.

    ``draws`` has a column for AUC, adversary and MMD^2; ``decided`` marks the held-out rows with a positive decision.
    """

    values: HeldOut
    draws: np.ndarray
    decided: np.ndarray | None = None


_DRAWN = ("auc", "adversary", "mmd2")


def measure(
    estimator: Any,
    X: np.ndarray,
    codes: np.ndarray,
    y: np.ndarray | None,
    split: Split,
    seed: int,
    weights: np.ndarray | None = None,
    clusters: np.ndarray | None = None,
) -> Measured:
    """Values of an estimator that was fitted on the training rows; comparisons of groups do not use the weights."""
    scores = {"train": estimator.transform(X[split.train]), "test": estimator.transform(X[split.test])}
    train = _sampled(scores["train"], codes, split.train, split.train_sample)
    tested = _sampled(scores["test"], codes, split.test, split.test_sample)
    variance = explained_variance_ratio(X[split.test], estimator, sample_weight=_part(weights, split.test))
    options: dict[str, Any] = {"random_state": seed, "n_permutations": _RANDOM_GROUPS}
    gap, gap_draws = adversary_gap_and_draws(*tested, train=train, **options)
    judged, groups = tested
    mmd = mmd2_test(judged, sensitive_features=groups, **options)
    read = readability(
        judged, sensitive_features=groups, train=train, clusters=_part(clusters, split.test_sample), random_state=seed
    )
    counts = np.bincount(tested[1])
    first, second = read.groups
    others = counts.sum() - counts[first] if second == "rest" else counts[second]
    found = HeldOut(
        explained_variance=float(variance),  # type: ignore[arg-type]
        adversary=gap,
        auc=read.auc,
        auc_low=read.low,
        auc_high=read.high,
        auc_between=read.groups,
        auc_rows=int(min(counts[first], others)),
        mmd2=mmd.mmd2,
    )
    draws = np.column_stack([read.draws, gap_draws, mmd.draws])
    if clusters is not None:
        draws[:, 1:] = np.nan  # these two shuffle rows, which says nothing where rows of a person belong together
    if y is None:
        return Measured(found, draws)
    decided, accuracy = _downstream(scores, y, split, weights)
    return Measured(replace(found, accuracy=accuracy[0], baseline=accuracy[1]), draws, decided)


def _part(weights: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    return None if weights is None else weights[rows]


def _sampled(
    scores: np.ndarray, codes: np.ndarray, rows: np.ndarray, sample: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and groups of some of the rows; row numbers ascend."""
    return scores[np.searchsorted(rows, sample)], codes[sample]


def _downstream(
    scores: dict[str, np.ndarray], y: np.ndarray, split: Split, weights: np.ndarray | None
) -> tuple[np.ndarray | None, tuple[float, float]]:
    """What a classifier that learns from all training rows decides about all held-out rows, and how accurate it is."""
    trained, tested = _part(weights, split.train), _part(weights, split.test)
    scaler = StandardScaler().fit(scores["train"], sample_weight=trained)
    classifier = LogisticRegression(max_iter=1000)
    classifier.fit(scaler.transform(scores["train"]), y[split.train], sample_weight=trained)
    truth, predicted = y[split.test], classifier.predict(scaler.transform(scores["test"]))
    classes, members = np.unique(y[split.train], return_inverse=True)
    baseline = classes[np.bincount(members.reshape(-1), weights=trained).argmax()]
    accuracy = float(np.average(predicted == truth, weights=tested))
    found = accuracy, float(np.average(truth == baseline, weights=tested))
    return (predicted == classes[-1] if len(np.unique(y)) == 2 else None), found


def together(
    measured: Sequence[Measured],
    codes: np.ndarray,
    y: np.ndarray | None,
    split: Split,
    *,
    weights: np.ndarray | None,
    clusters: np.ndarray | None,
    confidence: float,
    positive: Any,
) -> list[HeldOut]:
    """The values of all methods, with levels of random groups and intervals that hold for all of them."""
    levels = []
    for column, name in enumerate(_DRAWN):
        observed = np.array([getattr(one.values, name) for one in measured])
        levels.append(joint_levels(observed, np.column_stack([one.draws[:, column] for one in measured])))
    found = [
        replace(one.values, auc_random=float(auc), adversary_random=float(adversary), mmd2_random=float(mmd2))
        for one, auc, adversary, mmd2 in zip(measured, *levels, strict=True)
    ]
    if y is None or all(one.decided is None for one in measured):
        return found
    rates = _rates_together(
        [one.decided for one in measured if one.decided is not None],
        y[split.test] == np.unique(y)[-1],
        codes[split.test],
        _part(weights, split.test),
        np.arange(len(split.test)) if clusters is None else clusters[split.test],
        confidence,
    )
    return [
        one if each.decided is None else replace(one, decisions=Decisions(positive, next(rates)))
        for one, each in zip(found, measured, strict=True)
    ]


def _rates_together(
    decided: Sequence[np.ndarray],
    truth: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray | None,
    units: np.ndarray,
    confidence: float,
) -> Iterator[GroupRates]:
    """Rates of several classifiers on the same rows; clusters count as the number of rows that are as informative."""
    k, among = int(codes.max()) + 1, (np.ones(len(truth), dtype=bool), truth, ~truth)
    parts = [np.where(rows[:, None], np.column_stack(decided).astype(float), np.nan) for rows in among]
    spread = [influence_by_group(values, codes, units, weights, np.ones(k)) for values in parts]
    columns = [np.hstack([one[0][a] for one in spread]) for a in range(k)]
    critical = critical_value(columns, confidence, pairs=True)
    for i, decisions in enumerate(decided):
        rates = group_rates(truth, decisions, sensitive_features=codes, sample_weight=weights, confidence=confidence)
        named = [
            {a: _as_informative(rate, errors[a, i]) for a, rate in one.items()}
            for one, (_, errors, _) in zip(
                (rates.selected, rates.true_positive, rates.false_positive), spread, strict=True
            )
        ]
        yield compare_rates(named[0], named[1], named[2], MIN_ROWS, critical, critical)


def _as_informative(rate: Rate, error: float) -> Rate:
    """With as many effective rows as the standard error from independent units allows."""
    variance = rate.value * (1.0 - rate.value)
    if not (np.isfinite(error) and error > 0 and variance > 0):
        return rate
    return replace(rate, effective_rows=min(rate.effective_rows, variance / error**2))
