"""Decisions of a classifier by group: rates with intervals, and differences (Definitions 2-4 of Lee et al. 2022)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import ndtri

from fairpca._labels import quoted
from fairpca._validation import (
    check_groups,
    check_number,
    check_sample_weight,
    check_several_groups,
    check_share,
)
from fairpca.metrics._group_values import Estimate, GroupValues

__all__ = [
    "MIN_ROWS",
    "GroupRates",
    "GroupedDecisions",
    "demographic_parity_difference",
    "equal_opportunity_difference",
    "equalized_odds_difference",
    "group_rates",
]

#: Rates based on fewer rows are not compared.
MIN_ROWS = 20


@dataclass(frozen=True)
class GroupRates:
    """Result of :func:`group_rates`: shares of positive decisions, with Wilson's intervals.

    The joint intervals of differences hold for all pairs of groups (Newcombe 1998, with Bonferroni's correction).

    Attributes
    ----------
    selected : GroupValues
        Among all rows of each group. The rate of a group knows its ``count`` and ``rows``; it is NaN without rows. The
        ``gap`` is the difference that demographic parity is about; it is NaN if a group has too few rows to compare.
    true_positive : GroupValues
        Among the rows whose true label is positive; its ``gap`` is that of equal opportunity.
    false_positive : GroupValues
        Among the others.
    equalized_odds : GroupValues
        The one of ``true_positive`` and ``false_positive`` with the larger ``gap``; intervals allow for both.

    See Also
    --------
    group_rates : Computes them.

    Examples
    --------
    >>> from fairpca.metrics import group_rates
    >>> rates = group_rates([1, 0] * 30, [1, 1] * 30, sensitive_features=["a", "b", "b"] * 20)
    >>> rates.selected["a"].count, rates.selected["a"].rows, rates.selected.gap
    (20, 20, 0.0)
    """

    selected: GroupValues
    true_positive: GroupValues
    false_positive: GroupValues
    equalized_odds: GroupValues

    @property
    def differences(self) -> dict[str, GroupValues]:
        """The rates behind each of the three differences, by its name in the literature."""
        return {
            "demographic_parity": self.selected,
            "equal_opportunity": self.true_positive,
            "equalized_odds": self.equalized_odds,
        }


def group_rates(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    min_rows: int = MIN_ROWS,
    confidence: float = 0.95,
    sample_weight: Any = None,
) -> GroupRates:
    """Compute decision rates per group, and compare the groups if they have enough rows.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        True labels and decisions: 0 and 1, or booleans.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
    min_rows : int, default=20
        Rates based on fewer rows are not compared; the difference is then NaN, and its ``rows`` show why.
    confidence : float, default=0.95
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows in the rates. Intervals are those of ``(sum w)^2 / sum w^2`` rows of equal weight, which
        would be as informative (Kish 1965).

    Returns
    -------
    GroupRates
        Rates of each group, and the largest differences.

    See Also
    --------
    demographic_parity_difference, equal_opportunity_difference, equalized_odds_difference : The values alone.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.metrics import group_rates
    >>> truth, decisions = np.tile([1, 0], 50), np.repeat([1, 0], 50)
    >>> rates = group_rates(truth, decisions, sensitive_features=np.repeat(["a", "b"], [60, 40]))
    >>> rates.selected["a"].count, rates.selected["a"].rows, round(rates.selected.gap, 3)
    (50, 60, 0.833)
    >>> rates.true_positive.gap.rows
    20
    """
    check_number("min_rows", min_rows, at_least=1, integer=True)
    check_share("confidence", confidence, example=0.95)
    decided = GroupedDecisions(y_true, _check_unit("y_pred", y_pred, binary=True), sensitive_features, sample_weight)
    pairs = len(decided.labels) * (len(decided.labels) - 1) / 2
    critical = [float(ndtri(1.0 - (1.0 - confidence) / (2 * count))) for count in (pairs, 2 * pairs)]
    return decided.all_rates(confidence, critical, min_rows)


class GroupedDecisions:
    """Checked labels, predictions, groups and weights; rows of weight zero do not count."""

    def __init__(
        self, y_true: Any, y_pred: Any, sensitive_features: Any, sample_weight: Any, *, labelled: bool = True
    ) -> None:
        self._predictions = _check_unit("y_pred", y_pred)
        n = len(self._predictions)
        self._truth = _check_unit("y_true", y_true, binary=True) if labelled else y_true
        if self._truth is not None and len(self._truth) != n:
            raise ValueError(f"y_true has {len(self._truth)} rows and y_pred {n}: they must have the same length.")
        groups, weights = check_groups(sensitive_features, n), check_sample_weight(sample_weight, n)
        self._codes, self._weights = groups.codes, np.ones(n) if weights is None else weights
        present = np.unique(groups.codes[self._weights > 0])
        self.labels = {groups.labels[code]: code for code in present.tolist()}
        check_several_groups(self.labels, n)

    def all_rates(
        self, confidence: float, critical: Sequence[float], min_rows: int, errors: Sequence[Any] = (None, None, None)
    ) -> GroupRates:
        """Joint intervals of so many standard errors; the larger of two differences has the second number."""
        kinds = list(zip((None, 1, 0), errors, strict=True))
        rates = [self.rates(label, confidence, critical[0], min_rows, error) for label, error in kinds]
        odds = [self.rates(label, confidence, critical[1], min_rows, error) for label, error in kinds[1:]]
        unknown = [one for one in odds if math.isnan(one.gap)]
        larger = min(unknown, key=lambda one: one.gap.rows or 0) if unknown else max(odds, key=lambda one: one.gap)
        return GroupRates(rates[0], rates[1], rates[2], larger)

    def rates(
        self, label: int | None, confidence: float = 0.95, critical: float = math.nan, min_rows: int = 1,
        errors: np.ndarray | None = None,
    ) -> GroupValues:  # fmt: skip
        """Shares of positive predictions in each group: among all rows, or those with a true label.

        ``errors`` are standard errors that know which rows belong together, and limit the rows that count as
        informative in differences.
        """
        among = self._weights > 0 if label is None else (self._truth == label) & (self._weights > 0)
        z, by_group, informative = float(ndtri(0.5 + confidence / 2)), {}, {}
        for group, code in self.labels.items():
            weights, decided = (part[among & (self._codes == code)] for part in (self._weights, self._predictions))
            if not len(decided):
                by_group[group], informative[group] = Estimate(math.nan, 0.0, 1.0, count=0, rows=0), 0.0
                continue
            share, rows = float(weights @ decided / weights.sum()), float(weights.sum() ** 2 / (weights @ weights))
            by_group[group] = Estimate(share, *_wilson(share, rows, z), count=int(decided.sum()), rows=len(decided))
            error, variance = math.nan if errors is None else float(errors[code]), share * (1.0 - share)
            informative[group] = min(rows, variance / error**2) if 0 < error < math.inf and variance > 0 else rows
        fewest, pairs = min(one.rows or 0 for one in by_group.values()), {}
        for pair in combinations(by_group, 2):
            high, low = pair if not by_group[pair[0]] < by_group[pair[1]] else pair[::-1]
            both = [(by_group[one].value, informative[one]) for one in (high, low)]
            enough = fewest >= min_rows
            ends = [end for width in (z, critical) for end in _newcombe(both[0], both[1], width)] if enough else []
            difference = both[0][0] - both[1][0] if enough else math.nan
            pairs[high, low] = Estimate(difference, *ends, rows=fewest)
        overall = np.average(self._predictions[among], weights=self._weights[among]) if among.any() else math.nan
        return GroupValues(by_group, float(overall), pairs, "share of positive decisions")

    def difference(self, label: int | None) -> float:
        """The largest difference between groups."""
        rates = self.rates(label)
        for group, rate in rates.items():
            if not rate.rows:
                raise ValueError(f"Group {quoted(group)} has no row with one of the labels; merge small groups.")
        return float(rates.gap)


def _check_unit(name: str, values: Any, *, binary: bool = False) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name} must be one-dimensional and not empty, got shape {array.shape}.")
    if binary and not np.isin(array, (0.0, 1.0)).all():
        raise ValueError(f"{name} must consist of 0 and 1; encode the positive class as 1.")
    if not (np.isfinite(array).all() and array.min() >= 0 and array.max() <= 1):
        raise ValueError(f"{name} must lie in [0, 1]: labels 0 and 1, or probabilities of the positive class.")
    return array


def _wilson(share: float, rows: float, z: float) -> tuple[float, float]:
    centre = (share + z * z / (2 * rows)) / (1 + z * z / rows)
    half = z * math.sqrt(share * (1 - share) / rows + (z / (2 * rows)) ** 2) / (1 + z * z / rows)
    return (0.0 if share == 0 else centre - half), (1.0 if share == 1 else centre + half)


def _newcombe(first: tuple[float, float], second: tuple[float, float], z: float) -> tuple[float, float]:
    """The ends of the interval of a difference of two shares, each with the number of rows it is known from."""
    above, below = _wilson(*first, z), _wilson(*second, z)
    value = first[0] - second[0]
    low = value - math.hypot(first[0] - above[0], below[1] - second[0])
    return low, value + math.hypot(above[1] - first[0], second[0] - below[0])


def demographic_parity_difference(
    y_true: Any = None, y_pred: Any = None, *, sensitive_features: Any, sample_weight: Any = None
) -> float:
    """Largest difference between groups in the share of positive predictions.

    ``max_{a, b} |E[g | a] - E[g | b]|``; 0 means that predictions do not depend on the group, and says
    nothing about whether they are correct. True labels are not used: both ``(y_true, y_pred)``, as in fairlearn, and
    ``(y_pred)`` alone are accepted.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), optional
        Not used if ``y_pred`` is given; otherwise the predictions.
    y_pred : array-like of shape (n_samples,)
        Predictions in [0, 1]: labels 0 and 1, booleans or probabilities of the positive class.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    float
        Between 0 and 1.

    See Also
    --------
    group_rates : The rates of each group, with row counts and confidence intervals.
    equal_opportunity_difference, equalized_odds_difference : Given the true label.

    Examples
    --------
    >>> from fairpca.metrics import demographic_parity_difference
    >>> demographic_parity_difference([1, 1, 0, 0], sensitive_features=["a", "a", "a", "b"])
    0.6666666666666666
    """
    truth, predictions = (None, y_true) if y_pred is None else (y_true, y_pred)
    decided = GroupedDecisions(truth, predictions, sensitive_features, sample_weight, labelled=False)
    return decided.difference(None)


def equal_opportunity_difference(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, sample_weight: Any = None
) -> float:
    """Largest difference between groups in the share of positive predictions among rows with the label 1.

    ``max_{a, b} |E[g | a, y = 1] - E[g | b, y = 1]|``. Every group needs a row with that label.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels 0 and 1.
    y_pred, sensitive_features, sample_weight
        As in :func:`demographic_parity_difference`.

    Returns
    -------
    float
        Between 0 and 1.

    See Also
    --------
    demographic_parity_difference : For all rows.
    equalized_odds_difference : For both labels.

    Examples
    --------
    >>> from fairpca.metrics import equal_opportunity_difference
    >>> equal_opportunity_difference([1, 1, 0, 1], [1, 0, 0, 1], sensitive_features=["a", "a", "b", "b"])
    0.5
    """
    return GroupedDecisions(y_true, y_pred, sensitive_features, sample_weight).difference(1)


def equalized_odds_difference(y_true: Any, y_pred: Any, *, sensitive_features: Any, sample_weight: Any = None) -> float:
    """The larger of the differences among rows with the label 0 and among rows with the label 1.

    ``max_y max_{a, b} |E[g | a, y] - E[g | b, y]|``.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, sample_weight : as in equal_opportunity_difference
        Labels, predictions and groups.

    Returns
    -------
    float
        Between 0 and 1.

    See Also
    --------
    demographic_parity_difference : For all rows.
    equal_opportunity_difference : For the label 1.

    Examples
    --------
    >>> from fairpca.metrics import equalized_odds_difference
    >>> equalized_odds_difference([1, 0, 0, 1], [1, 1, 0, 1], sensitive_features=["a", "a", "b", "b"])
    1.0
    """
    decided = GroupedDecisions(y_true, y_pred, sensitive_features, sample_weight)
    return max(decided.difference(0), decided.difference(1))
