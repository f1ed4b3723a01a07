"""Moment parity: projected groups with equal means (and, weighed against variance, equal covariances)."""

from __future__ import annotations

import numpy as np

from fairpca.linalg import extend_basis, top_eigenpairs
from fairpca.moments import GroupMoments

__all__ = ["mean_differences", "mean_parity_basis"]


def mean_differences(moments: GroupMoments) -> np.ndarray:
    """Orthonormal basis, of shape (p, r), of the span of all differences between group means."""
    differences = (moments.means - moments.means[0])[1:].T
    scale = np.linalg.norm(differences, axis=0).max(initial=0.0)
    empty = np.zeros((moments.n_features, 0))
    return extend_basis(empty, differences / scale, tol=1e-12) if scale > 0 else empty


def mean_parity_basis(moments: GroupMoments, dimension: int) -> np.ndarray:
    """The d directions of largest pooled variance along which all group means are equal.

    Ordinary PCA inside the null space of the mean differences (Kleindessner et al. 2023, in closed form).
    """
    differences = mean_differences(moments)
    available = moments.n_features - differences.shape[1]
    if dimension > available:
        raise ValueError(
            f"n_components={dimension}, but only {available} directions have equal group means; lower "
            "n_components or allow a positive mean_tolerance."
        )
    null_space = np.linalg.qr(differences, mode="complete")[0][:, differences.shape[1] :]
    inner = null_space.T @ moments.pooled_covariance() @ null_space
    return null_space @ top_eigenpairs(inner, dimension)[1]
