"""A method fitted without each fold, beside the components that each group would choose for itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from fairpca.estimators._base import label_array
from fairpca.inference._checks import CountedRows
from fairpca.inference._fitting import (
    fit_rows,
    fit_to_moments,
    is_projection,
    n_components_of,
    needs_moments_only,
    reconstruction_errors,
)
from fairpca.inference._folds import Folds
from fairpca.inference._row_values import N_VALUES, RowValues, ValueSums, correct
from fairpca.linalg import few_blas_threads, top_eigenpairs
from fairpca.moments import FoldMoments, GroupMoments, RowSource, Views, row_squares
from fairpca.problems import best_captured, group_errors

__all__ = ["CrossFits", "Progress", "cross_fit"]

Progress = Callable[[int, int, str], None]

#: Rows of the smallest group from which standard errors are found, if it has more: they are then off by 0.3 %.
_ROWS_FOR_ERRORS = 50_000


def cross_fit(
    estimator: Any, source: RowSource, folds: Folds, y: Any, n_jobs: int | None, progress: Progress | None
) -> CrossFits:
    """Fit to all rows and without each fold: from the moments of the folds where that will do, else from rows."""
    if needs_moments_only(estimator):
        fits: CrossFits = CrossFits(estimator, source, folds)
    else:
        fits = RowCrossFits(estimator, _rows_with_inverse(estimator, source), folds, y)
    with few_blas_threads(source.n_features):
        fits.fit(n_jobs, progress or _silent)
    return fits


def _rows_with_inverse(estimator: Any, source: RowSource) -> CountedRows:
    name = type(estimator).__name__
    if not isinstance(source, CountedRows):
        raise ValueError(
            f"{name} needs rows in memory; give a random sample of the rows, or an estimator with fit_moments."
        )
    if not hasattr(estimator, "transform") or not hasattr(estimator, "inverse_transform"):
        raise TypeError(
            f"{name} has no inverse_transform, so that it has no reconstruction error: give a transformer that has one."
        )
    return source


class CrossFits:
    """For estimators that need moments only: one pass over the rows serves all folds.

    Attributes
    ----------
    estimator : estimator, not fitted
    moments : FoldMoments
    whole, without : fitted estimator, and a list of one per fold
    """

    whole: Any
    without: list[Any]

    def __init__(self, estimator: Any, source: RowSource, folds: Folds) -> None:
        self.estimator, self.source, self.folds = estimator, source, folds
        self.moments = FoldMoments.from_source(source, folds.cells)

    def fit(self, n_jobs: int | None, progress: Progress) -> None:
        """Set ``whole`` and ``without``."""
        self.whole, self.without = self._fit(None), []
        n_folds = self.folds.n_folds
        progress(0, n_folds, "folds")
        for fitted in self._run(n_jobs):
            self.without.append(fitted)
            progress(len(self.without), n_folds, "folds")

    def _run(self, n_jobs: int | None) -> Any:
        return (_fit_quietly(self._fit, fold) for fold in range(self.folds.n_folds))

    def _fit(self, fold: int | None) -> Any:
        """To all rows, or to those outside a fold."""
        return fit_to_moments(self.estimator, self.moments.whole if fold is None else self.moments.training(fold))

    @property
    def n_components(self) -> int:
        return n_components_of(self.whole)

    def in_sample(self) -> tuple[np.ndarray, np.ndarray]:
        """Error and loss of each group on the rows that all were fitted to."""
        matrices = self.moments.whole.second_moments()
        least = np.einsum("app->a", matrices) - best_captured(matrices, self.n_components)
        errors = self._errors_in_sample(matrices)
        return errors, errors - least

    def _errors_in_sample(self, matrices: np.ndarray) -> np.ndarray:
        return group_errors(matrices, self.whole.components_.T)

    def means_and_errors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means and standard errors of (error on new rows, corrected loss, loss against the own optimum), and counts.

        Of each group: two arrays of shape (k, 3), and the number of independent units.
        """
        views, share = self._views(), self._share_of_rows()
        values = RowValues(self.folds.cells, views, self.folds.clusters, self.source.owns_threads, share)
        sums = self.source.map_reduce(values, ValueSums.merge)
        return self._means(views), sums.errors * np.sqrt(share), sums.units / share

    def _share_of_rows(self) -> float:
        """Standard errors need no more than some ten thousand rows of a group; clusters are not cut up."""
        return 1.0 if self.folds.clusters is not None else min(1.0, _ROWS_FOR_ERRORS / self.folds.smallest)

    def _views(self) -> Views:
        """For each group and fold: own components, own ones without the fold, and the method's without the fold."""
        labels, n_folds = self.folds.cells.labels, self.folds.n_folds
        own = _own_bases(self.moments.whole, self.n_components)
        centres, bases = [], {}
        for fold, fitted in enumerate(self.without):
            training = self.moments.training(fold)
            without = _own_bases(training, n_components_of(fitted))
            centres.append(training.pooled_mean)
            for label in labels:
                bases[label, fold] = [own[label], without[label], *_basis_of(fitted)]
        return Views(
            np.stack(centres * len(labels)), [bases[label, fold] for label in labels for fold in range(n_folds)]
        )

    def _means(self, views: Views) -> np.ndarray:
        """From the moments of the folds, so of all rows, of shape (k, 3)."""
        n_folds, labels = self.folds.n_folds, self.folds.cells.labels
        found = np.zeros((len(labels), N_VALUES))
        for fold, part in enumerate(self.moments.parts):
            matrices = part.second_moments(views.centres[fold])
            for label, count, matrix in zip(part.labels, part.counts, matrices, strict=True):
                a = labels.index(label)
                bases = views.bases[a * n_folds + fold]
                own, own_without, method = (np.trace(matrix) - np.vdot(basis, matrix @ basis) for basis in bases)
                found[a] += count * correct(method, own, own_without, n_folds)[0]
        return found / self.moments.whole.counts[:, None]


