"""MMDFairPCA: the constraint holds on the returned components, and the variance is what it should be."""

import csv
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from fairpca import MMDFairPCA, ParityPCA
from fairpca.datasets import make_same_moments
from fairpca.metrics import mmd2, mmd2_test
from reproductions.datasets import load_splits, make_projected_gaussians

#: Small samples cannot show less than their random level; that warning has a test of its own.
pytestmark = [
    pytest.mark.filterwarnings("ignore:tolerance=.* is below:UserWarning"),
    pytest.mark.filterwarnings("ignore:X contains the sensitive feature:UserWarning"),  # the authors' files do
]


@pytest.fixture(scope="module")
def shifted():
    """Three groups that differ in two of seven features; the rest is common."""
    rng = np.random.default_rng(0)
    groups = np.arange(450) % 3
    X = rng.normal(size=(450, 7)) * np.array([1, 1, 1.5, 1.2, 1, 0.8, 0.5])
    X[:, 0] += 2.0 * (groups == 1)
    X[:, 1] *= 1 + groups
    return X, groups


@pytest.fixture(scope="module")
def fitted(shifted):
    X, groups = shifted
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MMDFairPCA(2, tolerance=0.02).fit(X, sensitive_features=groups)


def test_constraint_is_active_and_reported_exactly(fitted, shifted):
    X, groups = shifted
    assert fitted.converged_
    assert 0.98 * 0.02 <= fitted.mmd2_ <= 0.02
    assert fitted.mmd2_ == fitted.pair_mmd2_.max()
    assert len(fitted.pairs_) == 3
    by_hand = [
        mmd2(
            fitted.transform(X)[np.isin(groups, pair)],
            sensitive_features=groups[np.isin(groups, pair)],
            bandwidth=fitted.bandwidth_,
        )
        for pair in fitted.pairs_
    ]
    assert np.abs(by_hand - fitted.pair_mmd2_).max() < 1e-12


def test_public_metric_gives_the_fitted_value(shifted):
    X, groups = shifted
    pca = MMDFairPCA(2).fit(X, sensitive_features=groups)
    assert mmd2(pca.transform(X), sensitive_features=groups, bandwidth=pca) == pytest.approx(pca.mmd2_, abs=1e-12)
    assert isinstance(
        mmd2_test(X, sensitive_features=groups, n_permutations=9).bandwidth, tuple
    )  # "multiscale" here, too


def test_verbose_says_each_step(shifted, capsys):
    X, groups = shifted
    pca = MMDFairPCA(1, tolerance=0.05, verbose=1).fit(X, sensitive_features=groups)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == pca.n_iter_
    assert lines[0].startswith("step 1 (path): variance 0.")
    assert "MMD^2 / tolerance" in lines[-1]


def test_attributes_describe_the_returned_components(fitted, shifted):
    X, groups = shifted
    V = fitted.components_.T
    assert np.abs(V.T @ V - np.eye(2)).max() < 1e-12
    scores = fitted.transform(X)
    variances = scores.var(axis=0)
    assert fitted.explained_variance_ratio_ == pytest.approx(variances / X.var(axis=0).sum())
    assert variances[0] >= variances[1]
    assert abs(np.cov(scores.T)[0, 1]) < 1e-12
    assert fitted.objective_ == pytest.approx(-fitted.explained_variance_ratio_.sum())
    assert fitted.group_counts_.tolist() == [150, 150, 150]
    centred = X - X.mean(axis=0)
    residual = ((centred - centred @ V @ V.T) ** 2).sum(axis=1)
    assert fitted.group_errors_ == pytest.approx([residual[groups == a].mean() for a in range(3)])


def test_first_order_optimality(fitted, shifted):
    """No small rotation that keeps the largest MMD^2 within the tolerance gains variance worth mentioning."""
    X, groups = shifted
    rng = np.random.default_rng(1)
    covariance = np.cov(X.T)
    V = fitted.components_.T
    best = np.trace(V.T @ covariance @ V)
    gains = []
    for size in (0.003, 0.01, 0.03):
        for _ in range(60):
            moved = np.linalg.qr(V + size * rng.normal(size=V.shape))[0]
            if mmd2(X @ moved, sensitive_features=groups, bandwidth=fitted.bandwidth_) <= fitted.mmd2_:
                gains.append(np.trace(moved.T @ covariance @ moved) / best - 1)
    assert len(gains) > 10
    assert max(gains) < 1e-4


