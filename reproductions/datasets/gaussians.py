"""The second synthetic data of Lee et al. (2022)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import block_diag, toeplitz
from sklearn.utils import check_random_state

__all__ = ["make_projected_gaussians"]

#: Correlations of the five blocks of each group's covariance (Lee et al. 2022, section H).
_CORRELATIONS = ((0.99, 0.98, 0.97, 0.98, 0.95), (0.99, 0.98, 0.97, 0.98, 0.99))


def make_projected_gaussians(
    n_features: int = 20, *, n_samples: int = 500, n_latent: int = 1000, random_state: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Two groups with different means and covariances, projected from many dimensions by a random matrix.

    The latent groups are normal with ``|mu_1 - mu_0| = 2`` along the vector of ones and block-diagonal AR(1)
    covariances scaled so that ``|Sigma_1 - Sigma_0|_2 = 1``; they differ in the last of five blocks (Lee et
    al. 2022, synthetic data 2, section H). Both groups are multiplied by the same Gaussian matrix.

    Parameters
    ----------
    n_features : int, default=20
        p; the paper uses 20, 30, ..., 100.
    n_samples : int, default=500
        Rows in total, half of them (rounded up) in group 0.
    n_latent : int, default=1000
        A multiple of 5.
    random_state : int, RandomState or None

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    groups : ndarray of shape (n_samples,)

    See Also
    --------
    fairpca.datasets.make_same_moments : The paper's other synthetic data.

    Examples
    --------
    >>> from reproductions.datasets import make_projected_gaussians
    >>> X, groups = make_projected_gaussians(n_features=30, n_latent=100, random_state=0)
    >>> X.shape
    (500, 30)
    """
    if n_latent < 5 or n_latent % 5:
        raise ValueError(f"n_latent={n_latent} must be a positive multiple of 5: the covariance has five blocks.")
    rng = check_random_state(random_state)
    covariances = [
        block_diag(*(_autoregressive(n_latent // 5, correlation) for correlation in correlations))
        for correlations in _CORRELATIONS
    ]
    # The groups differ in the last block only, so the norm of that block is the norm of the difference.
    last = slice(-(n_latent // 5), None)
    scale = np.abs(np.linalg.eigvalsh((covariances[1] - covariances[0])[last, last])).max()
    mean = np.full(n_latent, 2.0 / np.sqrt(n_latent))
    projection = rng.standard_normal((n_latent, n_features))
    groups = np.repeat([0, 1], [-(-n_samples // 2), n_samples // 2])
    parts = []
    for group, covariance in enumerate(covariances):
        normal = rng.standard_normal((int((groups == group).sum()), n_latent))
        rows = normal @ np.linalg.cholesky(covariance / scale).T + group * mean
        parts.append(rows @ projection)
    return np.vstack(parts), groups


def _autoregressive(size: int, correlation: float) -> np.ndarray:
    """Covariance ``r^|i - j| / (1 - r^2)`` of an AR(1) process."""
    return toeplitz(correlation ** np.arange(size)) / (1.0 - correlation**2)
