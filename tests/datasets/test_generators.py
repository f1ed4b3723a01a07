"""Synthetic data of the 2022 paper."""

import numpy as np
import pytest

from fairpca.datasets import make_same_moments
from reproductions.datasets import make_projected_gaussians


def test_same_moments_but_not_the_same_distribution():
    X, groups = make_same_moments(200_000, random_state=0)
    expected = 0.1 * np.eye(3) + np.ones((3, 3))
    fourth = []
    for group in (0, 1):
        rows = X[groups == group]
        assert np.abs(rows.mean(axis=0)).max() < 0.02
        assert np.abs(np.cov(rows.T) - expected).max() < 0.03
        fourth.append((rows.mean(axis=1) ** 4).mean() / (rows.mean(axis=1) ** 2).mean() ** 2)
    assert fourth[0] == pytest.approx(3, abs=0.1)  # normal
    assert fourth[1] < 1.5  # two points and a little noise


def test_sizes_and_seeds():
    X, groups = make_same_moments(31, random_state=1)
    assert np.bincount(groups).tolist() == [16, 15]
    assert (make_same_moments(31, random_state=1)[0] == X).all()
    assert (make_same_moments(31, random_state=2)[0] != X).any()


def test_projected_gaussians_have_the_stated_differences():
    """With as many features as latent ones and an orthogonal-like projection the norms can be checked on
    average.
    """
    n_latent = 50
    X, groups = make_projected_gaussians(200, n_samples=60_000, n_latent=n_latent, random_state=0)
    assert X.shape == (60_000, 200)
    # E |W^T f|^2 = n_features |f|^2 for a standard normal W.
    difference = X[groups == 1].mean(axis=0) - X[groups == 0].mean(axis=0)
    assert np.linalg.norm(difference) == pytest.approx(2 * np.sqrt(200), rel=0.35)
    # Rank: rows live in the span of the projection.
    assert np.linalg.matrix_rank(X[:300]) == n_latent


def test_latent_size_must_fit_the_blocks():
    with pytest.raises(ValueError, match="multiple of 5"):
        make_projected_gaussians(n_latent=12)


def test_noise_is_the_variance_around_the_diagonal():
    X, _ = make_same_moments(20_000, noise=0.5, random_state=0)
    assert np.var(X[:, 0] - X[:, 1]) == pytest.approx(2 * 0.5, rel=0.05)
