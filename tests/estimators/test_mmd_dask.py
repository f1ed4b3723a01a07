"""MMDFairPCA on Dask collections: sums over chunks are those over rows, and the rows stay in their chunks."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca import MMDFairPCA
from fairpca._validation import check_groups, is_dask
from fairpca.estimators import _mmd_search, mmd_fair_pca
from fairpca.metrics import mmd2
from fairpca.moments import _dask_sample as lazy_moments
from fairpca.moments import group_moments
from fairpca.moments._dask_sample import DaskSample
from fairpca.moments._grouped_sample import GroupedSample
from fairpca.moments.fourier import FourierKernel
from fairpca.moments.kernel_means import exact_means, kernel_means
from fairpca.problems.mmd import all_pairs, pair_discrepancies

da = pytest.importorskip("dask.array", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")
callbacks = pytest.importorskip("dask.callbacks")

pytestmark = pytest.mark.filterwarnings("ignore:tolerance=.* is below:UserWarning")
N_ROWS, CHUNK = 350, 60


@pytest.fixture
def people(rng):
    """Two groups that differ in the mean of one feature and the spread of another; the last chunk holds one group."""
    groups = np.where(rng.random(N_ROWS) < 0.4, "a", "b")
    groups[-CHUNK:] = "b"
    X = rng.normal(size=(N_ROWS, 5)) * [1.5, 1.3, 1.2, 1.0, 0.5] + 3.0
    X[groups == "a", 0] += 1.0
    X[groups == "a", 1] *= 1.6
    return X, groups


def cut(values):
    return da.from_array(values, chunks=(CHUNK, *values.shape[1:]))


def both(X, groups, weights=None):
    """The same rows in memory and in chunks."""
    moments = group_moments(X, sensitive_features=groups, sample_weight=weights)
    memory = GroupedSample.from_rows(X, check_groups(groups, len(X)), weights, moments.pooled_mean)
    parts = DaskSample.from_dask(
        cut(X),
        cut(groups),
        None if weights is None else cut(weights),
        labels=moments.labels,
        centre=moments.pooled_mean,
    )
    return memory, parts


@pytest.mark.parametrize("weighted", [False, True])
def test_value_and_gradient_are_those_of_the_rows_in_memory(people, rng, weighted):
    X, groups = people
    memory, parts = both(X, groups, rng.integers(0, 3, len(X)).astype(float) if weighted else None)
    basis = np.linalg.qr(rng.normal(size=(5, 2)))[0]
    kernel = FourierKernel(1.4, 2, 50, rng)
    ours, theirs = kernel(parts, basis, True), kernel(memory, basis, True)
    assert np.abs(ours.values - theirs.values).max() < 1e-7  # the features are computed in single precision
    coefficients = np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert np.abs(ours.gradient(coefficients) - theirs.gradient(coefficients)).max() < 1e-7
    assert np.abs(kernel(parts, basis, False).values - ours.values).max() < 1e-15
    # Exact values, by pairs of chunks.
    assert np.abs(exact_means(parts, basis, 1.4) - kernel_means(memory, basis, 1.4).values).max() < 1e-14
    assert parts.counts.tolist() == memory.counts.tolist()
    assert np.allclose(parts.weight_squares, memory.weight_squares, rtol=1e-12)


def test_samples_hold_rows_of_every_group_and_all_of_them_if_asked(people, rng):
    X, groups = people
    memory, parts = both(X, groups)
    everything = parts.subsample(N_ROWS, rng)
    assert np.allclose(everything.rows, memory.rows, atol=1e-12)
    assert everything.starts.tolist() == memory.starts.tolist()
    few = parts.subsample(200, rng)
    assert few.labels == memory.labels
    assert np.allclose(few.counts, 200 * memory.counts / N_ROWS, atol=1)
    rows = {row.tobytes() for row in memory.rows.round(9)}
    assert {row.tobytes() for row in few.rows.round(9)} <= rows
    assert len({row.tobytes() for row in few.rows.round(9)}) == few.n_rows
    assert np.allclose(np.add.reduceat(few.weights, few.starts[:-1]), 1.0)
    scores, weights = parts.scores_at_random(np.eye(5)[:, :2], 100, rng)
    assert scores.shape == (100, 2)
    assert weights is None


class RowsSeen(callbacks.Callback):
    """The most rows that any task has held as a result."""

    def __init__(self):
        self.most = 0

    def _posttask(self, key, result, dsk, state, worker_id):
        for item in result if isinstance(result, list | tuple) else [result]:
            shape = getattr(getattr(item, "rows", item), "shape", ())
            if len(shape) == 2 and shape[1] in (2, 5):  # rows, or scores
                self.most = max(self.most, shape[0])


def few_gathered(monkeypatch, rows=130):
    """As if the data were large: little is gathered, and the search starts on a small sample."""
    monkeypatch.setattr(lazy_moments, "GATHERED_ROWS", rows)
    monkeypatch.setattr(_mmd_search, "_FIRST_ROWS", rows)
    monkeypatch.setattr(_mmd_search, "_CURVATURE_ROWS", rows)
    monkeypatch.setattr(mmd_fair_pca, "_BANDWIDTH_ROWS", rows)
    monkeypatch.setattr(_mmd_search, "_FEATURES", 150)


def test_fit_by_sums_over_chunks_with_rows_never_gathered(people, monkeypatch):
    X, groups = people
    few_gathered(monkeypatch)
    with RowsSeen() as seen:
        fitted = MMDFairPCA(2, tolerance=0.02).fit(cut(X), sensitive_features=cut(groups))
    assert 0 < seen.most <= CHUNK
    assert fitted.converged_
    assert 0.9 * 0.02 <= fitted.mmd2_ <= 0.02
    # Every figure describes the returned components on all rows.
    assert np.isclose(
        fitted.mmd2_, mmd2(fitted.transform(X), sensitive_features=groups, bandwidth=fitted.bandwidth_), rtol=1e-9
    )
    share = np.var((X - X.mean(axis=0)) @ fitted.components_.T, axis=0).sum() / X.var(axis=0).sum()
    assert np.isclose(fitted.explained_variance_ratio_.sum(), share, rtol=1e-9)
    memory = MMDFairPCA(2, tolerance=0.02, bandwidth=fitted.bandwidth_).fit(X, sensitive_features=groups)
    assert abs(fitted.objective_ - memory.objective_) < 0.01
    assert abs(fitted.random_level_ - memory.random_level_) < 1e-3
    assert fitted.n_samples_seen_ == N_ROWS
    scores = fitted.transform(cut(X))
    assert is_dask(scores)
    assert np.allclose(scores.compute(), fitted.transform(X))


@pytest.mark.parametrize("form", ["array", "frame", "column name"])
def test_small_collections_give_the_fit_in_memory(people, form, monkeypatch):
    X, groups = people
    pca = MMDFairPCA(1, tolerance=0.02)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(sex=groups)
    lazy = dd.from_pandas(frame, npartitions=3)
    if form == "array":
        pca.fit(cut(X), sensitive_features=cut(groups))
    elif form == "frame":
        pca.fit(lazy.drop(columns="sex"), sensitive_features=lazy["sex"])
    else:
        pca.fit(lazy, sensitive_features="sex")
        assert pca.feature_names_in_.tolist() == list("abcde")
    expected = MMDFairPCA(1, tolerance=0.02).fit(X, sensitive_features=groups)
    assert np.allclose(pca.bandwidth_, expected.bandwidth_, rtol=1e-10)
    assert np.allclose(pca.components_, expected.components_, atol=1e-4)
    assert np.isclose(pca.mmd2_, expected.mmd2_, rtol=1e-4)


@pytest.mark.parametrize("notion", ["equal_opportunity", "equalized_odds"])
def test_notions_that_need_a_label(people, rng, notion, monkeypatch):
    X, groups = people
    y = np.r_[np.zeros(70, int), rng.integers(0, 2, N_ROWS - 70)]  # the first chunk has one value only
    options = {"tolerance": 0.05, "notion": notion}
    ours = MMDFairPCA(1, **options).fit(cut(X), cut(y), sensitive_features=cut(groups))
    theirs = MMDFairPCA(1, **options).fit(X, y, sensitive_features=groups)
    assert ours.pairs_ == theirs.pairs_
    assert np.allclose(ours.bandwidth_, theirs.bandwidth_, rtol=1e-10)
    assert np.allclose(ours.pair_mmd2_, theirs.pair_mmd2_, rtol=1e-3, atol=1e-5)
    with pytest.raises(ValueError, match="give a binary y"):
        MMDFairPCA(2, notion=notion).fit(cut(X), sensitive_features=cut(groups))


def test_groups_weights_and_label_in_memory_beside_chunks(people, rng, monkeypatch):
    X, groups = people
    y = rng.integers(0, 2, N_ROWS)
    options = {"tolerance": 0.05, "notion": "equal_opportunity", "max_iter": 10}
    given = {"sensitive_features": {"sex": groups.tolist()}, "sample_weight": 2.0}
    ours = MMDFairPCA(1, **options).fit(cut(X), y.tolist(), **given)
    theirs = MMDFairPCA(1, **options).fit(X, y, **given)
    assert ours.pairs_ == theirs.pairs_
    assert ours.group_counts_.tolist() == theirs.group_counts_.tolist()
    assert np.allclose(ours.bandwidth_, theirs.bandwidth_, rtol=1e-10)
    assert np.allclose(ours.pair_mmd2_, theirs.pair_mmd2_, rtol=1e-3, atol=1e-5)


def test_three_groups_of_which_chunks_lack_some(rng):
    groups = np.repeat([0, 1, 2], [200, 150, 100])
    X = rng.normal(size=(450, 4)) + 0.5 * groups[:, None] * [1, 0, 0, 0]
    memory, parts = both(X, groups)
    basis = np.linalg.qr(rng.normal(size=(4, 2)))[0]
    pairs = all_pairs(3)
    ours, theirs = exact_means(parts, basis, 1.0), kernel_means(memory, basis, 1.0).values
    assert np.abs(pair_discrepancies(ours, pairs) - pair_discrepancies(theirs, pairs)).max() < 1e-14
    kernel = FourierKernel(1.0, 2, 40, rng)
    fields = kernel(memory, basis, True).fields
    assert np.abs(kernel(parts, basis, True).fields - fields).max() < 1e-7 * np.abs(fields).max()


def test_errors(people, monkeypatch):
    X, groups = people
    with pytest.raises(ValueError, match="required"):
        MMDFairPCA(2).fit(cut(X))
    with pytest.raises(TypeError, match=r"y='label' is a single string.*give the column itself"):
        MMDFairPCA(2, notion="equalized_odds").fit(cut(X), "label", sensitive_features=groups)
    few_gathered(monkeypatch)
    with pytest.raises(ValueError, match="'exact' needs the rows in memory"):
        MMDFairPCA(2, approximation="exact").fit(cut(X), sensitive_features=cut(groups))


def test_on_a_cluster(people, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    few_gathered(monkeypatch)
    X, groups = people
    options = {"processes": False, "n_workers": 1, "threads_per_worker": 2, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        fitted = MMDFairPCA(1, tolerance=0.02, bandwidth="median", max_iter=10).fit(
            cut(X), sensitive_features=cut(groups)
        )
    assert np.isclose(
        fitted.mmd2_, mmd2(fitted.transform(X), sensitive_features=groups, bandwidth=fitted.bandwidth_), rtol=1e-9
    )


LOST_WORKER = """
import json, os, signal
import dask.array as da, numpy as np
from dask.distributed import Client, LocalCluster
from fairpca import MMDFairPCA
from fairpca.estimators import _mmd_search, mmd_fair_pca
from fairpca.metrics import mmd2
from fairpca.moments import _dask_sample as lazy_moments

