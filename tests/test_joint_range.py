"""The oracle: support, gradient and curvature of the sum of leading eigenvalues."""

from __future__ import annotations

import numpy as np

from fairpca.joint_range import JointRange


def random_range(rng, k=3, size=8, dimension=3):
    matrices = rng.normal(size=(k, size, size))
    return JointRange(matrices @ matrices.transpose(0, 2, 1), dimension)


def test_support_is_the_maximum_over_subspaces(rng):
    joint = random_range(rng)
    weights = np.array([0.5, -0.3, 1.0])  # signs matter
    point = joint.point(weights)
    assert np.isclose(point.support, np.linalg.eigvalsh(joint.combine(weights))[-3:].sum())
    assert np.isclose(point.support, weights @ point.captured)
    for _ in range(50):
        basis = np.linalg.qr(rng.normal(size=(8, 3)))[0]
        assert weights @ joint.captured(basis) <= point.support


def test_gradient_and_curvature_by_differences(rng):
    joint = random_range(rng)
    weights = rng.random(3)
    point = joint.point(weights, second_order=True)
    step = 1e-5
    for a in range(3):
        ahead = joint.point(weights + step * np.eye(3)[a])
        behind = joint.point(weights - step * np.eye(3)[a])
        assert np.isclose((ahead.support - behind.support) / (2 * step), point.captured[a], rtol=1e-7)
        assert np.allclose((ahead.captured - behind.captured) / (2 * step), point.curvature[a], rtol=1e-5)


def test_restriction_lies_inside(rng):
    joint = random_range(rng)
    span = np.linalg.qr(rng.normal(size=(8, 5)))[0]
    inner = joint.restrict(span)
    weights = rng.random(3)
    assert inner.point(weights).support <= joint.point(weights).support
    basis = inner.point(weights).basis
    assert np.allclose(inner.captured(basis), joint.captured(span @ basis))


def test_calls_are_counted(rng):
    joint = random_range(rng)
    joint.point(np.ones(3))
    joint.spectrum(np.ones(3))
    assert joint.calls == 2
