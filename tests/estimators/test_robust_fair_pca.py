"""RobustFairPCA: what it promises, on small data and on the paper's tables."""

import warnings

import numpy as np
import pytest
from sklearn.decomposition import PCA

from fairpca import FairPCA, RobustFairPCA
from fairpca.datasets import load_german_credit
from fairpca.moments import GroupMoments, group_moments
from fairpca.problems.robust import RobustGap
from reproductions.datasets import load_tables

ALPHAS = (0.05, 0.1, 0.15)
PENALTIES = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    rows = [rng.standard_normal((n, 6)) @ rng.standard_normal((6, 6)) + rng.standard_normal(6) for n in (80, 50)]
    return np.vstack(rows), np.repeat(["a", "b"], [80, 50])


@pytest.fixture(scope="module")
def three_groups():
    rng = np.random.default_rng(1)
    rows = [rng.standard_normal((n, 5)) @ rng.standard_normal((5, 5)) for n in (80, 50, 30)]
    return np.vstack(rows), np.repeat([0, 1, 2], [80, 50, 30])


def test_remark_3_4_ordinary_pca(data):
    X, groups = data
    ours = RobustFairPCA(3, radius=0, penalty=0).fit(X, sensitive_features=groups)
    reference = PCA(3).fit(X)
    np.testing.assert_allclose(
        ours.components_.T @ ours.components_, reference.components_.T @ reference.components_, atol=1e-8
    )
    np.testing.assert_allclose(ours.explained_variance_, reference.explained_variance_)
    np.testing.assert_allclose(ours.objective_, PCA(3).fit(X).noise_variance_ * 3 * 129 / 130)


def equal_errors_are_possible(first, second, dimension):
    """The condition on the eigenvalues of the difference that replaces Proposition 2.2."""
    values = np.linalg.eigvalsh(first - second)
    left_out = len(values) - dimension
    return values[:left_out].sum() <= 0 <= values[::-1][:left_out].sum()


@pytest.mark.parametrize("seed", range(30))
def test_large_penalty_equalises_errors_exactly_when_the_eigenvalues_allow_it(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(3, 7))
    d = int(rng.integers(1, p))
    factors = rng.standard_normal((2, p, p + 2))
    factors[1] *= rng.uniform(0.3, 1.5)
    scatters = factors @ factors.transpose(0, 2, 1)
    moments = GroupMoments((0, 1), np.array([50.0, 50.0]), np.zeros((2, p)), 50 * scatters)
    fitted = RobustFairPCA(d, radius=0.0, penalty=1e6, tol=1e-13).fit_moments(moments)
    gap = np.ptp(fitted.group_errors_) / fitted.group_errors_.mean()
    if equal_errors_are_possible(*scatters, d):
        assert gap < 1e-6
    else:
        assert gap > 1e-4


def test_proposition_2_2_of_the_paper_fails():
    """Moments whose difference has full rank 4 > d = 2, and yet a projection with equal errors."""
    difference = np.diag([1.0, -1.0, 1.0, -1.0])
    base = np.diag([5.0, 4.0, 3.0, 2.0])
    moments = GroupMoments((0, 1), np.full(2, 50.0), np.zeros((2, 4)), 50 * np.stack([base + difference, base]))
    assert np.linalg.matrix_rank(difference) > 2
    fitted = RobustFairPCA(2, radius=0.0, penalty=100.0).fit_moments(moments)
    assert np.ptp(fitted.group_errors_) < 1e-8


def test_attributes_describe_the_returned_components(data):
    X, groups = data
    fitted = RobustFairPCA(2, radius=0.4, penalty=1.5).fit(X, sensitive_features=groups)
    centred = X - X.mean(axis=0)
    residual = centred - centred @ fitted.components_.T @ fitted.components_
    errors = np.array([(residual[groups == label] ** 2).sum(axis=1).mean() for label in fitted.groups_])
    np.testing.assert_allclose(fitted.group_errors_, errors)
    np.testing.assert_allclose(fitted.radii_, 0.4 / np.sqrt([80, 50]))
    np.testing.assert_allclose(fitted.worst_case_group_errors_, (np.sqrt(errors) + np.sqrt(fitted.radii_)) ** 2)
    problem = RobustGap(np.array([80, 50]) / 130, fitted.radii_, 1.5)
    assert fitted.objective_ == pytest.approx(problem.value(errors), rel=1e-12)
    assert 0 <= fitted.duality_gap_ <= 1e-9 * fitted.objective_
    assert fitted.converged_
    assert fitted.n_oracle_calls_ < 60


