"""Sensitive features that may be continuous, and scores that are uncorrelated with them: ParityPCA and LeacePCA."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from fairpca._continuous import check_continuous
from fairpca._validation import (
    check_matrix,
    check_sample_weight,
    checks_keywords,
    is_dask,
    remember_sensitive_columns,
    split_off_groups,
)
from fairpca.estimators._adds_rows import AddsRows
from fairpca.estimators._base import Fit, MomentEstimator
from fairpca.moments import AttributeMoments
from fairpca.moments._attributes import accumulate_attributes
from fairpca.moments._group_moments import Reduction
from fairpca.moments.dask import attribute_moments_from_dask


class TakesContinuous(AddsRows):
    """A class whose sensitive features may be groups, continuous, or both."""

    __metadata_request__fit = {"sensitive_features": True, "continuous": True}  # noqa: RUF012
    __metadata_request__partial_fit = {"sensitive_features": True, "continuous": True}  # noqa: RUF012

    @checks_keywords
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        continuous: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Fit to data.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, or Dask array or data frame of shape (n_samples, n_features)
            :class:`LeaceEraser` also takes arrays and tensors of shape [..., n_features].
        y : array-like of shape (n_samples,), optional
            What ``LeaceEraser(preserve="label")`` keeps; ignored otherwise.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
            The group of each row: numbers, strings, booleans, a Series, a categorical. With several columns, every
            combination that occurs is a group. Required, unless ``continuous`` holds values. With a Dask X: a Dask
            collection with the same chunks, or the name of a column of X, which is then not a feature.
        continuous : str, list of str, or array-like of shape (n_samples,) or (n_samples, n_columns), optional
            Sensitive features that are measurements rather than groups, such as age: names among those of
            ``sensitive_features``, if it names columns of X or is a data frame or dict, whose other columns are the
            groups; or the values themselves, in addition to the groups (with a Dask X: with the same chunks). The
            scores are then uncorrelated with each of them.
        sample_weight : array-like of shape (n_samples,), optional
            Counts like repeated rows.

        Returns
        -------
        self
        """
        return self._fit_rows(X, y, sensitive_features, continuous, sample_weight)

    @checks_keywords
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        continuous: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Add these rows to all rows seen before. A chunk may contain a single group; groups may appear later.

        Adding is cheap: what was fitted is computed when it is asked for, by a fitted attribute, a method such as
        ``transform``, or saving. Every chunk needs the same continuous sensitive features, if any; parameters as in
        :meth:`fit`.
        """
        return self._add_rows(X, y, sensitive_features, continuous, sample_weight)

    def _split_off_groups(self, X: Any, sensitive_features: Any, continuous: Any, *, reset: bool) -> tuple[Any, Any]:
        """Separate groups that are columns of X; continuous sensitive features need none beside them."""
        if sensitive_features is not None or continuous is None:
            return split_off_groups(self, X, sensitive_features, reset=reset)
        if reset:
            remember_sensitive_columns(self, [])
        return X, None


class UncorrelatedEstimator(TakesContinuous, MomentEstimator):
    """A moment estimator whose scores are uncorrelated with its sensitive features."""

    continuous_: list[str]

    def _check_reduction(self, reduction: Any) -> Any:
        measured = isinstance(reduction, AttributeMoments)
        return check_attributes(reduction) if measured else super()._check_reduction(reduction)

    def _measure(
        self, X: Any, y: Any, sensitive_features: Any, continuous: Any, sample_weight: Any, *, part: bool
    ) -> Reduction:
        before = self._rows_seen() if part else None
        if before is not None and isinstance(before, AttributeMoments) != (continuous is not None):
            had = f"had continuous={self.continuous_!r}" if continuous is None else "had no continuous"
            raise ValueError(
                f"continuous={continuous!r}, but the rows seen before {had}: pass the same columns with every chunk, "
                "or use a new estimator."
            )
        if continuous is None:
            return super()._measure(X, y, sensitive_features, None, sample_weight, part=part)
        reset = before is None
        if is_dask(X):
            self._check_dask(X, sensitive_features, reset=reset)
            return attribute_moments_from_dask(
                X, sensitive_features=sensitive_features, continuous=continuous, sample_weight=sample_weight
            )
        X, sensitive_features = self._split_off_groups(X, sensitive_features, continuous, reset=reset)
        X = check_matrix(self, X, reset=reset, min_samples=0 if part else 2, finite=False)
        groups, measured = check_continuous(sensitive_features, continuous, X.shape[0])
        weights = check_sample_weight(sample_weight, X.shape[0], part=part)
        return accumulate_attributes(X, groups, measured, weights)

    def _rows_seen(self) -> Any:
        seen = super()._rows_seen()
        names = () if seen is None else tuple(self.continuous_)
        return AttributeMoments(names, seen) if names else seen

    def _remember(self, reduction: Any) -> None:
        measured = isinstance(reduction, AttributeMoments)
        super()._remember(reduction.joint if measured else reduction)
        self.continuous_ = list(reduction.names) if measured else []

    def _store(self, reduction: Reduction, fit: Fit) -> None:
        super()._store(reduction, fit)
        self.continuous_slopes_ = np.zeros(0)
        if isinstance(reduction, AttributeMoments):
            self.continuous_slopes_ = np.linalg.norm(reduction.slopes() @ self._encoder.T, axis=1)


def check_attributes(moments: AttributeMoments) -> AttributeMoments:
    constant = np.flatnonzero(moments.attribute_spreads() == 0)
    if constant.size:
        raise ValueError(
            f"continuous column {moments.names[constant[0]]!r} has the same value in every row, so that nothing can be "
            "correlated with it; leave it out."
        )
    return moments
