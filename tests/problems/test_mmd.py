"""Kernel means against the definition, gradients by slopes."""

import itertools

import numpy as np
import pytest

from fairpca._validation import check_groups
from fairpca.moments import GroupedSample
from fairpca.problems import mmd
from fairpca.problems.mmd import (
    DiscrepancyProblem,
    FourierKernel,
    all_pairs,
    cross_means,
    exact_kernel,
    halved_bandwidths,
    kernel_matrix,
    kernel_means,
    pair_discrepancies,
    random_level,
    squared_distance_median,
)

SIGMA = 1.7


def example(n=301, p=6, d=3, k=3, seed=0, weighted=True):
    rng = np.random.default_rng(seed)
    codes = np.r_[np.arange(k), rng.integers(0, k, n - k)]
    X = rng.normal(size=(n, p)) + 0.3 * codes[:, None]
    weights = rng.uniform(0.2, 2, n) if weighted else None
    basis = np.linalg.qr(rng.normal(size=(p, d)))[0]
    return GroupedSample.from_rows(X, check_groups(codes, n), weights), basis


def naive_means(sample, basis):
    scores = sample.rows if basis is None else sample.rows @ basis
    kernel = np.exp(-((scores[:, None] - scores[None]) ** 2).sum(-1) / (2 * SIGMA**2))
    codes = np.repeat(np.arange(len(sample.labels)), sample.counts)
    members = (codes[:, None] == np.arange(len(sample.labels))) * sample.weights[:, None]
    return members.T @ kernel @ members


@pytest.mark.parametrize("n", [7, 50, 301, 1100])
@pytest.mark.parametrize("block", [(256, 1024), (7, 11)])
def test_blocked_pass_equals_the_definition(n, block, monkeypatch):
    monkeypatch.setattr(mmd, "_BLOCK", block)
    sample, basis = example(n)
    assert np.abs(kernel_means(sample, basis, SIGMA).values - naive_means(sample, basis)).max() < 1e-14


def far_example(n, distance):
    """Two groups so far apart that squares of their scores hide the distances within each of them."""
    sample, _ = example(n, p=3, k=2)
    sample.rows[sample.starts[1] :] += distance
    return sample, np.linalg.qr(np.random.default_rng(1).normal(size=(3, 2)))[0]


@pytest.mark.parametrize("distance", [1e3, 1e5, 1e8, 1e9])
@pytest.mark.parametrize("n", [80, 900])
def test_rows_far_from_the_origin_keep_their_distances(n, distance):
    sample, _ = far_example(n, distance)
    expected, bound = naive_means(sample, None), 1e-9 + np.finfo(float).eps * distance  # the rounding of the rows
    assert np.abs(kernel_means(sample, None, SIGMA).values - expected).max() < bound
    assert np.abs(cross_means(sample, sample, SIGMA) - expected).max() < bound
    kernel = kernel_matrix(sample.rows, SIGMA)
    assert np.abs(kernel.mean(axis=1) - naive_kernel(sample.rows).mean(axis=1)).max() < bound


def naive_kernel(rows):
    return np.exp(-((rows[:, None] - rows[None]) ** 2).sum(-1) / (2 * SIGMA**2))


def test_single_precision_gives_way_where_it_would_lose_the_distances():
    sample, basis = far_example(80, 100.0)
    single = kernel_means(sample, basis, SIGMA, dtype=np.float32).values
    assert np.abs(single - kernel_means(sample, basis, SIGMA).values).max() < 1e-9


def test_gradient_slope_where_distances_come_from_differences():
    sample, basis = far_example(80, 3e3)
    # A direction that leaves the far group where it is, so that steps of any size stay near.
    direction = np.random.default_rng(5).normal(size=basis.shape)
    direction -= direction.mean(axis=0)
    coefficients = np.array([[2.0, -1.0], [-1.0, 3.0]])
    gradient = kernel_means(sample, basis, SIGMA, gradient=True).gradient(coefficients)
    function = lambda V: np.sum(coefficients * kernel_means(sample, V, SIGMA).values)  # noqa: E731
    errors = [slope_error(function, gradient, basis, direction, size) for size in (1e-2, 1e-3)]
    assert 50 < errors[0] / errors[1] < 200


def test_a_quotient_that_overflows_is_refused():
    sample, _ = far_example(20, 1e9)
    with pytest.raises(ValueError, match="bandwidth=1e-300 is too small"):
        kernel_means(sample, None, 1e-300)


def test_threads_do_not_change_the_result(monkeypatch):
    sample, basis = example(900)
    monkeypatch.setattr(mmd, "_cores", lambda: 1)
    single = kernel_means(sample, basis, SIGMA, gradient=True)
    monkeypatch.setattr(mmd, "_cores", lambda: 3)
    several = kernel_means(sample, basis, SIGMA, gradient=True)
    again = kernel_means(sample, basis, SIGMA, gradient=True)
    assert np.abs(single.values - several.values).max() < 1e-15
    assert np.abs(single.fields - several.fields).max() < 1e-14
    assert (several.fields == again.fields).all()


