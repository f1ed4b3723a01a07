"""Loadings, and their rotation: easier to name, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca import AnchorPCA, FairPCA, LeacePCA, ParityPCA
from fairpca.estimators.rotation import varimax


def criterion(loadings):
    return (loadings**2).var(axis=0).sum()


def reference_varimax(loadings):
    """Kaiser's own way: planar rotations of two columns at a time, each by the best angle."""
    rotated, p = loadings.copy(), len(loadings)
    for _ in range(500):
        before = rotated.copy()
        for i in range(rotated.shape[1]):
            for j in range(i):
                x, y = rotated[:, i], rotated[:, j]
                u, v = x**2 - y**2, 2 * x * y
                angle = np.arctan2(
                    2 * (u @ v - u.sum() * v.sum() / p), u @ u - v @ v - (u.sum() ** 2 - v.sum() ** 2) / p
                )
                c, s = np.cos(angle / 4), np.sin(angle / 4)
                rotated[:, i], rotated[:, j] = c * x + s * y, c * y - s * x
        if abs(rotated - before).max() < 1e-14:
            break
    return rotated


@pytest.mark.parametrize("seed", range(10))
def test_varimax_equals_a_short_reference(seed):
    rng = np.random.default_rng(seed)
    p, d = int(rng.integers(6, 40)), int(rng.integers(2, 6))
    simple = rng.normal(size=(p, d)) * (rng.random((p, d)) < 0.35) + 0.05 * rng.normal(size=(p, d))
    loadings = simple @ np.linalg.qr(rng.normal(size=(d, d)))[0]
    rotation = varimax(loadings)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(d), atol=1e-12)
    ours, reference = loadings @ rotation, reference_varimax(loadings)
    assert np.isclose(criterion(ours), criterion(reference), rtol=1e-9)
    matched = abs(ours.T @ reference) / np.outer(np.linalg.norm(ours, axis=0), np.linalg.norm(reference, axis=0))
    np.testing.assert_allclose(np.sort(matched.max(axis=0)), 1.0, atol=1e-6)


@pytest.mark.parametrize("estimator", [FairPCA(3), ParityPCA(3), AnchorPCA(3), LeacePCA(3), FairPCA(3, nested=True)])
def test_the_rotation_changes_neither_subspace_nor_reconstructions(estimator, two_groups):
    X, groups = two_groups
    estimator.fit(X, sensitive_features=groups)
    before = {
        name: np.copy(value) for name, value in vars(estimator).items() if name.startswith(("group_", "obj", "low"))
    }
    np.testing.assert_allclose((estimator.loadings_**2).sum(axis=0), estimator.explained_variance_)
    rotated = estimator.rotated("varimax")
    scores = rotated.transform(X)
    restored = estimator.inverse_transform(estimator.transform(X))
    np.testing.assert_allclose(estimator.mean_ + scores @ rotated.loadings_.T, restored, atol=1e-10)
    projector = estimator.components_.T @ estimator.components_
    np.testing.assert_allclose(projector @ rotated.loadings_, rotated.loadings_, atol=1e-12)
    np.testing.assert_allclose(rotated.loadings_, estimator.loadings_ @ rotated.rotation, atol=1e-12)
    assert (np.diff((rotated.loadings_**2).sum(axis=0)) <= 0).all()
    assert criterion(rotated.loadings_) >= criterion(estimator.loadings_)
    if not getattr(estimator, "nested", False):
        np.testing.assert_allclose(np.cov(scores.T), np.eye(3), atol=1e-8)
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(estimator, name), value)


def test_names_and_errors(two_groups):
    pandas = pytest.importorskip("pandas")
    X, groups = two_groups
    table = pandas.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    pca = FairPCA(2).fit(table, sensitive_features=groups)
    frame = pca.rotated().to_frame()
    assert list(frame.index) == list(table.columns)
    np.testing.assert_array_equal(frame.to_numpy(), pca.rotated().loadings_)
    with pytest.raises(ValueError, match="method='oblimin' is unknown; choose one of 'varimax'"):
        pca.rotated("oblimin")