def test_against_brute_force_on_directions():
    """d = 1 in the plane: all directions can be tried."""
    rng = np.random.default_rng(4)
    groups = np.repeat([0, 1], [90, 60])
    X = rng.normal(size=(150, 2)) * [1.5, 1.0]
    X[:, 0] += 1.2 * groups
    X[:, 1] += 0.3 * groups
    pca = MMDFairPCA(1, tolerance=0.03, bandwidth=1.0).fit(X, sensitive_features=groups)
    angles = np.linspace(0, np.pi, 1501)
    scores = X @ np.array([np.cos(angles), np.sin(angles)])
    feasible = np.array(
        [mmd2(column[:, None], sensitive_features=groups, bandwidth=1.0) <= 0.03 for column in scores.T]
    )
    variances = np.where(feasible, scores.var(axis=0) / X.var(axis=0).sum(), 0.0)
    found = pca.explained_variance_ratio_.sum()
    assert pca.mmd2_ <= 0.03
    # The feasible arc has two ends, each a local optimum; ours must be one of them.
    ends = [variances[:-1][feasible[:-1] & ~feasible[1:]], variances[1:][feasible[1:] & ~feasible[:-1]]]
    assert min(abs(found / end - 1) for end in np.concatenate(ends)) < 0.005
    assert found > 0.97 * variances.max()


def test_ordinary_pca_where_it_meets_the_tolerance(shifted):
    X, groups = shifted
    pca = MMDFairPCA(2, tolerance=2.0).fit(X, sensitive_features=groups)
    assert np.abs(np.abs(pca.components_) - np.abs(PCA(2).fit(X).components_)).max() < 1e-8
    assert pca.penalty_ == 0.0


def test_smaller_tolerances_cost_variance(shifted):
    X, groups = shifted
    variances = [
        MMDFairPCA(2, tolerance=tolerance).fit(X, sensitive_features=groups).explained_variance_ratio_.sum()
        for tolerance in (0.2, 0.03, 0.01)
    ]
    assert (np.diff(variances) < 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_figure_1_same_moments_are_told_apart_only_here(seed):
    X, groups = make_same_moments(300, random_state=seed)
    pca = MMDFairPCA(2, tolerance=1e-3, bandwidth="median").fit(X, sensitive_features=groups)
    # The tolerance of the means is about their sampling error; with none at all, parity removes a direction of chance.
    parity = ParityPCA(2, mean_tolerance=0.1).fit(X, sensitive_features=groups)
    for scores in (PCA(2).fit_transform(X), parity.transform(X)):
        assert mmd2(scores, sensitive_features=groups, bandwidth=pca.bandwidth_) > 0.05
    assert pca.mmd2_ <= 1e-3


def test_where_no_plane_meets_the_tolerance_the_lowest_is_returned():
    X, groups = make_same_moments(300, random_state=4)
    with pytest.warns(ConvergenceWarning):
        pca = MMDFairPCA(2, tolerance=1e-3).fit(X, sensitive_features=groups)
    assert not pca.converged_
    planes = [np.linalg.svd(normal[None])[2][1:].T for normal in _half_sphere(400)]
    lowest = min(mmd2(X @ plane, sensitive_features=groups, bandwidth=pca.bandwidth_) for plane in planes)
    assert 1e-3 < pca.mmd2_ <= lowest


def _half_sphere(count):
    """Points spread evenly over directions in three dimensions (a spiral)."""
    height = (np.arange(count) + 0.5) / count
    angle = np.pi * (1 + np.sqrt(5)) * np.arange(count)
    radius = np.sqrt(1 - height**2)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle), height])


