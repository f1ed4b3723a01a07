"""Groups that differ, although no mean or covariance does."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairpca._validation import legacy_generator

__all__ = ["make_same_moments"]


def make_same_moments(
    n_samples: int = 300, *, noise: float = 0.1, random_state: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Two groups in three dimensions with the same mean and covariance but different distributions.

    Group 0 is normal, N(0, noise I + 1 1^T); group 1 is the balanced mixture of N(1, noise I) and N(-1, noise
    I), with 1 the vector of ones (Lee et al. 2022, synthetic data 1). No method that uses only
    means and covariances can distinguish them.

    Parameters
    ----------
    n_samples : int, default=300
        Rows in total, half of them (rounded up) in group 0.
    noise : float, default=0.1
        Variance around the diagonal.
    random_state : int, RandomState or None
        None is a fixed seed.

    Returns
    -------
    X : ndarray of shape (n_samples, 3)
    groups : ndarray of shape (n_samples,)
        0 or 1.

    See Also
    --------
    make_toy : Two groups whose variance lies along different directions.

    Examples
    --------
    >>> from fairpca.datasets import make_same_moments
    >>> X, groups = make_same_moments(random_state=0)
    >>> X.shape, int(groups.sum())
    ((300, 3), 150)
    """
    rng = legacy_generator(random_state)
    groups = np.repeat([0, 1], [-(-n_samples // 2), n_samples // 2])
    along = rng.standard_normal(n_samples)
    # The mixture's two halves differ by the sign of their mean; balanced exactly, as in the paper.
    signs = np.where(np.arange(n_samples) % 2 == 0, 1.0, -1.0)
    along = np.where(groups == 0, along, signs)
    X = along[:, None] + np.sqrt(noise) * rng.standard_normal((n_samples, 3))
    return X, groups
