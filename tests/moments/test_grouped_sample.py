"""Rows stored by group."""

import numpy as np
import pytest
from scipy import sparse

from fairpca._validation import Groups, check_groups
from fairpca.moments._grouped_sample import GroupedSample


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_each_group_keeps_its_rows_about_the_common_centre(rng):
    X, labels = rng.normal(5, 1, (40, 3)), rng.choice(["a", "b", "c"], 40)
    sample = GroupedSample.from_rows(X, check_groups(labels, 40))
    assert sample.labels == ("a", "b", "c")
    for a, label in enumerate(sample.labels):
        rows = slice(sample.starts[a], sample.starts[a + 1])
        assert np.abs(sample.rows[rows] - (X[labels == label] - X.mean(axis=0))).max() < 1e-12
        assert sample.weights[rows].sum() == pytest.approx(1.0)
    assert X.mean() > 4  # the caller's array is untouched


def test_weights_are_normalised_in_each_group_and_zero_drops_rows_and_groups(rng):
    X = rng.normal(size=(6, 2))
    groups = Groups(("a", "b", "c"), np.array([0, 0, 1, 1, 2, 2]))
    sample = GroupedSample.from_rows(X, groups, np.array([1.0, 3.0, 0.0, 2.0, 0.0, 0.0]))
    assert sample.labels == ("a", "b")
    assert sample.weights.tolist() == [0.25, 0.75, 1.0]
    centre = (X[0] + 3 * X[1] + 2 * X[3]) / 6
    assert np.abs(sample.rows - (X[[0, 1, 3]] - centre)).max() < 1e-12


def test_sparse_rows_equal_dense_ones(rng):
    X = rng.normal(size=(30, 4)) * (rng.random((30, 4)) < 0.3)
    groups = check_groups(rng.integers(0, 2, 30), 30)
    dense = GroupedSample.from_rows(X, groups)
    thin = GroupedSample.from_rows(sparse.csr_matrix(X), groups)
    assert np.abs(dense.rows - thin.rows).max() < 1e-15


def test_subsample_is_proportional_without_replacement_and_spares_small_groups(rng):
    X = rng.normal(size=(1060, 2))
    sample = GroupedSample.from_rows(X, check_groups(np.repeat([0, 1, 2], [800, 200, 60]), 1060))
    part = sample.subsample(530, rng)
    assert part.counts.tolist() == [400, 100, 50]
    assert len(np.unique(part.rows, axis=0)) == part.n_rows
    for a in range(3):
        assert part.weights[part.starts[a] : part.starts[a + 1]].sum() == pytest.approx(1.0)
        inside = sample.rows[sample.starts[a] : sample.starts[a + 1]]
        taken = part.rows[part.starts[a] : part.starts[a + 1]]
        assert {tuple(row) for row in taken} <= {tuple(row) for row in inside}
    assert sample.subsample(5000, rng) is sample
