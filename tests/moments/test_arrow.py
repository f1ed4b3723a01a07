"""Streams of record batches and Parquet files give the moments of the rows they contain."""

from __future__ import annotations

import itertools
import time
import weakref

import numpy as np
import pytest

from fairpca import FairPCA
from fairpca.moments import arrow, group_moments
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


def set_batch_rows(monkeypatch, rows):
    monkeypatch.setattr(arrow, "_BATCH_NUMBERS", rows * len(NAMES))


@pytest.fixture
def people(rng):
    X = rng.normal(size=(3000, 4)) @ rng.normal(size=(4, 4)) + 5
    sex = np.array(["female", "male", "other"])[rng.choice(3, 3000, p=[0.4, 0.58, 0.02])]
    return X, sex


@pytest.mark.parametrize("row_group_size", [3000, 500])
@pytest.mark.parametrize("batch_rows", [3000, 137])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_parquet_equals_memory(tmp_path, people, monkeypatch, row_group_size, batch_rows, n_jobs):
    X, sex = people
    set_batch_rows(monkeypatch, batch_rows)
    pq.write_table(table_of(X, sex=sex), tmp_path / "people.parquet", row_group_size=row_group_size)
    moments = moments_from_parquet(tmp_path / "people.parquet", "sex", n_jobs=n_jobs)
    assert_same(moments, group_moments(X, sensitive_features=sex))


def test_a_folder_several_sensitive_columns_weights_and_chosen_features(tmp_path, people, rng):
    X, sex = people
    old, weight = rng.random(len(X)) < 0.3, rng.integers(0, 3, len(X))
    table = table_of(X, sex=sex, old=old, weight=weight, name=sex)
    for part, rows in enumerate((slice(0, 1000), slice(1000, 1001), slice(1001, 3000))):
        pq.write_table(table[rows], tmp_path / f"part{part}.parquet")
    moments = moments_from_parquet(tmp_path, ["sex", "old"], columns=["c", "a"], weight="weight")
    expected = group_moments(X[:, [2, 0]], sensitive_features={"sex": sex, "old": old}, sample_weight=weight)
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
    assert_same(moments_from_parquet(tmp_path / "file.parquet", "group"), group_moments(X, sensitive_features=plain))


def test_times_that_differ_by_nanoseconds_stay_apart():
    table = pa.table({"a": [1.0, 2.0, 3.0, 4.0], "time": pa.array([0, 1, 0, 1], pa.time64("ns"))})
    moments = moments_from_batches(table, "time", columns=["a"])
    assert moments.labels == ("00:00:00", "00:00:00.000000001")
    assert moments.means.tolist() == [[2.0], [3.0]]


def test_large_float32_batches_and_integers(tmp_path, rng):
    X = rng.integers(-50, 50, size=(300_000, 4)).astype(np.float32)  # sums of such numbers are exact in float32
    groups = rng.integers(0, 2, len(X))
    pq.write_table(table_of(X, g=groups), tmp_path / "narrow.parquet")
    pq.write_table(table_of(X.astype(np.int8), g=groups), tmp_path / "integers.parquet")
    expected = group_moments(X.astype(np.float64), sensitive_features=groups)
    assert_same(moments_from_parquet(tmp_path / "narrow.parquet", "g"), expected, rtol=1e-7)
    assert_same(moments_from_parquet(tmp_path / "integers.parquet", "g"), expected)


def test_batches_of_any_source_and_the_fit(people):
    X, sex = people
    table = table_of(X, sex=sex)
    moments = moments_from_batches(table.to_batches(max_chunksize=211), "sex", columns=NAMES)
    assert_same(moments, group_moments(X, sensitive_features=sex))
    streamed, memory = FairPCA(2).fit_moments(moments), FairPCA(2).fit(X, sensitive_features=sex)
    assert np.allclose(streamed.components_, memory.components_, atol=1e-8)
    assert np.isclose(streamed.objective_, memory.objective_)


def test_the_result_does_not_depend_on_timing(tmp_path, people, monkeypatch):
    X, sex = people
    set_batch_rows(monkeypatch, 64)
    pq.write_table(table_of(X, sex=sex), tmp_path / "people.parquet")
    first, *others = [moments_from_parquet(tmp_path / "people.parquet", "sex", n_jobs=2) for _ in "123"]
    for other in others:
        assert np.array_equal(first.scatters, other.scatters)


def test_progress_counts_every_row(tmp_path, people, monkeypatch):
    X, sex = people
    set_batch_rows(monkeypatch, 1000)
    weight = (np.arange(len(X)) % 3 > 0).astype(float)  # rows of weight zero are counted as well
    pq.write_table(table_of(X, sex=sex, weight=weight), tmp_path / "people.parquet")
    calls = []
    moments_from_parquet(
        tmp_path / "people.parquet",
        "sex",
        weight="weight",
        progress=lambda *state: calls.append(state),
    )
    assert [done for done, _, _ in calls] == [1000, 2000, 3000]
    assert {(total, what) for _, total, what in calls} == {(3000, "rows read")}


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


