"""What all estimators share: projecting rows, and learning from group moments."""

from __future__ import annotations

import warnings
from abc import ABCMeta, abstractmethod
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from fairpca._labels import quoted
from fairpca._saved import FITTED, GROUPED, LINEAR, PER_GROUP, TUPLE, Array, Declared, Record
from fairpca._validation import (
    check_groups,
    check_groups_given,
    check_matrix,
    check_n_components,
    check_plain_matrix,
    check_sample_weight,
    check_several_groups,
)
from fairpca.linalg import fix_signs, orthonormalise, threads_for
from fairpca.moments import GroupFactors, GroupMoments, RowSpace, accumulate, chunk_moments
from fairpca.moments.dask import as_dask_features, is_dask, moments_from_dask, project_lazily, sample_of
from fairpca.problems import best_captured, group_errors, group_losses

__all__ = ["LinearProjection", "MomentEstimator", "is_wide", "label_array"]

#: Above this many features p x p matrices are avoided where possible ...
MANY_FEATURES = 3000
#: ... and with at most this many rows the problem is solved in the space they span.
FEW_ROWS = 2000
#: Numbers of X that are centred at a time.
_BLOCK_NUMBERS = 1_000_000
#: Multiplications of a short search, in units of p^3: up to a thousand features it takes less than a second.
_PRODUCTS_OF_A_SEARCH = 5.0


_MOMENTS: dict[str, Declared] = {
    "_moments": Record(
        GroupMoments,
        {
            "labels": TUPLE,
            "counts": Array("g", finite=True),
            "means": Array("gp", finite=True),
            "scatters": Array("gpp", finite=True),
        },
        or_none=True,
    )
}


class FloatTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Takes dense and sparse rows, and keeps their precision."""

    _saved_attributes = FITTED

    def _check_transform_parameters(self) -> None:
        """Refuse parameters with which ``transform`` fails; a saved model may have come from anywhere."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class LinearProjection(FloatTransformer, metaclass=ABCMeta):
    """Projection on orthonormal components about the pooled mean; subclasses only learn."""

    # The group column travels through Pipeline, GridSearchCV and cross_validate without a call by the user.
    __metadata_request__fit = {"sensitive_features": True}  # noqa: RUF012 (scikit-learn reads a plain dict)

    _saved_attributes = LINEAR | GROUPED | {"group_errors_": PER_GROUP, "group_losses_": PER_GROUP}

    components_: np.ndarray
    mean_: np.ndarray

    def transform(self, X: Any) -> np.ndarray:
        """Scores of the rows: ``(X - mean_) @ components_.T``; lazy for a Dask collection."""
        check_is_fitted(self)
        if is_dask(X):
            check_matrix(self, sample_of(X), reset=False)
            return project_lazily(X, self.components_, self.mean_)
        X = check_matrix(self, X, reset=False)
        components = self.components_.astype(X.dtype, copy=False)
        offset = (self.mean_ @ self.components_.T).astype(X.dtype, copy=False)
        with threads_for(X.shape[0] * components.size):
            return X @ components.T - offset

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Rows in the original space whose scores are X; lazy for a Dask array."""
        check_is_fitted(self)
        if not is_dask(X):
            X = check_plain_matrix(X)
        if X.shape[1] != len(self.components_):
            raise ValueError(
                f"X has {X.shape[1]} columns, but there are {len(self.components_)} components: give scores, as "
                "transform returns them."
            )
        with threads_for(X.shape[0] * self.components_.size):
            return X @ self.components_ + self.mean_

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit to the rows and return their scores."""
        if not is_dask(X):
            return super().fit_transform(X, y, **fit_params)
        features = as_dask_features(X, fit_params.get("sensitive_features"))[0]  # a column of groups is no feature
        return self.fit(X, y, **fit_params).transform(features)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the mean squared reconstruction error of the rows; larger is better."""
        check_is_fitted(self)
        X = check_matrix(self, X, reset=False)
        with threads_for(X.shape[0] * self.components_.size):
            return -self._squared_residuals(X) / X.shape[0]

    def _squared_residuals(self, X: Any) -> float:
        if sparse.issparse(X):
            scores = X @ self.components_.T - self.mean_ @ self.components_.T
            total = X.multiply(X).sum() - 2 * (X @ self.mean_).sum() + X.shape[0] * (self.mean_ @ self.mean_)
            return max(float(total - np.einsum("ij,ij->", scores, scores)), 0.0)
        step, total = max(_BLOCK_NUMBERS // X.shape[1], 1), 0.0
        for start in range(0, X.shape[0], step):
            rows = X[start : start + step] - self.mean_  # centred first: means may be large next to what is left over
            scores = rows @ self.components_.T
            total += float(np.einsum("ij,ij->", rows, rows) - np.einsum("ij,ij->", scores, scores))
        return max(total, 0.0)

    def get_covariance(self) -> np.ndarray:
        """Covariance of the probabilistic model: the components' variances, and one level for all that is left."""
        check_is_fitted(self)
        excess = (self.explained_variance_ - self.noise_variance_)[:, None] * self.components_
        covariance = self.components_.T @ excess
        covariance.flat[:: len(covariance) + 1] += self.noise_variance_
        return covariance

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    def _set_projection(self, basis: np.ndarray, moments: GroupMoments) -> None:
        """Attributes that scikit-learn's PCA has, for an orthonormal basis of the chosen subspace."""
        covariance = moments.pooled_covariance()
        form = basis.T @ covariance @ basis
        self._set_scores(basis, form, float(np.trace(covariance)), moments.total_count, moments.pooled_mean)

    def _set_scores(
        self, basis: np.ndarray, form: np.ndarray, total: float, total_count: float, mean: np.ndarray
    ) -> None:
        """The same from ``form = V^T S V`` and ``total = tr S``."""
        p, d = basis.shape
        values, rotation = np.linalg.eigh(form)
        basis = fix_signs(orthonormalise(basis @ rotation[:, ::-1]))
        captured = np.maximum(values[::-1], 0.0)
        unbiased = total_count / (total_count - 1.0) if total_count > 1 else 1.0
        self.components_ = np.ascontiguousarray(basis.T)
        self.mean_ = mean.copy()
        self.explained_variance_ = captured * unbiased
        self.explained_variance_ratio_ = captured / total if total > 0 else np.zeros(d)
        left_out = max(total - captured.sum(), 0.0)
        self.noise_variance_ = left_out * unbiased / (p - d) if p > d else 0.0
        self.n_components_ = d
        self.n_samples_seen_ = int(total_count) if float(total_count).is_integer() else total_count

    def _warn_about(self, moments: GroupMoments | GroupFactors | RowSpace, n_components: int) -> None:
        small = [
            f"{quoted(label)} ({count:g})"
            for label, count in zip(moments.labels, moments.counts, strict=True)
            if count < n_components
        ]
        if small:
            warnings.warn(
                f"Groups smaller than n_components={n_components}: {', '.join(small)}. Their own best projection "
                "is exact, so their figures say little; merge small groups or lower n_components.",
                UserWarning,
                stacklevel=4,
            )
        copies = moments.columns_fixed_by_group()
        if copies.size:
            names = getattr(self, "feature_names_in_", None)
            columns = ", ".join(repr(names[j]) if names is not None else f"column {j}" for j in copies[:5])
            warnings.warn(
                f"X contains the sensitive feature or a copy of it: {columns}. Drop it from X unless that is meant.",
                UserWarning,
                stacklevel=4,
            )

    def _set_groups(self, moments: GroupMoments, matrices: np.ndarray, best: np.ndarray | None = None) -> None:
        """Figures of each group at the returned components; ``matrices`` are the M_a of the chosen centring."""
        basis = self.components_.T
        if best is None:
            best = best_captured(matrices, basis.shape[1])
        self._set_labels(moments)
        self.group_errors_ = group_errors(matrices, basis)
        self.group_losses_ = group_losses(matrices, basis, best)

    def _set_labels(self, moments: GroupMoments | GroupFactors) -> None:
        self.groups_ = label_array(moments.labels)
        self.group_counts_ = moments.counts.copy()


