"""MMD^2 against the definition and its permutation level."""

import inspect

import numpy as np
import pytest

from fairpca import MMDFairPCA
from fairpca.metrics import median_bandwidth, mmd2, mmd2_test


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def by_definition(X, Y, sigma):
    k = lambda A, B: np.exp(-((A[:, None] - B[None]) ** 2).sum(-1) / (2 * sigma**2))  # noqa: E731
    return k(X, X).mean() + k(Y, Y).mean() - 2 * k(X, Y).mean()


def test_two_groups(rng):
    X, groups = rng.normal(size=(70, 3)), np.array(["a"] * 30 + ["b"] * 40)
    value = mmd2(X, sensitive_features=groups, bandwidth=1.3)
    assert value == pytest.approx(by_definition(X[:30], X[30:], 1.3), abs=1e-14)


def test_several_groups_report_the_largest_pair(rng):
    groups = np.arange(90) % 3
    X = rng.normal(size=(90, 2)) + np.where(groups == 2, 2.0, 0.0)[:, None]
    pairs = [by_definition(X[groups == a], X[groups == b], 1.0) for a, b in ((0, 1), (0, 2), (1, 2))]
    assert mmd2(X, sensitive_features=groups, bandwidth=1.0) == pytest.approx(max(pairs), abs=1e-14)


def test_weights_count_like_repeated_rows(rng):
    X, groups, repeats = rng.normal(size=(40, 2)), np.arange(40) % 2, rng.integers(0, 4, 40)
    weighted = mmd2(X, sensitive_features=groups, bandwidth=1.0, sample_weight=repeats)
    repeated = mmd2(np.repeat(X, repeats, axis=0), sensitive_features=np.repeat(groups, repeats), bandwidth=1.0)
    assert weighted == pytest.approx(repeated, abs=1e-14)


def test_the_default_bandwidth_is_that_of_the_estimator(rng):
    X, groups = rng.normal(size=(50, 2)), np.arange(50) % 2
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(-1))[np.triu_indices(50, 1)]
    sigma = median_bandwidth(X)
    assert 2 * sigma**2 == pytest.approx(np.median(distances**2))
    assert mmd2(X, sensitive_features=groups, bandwidth="median") == mmd2(X, sensitive_features=groups, bandwidth=sigma)
    halved = (sigma, sigma / 2, sigma / 4, sigma / 8)
    assert mmd2(X, sensitive_features=groups) == mmd2(X, sensitive_features=groups, bandwidth=halved)
    assert MMDFairPCA().bandwidth == inspect.signature(mmd2).parameters["bandwidth"].default


@pytest.mark.parametrize("bandwidth", [0, -1.0, "mean", np.inf, None, True, [1.0, -1.0], (), ("median",)])
def test_bad_bandwidth(rng, bandwidth):
    with pytest.raises(ValueError, match="must be a positive number or 'median'"):
        mmd2(rng.normal(size=(10, 2)), sensitive_features=np.arange(10) % 2, bandwidth=bandwidth)


def test_p_value_is_uniform_for_equal_groups_and_small_for_different_ones(rng):
    equal = [
        mmd2_test(X, sensitive_features=np.arange(40) % 2, bandwidth=1.0, n_permutations=99, random_state=i).p_value
        for i, X in enumerate(rng.normal(size=(60, 40, 2)))
    ]
    assert 0.3 < np.mean(equal) < 0.7
    assert np.mean(np.array(equal) <= 0.5) == pytest.approx(0.5, abs=0.2)
    groups = np.arange(200) % 2
    test = mmd2_test(rng.normal(size=(200, 2)) + groups[:, None], sensitive_features=groups, n_permutations=99)
    assert test.p_value == 0.01
    assert test.mmd2 > test.level > test.mean


def test_mean_and_level_are_those_of_the_draws(rng):
    X, groups = rng.normal(size=(80, 2)), np.repeat([0, 1], [60, 20])
    test = mmd2_test(X, sensitive_features=groups, bandwidth=1.0, n_permutations=800)
    assert test.mean == pytest.approx(test.draws.mean(), rel=0.05)
    assert np.mean(test.draws <= test.level) == pytest.approx(0.95, abs=2e-3)


def test_sampled_permutations_are_scaled_to_the_full_size(rng, monkeypatch):
    import fairpca.metrics.distribution as module

    X, groups = rng.normal(size=(900, 2)), np.arange(900) % 2
    full = mmd2_test(X, sensitive_features=groups, bandwidth=1.0, n_permutations=300)
    monkeypatch.setattr(module, "_MATRIX_ROWS", 300)
    part = mmd2_test(X, sensitive_features=groups, bandwidth=1.0, n_permutations=300)
    assert part.mmd2 == full.mmd2
    assert part.level == pytest.approx(full.level, rel=0.25)


@pytest.mark.parametrize("distance", [1e6, 1e8, 1e9])
def test_far_groups_have_the_discrepancy_of_their_own_spreads(distance):
    rng = np.random.default_rng(0)
    Y, groups = rng.normal(size=(80, 2)), np.arange(80) % 2
    Y[groups == 1] += distance
    kernel = np.exp(-0.5 * ((Y[:, None] - Y[None]) ** 2).sum(-1))
    within = [kernel[np.ix_(groups == a, groups == a)].mean() for a in (0, 1)]
    assert mmd2(Y, sensitive_features=groups, bandwidth=1.0) == pytest.approx(sum(within), abs=1e-8)
    test = mmd2_test(Y, sensitive_features=groups, bandwidth=1.0, n_permutations=30)
    assert test.level < test.mmd2 < 2


@pytest.mark.parametrize("n_permutations", [0, -1, 2.5])
def test_bad_number_of_permutations(rng, n_permutations):
    with pytest.raises((TypeError, ValueError), match="n_permutations must be an integer of at least 1"):
        mmd2_test(rng.normal(size=(20, 2)), sensitive_features=np.arange(20) % 2, n_permutations=n_permutations)


def test_bandwidth_of_weighted_rows_is_that_of_the_rows_that_count(rng):
    X = rng.normal(size=(40, 2))
    weights = (np.arange(40) < 25).astype(float)
    assert median_bandwidth(X, sample_weight=weights) == pytest.approx(median_bandwidth(X[:25]), rel=1e-12)
    assert median_bandwidth(X, sample_weight=weights) != pytest.approx(median_bandwidth(X), rel=1e-6)


def test_seed_of_the_pairs(rng):
    X = rng.normal(size=(2100, 1)) * np.arange(2100)[:, None]  # more than two million pairs: they are drawn
    groups = np.arange(2100) % 2
    for seeded in (
        lambda seed: median_bandwidth(X, random_state=seed),
        lambda seed: mmd2(X, sensitive_features=groups, random_state=seed),
    ):
        assert seeded(3) == seeded(3)
        assert seeded(3) != seeded(4)
        assert seeded(3) == pytest.approx(seeded(4), rel=0.05)
        assert seeded(None) == seeded(None)