def test_units_do_not_matter(data):
    """Data in other units, the radius in their square: the same subspace."""
    X, groups = data
    plain = RobustFairPCA(2, radius=0.4).fit(X, sensitive_features=groups)
    scaled = RobustFairPCA(2, radius=0.4e6).fit(1e3 * X + 7.0, sensitive_features=groups)
    np.testing.assert_allclose(plain.components_, scaled.components_, atol=1e-7)
    assert scaled.objective_ == pytest.approx(1e6 * plain.objective_, rel=1e-9)


def test_larger_penalty_never_widens_the_gap_without_radius(data):
    X, groups = data
    gaps, totals = [], []
    for penalty in (0.0, 0.1, 0.3, 1.0, 10.0):
        fitted = RobustFairPCA(2, radius=0.0, penalty=penalty).fit(X, sensitive_features=groups)
        gaps.append(np.ptp(fitted.group_errors_))
        totals.append(fitted.group_errors_ @ fitted.group_counts_)
    assert (np.diff(gaps) <= 1e-7).all()
    assert (np.diff(totals) >= -1e-6).all()


@pytest.mark.parametrize("solver", ["spectral", "subgradient"])
def test_chunks_equal_the_whole(data, solver):
    X, groups = data
    order = np.argsort(groups)  # the first chunk holds a single group
    options = {"radius": 0.2, "solver": solver, "n_init": 1, "max_iter": 200}
    whole = RobustFairPCA(2, **options).fit(X, sensitive_features=groups)
    parts = RobustFairPCA(2, **options)
    for rows in np.array_split(order, 3):
        parts.partial_fit(X[rows], sensitive_features=groups[rows])
    np.testing.assert_allclose(whole.components_, parts.components_, atol=1e-6)
    np.testing.assert_array_equal(parts.groups_, ["a", "b"])


def test_one_group_is_ordinary_pca(data):
    X, groups = data
    rows = groups == "a"
    alone = RobustFairPCA(2).partial_fit(X[rows], sensitive_features=groups[rows])
    reference = PCA(2).fit(X[rows]).components_
    np.testing.assert_allclose(np.abs(np.sum(alone.components_ * reference, axis=1)), 1, atol=1e-8)


@pytest.mark.parametrize("solver", ["spectral", "subgradient"])
def test_every_dimension_kept(data, three_groups, solver):
    for X, groups in (data, three_groups):
        fitted = RobustFairPCA(X.shape[1], solver=solver).fit(X, sensitive_features=groups)
        np.testing.assert_allclose(fitted.group_errors_, 0, atol=1e-9)
        assert fitted.components_.shape == (X.shape[1], X.shape[1])


def test_group_centring_changes_the_moments_only(data):
    X, groups = data
    fitted = RobustFairPCA(2, center="group").fit(X, sensitive_features=groups)
    by_hand = X.copy()
    for label in "ab":
        by_hand[groups == label] -= X[groups == label].mean(axis=0)
    other = RobustFairPCA(2).fit(by_hand, sensitive_features=groups)
    np.testing.assert_allclose(fitted.group_errors_, other.group_errors_, rtol=1e-6)
    np.testing.assert_allclose(fitted.mean_, X.mean(axis=0))


def test_group_without_spread(data):
    """A group of identical rows has no error about its own mean, and no slope there."""
    X, groups = data
    X = X.copy()
    X[groups == "b"] = 1.0
    fitted = RobustFairPCA(2, center="group", radius=0.3).fit(X, sensitive_features=groups)
    assert fitted.group_errors_[1] == pytest.approx(0, abs=1e-9)
    assert fitted.converged_
    assert fitted.duality_gap_ <= 1e-9 * fitted.objective_


def test_data_without_any_spread():
    X, groups = np.ones((12, 3)), np.repeat([0, 1], 6)
    fitted = RobustFairPCA(1, radius=[0.2, 0.1], penalty=0.0).fit(X, sensitive_features=groups)
    assert fitted.objective_ == pytest.approx(0.15)


def test_three_groups(three_groups):
    X, groups = three_groups
    fitted = RobustFairPCA(2, radius=0.3, penalty=1.0).fit(X, sensitive_features=groups)
    reference = RobustFairPCA(2, radius=0.3, penalty=1.0, solver="subgradient", n_init=5, max_iter=400)
    reference.fit(X, sensitive_features=groups)
    assert fitted.objective_ <= reference.objective_ * (1 + 1e-9)
    assert fitted.lower_bound_ <= fitted.objective_
    assert not fitted.converged_  # stationary, but the gap is open
    assert fitted.worst_case_group_errors_.shape == (3,)


