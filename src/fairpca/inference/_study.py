"""Rows that were divided and summarised once, to evaluate any number of methods together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fairpca.inference._blocks import make_blocks
from fairpca.inference._divisions import Division
from fairpca.inference._fitting import fit_to_moments, is_projection, n_components_of, quietly, reconstruction_errors
from fairpca.inference._intervals import Spread, influence_by_group
from fairpca.linalg import threads_for
from fairpca.metrics._components import fitted_projection
from fairpca.moments import GroupMoments
from fairpca.moments._sources import MemorySource, RowSource
from fairpca.problems.balanced import best_captured
from fairpca.problems.evaluation import ROUNDING, Evaluation

__all__ = ["Evidence", "Study", "threads_for_fits"]

#: A fit from moments, or an evaluation, takes about as long as this many eigenproblems.
_EIGENPROBLEMS = 20.0
#: Random divisions into folds: the spread between them shows how much the fit varies, with one degree of freedom less.
_N_DIVISIONS = 5


def threads_for_fits(n_features: int) -> AbstractContextManager:
    """As many threads as fits from moments can use."""
    return threads_for(_EIGENPROBLEMS * n_features**3)


@dataclass(frozen=True)
class Evidence:
    """What one method with one number of components shows on rows that it was not fitted to.

    Attributes
    ----------
    method : str
    n_components : int
    sample_errors, sample_losses : ndarray of shape (n_groups + 1,)
        Of the groups, and last of all rows, on the rows that were used in fitting.
    values : ndarray of shape (n_divisions, n_groups, 4)
        See :mod:`fairpca.inference._divisions`.
    influences : tuple of ndarray of shape (n_units, 4), one per group
    spread : Spread
        Standard errors that come from how much the rows vary, of shape (n_groups, 4).
    n_folds : int
    n_effective : float
        The reciprocal of the share of rows in a test fold.
    own_weights : ndarray of shape (n_groups,)
    variation : float
        The squared standard error that comes from how much the fit varies, in units of the variance of ``values``
        between divisions.
    """

    method: str
    n_components: int
    sample_errors: np.ndarray
    sample_losses: np.ndarray
    values: np.ndarray
    influences: tuple[np.ndarray, ...]
    spread: Spread
    n_folds: int
    n_effective: float
    own_weights: np.ndarray
    variation: float

    @property
    def means(self) -> np.ndarray:
        """Of all divisions, of shape (n_groups, 4)."""
        return self.values.mean(axis=0)

    def with_variation(self, spread: Spread, repeated: np.ndarray) -> Spread:
        """Add how much the fit varies to the spread of values of which there is one per division."""
        if len(repeated) < 2:
            return spread
        varied = np.sqrt(self.variation * repeated.var(axis=0, ddof=1))
        return spread.plus(Spread(varied, len(repeated) - 1.0))


class Study:
    """One pass over the rows for all divisions, and one for the rows that standard errors come from.

    Attributes
    ----------
    source : RowSource
    blocks : Blocks
    n_folds : int
    labels : tuple
    rows : RowSample
    divisions : list of Division
        Independent random divisions into folds; the first one also gives the standard errors.
    all_moments : GroupMoments
        Of all rows; or of many more, of which the source has a random sample.
    counts : dict
        Label -> rows that ``all_moments`` describe.
    """

    def __init__(
        self, source: RowSource, n_folds: int, clusters: Any, seed: int, moments: GroupMoments | None = None
    ) -> None:
        self.source = source
        self.blocks = make_blocks(source, n_folds, clusters, seed)
        self.n_folds, self.labels = int(n_folds), self.blocks.labels
        self.rows = self.blocks.sample(source)
        cells = self.blocks.moments(source)
        folds = partial(self.blocks.fold_moments, source, cells, self.n_folds)
        self.divisions = [
            Division(
                partial(folds, number) if number and cells is None else folds(number),
                self.labels,
                range(self.n_folds),
                n_folds,
            )
            for number in range(_N_DIVISIONS)
        ]
        self.all_moments: GroupMoments = self.divisions[0].folds.whole
        self.counts = self.blocks.counts
        if moments is not None:
            self.all_moments = moments
            self.counts = dict(zip(self.labels, map(round, moments.counts.tolist()), strict=True))
        self._matrices = self.all_moments.second_moments()
        self._best: dict[int, np.ndarray] = {}

    def fold_of_rows(self, number: int = 0) -> np.ndarray:
        """The fold of each row in memory, in one of the divisions."""
        assert isinstance(self.source, MemorySource)
        return self.blocks.folds(self.n_folds, number)[self.blocks.cells(0, self.source.groups)]

    def fit_without_folds(self, estimator: Any) -> list[list[Any]]:
        """An estimator that needs moments only, fitted without each fold of every division."""
        with threads_for_fits(self.source.n_features):
            return [
                [quietly(fit_to_moments, estimator, training) for training in division.trainings()]
                for division in self.divisions
            ]

    def evidence(
        self,
        method: str,
        whole: Any,
        without: Sequence[Sequence[Any]],
        held_out: tuple[Division, np.ndarray] | None = None,
    ) -> Evidence:
        """From fits without each fold of the first division, or of all divisions; or from one without held-out rows.

        ``held_out`` has the division in which these rows are fold 0, and marks them among the rows in memory.
        """
        fits, rows, divisions = without[0], self.rows, self.divisions
        if held_out is None:
            fold = self.blocks.folds(self.n_folds, 0)[rows.cell]
        else:
            divisions, fold = [held_out[0]], np.where(held_out[1][rows.index], 0, -1)
        d, linear = n_components_of(fits[0]), is_projection(fits[0])
        with threads_for_fits(self.source.n_features):
            own_weights = divisions[0].own_weights(d)
            by_row = divisions[0].row_values(rows, fold, fits, own_weights)
            share = rows.share if linear else np.ones(len(self.labels))
            influences, spread = influence_by_group(by_row, rows.group, rows.unit, rows.weights, share)
            if linear:
                parts = zip(divisions, without, strict=False)  # fits to rows exist for one division only
                values = np.stack([division.values(each, own_weights) for division, each in parts])
            else:
                values = self._means(by_row)[None]
        rounding = np.abs(values).max(axis=0) + np.where(np.isfinite(spread.error), spread.error, 0.0)
        zero = rounding <= ROUNDING * np.einsum("aii->a", self._matrices)[:, None]
        sample_errors, sample_losses = self._in_sample(whole, d)
        same = self.blocks.same_fold(self.n_folds)
        return Evidence(
            method=method,
            n_components=d,
            sample_errors=sample_errors,
            sample_losses=sample_losses,
            values=np.where(zero, 0.0, values),
            influences=tuple(np.where(none, 0.0, one) for none, one in zip(zero, influences, strict=True)),
            spread=Spread(np.where(zero, 0.0, spread.error), spread.freedom),
            n_folds=len(fits),
            n_effective=divisions[0].n_effective,
            own_weights=own_weights,
            variation=3.0 / 8.0 * (1.0 - same) / same if same > 0 else 0.0,
        )

    def _in_sample(self, whole: Any, d: int) -> tuple[np.ndarray, np.ndarray]:
        """Errors and losses of the groups and, as one more group, all rows."""
        matrices = np.concatenate([self._matrices, self.all_moments.pooled_covariance()[None]])
        if d not in self._best:
            self._best[d] = best_captured(matrices, d)
        if is_projection(whole):
            found = Evaluation(matrices, *fitted_projection(whole), self._best[d])
            return found.errors, found.losses
        errors = self._means(reconstruction_errors(whole, self.rows.X)[:, None])[:, 0]
        errors = np.append(errors, self.all_moments.shares @ errors)
        return errors, np.maximum(errors - (np.einsum("aii->a", matrices) - self._best[d]), 0.0)

    def few_rows_dominate(self, d: int) -> bool:
        """Whether what chance adds to the losses rests on a few rows."""
        noise, smallest = self.divisions[0].noise, float(self.divisions[0].folds.whole.counts.min())
        copies = 1.0 / self.rows.share[self.rows.group]
        return noise.rests_on_few_rows(self.rows.X, self.rows.weights, smallest, d, copies)

    def _means(self, values: np.ndarray) -> np.ndarray:
        """By group, over the rows of the sample that have values."""
        known = ~np.isnan(values[:, 0])
        chosen = [known & (self.rows.group == a) for a in range(len(self.labels))]
        return np.stack([np.average(values[one], axis=0, weights=self.rows.weights[one]) for one in chosen])
