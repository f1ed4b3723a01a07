"""Divisions of the rows into folds, and what they show of every method on rows that it was not fitted to."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
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
    weights : ndarray or None
    share : ndarray of shape (n_groups,)
        The share of each group's units that is in the sample.
    """

    X: Any
    index: np.ndarray
    group: np.ndarray
    cell: np.ndarray
    unit: np.ndarray
    weights: np.ndarray | None
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
        drawn = np.ones(len(cell), dtype=bool)
        if (self.share < 1.0).any():
            luck = rng.random(int(unit.max(initial=-1)) + 1, dtype=np.float32)
            drawn = (luck if self.clusters is None else luck[unit]) < self.share[group]
        if weights is not None:
            drawn &= weights > 0
        chosen = np.flatnonzero(drawn)
        whole = len(chosen) == len(cell)
        given = None if weights is None else weights[chosen]
        return [(X if whole else X[chosen], chosen, group[chosen], cell[chosen], unit[chosen], given)]


def sample_of_rows(source: RowSource, blocks: Blocks, clusters: np.ndarray | None) -> Rows:
    """Draw a sample that is large enough for standard errors, in one pass over the rows."""
    share = np.minimum(1.0, _UNITS_FOR_ERRORS / blocks.sizes)
    parts = source.map_reduce(_Sampler(blocks, clusters, share), _joined)
    X, index, group, cell, unit, weights = zip(*parts, strict=True)
    if len(parts) > 1:  # every chunk numbers its rows from zero
        starts = np.cumsum([0, *(int(one.max(initial=-1)) + 1 for one in unit)])
        unit = tuple(one + start for one, start in zip(unit, starts, strict=False))
    rows = X[0] if len(X) == 1 else sparse.vstack(X).tocsr() if sparse.issparse(X[0]) else np.concatenate(X)
    number, code, of_cell, of_unit = (np.concatenate(column) for column in (index, group, cell, unit))
    given = None
    if any(one is not None for one in weights):
        given = np.concatenate([np.ones(len(g)) if w is None else w for g, w in zip(group, weights, strict=True)])
    drawn = np.array([len(np.unique(of_unit[code == a])) for a in range(len(blocks.labels))])
    return Rows(rows, number, code, of_cell, of_unit, given, np.minimum(drawn / blocks.sizes, 1.0))


def _joined(parts: Sequence[list]) -> list:
    return [one for part in parts for one in part]


