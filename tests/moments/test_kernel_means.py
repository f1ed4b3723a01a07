"""Kernel means against the definition, gradients by slopes."""

import numpy as np
import pytest
from tests.moments.cases import SIGMA, grouped_sample, naive_means, slope_error

from fairpca.moments import kernel_means as module
from fairpca.moments.bandwidths import halved_bandwidths
from fairpca.moments.kernel_means import kernel_matrix, kernel_means

SCALES = halved_bandwidths(SIGMA)


@pytest.mark.parametrize("n", [7, 50, 301, 1100])
@pytest.mark.parametrize("block", [(256, 1024), (7, 11)])
def test_blocked_pass_equals_the_definition(n, block, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", block)
    monkeypatch.setattr(module, "_THREADED_BLOCK", block)
    sample, basis = grouped_sample(n)
    assert np.abs(kernel_means(sample, basis, SIGMA).values - naive_means(sample, basis)).max() < 1e-14


def far_example(n, distance):
    """Two groups so far apart that squares of their scores hide the distances within each of them."""
    sample, _ = grouped_sample(n, p=3, k=2)
    sample.rows[sample.starts[1] :] += distance
    return sample, np.linalg.qr(np.random.default_rng(1).normal(size=(3, 2)))[0]


@pytest.mark.parametrize("distance", [1e3, 1e5, 1e8, 1e9])
@pytest.mark.parametrize("n", [80, 900])
def test_rows_far_from_the_origin_keep_their_distances(n, distance):
    sample, _ = far_example(n, distance)
    expected, bound = naive_means(sample, None), 1e-9 + np.finfo(float).eps * distance  # the rounding of the rows
    assert np.abs(kernel_means(sample, None, SIGMA).values - expected).max() < bound
    kernel = kernel_matrix(sample.rows, SIGMA)
    assert np.abs(kernel.mean(axis=1) - naive_kernel(sample.rows).mean(axis=1)).max() < bound


def naive_kernel(rows):
    return np.exp(-((rows[:, None] - rows[None]) ** 2).sum(-1) / (2 * SIGMA**2))


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
    sample, basis = grouped_sample(900)
    monkeypatch.setattr(module, "blas_threads", lambda: 1)
    single = kernel_means(sample, basis, SIGMA, gradient=True)
    monkeypatch.setattr(module, "blas_threads", lambda: 3)
    several = kernel_means(sample, basis, SIGMA, gradient=True)
    again = kernel_means(sample, basis, SIGMA, gradient=True)
    assert np.abs(single.values - several.values).max() < 1e-15
    assert np.abs(single.fields - several.fields).max() < 1e-14
    assert (several.fields == again.fields).all()


@pytest.mark.parametrize("k", [2, 4])
def test_gradient_slope(k):
    sample, basis = grouped_sample(400, k=k)
    rng = np.random.default_rng(5)
    coefficients = rng.normal(size=(k, k))
    coefficients += coefficients.T
    gradient = kernel_means(sample, basis, SIGMA, gradient=True).gradient(coefficients)
    direction = rng.normal(size=basis.shape)
    function = lambda V: np.sum(coefficients * kernel_means(sample, V, SIGMA).values)  # noqa: E731
    errors = [slope_error(function, gradient, basis, direction, size) for size in (1e-2, 1e-3)]
    assert 50 < errors[0] / errors[1] < 200


def mean_over_scales(function, widths=SCALES):
    return sum(function(width) for width in widths) / len(widths)


@pytest.mark.parametrize("widths", [SCALES, (SIGMA, 0.5 * SIGMA), (3.0, 2.0, 0.7)])  # halves, and any others
@pytest.mark.parametrize("n", [50, 900])
def test_several_bandwidths_give_the_mean_of_their_kernels(n, widths):
    sample, basis = grouped_sample(n)
    expected = mean_over_scales(lambda width: kernel_means(sample, basis, width).values, widths)
    for gradient in (False, True):
        values = kernel_means(sample, basis, widths, gradient=gradient).values
        assert np.abs(values - expected).max() < 1e-14
    scores = sample.rows @ basis
    by_hand = mean_over_scales(lambda width: kernel_matrix(scores, width), widths)
    assert np.abs(kernel_matrix(scores, widths) - by_hand).max() < 1e-14


def test_gradient_of_several_scales_is_the_mean_of_theirs():
    sample, basis = grouped_sample(900, k=4)
    coefficients = np.ones((4, 4)) - 3.0 * np.eye(4)
    expected = mean_over_scales(lambda width: kernel_means(sample, basis, width, gradient=True).gradient(coefficients))
    found = kernel_means(sample, basis, SCALES, gradient=True).gradient(coefficients)
    assert np.abs(found - expected).max() < 1e-13


@pytest.mark.parametrize("d", [2, 3, 10])
def test_gradient_slope_at_several_scales(d):
    sample, basis = grouped_sample(400, p=12, d=d)
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
    expected = mean_over_scales(lambda width: kernel_means(sample, basis, width, gradient=True).fields)
    found = kernel_means(sample, basis, SCALES, gradient=True)
    assert np.abs(found.fields - expected).max() < 1e-9
    values = mean_over_scales(lambda width: kernel_means(sample, basis, width).values)
    assert np.abs(found.values - values).max() < 1e-9
