"""Dask collections give what arrays give, on threads and on a cluster that loses a worker."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca import FairPCA
from fairpca.moments import group_moments
from fairpca.moments.dask import is_dask, moments_from_dask

da = pytest.importorskip("dask.array", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")


@pytest.fixture
def people(rng):
    X = rng.normal(size=(1000, 6)) @ rng.normal(size=(6, 6)) + 2
    sex = np.where(np.arange(1000) < 400, "a", "b")  # some chunks hold one group only
    sex[-3:] = "c"  # and one appears late
    return X, sex


def frame_of(X, sex):
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    frame["sex"] = sex
    return frame


def assert_same(first, second):
    assert first.labels == second.labels
    assert np.array_equal(first.counts, second.counts)
    assert np.allclose(first.means, second.means, rtol=1e-12)
    assert np.allclose(first.scatters, second.scatters, rtol=1e-10)


@pytest.mark.parametrize("chunks", [(1000, 6), (37, 6), (130, 2)])
def test_arrays(people, chunks):
    X, sex = people
    lazy = da.from_array(X, chunks=chunks)
    expected = group_moments(X, sex)
    assert_same(moments_from_dask(lazy, da.from_array(sex, chunks=250)), expected)
    assert_same(moments_from_dask(lazy, sex), expected)


def test_weights(people, rng):
    X, sex = people
    weight = rng.integers(0, 3, len(X)).astype(float)
    weight[:100] = 0.0  # a chunk without any
    weight[-1] = 1.0  # a chunk of one row, of weight one
    lazy = da.from_array(X, chunks=((100,) * 9 + (99, 1), (6,)))
    expected = group_moments(X, sex, sample_weight=weight)
    assert_same(moments_from_dask(lazy, da.from_array(sex, chunks=100), da.from_array(weight, chunks=100)), expected)


@pytest.mark.parametrize("by_name", [True, False])
def test_data_frames_and_lazy_transform(people, by_name):
    X, sex = people
    frame = frame_of(X, sex)
    lazy = dd.from_pandas(frame, npartitions=5)
    features = lazy.drop(columns="sex")
    fitted = (
        FairPCA(2).fit(lazy, sensitive_features="sex")
        if by_name
        else FairPCA(2).fit(features, sensitive_features=lazy["sex"])
    )
    expected = FairPCA(2).fit(frame.drop(columns="sex"), sensitive_features=frame["sex"])
    assert np.allclose(fitted.components_, expected.components_, atol=1e-7)
    assert np.isclose(fitted.objective_, expected.objective_, rtol=1e-9)
    assert fitted.feature_names_in_.tolist() == expected.feature_names_in_.tolist()
    scores = fitted.transform(features)
    assert is_dask(scores)
    assert np.allclose(scores.compute(), expected.transform(frame.drop(columns="sex")), atol=1e-6)
    with pytest.raises(ValueError, match="feature names"):
        fitted.transform(lazy)


def test_array_fit_and_lazy_transform_keep_chunks_and_type(people):
    X, sex = people
    lazy = da.from_array(X.astype(np.float32), chunks=(300, 3))
    fitted = FairPCA(2).fit(lazy, sensitive_features=sex)
    scores = fitted.transform(lazy)
    assert is_dask(scores)
    assert scores.dtype == np.float32
    assert scores.chunks == ((300, 300, 300, 100), (2,))
    assert np.allclose(scores.compute(), fitted.transform(X.astype(np.float32)), atol=1e-5)
    whole = np.rint(X).astype(int)
    assert np.allclose(fitted.transform(da.from_array(whole, chunks=400)).compute(), fitted.transform(whole))


def test_partial_fit_continues(people):
    X, sex = people
    pca = FairPCA(2).partial_fit(X[:500], sensitive_features=sex[:500])
    pca.partial_fit(da.from_array(X[500:], chunks=(100, 6)), sensitive_features=sex[500:])
    expected = FairPCA(2).fit(X, sensitive_features=sex)
    assert np.isclose(pca.objective_, expected.objective_)
    with pytest.raises(ValueError, match="features"):
        pca.partial_fit(da.from_array(X[:, :5], chunks=(100, 5)), sensitive_features=sex)


def test_errors(people):
    X, sex = people
    lazy = da.from_array(X, chunks=(100, 6))
    with pytest.raises(ValueError, match="required"):
        FairPCA(2).fit(lazy)
    with pytest.raises(ValueError, match="has 999 rows"):
        FairPCA(2).fit(lazy, sensitive_features=sex[1:])
    frame = dd.from_pandas(frame_of(X, sex), npartitions=4)
    with pytest.raises(ValueError, match="no column"):
        FairPCA(2).fit(frame, sensitive_features="gender")
    with pytest.raises(ValueError, match="chunks"):
        FairPCA(2).fit(frame.drop(columns="sex"), sensitive_features=frame["sex"].repartition(npartitions=2))
    X[5, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        FairPCA(2).fit(da.from_array(X, chunks=(100, 6)), sensitive_features=sex)


LOST_WORKER = """
import json, os, signal, sys, threading, time
import dask.array as da, numpy as np
from dask.distributed import Client, LocalCluster
from fairpca import FairPCA

def slow(block):
    time.sleep(0.25)
    return block

if __name__ == "__main__":
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(1600, 5)) * [3, 2, 1, 1, 0.5], rng.integers(0, 2, 1600)
    X[groups == 1] = X[groups == 1][:, ::-1]
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        lazy = da.from_array(X, chunks=(100, 5)).map_blocks(slow)
        victim = next(iter(cluster.workers.values())).pid
        threading.Timer(1.0, os.kill, (victim, signal.SIGKILL)).start()
        start = time.monotonic()
        pca = FairPCA(2).fit(lazy, sensitive_features=da.from_array(groups, chunks=100))
        seconds = time.monotonic() - start
    memory = FairPCA(2).fit(X, sensitive_features=groups)
    print(json.dumps({
        "seconds": seconds,
        "rows": pca.n_samples_seen_,
        "objective": abs(pca.objective_ - memory.objective_),
        "components": float(np.abs(pca.components_ - memory.components_).max()),
    }))
"""


def test_a_worker_killed_during_the_fit(figures_of):
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    figures = figures_of(LOST_WORKER)
    assert figures["seconds"] > 1.0  # the fit was still running when the worker died
    assert figures["rows"] == 1600
    assert figures["objective"] < 1e-12
    assert figures["components"] < 1e-8
