"""Everything about folds that does not depend on the method: moments, and the components each group would choose."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca.inference._checks import CountedRows
from fairpca.inference._fitting import is_projection, n_components_of, reconstruction_errors
from fairpca.inference._folds import Folds
from fairpca.inference._row_values import N_VALUES, RowValues, ValueSums, values_of
from fairpca.inference.chance import Noise
from fairpca.linalg import threads_for, top_eigenpairs
from fairpca.metrics._components import fitted_encoder
from fairpca.moments import FoldMoments, GroupMoments, RowSource, Views, row_squares
from fairpca.problems.erasure import linear_errors

__all__ = ["EIGENPROBLEMS", "FoldStudy", "Judged"]

#: A fit from moments, or an evaluation, takes about as long as this many eigenproblems.
EIGENPROBLEMS = 20.0
#: Rows of the smallest group from which standard errors are found, if it has more: they are then off by 0.7 %.
_ROWS_FOR_ERRORS = 10_000


@dataclass(frozen=True)
class Judged:
    """Results on held-out rows, for each group.

    Attributes
    ----------
    means, errors, freedom : ndarray of shape (k, 4)
        Means, their standard errors, and their degrees of freedom, for (error on new rows, corrected loss, loss
        relative to the own optimum, change from ordinary PCA).
    units : ndarray of shape (k,)
        Number of independent rows or clusters.
    own_weights : ndarray of shape (k,)
        See :func:`fairpca.inference._row_values.values_of`.
    """

    means: np.ndarray
    errors: np.ndarray
    freedom: np.ndarray
    units: np.ndarray
    own_weights: np.ndarray


class FoldStudy:
    """Rows divided into folds and summarized in one pass, to evaluate any number of methods.

    Attributes
    ----------
    source : RowSource
    folds : Folds
    moments : FoldMoments
    """

    def __init__(self, source: RowSource, folds: Folds) -> None:
        self.source, self.folds = source, folds
        self.moments = FoldMoments.from_source(source, folds.cells)
        self._dimension = 0

    @property
    def labels(self) -> tuple[Any, ...]:
        return self.folds.cells.labels

    def sample_errors(self, whole: Any, moments: GroupMoments) -> np.ndarray:
        """Error of each group on the rows that ``moments`` describe."""
        if is_projection(whole):
            return linear_errors(moments.second_moments(), whole.components_.T, fitted_encoder(whole))
        return self._sums(reconstruction_errors(whole, self._rows.X)[:, None]).means[:, 0]

    def judge(self, without: Sequence[Any]) -> Judged:
        """Evaluate estimators that were fitted without each of the test folds on the rows of these folds."""
        with threads_for(EIGENPROBLEMS * self.source.n_features**3):
            return self._judge(without)

    def _judge(self, without: Sequence[Any]) -> Judged:
        views, own_weights = self._views(without), self._own_weights(max(map(n_components_of, without)))
        if not all(map(is_projection, without)):
            sums, share = self._sums(self._values(without, views, own_weights), self._judged_rows), 1.0
            means = sums.means
        else:
            share = self._share_of_rows()
            values = RowValues(self.folds, views, own_weights, self.source.owns_threads, share)
            sums = self.source.map_reduce(values, ValueSums.merge)
            means = self._means(views, own_weights)
        errors = sums.errors * np.sqrt(share)
        return Judged(means, errors, sums.freedom, sums.units / share, own_weights)

    def prepare(self, n_components: int) -> None:
        """Compute up to ``n_components`` own components of each group; smaller numbers use the leading ones.

        Call this before a study is copied to other processes, which would each compute them again.
        """
        if n_components <= self._dimension:
            return
        self._dimension = n_components
        self._own_weights(n_components)  # finds how components overfit, for every number of them
        self._own = _leading(self._second_moments, n_components)
        self._own_without, self._ordinary, self._centres = [], [], []
        for fold in self.folds.judged:
            training = self.moments.training(fold)
            order = [training.labels.index(label) for label in self.labels]
            self._own_without.append(_leading(training.second_moments()[order], n_components))
            self._ordinary.append(top_eigenpairs(training.pooled_covariance(), n_components)[1])
            self._centres.append(training.pooled_mean)

    @functools.cached_property
    def _second_moments(self) -> np.ndarray:
        return self.moments.whole.second_moments()

    def _views(self, without: Sequence[Any]) -> Views:
        """For each group and judged fold: own components, own ones without the fold, ordinary ones, the method's."""
        self.prepare(max(map(n_components_of, without)))
        bases = []
        for a in range(len(self.labels)):
            for j, fitted in enumerate(without):
                d = n_components_of(fitted)
                own, own_without, ordinary = self._own[a], self._own_without[j][a], self._ordinary[j]
                bases.append([own[:, :d], own_without[:, :d], ordinary[:, :d], *_basis_of(fitted)])
        return Views(np.stack(self._centres * len(self.labels)), bases)

    def _own_weights(self, d: int) -> np.ndarray:
        """How much own components overfit in the sample and fall short on new rows, estimated from their noise.

        To first order (K - 1) / (2K - 1), which makes both cancel; less where eigenvalues are nearly equal.
        """
        K, found = self.folds.n_effective, []
        for position in range(len(self.labels)):
            gained, missed = self._overfitting[position][0][d - 1], self._overfitting[position][1][d - 1]
            first_order = (K / (K - 1.0)) / (1.0 + K / (K - 1.0))
            total = gained + missed
            found.append(min(missed / total, first_order) if total > 0 else first_order)
        return np.array(found)

    @functools.cached_property
    def _overfitting(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each group: what its components gain on all its rows, and lose when a fold is left out."""
        whole, K = self.moments.whole, self.folds.n_effective
        noise = self.noise(1)
        counts = [float(whole.counts[whole.labels.index(label)]) for label in self.labels]
        return [(noise.overfitting(count)[0], noise.overfitting(count * (K - 1.0) / K)[1]) for count in counts]

    def noise(self, d: int) -> Noise:
        """The noise of second moments, estimated from the folds."""
        return Noise.from_blocks(self.moments.by_fold, self.moments.whole, d)

    def _means(self, views: Views, own_weights: np.ndarray) -> np.ndarray:
        """Means over all rows of the test folds, from their moments, of shape (k, 4)."""
        found, counts = np.zeros((len(self.labels), N_VALUES)), np.zeros(len(self.labels))
        for j, fold in enumerate(self.folds.judged):
            part = self.moments.parts[fold]
            matrices = part.second_moments(views.centres[j])
            for label, count, matrix in zip(part.labels, part.counts, matrices, strict=True):
                a = self.labels.index(label)
                bases = views.bases[a * len(self.folds.judged) + j]
                captured = [np.vdot(basis, matrix @ basis) for basis in bases]
                found[a] += count * values_of(np.array([[np.trace(matrix), *captured]]), own_weights[a])[0]
                counts[a] += count
        return found / counts[:, None]

    def _share_of_rows(self) -> float:
        """The share of rows to use: standard errors need about ten thousand per group; clusters are not split."""
        return 1.0 if self.folds.clusters is not None else min(1.0, _ROWS_FOR_ERRORS / self.folds.smallest)

    # Transformers without such components are evaluated by their reconstructions of rows in memory.

    @property
    def _rows(self) -> CountedRows:
        assert isinstance(self.source, CountedRows)  # checked before anything was fitted
        return self.source

    @functools.cached_property
    def _judged_rows(self) -> np.ndarray:
        return np.flatnonzero(self.folds.judged_cells(0, self._rows.groups) >= 0)

    def _values(self, without: Sequence[Any], views: Views, own_weights: np.ndarray) -> np.ndarray:
        rows, chosen = self._rows.X, self._judged_rows
        codes = self.folds.judged_cells(0, self._rows.groups)[chosen]
        values = np.empty((len(chosen), N_VALUES))
        for cell, found, squares in row_squares(rows[chosen], codes, views):
            fitted = without[cell % len(without)]
            captured = squares[:, 0] - reconstruction_errors(fitted, rows[chosen[found]])
            values[found] = values_of(np.column_stack([squares, captured]), own_weights[cell // len(without)])
        return values

    def _sums(self, values: np.ndarray, chosen: np.ndarray | None = None) -> ValueSums:
        rows, codes = self._rows, self._rows.groups.codes
        chosen = np.arange(len(codes)) if chosen is None else chosen
        weights, clusters = (
            None if column is None else column[chosen] for column in (rows.weights, self.folds.clusters)
        )
        return ValueSums.of(values, codes[chosen], len(self.labels), weights, clusters)


def _leading(matrices: np.ndarray, d: int) -> list[np.ndarray]:
    return [top_eigenpairs(matrix, d)[1] for matrix in matrices]


def _basis_of(fitted: Any) -> list[np.ndarray]:
    """What a row is reconstructed by and, where scores are not those of an orthogonal projection, what that costs."""
    if not is_projection(fitted):
        return []
    basis, encoder = fitted.components_.T, fitted_encoder(fitted)
    return [basis] if encoder is None else [basis, basis - encoder]
