"""Random Fourier features against the exact kernel means."""

import numpy as np
from tests.moments.cases import SIGMA, grouped_sample, naive_means, slope_error

from fairpca.moments.bandwidths import halved_bandwidths
from fairpca.moments.fourier import FourierKernel
from fairpca.moments.kernel_means import kernel_means

SCALES = halved_bandwidths(SIGMA)


def test_fourier_gradient_belongs_to_the_fourier_value():
    sample, basis = grouped_sample(400)
    kernel = FourierKernel(SIGMA, 3, 64, np.random.default_rng(0))
    coefficients = np.array([[2.0, -1, -1], [-1, 2, -1], [-1, -1, 2]])
    means = kernel(sample, basis, True)
    direction = np.random.default_rng(1).normal(size=basis.shape)
    function = lambda V: np.sum(coefficients * kernel(sample, V, False).values)  # noqa: E731
    gradient = means.gradient(coefficients)
    errors = [slope_error(function, gradient, basis, direction, size) for size in (1e-1, 1e-2)]
    assert 30 < errors[0] / errors[1] < 300
    assert np.abs(means.values - kernel(sample, basis, False).values).max() == 0


def test_fourier_means_converge():
    sample, basis = grouped_sample(400)
    exact = naive_means(sample, basis)
    rough = [
        np.abs(FourierKernel(SIGMA, 3, size, np.random.default_rng(2))(sample, basis, False).values - exact).max()
        for size in (100, 30_000)
    ]
    assert rough[1] < 0.005
    assert rough[1] < rough[0]


def test_orthogonal_stratified_features_have_less_variance_than_independent_ones():
    sample, basis = grouped_sample(200, d=4)
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


def test_fourier_features_of_several_scales():
    sample, basis = grouped_sample(400)
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
