"""Kernel means by a grid: those of all pairs of rows, with their gradient."""

import numpy as np
import pytest

from fairpca._validation import check_groups
from fairpca.moments._grouped_sample import GroupedSample
from fairpca.moments.grid_means import GridMeans
from fairpca.moments.kernel_means import kernel_means


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bandwidth", [0.8, (1.6, 0.8, 0.4, 0.2)])
@pytest.mark.parametrize("d", [1, 2])
def test_values_and_gradient_are_those_of_the_pairs(rng, d, bandwidth, weighted):
    X, codes = rng.standard_t(4, size=(900, 4)), rng.integers(0, 3, 900)
    X[codes == 1] += 0.4
    weights = rng.uniform(0.1, 2.0, 900) if weighted else None
    sample = GroupedSample.from_rows(X, check_groups(codes, 900), weights)
    basis = np.linalg.qr(rng.normal(size=(4, d)))[0]
    pairs = kernel_means(sample, basis, bandwidth, gradient=True)
    grid = GridMeans(sample.rows @ basis, bandwidth)
    ours = grid.means(sample, gradient=True)
    coefficients = np.array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    assert np.abs(ours.values - pairs.values).max() < 1e-10
    # Errors cancel in differences of groups.
    assert abs((coefficients * (ours.values - pairs.values)).sum()) < 1e-10
    gradient = pairs.gradient(coefficients)
    assert np.linalg.norm(ours.gradient(coefficients) - gradient) < 1e-4 * np.linalg.norm(gradient)


def test_a_grid_that_would_be_too_large_is_not_made(rng):
    scores = np.r_[rng.normal(size=(50, 2)), [[1e4, 1e4]]]
    assert not GridMeans(scores, 0.1).fits
    assert not GridMeans(rng.normal(size=(50, 3)), 1.0).fits
    assert GridMeans(rng.normal(size=(50, 2)), 1.0).fits


def test_many_rows_are_summed_by_a_grid(rng):
    n = 21_000
    codes = rng.integers(0, 2, n)
    scores = rng.normal(size=(n, 1)) + 0.1 * codes[:, None]
    sample = GroupedSample.from_rows(scores, check_groups(codes, n))
    few = kernel_means(sample, None, 0.5).values
    narrow = np.r_[scores, [[1e9]]]  # a row so far away that no grid is made, and all pairs are summed
    codes = np.r_[codes, 2]
    far = kernel_means(GroupedSample.from_rows(narrow, check_groups(codes, n + 1)), None, 0.5).values
    assert np.abs(few - far[:2, :2]).max() < 1e-8
