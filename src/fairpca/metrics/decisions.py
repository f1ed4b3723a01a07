"""Decision rates of a binary classifier by group, with row counts and confidence intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import ndtri

from fairpca._validation import check_groups, check_number, check_sample_weight, check_several_groups, check_share

__all__ = ["GroupRates", "Rate", "RateDifference", "group_rates"]

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
    truth, decision = (_check_binary(name, values) for name, values in (("y_true", y_true), ("y_pred", y_pred)))
    if len(truth) != len(decision):
        raise ValueError(f"y_true has {len(truth)} rows and y_pred {len(decision)}: they must have the same length.")
    groups = check_groups(sensitive_features, len(truth))
    check_several_groups(groups.labels, len(truth))
    check_number("min_rows", min_rows, at_least=1, integer=True)
    check_share("confidence", confidence, example=0.95)
    given = check_sample_weight(sample_weight, len(truth))
    weights = np.ones(len(truth)) if given is None else given

    def rates(among: np.ndarray) -> dict[Any, Rate]:
        members = [among & (groups.codes == a) & (weights > 0) for a in range(len(groups.labels))]
        found = (_rate(decision[rows], weights[rows], confidence) for rows in members)
        return dict(zip(groups.labels, found, strict=True))

    selected, true_positive, false_positive = rates(np.ones(len(truth), dtype=bool)), rates(truth), rates(~truth)
    parity, opportunity = (_difference(part, min_rows, confidence) for part in (selected, true_positive))
    both = (1.0 + confidence) / 2  # the larger of two differences is reported, so each has half of the error
    odds = _larger(*(_difference(part, min_rows, both) for part in (true_positive, false_positive)))
    return GroupRates(selected, true_positive, false_positive, parity, opportunity, odds)


def _check_binary(name: str, values: Any) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name} must be one-dimensional and not empty, got shape {array.shape}.")
    if not np.isin(array, (0, 1)).all():
        raise ValueError(f"{name} must consist of 0 and 1; encode the positive class as 1.")
    return array.astype(bool)


def _rate(decisions: np.ndarray, weights: np.ndarray, confidence: float) -> Rate:
    if not len(decisions):
        return Rate(0, 0, math.nan, 0.0, 1.0, 0.0)
    share = float(weights @ decisions / weights.sum())
    rows = float(weights.sum() ** 2 / (weights @ weights))
    return Rate(int(decisions.sum()), len(decisions), share, *_wilson(share, rows, confidence), rows)


def _wilson(share: float, rows: float, confidence: float) -> tuple[float, float]:
    z = float(ndtri(0.5 + confidence / 2))
    centre = (share + z * z / (2 * rows)) / (1 + z * z / rows)
    half = z * math.sqrt(share * (1 - share) / rows + (z / (2 * rows)) ** 2) / (1 + z * z / rows)
    return (0.0 if share == 0 else centre - half), (1.0 if share == 1 else centre + half)


def _difference(rates: dict[Any, Rate], min_rows: int, confidence: float) -> RateDifference:
    fewest = min(rate.rows for rate in rates.values())
    if fewest < min_rows:
        return RateDifference(None, None, None, fewest, None)
    high, low = max(rates, key=lambda a: rates[a].value), min(rates, key=lambda a: rates[a].value)
    if high == low:  # all rates are equal
        high, low = list(rates)[:2]
    pairs = len(list(combinations(rates, 2)))
    first, second = rates[high], rates[low]
    above, below = (_wilson(one.value, one.effective_rows, 1 - (1 - confidence) / pairs) for one in (first, second))
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
