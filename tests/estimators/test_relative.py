"""Relative criteria: every group's own variance is its unit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from fairpca import FairPCA, RobustFairPCA
from fairpca.datasets import load_german_credit
from fairpca.estimators import _base
from fairpca.metrics import explained_variance_ratio, reconstruction_error, reconstruction_loss
from fairpca.problems.balanced import CRITERIA
from fairpca.problems.robust import RobustGap


@pytest.fixture(scope="module")
def german():
    return load_german_credit(return_X_s=True)


@pytest.fixture(params=[FairPCA, RobustFairPCA], ids=lambda cls: cls.__name__)
def estimator(request):
    return request.param(2, relative=True)


def same_subspace(first, second, atol=1e-7):
    assert np.allclose(first.components_.T @ first.components_, second.components_.T @ second.components_, atol=atol)


@pytest.mark.parametrize("factor", [1e-4, 0.3, 50.0, 1e4])
def test_the_scale_of_one_group_does_not_matter(estimator, two_groups, factor):
    """With moments about the groups' own means; scaling rows about their mean leaves the mean where it is."""
    X, groups = two_groups
    scaled = X.copy()
    first = groups == "a"
    scaled[first] = X[first].mean(axis=0) + factor * (X[first] - X[first].mean(axis=0))
    estimator.set_params(center="group")
    before, after = (clone(estimator).fit(rows, sensitive_features=groups) for rows in (X, scaled))
    for name in ("objective_", "lower_bound_"):
        assert np.isclose(getattr(before, name), getattr(after, name), rtol=1e-6)
    assert np.allclose(before.group_weights_, after.group_weights_, atol=1e-4)
    same_subspace(before, after)
    assert np.allclose(after.group_errors_ / before.group_errors_, [factor**2, 1.0], rtol=1e-5)
    absolute = [
        clone(estimator).set_params(relative=False).fit(rows, sensitive_features=groups) for rows in (X, scaled)
    ]
    assert not np.isclose(absolute[0].objective_, absolute[1].objective_, rtol=1e-3)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("center", ["pooled", "group"])
def test_objective_and_bound_are_shares_of_the_returned_components(german, criterion, center):
    X, sex = german
    pca = FairPCA(4, criterion=criterion, relative=True, center=center).fit(X, sensitive_features=sex)
    options = {"sensitive_features": sex, "center": center}
    losses = np.array(list(reconstruction_loss(X, pca, relative=True, **options).values()))
    errors = np.array(list(reconstruction_error(X, pca, relative=True, **options).values()))
    expected = {
        "loss": losses.max(), "error": errors.max(), "variance": errors.max() - 1, "nash": -np.log(1 - errors).sum(),
    }[criterion]  # fmt: skip
    assert np.isclose(pca.objective_, expected)
    assert pca.objective_ - 1e-10 <= pca.lower_bound_ <= pca.objective_
    assert np.allclose(pca.group_losses_ / pca.group_variances_, losses)
    assert np.allclose(pca.group_errors_ / pca.group_variances_, errors)
    if criterion == "loss":
        assert np.isclose(*losses)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_weights_are_those_of_the_scaled_moments(german, criterion):
    X, sex = german
    pca = FairPCA(4, criterion=criterion, relative=True).fit(X, sensitive_features=sex)
    centred = X - X.mean(axis=0)
    moment = 0.0
    for weight, label in zip(pca.group_weights_, pca.groups_, strict=True):
        rows = centred[sex == label]
        moment = moment + weight * rows.T @ rows / np.square(rows).sum()
    kept = np.trace(pca.components_ @ moment @ pca.components_.T)
    assert np.isclose(kept, np.linalg.eigvalsh(moment)[-4:].sum(), rtol=1e-9)


def test_nash_is_relative_anyway(german):
    X, sex = german
    plain = FairPCA(4, criterion="nash").fit(X, sensitive_features=sex)
    relative = FairPCA(4, criterion="nash", relative=True).fit(X, sensitive_features=sex)
    same_subspace(plain, relative, atol=1e-5)
    assert np.isclose(relative.objective_, plain.objective_ + np.log(relative.group_variances_).sum())


def test_groups_of_equal_variance_are_balanced_as_before(rng):
    X = rng.normal(size=(200, 5)) * [3, 2, 1, 1, 0.5]
    X[100:] = X[100:, ::-1]
    groups = np.repeat([0, 1], 100)
    for g in (0, 1):
        X[groups == g] -= X[groups == g].mean(axis=0)
        X[groups == g] /= np.sqrt(np.square(X[groups == g]).sum() / 100)
    plain, relative = (FairPCA(2, relative=flag).fit(X, sensitive_features=groups) for flag in (False, True))
    same_subspace(plain, relative)
    assert np.isclose(plain.objective_, relative.objective_)


