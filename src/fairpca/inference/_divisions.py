"""Divisions of the rows into folds, and what they show of every method on rows that it was not fitted to."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fairpca._validation import Groups, rng_for
from fairpca.inference._blocks import Blocks
from fairpca.inference._fitting import is_projection, n_components_of, reconstruction_errors
from fairpca.inference._noise import Noise
from fairpca.linalg import top_eigenpairs
from fairpca.metrics._components import fitted_encoder
from fairpca.moments import GroupMoments
from fairpca.moments._folds import FoldMoments
from fairpca.moments._row_squares import row_squares
from fairpca.moments._sources import RowSource
from fairpca.problems.evaluation import captured_variances

__all__ = ["CHANGE", "CORRECTED", "ERROR", "LOSS", "Division", "Rows", "sample_of_rows"]

#: Columns of the values by group: error on new rows; loss against what the group's own components capture, corrected
#: for overfitting; the same as it is in the sample; change of the error against ordinary PCA.
ERROR, CORRECTED, LOSS, CHANGE = range(4)
#: Independent units of each group from which standard errors are found, if it has more: they are then off by 0.7 %.
_UNITS_FOR_ERRORS = 10_000


@dataclass(frozen=True)
class Rows:
    """A random sample of the rows of every group, or all of them.

    Attributes
    ----------
    X : array or CSR matrix
    index, group, cell, unit : integer arrays
        Of each row: its number among all rows of its chunk, its group, its cell of group and block, and the row or
        cluster that it counts as.
    weights : ndarray
    share : ndarray of shape (n_groups,)
        The share of each group's units that is in the sample.
    """

    X: Any
    index: np.ndarray
    group: np.ndarray
    cell: np.ndarray
    unit: np.ndarray
    weights: np.ndarray
    share: np.ndarray


@dataclass(frozen=True)
class _Sampler:
    """Draws some rows of a chunk, or all rows of some clusters."""

    blocks: Blocks
    clusters: np.ndarray | None
    share: np.ndarray

    def __call__(self, number: int, X: Any, groups: Groups, weights: np.ndarray | None) -> list[tuple]:
        cell = self.blocks.cells.codes(number, groups)
        group, rng = self.blocks.group[cell], rng_for(self.blocks.seed, f"rows {number}")
        unit = np.arange(len(cell)) if self.clusters is None else self.clusters
        weights = np.ones(len(cell)) if weights is None else weights
        drawn = weights > 0
        if (self.share < 1.0).any():
            luck = rng.random(int(unit.max(initial=-1)) + 1, dtype=np.float32)
            drawn &= (luck if self.clusters is None else luck[unit]) < self.share[group]
        chosen = np.flatnonzero(drawn)
        X = X if len(chosen) == len(cell) else X[chosen]
        return [(X, chosen, *(column[chosen] for column in (group, cell, unit, weights)))]


def sample_of_rows(source: RowSource, blocks: Blocks, clusters: np.ndarray | None) -> Rows:
    """Draw a sample that is large enough for standard errors, in one pass over the rows."""
    share = np.minimum(1.0, _UNITS_FOR_ERRORS / blocks.sizes)
    parts = source.map_reduce(_Sampler(blocks, clusters, share), _joined)
    X, index, group, cell, units, weights = zip(*parts, strict=True)
    if len(parts) > 1:  # every chunk numbers its rows from zero
        starts = np.cumsum([0, *(int(one.max(initial=-1)) + 1 for one in units)])
        units = tuple(one + start for one, start in zip(units, starts, strict=False))
    rows = X[0] if len(X) == 1 else sparse.vstack(X).tocsr() if sparse.issparse(X[0]) else np.concatenate(X)
    number, code, of_cell, unit, weight = map(np.concatenate, (index, group, cell, units, weights))
    drawn = np.array([len(np.unique(unit[code == a])) for a in range(len(blocks.labels))])
    return Rows(rows, number, code, of_cell, unit, weight, np.minimum(drawn / blocks.sizes, 1.0))


def _joined(parts: Sequence[list]) -> list:
    return [one for part in parts for one in part]


class Division:
    """Training and test rows, once or several times in turn, and what does not depend on the method.

    ``tested`` are the folds that are tested on: all of them in cross-validation, one for a single held-out part.
    ``make_folds`` gives the moments of the folds, each time anew unless they are ``kept``.
    """

    def __init__(
        self,
        make_folds: Callable[[], FoldMoments],
        labels: Sequence[Any],
        tested: Sequence[int],
        n_effective: float,
        *,
        kept: bool = True,
    ) -> None:
        self._make_folds, self._kept = make_folds, make_folds() if kept else None
        self.labels, self.tested, self.n_effective = tuple(labels), tested, n_effective
        self.n_components = 0

    @property
    def folds(self) -> FoldMoments:
        return self._make_folds() if self._kept is None else self._kept

    def trainings(self) -> Iterator[GroupMoments]:
        """The moments of the training rows of each test fold."""
        folds = self.folds
        return (folds.training(fold) for fold in self.tested)

    def prepare(self, n_components: int) -> None:
        """Find the leading eigenvectors of the groups and of all rows, for up to this many components.

        Call it before the division is copied to other processes.
        """
        if n_components <= self.n_components:
            return
        self.n_components = n_components
        self._own = [_leading(matrix, n_components) for matrix in self.folds.whole.second_moments()]
        self._own_without, self._ordinary, self._centres = [], [], []
        for training in self.trainings():
            order = [training.labels.index(label) for label in self.labels]
            matrices = training.second_moments()[order]
            self._own_without.append([_leading(matrix, n_components) for matrix in matrices])
            self._ordinary.append(_leading(training.pooled_covariance(), n_components))
            self._centres.append(training.pooled_mean)

    def _references(self, j: int, a: int, d: int) -> list[np.ndarray]:
        """Own components of group a of all its rows and of those outside test fold j, and ordinary ones."""
        return [basis[:, :d] for basis in (self._own[a], self._own_without[j][a], self._ordinary[j])]

    def values(self, fits: Sequence[Any], own_weights: np.ndarray) -> np.ndarray:
        """Means over the test rows by group, of shape (n_groups, 4), for projections fitted to the training rows."""
        d = n_components_of(fits[0])
        self.prepare(d)
        parts, k = [self.folds.parts[fold] for fold in self.tested], len(self.labels)
        totals, found = np.zeros(k), np.zeros((k, 5))
        for j, (fitted, part) in enumerate(zip(fits, parts, strict=True)):
            basis, encoder = fitted.components_.T, fitted_encoder(fitted)
            matrices = part.second_moments(self._centres[j])
            for label, count, matrix in zip(part.labels, part.counts, matrices, strict=True):
                a = self.labels.index(label)
                captured = [captured_variances(matrix[None], one)[0] for one in self._references(j, a, d)]
                method = captured_variances(matrix[None], basis, encoder)[0]
                found[a] += count * np.array([np.trace(matrix), *captured, method])
                totals[a] += count
        return values_of(found / totals[:, None], own_weights)

    def row_values(
        self, rows: Rows, fold_of_row: np.ndarray, fits: Sequence[Any], own_weights: np.ndarray
    ) -> np.ndarray:
        """Values of single rows, of shape (n_rows, 4); NaN for rows that no fold tests."""
        found, d = np.full((len(fold_of_row), 5), np.nan), n_components_of(fits[0])
        self.prepare(d)
        for j, fitted in enumerate(fits):
            linear, encoder = is_projection(fitted), fitted_encoder(fitted)
            method = [fitted.components_.T] if linear else []
            method += [] if encoder is None else [fitted.components_.T - encoder]
            for a in range(len(self.labels)):
                chosen = np.flatnonzero((fold_of_row == self.tested[j]) & (rows.group == a))
                bases = [*self._references(j, a, d), *method]
                squares = row_squares(rows.X, chosen, self._centres[j], np.hstack(bases))
                sums = np.add.reduceat(squares, np.r_[0, 1 + d * np.arange(len(bases))], axis=1)
                found[chosen, : sums.shape[1]] = sums[:, :5]
                if encoder is not None:
                    found[chosen, 4] -= sums[:, 5]
                if not linear:
                    found[chosen, 4] = sums[:, 0] - reconstruction_errors(fitted, rows.X[chosen])
        return values_of(found, own_weights[rows.group])

    @functools.cached_property
    def noise(self) -> Noise:
        """The noise of second moments, estimated from the folds."""
        return Noise.from_blocks(self.folds.by_fold, self.folds.whole)

    def own_weights(self, d: int) -> np.ndarray:
        """How much own components overfit in the sample and fall short on new rows, estimated from their noise.

        To first order K / (2K - 1), which makes both cancel; less where eigenvalues are nearly equal.
        """
        first_order = self.n_effective / (2.0 * self.n_effective - 1.0)
        gained, missed = (part[:, d - 1] for part in self._overfitting)
        total = gained + missed
        return np.minimum(np.divide(missed, total, out=np.ones_like(total), where=total > 0), first_order)

    @functools.cached_property
    def _overfitting(self) -> tuple[np.ndarray, np.ndarray]:
        """What own components gain on all of a group's rows, and lose when a fold is left out, for every number."""
        counts, share = self.folds.whole.counts, 1.0 - 1.0 / self.n_effective
        gained = np.array([self.noise.overfitting(count)[0] for count in counts])
        return gained, np.array([self.noise.overfitting(count * share)[1] for count in counts])


def _leading(matrix: np.ndarray, n_components: int) -> np.ndarray:
    """Contiguous, as a copy in another process is, so that rounding is the same there."""
    return np.ascontiguousarray(top_eigenpairs(matrix, n_components)[1])


def values_of(squares: np.ndarray, own_weight: np.ndarray) -> np.ndarray:
    """The four values of rows, or of the means of rows.

    Parameters
    ----------
    squares : ndarray of shape (n, 5)
        Squared length, and what is captured of it by: own components of the group, own components without the fold,
        ordinary PCA without the fold, the method without the fold.
    own_weight : ndarray of shape (n,)
        How the group's own optimum lies between what its own components capture in the sample (too much) and without
        the fold (too little).
    """
    total, own, own_without, ordinary, method = squares.T
    reference = own_weight * own + (1.0 - own_weight) * own_without
    return np.column_stack([total - method, reference - method, own - method, ordinary - method])
