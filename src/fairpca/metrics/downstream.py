"""Differences between groups in what a binary classifier predicts (Definitions 2-4 of Lee et al. 2022)."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairpca._labels import quoted
from fairpca._validation import Groups, check_choice, check_groups, check_sample_weight, check_several_groups

__all__ = [
    "demographic_parity_difference",
    "equal_opportunity_difference",
    "equalized_odds_difference",
]


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
    predictions = _check_unit("y_pred", y_true if y_pred is None else y_pred)
    if y_pred is not None and y_true is not None:
        _check_same_length(np.asarray(y_true), predictions)
    groups, weights = _check_rows(predictions, sensitive_features, sample_weight)
    return _spread(predictions, groups, weights, np.ones(len(predictions), dtype=bool), method)


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
    return _label_spreads(y_true, y_pred, sensitive_features, method, sample_weight, labels=(1,))[0]


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
    spreads = _label_spreads(y_true, y_pred, sensitive_features, method, sample_weight, labels=(0, 1))
    return max(spreads) if agg == "worst_case" else float(np.mean(spreads))


def _label_spreads(
    y_true: Any, y_pred: Any, sensitive_features: Any, method: str, sample_weight: Any, *, labels: tuple[int, ...]
) -> list[float]:
    truth, predictions = _check_unit("y_true", y_true), _check_unit("y_pred", y_pred)
    _check_same_length(truth, predictions)
    if not np.isin(truth, (0.0, 1.0)).all():
        raise ValueError("y_true must consist of 0 and 1; encode the positive class as 1.")
    groups, weights = _check_rows(predictions, sensitive_features, sample_weight)
    return [_spread(predictions, groups, weights, truth == label, method) for label in labels]


def _check_same_length(truth: np.ndarray, predictions: np.ndarray) -> None:
    if len(truth) != len(predictions):
        raise ValueError(f"y_true has {len(truth)} rows and y_pred {len(predictions)}: they must have the same length.")


def _check_unit(name: str, values: Any) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name} must be one-dimensional and not empty, got shape {array.shape}.")
    if not (np.isfinite(array).all() and array.min() >= 0 and array.max() <= 1):
        raise ValueError(f"{name} must lie in [0, 1]: labels 0 and 1, or probabilities of the positive class.")
    return array


def _check_rows(predictions: np.ndarray, sensitive_features: Any, sample_weight: Any) -> tuple[Groups, np.ndarray]:
    """Groups with positive weight; rows with weight zero get the first code, where they contribute nothing."""
    groups = check_groups(sensitive_features, len(predictions))
    weights = check_sample_weight(sample_weight, len(predictions))
    if weights is None:
        weights = np.ones(len(predictions))
    counted = weights > 0
    present, codes = np.unique(groups.codes[counted], return_inverse=True)
    labels = tuple(groups.labels[code] for code in present)
    check_several_groups(labels, len(predictions))
    all_codes = np.zeros(len(predictions), dtype=np.intp)
    all_codes[counted] = codes.reshape(-1)
    return Groups(labels, all_codes), weights


def _spread(predictions: np.ndarray, groups: Groups, weights: np.ndarray, rows: np.ndarray, method: str) -> float:
    """Largest minus smallest weighted group mean over the chosen rows, or the largest distance from the mean of all."""
    check_choice("method", method, ("between_groups", "to_overall"))
    codes, kept = groups.codes[rows], weights[rows]
    totals = np.bincount(codes, kept, minlength=len(groups))
    if not totals.all():
        empty = groups.labels[int(np.argmin(totals))]
        raise ValueError(f"Group {quoted(empty)} has no row with one of the labels; merge small groups.")
    means = np.bincount(codes, kept * predictions[rows], minlength=len(groups)) / totals
    if method == "to_overall":
        return float(np.abs(means - totals @ means / totals.sum()).max())
    return float(np.ptp(means))
