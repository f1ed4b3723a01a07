"""A file read batch by batch is prepared in the same way as the same file in memory."""

from __future__ import annotations

import numpy as np
import pytest
from tests.audit.files import streamed

from fairpca.audit import prepare, read_table
from fairpca.moments import group_moments

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")


@pytest.fixture
def people(tmp_path, rng):
    """Numbers, text, a constant, a copy of the group, and rows with missing values."""
    size = 900
    sex = rng.choice(["f", "m"], size)
    income = rng.normal(1e4, 10.0, size)
    income[[3, 500]] = np.nan
    columns = {
        "income": income,
        "age": rng.integers(18, 80, size),
        "city": rng.choice(["a", "b", "c"], size),
        "species": ["human"] * size,
        "is_male": (sex == "m").astype(float),
        "sex": [None if i == 7 else value for i, value in enumerate(sex)],
        "default": rng.choice(["yes", "no"], size),
    }
    path = tmp_path / "people.parquet"
    parquet.write_table(pyarrow.table(columns), path, row_group_size=250)
    return path


@pytest.mark.parametrize("standardise", [True, False])
def test_prepared_as_in_memory(people, standardise):
    whole = prepare(read_table(str(people)), ["sex"], "default", standardise=standardise)
    batches = streamed(people, "sex", "default", standardise=standardise, sample_rows=5000)
    assert batches.feature_names == whole.feature_names == ["income", "age", "city=a", "city=b", "city=c"]
    assert np.allclose(batches.preparation.scales, whole.preparation.scales, rtol=1e-10)
    expected = group_moments(whole.X, sensitive_features=whole.groups)
    assert batches.moments.labels == expected.labels == ("f", "m")
    assert np.array_equal(batches.moments.counts, expected.counts)
    assert np.allclose(batches.moments.means, expected.means, rtol=1e-9, atol=1e-9)
    assert np.allclose(batches.moments.scatters, expected.scatters, rtol=1e-8, atol=1e-6)
    # The sample size exceeds the file, so it contains every complete row, in file order.
    assert np.allclose(batches.X, whole.X, atol=1e-9)
    assert np.array_equal(batches.groups, whole.groups)
    assert np.array_equal(batches.label, whole.label)
    assert any("dropped 3 of 900 rows" in remark for remark in batches.remarks)


def test_without_a_sample_no_row_is_kept(people):
    batches = streamed(people, ["sex"], drop="default")
    assert batches.X.shape == (0, 5)
    assert batches.moments.total_count == 897
    assert "default" not in " ".join(batches.feature_names)


def test_the_seed_decides_which_rows_are_drawn(people):
    first, again, other = (streamed(people, "sex", sample_rows=100, seed=seed).X for seed in (0, 0, 1))
    assert first.shape[0] == 100
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_progress_is_reported(people):
    seen = []
    streamed(people, "sex", progress=lambda done, total, what: seen.append((done, total, what)))
    assert seen[-1] == (900, 900, "rows read")
    assert {what for *_, what in seen} == {"finding levels", "rows read"}


def both_ways(folder, columns, sensitive="sex", *, kind="parquet", **options):
    """The table prepared in memory and streamed; checks that features and groups are the same."""
    path = folder / f"people.{kind}"
    table = columns if isinstance(columns, pyarrow.Table) else pyarrow.table(columns)
    if kind == "parquet":
        parquet.write_table(table, path, row_group_size=200)
    else:
        feather.write_feather(table, str(path), chunksize=200)
    names = [sensitive] if isinstance(sensitive, str) else sensitive
    whole = prepare(read_table(path), names, **options)
    batches = streamed(path, names, sample_rows=5000, **options)
    assert batches.feature_names == whole.feature_names
    assert batches.preparation.levels == whole.preparation.levels
    assert np.array_equal(batches.groups, whole.groups)
    assert np.allclose(batches.X, whole.X, atol=1e-9)
    return whole, batches


def refusals(path, sensitive=("sex",), label=None):
    """The error messages in memory and streamed."""
    said = []
    with pytest.raises(ValueError, match=r"\.") as caught:
        prepare(read_table(path), list(sensitive), label)
    said.append(str(caught.value))
    with pytest.raises(ValueError, match=r"\.") as caught:
        streamed(path, list(sensitive), label)
    return [*said, str(caught.value)]


#: Columns that are not features; for some, this takes all rows to decide.
UNFIT = {
    "constant with gaps": lambda i: None if i % 7 == 0 else 4.0,
    "constant with NaN": lambda i: np.nan if i % 7 == 0 else 4.0,
    "constant and huge": lambda i: None if i % 7 == 0 else 1e200,
    "mostly missing": lambda i: i * i % 31 / 3 if i % 3 == 0 else np.nan,
    "mostly missing and huge": lambda i: 1e200 * i if i % 3 == 0 else np.nan,
    "never known": lambda i: np.nan,
    "mostly empty text": lambda i: f"level {i % 5}" if i % 3 == 0 else "",
    "mostly empty free text": lambda i: f"note {i}" if i % 3 == 0 else "",
    "constant text with gaps": lambda i: "same" if i % 3 else "",
}