def test_paper_method_is_feasible_and_keeps_less():
    X, groups = make_projected_gaussians(12, n_samples=240, n_latent=100, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    paper = MMDFairPCA(2, tolerance=1e-3, solver="repms").fit(X, sensitive_features=groups)
    ours = MMDFairPCA(2, tolerance=1e-3).fit(X, sensitive_features=groups)
    assert paper.converged_
    assert ours.converged_
    assert ours.mmd2_ >= 0.98e-3
    assert ours.explained_variance_ratio_.sum() > paper.explained_variance_ratio_.sum()


@pytest.fixture(scope="module")
def labelled():
    """The groups differ in feature 0 among negatives and in feature 1 among positives."""
    rng = np.random.default_rng(2)
    groups, y = np.arange(600) % 2, (np.arange(600) // 2) % 2
    X = rng.normal(size=(600, 6))
    X[:, 0] = 2 * X[:, 0] + 2.0 * groups * (y == 0)
    X[:, 1] = 2 * X[:, 1] + 2.0 * groups * (y == 1)
    return X, y, groups


class TestNotions:
    def test_equal_opportunity_looks_at_positives_only(self, labelled):
        X, y, groups = labelled
        pca = MMDFairPCA(2, tolerance=0.02, notion="equal_opportunity").fit(X, y, sensitive_features=groups)
        scores = pca.transform(X)
        of = lambda rows: mmd2(scores[rows], sensitive_features=groups[rows], bandwidth=pca.bandwidth_)  # noqa: E731
        assert pca.mmd2_ == pytest.approx(of(y == 1), abs=1e-12)
        assert pca.mmd2_ <= 0.02
        assert of(y == 0) > 0.05
        assert pca.pairs_ == [((1, 0), (1, 1))]

    def test_equalized_odds_bounds_both(self, labelled):
        X, y, groups = labelled
        pca = MMDFairPCA(2, tolerance=0.02, notion="equalized_odds").fit(X, y, sensitive_features=groups)
        scores = pca.transform(X)
        values = [mmd2(scores[y == v], sensitive_features=groups[y == v], bandwidth=pca.bandwidth_) for v in (0, 1)]
        assert pca.pair_mmd2_ == pytest.approx(values, abs=1e-12)
        assert max(values) <= 0.02

    def test_they_need_a_binary_label(self, labelled):
        X, y, groups = labelled
        with pytest.raises(ValueError, match="give a binary y"):
            MMDFairPCA(notion="equal_opportunity").fit(X, sensitive_features=groups)
        with pytest.raises(ValueError, match="it has 3 different values"):
            MMDFairPCA(notion="equalized_odds").fit(X, np.arange(600) % 3, sensitive_features=groups)
        with pytest.raises(ValueError, match="one label per row"):
            MMDFairPCA(notion="equalized_odds").fit(X, y[:-1], sensitive_features=groups)
        with pytest.raises(ValueError, match=r"no row with \(y, group\) = \(1, 1\)"):
            MMDFairPCA(notion="equal_opportunity").fit(X, y * (1 - groups), sensitive_features=groups)


def test_unreachable_tolerance_is_said():
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 3)) + 3 * groups[:, None] * [1.0, 0, 0] + 2 * groups[:, None] * [0, 1.0, 0]
    X[:, 2] *= 1 + 4 * groups
    with pytest.warns(ConvergenceWarning, match=r"no projection with MMD\^2 <= tolerance=1e-06"):
        pca = MMDFairPCA(2, tolerance=1e-6).fit(X, sensitive_features=groups)
    assert not pca.converged_
    assert np.isnan(pca.penalty_)  # of a constraint that cannot be met
    # The least violation: all planes, by their normals.
    normals = rng.normal(size=(400, 3))
    values = []
    for normal in normals:
        plane = np.linalg.svd(normal[None])[2][1:].T
        values.append(mmd2(X @ plane, sensitive_features=groups, bandwidth=pca.bandwidth_))
    assert pca.mmd2_ <= min(values)


def test_warns_below_the_random_level():
    X, groups = make_same_moments(120, random_state=0)
    with pytest.warns(UserWarning, match=r"tolerance=0\.001 is below .* random groups") as caught:
        pca = MMDFairPCA(2, tolerance=1e-3, bandwidth="median").fit(X, sensitive_features=groups)
    assert caught[0].filename == __file__
    assert pca.random_level_ > 1e-3