GOOD = {"a": [1.0, 2.0, 3.0, 5.0], "b": [0.0, 1.0, 0.0, 1.0], "sex": ["f", "m", "f", "m"]}
DAY = np.array(["2020-01-01"] * 4, dtype="datetime64[us]")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": DAY}, "'a' holds timestamp.*, not numbers, in .*2.parquet: leave it out"),
        ({"a": DAY.astype("datetime64[D]")}, "'a' holds date32.*2.parquet"),
        ({"a": ["1", "2", "3", "5"]}, "'a' holds string.*2.parquet"),
        ({"a": None}, "no column 'a' in .*2.parquet.*columns="),
        ({"sex": [0, 1, 0, 1]}, "'sex' holds numbers in .*2.parquet, but text in .*1.parquet: convert"),
        ({"sex": None}, "no column 'sex' in .*2.parquet"),
    ],
)
def test_every_file_is_checked(tmp_path, change, message):
    pq.write_table(pa.table(GOOD), tmp_path / "1.parquet")
    columns = {name: values for name, values in {**GOOD, **change}.items() if values is not None}
    pq.write_table(pa.table(columns), tmp_path / "2.parquet")
    for function in (moments_from_parquet, feature_columns):
        with pytest.raises(ValueError, match=message):
            function(tmp_path, "sex")


def test_files_may_differ_in_width_order_and_encoding(tmp_path):
    pq.write_table(pa.table({**GOOD, "sex": pa.array(GOOD["sex"]).dictionary_encode()}), tmp_path / "1.parquet")
    other = {"sex": pa.array(GOOD["sex"], pa.large_string()), "b": [0, 1, 0, 1], "a": np.float32(GOOD["a"]), "c": DAY}
    pq.write_table(pa.table(other), tmp_path / "2.parquet")
    X = np.column_stack([GOOD["a"], GOOD["b"]])
    assert_same(
        moments_from_parquet(tmp_path, "sex"), group_moments(np.tile(X, (2, 1)), sensitive_features=GOOD["sex"] * 2)
    )


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"t": DAY}, {"columns": ["a", "t"]}, "'t' holds timestamp.*, not numbers"),
        ({"t": pa.array([1, 2, 3, 4], pa.decimal128(5, 1))}, {"columns": ["a", "t"]}, "'t' holds decimal"),
        ({}, {"columns": []}, "columns is an empty list"),
        ({}, {"columns": ["a"], "sensitive": []}, "sensitive is an empty list"),
        ({}, {"columns": ["a", "x"]}, "no column 'x' in .*'a', 'b', 'sex'"),
        ({}, {"columns": ["a", "sex"]}, "'sex' cannot be both a feature"),
        ({"sex": [["f"], ["m"], ["f"], ["m"]]}, {"columns": ["a"]}, "'sex' holds list.*cannot be a label: give"),
        ({"w": ["1", "2", "1", "1"]}, {"columns": ["a"], "weight": "w"}, "'w' holds string.*weights must be numbers"),
        ({"w": [0.1] * 4}, {"columns": ["a"], "weight": "w"}, "sums to 0.4"),
    ],
)
def test_batches_and_files_raise_the_same_errors(tmp_path, columns, options, message):
    table = pa.table({**GOOD, **columns})
    pq.write_table(table, tmp_path / "file.parquet")
    options = {"sensitive": "sex", **options}
    with pytest.raises(ValueError, match=message):
        moments_from_batches(table.to_batches(), **options)
    with pytest.raises(ValueError, match=message):
        moments_from_parquet(tmp_path / "file.parquet", **options)


def test_a_later_batch_is_checked_too():
    batches = [*pa.table(GOOD).to_batches(), *pa.table({**GOOD, "a": DAY}).to_batches()]
    with pytest.raises(ValueError, match="'a' holds timestamp"):
        moments_from_batches(batches, "sex", columns=["a"])


def test_tables_and_single_batches_are_streams_too():
    table = pa.table(GOOD)
    expected = group_moments(np.column_stack([GOOD["a"], GOOD["b"]]), sensitive_features=GOOD["sex"])
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    for source in (table, table.to_batches()[0], reader, [table[:2], table[2:]]):
        assert_same(moments_from_batches(source, "sex", columns=["a", "b"]), expected)
    for wrong in (GOOD, 3):
        with pytest.raises(TypeError, match="must be a pyarrow Table"):
            moments_from_batches(wrong, "sex", columns=["a"])


def test_columns_of_the_same_name(tmp_path):
    table = pa.Table.from_arrays([pa.array(GOOD[name]) for name in ("a", "b", "sex")], names=["a", "a", "sex"])
    pq.write_table(table, tmp_path / "twice.parquet")
    with pytest.raises(ValueError, match=r"2 columns 'a' in .*twice.parquet: rename"):
        moments_from_parquet(tmp_path / "twice.parquet", "sex")


