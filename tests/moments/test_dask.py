"""Dask collections give the same results as arrays, on threads and on a cluster that loses a worker."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fairpca import FairPCA
from fairpca._validation import is_dask
from fairpca.moments import group_moments
from fairpca.moments.dask import moments_from_dask

da = pytest.importorskip("dask.array", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")


@pytest.fixture
def people(rng):
    X = rng.normal(size=(1000, 6)) @ rng.normal(size=(6, 6)) + 2
    sex = np.where(np.arange(1000) < 400, "a", "b")  # some chunks contain only one group
    sex[-3:] = "c"  # and one group appears late
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
    expected = group_moments(X, sensitive_features=sex)
    assert_same(moments_from_dask(lazy, sensitive_features=da.from_array(sex, chunks=250)), expected)
    assert_same(moments_from_dask(lazy, sensitive_features=sex), expected)


def test_weights(people, rng):
    X, sex = people
    weight = rng.integers(0, 3, len(X)).astype(float)
    weight[:100] = 0.0  # a chunk without positive weights
    weight[-1] = 1.0  # a chunk with one row of weight one
    lazy = da.from_array(X, chunks=((100,) * 9 + (99, 1), (6,)))
    expected = group_moments(X, sensitive_features=sex, sample_weight=weight)
    assert_same(
        moments_from_dask(
            lazy, sensitive_features=da.from_array(sex, chunks=100), sample_weight=da.from_array(weight, chunks=100)
        ),
        expected,
    )


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
    if by_name:  # the named column is ignored in new rows
        assert np.array_equal(fitted.transform(lazy).compute(), scores.compute())
        assert np.array_equal(fitted.fit_transform(lazy, sensitive_features="sex").compute(), scores.compute())
        errors = fitted.score_samples(lazy)
        assert is_dask(errors)
        assert np.allclose(errors.compute(), expected.score_samples(frame.drop(columns="sex")), atol=1e-5)
        assert np.isclose(fitted.score(lazy), errors.mean().compute())
    else:
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
    with pytest.raises(ValueError, match="'gender' is not a column of X"):
        FairPCA(2).fit(frame, sensitive_features="gender")
    with pytest.raises(ValueError, match="chunks"):
        FairPCA(2).fit(frame.drop(columns="sex"), sensitive_features=frame["sex"].repartition(npartitions=2))
    X[5, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        FairPCA(2).fit(da.from_array(X, chunks=(100, 6)), sensitive_features=sex)


def test_several_columns_and_weights_in_memory_with_a_dask_array(people, rng):
    X, sex = people
    weights = rng.integers(1, 4, len(X))
    lazy = da.from_array(X, chunks=(130, 6))
    columns = {"sex": sex, "old": np.arange(len(X)) % 3 == 0}
    expected = group_moments(X, sensitive_features=columns, sample_weight=weights)
    frame = pd.DataFrame(columns)
    mixed = {"sex": da.from_array(sex, chunks=100), "old": columns["old"]}
    for given in (columns, mixed, frame, frame.astype({"sex": "category"})):
        assert_same(moments_from_dask(lazy, sensitive_features=given, sample_weight=weights), expected)
    table = dd.from_pandas(frame_of(X, sex), npartitions=4)
    series = {"sex": table["sex"], "first": table["sex"] == "a"}
    features = table.drop(columns="sex")
    assert_same(
        moments_from_dask(features, sensitive_features=series),
        group_moments(X, sensitive_features={"sex": sex, "a": sex == "a"}),
    )


def test_labels_of_several_types_stay_what_they_are():
    X = np.arange(16.0).reshape(8, 2) ** 2
    for labels in ([1, "a", "1", 1, "a", "1", 1, 1], [True, False] * 4, [0.0, 1.0] * 4):
        ours, theirs = (
            moments_from_dask(da.from_array(X, chunks=(3, 2)), sensitive_features=labels),
            group_moments(X, sensitive_features=labels),
        )
        assert_same(ours, theirs)
        assert list(map(type, ours.labels)) == list(map(type, theirs.labels))


@pytest.mark.parametrize("names", [("sex", "age"), ["sex", "age"], (7, 8), [8]])
def test_columns_by_name_in_any_form(people, names):
    X, sex = people
    given = dict(zip(names, (sex, np.arange(len(X)) % 2), strict=False))
    features = range(6) if 8 in names else list("uvwxyz")
    frame = dd.from_pandas(pd.DataFrame(X, columns=features).join(pd.DataFrame(given)), npartitions=3)
    assert_same(moments_from_dask(frame, sensitive_features=names), group_moments(X, sensitive_features=given))
    assert_same(
        moments_from_dask(frame.drop(columns=list(names[1:])), sensitive_features=names[0]),
        group_moments(X, sensitive_features=sex),
    )


@pytest.mark.parametrize("weights", [np.full(1000, 6e-10), "chunks"])
def test_the_total_weight_of_all_chunks_must_be_large_enough(people, weights):
    X, sex = people
    weights = da.full(1000, 6e-10, chunks=100) if isinstance(weights, str) else weights
    lazy = da.from_array(X, chunks=(100, 6))
    with pytest.raises(ValueError, match="sample_weight sums to 6e-07"):
        moments_from_dask(lazy, sensitive_features=sex, sample_weight=weights)
    few = np.zeros(1000)
    few[[1, 399, 999]] = 0.6  # the weights of each chunk sum to less than one row, those of all chunks to more
    expected = group_moments(X, sensitive_features=sex, sample_weight=few)
    assert np.allclose(
        moments_from_dask(lazy, sensitive_features=sex, sample_weight=da.from_array(few, chunks=100)).counts,
        expected.counts,
    )


def test_invalid_arguments_are_named_in_the_error(people):
    X, sex = people
    array = da.from_array(X, chunks=(100, 6))
    frame = dd.from_pandas(frame_of(X, sex), npartitions=4)
    features = frame.drop(columns="sex")
    with pytest.raises(TypeError, match="sensitive_features='sex' is the name of a column, but X is an array"):
        FairPCA(2).fit(array, sensitive_features="sex")
    with pytest.raises(TypeError, match=r"sample_weight='w' is a single string.*give the column itself.*X\['w'\]"):
        FairPCA(2).fit(frame, sensitive_features="sex", sample_weight="w")
    with pytest.raises(ValueError, match="sample_weight must be a Dask collection with the same chunks as X because"):
        FairPCA(2).fit(frame, sensitive_features="sex", sample_weight=np.ones(1000))
    with pytest.raises(ValueError, match="with the same chunks as X, or the name of a column of X, because"):
        FairPCA(2).fit(features, sensitive_features=sex)
    with pytest.raises(ValueError, match="sample_weight has 999 rows, but X has 1000"):
        FairPCA(2).fit(array, sensitive_features=sex, sample_weight=np.ones(999))
    for flat in (array[:, 0], features["x0"]):
        with pytest.raises(ValueError, match=r"X must be a Dask .*two dimensions"):
            FairPCA(2).fit(flat, sensitive_features=sex)
    with pytest.raises(ValueError, match=r"X must be a Dask .*two dimensions"):
        FairPCA(2).fit(array, sensitive_features=sex).transform(array[:, 0])
    with pytest.raises(ValueError, match="sensitive_features is required"):
        FairPCA(2).fit(frame)


@pytest.mark.parametrize(
    "column", [["a", "b"] * 500, pd.Categorical(["a", "b"] * 500), pd.date_range("2020", periods=1000)]
)
def test_a_feature_that_is_not_numeric_is_named(people, column):
    X, sex = people
    frame = dd.from_pandas(frame_of(X, sex).assign(city=column), npartitions=4)
    with pytest.raises(ValueError, match=r"Column 'city' of X holds .*, not numbers: drop it"):
        FairPCA(2).fit(frame, sensitive_features="sex")
    with pytest.raises(ValueError, match="X holds <U1, not numbers"):
        FairPCA(2).fit(da.from_array(np.full((1000, 2), "a"), chunks=100), sensitive_features=sex)


def test_features_of_nullable_boolean_and_categorical_numbers(people):
    X, sex = people
    frame = frame_of(np.rint(X), sex).astype({"x0": "Int64", "x1": "Float32"})
    frame["x2"], frame["x3"] = frame["x2"] > 2, frame["x3"].astype("category")
    plain = frame.drop(columns="sex").astype(float).to_numpy()
    assert_same(
        moments_from_dask(dd.from_pandas(frame, npartitions=3), sensitive_features="sex"),
        group_moments(plain, sensitive_features=sex),
    )


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


def test_files_with_a_column_that_dask_reads_in_fewer_parts(people, tmp_path):
    """Of a few columns it combines several small files to one partition, of the others it does not."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    X, groups = people
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(group=groups)
    for part in range(3):
        table[part::3].to_parquet(tmp_path / f"{part}.parquet", index=False)
    frame = dd.read_parquet(str(tmp_path / "*.parquet"))
    assert len(frame["group"].to_delayed()) < frame.npartitions  # or this test shows nothing
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="dask")  # about pandas' interface
        found = FairPCA(2).fit(frame, sensitive_features="group")
    np.testing.assert_allclose(found.components_, FairPCA(2).fit(X, sensitive_features=groups).components_, atol=1e-8)