class Division:
    """Training and test rows, once or several times in turn, and what does not depend on the method.

    ``judged`` are the folds that are tested on: all of them in cross-validation, one for a single held-out part.
    ``make_folds`` gives the moments of the folds, each time anew unless they are ``kept``.
    """

    def __init__(
        self,
        make_folds: Callable[[], FoldMoments],
        labels: Sequence[Any],
        judged: Iterable[int],
        n_effective: float,
        *,
        kept: bool = True,
    ) -> None:
        self._make_folds, self._kept = make_folds, kept
        self._folds: FoldMoments | None = None
        self.labels, self.judged, self.n_effective = tuple(labels), tuple(judged), n_effective
        self.n_components = 0
        self._squares: np.ndarray | None = None

    @property
    def folds(self) -> FoldMoments:
        if self._folds is not None:
            return self._folds
        found = self._make_folds()
        if self._kept:
            self._folds = found
        return found

    def trainings(self) -> Iterator[GroupMoments]:
        """The moments of the training rows of each test fold."""
        folds = self.folds
        return (folds.training(fold) for fold in self.judged)

    def prepare(self, n_components: int) -> None:
        """Find what ordinary components, and components of each group's own, capture of the test rows.

        For every number of components up to this one. Call it before the division is copied to other processes.
        """
        if n_components <= self.n_components:
            return
        self.n_components = n_components
        folds = self.folds
        matrices = folds.whole.second_moments()
        self.own = [top_eigenpairs(matrix, n_components)[1] for matrix in matrices]
        self.own_without, self.ordinary, self.centres = [], [], []
        captured = np.zeros((3, len(self.judged), len(self.labels), n_components))
        counts, totals = np.zeros(captured.shape[1:3]), np.zeros(captured.shape[1:3])
        for j, fold in enumerate(self.judged):
            training = folds.training(fold)
            self.centres.append(training.pooled_mean)
            order = [training.labels.index(label) for label in self.labels]
            self.own_without.append(
                [top_eigenpairs(matrix, n_components)[1] for matrix in training.second_moments()[order]]
            )
            self.ordinary.append(top_eigenpairs(training.pooled_covariance(), n_components)[1])
            for a, count, matrix in self._tested(folds, j):
                counts[j, a], totals[j, a] = count, np.trace(matrix)
                bases = (self.own[a], self.own_without[j][a], self.ordinary[j])
                captured[:, j, a] = [np.cumsum(np.einsum("pi,pi->i", basis, matrix @ basis)) for basis in bases]
        self._shares = counts / counts.sum(axis=0)
        self._totals, self._captured = totals, captured

    def _tested(self, folds: FoldMoments, j: int) -> Iterator[tuple[int, float, np.ndarray]]:
        """Position, weight and second moment of each group in a test fold, about the mean of the training rows."""
        part = folds.parts[self.judged[j]]
        for label, count, matrix in zip(part.labels, part.counts, part.second_moments(self.centres[j]), strict=True):
            yield self.labels.index(label), count, matrix

    def values(self, fits: Sequence[Any], own_weights: np.ndarray) -> np.ndarray:
        """Means over the test rows by group, of shape (n_groups, 4), for projections fitted to the training rows."""
        d = n_components_of(fits[0])
        self.prepare(d)
        folds, captured = self.folds, np.zeros(self._totals.shape)
        for j, fitted in enumerate(fits):
            for a, _, matrix in self._tested(folds, j):
                basis, encoder = fitted.components_.T, fitted_encoder(fitted)
                captured[j, a] = captured_variances(matrix[None], basis, encoder)[0]
        parts = [self._totals, *self._captured[..., d - 1], captured]
        return values_of(np.stack([(self._shares * part).sum(axis=0) for part in parts], axis=-1), own_weights)

    def row_values(
        self, rows: Rows, fold_of_row: np.ndarray, fits: Sequence[Any], own_weights: np.ndarray
    ) -> np.ndarray:
        """Values of single rows, of shape (n_rows, 4); NaN for rows that no fold tests."""
        d = n_components_of(fits[0])
        squares = self._row_squares(rows, fold_of_row)
        captured = np.full(len(fold_of_row), np.nan)
        for j, fitted in enumerate(fits):
            chosen = np.flatnonzero(fold_of_row == self.judged[j])
            if not is_projection(fitted):
                captured[chosen] = squares[chosen, 0, 0] - reconstruction_errors(fitted, rows.X[chosen])
                continue
            basis, encoder = fitted.components_.T, fitted_encoder(fitted)
            bases = basis if encoder is None else np.hstack([basis, basis - encoder])
            scores = row_squares(rows.X, chosen, self.centres[j], bases)[:, 1:]
            captured[chosen] = scores[:, :d].sum(axis=1) - scores[:, d:].sum(axis=1)
        return values_of(
            np.column_stack([squares[:, 0, 0], *squares[:, 1:, d - 1].T, captured]), own_weights[rows.group]
        )

    def _row_squares(self, rows: Rows, fold_of_row: np.ndarray) -> np.ndarray:
        """Squared length and what own, own without the fold, and ordinary components capture: (n_rows, 4, d)."""
        if self._squares is not None and self._squares.shape[2] == self.n_components:
            return self._squares
        found = np.full((len(fold_of_row), 4, self.n_components), np.nan)
        for j, fold in enumerate(self.judged):
            for a in range(len(self.labels)):
                chosen = np.flatnonzero((fold_of_row == fold) & (rows.group == a))
                bases = np.hstack([self.own[a], self.own_without[j][a], self.ordinary[j]])
                squares = row_squares(rows.X, chosen, self.centres[j], bases)
                found[chosen, 0] = squares[:, :1]
                found[chosen, 1:] = np.cumsum(squares[:, 1:].reshape(len(chosen), 3, -1), axis=2)
        self._squares = found
        return found

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
        whole, share = self.folds.whole, 1.0 - 1.0 / self.n_effective
        counts = [float(whole.counts[whole.labels.index(label)]) for label in self.labels]
        gained = np.array([self.noise.overfitting(count)[0] for count in counts])
        return gained, np.array([self.noise.overfitting(count * share)[1] for count in counts])


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
