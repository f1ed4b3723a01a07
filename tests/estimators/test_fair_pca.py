"""FairPCA: the properties that define it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from fairpca import FairPCA, RobustFairPCA
from fairpca.datasets import load_german_credit
from fairpca.metrics import reconstruction_error, reconstruction_loss
from fairpca.moments import GroupMoments, group_moments
from fairpca.problems.balanced import CRITERIA


@pytest.fixture(scope="module")
def german():
    return load_german_credit(return_X_s=True)


@pytest.mark.parametrize("center", ["pooled", "group"])
@pytest.mark.parametrize("d", [1, 2, 5, 20, 50])
def test_two_groups_share_the_loss(german, d, center):
    X, sex = german
    pca = FairPCA(d, center=center).fit(X, sensitive_features=sex)
    total = X.shape[1]
    assert abs(np.diff(pca.group_losses_)[0]) < 1e-10 * total
    assert 0 <= pca.duality_gap_ < 1e-10 * total
    assert pca.lower_bound_ <= pca.objective_
    assert np.isclose(pca.objective_, pca.group_losses_.max())
    assert pca.n_oracle_calls_ <= 2 + 2 + 15  # two group optima, met again by the search, then at most 15
    assert pca.converged_


@pytest.mark.parametrize("criterion", [*CRITERIA, "mean"])
def test_reported_values_describe_the_returned_components(german, criterion):
    X, sex = german
    pca = FairPCA(4, criterion=criterion).fit(X, sensitive_features=sex)
    errors = reconstruction_error(X, pca, sensitive_features=sex)
    losses = reconstruction_loss(X, pca, sensitive_features=sex)
    assert np.allclose(pca.group_errors_, list(errors.values()))
    assert np.allclose(pca.group_losses_, list(losses.values()))
    totals = np.array([np.square(X[sex == label]).sum() / (sex == label).sum() for label in pca.groups_])
    captured = totals - pca.group_errors_
    expected = {
        "loss": pca.group_losses_.max(),
        "error": pca.group_errors_.max(),
        "variance": -captured.min(),
        "nash": -np.log(captured).sum(),
        "mean": pca.group_errors_.mean(),
    }[criterion]
    assert np.isclose(pca.objective_, expected)
    if criterion == "nash":
        assert np.allclose(pca.group_weights_ * captured, 1.0, atol=1e-6)
    else:
        assert np.isclose(pca.group_weights_.sum(), 1.0)


@pytest.mark.parametrize("criterion", [*CRITERIA, "mean"])
def test_the_result_is_a_weighted_pca(german, criterion):
    """The components span the leading eigenvectors of sum_a w_a M_a, the promise of the dual."""
    X, sex = german
    pca = FairPCA(4, criterion=criterion).fit(X, sensitive_features=sex)
    X = X - X.mean(axis=0)
    moment = sum(
        weight * X[sex == label].T @ X[sex == label] / (sex == label).sum()
        for weight, label in zip(pca.group_weights_, pca.groups_, strict=True)
    )
    best = np.linalg.eigvalsh(moment)[-4:].sum()
    kept = np.trace(pca.components_ @ moment @ pca.components_.T)
    assert np.isclose(kept, best, rtol=1e-9)


def test_identical_groups_give_ordinary_pca(rng):
    half = rng.normal(size=(100, 6)) * [3, 2.5, 2, 1.5, 1, 0.5]
    X, groups = np.vstack([half, half]), np.repeat([0, 1], 100)
    pca = FairPCA(3).fit(X, sensitive_features=groups)
    ordinary = PCA(3).fit(X)
    assert np.allclose(np.abs(pca.components_ @ ordinary.components_.T), np.eye(3), atol=1e-7)
    assert np.allclose(pca.explained_variance_, ordinary.explained_variance_)
    assert np.allclose(pca.explained_variance_ratio_, ordinary.explained_variance_ratio_)
    assert np.isclose(pca.noise_variance_, ordinary.noise_variance_)
    assert np.allclose(pca.get_covariance(), ordinary.get_covariance())
    assert np.allclose(pca.group_losses_, 0, atol=1e-12)


def test_never_worse_than_ordinary_pca(german):
    X, sex = german
    for d in (1, 3, 10):
        ordinary = reconstruction_loss(X, PCA(d, svd_solver="full").fit(X), sensitive_features=sex)
        assert FairPCA(d).fit(X, sensitive_features=sex).objective_ < ordinary.max


@pytest.mark.parametrize("criterion", CRITERIA)
def test_rotation_of_the_data_rotates_the_components(german, rng, criterion):
    X, sex = german
    X = X[:, :12]
    rotation = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    plain = FairPCA(3, criterion=criterion).fit(X, sensitive_features=sex)
    turned = FairPCA(3, criterion=criterion).fit(X @ rotation, sensitive_features=sex)
    assert np.isclose(plain.objective_, turned.objective_)
    first, second = plain.components_ @ rotation, turned.components_
    assert np.allclose(first.T @ first, second.T @ second, atol=1e-5)


def test_scaling_the_data_scales_the_attributes(german):
    X, sex = german
    plain = FairPCA(3).fit(X, sensitive_features=sex)
    for factor in (1e-9, 1e9):
        scaled = FairPCA(3).fit(X * factor, sensitive_features=sex)
        assert np.allclose(scaled.components_, plain.components_, atol=1e-7)
        assert np.isclose(scaled.objective_, plain.objective_ * factor**2)


def test_solvers_agree(german):
    X, sex = german
    X = X[:, :15]
    exact = FairPCA(3).fit(X, sensitive_features=sex)
    for solver, tol in (("mw", 1e-9), ("sdp", 1e-6)):
        other = FairPCA(3, solver=solver, tol=tol).fit(X, sensitive_features=sex)
        assert np.isclose(other.objective_, exact.objective_, atol=1e-5)
        assert np.isclose(other.lower_bound_, exact.lower_bound_, atol=1e-5)
        assert other.objective_ >= exact.lower_bound_ - 1e-9


def test_group_centring_changes_the_moments_only(two_groups):
    X, groups = two_groups
    pooled = FairPCA(2).fit(X, sensitive_features=groups)
    grouped = FairPCA(2, center="group").fit(X, sensitive_features=groups)
    assert np.allclose(grouped.mean_, X.mean(axis=0))
    centred = X.copy()
    for label in "ab":
        centred[groups == label] -= centred[groups == label].mean(axis=0)
    expected = FairPCA(2).fit(centred, sensitive_features=groups)
    assert np.allclose(grouped.group_losses_, expected.group_losses_)
    assert not np.allclose(grouped.group_losses_, pooled.group_losses_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_relaxed_solution_reconstructs_with_its_own_errors():
    """Algorithm 1's shrinkage: the embedding of the higher-rank solution has the relaxation's errors."""
    for seed in range(10):
        generator = np.random.default_rng(seed)
        X = generator.normal(size=(240, 6))
        groups = np.repeat(range(6), 40)
        for a in range(6):
            X[groups == a] *= np.exp(2 * generator.random(6))
        pca = FairPCA(2).fit(X, sensitive_features=groups)
        if pca.relaxed_.rank > 2:
            break
    else:
        pytest.fail("no case with extra rank found")
    relaxed = pca.relaxed_
    assert np.isclose(relaxed.eigenvalues.sum(), 2)
    assert relaxed.objective <= pca.objective_ + 1e-9
    rows = relaxed.inverse_transform(relaxed.transform(X))
    errors = np.array([np.square(X - rows)[groups == a].sum(axis=1).mean() for a in range(6)])
    best_errors = pca.group_errors_ - pca.group_losses_
    assert np.allclose(errors - best_errors, relaxed.group_losses)
    assert np.isclose(relaxed.group_losses.max(), relaxed.objective)


def test_honest_gap_and_warning_when_extra_rank_is_needed():
    """Six groups on the plane of directions cannot be served equally by one line."""
    rng = np.random.default_rng(3)
    X = np.vstack([rng.normal(size=(50, 1)) * [np.cos(t), np.sin(t), 0.3] for t in np.linspace(0, np.pi, 7)[:-1]])
    groups = np.repeat(range(6), 50)
    with pytest.warns(ConvergenceWarning, match=r"gap of .* relaxed_"):
        pca = FairPCA(1).fit(X, sensitive_features=groups)
    assert not pca.converged_
    assert pca.duality_gap_ > 1e-3
    assert pca.components_.shape == (1, 3)
    assert pca.relaxed_.rank > 1
    assert np.isclose(pca.relaxed_.objective, pca.lower_bound_, rtol=1e-5)


def test_mw_says_when_it_runs_out_of_steps(german):
    X, sex = german
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
        pca = FairPCA(3, solver="mw", max_iter=3).fit(X, sensitive_features=sex)
    assert pca.n_iter_ == 3
    assert pca.duality_gap_ > 0


def test_mw_does_not_do_nash(german):
    X, sex = german
    with pytest.raises(ValueError, match="use solver='dual'"):
        FairPCA(3, solver="mw", criterion="nash").fit(X, sensitive_features=sex)


def test_results_are_reproducible(german):
    X, sex = german
    groups = [f"{label}{i % 3}" for i, label in enumerate(sex)]
    first, second = (FairPCA(3).fit(X, sensitive_features=groups) for _ in range(2))
    assert np.array_equal(first.components_, second.components_)


def test_constant_data(rng):
    pca = FairPCA(1).fit(np.ones((10, 3)), sensitive_features=np.arange(10) % 2)
    assert pca.objective_ == 0
    assert np.array_equal(pca.explained_variance_ratio_, [0.0])


def test_directions_of_which_the_deciding_group_has_nothing_serve_the_other(rng):
    """Three rows span three directions at most; the other components are the other group's orthogonal to them."""
    X = np.vstack([rng.normal(size=(3, 8)) * 0.3, rng.normal(size=(200, 8)) * np.linspace(5, 1, 8)])
    X -= X.mean(axis=0)
    groups = np.repeat([0, 1], [3, 200])
    with pytest.warns(UserWarning, match="Groups smaller than"):
        pca = FairPCA(5, criterion="variance").fit(X, sensitive_features=groups)
    own = np.linalg.svd(X[:3])[2][:3]
    remainder = X[3:] - X[3:] @ own.T @ own
    left_over = (np.linalg.svd(remainder, compute_uv=False)[2:] ** 2).sum() / 200
    assert pca.group_errors_[0] < 1e-6
    assert np.isclose(pca.group_errors_[1], left_over, rtol=1e-5)
    assert pca.components_.shape == (5, 8)