def test_the_summaries_of_many_files_are_not_held_together(tmp_path, monkeypatch):
    n_files, most = 24, 0
    for part in range(n_files):
        pq.write_table(pa.table(GOOD), tmp_path / f"{part:02}.parquet")
    finished = []
    block_moments = arrow.block_moments

    def watched(*arguments):
        nonlocal most
        moments = block_moments(*arguments)
        finished.append(weakref.ref(moments))
        most = max(most, sum(each() is not None for each in finished))
        return moments

    monkeypatch.setattr(arrow, "block_moments", watched)
    moments = moments_from_parquet(tmp_path, "sex", n_jobs=2)
    assert len(finished) == n_files
    assert most <= 2 * 2 + 1  # two per thread, and the one being merged
    assert moments.total_count == 4 * n_files


def test_merging_follows_the_order_of_the_files(tmp_path, monkeypatch, people):
    X, sex = people
    for part in range(12):
        rows = slice(250 * part, 250 * (part + 1))
        pq.write_table(table_of(X[rows], sex=sex[rows]), tmp_path / f"{part:02}.parquet")
    straight = moments_from_parquet(tmp_path, "sex", n_jobs=2)
    block_moments, turns = arrow.block_moments, itertools.count()

    def delayed(*arguments):
        time.sleep(0.02 * (next(turns) % 2 == 0))
        return block_moments(*arguments)

    monkeypatch.setattr(arrow, "block_moments", delayed)
    assert np.array_equal(moments_from_parquet(tmp_path, "sex", n_jobs=2).scatters, straight.scatters)


@pytest.mark.parametrize("name", [None, "id"])
def test_the_index_of_a_pandas_frame_is_not_a_feature(tmp_path, name):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pd.DataFrame(GOOD).rename_axis(name)
    frame[frame.a != 3.0].to_parquet(tmp_path / "some.parquet")  # its index is not a range
    stored = name or "__index_level_0__"
    assert stored in pq.read_schema(tmp_path / "some.parquet").names
    assert feature_columns(tmp_path / "some.parquet", "sex") == ["a", "b"]
    assert feature_columns(tmp_path / "some.parquet", "sex", columns=["a", stored]) == ["a", stored]


def test_numbers_of_threads(tmp_path):
    pq.write_table(pa.table(GOOD), tmp_path / "file.parquet")
    one = moments_from_parquet(tmp_path / "file.parquet", "sex", n_jobs=1)
    for n_jobs in (-1, -1000, np.int64(2)):
        assert_same(moments_from_parquet(tmp_path / "file.parquet", "sex", n_jobs=n_jobs), one)
    for n_jobs in (0, 1.5, True):
        with pytest.raises(ValueError, match=r"n_jobs=.* must be a number of threads"):
            moments_from_parquet(tmp_path / "file.parquet", "sex", n_jobs=n_jobs)


@pytest.mark.parametrize("damage", ["foreign", "cut off", "overwritten"])
def test_a_damaged_file_is_named(tmp_path, people, damage):
    X, sex = people
    pq.write_table(table_of(X, sex=sex), tmp_path / "1.parquet")
    content = (tmp_path / "1.parquet").read_bytes()
    middle = len(content) // 2
    damaged = {
        "foreign": b"a,b,sex\n1,2,f\n",
        "cut off": content[:middle],
        "overwritten": content[:4] + b"\xff" * middle + content[4 + middle :],
    }[damage]
    (tmp_path / "2.parquet").write_bytes(damaged)
    with pytest.raises(ValueError, match=r"2\.parquet cannot be read as Parquet \(.*\): write the file again"):
        moments_from_parquet(tmp_path, "sex")


def test_folders_without_parquet_files(tmp_path):
    (tmp_path / "part=1").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no \*.parquet file in"):
        moments_from_parquet(tmp_path, "sex")
    pq.write_table(pa.table(GOOD), tmp_path / "part=1" / "x.parquet")
    with pytest.raises(FileNotFoundError, match="subfolders are not searched: list the files, for example sorted"):
        moments_from_parquet(tmp_path, "sex")
    assert moments_from_parquet(sorted(tmp_path.rglob("*.parquet")), "sex").total_count == 4
    with pytest.raises(FileNotFoundError, match="empty list"):
        moments_from_parquet([], "sex")


def test_a_file_that_is_listed_twice_is_remarked(tmp_path):
    pq.write_table(pa.table(GOOD), tmp_path / "x.parquet")
    with pytest.warns(UserWarning, match=r"Listed more than once, and counted as often: .*x\.parquet\. List each"):
        found = moments_from_parquet([tmp_path / "x.parquet", tmp_path], "sex")
    assert found.total_count == 8
