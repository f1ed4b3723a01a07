"""Decisions of a classifier by group: rates with intervals, and differences (Definitions 2-4 of Lee et al. 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from fairpca._labels import quoted
from fairpca._validation import (
    check_choice,
    check_groups,
    check_number,
    check_sample_weight,
    check_several_groups,
    check_share,
)

__all__ = [
    "MIN_ROWS",
    "GroupRates",
    "Rate",
    "RateDifference",
    "compare_rates",
    "demographic_parity_difference",
    "equal_opportunity_difference",
    "equalized_odds_difference",
    "group_rates",
]

#: Rates based on fewer rows are not compared.
MIN_ROWS = 20


@dataclass(frozen=True)
class Rate:
    """A share of rows, ``count`` of ``rows``, with Wilson's interval; ``value`` is NaN if there are no rows.

    With weights, ``value`` is the weighted share, and the interval is that of ``effective_rows``, the number of rows
    of equal weight that would be as informative: ``(sum w)^2 / sum w^2`` (Kish 1965).

    Attributes
    ----------
    count : int
        Rows that are counted.
    rows : int
        All rows.
    value : float
        Their ratio.
    low, high : float
        A confidence interval.
    effective_rows : float
        Without weights, the number of rows.

    See Also
    --------
    group_rates : Computes rates of all groups.

    Examples
    --------
    >>> from fairpca.metrics import group_rates
    >>> rates = group_rates([1, 0] * 20, [1, 0] * 20, sensitive_features=["a", "a", "b", "b"] * 10)
    >>> rates.selected["a"].count, rates.selected["a"].rows, rates.selected["a"].value
    (10, 20, 0.5)
    """

    count: int
    rows: int
    value: float
    low: float
    high: float
    effective_rows: float


@dataclass(frozen=True)
class RateDifference:
    """The largest difference between two groups in a rate.

    Attributes
    ----------
    value : float or None
        None if a group has too few rows to compare.
    low, high : float or None
        A confidence interval corrected for comparing all pairs of groups (Newcombe 1998, with Bonferroni's correction).
    rows : int
        Number of rows of the smallest group in the comparison.
    between : tuple of two labels, or None
        The group with the larger rate first.

    See Also
    --------
    group_rates : Computes it.

    Examples
    --------
    >>> from fairpca.metrics import group_rates
    >>> rates = group_rates([1, 0] * 20, [1, 0] * 20, sensitive_features=["a", "a", "b", "b"] * 10)
    >>> rates.demographic_parity.value, rates.demographic_parity.rows
    (0.0, 20)
    """

    value: float | None
    low: float | None
    high: float | None
    rows: int
    between: tuple[Any, Any] | None


@dataclass(frozen=True)
class GroupRates:
    """Result of :func:`group_rates`.

    Attributes
    ----------
    selected : dict
        Label -> :class:`Rate` of positive decisions among all rows of the group.
    true_positive, false_positive : dict
        The same among the rows whose true label is positive, and among the others.
    demographic_parity, equal_opportunity, equalized_odds : RateDifference
        Largest differences in ``selected``, in ``true_positive``, and in either of ``true_positive`` and
        ``false_positive``.

    See Also
    --------
    group_rates : Computes them.

    Examples
    --------
    >>> from fairpca.metrics import group_rates
    >>> rates = group_rates([1, 0] * 30, [1, 1] * 30, sensitive_features=["a", "b", "b"] * 20)
    >>> rates.selected["a"].count, rates.selected["a"].rows
    (20, 20)
    """

    selected: dict[Any, Rate]
    true_positive: dict[Any, Rate]
    false_positive: dict[Any, Rate]
    demographic_parity: RateDifference
    equal_opportunity: RateDifference
    equalized_odds: RateDifference


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
        Rates based on fewer rows are not compared; the difference is then None, and ``rows`` shows why.
    confidence : float, default=0.95
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows in the rates; intervals use the effective number of rows.

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
    >>> rates.selected["a"].count, rates.selected["a"].rows, round(rates.demographic_parity.value, 3)
    (50, 60, 0.833)
    >>> rates.equal_opportunity.rows
    20
    """
    check_number("min_rows", min_rows, at_least=1, integer=True)
    check_share("confidence", confidence, example=0.95)
    decided = _Decided(y_true, _check_unit("y_pred", y_pred, binary=True), sensitive_features, sample_weight)
    selected, true_positive, false_positive = (decided.rates(label, confidence) for label in (None, 1, 0))
    pairs = len(selected) * (len(selected) - 1) / 2
    one, two = (float(ndtri(1.0 - (1.0 - confidence) / (2 * count))) for count in (pairs, 2 * pairs))
    return compare_rates(selected, true_positive, false_positive, min_rows, one, two)


class _Decided:
    """Checked labels, predictions, groups and weights; rows of weight zero do not count."""

    def __init__(
        self, y_true: Any, y_pred: Any, sensitive_features: Any, sample_weight: Any, *, labelled: bool = True
    ) -> None:
        self.predictions = _check_unit("y_pred", y_pred)
        n = len(self.predictions)
        self.truth = _check_unit("y_true", y_true, binary=True) if labelled else y_true
        if self.truth is not None and len(self.truth) != n:
            raise ValueError(f"y_true has {len(self.truth)} rows and y_pred {n}: they must have the same length.")
        groups, weights = check_groups(sensitive_features, n), check_sample_weight(sample_weight, n)
        self._weights = np.ones(n) if weights is None else weights
        present = np.unique(groups.codes[self._weights > 0])
        self._labels = {groups.labels[code]: groups.codes == code for code in present}
        check_several_groups(tuple(self._labels), n)

    def _members(self, label: int | None) -> dict[Any, np.ndarray]:
        """The rows of each group; of one true label, if that is given."""
        among = self._weights > 0 if label is None else (self.truth == label) & (self._weights > 0)
        return {group: rows & among for group, rows in self._labels.items()}

    def rates(self, label: int | None, confidence: float) -> dict[Any, Rate]:
        return {
            group: _rate(self.predictions[rows], self._weights[rows], confidence)
            for group, rows in self._members(label).items()
        }

    def spread(self, label: int | None, method: str) -> float:
        """The largest difference between groups, or the largest distance of a group from all rows."""
        check_choice("method", method, ("between_groups", "to_overall"))
        members = self._members(label)
        empty = [group for group, rows in members.items() if not rows.any()]
        if empty:
            raise ValueError(f"Group {quoted(empty[0])} has no row with one of the labels; merge small groups.")
        means = [np.average(self.predictions[rows], weights=self._weights[rows]) for rows in members.values()]
        if method == "between_groups":
            return float(np.ptp(means))
        everybody = np.logical_or.reduce(list(members.values()))
        overall = np.average(self.predictions[everybody], weights=self._weights[everybody])
        return float(np.abs(np.array(means) - overall).max())


def _check_unit(name: str, values: Any, *, binary: bool = False) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name} must be one-dimensional and not empty, got shape {array.shape}.")
    if binary and not np.isin(array, (0.0, 1.0)).all():
        raise ValueError(f"{name} must consist of 0 and 1; encode the positive class as 1.")
    if not (np.isfinite(array).all() and array.min() >= 0 and array.max() <= 1):
        raise ValueError(f"{name} must lie in [0, 1]: labels 0 and 1, or probabilities of the positive class.")
    return array


