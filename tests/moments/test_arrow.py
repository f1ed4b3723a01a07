"""Streams of record batches and Parquet files give the moments of the rows they hold."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca import FairPCA
from fairpca.moments import group_moments
from fairpca.moments.arrow import feature_columns, moments_from_batches, moments_from_parquet

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

NAMES = ["a", "b", "c", "d"]


def table_of(X, **others):
    return pa.table({**{name: np.ascontiguousarray(X[:, j]) for j, name in enumerate(NAMES)}, **others})


def assert_same(first, second, rtol=1e-12):
    assert first.labels == second.labels
    assert np.allclose(first.counts, second.counts, rtol=rtol)
    assert np.allclose(first.means, second.means, rtol=rtol, atol=rtol)
    assert np.allclose(first.scatters, second.scatters, rtol=rtol, atol=rtol * np.abs(second.scatters).max())


@pytest.fixture
def people(rng):
    X = rng.normal(size=(3000, 4)) @ rng.normal(size=(4, 4)) + 5
    sex = np.array(["female", "male", "other"])[rng.choice(3, 3000, p=[0.4, 0.58, 0.02])]
    return X, sex


@pytest.mark.parametrize("row_group_size", [3000, 500])  # too few for each thread, and plenty
@pytest.mark.parametrize("batch_rows", [None, 137])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_parquet_equals_memory(tmp_path, people, row_group_size, batch_rows, n_jobs):
    X, sex = people
    pq.write_table(table_of(X, sex=sex), tmp_path / "people.parquet", row_group_size=row_group_size)
    moments = moments_from_parquet(tmp_path / "people.parquet", "sex", batch_rows=batch_rows, n_jobs=n_jobs)
    assert_same(moments, group_moments(X, sex))


def test_a_folder_several_sensitive_columns_weights_and_chosen_features(tmp_path, people, rng):
    X, sex = people
    old, weight = rng.random(len(X)) < 0.3, rng.integers(0, 3, len(X))
    table = table_of(X, sex=sex, old=old, weight=weight, name=sex)
    for part, rows in enumerate((slice(0, 1000), slice(1000, 1001), slice(1001, 3000))):
        pq.write_table(table[rows], tmp_path / f"part{part}.parquet")
    moments = moments_from_parquet(tmp_path, ["sex", "old"], columns=["c", "a"], weight="weight")
    expected = group_moments(X[:, [2, 0]], {"sex": sex, "old": old}, sample_weight=weight)
    assert_same(moments, expected)


@pytest.mark.parametrize("kind", ["string", "dictionary", "integer", "float", "boolean"])
def test_labels_are_those_of_arrays(tmp_path, people, kind):
    X, sex = people
    column = {
        "string": sex,
        "dictionary": pa.array(sex).dictionary_encode(),
        "integer": (sex == "male").astype(np.int16) + 7,
        "float": (sex == "male").astype(np.float64),
        "boolean": sex == "male",
    }[kind]
    pq.write_table(table_of(X, group=column), tmp_path / "file.parquet")
    plain = sex if kind == "dictionary" else column
    assert_same(moments_from_parquet(tmp_path / "file.parquet", "group"), group_moments(X, plain))


def test_large_float32_batches_and_integers(tmp_path, rng):
    X = rng.integers(-50, 50, size=(300_000, 4)).astype(np.float32)  # sums of such numbers are exact in float32
    groups = rng.integers(0, 2, len(X))
    pq.write_table(table_of(X, g=groups), tmp_path / "narrow.parquet")
    pq.write_table(table_of(X.astype(np.int8), g=groups), tmp_path / "integers.parquet")
    expected = group_moments(X.astype(np.float64), groups)
    assert_same(moments_from_parquet(tmp_path / "narrow.parquet", "g", batch_rows=len(X)), expected, rtol=1e-7)
    assert_same(moments_from_parquet(tmp_path / "integers.parquet", "g"), expected)


def test_batches_of_any_source_and_the_fit(people):
    X, sex = people
    table = table_of(X, sex=sex)
    moments = moments_from_batches(table.to_batches(max_chunksize=211), "sex", columns=NAMES)
    assert_same(moments, group_moments(X, sex))
    streamed, memory = FairPCA(2).fit_moments(moments), FairPCA(2).fit(X, sensitive_features=sex)
    assert np.allclose(streamed.components_, memory.components_, atol=1e-8)
    assert np.isclose(streamed.objective_, memory.objective_)


def test_the_result_does_not_depend_on_timing(tmp_path, people):
    X, sex = people
    pq.write_table(table_of(X, sex=sex), tmp_path / "people.parquet")
    first, *others = [moments_from_parquet(tmp_path / "people.parquet", "sex", batch_rows=64, n_jobs=2) for _ in "123"]
    for other in others:
        assert np.array_equal(first.scatters, other.scatters)


def test_progress_counts_every_row(tmp_path, people):
    X, sex = people
    pq.write_table(table_of(X, sex=sex), tmp_path / "people.parquet")
    calls = []
    moments_from_parquet(
        tmp_path / "people.parquet", "sex", batch_rows=1000, progress=lambda *state: calls.append(state)
    )
    assert [done for done, _, _ in calls] == [1000, 2000, 3000]
    assert {total for _, total, _ in calls} == {3000}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"b": [1.0, None, 2.0, 3.0]}, "'b' contains nulls"),
        ({"b": [1.0, np.nan, 2.0, 3.0]}, "'b' contains NaN"),
        ({"b": ["x", "y", "z", "w"]}, "'b' holds .*string"),
        ({"sex": ["f", None, "m", "m"]}, "'sex' contains nulls"),
        ({"sex": [0.0, np.nan, 1.0, 1.0]}, "'sex' contains missing"),
    ],
)
def test_errors_name_the_column(tmp_path, change, message):
    columns = {"a": [1.0, 2.0, 3.0, 5.0], "b": [0.0, 1.0, 0.0, 1.0], "sex": ["f", "m", "f", "m"], **change}
    pq.write_table(pa.table(columns), tmp_path / "bad.parquet")
    with pytest.raises(ValueError, match=message):
        moments_from_parquet(tmp_path / "bad.parquet", "sex")


def test_errors_of_names_and_paths(tmp_path, people):
    X, sex = people
    file = tmp_path / "people.parquet"
    pq.write_table(table_of(X, sex=sex), file)
    assert feature_columns(file, "sex") == NAMES
    with pytest.raises(ValueError, match="no column 'gender'"):
        moments_from_parquet(file, "gender")
    with pytest.raises(ValueError, match="'sex' cannot be"):
        moments_from_parquet(file, "sex", columns=["a", "sex"])
    with pytest.raises(FileNotFoundError, match="no file"):
        moments_from_parquet(tmp_path / "absent.parquet", "sex")
    pq.write_table(table_of(X, sex=sex)[:0], file)
    with pytest.raises(ValueError, match="no rows"):
        moments_from_parquet(file, "sex")
