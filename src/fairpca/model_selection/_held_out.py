"""What can be learnt from a representation of rows on which it was not fitted: the group, and a label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca.metrics import (
    adversary_gap,
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
    explained_variance_ratio,
    mmd2_test,
    permuted_adversary_gaps,
    readability,
)

__all__ = ["HeldOut", "Split", "measure", "sample_rows", "split_rows"]

#: Rows on which classifiers are trained and distributions compared; more would change the figures little.
_MAX_ROWS = 2000
_PERMUTATIONS, _MMD_PERMUTATIONS = 20, 100
#: "The level of random groups": what 19 of 20 shufflings of the groups stay under.
_LEVEL = 0.95


@dataclass(frozen=True)
class HeldOut:
    """Figures on rows that were not used in fitting.

    Attributes
    ----------
    explained_variance : float
    mmd2, mmd2_random : float or None
        Squared maximum mean discrepancy between the groups, the largest over pairs, and the level of random groups.
    adversary, adversary_random : float
        How far a linear rule tells the groups apart (0 to 1), and the level of random groups.
    auc, auc_low, auc_high, auc_random : float
        How well gradient boosting reads the group (0.5 to 1), a 95 % interval, and the level of random groups.
    accuracy : float or None
        Of a logistic regression that predicts the label from the scores.
    demographic_parity, equal_opportunity, equalized_odds : float or None
        Differences between groups in its decisions; for labels of two classes.
    """

    explained_variance: float
    adversary: float
    adversary_random: float
    auc: float
    auc_low: float
    auc_high: float
    auc_random: float
    mmd2: float | None = None
    mmd2_random: float | None = None
    accuracy: float | None = None
    demographic_parity: float | None = None
    equal_opportunity: float | None = None
    equalized_odds: float | None = None


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


def measure(estimator: Any, X: np.ndarray, codes: np.ndarray, y: np.ndarray | None, split: Split, seed: int) -> HeldOut:
    """Figures of an estimator that was fitted on the training rows."""
    scores = {name: estimator.transform(X[rows]) for name, rows in _samples(split)}
    train = (scores["train"], codes[split.train_sample])
    judged = (scores["test"], codes[split.test_sample])
    random = permuted_adversary_gaps(*judged, train=train, n_permutations=_PERMUTATIONS, random_state=seed)
    return HeldOut(
        explained_variance=float(explained_variance_ratio(X[split.test], estimator)),  # type: ignore[arg-type]
        adversary=adversary_gap(*judged, train=train, random_state=seed),
        adversary_random=float(np.quantile(random, _LEVEL)),
        **_reading(judged, train, seed),
        **_distribution(scores, codes, split, seed),
        **({} if y is None else _downstream(scores, codes, y, split)),
    )


def _samples(split: Split) -> list[tuple[str, np.ndarray]]:
    return [("train", split.train_sample), ("test", split.test_sample)]


def _reading(judged: tuple, train: tuple, seed: int) -> dict[str, float]:
    """What gradient boosting reads, trained on the rows that the projection was fitted to."""
    found = readability(*judged, train=train, random_state=seed)
    return {"auc": found.auc, "auc_low": found.low, "auc_high": found.high, "auc_random": found.level}


def _distribution(scores: dict[str, np.ndarray], codes: np.ndarray, split: Split, seed: int) -> dict[str, float]:
    """MMD^2 with the bandwidth of these very scores, and what random groups of the same sizes show."""
    test = mmd2_test(
        scores["test"], codes[split.test_sample], quantile=_LEVEL, n_permutations=_MMD_PERMUTATIONS, random_state=seed
    )
    return {"mmd2": test.mmd2, "mmd2_random": test.level}


def _downstream(scores: dict[str, np.ndarray], codes: np.ndarray, y: np.ndarray, split: Split) -> dict[str, float]:
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    classifier.fit(scores["train"], y[split.train_sample])
    truth, decision = y[split.test_sample], classifier.predict(scores["test"])
    figures = {"accuracy": float(np.mean(decision == truth))}
    classes = np.unique(y)
    groups = codes[split.test_sample]
    if len(classes) == 2 and _all_present(truth, groups):
        positive, chosen = (values == classes[1] for values in (truth, decision))
        figures["demographic_parity"] = demographic_parity_difference(chosen, sensitive_features=groups)
        figures["equal_opportunity"] = equal_opportunity_difference(positive, chosen, sensitive_features=groups)
        figures["equalized_odds"] = equalized_odds_difference(positive, chosen, sensitive_features=groups)
    return figures


def _all_present(truth: np.ndarray, groups: np.ndarray) -> bool:
    """Whether every group has held-out rows of both classes."""
    return len(set(zip(truth.tolist(), groups.tolist(), strict=True))) == 2 * len(np.unique(groups))
