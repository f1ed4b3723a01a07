"""How far components are from the population's: recomputed without blocks, and against known populations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.decomposition import PCA

from fairpca import FairPCA, MMDFairPCA
from fairpca.inference import component_stability
from fairpca.inference._blocks import make_blocks
from fairpca.inference._checks import as_source
from fairpca.moments import group_moments


def table(seed, n=500):
    """Components with variances 6, 4, 3, 2 over noise 1, the same in three groups of unequal size."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(20, 4)))[0]
    X = rng.normal(size=(n, 4)) * np.sqrt([6.0, 4.0, 3.0, 2.0]) @ axes.T + rng.normal(size=(n, 20))
    return X, np.repeat(["a", "b", "c"], [n * 3 // 5, n * 3 // 10, n // 10]), axes


def test_intervals_of_the_largest_angle_cover_the_truth():
    """In 40 tables at least 34: with a probability of 0.95 each, fewer occur once in 5,000 times."""
    covered = 0
    for seed in range(40):
        X, groups, axes = table(seed)
        found = component_stability(PCA(4), X, sensitive_features=groups).subspace
        covered += found.low <= np.degrees(subspace_angles(axes, PCA(4).fit(X).components_.T).max()) <= found.high
    assert covered >= 34


def test_angles_without_each_block_are_those_of_fits_without_its_rows(two_groups):
    X, groups = two_groups
    found = component_stability(PCA(2), X, sensitive_features=groups)
    source = as_source(X, groups, None)
    blocks = make_blocks(source, 2, None, 0)
    block = blocks.block[blocks.cells(0, source.groups)]
    whole = PCA(2).fit(X).components_
    for number in (0, 45):
        without = PCA(2).fit(X[block != number]).components_
        cosines = np.abs((whole * without).sum(axis=1))
        assert np.allclose(np.cos(np.radians(found.without_block[number, :2])), cosines)
        assert np.isclose(found.without_block[number, 2], np.degrees(subspace_angles(whole.T, without.T).max()))


def test_four_times_the_rows_halve_the_angles():
    small, large = (
        component_stability(PCA(4), *table(0, n)[:1], sensitive_features=table(0, n)[1]) for n in (1000, 4000)
    )
    assert 1.6 < small.subspace / large.subspace < 2.5


def test_components_that_turn_among_each_other_leave_their_subspace(rng):
    X = rng.normal(size=(400, 6)) * [10.0, 10.0, 1.0, 1.0, 1.0, 1.0]
    found = component_stability(FairPCA(2, criterion="mean"), X, sensitive_features=np.arange(400) % 2)
    assert found.subspace.high < 5.0
    assert found.components[0].high > 20.0
    assert [row["component"] for row in found._cells()] == ["1", "2", "all together"]
    assert list(found.to_frame()["angle"])[2] == found.subspace


def test_repeated_rows_of_one_person_need_clusters():
    X, groups, _ = table(0)
    twice, both = np.repeat(X, 4, axis=0), np.repeat(groups, 4)
    once = component_stability(PCA(4), X, sensitive_features=groups)
    found = component_stability(PCA(4), twice, sensitive_features=both, clusters=np.repeat(np.arange(500), 4))
    assert 0.8 < found.subspace / once.subspace < 1.25
    assert component_stability(PCA(4), twice, sensitive_features=both).subspace < 0.7 * once.subspace


def test_errors(two_groups):
    X, groups = two_groups
    with pytest.raises(ValueError, match="MMDFairPCA cannot be fitted to moments"):
        component_stability(MMDFairPCA(2), X, sensitive_features=groups)
    with pytest.raises(ValueError, match="confidence=2 must lie between 0 and 1"):
        component_stability(PCA(2), X, sensitive_features=groups, confidence=2)
    with pytest.raises((TypeError, ValueError)):
        component_stability(PCA(2), group_moments(X, sensitive_features=groups))
