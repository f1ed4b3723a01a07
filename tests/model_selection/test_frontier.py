"""The exact trade-off of two groups, and the path for more."""

import numpy as np
import pytest

from fairpca import FairPCA, RobustFairPCA
from fairpca.datasets import load_german_credit, make_toy
from fairpca.model_selection import frontier
from fairpca.moments import GroupMoments, group_moments


@pytest.fixture(scope="module")
def german():
    X, sex = load_german_credit(return_X_s=True)
    return group_moments(X, sensitive_features=sex)


@pytest.fixture(scope="module")
def curve(german):
    return frontier(german, n_components=3, n_points=40)


def test_no_projection_lies_below(german, curve):
    rng = np.random.default_rng(0)
    matrices = german.second_moments()
    totals = np.einsum("aii->a", matrices)
    levels = (curve.weights * curve.errors).sum(axis=1)
    for _ in range(100):
        basis = np.linalg.qr(rng.standard_normal((57, 3)))[0]
        errors = totals - np.einsum("pi,api->a", basis, matrices @ basis)
        assert (curve.weights @ errors >= levels - 1e-9).all()


def test_ends_are_the_best_of_each_group(german, curve):
    for a, end in enumerate((0, -1)):
        values = np.linalg.eigvalsh(german.second_moments()[a])
        assert curve.errors[end, a] == pytest.approx(values[:-3].sum())


def test_frontier_is_convex_and_decreasing(curve):
    steps = np.diff(curve.errors, axis=0)
    assert (steps[:, 0] >= -1e-9).all()
    assert (steps[:, 1] <= 1e-9).all()
    turns = steps[:-1, 0] * steps[1:, 1] - steps[:-1, 1] * steps[1:, 0]
    assert (turns >= -1e-9).all()


def test_trade_off_runs_from_pca_to_equal_errors(curve):
    assert curve.total_error[0] == pytest.approx(curve.methods["PCA"].total_error)
    assert curve.gap[0] == pytest.approx(curve.methods["PCA"].gap)
    assert curve.gap[-1] < 1e-9
    assert (np.diff(curve.gap) <= 1e-9).all()
    assert (np.diff(curve.total_error) >= -1e-9).all()
    assert (np.diff(curve.penalties) >= -1e-9).all()


def test_points_of_the_trade_off_are_optimal_for_their_penalty(german, curve):
    for i in (5, 15, 30):
        point, penalty = curve.trade_off[i], curve.penalties[i]
        fitted = RobustFairPCA(3, radius=0.0, penalty=penalty).fit_moments(german)
        assert point.total_error + penalty * point.gap == pytest.approx(fitted.objective_, rel=1e-8)
        assert point.components.shape == (3, 57)


def test_methods_lie_on_or_above_the_curve(curve):
    for point in curve.methods.values():
        lower = np.interp(-point.gap, -curve.gap, curve.total_error)
        # Between two points the curve lies below their chord by the curvature left there.
        assert point.total_error >= lower - 1e-3 * lower


def test_robust_pca_without_radius_is_on_the_curve(german):
    robust = RobustFairPCA(3, radius=0.0, penalty=0.1).fit_moments(german)
    exact = frontier(german, n_components=3, methods={"RobustFairPCA": robust}, n_points=60)
    point = exact.methods["RobustFairPCA"]
    assert point.total_error == pytest.approx(np.interp(-point.gap, -exact.gap, exact.total_error), rel=1e-4)


def test_gap_that_cannot_be_closed():
    """One group is larger in every direction: the curve ends at the smallest gap there is."""
    scatters = 50 * np.stack([np.diag([9.0, 8.0, 7.0]), np.diag([1.0, 2.0, 3.0])])
    moments = GroupMoments((0, 1), np.full(2, 50.0), np.zeros((2, 3)), scatters)
    curve = frontier(moments, n_components=1)
    assert curve.gap[-1] == pytest.approx(10.0)  # 6 + 4, leaving out the directions that differ least
    assert np.isinf(curve.penalties[-1])


def test_tied_directions_are_equalised():
    scatters = 50 * np.stack([np.diag([2.0, 0.0, 1.0]), np.diag([0.0, 2.0, 1.0])])
    moments = GroupMoments((0, 1), np.array([60.0, 40.0]), np.zeros((2, 3)), scatters * np.array([[[1.2]], [[0.8]]]))
    curve = frontier(moments, n_components=1)
    assert curve.gap[-1] < 1e-9


def test_toy_in_the_plane():
    X, groups = make_toy(random_state=0)
    curve = frontier(X, sensitive_features=groups, n_components=1)
    assert curve.gap[-1] < 1e-9
    assert set(curve.methods) == {"PCA", "FairPCA(criterion='error')", "RobustFairPCA"}


