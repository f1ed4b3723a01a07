"""Values of single rows whose means are the errors and losses of groups, and the sums that standard errors need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from fairpca._validation import Groups
from fairpca.inference._folds import Folds
from fairpca.moments import Views, on_row_ranges, row_squares

__all__ = ["N_VALUES", "RowValues", "ValueSums", "values_of"]

#: Error on new rows, corrected loss, loss relative to the group's own optimum, change from ordinary PCA.
N_VALUES = 4


@dataclass(frozen=True)
class ValueSums:
    """Sums over independent units (rows, or clusters of them) of each group; the sums of parts add up.

    A unit has a weight W and totals T of its weighted values. The mean of a group is ``sum T / sum W``, and its
    standard error follows from the squares of ``T - mean W``.

    Attributes
    ----------
    units, weight, weight_squares : ndarray of shape (k,)
    totals, cross, squares : ndarray of shape (k, n_values)
    fourth : ndarray of shape (5, k, n_values)
        Sums of ``T^(4 - j) W^j``.
    """

    units: np.ndarray
    weight: np.ndarray
    weight_squares: np.ndarray
    totals: np.ndarray
    cross: np.ndarray
    squares: np.ndarray
    fourth: np.ndarray

    @classmethod
    def of(
        cls,
        values: np.ndarray,
        codes: np.ndarray,
        n_groups: int,
        weights: np.ndarray | None = None,
        clusters: np.ndarray | None = None,
    ) -> ValueSums:
        """From values (n, n_values) of rows and the group of each."""
        weight = np.ones(len(values)) if weights is None else weights
        total = values if weights is None else values * weights[:, None]
        if clusters is not None:  # a cluster with rows in two groups is a unit of each
            pairs, unit = np.unique(clusters.astype(np.int64) * n_groups + codes, return_inverse=True)
            codes = pairs % n_groups
            weight = np.bincount(unit, weight)
            total = np.stack([np.bincount(unit, column) for column in total.T], axis=1)

        def add(terms: np.ndarray) -> np.ndarray:
            if terms.ndim == 1:
                return np.bincount(codes, terms, minlength=n_groups)
            return np.stack([np.bincount(codes, column, minlength=n_groups) for column in terms.T], axis=1)

        return cls(
            units=np.bincount(codes[weight > 0], minlength=n_groups).astype(float),
            weight=add(weight),
            weight_squares=add(weight**2),
            totals=add(total),
            cross=add(total * weight[:, None]),
            squares=add(total**2),
            fourth=np.stack([add(total ** (4 - j) * weight[:, None] ** j) for j in range(5)]),
        )

    @classmethod
    def zeros(cls, n_groups: int, n_values: int) -> ValueSums:
        """Empty sums, to add rows to."""
        single, several = (n_groups,), (n_groups, n_values)
        shapes = (single, single, single, several, several, several, (5, *several))
        return cls(*(np.zeros(shape) for shape in shapes))

    def add(self, group: int, values: np.ndarray, weights: np.ndarray | None) -> None:
        """Add rows of one group, each of which is a unit."""
        if weights is None:
            weights = np.ones(len(values))
        self.units[group] += np.count_nonzero(weights)
        self.weight[group] += weights.sum()
        self.weight_squares[group] += weights @ weights
        self.totals[group] += weights @ values
        self.cross[group] += weights**2 @ values
        squares, fourth = values**2, weights**4
        self.squares[group] += weights**2 @ squares
        self.fourth[:, group] += [fourth @ power for power in _powers(values, squares)]

    @staticmethod
    def merge(parts: Sequence[ValueSums]) -> ValueSums:
        return ValueSums(*(sum(column) for column in zip(*(vars(part).values() for part in parts), strict=True)))

    @property
    def means(self) -> np.ndarray:
        """Of shape (k, n_values)."""
        return self.totals / self.weight[:, None]

    @property
    def errors(self) -> np.ndarray:
        """Standard errors of the means; infinite for a group of one unit."""
        units = self.units[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.sqrt(self._spread * units / (units - 1.0)) / self.weight[:, None]
        return np.where(units > 1, found, np.inf)

    @property
    def freedom(self) -> np.ndarray:
        """Degrees of freedom of the standard errors, of shape (k, n_values).

        A squared standard error varies by a factor of variance ``(kurtosis - 1) / n``, as a chi-square of ``2 n /
        (kurtosis - 1)`` degrees of freedom does: few, where a few rows dominate.
        """
        means, units = self.means, self.units[:, None]
        quartic = sum(comb(4, j) * (-means) ** j * self.fourth[j] for j in range(5))
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = units * quartic / self._spread**2 - 1.0
            freedom = np.where(excess > 0, 2.0 * units / excess, np.inf)
        return np.clip(freedom, 1.0, np.maximum(units - 1.0, 1.0))

    @property
    def _spread(self) -> np.ndarray:
        """``sum (T - mean W)^2``."""
        means = self.means
        return np.maximum(self.squares - 2.0 * means * self.cross + means**2 * self.weight_squares[:, None], 0.0)


def _powers(values: np.ndarray, squares: np.ndarray) -> tuple[np.ndarray, ...]:
    """The fourth power, the third, ..., the zeroth."""
    return squares**2, squares * values, squares, values, np.ones_like(values)


@dataclass(frozen=True)
class RowValues:
    """Applied to a chunk: sums of the values of its rows, see :func:`values_of`.

    ``views`` has four bases for every cell of group and judged fold: own components of the group, own components
    without the fold, ordinary ones without the fold, the method's without the fold, and one more for a method that is
    not an orthogonal projection. ``own_weights``, one per group, as
    in :func:`values_of`. ``share`` is the share of the rows that is used, drawn at random.
    """

    folds: Folds
    views: Views
    own_weights: np.ndarray
    parallel: bool = True
    share: float = 1.0

    def __call__(self, number: int, X: Any, groups: Groups, weights: np.ndarray | None) -> ValueSums:
        codes, clusters = self.folds.judged_cells(number, groups), self.folds.clusters
        chosen = self._chosen(number, codes)
        if chosen is not None:
            X, codes = X[chosen], codes[chosen]
            weights, clusters = (None if column is None else column[chosen] for column in (weights, clusters))
        n_groups, n_folds = len(self.folds.cells.labels), len(self.folds.judged)
        if clusters is not None:  # the rows of a cluster may be anywhere
            return ValueSums.of(self._of_rows(X, codes), codes // n_folds, n_groups, weights, clusters)

        def add(rows: slice) -> ValueSums:
            sums = ValueSums.zeros(n_groups, N_VALUES)
            part = None if weights is None else weights[rows]
            for cell, found, squares in row_squares(X[rows], codes[rows], self.views):
                group = cell // n_folds
                values = values_of(squares, self.own_weights[group])
                sums.add(group, values, None if part is None else part[found])
            return sums

        return ValueSums.merge(on_row_ranges(X, add, parallel=self.parallel))

    def _chosen(self, number: int, codes: np.ndarray) -> np.ndarray | None:
        """The rows to use; None for all."""
        if self.share < 1.0:
            rng = np.random.default_rng([1, number])
            drawn = rng.choice(len(codes), rng.binomial(len(codes), self.share), replace=False, shuffle=False)
            drawn.sort()
            return drawn[codes[drawn] >= 0]
        return None if self.folds.judges_all else np.flatnonzero(codes >= 0)

    def _of_rows(self, X: Any, codes: np.ndarray) -> np.ndarray:
        values = np.empty((X.shape[0], N_VALUES))
        for cell, rows, squares in row_squares(X, codes, self.views):
            values[rows] = values_of(squares, self.own_weights[cell // len(self.folds.judged)])
        return values


def values_of(squares: np.ndarray, own_weight: float) -> np.ndarray:
    """From squares to values, row by row.

    Parameters
    ----------
    squares : ndarray of shape (n, 5) or (n, 6)
        Squared length, and what is captured of it by: own components of the group, own components without the fold,
        ordinary PCA without the fold, the method without the fold; and what is to be subtracted from the last, because
        the scores of the method are not those of an orthogonal projection.
    own_weight : float
        How the group's own optimum lies between what its own components capture in the sample (too much) and without
        the fold (too little).

    Returns
    -------
    ndarray of shape (n, 4)
        Error on new rows; corrected loss; loss against the own optimum; change of the error against ordinary PCA.
    """
    total, own, own_without, ordinary, method, *oblique = squares.T
    method = method - sum(oblique)
    reference = own_weight * own + (1.0 - own_weight) * own_without
    return np.column_stack([total - method, reference - method, own - method, ordinary - method])
