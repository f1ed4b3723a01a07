"""ParityPCA: defining properties, brute force in three dimensions, certificates, the reference solver."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from fairpca import LeacePCA, ParityPCA
from fairpca.moments import group_moments


def make_groups(rng, sizes, p, shift=1.0):
    """Groups that differ in mean and covariance."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    X = np.empty((len(groups), p))
    for a in range(len(sizes)):
        mixing = rng.normal(size=(p, p)) * np.linspace(1.5, 0.5, p)
        X[groups == a] = rng.normal(size=(sizes[a], p)) @ mixing + shift * rng.normal(size=p)
    return X, groups


def gaps_and_variance(X, groups, basis):
    """Mean difference, covariance difference and captured variance, from the rows."""
    scores = X @ basis
    parts = [scores[groups == label] for label in np.unique(groups)]
    means = np.array([part.mean(axis=0) for part in parts])
    covariances = np.array([np.atleast_2d(np.cov(part.T, bias=True)) for part in parts])
    first, second = np.triu_indices(len(parts), 1)
    mean = np.linalg.norm(means[first] - means[second], axis=1).max()
    covariance = np.linalg.norm(covariances[first] - covariances[second], 2, axis=(1, 2)).max()
    return mean, covariance, scores.var(axis=0).sum()


def planes_and_lines(d, count=400):
    """A dense set of lines (d = 1) or planes (d = 2) in three dimensions, as frames of shape (m, 3, d)."""
    turn = np.pi * (1 + 5**0.5) * np.arange(count * count // 8)
    height = (np.arange(len(turn)) + 0.5) / len(turn)
    radius = np.sqrt(1 - height**2)
    lines = np.stack([radius * np.cos(turn), radius * np.sin(turn), height], axis=1)
    if d == 1:
        return lines[:, :, None]
    other = np.where(np.abs(lines[:, :1]) < 0.9, np.eye(3)[0], np.eye(3)[1])
    first = np.cross(lines, other)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    return np.stack([first, np.cross(lines, first)], axis=2)


def grid(X, groups, d, penalty):
    """Mean difference and objective on a dense set of subspaces of three-dimensional space."""
    frames = planes_and_lines(d)
    labels = np.unique(groups)
    means = np.array([X[groups == a].mean(axis=0) for a in labels])
    covariances = np.array([np.cov(X[groups == a].T, bias=True) for a in labels])
    first, second = np.triu_indices(len(labels), 1)
    mean = np.linalg.norm((means[first] - means[second]) @ frames, axis=2).max(axis=1)
    projected = np.einsum("mpi,jpq,mqk->mjik", frames, covariances[first] - covariances[second], frames)
    covariance = np.abs(np.linalg.eigvalsh(projected)).max(axis=(1, 2))
    captured = np.einsum("mpi,pq,mqi->m", frames, np.cov(X.T, bias=True), frames)
    return mean, penalty * covariance - captured


@pytest.mark.parametrize("n_groups", [2, 3, 4])
def test_projected_means_are_equal(rng, n_groups):
    X, groups = make_groups(rng, [70, 50, 40, 30][:n_groups], 8)
    pca = ParityPCA(3).fit(X, sensitive_features=groups)
    mean, covariance, captured = gaps_and_variance(X, groups, pca.components_.T)
    assert mean < 1e-12
    assert pca.mean_difference_ < 1e-12
    assert pca.covariance_difference_ == pytest.approx(covariance, rel=1e-10)
    assert pca.objective_ == pytest.approx(-captured, rel=1e-12)
    assert pca.duality_gap_ <= 1e-11 * captured
    assert pca.converged_


@pytest.mark.parametrize("cls", [ParityPCA, LeacePCA])
def test_rounding_variance_has_a_bound(cls):
    """All that the rows vary along is excluded: what is left is rounding, and no reason for an infinite gap."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = (rng.standard_normal((60, 2)) @ rng.standard_normal((2, 5))) * 10.0 ** rng.integers(-6, 7)
        groups = np.repeat(["a", "b", "c"], 20)
        for d in (1, 2, 3):
            pca = cls(d).fit(X, sensitive_features=groups)
            assert pca.duality_gap_ <= 1e-12 * X.var(axis=0).sum()
            assert pca.converged_


def shuffled_copy(rng):
    """Two groups of the same rows in another order: their means differ by rounding alone."""
    half = rng.normal(size=(100, 4)) * [4, 3, 2, 1]
    return np.vstack([half, half[rng.permutation(100)]]), np.repeat([0, 1], 100)


@pytest.mark.parametrize("origin", [0.0, 1e4, 1e8])
@pytest.mark.parametrize("tolerance", [0.0, 1e-20])
def test_rounding_of_equal_means_is_not_a_direction(rng, origin, tolerance):
    X, groups = shuffled_copy(rng)
    X = X + origin
    for d in (2, 4):
        pca = ParityPCA(d, mean_tolerance=tolerance).fit(X, sensitive_features=groups)
        plain = PCA(d).fit(X - X.mean(axis=0))  # centred first: scikit-learn's PCA loses digits far from the origin
        assert pca.explained_variance_.sum() == pytest.approx(plain.explained_variance_.sum(), rel=1e-9)
    order = rng.permutation(200)
    again = ParityPCA(4, mean_tolerance=tolerance).fit(X[order], sensitive_features=groups[order])
    assert np.allclose(again.components_, pca.components_, atol=1e-6)


def test_small_mean_differences_are_still_removed(rng):
    X, groups = shuffled_copy(rng)
    X[groups == 1] += 1e-9
    pca = ParityPCA(3).fit(X + 100.0, sensitive_features=groups)
    assert np.abs(pca.components_.sum(axis=1)).max() < 1e-3  # orthogonal to the shift, as far as 1e-9 / 100 shows it
    with pytest.raises(ValueError, match="only 3 directions"):
        ParityPCA(4).fit(X + 100.0, sensitive_features=groups)


@pytest.mark.parametrize("share", [1 - 1e-3, 1 - 1e-7, 1 - 1e-9, 1 - 1e-12, 1.0])
@pytest.mark.parametrize(("rank", "d"), [(1, 1), (1, 3), (2, 2), (2, 3)])
def test_tolerance_just_below_the_difference_in_few_dimensions(rng, share, rank, d):
    """PCA holds the whole difference of means, so that no small turn lowers it to first order."""
    X = rng.normal(size=(60, rank)) @ rng.normal(size=(rank, 4))
    groups = rng.integers(0, 2, 60)
    difference = np.linalg.norm(X[groups == 1].mean(axis=0) - X[groups == 0].mean(axis=0))
    pca = ParityPCA(d, mean_tolerance=share * difference).fit(X, sensitive_features=groups)
    assert pca.converged_
    assert pca.mean_difference_ <= share * difference * (1 + 1e-9)
    # Turning one direction by the angle whose cosine is the share keeps at least its square.
    assert pca.explained_variance_ratio_.sum() >= share**2 - 1e-9


def test_no_mean_difference_gives_ordinary_pca(rng):
    half = rng.normal(size=(60, 5)) * np.arange(1, 6)
    X, groups = np.vstack([half, half]), np.repeat([0, 1], 60)
    pca = ParityPCA(2).fit(X, sensitive_features=groups)
    assert pca.explained_variance_ == pytest.approx(PCA(2).fit(X).explained_variance_, rel=1e-10)


def test_tolerance_between_parity_and_ordinary_pca(rng):
    X, groups = make_groups(rng, [80, 60], 7)
    strict = ParityPCA(2).fit(X, sensitive_features=groups)
    ordinary = PCA(2).fit(X)
    free = gaps_and_variance(X, groups, ordinary.components_.T)[0]
    previous = strict.objective_
    for share in (0.01, 0.1, 0.5, 0.9):
        pca = ParityPCA(2, mean_tolerance=share * free).fit(X, sensitive_features=groups)
        assert gaps_and_variance(X, groups, pca.components_.T)[0] <= share * free * (1 + 1e-12)
        assert pca.mean_difference_ == pytest.approx(share * free, rel=1e-6)  # the limit binds
        assert pca.objective_ < previous
        assert pca.duality_gap_ <= 1e-8 * X.var(axis=0).sum()
        previous = pca.objective_
    pca = ParityPCA(2, mean_tolerance=1.001 * free).fit(X, sensitive_features=groups)
    assert pca.explained_variance_ == pytest.approx(ordinary.explained_variance_, rel=1e-10)


@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("penalty", [None, 0.5, 5.0])
@pytest.mark.parametrize("share", [0.2, 0.6])
def test_against_brute_force(rng, n_groups, d, penalty, share):
    X, groups = make_groups(rng, [50, 40, 30][:n_groups], 3)
    total = X.var(axis=0).sum()
    mean, objective = grid(X, groups, d, penalty or 0.0)
    tolerance = (1 - share) * mean.min() + share * mean.max()
    best = objective[mean <= tolerance].min()
    pca = ParityPCA(d, mean_tolerance=tolerance, covariance_penalty=penalty)
    pca.fit(X, sensitive_features=groups)
    assert pca.objective_ <= best + 1e-6 * total
    assert pca.objective_ >= best - 0.01 * (1 + (penalty or 0.0)) * total  # the grid is that fine
    assert pca.mean_difference_ <= tolerance * (1 + 1e-9)
    assert pca.lower_bound_ <= pca.objective_


@pytest.mark.parametrize("tolerance", [0.0, 0.4])
def test_one_component_is_certified(rng, tolerance):
    X, groups = make_groups(rng, [80, 60], 9)
    pca = ParityPCA(1, mean_tolerance=tolerance, covariance_penalty=1.0).fit(X, sensitive_features=groups)
    assert pca.duality_gap_ <= 1e-5 * X.var(axis=0).sum()


@pytest.mark.parametrize(("n_groups", "tolerance"), [(2, 0.0), (3, 0.0), (2, 0.3), (3, 0.3)])
def test_covariance_penalty(rng, n_groups, tolerance):
    X, groups = make_groups(rng, [90, 70, 60][:n_groups], 8)
    previous = ParityPCA(3, mean_tolerance=tolerance).fit(X, sensitive_features=groups)
    for penalty in (0.3, 2.0):
        pca = ParityPCA(3, mean_tolerance=tolerance, covariance_penalty=penalty)
        pca.fit(X, sensitive_features=groups)
        mean, covariance, captured = gaps_and_variance(X, groups, pca.components_.T)
        assert pca.converged_ == (pca.duality_gap_ <= 1e-6 * X.var(axis=0).sum())  # "stationary" proves nothing
        assert mean <= tolerance * (1 + 1e-9) + 1e-12
        assert pca.covariance_difference_ == pytest.approx(covariance, rel=1e-9, abs=1e-9)
        assert pca.objective_ == pytest.approx(penalty * covariance - captured, rel=1e-9)
        assert pca.lower_bound_ <= pca.objective_
        # Optimal values for growing penalties: less difference, and less variance.
        assert covariance <= previous.covariance_difference_ + 1e-5
        assert pca.explained_variance_.sum() <= previous.explained_variance_.sum() + 1e-5
        previous = pca


def test_small_changes_do_not_improve_it(rng):
    X, groups = make_groups(rng, [90, 70], 10)
    penalty, total = 1.0, X.var(axis=0).sum()
    pca = ParityPCA(3, covariance_penalty=penalty).fit(X, sensitive_features=groups)
    direction = X[groups == 0].mean(axis=0) - X[groups == 1].mean(axis=0)
    direction /= np.linalg.norm(direction)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(100):
            step = rng.normal(size=(10, 3))
            moved = pca.components_.T + size * (step - np.outer(direction, direction @ step))
            _, covariance, captured = gaps_and_variance(X, groups, np.linalg.qr(moved)[0])
            assert penalty * covariance - captured >= pca.objective_ - 2e-6 * total


@pytest.mark.parametrize(("d", "tolerance", "penalty"), [(2, 0.0, 1.0), (3, 0.0, 0.3), (2, 0.3, 1.0), (2, 0.3, None)])
def test_no_worse_than_the_semidefinite_program(rng, d, tolerance, penalty):
    pytest.importorskip("cvxpy")
    X, groups = make_groups(rng, [60, 40], 7)
    parameters = {"mean_tolerance": tolerance, "covariance_penalty": penalty}
    ours = ParityPCA(d, **parameters).fit(X, sensitive_features=groups)
    reference = ParityPCA(d, **parameters, solver="sdp").fit(X, sensitive_features=groups)
    assert ours.mean_difference_ <= tolerance * (1 + 1e-9) + 1e-12
    # The relaxation limits the means of P, which is more than its d leading eigenvectors: only where these keep the
    # limit too are the objectives comparable.
    if tolerance == 0:
        assert reference.mean_difference_ < 1e-12
    if reference.mean_difference_ <= tolerance + 1e-9:
        assert ours.objective_ <= reference.objective_ + 1e-6 * X.var(axis=0).sum()
    mean, covariance, captured = gaps_and_variance(X, groups, reference.components_.T)
    assert reference.objective_ == pytest.approx((penalty or 0.0) * covariance - captured, rel=1e-9)
    assert reference.mean_difference_ == pytest.approx(mean, abs=1e-9)


def test_semidefinite_program_without_its_packages(rng, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cvxpy", None)
    X, groups = make_groups(rng, [30, 30], 4)
    with pytest.raises(ImportError, match=r"fairpca\[sdp\]"):
        ParityPCA(1, solver="sdp").fit(X, sensitive_features=groups)


@pytest.mark.parametrize("parameters", [{}, {"mean_tolerance": 0.3}, {"covariance_penalty": 1.0}])
def test_chunks_in_any_order(rng, parameters):
    X, groups = make_groups(rng, [60, 50], 6)
    whole = ParityPCA(2, **parameters).fit(X, sensitive_features=groups)
    chunked = ParityPCA(2, **parameters)
    for rows in (slice(80, 110), slice(0, 40), slice(40, 80)):  # the first two hold a single group
        chunked.partial_fit(X[rows], sensitive_features=groups[rows])
    assert chunked.objective_ == pytest.approx(whole.objective_, rel=1e-6)
    assert chunked.mean_difference_ <= parameters.get("mean_tolerance", 0.0) * (1 + 1e-9) + 1e-12
    assert np.allclose(chunked.components_, whole.components_, atol=1e-3)


def test_one_group_so_far_is_ordinary_pca(rng):
    X = rng.normal(size=(40, 5)) * np.arange(1, 6)
    pca = ParityPCA(2, mean_tolerance=0.1, covariance_penalty=1.0).partial_fit(X, sensitive_features=np.zeros(40))
    assert pca.explained_variance_ == pytest.approx(PCA(2).fit(X).explained_variance_, rel=1e-10)
    assert pca.mean_difference_ == 0
    assert pca.covariance_difference_ == 0


@pytest.mark.parametrize("factor", [1e-4, 1e4])
def test_penalty_has_no_units(rng, factor):
    X, groups = make_groups(rng, [60, 50], 6)
    pca = ParityPCA(2, mean_tolerance=0.3, covariance_penalty=1.0).fit(X, sensitive_features=groups)
    scaled = ParityPCA(2, mean_tolerance=0.3 * factor, covariance_penalty=1.0).fit(
        factor * X, sensitive_features=groups
    )
    assert scaled.objective_ == pytest.approx(factor**2 * pca.objective_, rel=1e-5)


def test_weights_count_like_repeated_rows(rng):
    X, groups = make_groups(rng, [40, 30], 5)
    counts = rng.integers(1, 4, 70)
    weighted = ParityPCA(2).fit(X, sensitive_features=groups, sample_weight=counts)
    repeated = ParityPCA(2).fit(np.repeat(X, counts, axis=0), sensitive_features=np.repeat(groups, counts))
    assert np.allclose(weighted.components_, repeated.components_, atol=1e-10)


def test_result_is_reproducible(rng):
    X, groups = make_groups(rng, [60, 50], 6)
    fits = [ParityPCA(2, covariance_penalty=1.0).fit(X, sensitive_features=groups) for _ in range(2)]
    assert np.array_equal(fits[0].components_, fits[1].components_)


def test_moments_made_elsewhere(rng):
    X, groups = make_groups(rng, [60, 50], 6)
    pca = ParityPCA(2).fit_moments(group_moments(X, sensitive_features=groups))
    assert np.allclose(pca.components_, ParityPCA(2).fit(X, sensitive_features=groups).components_)


def test_many_dimensions(rng):
    X, groups = make_groups(rng, [40, 30], 5)
    with pytest.raises(ValueError, match="only 4 directions of the 5 feature"):
        ParityPCA(5).fit(X, sensitive_features=groups)
    distance = np.linalg.norm(X[groups == 0].mean(axis=0) - X[groups == 1].mean(axis=0))
    with pytest.raises(ValueError, match="mean_tolerance is too small for n_components=5"):
        ParityPCA(5, mean_tolerance=0.9 * distance).fit(X, sensitive_features=groups)
    pca = ParityPCA(5, mean_tolerance=1.01 * distance).fit(X, sensitive_features=groups)
    assert pca.explained_variance_ratio_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"mean_tolerance": -0.1}, ValueError, "mean_tolerance must be a number of at least 0, got -0.1"),
        ({"mean_tolerance": "small"}, TypeError, "mean_tolerance must be a number"),
        ({"covariance_penalty": np.inf}, ValueError, "covariance_penalty must be a number"),
        ({"solver": "mosek"}, ValueError, "solver='mosek' is unknown"),
        ({"max_iter": 0}, ValueError, "max_iter must be an integer of at least 1"),
        ({"tol": -1.0}, ValueError, "tol must be a number"),
    ],
)
def test_bad_parameters(rng, parameters, error, words):
    X, groups = make_groups(rng, [20, 20], 4)
    with pytest.raises(error, match=words):
        ParityPCA(1, **parameters).fit(X, sensitive_features=groups)


def test_early_end_is_announced(rng):
    X, groups = make_groups(rng, [60, 50], 8)
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
        pca = ParityPCA(3, covariance_penalty=1.0, max_iter=1).fit(X, sensitive_features=groups)
    assert not pca.converged_


@pytest.mark.parametrize("tolerance", [1e-4, 1e-7, 1e-10, 1e-14])
@pytest.mark.parametrize("n_groups", [2, 3])
def test_a_tolerance_of_nearly_nothing_is_nearly_the_closed_form(tolerance, n_groups):
    rng = np.random.default_rng(3)
    groups = np.arange(300) % n_groups
    X = rng.normal(size=(300, 8)) * np.linspace(3, 1, 8) + 0.4 * groups[:, None] * rng.normal(size=8)
    exact = ParityPCA(3).fit(X, sensitive_features=groups)
    close = ParityPCA(3, mean_tolerance=tolerance).fit(X, sensitive_features=groups)
    means = [close.transform(X[groups == a]).mean(axis=0) for a in range(n_groups)]
    gaps = [np.linalg.norm(one - other) for one in means for other in means]
    assert max(gaps) <= tolerance * (1 + 1e-6) + 1e-12
    assert close.explained_variance_ratio_.sum() >= exact.explained_variance_ratio_.sum() - 1e-9
    assert close.explained_variance_ratio_.sum() <= exact.explained_variance_ratio_.sum() + 10 * tolerance
    assert close.lower_bound_ <= close.objective_ + 1e-9


def test_steps_are_printed_on_request_only(rng, capsys):
    X, groups = rng.normal(size=(90, 6)), np.arange(90) % 3
    X[groups == 1] *= np.linspace(0.5, 2.0, 6)
    for options in ({"mean_tolerance": 0.1}, {"covariance_penalty": 0.5}):
        quiet = ParityPCA(2, **options)
        loud = ParityPCA(2, verbose=1, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            quiet.fit(X, sensitive_features=groups)
            assert not capsys.readouterr().out
            loud.fit(X, sensitive_features=groups)
        lines = capsys.readouterr().out.splitlines()
        assert sum("value" in line and "bound" in line and "gap" in line for line in lines) >= 1
        assert loud.objective_ == quiet.objective_
