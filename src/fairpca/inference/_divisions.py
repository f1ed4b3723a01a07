"""Divisions of the rows into folds, and what they show of every method on rows that it was not fitted to."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fairpca.inference._blocks import RowSample
from fairpca.inference._fitting import is_projection, n_components_of, reconstruction_errors
from fairpca.inference._noise import Noise
from fairpca.linalg import top_eigenpairs
from fairpca.metrics._components import fitted_projection
from fairpca.moments import GroupMoments
from fairpca.moments._folds import FoldMoments
from fairpca.moments._row_squares import row_squares
from fairpca.problems.evaluation import captured_variances

__all__ = ["CHANGE", "CORRECTED", "ERROR", "LOSS", "Division"]

#: Columns of the values by group: error on new rows; loss against what the group's own components capture, corrected
#: for overfitting; the same as it is in the sample; change of the error against ordinary PCA.
ERROR, CORRECTED, LOSS, CHANGE = range(4)


class Division:
    """Training and test rows, once or several times in turn, and what does not depend on the method.

    ``tested`` are the folds that are tested on: all of them in cross-validation, one for a single held-out part; then
    ``1 / n_effective`` of the rows are tested at a time. ``folds`` are their moments, or a function that finds them
    anew each time.
    """

    def __init__(
        self,
        folds: FoldMoments | Callable[[], FoldMoments],
        labels: Sequence[Any],
        tested: Sequence[int],
        n_effective: float,
    ) -> None:
        self._folds, self.labels, self.tested, self.n_effective = folds, tuple(labels), tested, n_effective
        self.n_components = 0

    @property
    def folds(self) -> FoldMoments:
        return self._folds() if callable(self._folds) else self._folds

    def trainings(self) -> list[GroupMoments]:
        """The moments of the training rows of each test fold."""
        folds = self.folds
        return [folds.training(fold) for fold in self.tested]

    def prepare(self, n_components: int) -> None:
        """Find the leading eigenvectors of the groups and of all rows, for up to this many components.

        Call it before the division is copied to other processes.
        """
        if n_components <= self.n_components:
            return
        self.n_components = n_components
        own = [_leading(matrix, n_components) for matrix in self.folds.whole.second_moments()]
        # For each test fold and group: own components of all its rows and of those outside the fold, ordinary ones.
        self._references, self._centres = [], []
        for training in self.trainings():
            matrices = dict(zip(training.labels, training.second_moments(), strict=True))
            ordinary = _leading(training.pooled_covariance(), n_components)
            known = zip(own, (_leading(matrices[label], n_components) for label in self.labels), strict=True)
            self._references.append([(*both, ordinary) for both in known])
            self._centres.append(training.pooled_mean)

    def values(self, fits: Sequence[Any], own_weights: np.ndarray) -> np.ndarray:
        """Means over the test rows by group, of shape (n_groups, 4), for projections fitted to the training rows."""
        d = n_components_of(fits[0])
        self.prepare(d)
        parts, totals, squares = self.folds.parts, np.zeros(len(self.labels)), np.zeros((len(self.labels), 5))
        for j, fitted in enumerate(fits):
            part = parts[self.tested[j]]
            matrices = part.second_moments(self._centres[j])
            for label, count, matrix in zip(part.labels, part.counts, matrices, strict=True):
                a = self.labels.index(label)
                projections = [*((basis[:, :d], None) for basis in self._references[j][a]), fitted_projection(fitted)]
                captured = [captured_variances(matrix[None], *projection)[0] for projection in projections]
                squares[a] += count * np.array([np.trace(matrix), *captured])
                totals[a] += count
        return _values(squares / totals[:, None], own_weights)

    def row_values(
        self, rows: RowSample, fold_of_row: np.ndarray, fits: Sequence[Any], own_weights: np.ndarray
    ) -> np.ndarray:
        """Values of single rows, of shape (n_rows, 4); NaN for rows that no fold tests."""
        found, d = np.full((len(fold_of_row), 5), np.nan), n_components_of(fits[0])
        self.prepare(d)
        for j, fitted in enumerate(fits):
            method = []
            if is_projection(fitted):
                basis, encoder = fitted_projection(fitted)
                method = [basis] if encoder is None else [basis, basis - encoder]
            for a in range(len(self.labels)):
                chosen = np.flatnonzero((fold_of_row == self.tested[j]) & (rows.group == a))
                bases = [*(basis[:, :d] for basis in self._references[j][a]), *method]
                squares = row_squares(rows.X, chosen, self._centres[j], np.hstack(bases))
                captured = squares[:, 1:].reshape(len(chosen), len(bases), d).sum(axis=2)
                if method:
                    kept = captured[:, 3] - captured[:, 4:].sum(axis=1)
                else:
                    kept = squares[:, 0] - reconstruction_errors(fitted, rows.X[chosen])
                found[chosen] = np.column_stack([squares[:, 0], captured[:, :3], kept])
        return _values(found, own_weights[rows.group])

    @functools.cached_property
    def noise(self) -> Noise:
        """The noise of second moments, estimated from the folds."""
        folds = self.folds
        return Noise.from_blocks(folds.parts, folds.whole)

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


def _values(squares: np.ndarray, own_weight: np.ndarray) -> np.ndarray:
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
