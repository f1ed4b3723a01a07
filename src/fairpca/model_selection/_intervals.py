"""Errors and losses of groups as means over rows, with bootstrap intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairpca._validation import Groups
from fairpca.inference import Estimate, GroupEstimates
from fairpca.linalg import top_eigenpairs
from fairpca.moments import GroupMoments

__all__ = ["RowFigures"]


class RowFigures:
    """Row by row: squared length, and the square captured by the best projection for the row's own group.

    Error and loss of a group are means of row values, so their resampling needs no refit. The projection under study
    and the groups' own best projections stay as fitted; only rows are redrawn, within each group.

    X may be a sample of the rows that ``moments`` describe. The figures are then those of all rows, and the deviations
    of the resamples, which shrink with the root of the number of rows, are scaled to their number.
    """

    def __init__(self, X: np.ndarray, groups: Groups, moments: GroupMoments, max_dimension: int) -> None:
        self._matrices = moments.second_moments()
        self._covariance, self._shares = moments.pooled_covariance(), moments.shares
        self._centred = X - moments.pooled_mean
        self._totals = np.einsum("ij,ij->i", self._centred, self._centred)
        self._labels = groups.labels
        self._rows = [np.flatnonzero(groups.codes == code) for code in range(len(groups))]
        self._best = np.zeros((len(X), max_dimension))
        leading = top_eigenpairs(self._covariance, max_dimension)[0]
        self._least_errors = np.trace(self._covariance) - np.cumsum(leading)
        self._sampled = np.array([len(rows) for rows in self._rows]) / moments.counts
        self._captured_best = np.zeros((len(self._rows), max_dimension))
        for a, (rows, moment) in enumerate(zip(self._rows, self._matrices, strict=True)):
            values, own_basis = top_eigenpairs(moment, max_dimension)
            self._best[rows] = np.cumsum((self._centred[rows] @ own_basis) ** 2, axis=1)
            self._captured_best[a] = np.cumsum(values)

    def estimates(
        self, bases: list[np.ndarray], n_bootstrap: int, confidence: float, seed: int
    ) -> list[tuple[GroupEstimates, GroupEstimates]]:
        """Errors and losses of each basis (p, d); all bases see the same resamples."""
        captured = [np.einsum("ij,ij->i", scores, scores) for scores in (self._centred @ basis for basis in bases)]
        best = [self._best[:, basis.shape[1] - 1] for basis in bases]
        columns = [self._totals - part for part in captured] + [
            own - part for own, part in zip(best, captured, strict=True)
        ]
        values = np.column_stack(columns)
        means, replicates = self._resample(values, n_bootstrap, seed)
        if (self._sampled < 1).any():
            replicates -= means[:, None]
            means = self._of_all_rows(bases)
            replicates = means[:, None] + replicates * np.sqrt(self._sampled)[:, None, None]
        overall = self._shares @ means
        for j, basis in enumerate(bases):  # the loss of all rows is measured against ordinary PCA
            overall[len(bases) + j] = max(overall[j] - self._least_errors[basis.shape[1] - 1], 0.0)
        # Errors and losses are never negative; a resample about projections that stay fixed may be, a little.
        figures = [
            _group_estimates(self._labels, means[:, j], replicates[:, :, j], float(overall[j]), confidence)
            for j in range(values.shape[1])
        ]
        return list(zip(figures[: len(bases)], figures[len(bases) :], strict=True))

    def _of_all_rows(self, bases: list[np.ndarray]) -> np.ndarray:
        """Errors, then losses of each group (k, 2 bases): exact, from the moments."""
        captured = np.stack([np.einsum("pi,api->a", basis, self._matrices @ basis) for basis in bases], axis=1)
        best = np.stack([self._captured_best[:, basis.shape[1] - 1] for basis in bases], axis=1)
        totals = np.einsum("app->a", self._matrices)[:, None]
        return np.hstack([totals - captured, best - captured])

    def _resample(self, values: np.ndarray, n_bootstrap: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Means of each group (k, columns), and the same for each resample (k, n_bootstrap, columns)."""
        rng = np.random.default_rng(seed)
        means, replicates = [], []
        for rows in self._rows:
            part = values[rows]
            means.append(part.mean(axis=0))
            draws = np.empty((n_bootstrap, values.shape[1]))
            for draw in draws:
                counts = np.bincount(rng.integers(len(rows), size=len(rows)), minlength=len(rows))
                draw[:] = counts @ part / len(rows)
            replicates.append(draws)
        return np.array(means), np.array(replicates)


def _group_estimates(
    labels: tuple[Any, ...], means: np.ndarray, replicates: np.ndarray, overall: float, confidence: float
) -> GroupEstimates:
    tails = [0.5 - confidence / 2, 0.5 + confidence / 2]
    by_group = {
        label: Estimate(*(max(float(part), 0.0) for part in (mean, *np.quantile(draws, tails))))
        for label, mean, draws in zip(labels, means, replicates, strict=True)
    }
    high, low = int(means.argmax()), int(means.argmin())
    differences = np.quantile(replicates[high] - replicates[low], tails)
    gap = Estimate(float(means[high] - means[low]), *map(float, differences))
    return GroupEstimates(by_group, overall, gap, (labels[high], labels[low]))
