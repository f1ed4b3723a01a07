"""Least-squares erasure against its published formula, and against a search over all affine maps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from fairpca.moments import attribute_moments, group_moments
from fairpca.problems.erasure import least_squares_erasure
from fairpca.problems.evaluation import Evaluation, captured_variances


@pytest.fixture
def three_groups(rng):
    groups = np.repeat(["a", "b", "c"], [60, 40, 50])
    X = rng.normal(size=(150, 6)) @ rng.normal(size=(6, 6)) + 3.0
    X[groups == "b"] += np.linspace(0.0, 1.0, 6)
    X[groups == "c"] += np.array([1.0, 0.0, -1.0, 0.0, 0.5, 0.0])
    return X, groups


def matrix_of(erasure):
    return np.eye(len(erasure.directions)) - erasure.directions @ erasure.coefficients.T


def published(X, Z):
    """The formula of Belrose et al. (2023), Theorem 4.2, from the rows: I - W^+ P W."""
    centred, Z = X - X.mean(axis=0), Z - Z.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(X))
    kept = values > 1e-10 * values[-1]
    whiten = (vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T
    colour = (vectors[:, kept] * np.sqrt(values[kept])) @ vectors[:, kept].T
    span, sizes, _ = np.linalg.svd(whiten @ (centred.T @ Z / len(X)), full_matrices=False)
    span = span[:, sizes > 1e-10]
    return np.eye(X.shape[1]) - colour @ span @ span.T @ whiten


def indicators(groups):
    return (groups[:, None] == np.unique(groups)).astype(float)


def test_the_published_formula(three_groups):
    X, groups = three_groups
    erasure = least_squares_erasure(group_moments(X, sensitive_features=groups))
    assert erasure.directions.shape == (6, 2)
    np.testing.assert_allclose(matrix_of(erasure), published(X, indicators(groups)), atol=1e-11)
    np.testing.assert_allclose(erasure.coefficients.T @ erasure.directions, np.eye(2), atol=1e-11)


def test_continuous_columns_are_columns_of_z(three_groups, rng):
    X, groups = three_groups
    age = X @ rng.normal(size=6) + rng.normal(size=150)
    erasure = least_squares_erasure(attribute_moments(X, sensitive_features=groups, continuous=age))
    expected = published(X, np.column_stack([indicators(groups), age]))
    np.testing.assert_allclose(matrix_of(erasure), expected, atol=1e-10)


def test_columns_that_do_not_vary_on_their_own(three_groups, rng):
    X, groups = three_groups
    X = np.column_stack([X, X[:, 0] + X[:, 1], np.full(150, 7.0), X @ rng.normal(size=6)])
    erasure = least_squares_erasure(group_moments(X, sensitive_features=groups))
    np.testing.assert_allclose(matrix_of(erasure), published(X, indicators(groups)), atol=1e-10)


@pytest.mark.parametrize("offset", [1e3, 1e9, 1e12])
def test_a_constant_column_far_away_changes_nothing(three_groups, offset):
    """Its rounding errors are not variance, whatever their size compared with the other features."""
    X, groups = three_groups
    weights = np.linspace(0.1, 1.9, 150)
    plain = least_squares_erasure(group_moments(X, sensitive_features=groups, sample_weight=weights))
    X = np.column_stack([X, np.full(150, offset * np.pi)])
    erasure = least_squares_erasure(group_moments(X, sensitive_features=groups, sample_weight=weights))
    assert (erasure.coefficients[-1] == 0).all()
    np.testing.assert_allclose(matrix_of(erasure)[:6, :6], matrix_of(plain), atol=1e-9)


def test_units_of_the_features_do_not_matter(three_groups):
    X, groups = three_groups
    units = 10.0 ** np.array([4, -4, 0, 2, -2, 1])
    plain, scaled = (
        matrix_of(least_squares_erasure(group_moments(rows, sensitive_features=groups))) for rows in (X, X * units)
    )
    np.testing.assert_allclose(scaled / units[:, None] * units, plain, atol=1e-9)


def test_no_affine_map_without_correlation_is_closer(rng):
    """Two features and two groups: a search over all 2 x 2 matrices and offsets, with a growing penalty."""
    groups = np.repeat([0, 1], [7, 5])
    X = rng.normal(size=(12, 2)) @ np.array([[2.0, 0.7], [0.0, 0.5]]) + groups[:, None] * [1.0, -0.4]
    z = groups - groups.mean()

    def parts(parameters):
        mapped = X @ parameters[:4].reshape(2, 2).T + parameters[4:]
        return np.square(mapped - X).sum(axis=1).mean(), mapped.T @ z / len(X)

    best = np.append(np.eye(2).ravel(), [0.0, 0.0])
    constraint = {"type": "eq", "fun": lambda parameters: parts(parameters)[1]}
    found = [
        minimize(lambda p: parts(p)[0], best + rng.normal(size=6), constraints=constraint, method="SLSQP", tol=1e-14)
        for _ in range(5)
    ]
    least = min(one.fun for one in found if one.success)
    matrix = matrix_of(least_squares_erasure(group_moments(X, sensitive_features=groups)))
    offset = X.mean(axis=0) - matrix @ X.mean(axis=0)
    distance, correlation = parts(np.append(matrix.ravel(), offset))
    assert np.abs(correlation).max() < 1e-14
    assert distance == pytest.approx(least, rel=1e-9)


def test_covariance_of_the_erased_rows(three_groups, rng):
    X, groups = three_groups
    moments = group_moments(X, sensitive_features=groups)
    erasure = least_squares_erasure(moments)
    erased = X @ matrix_of(erasure).T
    np.testing.assert_allclose(erasure.covariance(moments.pooled_covariance()), np.cov(erased.T, bias=True), atol=1e-10)
    vectors = rng.normal(size=(6, 2))
    np.testing.assert_allclose(erasure.transpose(vectors), matrix_of(erasure).T @ vectors, atol=1e-11)


def test_nothing_is_erased_where_means_are_equal(rng):
    X = rng.normal(size=(40, 3))
    moments = group_moments(np.vstack([X, X]), sensitive_features=np.repeat([0, 1], 40))
    assert least_squares_erasure(moments).directions.shape == (3, 0)
    np.testing.assert_array_equal(matrix_of(least_squares_erasure(moments)), np.eye(3))


@pytest.mark.parametrize("oblique", [True, False])
def test_errors_of_linear_reconstructions(three_groups, rng, oblique):
    X, groups = three_groups
    moments = group_moments(X, sensitive_features=groups)
    basis = np.linalg.qr(rng.normal(size=(6, 2)))[0]
    encoder = rng.normal(size=(6, 2)) if oblique else None
    centred = X - X.mean(axis=0)
    left = centred - centred @ (basis if encoder is None else encoder) @ basis.T
    errors = [np.square(left[groups == label]).sum(axis=1).mean() for label in "abc"]
    matrices = moments.second_moments()
    np.testing.assert_allclose(Evaluation(matrices, basis, encoder).errors, errors, rtol=1e-11)
    captured = captured_variances(matrices, basis, encoder)
    np.testing.assert_allclose(moments.traces() - captured, errors, rtol=1e-11)
