"""A fitted scikit-learn PCA with the same components, for everything that knows PCA."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.decomposition import PCA

__all__ = ["as_sklearn_pca"]

_SHARED = ("explained_variance_ratio_", "noise_variance_", "n_components_", "n_features_in_")


def as_sklearn_pca(estimator: Any) -> PCA:
    """A :class:`sklearn.decomposition.PCA` with copies of the components, the mean and the variances."""
    pca = PCA(n_components=estimator.n_components_, svd_solver="full")
    for name in ("components_", "mean_", "explained_variance_", "singular_values_"):
        setattr(pca, name, np.array(getattr(estimator, name), dtype=np.float64))
    for name in _SHARED:
        setattr(pca, name, getattr(estimator, name))
    pca.n_samples_ = estimator.n_samples_seen_
    pca._fit_svd_solver = "full"
    if hasattr(estimator, "feature_names_in_"):
        pca.feature_names_in_ = np.array(estimator.feature_names_in_, dtype=object)
    return pca