@pytest.mark.parametrize("d", [1, 3, 5])
def test_losses_are_traded_from_pca_to_fair_pca(german, d):
    """Of equal losses the smallest is also the least total error: FairPCA is the end of the curve."""
    curve = frontier(german, n_components=d, of="loss", n_points=25)
    ordinary, fair = curve.methods["PCA"], curve.methods["FairPCA"]
    assert set(curve.methods) == {"PCA", "FairPCA"}
    assert (curve.gap[0], curve.total_error[0]) == pytest.approx((ordinary.gap, ordinary.total_error))
    assert (curve.gap[-1], curve.total_error[-1]) == pytest.approx((fair.gap, fair.total_error), abs=1e-7)
    fitted = FairPCA(d).fit_moments(german)
    assert fair.errors - curve.own_errors == pytest.approx(fitted.group_losses_, abs=1e-8)
    rng, matrices = np.random.default_rng(0), german.second_moments()
    totals = np.einsum("aii->a", matrices)
    for _ in range(50):
        step = np.linalg.qr(ordinary.components.T + 0.1 * rng.standard_normal((57, d)))[0]
        errors = totals - np.einsum("pi,api->a", step, matrices @ step)
        gap = abs(np.diff(errors - curve.own_errors)[0])
        if gap <= curve.gap[0]:
            assert german.shares @ errors >= np.interp(-gap, -curve.gap, curve.total_error) - 1e-2


def test_losses_of_three_groups_have_methods_but_no_curve():
    X, groups = np.random.default_rng(3).standard_normal((60, 5)), np.arange(60) % 3
    curve = frontier(X, sensitive_features=groups, n_components=2, of="loss")
    assert len(curve.trade_off) == len(curve.penalties) == 0
    assert curve.methods["FairPCA"].gap < curve.methods["PCA"].gap
    with pytest.raises(ValueError, match="of='gap' is unknown"):
        frontier(X, sensitive_features=groups, of="gap")


def test_three_groups_give_the_path_over_the_penalty():
    rng = np.random.default_rng(3)
    X = np.vstack([rng.standard_normal((60, 5)) @ rng.standard_normal((5, 5)) for _ in range(3)])
    groups = np.repeat([0, 1, 2], 60)
    curve = frontier(X, sensitive_features=groups, n_components=2, penalties=[0.0, 0.2, 1.0, 5.0])
    assert curve.errors.shape == (0, 3)
    assert len(curve.trade_off) == 4
    assert curve.total_error[0] == pytest.approx(curve.methods["PCA"].total_error)
    assert (np.diff(curve.gap) <= 1e-6).all()


def test_single_group_is_refused():
    with pytest.raises(ValueError, match="at least two"):
        frontier(np.random.default_rng(0).standard_normal((20, 3)), sensitive_features=np.zeros(20), n_components=1)


@pytest.mark.parametrize("n_points", [-3, 0, 1, 2.5])
def test_bad_number_of_points(german, n_points):
    with pytest.raises((TypeError, ValueError), match="n_points must be an integer of at least 2"):
        frontier(german, n_points=n_points)


def test_weights_count_like_repeated_rows():
    rng = np.random.default_rng(5)
    X, groups = rng.normal(size=(60, 4)) * [1.0, 2.0, 3.0, 4.0], np.arange(60) % 2
    X[groups == 1] = X[groups == 1, ::-1]
    counts = rng.integers(1, 4, 60)
    weighted = frontier(X, sensitive_features=groups, n_components=2, sample_weight=counts, n_points=10)
    repeated = frontier(
        np.repeat(X, counts, axis=0), sensitive_features=np.repeat(groups, counts), n_components=2, n_points=10
    )
    np.testing.assert_allclose(weighted.errors, repeated.errors, rtol=1e-9)
    np.testing.assert_allclose(weighted.gap, repeated.gap, rtol=1e-9, atol=1e-9)


def test_center_of_groups_leaves_out_their_means():
    rng = np.random.default_rng(6)
    X, groups = rng.normal(size=(80, 4)) * [1.0, 2.0, 3.0, 4.0], np.arange(80) % 2
    X[groups == 1] = X[groups == 1, ::-1] + 5.0
    centred = X.copy()
    for label in (0, 1):
        centred[groups == label] -= X[groups == label].mean(axis=0)
    found = frontier(X, sensitive_features=groups, n_components=2, center="group", n_points=10)
    np.testing.assert_allclose(
        found.errors, frontier(centred, sensitive_features=groups, n_components=2, n_points=10).errors, rtol=1e-9
    )
    assert not np.allclose(found.errors, frontier(X, sensitive_features=groups, n_components=2, n_points=10).errors)


def test_the_point_that_closes_the_gap_occurs_once():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, groups = rng.normal(size=(60, 4)) * [1.0, 2.0, 3.0, 4.0], np.arange(60) % 2
        X[groups == 1] = X[groups == 1, ::-1]
        gap = frontier(X, sensitive_features=groups, n_components=2, n_points=6).gap
        assert np.diff(gap).max() < -1e-9
