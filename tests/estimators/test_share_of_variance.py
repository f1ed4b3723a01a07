"""``n_components`` as a share: the fewest components with which every group keeps it."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca import FairPCA, KernelParityPCA, MMDFairPCA, ParityPCA, RobustFairPCA
from fairpca.datasets import load_german_credit
from fairpca.estimators import _base
from fairpca.metrics import explained_variance_ratio
from fairpca.moments import GroupMoments


def kept(X, fitted, groups):
    return explained_variance_ratio(X, fitted, sensitive_features=groups).min


def test_more_groups_take_the_first_on_the_way_up():
    """Where the smallest kept share falls again, a bisection would step over the first number that is enough.

    Two groups agree on three directions and disagree on the fourth, which costs both so much that a third group, of
    little variance, no longer matters with four components.
    """
    agreed = [30.0, 20.0, 10.0]
    covariances = np.stack([np.diag([*agreed, 9.0, 0, 0]), np.diag([*agreed, 0, 9.0, 0]), np.diag([0.0] * 5 + [2.0])])
    moments = GroupMoments.from_covariances(covariances, [50, 50, 50])
    fits = [FairPCA(d).fit_moments(moments) for d in range(1, 7)]
    curve = [float((1.0 - pca.group_errors_ / pca.group_variances_).min()) for pca in fits]
    assert curve[0] < curve[1] < 0.12 < curve[2] < curve[4]
    assert curve[3] < 0.01
    assert FairPCA(0.12).fit_moments(moments).n_components_ == 3
    assert FairPCA(0.2).fit_moments(moments).n_components_ == 5


def test_the_search_starts_where_every_group_could_do_it_alone(monkeypatch):
    X, sex = load_german_credit(return_X_s=True)
    tried = []
    solve = FairPCA._solve
    monkeypatch.setattr(FairPCA, "_solve", lambda self, reduction, d: tried.append(d) or solve(self, reduction, d))
    d = FairPCA(0.8).fit(X, sensitive_features=sex).n_components_
    own = [np.cumsum(np.linalg.svd(X[sex == a] - X.mean(axis=0), compute_uv=False) ** 2) for a in ("female", "male")]
    assert min(tried) == max(int((one < 0.8 * one[-1]).sum()) + 1 for one in own)
    assert len(tried) <= 6 < d


@pytest.mark.parametrize("center", ["pooled", "group"])
@pytest.mark.parametrize("cls", [FairPCA, RobustFairPCA])
def test_the_share_is_about_the_centre_of_the_estimator(cls, center, two_groups):
    X, groups = two_groups
    X = X + 4.0 * (groups == "a")[:, None]  # most of the variance about the pooled mean is between the groups
    pca = cls(0.6, center=center).fit(X, sensitive_features=groups)
    assert explained_variance_ratio(X, pca, sensitive_features=groups, center=center).min >= 0.6
    fewer = cls(pca.n_components_ - 1, center=center).fit(X, sensitive_features=groups)
    assert explained_variance_ratio(X, fewer, sensitive_features=groups, center=center).min < 0.6


@pytest.mark.filterwarnings("ignore:Groups smaller than n_components")
def test_all_components_with_weights_below_one(two_groups):
    """Their sum is not the number of rows: all directions along which the rows vary are kept."""
    X, groups = two_groups
    pca = FairPCA(None).fit(X, sensitive_features=groups, sample_weight=np.full(300, 0.0101))
    assert pca.n_samples_seen_ < 4
    assert pca.n_components_ == 7


def test_a_group_without_variance_keeps_everything(rng):
    X = rng.normal(size=(60, 4)) * [4, 3, 2, 1]
    X[:20] = 1.0
    pca = FairPCA(0.5, center="group").fit(X, sensitive_features=np.repeat(["a", "b"], [20, 40]))
    assert pca.n_components_ <= 2


@pytest.mark.parametrize("options", [{}, {"covariance_penalty": 0.5}, {"mean_tolerance": 0.3}])
def test_an_unreachable_share_names_the_largest_reached(two_groups, options):
    X, groups = two_groups
    largest = kept(X, ParityPCA(None, **options).fit(X, sensitive_features=groups), groups)
    assert largest < 0.95
    with pytest.raises(ValueError, match=rf"largest share reached is {largest:.4g}, with 6 components"):
        ParityPCA(0.95, **options).fit(X, sensitive_features=groups)


@pytest.mark.parametrize("tolerance", [0.0, 0.1, 50.0])
def test_none_keeps_the_components_of_mean_parity_whatever_the_tolerance(two_groups, tolerance):
    X, groups = two_groups
    pca = ParityPCA(None, mean_tolerance=tolerance).fit(X, sensitive_features=groups)
    assert pca.n_components_ == 6
    assert pca.mean_difference_ <= tolerance * (1 + 1e-6) + 1e-10


def test_kernel_parity_keeps_the_share_in_the_feature_space(two_groups):
    """With the linear kernel it is the share of the rows themselves."""
    X, groups = two_groups
    for share in (0.3, 0.5):
        kernel = KernelParityPCA(share, kernel="linear").fit(X, sensitive_features=groups)
        assert kernel.n_components_ == ParityPCA(share).fit(X, sensitive_features=groups).n_components_
    with pytest.raises(ValueError, match=r"largest share reached is 0\.\d+, with 6 components"):
        KernelParityPCA(0.99, kernel="linear").fit(X, sensitive_features=groups)


def test_mmd_keeps_the_share_within_the_tolerance(two_groups):
    X, groups = two_groups[0][::4], two_groups[1][::4]
    pca = MMDFairPCA(0.15).fit(X, sensitive_features=groups)
    assert kept(X, pca, groups) >= 0.15
    assert pca.converged_
    with pytest.raises(ValueError, match=r"within the tolerance; the largest share|raise tolerance or lower"):
        MMDFairPCA(0.9, tolerance=1e-6, solver="repms").fit(X, sensitive_features=groups)


@pytest.mark.parametrize("cls", [FairPCA, RobustFairPCA, ParityPCA])
@pytest.mark.filterwarnings("ignore:Groups smaller than n_components")
def test_few_rows_of_many_features(cls, rng, monkeypatch):
    X, groups = rng.normal(size=(30, 60)) * np.linspace(2, 0.2, 60), np.arange(30) % 2
    X[groups == 1] = X[groups == 1][:, ::-1]
    for wanted in (0.5, None):
        direct = cls(wanted).fit(X, sensitive_features=groups)
        with monkeypatch.context() as context:
            context.setattr(_base, "MANY_FEATURES", 50)
            coordinates = cls(wanted).fit(X, sensitive_features=groups)
        assert coordinates._moments is None
        assert coordinates.n_components_ == direct.n_components_
        assert np.allclose(coordinates.group_errors_, direct.group_errors_, atol=1e-8)


def test_operators(rng, monkeypatch):
    X, groups = rng.normal(size=(120, 60)) * np.geomspace(8, 0.1, 60), np.arange(120) % 2
    X[groups == 1, :8] = X[groups == 1, 7::-1]
    direct = FairPCA(0.8).fit(X, sensitive_features=groups)
    monkeypatch.setattr(_base, "MANY_FEATURES", 50)
    monkeypatch.setattr(_base, "FEW_ROWS", 0)
    pca = FairPCA(0.8).fit(X, sensitive_features=groups)
    assert pca._moments is None
    assert pca.n_components_ == direct.n_components_
    assert kept(X, pca, groups) >= 0.8 - 1e-9