def main():
    lazy_moments.GATHERED_ROWS = 130
    mmd_fair_pca._BANDWIDTH_ROWS = _mmd_search._FIRST_ROWS = _mmd_search._CURVATURE_ROWS = 130
    _mmd_search._FEATURES = 150
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, 400)
    X = rng.normal(size=(400, 4)) * [1.5, 1.3, 1.1, 1.0]
    X[groups == 0, 0] += 1.0
    lazy, codes = da.from_array(X, chunks=(100, 4)), da.from_array(groups, chunks=100)
    options = {"tolerance": 0.02, "bandwidth": "median", "max_iter": 3, "random_state": 0}
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        calm, steps = [], []
        undisturbed = MMDFairPCA(1, **options, callback=calm.append).fit(lazy, sensitive_features=codes)
        victim = next(iter(cluster.workers.values())).pid

        def lose_a_worker(state):
            steps.append(state)
            if len(steps) == len(calm) - 1:  # well into the last stage, which sums over all chunks
                os.kill(victim, signal.SIGKILL)

        fitted = MMDFairPCA(1, **options, callback=lose_a_worker).fit(lazy, sensitive_features=codes)
    print(json.dumps({
        "steps": [len(calm), len(steps)],
        "components": float(np.abs(fitted.components_ - undisturbed.components_).max()),
        "mmd2": abs(fitted.mmd2_ / mmd2(fitted.transform(X), sensitive_features=groups, bandwidth=fitted) - 1),
    }))

if __name__ == "__main__":
    main()
"""


def test_a_worker_killed_between_two_steps(figures_of):
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    figures = figures_of(LOST_WORKER)
    calm, disturbed = figures["steps"]
    assert calm == disturbed > 2
    assert figures["components"] < 1e-5  # features are single precision
    assert figures["mmd2"] < 1e-9
