"""What can be learnt from a representation of rows on which it was not fitted: the group, and a label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from fairpca.metrics import (
    GroupRates,
    Rate,
    explained_variance_ratio,
    group_rates,
    mmd2_test,
    readability,
)
from fairpca.metrics.adversary import adversary_gap_and_draws

__all__ = ["DIFFERENCES", "Decisions", "HeldOut", "Split", "measure", "sample_rows", "split_rows"]

#: Rows on which classifiers are trained and distributions compared; more would change the figures little.
_MAX_ROWS = 2000
_PERMUTATIONS, _MMD_PERMUTATIONS = 20, 100
#: "The level of random groups": what 19 of 20 shufflings of the groups stay under.
_LEVEL = 0.95
#: Differences between groups in decisions.
DIFFERENCES = ("demographic_parity", "equal_opportunity", "equalized_odds")


@dataclass(frozen=True)
class Decisions:
    """Decisions of a classifier about held-out rows: the class that counts as positive, and rates by group."""

    positive: Any
    rates: GroupRates

    def named(self, names: Sequence[str]) -> Decisions:
        """With the name of the positive class, where y holds positions in ``names``."""
        return replace(self, positive=names[int(self.positive)])

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

    Attributes
    ----------
    explained_variance : float
    mmd2, mmd2_random : float or None
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
        Its decisions by group, with the rows they rest on; for labels of two classes.
    """

    explained_variance: float
    adversary: float
    adversary_random: float
    auc: float
    auc_low: float
    auc_high: float
    auc_random: float
    auc_between: tuple[Any, Any]
    auc_rows: int
    mmd2: float | None = None
    mmd2_random: float | None = None
    accuracy: float | None = None
    baseline: float | None = None
    decisions: Decisions | None = None

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
    """Row numbers to fit on and to judge on, and the smaller parts used by classifiers."""

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


def measure(
    estimator: Any,
    X: np.ndarray,
    codes: np.ndarray,
    y: np.ndarray | None,
    split: Split,
    seed: int,
    weights: np.ndarray | None = None,
) -> HeldOut:
    """Values of an estimator that was fitted on the training rows; comparisons of groups do not use the weights."""
    scores = {"train": estimator.transform(X[split.train]), "test": estimator.transform(X[split.test])}
    train = _sampled(scores["train"], codes, split.train, split.train_sample)
    judged = _sampled(scores["test"], codes, split.test, split.test_sample)
    variance = explained_variance_ratio(X[split.test], estimator, sample_weight=_part(weights, split.test))
    gap, random = adversary_gap_and_draws(*judged, train=train, n_permutations=_PERMUTATIONS, random_state=seed)
    return HeldOut(
        explained_variance=float(variance),  # type: ignore[arg-type]
        adversary=gap,
        adversary_random=float(np.quantile(random, _LEVEL)),
        **_reading(judged, train, seed),
        **_distribution(*judged, seed),
        **({} if y is None else _downstream(scores, codes, y, split, weights)),
    )


def _part(weights: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    return None if weights is None else weights[rows]


def _sampled(
    scores: np.ndarray, codes: np.ndarray, rows: np.ndarray, sample: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and groups of some of the rows; row numbers ascend."""
    return scores[np.searchsorted(rows, sample)], codes[sample]


def _reading(judged: tuple, train: tuple, seed: int) -> dict[str, Any]:
    """What gradient boosting reads, trained on the rows that the projection was fitted to."""
    found = readability(*judged, train=train, random_state=seed)
    counts = np.bincount(judged[1])
    first, second = found.groups
    others = counts.sum() - counts[first] if second == "rest" else counts[second]
    values = {"auc": found.auc, "auc_low": found.low, "auc_high": found.high, "auc_random": found.level}
    return values | {"auc_between": found.groups, "auc_rows": int(min(counts[first], others))}


def _distribution(scores: np.ndarray, codes: np.ndarray, seed: int) -> dict[str, Any]:
    """MMD^2 with the bandwidth of these very scores, and what random groups of the same sizes show."""
    test = mmd2_test(scores, codes, quantile=_LEVEL, n_permutations=_MMD_PERMUTATIONS, random_state=seed)
    return {"mmd2": test.mmd2, "mmd2_random": test.level}


def _downstream(
    scores: dict[str, np.ndarray], codes: np.ndarray, y: np.ndarray, split: Split, weights: np.ndarray | None
) -> dict[str, Any]:
    """What is predicted of all held-out rows, after all training rows."""
    trained, judged = _part(weights, split.train), _part(weights, split.test)
    scaler = StandardScaler().fit(scores["train"], sample_weight=trained)
    classifier = LogisticRegression(max_iter=1000)
    classifier.fit(scaler.transform(scores["train"]), y[split.train], sample_weight=trained)
    truth, predicted = y[split.test], classifier.predict(scaler.transform(scores["test"]))
    classes, members = np.unique(y[split.train], return_inverse=True)
    baseline = classes[np.bincount(members.reshape(-1), weights=trained).argmax()]
    found = {
        "accuracy": float(np.average(predicted == truth, weights=judged)),
        "baseline": float(np.average(truth == baseline, weights=judged)),
    }
    if len(np.unique(y)) != 2:
        return found
    positive, groups = classes[-1], codes[split.test]
    rates = group_rates(truth == positive, predicted == positive, sensitive_features=groups, sample_weight=judged)
    return found | {"decisions": Decisions(positive, rates)}