def compare_rates(
    selected: dict[Any, Rate],
    true_positive: dict[Any, Rate],
    false_positive: dict[Any, Rate],
    min_rows: int,
    critical: float,
    critical_of_two: float,
) -> GroupRates:
    """The largest differences, with intervals of so many standard errors; the larger of two has its own number."""
    parity, opportunity = (_difference(part, min_rows, critical) for part in (selected, true_positive))
    odds = _larger(*(_difference(part, min_rows, critical_of_two) for part in (true_positive, false_positive)))
    return GroupRates(selected, true_positive, false_positive, parity, opportunity, odds)


def _rate(decisions: np.ndarray, weights: np.ndarray, confidence: float) -> Rate:
    if not len(decisions):
        return Rate(0, 0, math.nan, 0.0, 1.0, 0.0)
    share = float(weights @ decisions / weights.sum())
    rows = float(weights.sum() ** 2 / (weights @ weights))
    return Rate(
        int(decisions.sum()), len(decisions), share, *_wilson(share, rows, float(ndtri(0.5 + confidence / 2))), rows
    )


def _wilson(share: float, rows: float, z: float) -> tuple[float, float]:
    centre = (share + z * z / (2 * rows)) / (1 + z * z / rows)
    half = z * math.sqrt(share * (1 - share) / rows + (z / (2 * rows)) ** 2) / (1 + z * z / rows)
    return (0.0 if share == 0 else centre - half), (1.0 if share == 1 else centre + half)