@pytest.mark.parametrize("kind", ["parquet", "feather"])
@pytest.mark.parametrize("unfit", UNFIT)
def test_no_row_is_dropped_for_a_column_that_is_left_out(tmp_path, rng, unfit, kind):
    columns = {"x": incomplete_first_rows(rng, 2), "unfit": [UNFIT[unfit](i) for i in range(600)]}
    columns |= {"city": rng.choice(["a", "b"], 600), "sex": rng.choice(["f", "m"], 600)}
    whole, batches = both_ways(tmp_path, columns, kind=kind)
    assert batches.feature_names == ["x", "city=a", "city=b"]
    assert batches.moments.total_count == 598
    assert sorted(whole.remarks) == sorted(remark for remark in batches.remarks if "random sample" not in remark)


@pytest.mark.parametrize("rows", [[3], range(600)])
def test_numbers_too_large_to_be_squared_are_refused_alike(tmp_path, rng, rows):
    x = rng.normal(size=600)
    x[list(rows)] *= 1e200
    path = tmp_path / "people.parquet"
    columns = {"x": x, "y": rng.normal(size=600), "sex": rng.choice(["f", "m"], 600)}
    parquet.write_table(pyarrow.table(columns), path, row_group_size=200)
    memory, batches = refusals(path)
    assert memory == batches
    assert "Column 'x' of people.parquet contains numbers as large as" in memory


def incomplete_first_rows(rng, count, size=600):
    x = rng.normal(size=size)
    x[:count] = np.nan
    return x


def test_a_copy_of_the_group_is_left_out_though_a_group_has_only_incomplete_rows(tmp_path, rng):
    sex = rng.choice(["f", "m"], 600)
    copy = np.where(sex == "f", 5, 6)
    sex[:30] = "z"
    columns = {"x": incomplete_first_rows(rng, 30), "y": rng.normal(size=600), "copy": copy, "sex": sex}
    _, batches = both_ways(tmp_path, columns)
    assert batches.feature_names == ["x", "y"]
    assert batches.moments.labels == ("f", "m")


def test_groups_of_incomplete_rows_do_not_count(tmp_path, rng):
    sex = np.array([f"g{i % 20:02}" for i in range(600)])
    sex[:30] = "z"
    _, batches = both_ways(tmp_path, {"x": incomplete_first_rows(rng, 30), "y": rng.normal(size=600), "sex": sex})
    assert len(batches.moments.labels) == 20


def test_levels_are_counted_in_the_whole_file(tmp_path, rng):
    """Those of rows that lack something have no feature, though they count towards the limit."""
    city = np.array([f"c{i % 100:02}" for i in range(600)])
    city[:2] = ["Rome", "Oslo"]
    columns = {"x": incomplete_first_rows(rng, 2), "city": city, "sex": rng.choice(["f", "m"], 600)}
    _, batches = both_ways(tmp_path, columns, min_level=0, max_levels=102)
    assert len(batches.preparation.levels["city"]) == 100
    for said in refusals(tmp_path / "people.parquet"):
        assert "102 different values, too many to one-hot encode" in said


def test_a_group_may_be_named_as_missing_levels_are(tmp_path, rng):
    sex = rng.choice(["f", "(missing)"], 600).tolist()
    sex[5], sex[6] = None, ""
    _, batches = both_ways(tmp_path, {"x": rng.normal(size=600), "y": rng.normal(size=600), "sex": sex})
    assert batches.moments.labels == ("(missing)", "f")
    assert batches.moments.total_count == 598


def test_groups_of_two_columns_stay_apart_though_their_parts_hold_commas(tmp_path, rng):
    pairs = [("a, b", "c"), ("a", "b, c"), ('"a', 'b, c"'), ('"a, b', 'c"')]
    columns = {"x": rng.normal(size=600), "y": rng.normal(size=600)}
    columns |= {name: [pairs[i % 4][j] for i in range(600)] for j, name in enumerate(["one", "two"])}
    _, batches = both_ways(tmp_path, columns, ["one", "two"])
    assert batches.moments.counts.tolist() == [150] * 4
    assert {'"a, b", c', 'a, "b, c"'} < set(batches.moments.labels)


def test_one_hot_columns_are_identified_by_position(tmp_path, rng):
    """Level 'b=c' of column 'a' and level 'c' of column 'a=b' give features with the same name."""
    columns = {"x": rng.normal(size=600), "a": rng.choice(["b=c", "d"], 600), "sex": rng.choice(["f", "m"], 600)}
    columns["a=b"] = np.where(columns["sex"] == "f", "c", "e")  # a copy of the group: left out
    _, batches = both_ways(tmp_path, columns)
    assert batches.preparation.levels == {"a": ("b=c", "d")}
    assert len(batches.preparation.offsets) == 3


def test_decimals_are_numbers(tmp_path, rng):
    price = pyarrow.array(rng.integers(100, 999, 600)).cast(pyarrow.decimal128(20)).cast(pyarrow.decimal128(24, 2))
    sex = pyarrow.array(rng.integers(0, 2, 600)).cast(pyarrow.decimal128(20))
    for kind in ("parquet", "feather"):
        whole, _ = both_ways(tmp_path, {"price": price, "x": rng.normal(size=600), "sex": sex}, kind=kind)
        assert whole.preparation.numeric == ("price", "x")
        assert set(whole.groups) == {"0", "1"}


