"""What all estimators share, and what a linear projection does with rows: the methods that users know from PCA."""

from __future__ import annotations

from abc import ABCMeta
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from fairpca._labels import quoted
from fairpca._validation import (
    check_matrix,
    check_plain_matrix,
    is_dask,
    remember_sensitive_columns,
    warn_user,
    without_sensitive_columns,
)
from fairpca.estimators._html import fitted_html
from fairpca.estimators._kinds import in_kind
from fairpca.estimators._row_errors import row_errors
from fairpca.estimators.rotation import RotatedComponents, rotate
from fairpca.linalg import fix_signs, orthonormalise, threads_for
from fairpca.moments import GroupMoments
from fairpca.moments._group_moments import Reduction
from fairpca.moments.dask import as_dask_features, rows_lazily, sample_of
from fairpca.problems.evaluation import Evaluation


class FloatTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer that accepts dense and sparse rows and preserves their precision."""

    #: Private attributes that a saved model needs, besides all public ones that ``fit`` sets.
    _saved_attributes: ClassVar[tuple[str, ...]] = ()

    def _check_parameters(self) -> None:
        """Raise for parameters that are invalid for any data, before any data is read."""

    def _checked_rows(self, X: Any) -> Any:
        """New rows as a matrix or, if they are a Dask collection, without the sensitive columns."""
        check_is_fitted(self)
        if not is_dask(X):
            return check_matrix(self, X, reset=False)
        X = without_sensitive_columns(self, X)
        check_matrix(self, sample_of(X), reset=False)
        return X

    def _check_dask(self, X: Any, sensitive_features: Any, *, reset: bool) -> None:
        """Check the columns of a Dask collection, and remember the sensitive ones among them."""
        features = X if sensitive_features is None else as_dask_features(X, sensitive_features)[0]
        if hasattr(X, "columns"):
            remember_sensitive_columns(self, [name for name in X.columns if name not in features.columns])
        check_matrix(self, sample_of(features), reset=reset)

    def _set_labels(self, labels: tuple[Any, ...], counts: np.ndarray) -> None:
        total = float(counts.sum())
        self.groups_, self.group_counts_ = label_array(labels), counts.copy()
        self.n_samples_seen_ = int(total) if total.is_integer() else total

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + fitted_html(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """scikit-learn's diagram, followed by the groups and the certificate of a fitted estimator."""
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += fitted_html(self)
        return bundle

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32", "float16"]
        return tags


