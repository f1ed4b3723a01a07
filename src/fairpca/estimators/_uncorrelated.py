"""What ParityPCA and LeacePCA share: scores uncorrelated with groups and with continuous sensitive features."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from fairpca._continuous import check_continuous
from fairpca._saved import LIST, Array, optional
from fairpca._validation import (
    check_matrix,
    check_sample_weight,
    check_several_groups,
    checks_keywords,
    is_dask,
    remember_sensitive_columns,
    split_off_groups,
)
from fairpca.estimators._base import Fit, MomentEstimator
from fairpca.estimators._dimension import refuse_share
from fairpca.moments import AttributeMoments, GroupMoments
from fairpca.moments._attributes import accumulate_attributes
from fairpca.moments._group_moments import Reduction
from fairpca.moments.dask import attribute_moments_from_dask, sample_of

__all__ = ["UncorrelatedEstimator", "check_attributes"]


class UncorrelatedEstimator(MomentEstimator):
    """A moment estimator whose sensitive features may be groups, continuous, or both."""

    __metadata_request__fit = {"sensitive_features": True, "continuous": True}  # noqa: RUF012
    __metadata_request__partial_fit = {"sensitive_features": True, "continuous": True}  # noqa: RUF012

    continuous_: list[str]

    _saved_attributes: ClassVar = {
        "continuous_": optional(LIST),
        "continuous_slopes_": optional(Array("z", finite=True)),
    }

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
        X : array-like, sparse matrix, or Dask array or data frame of shape (n_samples, n_features)
        y : ignored
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
        self._check_parameters()
        if continuous is None:
            reduction = self._reduce(X, sensitive_features, sample_weight)
            check_several_groups(reduction.labels, reduction.total_count)
            return self._learn(reduction)
        moments = self._measure(X, sensitive_features, continuous, sample_weight, reset=True, part=False)
        return self._learn(check_attributes(moments))

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

        Adding is cheap: the components are computed when they are asked for, by a fitted attribute, a method such as
        ``transform``, or saving. Every chunk needs the same continuous sensitive features, if any; parameters as in
        :meth:`fit`.
        """
        self._check_parameters()
        refuse_share(self.n_components)
        before = self._rows_seen()
        if before is not None and isinstance(before, AttributeMoments) != (continuous is not None):
            had = f"had continuous={self.continuous_!r}" if continuous is None else "had no continuous"
            raise ValueError(
                f"continuous={continuous!r}, but the rows seen before {had}: pass the same columns with every chunk, "
                "or use a new estimator."
            )
        if continuous is None:
            return super().partial_fit(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        chunk = self._measure(X, sensitive_features, continuous, sample_weight, reset=before is None, part=True)
        return self._add(before, chunk)

    def fit_moments(self, moments: GroupMoments | AttributeMoments) -> Self:
        """Fit to a summary computed elsewhere: group moments, or those of groups and continuous sensitive features.

        See Also
        --------
        fairpca.moments.group_moments, fairpca.moments.attribute_moments : Compute the summary.
        """
        self._check_parameters()
        if isinstance(moments, AttributeMoments):
            check_attributes(moments.check())
        else:
            check_several_groups(moments.check().labels, moments.total_count)
        self.n_features_in_ = moments.n_features
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # those of an earlier fit; moments have none
        return self._learn(moments)

    def _measure(
        self, X: Any, sensitive_features: Any, continuous: Any, sample_weight: Any, *, reset: bool, part: bool
    ) -> AttributeMoments:
        """Moments of these rows; with ``part``, a chunk that may have no rows or no positive weight."""
        if is_dask(X):
            by_chunk = sample_of(X) if sensitive_features is None else self._sample_of_features(X, sensitive_features)
            check_matrix(self, by_chunk, reset=reset)
            return attribute_moments_from_dask(
                X, sensitive_features=sensitive_features, continuous=continuous, sample_weight=sample_weight
            )
        if sensitive_features is not None:
            X, sensitive_features = split_off_groups(self, X, sensitive_features, reset=reset)
        elif reset:
            remember_sensitive_columns(self, [])
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
