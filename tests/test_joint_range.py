"""The oracle: support, gradient and curvature of the sum of leading eigenvalues."""

from __future__ import annotations

import numpy as np

from fairpca.joint_range import Incumbent, JointRange, Minimax
from fairpca.protocols import Status


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


def test_gradient_by_differences(rng):
    joint = random_range(rng)
    weights, step = rng.random(3), 1e-5
    for a, captured in enumerate(joint.point(weights).captured):
        ahead, behind = joint.point(weights + step * np.eye(3)[a]), joint.point(weights - step * np.eye(3)[a])
        assert np.isclose((ahead.support - behind.support) / (2 * step), captured, rtol=1e-7)


def test_restriction_is_contained_in_the_joint_range(rng):
    joint = random_range(rng)
    span = np.linalg.qr(rng.normal(size=(8, 5)))[0]
    inner = joint.within(span.T @ joint.matrices @ span)
    weights = rng.random(3)
    assert inner.point(weights).support <= joint.point(weights).support
    basis = inner.point(weights).basis
    assert np.allclose(inner.captured(basis), joint.captured(span @ basis))


def test_calls_are_counted(rng):
    joint = random_range(rng)
    joint.point(np.ones(3))
    joint.spectrum(np.ones(3))
    assert joint.calls == 2


def test_vertices_capture_each_matrix_best(rng):
    joint = random_range(rng)
    best = [np.linalg.eigvalsh(matrix)[-3:].sum() for matrix in joint.matrices]
    assert np.allclose([joint.vertex(a).captured[a] for a in range(joint.n_matrices)], best)
    assert np.allclose(joint.best, best)
    assert np.allclose(joint.traces, np.trace(joint.matrices, axis1=1, axis2=2))


def test_vertices_are_found_once(rng):
    joint = random_range(rng)
    assert joint.vertex(0) is joint.vertex(0)
    assert joint.calls == 1


def test_support_is_that_of_the_point(rng):
    joint, weights = random_range(rng), rng.dirichlet(np.ones(3))
    for whole in (False, True):
        assert np.isclose(joint.support(weights), joint.point(weights, whole=whole).support, rtol=1e-13)


def test_incumbent_keeps_the_best_and_stops_when_the_gap_closes(rng):
    joint = random_range(rng)
    problem = Minimax(joint.traces)
    found = Incumbent(problem, joint)
    values, bounds = [], []
    for number in found.steps(tol=-np.inf, max_iter=7):
        assert number == found.n_iter
        point = joint.point(rng.dirichlet(np.ones(3)))
        values.append(problem.value(point.captured))
        bounds.append(problem.bound(point.weights, point.support))
        better = found.try_point(point)
        assert better == (values[-1] == min(values) or bounds[-1] == max(bounds))
    assert found.n_iter == 7
    result = found.result(0.0, Status.MAX_ITER)
    assert (result.objective, result.lower_bound) == (min(values), max(bounds))
    assert np.isclose(problem.value(joint.captured(result.basis)), min(values))
    assert np.isclose(problem.bound(result.weights, joint.point(result.weights).support), max(bounds))
    assert result.status is Status.MAX_ITER
    assert list(found.steps(tol=found.gap, max_iter=100)) == []  # the gap is closed
    assert found.result(found.gap, Status.MAX_ITER).status is Status.OPTIMAL


def test_products_with_all_matrices_at_once(rng):
    factors = rng.normal(size=(3, 6, 6))
    joint = JointRange(factors @ factors.transpose(0, 2, 1), 2)
    left, right = rng.normal(size=(6, 2)), rng.normal(size=(6, 4))
    assert np.allclose(joint.images(left), joint.matrices @ left)
    assert np.allclose(joint.forms(left, right), left.T @ joint.matrices @ right)
    assert np.allclose(joint.captured(left), np.trace(left.T @ joint.matrices @ left, axis1=1, axis2=2))
