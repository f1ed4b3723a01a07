"""Methods in which every group counts the same: FairPCA(criterion="mean") and AnchorPCA."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from fairpca import AnchorPCA, FairPCA
from fairpca.model_selection import compare
from fairpca.moments import GroupMoments


def projector(pca):
    return pca.components_.T @ pca.components_


@pytest.fixture
def four_groups(rng):
    """Groups of very different sizes that vary in different directions."""
    groups = np.repeat(["a", "b", "c", "d"], [400, 60, 30, 30])
    X = rng.normal(size=(520, 7)) @ rng.normal(size=(7, 7))
    for label in "abcd":
        X[groups == label] = X[groups == label] @ (np.eye(7) + 0.5 * rng.normal(size=(7, 7))) + rng.normal(size=7)
    return X, groups


@pytest.mark.parametrize("center", ["pooled", "group"])
@pytest.mark.parametrize("relative", [False, True])
def test_the_mean_criterion_is_pca_of_groups_of_equal_size(four_groups, center, relative):
    """Rows with weights by which all groups have the same size (or the same variance), about the same centre."""
    X, groups = four_groups
    found = FairPCA(3, criterion="mean", center=center, relative=relative).fit(X, sensitive_features=groups)
    rows = []
    for label in found.groups_:
        own = X[groups == label] - (X.mean(axis=0) if center == "pooled" else X[groups == label].mean(axis=0))
        rows.append(own / np.sqrt(len(own) * ((own**2).sum() / len(own) if relative else 1.0)))
    _, _, directions = np.linalg.svd(np.vstack(rows))
    np.testing.assert_allclose(projector(found), directions[:3].T @ directions[:3], atol=1e-10)
    values = found.group_errors_ / (found.group_variances_ if relative else 1.0)
    assert np.isclose(found.objective_, values.mean())
    assert 0 <= found.duality_gap_ < 1e-10 * found.objective_
    assert found.converged_
    np.testing.assert_allclose(found.group_weights_, 0.25)


def test_the_mean_criterion_does_not_depend_on_sizes(four_groups):
    X, groups = four_groups
    repeats = np.where(groups == "b", 7, 1)
    options = {"criterion": "mean", "center": "group"}
    once = FairPCA(2, **options).fit(X, sensitive_features=groups)
    often = FairPCA(2, **options).fit(np.repeat(X, repeats, axis=0), sensitive_features=np.repeat(groups, repeats))
    np.testing.assert_allclose(projector(once), projector(often), atol=1e-10)
    assert abs(projector(PCA(2).fit(X)) - projector(PCA(2).fit(np.repeat(X, repeats, axis=0)))).max() > 0.01


def test_a_share_in_every_group(four_groups):
    X, groups = four_groups
    found = FairPCA(0.8, criterion="mean").fit(X, sensitive_features=groups)
    kept = 1 - found.group_errors_ / found.group_variances_
    fewer = FairPCA(found.n_components_ - 1, criterion="mean").fit(X, sensitive_features=groups)
    assert kept.min() >= 0.8 > (1 - fewer.group_errors_ / fewer.group_variances_).min()


@pytest.mark.parametrize("solver", ["mw", "sdp"])
def test_the_mean_criterion_has_no_other_solver(four_groups, solver):
    with pytest.raises(ValueError, match="criterion='mean' has a closed form; use solver='auto'"):
        FairPCA(2, criterion="mean", solver=solver).fit(four_groups[0], sensitive_features=four_groups[1])


def own_projections(X, groups, d):
    """The mean of the groups' covariances, and of the projections on their own leading components."""
    parts = [np.cov(X[groups == label].T, ddof=0) for label in np.unique(groups)]
    bases = [np.linalg.svd(part)[0][:, :d] for part in parts]
    return np.mean(parts, axis=0), np.mean([basis @ basis.T for basis in bases], axis=0)


@pytest.mark.parametrize("penalty", [0, 0.01, 0.5, 20.0])
def test_anchor_pca_attains_the_largest_value(four_groups, penalty):
    X, groups = four_groups
    found = AnchorPCA(3, penalty=penalty).fit(X, sensitive_features=groups)
    covariance, agreement = own_projections(X, groups, 3)
    target = covariance + 2 * 4 * penalty * agreement
    largest = np.linalg.eigvalsh(target)[-3:].sum()
    assert np.isclose(np.sum(projector(found) * target), largest, rtol=1e-12)
    assert np.isclose(-found.objective_, largest)
    assert found.duality_gap_ <= 1e-12 * largest
    if penalty == 0:
        mean = FairPCA(3, criterion="mean", center="group").fit(X, sensitive_features=groups)
        np.testing.assert_allclose(projector(found), projector(mean), atol=1e-10)


def test_anchor_pca_agreement_of_each_component(four_groups):
    X, groups = four_groups
    found = AnchorPCA(3).fit(X, sensitive_features=groups)
    agreement = own_projections(X, groups, 3)[1]
    np.testing.assert_allclose(found.agreement_, np.diag(found.components_ @ agreement @ found.components_.T))
    assert np.isclose(-found.objective_, found.agreement_.sum())


def test_anchor_pca_prefers_what_all_groups_have_to_what_varies_most():
    """Axes 0 and 1 lead in all groups; each group has an axis of its own with much more variance."""
    covariances = np.array([np.diag([4.0, 3.0, 1.0, 1.0, 1.0])] * 3)
    for a in range(3):
        covariances[a, 2 + a, 2 + a] = 30.0
    moments = GroupMoments.from_covariances(covariances, [10_000] * 3)
    found = AnchorPCA(2, penalty=np.inf).fit_moments(moments)
    # Each group's own plane is its own axis and axis 0, so axis 0 agrees in all; then all three of the others tie.
    np.testing.assert_allclose(sorted(found.agreement_), [1 / 3, 1.0], atol=1e-12)
    found = AnchorPCA(3).fit_moments(moments)
    assert np.allclose(np.abs(found.components_[:, :2]).max(axis=0), 1.0)
    assert (abs(FairPCA(3, criterion="mean").fit_moments(moments).components_[:, 1]) < 1e-9).all()


def test_anchor_pca_takes_equal_agreement_in_order_of_variance():
    covariances = np.array([np.diag([4.0, 3.0, 2.0, 0.1]), np.diag([1.0, 3.0, 2.0, 0.1])])
    moments = GroupMoments.from_covariances(covariances, [50, 60])
    found = AnchorPCA(3).fit_moments(moments)  # both groups agree on the first three axes
    np.testing.assert_allclose(found.agreement_, 1.0)
    assert np.allclose(np.abs(found.components_).max(axis=1), 1.0)
    with pytest.raises(ValueError, match="penalty must be a number of at least 0"):
        AnchorPCA(2, penalty=-1.0).fit_moments(moments)


def test_compared_on_request(four_groups):
    X, groups = four_groups
    names = ["PCA", "FairPCA-mean", "AnchorPCA"]
    found = compare(X, sensitive_features=groups, n_components=2, methods=names, n_permutations=19)
    assert [one.method for one in found.results] == names