class RowCrossFits(CrossFits):
    """For estimators that need rows, and for transformers that are not orthogonal projections."""

    source: CountedRows

    def __init__(self, estimator: Any, source: CountedRows, folds: Folds, y: Any) -> None:
        super().__init__(estimator, source, folds)
        self._y = source.select(y)

    def _run(self, n_jobs: int | None) -> Any:
        run = Parallel(n_jobs=n_jobs, return_as="generator")
        return run(delayed(_fit_quietly)(self._fit, fold) for fold in range(self.folds.n_folds))

    def _fit(self, fold: int | None) -> Any:
        rows, source = np.flatnonzero(self.folds.fold != -1 if fold is None else self.folds.fold != fold), self.source
        return fit_rows(
            self.estimator,
            source.X[rows],
            None if self._y is None else _safe_indexing(self._y, rows),
            label_array(source.groups.labels)[source.groups.codes[rows]],
            None if source.weights is None else source.weights[rows],
        )

    def _errors_in_sample(self, matrices: np.ndarray) -> np.ndarray:
        if is_projection(self.whole):
            return super()._errors_in_sample(matrices)
        return self._sums(reconstruction_errors(self.whole, self.source.X)[:, None]).means[:, 0]

    def means_and_errors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if is_projection(self.whole):
            return super().means_and_errors()
        sums = self._sums(self._values(self._views()))
        return sums.means, sums.errors, sums.units

    def _values(self, views: Views) -> np.ndarray:
        """The three values of each row, with errors by ``inverse_transform``."""
        rows, codes = self.source.X, self.folds.cells.codes(0, self.source.groups)
        squares, error = np.empty((3, len(codes))), np.empty(len(codes))
        for _, chosen, found in row_squares(rows, codes, views):
            squares[:, chosen] = found.T
        for fold, fitted in enumerate(self.without):
            held_out = np.flatnonzero(self.folds.fold == fold)
            error[held_out] = reconstruction_errors(fitted, rows[held_out])
        total, own, own_without = squares
        return correct(error, total - own, total - own_without, self.folds.n_folds)

    def _sums(self, values: np.ndarray) -> ValueSums:
        groups = self.source.groups
        return ValueSums.of(values, groups.codes, len(groups), self.source.weights, self.folds.clusters)


def _own_bases(moments: GroupMoments, d: int) -> dict[Any, np.ndarray]:
    matrices = moments.second_moments()
    return {label: top_eigenpairs(matrix, d)[1] for label, matrix in zip(moments.labels, matrices, strict=True)}


def _basis_of(fitted: Any) -> list[np.ndarray]:
    return [fitted.components_.T] if is_projection(fitted) else []


def _fit_quietly(fit: Callable[[int | None], Any], fold: int) -> Any:
    """What the estimator has to say, it has said of all rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(fold)


def _silent(done: int, total: int, what: str) -> None:
    """No progress is shown."""