@pytest.mark.parametrize("solver", ["auto", "mw", "sdp"])
def test_as_many_components_as_asked_for_from_data_of_lower_rank(rng, solver):
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 6))
    pca = FairPCA(4, solver=solver).fit(X, sensitive_features=np.arange(60) % 2)
    assert pca.components_.shape == (4, 6)
    assert np.allclose(pca.components_ @ pca.components_.T, np.eye(4), atol=1e-10)
    assert np.allclose(pca.group_errors_, 0.0, atol=1e-10)


def test_nash_needs_variance_in_every_group(rng):
    X = rng.normal(size=(30, 3))
    X[:10] = 1.0
    with pytest.raises(ValueError, match="needs variance in every group; the rows of 'a'"):
        FairPCA(1, criterion="nash", center="group").fit(X, sensitive_features=np.repeat(["a", "b"], [10, 20]))


def constant_up_to_rounding(rng):
    """A group whose rows are equal, but whose computed scatter is not exactly zero."""
    X = rng.normal(size=(40, 3)) + 100.0
    X[:7] = [0.1, 1 / 3, 1e3]
    return X, np.repeat(["a", "b"], [7, 33])


def test_nash_recognises_a_group_that_is_constant_up_to_rounding(rng):
    X, groups = constant_up_to_rounding(rng)
    moments = group_moments(X, sensitive_features=groups)
    shaken = GroupMoments(moments.labels, moments.counts, moments.means, moments.scatters + 1e-26 * np.eye(3))
    with pytest.raises(ValueError, match="the rows of 'a' have none"):
        FairPCA(2, criterion="nash", center="group").fit_moments(shaken)


