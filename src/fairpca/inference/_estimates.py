"""Values by group with confidence intervals, and differences between groups with simultaneous intervals."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

__all__ = ["Estimate", "GroupEstimates", "critical_value", "estimates_by_group"]

#: Number of draws for the critical value of several pairs; its own error is then below 1 %.
_DRAWS = 20_000


@dataclass(frozen=True)
class Estimate:
    """A value and its confidence interval.

    Attributes
    ----------
    value : float
        The estimate.
    low, high : float
        Its confidence interval.

    See Also
    --------
    cross_validate_groups : Computes estimates of each group.

    Examples
    --------
    >>> from fairpca.inference import Estimate
    >>> Estimate(1.5, low=0.5, high=2.5).value
    1.5
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class GroupEstimates:
    """One value per group, the value of all rows, and the largest difference between two groups.

    The interval of the gap is that of the difference between the two groups named in ``between``, so it may reach below
    zero: then the order of the two groups is not certain. With three or more groups it is corrected for comparing
    all pairs.

    Attributes
    ----------
    by_group : dict
        Label -> :class:`Estimate`.
    overall : float
        The value of all rows.
    gap : Estimate
        The largest difference between two groups.
    between : tuple of two labels
        The groups it is between, the one with the larger value first.

    See Also
    --------
    cross_validate_groups : Computes them.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.inference import cross_validate_groups
    >>> from sklearn.decomposition import PCA
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> found = cross_validate_groups(PCA(2), X, sensitive_features=sex, random_state=0)
    >>> sorted(found.error.by_group), found.error.gap_excludes_zero
    (['female', 'male'], False)
    """

    by_group: dict[Any, Estimate]
    overall: float
    gap: Estimate
    between: tuple[Any, Any]

    @property
    def worst(self) -> Any:
        """The group with the largest value."""
        return self.between[0]

    @property
    def gap_excludes_zero(self) -> bool:
        """Whether the interval of the gap lies above zero."""
        return self.gap.low > 0


def estimates_by_group(
    labels: Sequence[Any],
    values: np.ndarray,
    errors: np.ndarray,
    freedom: np.ndarray,
    overall: float,
    confidence: float,
    *,
    own_errors: np.ndarray | None = None,
    least: float = -np.inf,
) -> GroupEstimates:
    """Intervals by Student's t for independent groups.

    Parameters
    ----------
    labels, values, errors, freedom
        For each group: its label, its value, the standard error to use in differences, and its degrees of freedom.
    overall : float
        The value of all rows.
    confidence : float
    own_errors : ndarray, optional
        Standard errors of single groups, if they differ from those in differences.
    least : float
        A lower limit of all values; intervals of single groups are clipped there.
    """
    own = (errors if own_errors is None else own_errors) * stats.t.ppf(0.5 + confidence / 2, freedom)
    by_group = {
        label: Estimate(float(value), max(float(value - half), least), float(value + half))
        for label, value, half in zip(labels, values, own, strict=True)
    }
    high, low = _extremes(values)
    half = critical_value(errors, freedom, confidence) * float(np.hypot(errors[high], errors[low]))
    difference = float(values[high] - values[low])
    gap = Estimate(difference, difference - half, difference + half)
    return GroupEstimates(by_group, float(overall), gap, (labels[high], labels[low]))


def _extremes(values: np.ndarray) -> tuple[int, int]:
    """The groups with the largest and the smallest value; two different groups even if all values are equal."""
    high, low = int(values.argmax()), int(values.argmin())
    return (high, low) if high != low else (0, 1)


def critical_value(errors: np.ndarray, freedom: np.ndarray, confidence: float) -> float:
    """The number of standard errors within which all pairwise differences of independent groups lie simultaneously."""
    if not np.isfinite(errors).all() or not errors.any():
        return float(stats.norm.ppf(0.5 + confidence / 2))
    if len(errors) == 2:  # Welch and Satterthwaite
        welch = (errors @ errors) ** 2 / (errors**4 / freedom).sum()
        return float(stats.t.ppf(0.5 + confidence / 2, welch))
    relative = tuple(np.round(errors / errors.max(), 3))
    return _simultaneous(relative, tuple(np.round(freedom, 0)), confidence)


@functools.lru_cache(maxsize=256)
def _simultaneous(errors: tuple[float, ...], freedom: tuple[float, ...], confidence: float) -> float:
    """The same by simulation, from normal values with estimated standard errors."""
    rng, shape = np.random.default_rng(0), (_DRAWS, len(errors))
    draws = rng.standard_normal(shape) * errors
    squares = rng.chisquare(freedom, shape) / freedom * np.square(errors)
    largest = np.zeros(_DRAWS)
    for a, b in combinations(range(len(errors)), 2):
        scale = squares[:, a] + squares[:, b]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(scale > 0, (draws[:, a] - draws[:, b]) ** 2 / scale, 0.0)
        np.maximum(largest, ratio, out=largest)
    return float(np.sqrt(np.quantile(largest, confidence)))