def test_robust_objective_radius_and_worst_case(german):
    X, sex = german
    pca = RobustFairPCA(3, relative=True, radius=[0.01, 0.02], penalty=2.0).fit(X, sensitive_features=sex)
    shares = np.array(list(reconstruction_error(X, pca, sensitive_features=sex, relative=True).values()))
    problem = RobustGap(pca.group_counts_ / 1000, np.array([0.01, 0.02]), 2.0)
    assert np.isclose(pca.objective_, problem.value(shares))
    assert pca.objective_ - 1e-8 <= pca.lower_bound_ <= pca.objective_
    assert np.array_equal(pca.radii_, [0.01, 0.02])
    worst = (np.sqrt(shares) + np.sqrt(pca.radii_)) ** 2
    assert np.allclose(pca.worst_case_group_errors_, worst * pca.group_variances_)
    assert np.isclose(pca.history_[-1]["objective"], pca.objective_, rtol=1e-6)


def test_robust_large_penalty_equalises_the_shares(two_groups):
    X, groups = two_groups
    pca = RobustFairPCA(3, relative=True, radius=0.0, penalty=50.0).fit(X, sensitive_features=groups)
    kept = explained_variance_ratio(X, pca, sensitive_features=groups)
    assert kept.gap < 1e-6
    assert not np.isclose(*pca.group_errors_, rtol=1e-3)


def test_three_groups_and_every_solver_agree(german):
    X, sex = german
    X = X[:, :10]
    groups = np.array([f"{label}{i % 2}" for i, label in enumerate(sex)])
    exact = FairPCA(3, relative=True).fit(X, sensitive_features=groups)
    for solver, tol in (("mw", 1e-6), ("sdp", 1e-6)):
        other = FairPCA(3, relative=True, solver=solver, tol=tol).fit(X, sensitive_features=groups)
        assert other.objective_ >= exact.lower_bound_ - 1e-9
        assert np.isclose(other.lower_bound_, exact.lower_bound_, atol=1e-4)


@pytest.mark.parametrize("fit", ["fit", "partial_fit"])
def test_a_group_without_variance(estimator, rng, fit):
    X = rng.normal(size=(40, 3))
    X[:10] = 1.0
    groups = np.repeat(["a", "b"], [10, 30])
    estimator.set_params(center="group")
    if fit == "fit":
        with pytest.raises(ValueError, match="relative=True needs variance in every group; the rows of 'a' have none"):
            estimator.fit(X, sensitive_features=groups)
        return
    with pytest.warns(UserWarning, match="the rows of 'a' have none so far"):
        estimator.partial_fit(X, sensitive_features=groups)
    assert not hasattr(estimator, "components_")
    estimator.partial_fit(X[10:20], sensitive_features=np.repeat("a", 10))
    both = np.vstack([X, X[10:20]])
    same_subspace(estimator, clone(estimator).fit(both, sensitive_features=np.append(groups, ["a"] * 10)))


def test_few_rows_of_many_features(estimator, rng, monkeypatch):
    X, groups = rng.normal(size=(30, 60)) * np.linspace(2, 0.2, 60), np.arange(30) % 2
    X[groups == 1] = 3.0 * X[groups == 1][:, ::-1]
    direct = clone(estimator).fit(X, sensitive_features=groups)
    monkeypatch.setattr(_base, "MANY_FEATURES", 50)
    coordinates = estimator.fit(X, sensitive_features=groups)
    assert coordinates._moments is None
    assert np.isclose(coordinates.objective_, direct.objective_, rtol=1e-7)
    assert np.allclose(coordinates.group_errors_, direct.group_errors_, rtol=1e-6)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_operators(rng, monkeypatch, criterion):
    X, groups = rng.normal(size=(120, 60)) * np.geomspace(8, 0.1, 60), np.arange(120) % 2
    X[groups == 1, :8] = 5.0 * X[groups == 1, 7::-1]
    direct = FairPCA(3, criterion=criterion, relative=True).fit(X, sensitive_features=groups)
    monkeypatch.setattr(_base, "MANY_FEATURES", 50)
    monkeypatch.setattr(_base, "FEW_ROWS", 0)
    pca = FairPCA(3, criterion=criterion, relative=True).fit(X, sensitive_features=groups)
    assert pca._moments is None
    assert pca.converged_
    assert pca.lower_bound_ <= direct.objective_ + 1e-10
    assert np.isclose(pca.objective_, direct.objective_, atol=1.01e-5)


def test_dask_and_chunks_equal_memory(estimator, two_groups):
    da = pytest.importorskip("dask.array")
    X, groups = two_groups
    expected = clone(estimator).fit(X, sensitive_features=groups)
    lazy = clone(estimator).fit(da.from_array(X, chunks=(100, 7)), sensitive_features=da.from_array(groups, chunks=100))
    chunked = clone(estimator).partial_fit(X[:250], sensitive_features=groups[:250])
    chunked.partial_fit(X[250:], sensitive_features=groups[250:])
    for other in (lazy, chunked):
        assert np.isclose(other.objective_, expected.objective_, rtol=1e-9)
        assert np.allclose(other.components_, expected.components_, atol=1e-7)