def test_fourier_features_meet_the_exact_tolerance(monkeypatch):
    import fairpca.estimators._mmd_search as module

    monkeypatch.setattr(module, "_FIRST_ROWS", 400)  # so that the subsamples do grow
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 2, 1200)
    X = rng.normal(size=(1200, 8)) * np.linspace(2, 0.5, 8)
    X[:, 0] += 1.5 * groups
    X[:, 2] *= 1 + groups
    fitted = {
        approximation: MMDFairPCA(2, tolerance=3e-3, approximation=approximation).fit(X, sensitive_features=groups)
        for approximation in ("exact", "fourier")
    }
    for pca in fitted.values():
        assert pca.converged_
        assert pca.mmd2_ == pytest.approx(
            mmd2(pca.transform(X), sensitive_features=groups, bandwidth=pca.bandwidth_), abs=1e-12
        )
        assert 0.9 * 3e-3 <= pca.mmd2_ <= 3e-3
    exact, fourier = (pca.explained_variance_ratio_.sum() for pca in fitted.values())
    assert fourier == pytest.approx(exact, rel=0.02)


def test_weights_count_like_repeated_rows():
    X, groups = make_same_moments(90, random_state=2)
    repeats = np.random.default_rng(0).integers(0, 3, 90)
    options = {"tolerance": 0.02, "bandwidth": "median"}
    weighted = MMDFairPCA(2, **options).fit(X, sensitive_features=groups, sample_weight=repeats)
    repeated = MMDFairPCA(2, **options).fit(
        np.repeat(X, repeats, axis=0), sensitive_features=np.repeat(groups, repeats)
    )
    assert weighted.mean_ == pytest.approx(repeated.mean_)
    assert weighted.bandwidth_ == pytest.approx(repeated.bandwidth_)
    assert weighted.mmd2_ == pytest.approx(repeated.mmd2_, rel=0.02)
    assert weighted.explained_variance_ratio_ == pytest.approx(repeated.explained_variance_ratio_, rel=5e-3)


def test_same_result_every_time_and_sparse_rows_too():
    X, groups = make_same_moments(150, random_state=1)
    first, second = (MMDFairPCA(2, tolerance=0.02).fit(X, sensitive_features=groups) for _ in range(2))
    assert (first.components_ == second.components_).all()
    thin = MMDFairPCA(2, tolerance=0.02).fit(sparse.csr_matrix(X), sensitive_features=groups)
    assert thin.explained_variance_ratio_.sum() == pytest.approx(first.explained_variance_ratio_.sum(), rel=1e-3)


CALLED_BACK = [
    {},
    {"tolerance": 0.02},
    {"approximation": "fourier"},
    {"solver": "repms", "tolerance": 0.02},
    {"n_components": 0.34, "tolerance": 0.05},
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("options", CALLED_BACK, ids=str)
def test_callback_reports_and_stops(options):
    X, groups = make_same_moments(150, random_state=1)
    options = {"n_components": 1, **options}
    news = []
    pca = MMDFairPCA(callback=news.append, **options).fit(X, sensitive_features=groups)
    assert [state["n_iter"] for state in news] == list(range(1, len(news) + 1))
    assert pca.n_iter_ == len(news)
    for last in {1, 2, len(news) // 2, len(news)}:
        short = []
        stopped = MMDFairPCA(callback=lambda state, short=short, last=last: short.append(state) or len(short) == last)
        stopped.set_params(**options).fit(X, sensitive_features=groups)
        assert len(short) == last
        assert stopped.n_iter_ == last
        assert stopped.n_oracle_calls_ <= pca.n_oracle_calls_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"tolerance": 0.0}, "tolerance=0.0 must be a positive number"),
        ({"tolerance": 1e-80}, "tolerance=1e-80 is less than the rounding error of MMD.2; use at least 1e-15"),
        ({"tolerance": "small"}, "tolerance='small' must be a positive number or 'auto'"),
        ({"bandwidth": -1}, "bandwidth=-1 must be a positive number or 'median'"),
        ({"bandwidth": "mean"}, "bandwidth='mean' must be"),
        ({"bandwidth": (1e200, 1.0)}, r"bandwidth=\(1e\+200, 1.0\): the widest is more than 1e\+06 times as wide"),
        ({"bandwidth": (1.0, 0.0)}, r"bandwidth=\(1.0, 0.0\) must be .* a tuple of positive numbers"),
        ({"notion": "parity"}, "notion='parity' is unknown"),
        ({"approximation": "nystrom"}, "approximation='nystrom' is unknown"),
        ({"solver": "dual"}, "solver='dual' is unknown"),
        ({"max_iter": 0}, "max_iter=0 must be a positive integer"),
        ({"n_components": 4}, "n_components=4 must lie between"),
    ],
)
def test_bad_parameters(parameters, message):
    X, groups = make_same_moments(40, random_state=0)
    with pytest.raises(ValueError, match=message):
        MMDFairPCA(**{"n_components": 2, **parameters}).fit(X, sensitive_features=groups)