def test_radius_by_label(data):
    X, groups = data
    by_label = RobustFairPCA(2, radius={"b": 0.5, "a": 0.1}).fit(X, sensitive_features=groups)
    by_order = RobustFairPCA(2, radius=[0.1, 0.5]).fit(X, sensitive_features=groups)
    np.testing.assert_allclose(by_label.components_, by_order.components_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": -1.0}, "penalty must be"),
        ({"penalty": np.inf}, "penalty must be"),
        ({"n_init": -1}, "n_init must be"),
        ({"radius": [0.1]}, "radius"),
        ({"radius": -0.1}, "radius"),
        ({"solver": "sdp"}, "solver"),
        ({"center": "median"}, "center"),
    ],
)
def test_bad_parameters_are_named(data, options, message):
    X, groups = data
    with pytest.raises(ValueError, match=message):
        RobustFairPCA(2, **options).fit(X, sensitive_features=groups)


def test_stopping_early_warns_with_advice(data):
    X, groups = data
    with pytest.warns(UserWarning, match="max_iter"):
        fitted = RobustFairPCA(2, max_iter=4).fit(X, sensitive_features=groups)
    assert not fitted.converged_
    assert fitted.lower_bound_ < fitted.objective_


def test_subgradient_carries_no_certificate_and_keeps_curves(data):
    X, groups = data
    fitted = RobustFairPCA(2, solver="subgradient", n_init=2, max_iter=50).fit(X, sensitive_features=groups)
    assert fitted.lower_bound_ == -np.inf
    assert not fitted.converged_
    curves = [record["objective"] for record in fitted.history_]
    assert len(curves) == 3
    assert min(curve.min() for curve in curves) == pytest.approx(fitted.objective_, rel=1e-9)


def test_subgradient_agrees_with_spectral_on_german_credit():
    X, sex = load_german_credit(return_X_s=True)
    exact = RobustFairPCA(3).fit(X, sensitive_features=sex)
    descent = RobustFairPCA(3, solver="subgradient", n_init=0, max_iter=300).fit(X, sensitive_features=sex)
    assert exact.lower_bound_ <= descent.objective_ <= exact.objective_ * 1.01


def test_differs_from_fair_pca(data):
    """Balanced errors and balanced losses are different aims."""
    X, groups = data
    robust = RobustFairPCA(2, radius=0, penalty=50).fit(X, sensitive_features=groups)
    fair = FairPCA(2).fit(X, sensitive_features=groups)
    assert np.ptp(robust.group_errors_) <= np.ptp(fair.group_errors_) + 1e-7


def test_certified_on_every_table_of_the_paper(shared_data):
    """The whole grid of alpha and lambda: a relative gap of at most 1e-9."""
    worst, calls = 0.0, []
    for name, table in load_tables(shared_data / "vu2022").items():
        X = table.data / table.data.std(axis=0)
        moments = group_moments(X, sensitive_features=table.sensitive_features)
        for alpha in ALPHAS:
            for penalty in PENALTIES:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    fitted = RobustFairPCA(3, radius=alpha, penalty=penalty).fit_moments(moments)
                assert fitted.converged_, name
                worst = max(worst, fitted.duality_gap_ / fitted.objective_)
                calls.append(fitted.n_oracle_calls_)
    assert worst <= 1e-9
    assert np.median(calls) <= 30


@pytest.mark.parametrize("name", ["Ecoli_Data", "Energy_Data", "Wine_Quality_Data"])
def test_never_worse_than_the_papers_solver(shared_data, name):
    table = load_tables(shared_data / "vu2022")[name]
    X = (table.data - table.data.mean(axis=0)) / table.data.std(axis=0)
    moments = group_moments(X, sensitive_features=table.sensitive_features)
    for alpha, penalty in [(0.05, 0.5), (0.15, 2.5)]:
        exact = RobustFairPCA(3, radius=alpha, penalty=penalty).fit_moments(moments)
        descent = RobustFairPCA(3, radius=alpha, penalty=penalty, solver="subgradient", n_init=3, max_iter=500)
        descent.fit_moments(moments)
        assert exact.objective_ <= descent.objective_ + 1e-9 * exact.objective_


@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("d", [1, 3])
def test_at_least_one_iteration_is_counted(rng, n_groups, d):
    """As scikit-learn asks of n_iter_, also where the first look decides."""
    half = rng.normal(size=(30, 3))
    X, groups = np.vstack([half] * n_groups), np.repeat(np.arange(n_groups), 30)
    assert RobustFairPCA(d).fit(X, sensitive_features=groups).n_iter_ >= 1


def test_random_starts_follow_the_seed(data):
    X, groups = data
    options = {"solver": "subgradient", "n_init": 3, "max_iter": 20, "random_state": 4}
    one = RobustFairPCA(2, **options).fit(X, sensitive_features=groups)
    two = RobustFairPCA(2, **options).fit(X, sensitive_features=groups)
    assert len(one.history_) == 4
    np.testing.assert_allclose(one.components_, two.components_, atol=1e-12)
    other = RobustFairPCA(2, **options | {"random_state": 5}).fit(X, sensitive_features=groups)
    assert not np.allclose(one.history_[1]["objective"], other.history_[1]["objective"])