def test_partial_fit_keeps_a_chunk_with_a_single_row_of_a_group(rng):
    X, groups = rng.normal(size=(40, 3)), np.repeat(["a", "b"], 20)
    chunks = [np.r_[0, 20:30], np.r_[1:10, 30:40], np.r_[10:20]]
    pca = FairPCA(1, criterion="nash", center="group")
    for rows in chunks:
        pca.partial_fit(X[rows], sensitive_features=groups[rows])
    whole = FairPCA(1, criterion="nash", center="group").fit(X, sensitive_features=groups)
    assert pca.n_samples_seen_ == 40
    assert np.allclose(pca.components_, whole.components_, atol=1e-6)


def test_a_smooth_search_needs_few_eigenproblems():
    X, sex = load_german_credit(return_X_s=True)
    pca = FairPCA(5).fit(X, sensitive_features=sex)
    assert pca.n_oracle_calls_ <= 8
    assert pca.duality_gap_ <= 1e-11 * np.square(X).mean(axis=0).sum()


def test_certify_tightens_the_bound():
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(3), 40)
    rows = np.concatenate([rng.normal(size=(40, 3)) @ rng.normal(size=(3, 3)) for _ in range(3)])
    with pytest.warns(ConvergenceWarning, match="certify=True"):
        plain = FairPCA(1).fit(rows, sensitive_features=groups)
    half = 0.5 * plain.duality_gap_
    certified = FairPCA(1, certify=1000, tol=half / rows.var(axis=0).sum()).fit(rows, sensitive_features=groups)
    assert certified.objective_ <= plain.objective_ + 1e-9
    assert plain.lower_bound_ < certified.lower_bound_ <= certified.objective_
    assert certified.duality_gap_ <= half * (1 + 1e-9)
    assert certified.converged_


@pytest.mark.parametrize(("certify", "error"), [("yes", TypeError), (2.5, TypeError), (-1, ValueError)])
def test_certify_is_checked(certify, error):
    with pytest.raises(error, match="certify"):
        FairPCA(1, certify=certify).fit(np.eye(4), sensitive_features=[0, 0, 1, 1])


def test_certify_does_not_apply_to_nash_welfare():
    with pytest.raises(ValueError, match="nash"):
        FairPCA(1, criterion="nash", certify=True).fit(np.eye(4), sensitive_features=[0, 0, 1, 1])


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("estimator", [FairPCA, RobustFairPCA])
def test_steps_are_printed_on_request_only(rng, capsys, estimator, k):
    X, groups = rng.normal(size=(90, 6)), np.arange(90) % k
    X[groups == 1] *= np.linspace(0.5, 2.0, 6)
    quiet = estimator(2).fit(X, sensitive_features=groups)
    assert not capsys.readouterr().out
    loud = estimator(2, verbose=1).fit(X, sensitive_features=groups)
    lines = capsys.readouterr().out.splitlines()
    assert sum("value" in line and "bound" in line and "gap" in line for line in lines) >= 1
    assert loud.objective_ == quiet.objective_