@pytest.mark.parametrize("bandwidth", [1e-10, 1e-310])
def test_a_bandwidth_that_no_two_rows_share_is_refused(shifted, bandwidth):
    X, groups = shifted
    with pytest.raises(ValueError, match=f"bandwidth={bandwidth:g} is too small next to the distances"):
        MMDFairPCA(bandwidth=bandwidth).fit(X, sensitive_features=groups)


@pytest.mark.parametrize(
    ("first", "error", "message"),
    [
        (np.nan, ValueError, "y contains missing values"),
        (None, ValueError, "y contains missing values"),
        ("one", TypeError, "y mixes labels that have no order"),
    ],
)
def test_labels_without_an_order_are_refused(first, error, message):
    X, groups = make_same_moments(40, random_state=0)
    y = [first, *(np.arange(1, len(X)) % 2).tolist()]
    y = np.array(y, dtype=None if first is np.nan else object)
    for labels in (y, y.astype(object)):
        with pytest.raises(error, match=message):
            MMDFairPCA(2, notion="equalized_odds").fit(X, labels, sensitive_features=groups)


def test_callback_must_be_callable():
    X, groups = make_same_moments(40, random_state=0)
    with pytest.raises(TypeError, match="callback=3 must be a function"):
        MMDFairPCA(2, callback=3).fit(X, sensitive_features=groups)


def authors(folder, dataset, d, parameter):
    with (folder / "lee2022" / "authors_solutions.csv").open() as file:
        return {
            int(row["split"]): (float(row["var_train"]), float(row["mmd2_train"]))
            for row in csv.DictReader(file)
            if (row["dataset"], row["n_components"], row["parameter"]) == (dataset, str(d), parameter)
        }


def test_bandwidth_rule_reproduces_the_authors_figures(shared_data):
    """MMD^2 of ordinary PCA on COMPAS, as recomputed from the authors' files."""
    saved = authors(shared_data, "COMPAS", 10, "")
    split = next(load_splits(shared_data / "lee2022" / "datasets" / "COMPAS", splits=[0]))
    pca = MMDFairPCA(10, tolerance=0.5, bandwidth="median").fit(split.X_train, sensitive_features=split.sensitive_train)
    assert pca.explained_variance_ratio_.sum() == pytest.approx(saved[0][0], rel=1e-7)
    assert pca.mmd2_ == pytest.approx(saved[0][1], rel=1e-6)


@pytest.mark.parametrize(
    ("dataset", "d", "parameter", "split"), [("German", 2, "tau=1e-3", 1), ("German", 10, "tau=1e-3", 3)]
)
def test_at_least_the_variance_of_the_authors_within_tau(shared_data, dataset, d, parameter, split):
    variance, discrepancy = authors(shared_data, dataset, d, parameter)[split]
    data = next(load_splits(shared_data / "lee2022" / "datasets" / dataset, splits=[split]))
    pca = MMDFairPCA(d, tolerance=1e-3, bandwidth="median").fit(data.X_train, sensitive_features=data.sensitive_train)
    assert discrepancy <= 1e-3
    assert pca.mmd2_ <= 1e-3
    assert pca.explained_variance_ratio_.sum() >= variance


@pytest.fixture(scope="module")
def automatic(shifted):
    X, groups = shifted
    unequal = np.flatnonzero((groups < 2) | (np.arange(450) % 4 == 0))  # sizes 150, 150 and 37
    X, groups = X[unequal], groups[unequal]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the default draws no warning
        return MMDFairPCA(2).fit(X, sensitive_features=groups), X, groups


