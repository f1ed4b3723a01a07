"""MMDFairPCA from the solution with fewer components: what a comparison over several numbers of components needs."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["fit_extended"]


def fit_extended(
    estimator: Any, fewer: np.ndarray, X: np.ndarray, groups: np.ndarray, sample_weight: np.ndarray | None = None
) -> Any:
    """Fit an MMDFairPCA to the rows of X, starting from the components of a fit with fewer of them.

    It starts from them, with directions of equal means beside them, and not from random frames: the variance kept is
    that of a fit by itself, up to differences between local optima in both directions, in less time.

    Parameters
    ----------
    estimator : MMDFairPCA
    fewer : ndarray of shape (fewer than n_components, n_features)
    X, groups : ndarray
    sample_weight : ndarray, optional

    Returns
    -------
    The estimator, fitted.
    """
    return estimator._fit(X, None, groups, sample_weight, fewer.T)
