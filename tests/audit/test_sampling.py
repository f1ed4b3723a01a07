"""Rows are drawn uniformly, however they are divided into blocks."""

from __future__ import annotations

import numpy as np

from fairpca.audit.sample import RowSample


def draw(seed, rows, size=100, n_rows=1000):
    """The indices of the rows that were drawn; checks that the other values of the rows belong to them."""
    numbers = np.arange(float(n_rows))
    sample = RowSample(size, seed)
    for start in range(0, n_rows, rows):
        part = numbers[start : start + rows]
        sample.add({"x": part, "y": -part, "z": part % 3})
    found = sample.rows()
    np.testing.assert_array_equal(found["y"], -found["x"])
    np.testing.assert_array_equal(found["z"], found["x"] % 3)
    return found["x"]


def test_the_sample_is_uniform_reproducible_and_independent_of_blocks():
    assert (draw(1, 17) == draw(1, 1000)).all()
    drawn = np.concatenate([draw(seed, 90) for seed in range(200)])
    assert all(len(np.unique(part)) == 100 for part in drawn.reshape(200, 100))
    quarters = np.bincount((drawn // 250).astype(int), minlength=4) / 20000  # each: 0.25, deviation 0.0029
    assert np.abs(quarters - 0.25).max() < 0.015


def test_a_sample_larger_than_the_stream_is_all_of_it_in_order():
    np.testing.assert_array_equal(draw(0, 7, size=5000), np.arange(1000.0))


def test_the_sample_does_not_depend_on_how_the_data_was_made():
    """Not even if the numbers came from numpy's generator with the same seed."""
    numbers = np.random.default_rng(0).random(2000)
    drawn = draw(0, 500, size=200, n_rows=2000).astype(int)
    assert 0.4 < numbers[drawn].mean() < 0.6
