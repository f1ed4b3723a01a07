"""Fit any estimator: with groups if it accepts them, from moments if they are sufficient."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from fairpca.estimators._linear_projection import LinearProjection, label_array
from fairpca.linalg import fix_signs, top_eigenpairs
from fairpca.moments import GroupMoments
from fairpca.moments._sources import MemorySource, RowSource

__all__ = [
    "Fitter",
    "fit_rows",
    "fit_to_moments",
    "is_fitted",
    "is_projection",
    "n_components_of",
    "needs_moments_only",
    "quietly",
    "reconstruction_errors",
    "uses_groups",
]

#: Solvers of scikit-learn's PCA that find the exact components.
_EXACT_PCA = ("auto", "full", "covariance_eigh")


def is_fitted(estimator: Any) -> bool:
    """Whether it has fitted components, or is a matrix of components."""
    return not hasattr(estimator, "fit") or hasattr(estimator, "components_")


def uses_groups(estimator: Any) -> bool:
    """Whether ``fit`` requests ``sensitive_features``, as its own argument or through metadata routing."""
    if has_fit_parameter(estimator, "sensitive_features"):
        return True
    if not sklearn.get_config()["enable_metadata_routing"]:
        return False
    return bool(get_routing_for_object(estimator).consumes("fit", ["sensitive_features"]))


def needs_moments_only(estimator: Any) -> bool:
    """Whether the counts, means and scatter matrices of the groups are sufficient to fit it."""
    if type(estimator) is PCA:
        return isinstance(estimator.n_components, int | np.integer) and estimator.svd_solver in _EXACT_PCA
    # Of its own: a FrozenEstimator passes on the methods of what it holds, which must not be fitted again.
    return hasattr(type(estimator), "fit_moments")


def fit_to_moments(estimator: Any, moments: GroupMoments) -> Any:
    """A fitted copy of an estimator that :func:`needs_moments_only`."""
    estimator = clone(estimator)
    if type(estimator) is PCA:
        return _fit_pca(estimator, moments)
    return estimator.fit_moments(moments)


def fit_rows(estimator: Any, X: Any, y: Any, groups: np.ndarray, weights: np.ndarray | None) -> Any:
    """A copy fitted to rows, with the groups and weights if it accepts them; a frozen estimator stays as it is."""
    if isinstance(estimator, FrozenEstimator):
        check_is_fitted(estimator)
        return estimator
    options = {"sensitive_features": groups} if uses_groups(estimator) else {}
    if weights is not None:
        if not has_fit_parameter(estimator, "sample_weight"):
            raise ValueError(
                f"sample_weight was given, but {type(estimator).__name__}.fit does not accept it; leave it out."
            )
        options["sample_weight"] = weights
    return clone(estimator).fit(X, y, **options)


@dataclass(frozen=True)
class Fitter:
    """Fits an estimator to moments if they are sufficient, otherwise to rows in memory."""

    estimator: Any
    source: RowSource
    y: Any = None

    def __post_init__(self) -> None:
        if not (needs_moments_only(self.estimator) or isinstance(self.source, MemorySource)):
            raise ValueError(
                f"{type(self.estimator).__name__} needs rows in memory; pass a random sample of the rows, or an "
                "estimator with fit_moments."
            )

    def __call__(self, moments: GroupMoments | None, rows: Any = slice(None), codes: np.ndarray | None = None) -> Any:
        """Fit to these moments, or to these rows, perhaps with other groups."""
        if needs_moments_only(self.estimator):
            assert moments is not None
            return fit_to_moments(self.estimator, moments)
        assert isinstance(self.source, MemorySource)
        source, y = self.source, self.source.select(self.y)
        return fit_rows(
            self.estimator,
            source.X[rows],
            None if y is None else _safe_indexing(y, rows),
            label_array(source.groups.labels)[(source.groups.codes if codes is None else codes)[rows]],
            None if source.weights is None else source.weights[rows],
        )


def quietly(fit: Callable[..., Any], *given: Any) -> Any:
    """Suppress warnings: they are shown for the fit to all rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(*given)


def is_projection(fitted: Any) -> bool:
    """Whether it reconstructs rows from linear scores about its mean, by ``components_``."""
    return isinstance(fitted, LinearProjection) or type(fitted) is PCA


def n_components_of(fitted: Any) -> int:
    """Number of columns after ``transform``."""
    if is_projection(fitted):
        return len(fitted.components_)
    return int(fitted.transform(np.zeros((1, fitted.n_features_in_))).shape[1])


def reconstruction_errors(fitted: Any, X: Any) -> np.ndarray:
    """Squared distance of each row from its reconstruction by ``inverse_transform``."""
    restored = np.asarray(fitted.inverse_transform(fitted.transform(X)))
    difference = (X.toarray() if sparse.issparse(X) else X) - restored
    return np.einsum("ij,ij->i", difference, difference)


def _fit_pca(estimator: PCA, moments: GroupMoments) -> PCA:
    """Set the attributes that scikit-learn's own fit sets, from the covariance of all rows."""
    count, p, d = moments.total_count, moments.n_features, int(estimator.n_components)
    covariance, unbiased = moments.pooled_covariance(), count / (count - 1.0) if count > 1.0 else 1.0
    values, vectors = top_eigenpairs(covariance, d)
    values, total = unbiased * np.maximum(values, 0.0), unbiased * float(np.trace(covariance))
    estimator.components_ = np.ascontiguousarray(fix_signs(vectors).T)
    estimator.mean_ = moments.pooled_mean.copy()
    estimator.explained_variance_ = values
    estimator.explained_variance_ratio_ = values / total if total > 0 else np.zeros(d)
    estimator.singular_values_ = np.sqrt(values * count / unbiased)
    estimator.noise_variance_ = max(total - values.sum(), 0.0) / (p - d) if d < p else 0.0
    estimator.n_components_, estimator.n_features_in_, estimator.n_samples_ = d, p, int(count)
    return estimator