def _difference(rates: dict[Any, Rate], min_rows: int, z: float) -> RateDifference:
    fewest = min(rate.rows for rate in rates.values())
    if fewest < min_rows:
        return RateDifference(None, None, None, fewest, None)
    high, low = max(rates, key=lambda a: rates[a].value), min(rates, key=lambda a: rates[a].value)
    if high == low:  # all rates are equal
        high, low = list(rates)[:2]
    first, second = rates[high], rates[low]
    above, below = (_wilson(one.value, one.effective_rows, z) for one in (first, second))
    value = first.value - second.value
    return RateDifference(
        value=value,
        low=value - math.hypot(first.value - above[0], below[1] - second.value),
        high=value + math.hypot(above[1] - first.value, second.value - below[0]),
        rows=fewest,
        between=(high, low),
    )


def _larger(first: RateDifference, second: RateDifference) -> RateDifference:
    """The larger of two differences; unknown if either of them is."""
    unknown = [one for one in (first, second) if one.value is None]
    if unknown:
        return min(unknown, key=lambda one: one.rows)
    return max((first, second), key=lambda one: one.value or 0.0)


def demographic_parity_difference(
    y_true: Any = None,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    method: str = "between_groups",
    sample_weight: Any = None,
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
    method : {"between_groups", "to_overall"}, default="between_groups"
        Between two groups, or between a group and all rows.
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
    return _Decided(truth, predictions, sensitive_features, sample_weight, labelled=False).spread(None, method)


def equal_opportunity_difference(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, method: str = "between_groups", sample_weight: Any = None
) -> float:
    """Largest difference between groups in the share of positive predictions among rows with the label 1.

    ``max_{a, b} |E[g | a, y = 1] - E[g | b, y = 1]|``. Every group needs a row with that label.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels 0 and 1.
    y_pred, sensitive_features, method, sample_weight
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
    return _Decided(y_true, y_pred, sensitive_features, sample_weight).spread(1, method)


def equalized_odds_difference(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    method: str = "between_groups",
    sample_weight: Any = None,
    agg: str = "worst_case",
) -> float:
    """The larger of the differences among rows with the label 0 and among rows with the label 1.

    ``max_y max_{a, b} |E[g | a, y] - E[g | b, y]|``.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, method, sample_weight : as in equal_opportunity_difference
        Labels, predictions and groups.
    agg : {"worst_case", "mean"}, default="worst_case"
        The larger of the two differences, or their mean.

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
    check_choice("agg", agg, ("worst_case", "mean"))
    decided = _Decided(y_true, y_pred, sensitive_features, sample_weight)
    spreads = [decided.spread(label, method) for label in (0, 1)]
    return max(spreads) if agg == "worst_case" else float(np.mean(spreads))
