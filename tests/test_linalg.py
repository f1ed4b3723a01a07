"""Eigenpairs, bounds, signs and paths between subspaces."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca.linalg import (
    Geodesic,
    block_sum_bound,
    canonical_basis,
    eigenvalue_sum_bound,
    extend_basis,
    fix_signs,
    orthonormalise,
    top_eigenpairs,
)


def symmetric(rng, size):
    matrix = rng.normal(size=(size, size))
    return matrix + matrix.T


@pytest.mark.parametrize(("size", "count"), [(5, 5), (30, 2), (30, 20), (700, 4)])
def test_top_eigenpairs(rng, size, count):
    matrix = symmetric(rng, size)
    values, vectors = top_eigenpairs(matrix, count)
    assert np.allclose(values, np.linalg.eigvalsh(matrix)[::-1][:count])
    assert np.allclose(matrix @ vectors, vectors * values, atol=1e-7)
    assert np.allclose(vectors.T @ vectors, np.eye(count), atol=1e-10)


def test_warm_start_finds_the_same(rng):
    matrix = symmetric(rng, 700)
    _, vectors = top_eigenpairs(matrix, 3)
    shifted = matrix + 1e-3 * symmetric(rng, 700)
    again, _ = top_eigenpairs(shifted, 3, start=vectors)
    assert np.allclose(again, np.linalg.eigvalsh(shifted)[::-1][:3])


@pytest.mark.parametrize("tie", [False, True])
def test_bound_holds_and_is_tight_at_the_leading_subspace(rng, tie):
    basis = orthonormalise(rng.normal(size=(40, 40)))
    values = np.sort(rng.random(40))[::-1]
    if tie:
        values[4] = values[3]
    matrix = (basis * values) @ basis.T
    bound = eigenvalue_sum_bound(matrix, basis[:, :4])
    assert 0 <= bound - values[:4].sum() < 1e-12


@pytest.mark.parametrize("slack", [1e-3, 0.3, 5.0])
def test_block_bound_holds_for_any_slack(rng, slack):
    matrix, basis = symmetric(rng, 12), orthonormalise(rng.normal(size=(12, 12)))
    turned = basis.T @ matrix @ basis
    inner, residual, outer = turned[:5, :5], turned[5:, :5], turned[5:, 5:]
    outside = np.linalg.eigvalsh(outer)[-1]
    for count in (1, 3, 5):
        assert block_sum_bound(inner, residual, outside, slack, count) >= np.linalg.eigvalsh(matrix)[-count:].sum()


def test_bound_is_infinite_if_an_eigenvector_was_missed(rng):
    basis = orthonormalise(rng.normal(size=(40, 40)))
    values = np.linspace(2.0, 1.0, 40)
    matrix = (basis * values) @ basis.T
    assert eigenvalue_sum_bound(matrix, basis[:, [0, 1, 2, 4]]) == np.inf


def test_bound_covers_an_inaccurate_basis(rng):
    matrix = np.diag(np.linspace(3.0, -1.0, 30))
    exact = np.linspace(3.0, -1.0, 30)[:3].sum()
    for noise in (1e-9, 1e-6, 1e-4):
        basis = orthonormalise(np.eye(30)[:, :3] + noise * rng.normal(size=(30, 3)))
        assert exact <= eigenvalue_sum_bound(matrix, basis) < exact + 200 * noise


def test_extend_basis_adds_only_what_is_new(rng):
    basis = orthonormalise(rng.normal(size=(10, 3)))
    wider = extend_basis(basis, np.column_stack([basis @ rng.normal(size=(3, 2)), rng.normal(size=(10, 1))]))
    assert wider.shape == (10, 4)
    assert np.allclose(wider.T @ wider, np.eye(4), atol=1e-13)
    assert np.array_equal(wider[:, :3], basis)


def test_sign_rule(rng):
    basis = orthonormalise(rng.normal(size=(6, 3)))
    flipped = basis * [1, -1, -1]
    assert np.array_equal(fix_signs(basis), fix_signs(flipped))
    assert (fix_signs(basis).max(axis=0) >= -fix_signs(basis).min(axis=0)).all()


def test_canonical_basis_does_not_depend_on_the_given_one(rng):
    covariance = np.cov(rng.normal(size=(50, 6)).T)
    basis = orthonormalise(rng.normal(size=(6, 3)))
    rotated = basis @ orthonormalise(rng.normal(size=(3, 3)))
    first, second = canonical_basis(basis, covariance), canonical_basis(rotated, covariance)
    assert np.allclose(first, second, atol=1e-12)
    inner = first.T @ covariance @ first
    assert np.allclose(inner, np.diag(np.diag(inner)), atol=1e-13)
    assert (np.diff(np.diag(inner)) <= 0).all()


def test_geodesic_ends_and_shared_directions(rng):
    frame = orthonormalise(rng.normal(size=(8, 8)))
    first, last = frame[:, [0, 1, 2]], frame[:, [0, 3, 4]]
    path = Geodesic(first, last)
    for t, end in ((0.0, first), (1.0, last)):
        basis = path.basis(t)
        assert np.allclose(basis @ basis.T, end @ end.T, atol=1e-12)
    middle = path.basis(0.4)
    assert np.allclose(middle @ (middle.T @ frame[:, 0]), frame[:, 0])  # the shared direction stays
    assert np.allclose(middle.T @ frame[:, 5:], 0, atol=1e-12)  # nothing outside their span enters
    matrices = np.stack([symmetric(rng, 8), symmetric(rng, 8)])
    captured = path.captured(matrices)(0.4)
    assert np.allclose(captured, np.einsum("pi,apq,qi->a", middle, matrices, middle))
