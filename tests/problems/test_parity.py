"""The quantities of moment parity against their definitions, gradients by slope tests, bounds by random frames."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import null_space as scipy_null_space

from fairpca.moments import group_moments
from fairpca.problems.parity import (
    MomentParity,
    covariance_bound,
    covariance_gaps,
    mean_gaps,
    mean_parity_basis,
    mean_penalty,
    null_space,
    pair_differences,
    parity_problem,
)


def frame(rng, p, d):
    return np.linalg.qr(rng.normal(size=(p, d)))[0]


@pytest.fixture
def three_groups(rng):
    groups = np.repeat(["a", "b", "c"], [60, 40, 50])
    X = rng.normal(size=(150, 6)) * np.linspace(2.0, 0.5, 6)
    X[groups == "b"] = 1.5 * X[groups == "b"][:, ::-1] + np.linspace(0.0, 1.0, 6)
    X[groups == "c"] += np.array([1.0, 0.0, -1.0, 0.0, 0.5, 0.0])
    return X, groups


def brute_force(X, groups, basis, penalty):
    """The definition, from the rows."""
    scores = X @ basis
    parts = [scores[groups == label] for label in np.unique(groups)]
    means = [part.mean(axis=0) for part in parts]
    covariances = [np.atleast_2d(np.cov(part.T, bias=True)) for part in parts]
    pairs = [(a, b) for a in range(len(parts)) for b in range(a + 1, len(parts))]
    mean = max(np.linalg.norm(means[a] - means[b]) for a, b in pairs)
    covariance = max(np.linalg.norm(covariances[a] - covariances[b], 2) for a, b in pairs)
    return mean, covariance, penalty * covariance - scores.var(axis=0).sum()


def test_gaps_and_value_are_those_of_the_projected_rows(three_groups, rng):
    X, groups = three_groups
    moments = group_moments(X, sensitive_features=groups)
    problem, _ = parity_problem(moments, 2, penalty=0.7, tolerance=0.5)
    basis = frame(rng, 6, 2)
    mean, covariance, value = brute_force(X, groups, basis, 0.7)
    assert mean_gaps(moments, basis).max() == pytest.approx(mean, rel=1e-12)
    assert covariance_gaps(moments, basis).max() == pytest.approx(covariance, rel=1e-12)
    assert problem.value(basis) == pytest.approx(value, rel=1e-12)
    assert problem.spread(basis) == pytest.approx(covariance, rel=1e-12)


def test_largest_difference_belongs_to_the_worst_pair(three_groups, rng):
    X, groups = three_groups
    moments = group_moments(X, sensitive_features=groups)
    problem, _ = parity_problem(moments, 2, penalty=1.0, tolerance=0.5)
    for _ in range(20):
        basis = frame(rng, 6, 2)
        projected = basis.T @ problem.largest_difference(basis) @ basis
        assert np.linalg.norm(projected, 2) == pytest.approx(covariance_gaps(moments, basis).max(), rel=1e-12)
    assert np.allclose(problem.differences(), pair_differences(moments.second_moments("group")))


def slope_error(function, basis, gradient, direction, step):
    ahead, behind = function(basis + step * direction), function(basis - step * direction)
    return abs((ahead - behind) / (2 * step) - np.vdot(gradient, direction))


def test_gradient_of_the_smoothed_value(three_groups, rng):
    problem, _ = parity_problem(
        group_moments(three_groups[0], sensitive_features=three_groups[1]), 3, penalty=0.7, tolerance=0.5
    )
    basis, direction = frame(rng, 6, 3), rng.normal(size=(6, 3))
    for temperature in (1.0, 0.1):
        gradient = problem.smoothed(basis, temperature)[1]
        errors = [
            slope_error(lambda V, T=temperature: problem.smoothed(V, T)[0], basis, gradient, direction, step)
            for step in (1e-2, 1e-3)
        ]
        assert errors[1] < 0.02 * errors[0] + 1e-8  # of second order in the step


def test_gradient_of_the_limits(three_groups, rng):
    problem, _ = parity_problem(
        group_moments(three_groups[0], sensitive_features=three_groups[1]), 3, penalty=0.0, tolerance=0.5
    )
    basis, direction, weights = frame(rng, 6, 3), rng.normal(size=(6, 3)), rng.random(3)
    gradient = problem.limits_gradient(basis, weights)
    error = slope_error(lambda V: weights @ problem.limits(V), basis, gradient, direction, 1e-3)
    assert error < 1e-9  # the limits are quadratic


def test_smoothing_error(three_groups, rng):
    problem, _ = parity_problem(
        group_moments(three_groups[0], sensitive_features=three_groups[1]), 3, penalty=0.7, tolerance=0.5
    )
    basis = frame(rng, 6, 3)
    for temperature in (1.0, 0.01):
        excess = problem.smoothed(basis, temperature)[0] - problem.value(basis)
        assert 0 <= excess <= temperature * problem.smoothing_error(basis)


def test_limits_change_sign_at_the_tolerance(three_groups, rng):
    X, groups = three_groups
    moments = group_moments(X, sensitive_features=groups)
    basis = frame(rng, 6, 2)
    gaps = mean_gaps(moments, basis)
    for factor, sign in ((1.001, -1), (0.999, 1)):
        problem, _ = parity_problem(moments, 2, penalty=0.0, tolerance=factor * gaps[1])
        assert np.sign(problem.limits(basis)[1]) == sign


def test_restricting_and_rescaling_change_coordinates_only(three_groups, rng):
    problem, _ = parity_problem(
        group_moments(three_groups[0], sensitive_features=three_groups[1]), 2, penalty=0.7, tolerance=0.5
    )
    columns, inner = frame(rng, 6, 4), frame(rng, 4, 2)
    restricted = problem.restrict(columns)
    assert restricted.value(inner) == pytest.approx(problem.value(columns @ inner), rel=1e-12)
    assert np.allclose(
        restricted.limits(inner) * restricted.limit_unit, problem.limits(columns @ inner) * problem.limit_unit
    )
    scaled = problem.rescale(9.0)
    basis = frame(rng, 6, 2)
    assert 9 * scaled.value(basis) == pytest.approx(problem.value(basis), rel=1e-12)
    assert np.allclose(scaled.limits(basis), problem.limits(basis))


def test_tolerance_zero_is_stated_in_the_null_space(three_groups):
    X, groups = three_groups
    moments = group_moments(X, sensitive_features=groups)
    problem, columns = parity_problem(moments, 2, penalty=1.0, tolerance=0.0)
    assert columns.shape == (6, 4)
    assert len(problem.directions) == 0
    assert mean_gaps(moments, columns).max() < 1e-14


def test_mean_parity_basis_is_pca_in_the_null_space(three_groups):
    X, groups = three_groups
    moments = group_moments(X, sensitive_features=groups)
    columns = scipy_null_space(pair_differences(moments.means))
    values = np.linalg.eigvalsh(np.cov((X @ columns).T, bias=True))[::-1]
    for dimension in (1, 2, 4):
        basis = mean_parity_basis(moments, dimension)
        assert np.allclose(basis.T @ basis, np.eye(dimension), atol=1e-14)
        assert mean_gaps(moments, basis).max() < 1e-14
        assert (X @ basis).var(axis=0).sum() == pytest.approx(values[:dimension].sum(), rel=1e-12)
    with pytest.raises(ValueError, match="only 4 directions of the 6 feature"):
        mean_parity_basis(moments, 5)
    with pytest.raises(ValueError, match="only 4 directions"):
        null_space(moments, 5)


def test_mean_penalty_is_the_penalised_problem(three_groups, rng):
    moments = group_moments(three_groups[0], sensitive_features=three_groups[1])
    covariance, directions = moments.pooled_covariance(), pair_differences(moments.means)
    matrices, minimax = mean_penalty(covariance, directions, 0.4, 3.0)
    for _ in range(10):
        basis = frame(rng, 6, 2)
        captured = np.einsum("pi,api->a", basis, matrices @ basis)
        excess = max(0.0, (mean_gaps(moments, basis) ** 2).max() - 0.4**2)
        expected = -np.trace(basis.T @ covariance @ basis) + 3.0 * excess
        assert minimax.value(captured) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("dimension", [1, 3])
def test_covariance_bound_never_exceeds_the_value(three_groups, rng, dimension):
    X, groups = three_groups
    moments = group_moments(X[groups != "c"], sensitive_features=groups[groups != "c"])
    covariances = moments.second_moments("group")
    problem = MomentParity(moments.pooled_covariance(), covariances, np.zeros((0, 6)), penalty=0.7, tolerance=0.0)
    matrices, minimax = covariance_bound(problem.covariance, problem.differences(), 0.7, dimension)
    for _ in range(20):
        basis = frame(rng, 6, dimension)
        bound = minimax.value(np.einsum("pi,api->a", basis, matrices @ basis))
        assert bound <= problem.value(basis) + 1e-12
        if dimension == 1:
            assert bound == pytest.approx(problem.value(basis), rel=1e-12)
