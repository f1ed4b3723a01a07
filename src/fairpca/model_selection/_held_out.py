"""What can be learnt from a representation of rows on which it was not fitted: the group, and a label."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from fairpca._validation import Groups
from fairpca.inference._intervals import critical_value, influence_by_group
from fairpca.metrics import Estimate, GroupRates, explained_variance_ratio, mmd2_test, readability
from fairpca.metrics._reading import joint_levels
from fairpca.metrics.decisions import MIN_ROWS, GroupedDecisions
from fairpca.metrics.readability import half_space_gaps
from fairpca.moments._sources import MemorySource

__all__ = ["Decisions", "HeldOut", "HeldOutRows", "Measured", "sample_rows", "smaller"]

#: Rows on which classifiers are trained and distributions compared; more would change the values little.
_MAX_ROWS = 2000
#: Random groups for a level; of 199, the 190th value is exceeded by chance in at most 5 % of cases.
_RANDOM_GROUPS = 199


@dataclass(frozen=True)
class Decisions:
    """Decisions of a classifier about held-out rows: the class that counts as positive, and rates by group."""

    positive: Any
    rates: GroupRates

    def as_dict(self, names: Mapping[Any, str]) -> dict[str, Any]:
        """Plain numbers and text, for JSON, which has no NaN."""

        def plain(one: Estimate) -> dict[str, Any]:
            return {"rows": one.rows, "value": _known(one), "low": _known(one.low), "high": _known(one.high)}

        rates = {
            name: {names[label]: plain(one) | {"count": one.count} for label, one in getattr(self.rates, name).items()}
            for name in ("selected", "true_positive", "false_positive")
        }
        differences = {
            name: plain(values.gap.joint)
            | {"between": None if math.isnan(values.gap) else [names[label] for label in values.between]}
            for name, values in self.rates.differences.items()
        }
        return {"positive": str(self.positive), "rates": rates, "differences": differences}


def _known(number: float) -> float | None:
    return None if math.isnan(number) else float(number)


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
        The groups that it tells apart best (the second may be "rest"), and the held-out rows of the smaller of them.
    accuracy, baseline : float or None
        Of a logistic regression that predicts the label from the scores, and of always predicting the most frequent
        class; on all held-out rows.
    decisions : Decisions or None
        Its decisions by group, with the rows they rest on, for labels of two classes; the joint intervals of
        differences hold for all methods and numbers of components together.
    """

    explained_variance: float
    adversary: float
    auc: float
    auc_low: float
    auc_high: float
    auc_between: tuple[Any, Any]
    auc_rows: int
    mmd2: float
    adversary_random: float
    auc_random: float
    mmd2_random: float
    accuracy: float | None
    baseline: float | None
    decisions: Decisions | None

    @property
    def readable(self) -> bool:
        """Whether the group can be read off the scores better than random groups can."""
        return self.auc > self.auc_random

    def as_dict(self, names: Mapping[Any, str]) -> dict[str, Any]:
        """Plain numbers and text, for JSON; ``names`` are the texts of the groups' labels."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        plain["mmd2_random"] = _known(self.mmd2_random)
        plain["auc_between"] = [names.get(label, label) for label in self.auc_between]
        decided = None if self.decisions is None else self.decisions.as_dict(names)
        differences = {} if decided is None else decided["differences"]
        for name in ("demographic_parity", "equal_opportunity", "equalized_odds"):
            plain[name] = differences[name]["value"] if differences else None
        return plain | {"decisions": decided}


@dataclass(frozen=True)
class Measured:
    """Values of one method by name, and the random draws from which levels are found for all methods together.

    ``decided`` marks the held-out rows with a positive decision.
    """

    values: dict[str, Any]
    draws: dict[str, np.ndarray]
    decided: np.ndarray | None


class HeldOutRows:
    """Rows divided at random into those to fit on and those to test on, and samples of both for classifiers.

    Each group (and class, where there are enough rows) is divided in proportion; clusters stay whole.

    Attributes
    ----------
    train, test, train_sample, test_sample : integer arrays
        Row numbers, ascending.
    """

    def __init__(
        self, rows: MemorySource, y: np.ndarray | None, clusters: np.ndarray | None, *, test_size: float, seed: int
    ) -> None:
        self._rows, self._y, self._clusters, self._seed = rows, y, clusters, seed
        groups = rows.groups
        strata = groups.codes
        if y is not None:
            both = np.column_stack([groups.codes, np.unique(y, return_inverse=True)[1]])
            both = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
            strata = both if np.bincount(both).min() >= 4 else groups.codes
        if clusters is None:
            train, test = train_test_split(
                np.arange(len(strata)), test_size=test_size, stratify=strata, random_state=seed
            )
        else:
            folds = StratifiedGroupKFold(max(2, round(1.0 / test_size)), shuffle=True, random_state=seed)
            train, test = next(iter(folds.split(strata, strata, clusters)))
        self.train, self.test = np.sort(train), np.sort(test)
        self.train_sample, self.test_sample = (sample_rows(rows, strata, _MAX_ROWS, seed) for rows in (train, test))

    def groups_of(self, rows: np.ndarray) -> Groups:
        return Groups(self._rows.groups.labels, self._rows.groups.codes[rows])

    def counts(self, rows: np.ndarray) -> dict[Any, int]:
        """Label -> how many of the rows belong to the group."""
        labels = self._rows.groups.labels
        counts = np.bincount(self._rows.groups.codes[rows], minlength=len(labels))
        return dict(zip(labels, counts.tolist(), strict=True))

    def reading(self, values: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
        """The test sample of some columns, and the other arguments with which the group is read off it."""
        sample = self.test_sample
        return values[sample], {
            "sensitive_features": self.groups_of(sample),
            "train": (values[self.train_sample], self.groups_of(self.train_sample)),
            "clusters": None if self._clusters is None else self._clusters[sample],
            "random_state": self._seed,
        }

    def measure(self, estimator: Any) -> Measured:
        """Values of an estimator that was fitted on the training rows; comparisons of groups do not use the weights."""
        scores = np.asarray(estimator.transform(self._rows.X))
        variance = explained_variance_ratio(
            self._rows.X[self.test], estimator, sample_weight=self.weights_of(self.test)
        )
        judged, options = self.reading(scores)
        read, (gap, gap_draws) = readability(judged, **options), half_space_gaps(judged, **options)
        mmd = mmd2_test(
            judged,
            sensitive_features=options["sensitive_features"],
            n_permutations=_RANDOM_GROUPS,
            random_state=self._seed,
        )
        decided, accuracy, baseline = (None, None, None) if self._y is None else self._decide(scores, self._y)
        found = {
            "explained_variance": float(variance),  # type: ignore[arg-type]
            "adversary": gap,
            "auc": read.auc,
            "auc_low": read.low,
            "auc_high": read.high,
            "auc_between": read.groups,
            "auc_rows": smaller(self.counts(self.test_sample), read.groups),
            "mmd2": mmd.mmd2,
            "accuracy": accuracy,
            "baseline": baseline,
        }
        draws = {"auc": read.draws, "adversary": gap_draws, "mmd2": mmd.draws}
        if self._clusters is not None:  # rows are shuffled, which says nothing where rows of a person belong together
            draws["mmd2"] = np.full(_RANDOM_GROUPS, np.nan)
        return Measured(found, draws, decided)

    def weights_of(self, rows: np.ndarray) -> np.ndarray | None:
        return None if self._rows.weights is None else self._rows.weights[rows]

    def _decide(self, scores: np.ndarray, y: np.ndarray) -> tuple[np.ndarray | None, float, float]:
        """What a classifier that learns from all training rows decides about all held-out rows; accuracy, baseline."""
        trained, tested = self.weights_of(self.train), self.weights_of(self.test)
        scores = StandardScaler().fit(scores[self.train], sample_weight=trained).transform(scores)
        rules = LogisticRegression(max_iter=1000), DummyClassifier(strategy="most_frequent")
        for rule in rules:
            rule.fit(scores[self.train], y[self.train], sample_weight=trained)
        accuracy, baseline = (rule.score(scores[self.test], y[self.test], sample_weight=tested) for rule in rules)
        classes = np.unique(y)
        decided = rules[0].predict(scores[self.test]) == classes[-1] if len(classes) == 2 else None
        return decided, float(accuracy), float(baseline)

    def together(self, measured: Sequence[Measured], confidence: float, positive: Any) -> list[HeldOut]:
        """The values of all methods, with levels of random groups and intervals that hold for all of them."""
        levels = {
            name: joint_levels(
                np.array([one.values[name] for one in measured]),
                np.column_stack([one.draws[name] for one in measured]),
            )
            for name in measured[0].draws
        }
        decided = [one.decided for one in measured if one.decided is not None]
        rates = self._rates(np.column_stack(decided), confidence) if decided else iter(())
        found = []
        for i, one in enumerate(measured):
            known = one.values | {f"{name}_random": float(level[i]) for name, level in levels.items()}
            found.append(HeldOut(**known, decisions=Decisions(positive, next(rates)) if decided else None))
        return found

    def _rates(self, decided: np.ndarray, confidence: float) -> Iterator[GroupRates]:
        """Rates of several classifiers on the same rows; clusters count as so many rows as are as informative."""
        assert self._y is not None
        groups, weights = self.groups_of(self.test), self.weights_of(self.test)
        units = np.arange(len(self.test)) if self._clusters is None else self._clusters[self.test]
        truth, k = self._y[self.test] == np.unique(self._y)[-1], len(groups)
        spread = [
            influence_by_group(np.where(among[:, None], decided, np.nan), groups.codes, units, weights, np.ones(k))
            for among in (np.ones(len(truth), dtype=bool), truth, ~truth)
        ]
        columns = [np.hstack([one[0][a] for one in spread]) for a in range(k)]
        critical = critical_value(columns, confidence, pairs=True)
        for i, decisions in enumerate(decided.T):
            errors = [one[1].error[:, i] for one in spread]
            both = GroupedDecisions(truth, decisions, groups, weights)
            yield both.all_rates(confidence, (critical, critical), MIN_ROWS, errors)


def sample_rows(rows: np.ndarray, strata: np.ndarray, size: int, seed: int) -> np.ndarray:
    """At most ``size`` of the rows, every stratum in proportion."""
    if len(rows) <= size:
        return np.sort(rows)
    return np.sort(train_test_split(rows, train_size=size, stratify=strata[rows], random_state=seed)[0])


def smaller(counts: Mapping[Any, int], groups: tuple[Any, Any]) -> int:
    """The rows of the smaller of two groups; the second may be the rest."""
    first, second = groups
    others = sum(counts.values()) - counts[first]
    return min(counts[first], others if second == "rest" else counts[second])
