"""Confidence intervals of single values, and of all values that one call states, together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

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
    freedom: np.ndarray

    def plus(self, error: np.ndarray, freedom: float | np.ndarray = np.inf) -> Spread:
        total = np.hypot(self.error, error)
        with np.errstate(divide="ignore", invalid="ignore"):
            fourth = self.error**4 / self.freedom + error**4 / freedom
            joined = np.where(fourth > 0, total**4 / fourth, np.inf)
        return Spread(total, np.where(np.isfinite(total), joined, 1.0))

    def half_width(self, critical: float) -> np.ndarray:
        """Half the interval that has ``critical`` standard errors if they are known exactly."""
        return stats.t.isf(stats.norm.sf(critical), self.freedom) * self.error


def influence_by_group(
    values: np.ndarray, group: np.ndarray, unit: np.ndarray, weights: np.ndarray | None, share: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """What every independent unit adds to the error of its group's mean; the means' standard errors and their freedom.

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
    errors, freedom : ndarray of shape (n_groups, n_values)
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
        influences.append(influence * np.sqrt(n / max(n - 1, 1) * share[a]))
        squares = (influences[-1] ** 2).sum(axis=0)
        errors.append(np.sqrt(squares) if n > 1 else np.full(len(squares), np.inf))
        freedom.append(_freedom(influences[-1], n))
    return influences, np.stack(errors), np.stack(freedom)


def _freedom(influence: np.ndarray, n: int) -> np.ndarray:
    """Degrees of freedom: few where a few units dominate.

    A squared standard error varies by a factor of variance ``(kurtosis - 1) / n``, as a chi-square of ``2 n /
    (kurtosis - 1)`` degrees of freedom does.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = n * (influence**4).sum(axis=0) / (influence**2).sum(axis=0) ** 2 - 1.0
        freedom = np.where(excess > 0, 2.0 * n / excess, np.inf)
    return np.clip(freedom, 1.0, max(n - 1.0, 1.0))


def critical_value(influences: Sequence[np.ndarray], confidence: float, *, pairs: bool) -> float:
    """How many standard errors hold all values at once: of groups, or of the differences of all pairs of groups.

    The means of independent units are nearly normal, and how they vary together follows from the units' influences:
    one array of shape (n_units, n_values) per group, with the same values in each.
    """
    rng, draws, variances = rng_for(0, "critical value"), [], []
    for influence in influences:
        values, vectors = np.linalg.eigh(influence.T @ influence)
        roots = vectors * np.sqrt(np.maximum(values, 0.0))
        draws.append(rng.standard_normal((_DRAWS, len(values))) @ roots.T)
        variances.append((influence**2).sum(axis=0))
    alone = [((a,), draws[a], variances[a]) for a in range(len(draws))]
    both = [((a, b), draws[a] - draws[b], variances[a] + variances[b]) for a, b in combinations(range(len(draws)), 2)]
    largest = np.zeros(_DRAWS)
    for _, drawn, variance in both if pairs else alone:
        known = variance > 0
        if known.any():
            np.maximum(largest, np.abs(drawn[:, known] / np.sqrt(variance[known])).max(axis=1), out=largest)
    return max(float(np.quantile(largest, confidence)), float(stats.norm.ppf(0.5 + confidence / 2)))
