"""Confidence intervals of single values, and of all values that one call states, together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from fairpca._validation import rng_for

__all__ = ["Spread", "critical_value", "influence_by_group"]

#: Number of draws for a critical value; its own error is then about 1 %.
_DRAWS = 10_000


@dataclass(frozen=True)
class Spread:
    """A standard error with its degrees of freedom; independent ones add up as squares (Welch and Satterthwaite)."""

    error: np.ndarray
    freedom: np.ndarray | float = np.inf

    def __getitem__(self, key: Any) -> Spread:
        return Spread(self.error[key], np.broadcast_to(self.freedom, self.error.shape)[key])

    def plus(self, other: Spread) -> Spread:
        total = np.hypot(self.error, other.error)
        with np.errstate(divide="ignore", invalid="ignore"):
            fourth = self.error**4 / self.freedom + other.error**4 / other.freedom
            joined = np.where(fourth > 0, total**4 / fourth, np.inf)
        return Spread(total, np.where(np.isfinite(total), joined, 1.0))

    def half_width(self, critical: float) -> np.ndarray:
        """Half the interval that has ``critical`` standard errors if they are known exactly."""
        return stats.t.isf(stats.norm.sf(critical), self.freedom) * self.error


def influence_by_group(
    values: np.ndarray, group: np.ndarray, unit: np.ndarray, weights: np.ndarray | None, share: np.ndarray
) -> tuple[list[np.ndarray], Spread]:
    """What every independent unit adds to the error of its group's mean, and the standard errors of the means.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_values)
        NaN for rows that were not tested.
    group, unit : integer arrays
        A cluster with rows in two groups is a unit of each.
    weights : ndarray or None
    share : ndarray of shape (n_groups,)
        The share of each group's units that these rows are.

    Returns
    -------
    influences : list of arrays of shape (n_units, n_values), one per group
        The sum of squares is the squared standard error, that of products of two columns the covariance of two means.
    spread : Spread
        Of shape (n_groups, n_values).
    """
    influences, errors, freedom = [], [], []
    for a in range(len(share)):
        chosen = np.flatnonzero(group == a)
        of_unit = np.unique(unit[chosen], return_inverse=True)[1].reshape(-1)
        tested = ~np.isnan(values[chosen, 0])
        weight = np.where(tested, 1.0 if weights is None else weights[chosen], 0.0)
        part = np.where(tested[:, None], values[chosen], 0.0)
        total = weight.sum() if tested.any() else 1.0
        deviations = weight[:, None] * (part - weight @ part / total) / total
        influence = np.stack([np.bincount(of_unit, column) for column in deviations.T], axis=1)
        n = int(np.count_nonzero(np.bincount(of_unit, tested)))
        influence *= np.sqrt(n / max(n - 1, 1) * share[a])
        squares = (influence**2).sum(axis=0)
        influences.append(influence)
        errors.append(np.sqrt(squares) if n > 1 else np.full(len(squares), np.inf))
        # Few degrees of freedom where a few units dominate: a squared standard error varies by a factor of variance
        # (kurtosis - 1) / n, as a chi-square of 2 n / (kurtosis - 1) degrees of freedom does.
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = n * (influence**4).sum(axis=0) / squares**2 - 1.0
            known = np.where(excess > 0, 2.0 * n / excess, np.inf)
        freedom.append(np.clip(known, 1.0, max(n - 1.0, 1.0)))
    return influences, Spread(np.stack(errors), np.stack(freedom))


def critical_value(influences: Sequence[np.ndarray], confidence: float, *, pairs: bool) -> float:
    """How many standard errors hold all values at once: of groups, or of the differences of all pairs of groups.

    The means of independent units are nearly normal, and how they vary together follows from the units' influences:
    one array of shape (n_units, n_values) per group, with the same values in each.
    """
    rng, groups = rng_for(0, "critical value"), []
    for influence in influences:
        values, vectors = np.linalg.eigh(influence.T @ influence)
        roots = vectors * np.sqrt(np.maximum(values, 0.0))
        groups.append((rng.standard_normal((_DRAWS, len(values))) @ roots.T, (influence**2).sum(axis=0)))
    differences = ((one - other, first + second) for (one, first), (other, second) in combinations(groups, 2))
    largest = np.zeros(_DRAWS)
    for drawn, variance in differences if pairs else groups:
        known = variance > 0
        if known.any():
            np.maximum(largest, np.abs(drawn[:, known] / np.sqrt(variance[known])).max(axis=1), out=largest)
    return max(float(np.quantile(largest, confidence)), float(stats.norm.ppf(0.5 + confidence / 2)))