class LinearProjection(FloatTransformer, metaclass=ABCMeta):
    """Projection on orthonormal components about the pooled mean; subclasses implement only the fit.

    See Also
    --------
    MomentEstimator : For methods that need group moments only.

    Examples
    --------
    >>> from fairpca import FairPCA, MMDFairPCA
    >>> from fairpca.estimators import LinearProjection
    >>> issubclass(FairPCA, LinearProjection), issubclass(MMDFairPCA, LinearProjection)
    (True, True)
    """

    # Pipeline, GridSearchCV and cross_validate pass the groups on without a request by the user.
    __metadata_request__fit = {"sensitive_features": True}  # noqa: RUF012 (scikit-learn reads a plain dict)

    _saved_attributes: ClassVar[tuple[str, ...]] = ("_score_covariance",)

    components_: np.ndarray
    mean_: np.ndarray
    explained_variance_: np.ndarray
    noise_variance_: float

    @in_kind
    def transform(self, X: Any) -> np.ndarray:
        """Scores of the rows: ``(X - mean_) @ components_.T``; lazy for a Dask collection."""
        X = self._checked_rows(X)
        if is_dask(X):
            return rows_lazily(X, _scores, self._encoder, self.mean_, width=len(self._encoder))
        with threads_for(X.shape[0] * self._encoder.size):
            return _scores(X, self._encoder, self.mean_)

    @in_kind
    def inverse_transform(self, X: Any) -> np.ndarray:
        """Map scores back to the original space; lazy for a Dask array."""
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

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the mean squared reconstruction error of the rows; larger is better."""
        return float(self.score_samples(X).mean())

    def score_samples(self, X: Any) -> np.ndarray:
        """Minus the squared reconstruction error of each row; lazy for a Dask collection.

        Unlike :class:`sklearn.decomposition.PCA`, which returns log-likelihoods: ``group_errors_`` are means of these.
        """
        X = self._checked_rows(X)
        if is_dask(X):
            return -rows_lazily(X, row_errors, self.components_, self.mean_, self._encoder, width=None)
        with threads_for(X.shape[0] * self.components_.size):
            return -row_errors(X, self.components_, self.mean_, self._encoder)

    def to_sklearn(self) -> PCA:
        """A fitted :class:`sklearn.decomposition.PCA` with the same components, mean and variances.

        For everything that knows PCA, such as converters to ONNX. Its ``transform``, ``inverse_transform`` and
        ``get_covariance`` give the same results; its ``score`` is a log-likelihood. The groups are left out. If the
        scores are correlated (``FairPCA(nested=True)``), ``explained_variance_`` holds their plain variances.

        Examples
        --------
        >>> import numpy as np
        >>> from fairpca import FairPCA
        >>> from fairpca.datasets import load_german_credit
        >>> X, sex = load_german_credit(return_X_s=True)
        >>> pca = FairPCA(3).fit(X, sensitive_features=sex)
        >>> bool(np.allclose(pca.to_sklearn().transform(X), pca.transform(X)))
        True
        """
        check_is_fitted(self)
        pca = PCA(n_components=self.n_components_, svd_solver="full")
        for name in ("components_", "mean_", "explained_variance_", "singular_values_"):
            setattr(pca, name, np.array(getattr(self, name), dtype=np.float64))
        for name in ("explained_variance_ratio_", "noise_variance_", "n_components_", "n_features_in_"):
            setattr(pca, name, getattr(self, name))
        pca.n_samples_, pca._fit_svd_solver = self.n_samples_seen_, "full"
        if hasattr(self, "feature_names_in_"):
            pca.feature_names_in_ = self.feature_names_in_.copy()
        return pca

    @property
    def loadings_(self) -> np.ndarray:
        """Components times the standard deviations of the scores, of shape (n_features, n_components).

        With features of unit variance, an orthogonal projection's are the correlations of features and scores.
        """
        return self.components_.T * np.sqrt(self.explained_variance_)

    def rotated(self, method: str = "varimax") -> RotatedComponents:
        """Loadings and scores after a rotation within the same subspace, which makes loadings easier to name.

        Errors, losses and the certificate stay what they are. ``method`` is "varimax" (Kaiser 1958, without
        normalisation).

        Examples
        --------
        >>> from fairpca import FairPCA
        >>> from fairpca.datasets import load_german_credit
        >>> X, sex = load_german_credit(return_X_s=True)
        >>> rotated = FairPCA(n_components=4).fit(X, sensitive_features=sex).rotated("varimax")
        >>> rotated.loadings_.shape, rotated.transform(X).shape
        ((57, 4), (1000, 4))
        """
        return rotate(self, method)

    @property
    def singular_values_(self) -> np.ndarray:
        """Square roots of the sums of squared scores, as in :class:`sklearn.decomposition.PCA`."""
        return np.sqrt(self.explained_variance_ * max(self.n_samples_seen_ - 1.0, 0.0))

    def get_covariance(self) -> np.ndarray:
        """Covariance of the probabilistic model: that of the scores, and one noise variance for the rest."""
        check_is_fitted(self)
        scores = getattr(self, "_score_covariance", None)  # which models saved before version 0.3 need not have
        scores = np.diag(self.explained_variance_) if scores is None else scores
        excess = scores - self.noise_variance_ * np.eye(len(scores))
        covariance = self.components_.T @ excess @ self.components_
        covariance.flat[:: len(covariance) + 1] += self.noise_variance_
        return covariance

    def get_precision(self) -> np.ndarray:
        """The inverse of :meth:`get_covariance`."""
        return np.linalg.inv(self.get_covariance())

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    @property
    def _encoder(self) -> np.ndarray:
        """The matrix that maps centred rows to scores; for an orthogonal projection, the components themselves."""
        return self.components_

    def _set_projection(self, basis: np.ndarray, reduction: Reduction, form: np.ndarray | None = None) -> None:
        """Set the attributes of scikit-learn's PCA from an orthonormal basis, in coordinates of the reduction.

        ``form`` is the covariance of the scores if they are not those of an orthogonal projection.
        """
        basis, covariance = self._oriented(basis, reduction.pooled_form(basis) if form is None else form)
        lifted = reduction.lift(basis)
        basis = fix_signs(lifted)
        signs = np.sign(np.einsum("pi,pi->i", lifted, basis))
        p, d = basis.shape
        total, count = reduction.pooled_variance(), reduction.total_count
        captured = np.maximum(np.diag(covariance), 0.0)
        unbiased = count / (count - 1.0) if count > 1 else 1.0
        self.components_ = np.ascontiguousarray(basis.T)
        self._score_covariance = covariance * np.outer(signs, signs) * unbiased
        self.mean_ = reduction.pooled_mean.copy()
        self.explained_variance_ = captured * unbiased
        self.explained_variance_ratio_ = captured / total if total > 0 else np.zeros(d)
        left_out = max(total - captured.sum(), 0.0)
        self.noise_variance_ = left_out * unbiased / (p - d) if p > d else 0.0
        self.n_components_ = d
        self._set_labels(reduction.labels, reduction.counts)

    def _oriented(self, basis: np.ndarray, form: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The basis with uncorrelated scores, by descending variance, and their covariance; ``form`` is ``V^T S V``."""
        values, rotation = np.linalg.eigh(form)
        return orthonormalise(basis @ rotation[:, ::-1]), np.diag(values[::-1])

    def _warn_about(self, moments: Reduction, n_components: int) -> None:
        small = [
            f"{quoted(label)} ({count:g})"
            for label, count in zip(moments.labels, moments.counts, strict=True)
            if count < n_components
        ]
        if small:
            warn_user(
                f"Groups smaller than n_components={n_components}: {', '.join(small)}. Their own best projection "
                "is exact, so their errors and losses say little; merge small groups or lower n_components."
            )
        copies = moments.columns_fixed_by_group()
        if copies.size:
            names = getattr(self, "feature_names_in_", None)
            columns = ", ".join(repr(names[j]) if names is not None else f"column {j}" for j in copies[:5])
            warn_user(
                f"X contains the sensitive feature or a copy of it: {columns}. Drop it from X unless this is intended."
            )

    def _set_groups(self, moments: GroupMoments, matrices: np.ndarray) -> None:
        """Set the group attributes for the returned components; ``matrices`` are the M_a of the chosen centring."""
        found = Evaluation(matrices, self.components_.T)
        self.group_errors_, self.group_losses_ = found.errors, found.losses


def _scores(rows: Any, encoder: np.ndarray, mean: np.ndarray) -> np.ndarray:
    offset = (mean @ encoder.T).astype(rows.dtype, copy=False)
    return rows @ encoder.T.astype(rows.dtype, copy=False) - offset


def label_array(labels: tuple[Any, ...]) -> np.ndarray:
    """Labels as an array of their own type where they share one, else of objects (tuples always)."""
    if len({type(label) for label in labels}) == 1 and not isinstance(labels[0], tuple):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array
