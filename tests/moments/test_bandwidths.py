"""The median distance from which a kernel takes its width."""

import numpy as np
import pytest

from fairpca.moments import bandwidths
from fairpca.moments.bandwidths import squared_distance_median


class TestMedian:
    def test_sampled_pairs_are_of_different_rows(self, monkeypatch):
        monkeypatch.setattr(bandwidths, "_MOST_PAIRS", 2)
        scores = np.array([[0.0], [1.0], [2.0]])  # a row with itself, a third of the pairs, would make the median 1
        assert squared_distance_median(10 * scores, np.random.default_rng(0)) > 0
        medians = [squared_distance_median(scores, np.random.default_rng(seed)) for seed in range(200)]
        assert min(medians) >= 1.0

    def test_all_pairs(self):
        scores = np.array([[0.0], [1.0], [3.0]])
        assert squared_distance_median(scores, np.random.default_rng(0)) == 4.0  # of 1, 4, 9

    def test_sampled_pairs_are_close(self, monkeypatch):
        scores = np.random.default_rng(0).normal(size=(800, 3))
        exact = squared_distance_median(scores, np.random.default_rng(0))
        monkeypatch.setattr(bandwidths, "_MOST_PAIRS", 20_000)
        sampled = squared_distance_median(scores, np.random.default_rng(0))
        assert sampled != exact
        assert sampled == pytest.approx(exact, rel=0.03)

    def test_zero_median_takes_the_positive_distances_and_no_distance_takes_one(self):
        scores = np.r_[np.zeros(9), 2.0][:, None]
        assert squared_distance_median(scores, np.random.default_rng(0)) == 4.0
        assert squared_distance_median(np.ones((5, 2)), np.random.default_rng(0)) == 1.0

    @pytest.mark.parametrize("seed", range(6))
    def test_weights_count_like_repeated_rows(self, seed, monkeypatch):
        rng = np.random.default_rng(seed)
        scores, repeats = rng.normal(size=(15, 2)), rng.integers(0, 4, 15)
        weighted = squared_distance_median(scores, rng, repeats.astype(float))
        assert weighted == pytest.approx(squared_distance_median(np.repeat(scores, repeats, axis=0), rng))
        monkeypatch.setattr(bandwidths, "_MOST_PAIRS", 60)
        many = squared_distance_median(scores, rng, repeats.astype(float))
        assert 0 < many < 16