def test_single_precision_is_close():
    sample, basis = example(900)
    exact = kernel_means(sample, basis, SIGMA, gradient=True)
    single = kernel_means(sample, basis, SIGMA, gradient=True, dtype=np.float32)
    assert np.abs(single.values - exact.values).max() < 1e-7
    assert np.abs(single.fields - exact.fields).max() < 1e-6


def slope_error(function, gradient, basis, direction, size):
    """|f(V + tD) - f(V) - t <G, D>|: second order in t if and only if G is the gradient."""
    return abs(function(basis + size * direction) - function(basis) - size * np.vdot(gradient, direction))


@pytest.mark.parametrize("k", [2, 4])
def test_gradient_slope(k):
    sample, basis = example(400, k=k)
    rng = np.random.default_rng(5)
    coefficients = rng.normal(size=(k, k))
    coefficients += coefficients.T
    gradient = kernel_means(sample, basis, SIGMA, gradient=True).gradient(coefficients)
    direction = rng.normal(size=basis.shape)
    function = lambda V: np.sum(coefficients * kernel_means(sample, V, SIGMA).values)  # noqa: E731
    errors = [slope_error(function, gradient, basis, direction, size) for size in (1e-2, 1e-3)]
    assert 50 < errors[0] / errors[1] < 200


def test_fourier_gradient_belongs_to_the_fourier_value():
    sample, basis = example(400)
    kernel = FourierKernel(SIGMA, 3, 64, np.random.default_rng(0))
    coefficients = np.array([[2.0, -1, -1], [-1, 2, -1], [-1, -1, 2]])
    means = kernel(sample, basis, True)
    direction = np.random.default_rng(1).normal(size=basis.shape)
    function = lambda V: np.sum(coefficients * kernel(sample, V, False).values)  # noqa: E731
    gradient = means.gradient(coefficients)
    errors = [slope_error(function, gradient, basis, direction, size) for size in (1e-1, 1e-2)]
    assert 30 < errors[0] / errors[1] < 300
    assert np.abs(means.values - kernel(sample, basis, False).values).max() == 0


def test_fourier_means_converge_and_do_not_depend_on_what_is_kept(monkeypatch):
    sample, basis = example(400)
    exact = naive_means(sample, basis)
    rough = [
        np.abs(FourierKernel(SIGMA, 3, size, np.random.default_rng(2))(sample, basis, False).values - exact).max()
        for size in (100, 30_000)
    ]
    assert rough[1] < 0.005
    assert rough[1] < rough[0]
    kernel = FourierKernel(SIGMA, 3, 50, np.random.default_rng(2))
    kept = kernel(sample, basis, True)
    monkeypatch.setattr(mmd, "_KEPT_ENTRIES", 0)
    assert np.abs(kernel(sample, basis, True).fields - kept.fields).max() < 1e-12


def test_orthogonal_stratified_features_have_less_variance_than_independent_ones():
    sample, basis = example(200, d=4)
    exact = naive_means(sample, basis)[0, 1]
    rng = np.random.default_rng(0)
    orthogonal, independent = [], []
    for _ in range(150):
        kernel = FourierKernel(SIGMA, 4, 16, rng)
        orthogonal.append(kernel(sample, basis, False).values[0, 1] - exact)
        kernel.frequencies = rng.standard_normal((4, 16)) / SIGMA
        independent.append(kernel(sample, basis, False).values[0, 1] - exact)
    assert abs(np.mean(orthogonal)) < 4 * np.std(orthogonal) / np.sqrt(150)
    assert np.std(orthogonal) < 0.6 * np.std(independent)


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
    sample, basis = example(100, p=8, d=3, k=2)
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
    sample, basis = example(300)
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


class TestMedian:
    def test_sampled_pairs_are_of_different_rows(self):
        scores = np.array([[0.0], [1.0], [2.0]])  # a row with itself, a third of the pairs, would make the median 1
        assert squared_distance_median(10 * scores, np.random.default_rng(0), max_pairs=2) > 0
        medians = [squared_distance_median(scores, np.random.default_rng(seed), max_pairs=2) for seed in range(200)]
        assert min(medians) >= 1.0

    def test_all_pairs(self):
        scores = np.array([[0.0], [1.0], [3.0]])
        assert squared_distance_median(scores, np.random.default_rng(0)) == 4.0  # of 1, 4, 9

    def test_sampled_pairs_are_close(self):
        scores = np.random.default_rng(0).normal(size=(800, 3))
        exact = squared_distance_median(scores, np.random.default_rng(0))
        sampled = squared_distance_median(scores, np.random.default_rng(0), max_pairs=20_000)
        assert sampled != exact
        assert sampled == pytest.approx(exact, rel=0.03)

    def test_zero_median_takes_the_positive_distances_and_no_distance_takes_one(self):
        scores = np.r_[np.zeros(9), 2.0][:, None]
        assert squared_distance_median(scores, np.random.default_rng(0)) == 4.0
        assert squared_distance_median(np.ones((5, 2)), np.random.default_rng(0)) == 1.0

    @pytest.mark.parametrize("seed", range(6))
    def test_weights_count_like_repeated_rows(self, seed):
        rng = np.random.default_rng(seed)
        scores, repeats = rng.normal(size=(15, 2)), rng.integers(0, 4, 15)
        weighted = squared_distance_median(scores, rng, repeats.astype(float))
        assert weighted == pytest.approx(squared_distance_median(np.repeat(scores, repeats, axis=0), rng))
        many = squared_distance_median(scores, rng, repeats.astype(float), max_pairs=60)
        assert 0 < many < 16


