"""The two-dimensional example of Vu et al. (2022), Figure 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairpca._validation import legacy_generator

__all__ = ["make_toy"]

_COVARIANCES = (((4.0, 0.0), (0.0, 0.2)), ((0.2, 0.4), (0.4, 3.0)))


def make_toy(n_samples: tuple[int, int] = (200, 100), *, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Draw two centred Gaussian groups in the plane, one along the first axis and one near the second.

    Their covariances are ``[[4, 0], [0, 0.2]]`` and ``[[0.2, 0.4], [0.4, 3]]`` (Vu et al. 2022, Figure 1 and
    appendix D.2).

    Parameters
    ----------
    n_samples : tuple of two int, default=(200, 100)
        Rows of group 0 and of group 1.
    random_state : int, RandomState or None
        None is a fixed seed.

    Returns
    -------
    X : ndarray of shape (sum(n_samples), 2)
    groups : ndarray of shape (sum(n_samples),)

    See Also
    --------
    make_same_moments : Two groups that differ, although no mean or covariance does.

    Examples
    --------
    >>> from fairpca.datasets import make_toy
    >>> X, groups = make_toy(random_state=0)
    >>> X.shape, int(groups.sum())
    ((300, 2), 100)
    """
    rng = legacy_generator(random_state)
    rows = [
        rng.standard_normal((count, 2)) @ np.linalg.cholesky(np.array(covariance)).T
        for count, covariance in zip(n_samples, _COVARIANCES, strict=True)
    ]
    return np.vstack(rows), np.repeat([0, 1], n_samples)
