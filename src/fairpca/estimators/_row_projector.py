"""What a fitted projection does with rows: the methods that users know from PCA."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from fairpca._validation import check_matrix, check_plain_matrix, is_dask, without_sensitive_columns
from fairpca.estimators._kinds import in_kind
from fairpca.estimators._row_errors import row_errors
from fairpca.estimators._sklearn_pca import as_sklearn_pca
from fairpca.estimators.rotation import RotatedComponents, rotate
from fairpca.linalg import threads_for
from fairpca.moments.dask import rows_lazily, sample_of

__all__ = ["RowProjector"]


class RowProjector(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Methods of a projection that has ``components_``, ``mean_``, ``explained_variance_`` and ``noise_variance_``."""

    components_: np.ndarray
    mean_: np.ndarray
    explained_variance_: np.ndarray
    noise_variance_: float
    n_samples_seen_: float

    @in_kind
    def transform(self, X: Any) -> np.ndarray:
        """Scores of the rows: ``(X - mean_) @ components_.T``; lazy for a Dask collection."""
        check_is_fitted(self)
        if is_dask(X):
            X = without_sensitive_columns(self, X)
            check_matrix(self, sample_of(X), reset=False)
            return rows_lazily(X, _scores, self._encoder, self.mean_, width=len(self._encoder))
        X = check_matrix(self, X, reset=False)
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
        check_is_fitted(self)
        if is_dask(X):
            X = without_sensitive_columns(self, X)
            check_matrix(self, sample_of(X), reset=False)
            return -rows_lazily(X, row_errors, self.components_, self.mean_, self._encoder, width=None)
        X = check_matrix(self, X, reset=False)
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
        return as_sklearn_pca(self)

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
        scores = getattr(self, "_score_covariance", None)  # set where scores may be correlated
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


def _scores(rows: Any, encoder: np.ndarray, mean: np.ndarray) -> np.ndarray:
    offset = (mean @ encoder.T).astype(rows.dtype, copy=False)
    return rows @ encoder.T.astype(rows.dtype, copy=False) - offset
