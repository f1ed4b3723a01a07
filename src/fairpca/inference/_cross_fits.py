"""Fit an estimator to all rows, and without each fold: from moments if they are sufficient."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from fairpca._progress import Report
from fairpca._workers import delayed, parallel
from fairpca.estimators._base import label_array
from fairpca.inference._checks import CountedRows
from fairpca.inference._fitting import fit_rows, fit_to_moments, needs_moments_only
from fairpca.inference._fold_study import EIGENPROBLEMS, FoldStudy
from fairpca.linalg import threads_for
from fairpca.moments import FoldMoments, RowSource

__all__ = ["check_can_be_judged", "fit_each_fold", "fit_without_folds"]


def check_can_be_judged(estimator: Any, source: RowSource) -> None:
    """Raise an error early if an estimator needs rows that are not in memory, or cannot reconstruct them."""
    name = type(estimator).__name__
    if needs_moments_only(estimator):
        return
    if not isinstance(source, CountedRows):
        raise ValueError(
            f"{name} needs rows in memory; pass a random sample of the rows, or an estimator with fit_moments."
        )
    if not hasattr(estimator, "transform") or not hasattr(estimator, "inverse_transform"):
        raise TypeError(
            f"{name} has no inverse_transform, so it has no reconstruction error: pass a transformer that has one."
        )


def fit_each_fold(
    estimator: Any, study: FoldStudy, y: Any, n_jobs: int | None, progress: Report
) -> tuple[Any, list[Any]]:
    """The estimator fitted to all rows, and without each fold."""
    n_folds, without = study.folds.n_folds, []
    progress(0, n_folds, "folds")
    with threads_for(EIGENPROBLEMS * study.source.n_features**3):
        if needs_moments_only(estimator):
            whole = fit_to_moments(estimator, study.moments.whole)
            found: Iterator[Any] = fit_without_folds(estimator, study.moments, range(n_folds))
        else:
            fit = _RowFit(estimator, study, y)
            whole = fit(None)
            run = parallel(n_jobs, return_as="generator")
            found = run(delayed(_quietly)(fit, fold) for fold in range(n_folds))
        for fitted in found:
            without.append(fitted)
            progress(len(without), n_folds, "folds")
    return whole, without


def fit_without_folds(estimator: Any, moments: FoldMoments, folds: Any) -> Iterator[Any]:
    """Fit to the moments of all rows except those of a fold, for one fold after another."""
    for fold in folds:
        yield _quietly(lambda fold: fit_to_moments(estimator, moments.training(fold)), fold)


class _RowFit:
    """Fits to the rows outside a fold."""

    def __init__(self, estimator: Any, study: FoldStudy, y: Any) -> None:
        assert isinstance(study.source, CountedRows)
        assert study.folds.fold is not None
        self._estimator, self._rows, self._fold = estimator, study.source, study.folds.fold
        self._y = study.source.select(y)

    def __call__(self, fold: int | None) -> Any:
        rows, source = np.flatnonzero(self._fold != fold), self._rows  # no row is in fold None
        return fit_rows(
            self._estimator,
            source.X[rows],
            None if self._y is None else _safe_indexing(self._y, rows),
            label_array(source.groups.labels)[source.groups.codes[rows]],
            None if source.weights is None else source.weights[rows],
        )


def _quietly(fit: Callable[[int], Any], fold: int) -> Any:
    """Suppress warnings: they were already shown for the fit to all rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(fold)