class MomentEstimator(LinearProjection):
    """An estimator that needs nothing of the data but its :class:`~fairpca.moments.GroupMoments`."""

    __metadata_request__partial_fit = {"sensitive_features": True}  # noqa: RUF012

    _saved_attributes = _MOMENTS

    _moments: GroupMoments | None  # None after a fit that formed no p x p matrix

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit to data.

        Parameters
        ----------
        X : array-like, sparse matrix, or Dask array or data frame of shape (n_samples, n_features)
        y : ignored
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
            The group of each row: numbers, strings, booleans, a Series, a categorical; several columns make
            groups of the combinations that occur. Required. With a Dask X: a Dask collection with the same chunks, or
            the name of a column of X, which is then no feature.
        sample_weight : array-like of shape (n_samples,), optional
            Counts like repeated rows.

        Returns
        -------
        self
        """
        if is_wide(X) and X.shape[0] <= FEW_ROWS and self._depends_on_subspace_only():
            return self._fit_in_row_space(X, sensitive_features, sample_weight)
        moments = self._reduce(X, sensitive_features, sample_weight, reset=True)
        check_several_groups(moments.labels, moments.total_count)
        return self._learn(moments)

    def partial_fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit to all rows seen so far and these. A chunk may hold a single group; groups may appear later."""
        before = getattr(self, "_moments", None)
        if before is None and hasattr(self, "_moments"):
            raise ValueError(
                "fit on so many features kept no moments to add to; use partial_fit from the first chunk on, or a new "
                "estimator."
            )
        moments = self._reduce(X, sensitive_features, sample_weight, reset=before is None, part=True)
        merged = moments if before is None else before.merge(moments)
        if merged.labels and self._can_learn_from(merged):
            return self._learn(merged)
        self._moments = merged  # nothing to learn from yet: no rows, no weight, or too few of a group
        return self

    def _can_learn_from(self, moments: GroupMoments) -> bool:
        """Whether chunks seen so far are enough; those to come may bring what is missing."""
        return True

    def fit_moments(self, moments: GroupMoments) -> Self:
        """Fit to a summary made elsewhere, for example merged from chunks or from several sites.

        Examples
        --------
        >>> import numpy as np
        >>> from fairpca import FairPCA
        >>> from fairpca.moments import group_moments
        >>> rng = np.random.default_rng(0)
        >>> X, groups = rng.normal(size=(60, 4)), rng.integers(0, 2, 60)
        >>> chunks = [(X[:30], groups[:30]), (X[30:], groups[30:])]
        >>> FairPCA(2).fit_moments(group_moments(chunks)).components_.shape
        (2, 4)
        """
        check_several_groups(moments.check().labels, moments.total_count)
        self.n_features_in_ = moments.n_features
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # those of an earlier fit; moments have none
        return self._learn(moments)

    def _reduce(
        self, X: Any, sensitive_features: Any, sample_weight: Any, *, reset: bool, part: bool = False
    ) -> GroupMoments:
        if is_dask(X):
            check_matrix(self, sample_of(as_dask_features(X, sensitive_features)[0]), reset=reset)
            return moments_from_dask(X, sensitive_features, sample_weight)
        check_groups_given(sensitive_features)
        X = check_matrix(self, X, reset=reset, min_samples=0 if part else 2, finite=False)  # accumulate sees to it
        if part:
            return chunk_moments(X, sensitive_features, sample_weight)
        groups = check_groups(sensitive_features, X.shape[0])
        return accumulate(X, groups, check_sample_weight(sample_weight, X.shape[0]))

    def _depends_on_subspace_only(self) -> bool:
        """Whether nothing in the search depends on the number of features."""
        return True

    def _fit_in_row_space(self, X: Any, sensitive_features: Any, sample_weight: Any) -> Self:
        """Fewer rows than features: the same problem, exactly, in the space that the rows span."""
        X = check_matrix(self, X, reset=True, min_samples=2)
        groups = check_groups(sensitive_features, X.shape[0])
        n_components = check_n_components(self.n_components, X.shape[1])
        weights = check_sample_weight(sample_weight, X.shape[0])
        with threads_for(X.shape[0] ** 2 * (X.shape[1] + _PRODUCTS_OF_A_SEARCH * X.shape[0])):
            space = RowSpace(X, groups, weights, n_spare=n_components)
            check_several_groups(space.labels, space.total_count)
            self._warn_about(space, n_components)
            self._solve(space.moments, n_components)
            self._lift(space)
        self._moments = None
        return self

    def _lift(self, space: RowSpace) -> None:
        """From coordinates in the row space to features."""
        d, p, size = self.n_components_, space.n_features, space.moments.n_features
        self.components_ = np.ascontiguousarray(fix_signs(space.lift(self.components_.T)).T)
        self.mean_ = space.pooled_mean.copy()
        self.noise_variance_ *= (size - d) / (p - d) if p > d else 0.0

    def _learn(self, moments: GroupMoments) -> Self:
        n_components = check_n_components(self.n_components, moments.n_features)
        self._warn_about(moments, n_components)
        with threads_for(_PRODUCTS_OF_A_SEARCH * moments.n_features**3):
            self._solve(moments, n_components)
        self._moments = moments
        return self

    @abstractmethod
    def _solve(self, moments: GroupMoments, n_components: int) -> None:
        """Set the fitted attributes."""

    def _warn_unless_converged(self, advice: str) -> None:
        if not self.converged_:
            warnings.warn(
                f"{type(self).__name__} stopped with a gap of {self.duality_gap_:.3g}. {advice}",
                ConvergenceWarning,
                stacklevel=4,
            )


def is_wide(X: Any) -> bool:
    """Whether X is a matrix in memory with so many columns that p x p matrices are to be avoided."""
    return len(getattr(X, "shape", ())) == 2 and not is_dask(X) and X.shape[1] > MANY_FEATURES


def label_array(labels: tuple[Any, ...]) -> np.ndarray:
    """Labels as an array of their own type where they share one, else of objects (tuples always)."""
    if len({type(label) for label in labels}) == 1 and not isinstance(labels[0], tuple):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array