def test_automatic_tolerance_is_the_level_of_random_groups_at_the_solution(automatic):
    pca, X, groups = automatic
    scores = pca.transform(X)
    assert pca.converged_
    for pair, tolerance, value in zip(pca.pairs_, pca.pair_tolerance_, pca.pair_mmd2_, strict=True):
        rows = np.isin(groups, pair)
        level = mmd2_test(
            scores[rows], sensitive_features=groups[rows], bandwidth=pca.bandwidth_, n_permutations=1
        ).mean
        assert tolerance == pytest.approx(level, rel=1e-9)
        assert value <= tolerance
    assert pca.tolerance_ == pca.pair_tolerance_.max()
    # The pairs with the small group may differ more; the constraint that binds is used up.
    assert pca.pair_tolerance_[0] < 0.7 * pca.pair_tolerance_[1]
    assert (pca.pair_mmd2_ / pca.pair_tolerance_).max() > 0.98


def test_a_number_keeps_its_meaning(fitted):
    assert fitted.tolerance_ == 0.02
    assert fitted.pair_tolerance_.tolist() == [0.02] * 3


def test_automatic_tolerance_in_each_stratum(shifted):
    X, groups = shifted
    y = (np.arange(450) % 5 == 0).astype(int)  # 90 rows with 1, 360 with 0
    pca = MMDFairPCA(1, notion="equalized_odds").fit(X, y, sensitive_features=groups)
    assert pca.converged_
    of_value = {pair[0][0]: tolerance for pair, tolerance in zip(pca.pairs_, pca.pair_tolerance_, strict=True)}
    assert of_value[1] > 2.5 * of_value[0]  # a quarter of the rows


def test_ordinary_pca_within_the_automatic_tolerance():
    """Where the groups do not differ at all, nothing has to be given up."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 4)) * [3, 2, 1, 0.5]
    groups = np.repeat([0, 1], 150)
    X = np.vstack([X[groups == 0], X[groups == 0] + 1e-3])
    pca = MMDFairPCA(2).fit(X, sensitive_features=groups)
    assert pca.penalty_ == 0.0
    assert pca.tolerance_ == pytest.approx(pca.random_level_, rel=1e-9)


def test_automatic_tolerance_that_no_projection_meets_is_said():
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 2)) + 3 * groups[:, None]
    with pytest.warns(ConvergenceWarning, match=r"tolerance='auto' \(0\.0\d+, the level of random groups\)"):
        pca = MMDFairPCA(2).fit(X, sensitive_features=groups)
    assert not pca.converged_
    assert pca.mmd2_ > pca.tolerance_


def test_automatic_tolerance_with_fourier_features(monkeypatch):
    import fairpca.estimators._mmd_search as module

    monkeypatch.setattr(module, "_FIRST_ROWS", 300)
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 2, 600)
    X = rng.normal(size=(600, 4)) * np.linspace(2, 0.5, 4)
    X[:, 0] += 1.5 * groups
    X[:, 2] *= 1 + groups
    exact, fourier = (
        MMDFairPCA(1, approximation=approximation).fit(X, sensitive_features=groups)
        for approximation in ("exact", "fourier")
    )
    for pca in (exact, fourier):
        assert pca.converged_
        assert pca.tolerance_ == pytest.approx(pca.random_level_, rel=0.01)
        assert pca.mmd2_ == pytest.approx(
            mmd2(pca.transform(X), sensitive_features=groups, bandwidth=pca.bandwidth_), abs=1e-12
        )
        assert pca.mmd2_ > 0.9 * pca.tolerance_
    shares = [pca.explained_variance_ratio_.sum() for pca in (exact, fourier)]
    assert shares[1] == pytest.approx(shares[0], rel=0.02)


def test_several_scales_see_what_the_median_distance_does_not():
    """A grid in one group, the same places blurred in the other: alike at a distance."""
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 300)
    places = 3.0 * np.tile(np.arange(-2, 3), 120)
    X = np.column_stack([places + 1.35 * rng.uniform(-1, 1, 600) * groups, rng.normal(size=(600, 2))])
    wide, fine = (MMDFairPCA(1, bandwidth=b).fit(X, sensitive_features=groups) for b in ("median", "multiscale"))
    assert isinstance(fine.bandwidth_, tuple)
    assert fine.bandwidth_ == pytest.approx([wide.bandwidth_ / 2**s for s in range(4)])
    assert abs(wide.components_[0, 0]) > 0.99  # ordinary PCA: the kernel sees no difference
    assert abs(fine.components_[0, 0]) < 0.9
    assert fine.mmd2_ <= fine.tolerance_
