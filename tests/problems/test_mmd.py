"""The discrepancy problem: gradients by slopes, the curvature model, the level of random groups."""

import itertools

import numpy as np
import pytest
from tests.moments.cases import SIGMA, grouped_sample, slope_error

from fairpca._validation import check_groups
from fairpca.moments._grouped_sample import GroupedSample
from fairpca.moments.fourier import FourierKernel
from fairpca.moments.kernel_means import exact_kernel, kernel_means
from fairpca.problems.mmd import DiscrepancyProblem, RandomLevels, all_pairs, pair_discrepancies, random_level


def test_curvature_is_the_hessian_where_the_groups_coincide():
    """With identical groups the difference of feature means vanishes, and with it all that Gauss-Newton
    leaves out.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    sample = GroupedSample.from_rows(np.vstack([X, X]), check_groups(np.repeat([0, 1], 60), 120))
    sample.rows[:60] += 1e-9
    basis = np.linalg.qr(rng.normal(size=(4, 2)))[0]
    features = FourierKernel(SIGMA, 2, 80, rng)
    problem = DiscrepancyProblem(sample, np.eye(4), features, all_pairs(2), features)
    assert np.abs(problem.curvature(basis).values).max() < 1e-12
    sample.rows[:60, 0] *= 1.5  # now the groups differ along one feature
    curvature = problem.curvature(basis)
    direction = rng.normal(size=basis.shape)
    flat = direction.ravel()
    modelled = flat @ (curvature.vectors * curvature.values) @ curvature.vectors.T @ flat
    derivative = np.zeros(160)
    for sign, V in ((1, basis + 1e-5 * direction), (-1, basis - 1e-5 * direction)):
        angles = sample.rows @ V @ features.frequencies
        waves = np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(80)
        derivative += sign * (waves[:60].mean(0) - waves[60:].mean(0)) / 2e-5
    assert modelled == pytest.approx(2 * derivative @ derivative, rel=1e-6)


def test_curvature_through_the_smaller_side_is_the_same():
    sample, basis = grouped_sample(100, p=8, d=3, k=2)
    for size in (5, 200):
        features = FourierKernel(SIGMA, 3, size, np.random.default_rng(0))
        problem = DiscrepancyProblem(sample, np.eye(8), exact_kernel(SIGMA), all_pairs(2), features)
        curvature = problem.curvature(basis)
        slopes = features.mean_derivatives(sample, basis)
        jacobian = (slopes[0] - slopes[1])[:, None, :] * np.tile(features.frequencies, 2)
        jacobian = jacobian.reshape(24, -1)
        model = (curvature.vectors * curvature.values) @ curvature.vectors.T
        assert np.abs(model - 2 * jacobian @ jacobian.T).max() < 1e-12 * np.abs(model).max() + 1e-15
        gradient = np.random.default_rng(1).normal(size=(8, 3))
        solved = curvature.preconditioner(30.0, 0.1)(gradient)
        assert np.abs((0.1 * np.eye(24) + 30 * model) @ solved.ravel() - gradient.ravel()).max() < 1e-9


def test_problem_gradients_by_slope():
    sample, basis = grouped_sample(300)
    covariance = np.cov(sample.rows.T)
    problem = DiscrepancyProblem(sample, covariance, exact_kernel(SIGMA), all_pairs(3))
    here = problem.evaluate(basis)
    assert here.loss == pytest.approx(-np.trace(basis.T @ covariance @ basis) / np.trace(covariance))
    weights = np.array([0.3, 2.0, 1.0])
    direction = np.random.default_rng(2).normal(size=basis.shape)
    for function, gradient in (
        (lambda V: problem.evaluate(V).loss, here.loss_gradient),
        (lambda V: weights @ problem.evaluate(V).constraints, here.constraint_gradient(weights)),
    ):
        errors = [slope_error(function, gradient, basis, direction, size) for size in (1e-2, 1e-3)]
        assert 50 < errors[0] / errors[1] < 200


def test_discrepancy_is_zero_for_equal_groups_and_two_for_distant_ones():
    X = np.arange(10.0).reshape(5, 2)
    pairs = all_pairs(2)
    twice = GroupedSample.from_rows(np.vstack([X, X]), check_groups(np.repeat([0, 1], 5), 10))
    assert pair_discrepancies(kernel_means(twice, None, SIGMA).values, pairs)[0] < 1e-15
    apart = GroupedSample.from_rows(np.array([[0.0], [1e4]]), check_groups([0, 1], 2))
    assert pair_discrepancies(kernel_means(apart, None, SIGMA).values, pairs)[0] == pytest.approx(2.0)


def test_random_level_is_the_mean_over_all_assignments():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(7, 2))
    levels = []
    for first in itertools.combinations(range(7), 3):
        codes = np.isin(np.arange(7), first).astype(int)
        sample = GroupedSample.from_rows(X, check_groups(codes, 7))
        values = kernel_means(sample, None, SIGMA).values
        levels.append((pair_discrepancies(values, all_pairs(2))[0], random_level(sample, values, all_pairs(2))[0]))
    discrepancies, expected = np.transpose(levels)
    assert np.ptp(expected) < 1e-14  # the level knows the rows and the sizes only
    assert expected[0] == pytest.approx(discrepancies.mean(), rel=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_random_level_with_weights_that_stay_with_their_rows(scale, rng):
    """Unnormalised weights, and groups whose rows weigh differently: the mean over permutations."""
    n, small = 240, 60
    X, weights = rng.normal(size=(n, 2)), rng.integers(1, 6, n).astype(float) * scale
    codes = np.repeat([0, 1], [small, n - small])
    weights[codes == 0] *= 3.0

    def discrepancy_and_level(codes):
        sample = GroupedSample.from_rows(X, check_groups(codes, n), weights)
        values = kernel_means(sample, None, 1.0).values
        return pair_discrepancies(values, all_pairs(2))[0], random_level(sample, values, all_pairs(2))[0]

    drawn = [discrepancy_and_level(rng.permutation(codes))[0] for _ in range(400)]
    assert discrepancy_and_level(codes)[1] == pytest.approx(np.mean(drawn), rel=0.06)


def test_levels_of_random_groups_as_limits():
    """The constraints are MMD^2 next to the level at the same frame, with the gradient of that ratio."""
    sample, basis = grouped_sample(200)
    pairs = all_pairs(3)
    problem = DiscrepancyProblem(
        sample, np.eye(6), exact_kernel(SIGMA), pairs, limits=RandomLevels.of(sample, pairs), tolerance=0.3
    )
    values = kernel_means(sample, basis, SIGMA).values
    ratios = pair_discrepancies(values, pairs) / random_level(sample, values, pairs)
    here = problem.evaluate(basis)
    assert here.constraints == pytest.approx(0.3 * ratios)
    direction = np.random.default_rng(1).normal(size=basis.shape)
    weights = np.array([1.0, 2.0, 3.0])
    step = 1e-5
    ahead, behind = (weights @ problem.evaluate(basis + sign * step * direction).constraints for sign in (1, -1))
    slope = np.vdot(here.constraint_gradient(weights), direction)
    assert slope == pytest.approx((ahead - behind) / (2 * step), rel=1e-6)
    # A level that its floor holds does not change.
    floored = DiscrepancyProblem(
        sample, np.eye(6), exact_kernel(SIGMA), pairs, limits=RandomLevels.of(sample, pairs, 9.0), tolerance=9.0
    )
    plain = DiscrepancyProblem(sample, np.eye(6), exact_kernel(SIGMA), pairs)
    expected = plain.evaluate(basis).constraint_gradient(weights)
    assert floored.evaluate(basis).constraint_gradient(weights) == pytest.approx(expected)


def test_limits_bring_the_pairs_to_one_scale():
    sample, basis = grouped_sample(200)
    limits = np.array([0.1, 0.2, 0.05])
    features = FourierKernel(SIGMA, 3, 50, np.random.default_rng(0))
    plain, scaled = (
        DiscrepancyProblem(sample, np.eye(6), exact_kernel(SIGMA), all_pairs(3), features, limits=given)
        for given in (None, limits)
    )
    assert scaled.tolerance == 0.2
    factors = 0.2 / limits
    assert scaled.evaluate(basis).constraints == pytest.approx(plain.evaluate(basis).constraints * factors)
    weights = np.array([1.0, 2.0, 3.0])
    expected = plain.evaluate(basis).constraint_gradient(weights * factors)
    assert scaled.evaluate(basis).constraint_gradient(weights) == pytest.approx(expected)
    # The curvature is that of the sum of the scaled constraints.
    total = [problem.curvature(basis).values.sum() for problem in (plain, scaled)]
    alone = []
    for j in range(3):
        one = DiscrepancyProblem(sample, np.eye(6), exact_kernel(SIGMA), all_pairs(3)[[j]], features)
        alone.append(one.curvature(basis).values.sum())
    assert total[0] == pytest.approx(sum(alone))
    assert total[1] == pytest.approx(np.dot(alone, factors))
