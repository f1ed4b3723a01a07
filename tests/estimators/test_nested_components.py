"""Nested components: the first few of them are a solution of their own."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from fairpca import FairPCA, load_model, save_model
from fairpca.datasets import load_german_credit
from fairpca.estimators import _base
from fairpca.metrics import explained_variance_ratio, reconstruction_loss


@pytest.fixture(scope="module")
def german():
    return load_german_credit(return_X_s=True)


@pytest.fixture(scope="module")
def ten(german):
    X, sex = german
    return FairPCA(10, nested=True).fit(X, sensitive_features=sex)


def test_prefixes_are_the_fits_with_fewer_components(german, ten):
    X, sex = german
    for d in (1, 3, 7):
        fewer = FairPCA(d, nested=True).fit(X, sensitive_features=sex)
        assert np.allclose(fewer.components_, ten.components_[:d], atol=1e-9)
        assert np.allclose(fewer.prefix_objectives_, ten.prefix_objectives_[:d])
        assert np.allclose(fewer.explained_variance_, ten.explained_variance_[:d])


@pytest.mark.parametrize("relative", [False, True])
def test_prefix_objectives_are_the_largest_losses(german, relative):
    X, sex = german
    pca = FairPCA(6, nested=True, relative=relative).fit(X, sensitive_features=sex)
    for d in range(1, 7):
        losses = reconstruction_loss(X, pca.components_[:d], sensitive_features=sex, relative=relative)
        assert np.isclose(pca.prefix_objectives_[d - 1], losses.max)
    assert pca.objective_ == pca.prefix_objectives_[-1]
    assert pca.lower_bound_ == pca.prefix_lower_bounds_[-1]
    assert np.isclose(pca.duality_gap_, pca.objective_ - pca.lower_bound_)


def test_the_joint_bound_shows_what_nesting_costs(german, ten):
    X, sex = german
    joint = [FairPCA(d).fit(X, sensitive_features=sex) for d in range(1, 11)]
    assert np.allclose(ten.prefix_lower_bounds_, [pca.lower_bound_ for pca in joint])
    assert np.isclose(ten.prefix_objectives_[0], joint[0].objective_)  # one component: nothing to nest
    assert (ten.prefix_objectives_ >= [pca.objective_ - 1e-9 for pca in joint]).all()
    assert (ten.prefix_objectives_[1:] > [pca.objective_ + 1e-3 for pca in joint[1:]]).all()
    assert ten.converged_
    assert ten.relaxed_.objective == pytest.approx(ten.lower_bound_)


def test_each_component_is_the_best_given_the_earlier_ones(german, ten):
    """A descent over the complement from the component found, and from random directions, finds nothing better."""
    X, sex = german
    rng = np.random.default_rng(0)
    for j in (1, 4, 9):
        earlier = ten.components_[:j]

        def value(v, earlier=earlier):
            v = v - earlier.T @ (earlier @ v)
            both = np.vstack([earlier, v / np.linalg.norm(v)])
            return reconstruction_loss(X, both, sensitive_features=sex).max

        found = ten.prefix_objectives_[j]
        for start in (ten.components_[j], rng.normal(size=57)):
            here, v, length = value(start), start, 0.3
            for _ in range(60):
                candidate = v + length * rng.normal(size=57) / np.sqrt(57)
                there = value(candidate)
                v, here, length = (candidate, there, length) if there < here else (v, here, 0.85 * length)
            assert here >= found - 1e-9


def test_all_components(two_groups):
    """The last complements have two dimensions and one."""
    X, groups = two_groups
    pca = FairPCA(None, nested=True).fit(X, sensitive_features=groups)
    assert pca.n_components_ == 7
    assert pca.converged_
    assert np.allclose(pca.components_ @ pca.components_.T, np.eye(7), atol=1e-12)
    assert abs(pca.prefix_objectives_[-1]) < 1e-10


@pytest.mark.parametrize("p", [1, 2])
def test_few_features(rng, p):
    X, groups = rng.normal(size=(50, p)) * [3.0, 1.0][:p], np.arange(50) % 2
    X[groups == 1] = X[groups == 1][:, ::-1]
    pca = FairPCA(p, nested=True).fit(X, sensitive_features=groups)
    assert pca.components_.shape == (p, p)
    assert pca.converged_


def test_scores_may_be_correlated_and_the_covariance_allows_for_it(german, ten):
    X, _ = german
    covariance = np.cov(ten.transform(X).T)
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() > 0.01
    assert np.allclose(ten.explained_variance_, np.diag(covariance))
    assert np.allclose(ten.explained_variance_ratio_, np.diag(covariance) / np.cov(X.T).trace())
    model = ten.get_covariance()
    assert np.allclose(ten.components_ @ model @ ten.components_.T, covariance)
    assert np.isclose(np.trace(model), np.cov(X.T).trace())
    rest = np.linalg.svd(ten.components_)[2][10:]
    assert np.allclose(rest @ model @ rest.T, ten.noise_variance_ * np.eye(47))
    assert (np.abs(ten.components_).max(axis=1) == ten.components_.max(axis=1)).all()


def test_a_share_keeps_it_with_the_fewest_components(german):
    X, sex = german
    pca = FairPCA(0.5, nested=True).fit(X, sensitive_features=sex)
    assert explained_variance_ratio(X, pca, sensitive_features=sex).min >= 0.5
    assert explained_variance_ratio(X, pca.components_[:-1], sensitive_features=sex).min < 0.5


def test_chunks_equal_the_batch_and_moments_of_rows(german, ten):
    X, sex = german
    chunked = FairPCA(10, nested=True)
    for rows in (slice(0, 400), slice(400, 1000)):
        chunked.partial_fit(X[rows], sensitive_features=sex[rows])
    assert np.allclose(chunked.components_, ten.components_, atol=1e-8)
    assert np.allclose(chunked.get_covariance(), ten.get_covariance())


def test_few_rows_of_many_features(rng, monkeypatch):
    X, groups = rng.normal(size=(30, 60)) * np.linspace(2, 0.2, 60), np.arange(30) % 2
    X[groups == 1] = X[groups == 1][:, ::-1]
    direct = FairPCA(4, nested=True).fit(X, sensitive_features=groups)
    monkeypatch.setattr(_base, "MANY_FEATURES", 50)
    coordinates = FairPCA(4, nested=True).fit(X, sensitive_features=groups)
    assert coordinates._moments is None
    assert np.allclose(coordinates.components_, direct.components_, atol=1e-6)
    assert np.allclose(coordinates.get_covariance(), direct.get_covariance(), atol=1e-8)


@pytest.mark.filterwarnings("ignore:FairPCA stopped with a duality gap")  # a single direction cannot always serve three
def test_three_groups(german):
    X, sex = german
    groups = np.where(sex == "female", "female", np.where(np.arange(1000) % 2, "male1", "male2"))
    pca = FairPCA(4, nested=True).fit(X[:, :12], sensitive_features=groups)
    joint = FairPCA(4).fit(X[:, :12], sensitive_features=groups)
    assert (pca.prefix_lower_bounds_ <= pca.prefix_objectives_).all()
    assert np.isclose(pca.lower_bound_, joint.lower_bound_)
    assert np.isclose(pca.prefix_objectives_[0], FairPCA(1).fit(X[:, :12], sensitive_features=groups).objective_)


def test_a_step_without_certificate_is_reported():
    """Six groups on the plane of directions cannot be served equally by one line."""
    rng = np.random.default_rng(3)
    X = np.vstack([rng.normal(size=(50, 1)) * [np.cos(t), np.sin(t), 0.3] for t in np.linspace(0, np.pi, 7)[:-1]])
    with pytest.warns(ConvergenceWarning, match="Not every step converged"):
        pca = FairPCA(2, nested=True).fit(X, sensitive_features=np.repeat(range(6), 50))
    assert not pca.converged_


def test_saved_and_refitted(german, ten, tmp_path):
    X, sex = german
    after = load_model(save_model(ten, tmp_path / "model.npz"))
    assert np.array_equal(after.prefix_objectives_, ten.prefix_objectives_)
    assert np.array_equal(after.get_covariance(), ten.get_covariance())
    plain = after.set_params(nested=False).fit(X, sensitive_features=sex)
    assert not hasattr(plain, "prefix_objectives_")
    assert np.allclose(plain.get_covariance(), FairPCA(10).fit(X, sensitive_features=sex).get_covariance())