SCALES = halved_bandwidths(SIGMA)


def mean_over_scales(function, widths=SCALES):
    return sum(function(width) for width in widths) / len(widths)


@pytest.mark.parametrize("widths", [SCALES, (SIGMA, 0.5 * SIGMA), (3.0, 2.0, 0.7)])  # halves, and any others
@pytest.mark.parametrize("n", [50, 900])
def test_several_bandwidths_give_the_mean_of_their_kernels(n, widths):
    sample, basis = example(n)
    expected = mean_over_scales(lambda width: kernel_means(sample, basis, width).values, widths)
    for gradient in (False, True):
        values = kernel_means(sample, basis, widths, gradient=gradient).values
        assert np.abs(values - expected).max() < 1e-14
    scores = sample.rows @ basis
    part = GroupedSample(sample.labels, scores, sample.starts, sample.weights)
    assert np.abs(cross_means(part, part, widths) - expected).max() < 1e-14
    by_hand = mean_over_scales(lambda width: kernel_matrix(scores, width), widths)
    assert np.abs(kernel_matrix(scores, widths) - by_hand).max() < 1e-14


def test_gradient_of_several_scales_is_the_mean_of_theirs():
    sample, basis = example(900, k=4)
    coefficients = np.ones((4, 4)) - 3.0 * np.eye(4)
    expected = mean_over_scales(lambda width: kernel_means(sample, basis, width, gradient=True).gradient(coefficients))
    found = kernel_means(sample, basis, SCALES, gradient=True).gradient(coefficients)
    assert np.abs(found - expected).max() < 1e-13
    single = kernel_means(sample, basis, SCALES, gradient=True, dtype=np.float32).gradient(coefficients)
    assert np.abs(single - expected).max() < 1e-4


@pytest.mark.parametrize("d", [2, 3, 10])
def test_gradient_slope_at_several_scales(d):
    sample, basis = example(400, p=12, d=d)
    rng = np.random.default_rng(5)
    coefficients = rng.normal(size=(3, 3))
    coefficients += coefficients.T
    gradient = kernel_means(sample, basis, SCALES, gradient=True).gradient(coefficients)
    direction = rng.normal(size=basis.shape)
    function = lambda V: np.sum(coefficients * kernel_means(sample, V, SCALES).values)  # noqa: E731
    errors = [slope_error(function, gradient, basis, direction, size) for size in (1e-3, 1e-4)]
    assert 50 < errors[0] / errors[1] < 200


def test_far_rows_at_several_scales():
    sample, basis = far_example(80, 3e3)
    expected = mean_over_scales(lambda width: kernel_means(sample, basis, width, gradient=True).fields / width)
    found = kernel_means(sample, basis, SCALES, gradient=True)
    assert np.abs(found.fields * found.scale - expected).max() < 1e-9
    values = mean_over_scales(lambda width: kernel_means(sample, basis, width).values)
    assert np.abs(found.values - values).max() < 1e-9


def test_fourier_features_of_several_scales():
    sample, basis = example(400)
    exact = kernel_means(sample, basis, SCALES, gradient=True)
    kernel = FourierKernel(SCALES, 3, 40_001, np.random.default_rng(2))
    found = kernel(sample, basis, True)
    assert np.abs(found.values - exact.values).max() < 0.005
    coefficients = np.ones((3, 3)) - 3.0 * np.eye(3)
    expected = exact.gradient(coefficients)
    assert np.linalg.norm(found.gradient(coefficients) - expected) < 0.1 * np.linalg.norm(expected)
    small = FourierKernel(SCALES, 3, 30, np.random.default_rng(0))
    gradient = small(sample, basis, True).gradient(coefficients)
    direction = np.random.default_rng(1).normal(size=basis.shape)
    function = lambda V: np.sum(coefficients * small(sample, V, False).values)  # noqa: E731
    errors = [slope_error(function, gradient, basis, direction, size) for size in (1e-2, 1e-3)]
    assert 30 < errors[0] / errors[1] < 300


def test_limits_bring_the_pairs_to_one_scale():
    sample, basis = example(200)
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