@pytest.mark.parametrize("kind", ["parquet", "feather"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_times_that_differ_by_nanoseconds_stay_apart(tmp_path, rng, kind, dictionary):
    noon = 12 * 3600 * 10**9
    times = pyarrow.array([noon + i % 2 for i in range(600)], pyarrow.time64("ns"))
    shift = times.dictionary_encode() if dictionary and kind == "feather" else times
    columns = {"x": rng.normal(size=600), "shift": shift, "start": times, "sex": rng.choice(["f", "m"], 600)}
    whole, _ = both_ways(tmp_path, columns, "shift", kind=kind)
    assert sorted(set(whole.groups)) == ["12:00:00", "12:00:00.000000001"]
    whole, _ = both_ways(tmp_path, columns, kind=kind)
    assert whole.preparation.levels["start"] == ("12:00:00", "12:00:00.000000001")


NESTED = {"list": [[1, 2]] * 600, "struct": [{"a": 1}] * 600}


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("role", ["feature", "sensitive", "label"])
def test_nested_columns_are_refused_by_name(tmp_path, rng, kind, role):
    columns = {"x": rng.normal(size=600), "sex": rng.choice(["f", "m"], 600), "tags": NESTED[kind]}
    path = tmp_path / "people.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    roles = {"sensitive": ["tags"] if role == "sensitive" else ["sex"], "label": "tags" if role == "label" else None}
    memory, batches = refusals(path, **roles)
    assert memory == batches
    assert f"Column 'tags' of people.parquet holds {kind}<" in memory
    assert memory.endswith(
        "convert it, or leave it out." if role == "feature" else "neither numbers nor text: convert it."
    )
    assert streamed(path, "sex", drop="tags").feature_names == ["x"]
    assert prepare(read_table(path), ["sex"], drop=["tags"]).feature_names == ["x"]


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_duplicate_column_names_raise_the_same_message(tmp_path, rng, kind):
    arrays = [pyarrow.array(rng.normal(size=60)), pyarrow.array(rng.normal(size=60)), pyarrow.array(["f", "m"] * 30)]
    table = pyarrow.Table.from_arrays(arrays, names=["x", "x", "sex"])
    path = tmp_path / f"people.{kind}"
    parquet.write_table(table, path) if kind == "parquet" else feather.write_feather(table, str(path))
    assert refusals(path) == [f"people.{kind} has two columns named 'x': rename one."] * 2


def test_an_empty_row_group_does_not_hide_how_much_is_missing(tmp_path, rng):
    empty = [None if i % 5 < 3 else 1.0 * i for i in range(600)]
    table = pyarrow.table({"x": rng.normal(size=600), "empty": empty, "sex": rng.choice(["f", "m"], 600)})
    path = tmp_path / "people.parquet"
    with parquet.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table.slice(0, 0))
        writer.write_table(table)
    batches = streamed(path, "sex")
    assert batches.feature_names == ["x"]
    assert "left out 'empty': 60% of it is missing" in batches.remarks


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        (["yes"] * 600, "has a single value, 'yes'"),
        ([f"id{i}" for i in range(600)], "different values; it must be a class"),
        (["rare"] * 3 + ["a", "b", "c"] * 199, "Class 'rare' of the label 'default' has only 3 rows"),
    ],
)
def test_the_label_is_checked_without_a_sample(tmp_path, rng, label, expected):
    path = tmp_path / "people.parquet"
    columns = {"x": rng.normal(size=600), "sex": rng.choice(["f", "m"], 600), "default": label}
    parquet.write_table(pyarrow.table(columns), path)
    for said in refusals(path, label="default"):
        assert expected in said


def test_the_row_index_of_pandas_is_not_a_feature(tmp_path, rng):
    table = pyarrow.table(
        {"x": rng.normal(size=600), "sex": rng.choice(["f", "m"], 600), "__index_level_0__": np.arange(600)}
    )
    described = table.replace_schema_metadata({"pandas": '{"index_columns": ["__index_level_0__"]}'})
    whole, batches = both_ways(tmp_path, described)
    assert whole.feature_names == ["x"]
    for found in (whole, batches):
        assert "left out '__index_level_0__': it is the index of a pandas data frame" in found.remarks
    for found in both_ways(tmp_path, table):  # without pandas metadata it is known by its values
        assert found.feature_names == ["x"]
        assert "left out '__index_level_0__': it counts the rows" in found.remarks


def test_classes_beside_the_positive_one_count_as_one(tmp_path, rng):
    """A class of two rows is no obstacle where a positive class is named: all the others are one."""
    columns = {
        "x": rng.normal(size=60),
        "sex": ["f", "m"] * 30,
        "risk": ["good"] * 30 + ["bad"] * 28 + ["unknown"] * 2,
    }
    whole, batches = both_ways(tmp_path, columns, label="risk", positive="good")
    assert np.array_equal(batches.label, whole.label)
    assert whole.label.sum() == 30
