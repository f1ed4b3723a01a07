"""Weights, the positive class, small groups, and columns that count the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.audit.files import streamed, write

from fairpca.audit import TableError, prepare, read_table
from fairpca.audit.survey import SeenNumbers


def table_of(folder, header, row, count=120):
    body = "".join(",".join(map(str, row(i))) + "\n" for i in range(count))
    return read_table(write(folder, f"{header}\n{body}"))


def test_weights_count_like_repeated_rows(tmp_path):
    def row(i):
        return ("" if i % 9 == 0 else i * i % 31), i * i % 37, "abc"[i % 3], "fm"[i // 2 % 2], i % 4

    weighted = prepare(table_of(tmp_path, "x,y,z,sex,w", row), ["sex"], weights="w", impute="median")
    rows = [i for i in range(120) for _ in range(i % 4)]
    repeated = prepare(table_of(tmp_path, "x,y,z,sex", lambda i: row(rows[i])[:4], len(rows)), ["sex"], impute="median")
    assert weighted.feature_names == repeated.feature_names
    assert len(weighted.X) == 90
    assert weighted.weights.mean() == pytest.approx(1)
    np.testing.assert_allclose(weighted.preparation.offsets, repeated.preparation.offsets)
    np.testing.assert_allclose(weighted.preparation.scales, repeated.preparation.scales)
    assert weighted.preparation.fills == repeated.preparation.fills
    assert weighted.preparation.zero_weights == 30
    assert "30 rows of weight zero were left out" in " ".join(weighted.remarks)


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (lambda i: "many", "The weights 'w' of people.csv must be numbers, but contain 'many'"),
        (lambda i: -1 if i == 3 else 1, "are negative in places"),
        (lambda i: 0, "are zero in every row"),
    ],
)
def test_weights_must_be_numbers_that_are_not_negative(tmp_path, weight, expected):
    table = table_of(tmp_path, "x,sex,w", lambda i: (i * i % 31, "fm"[i % 2], weight(i)))
    with pytest.raises(TableError, match=expected):
        prepare(table, ["sex"], weights="w")
    with pytest.raises(TableError, match="cannot be both the sensitive column and the weights"):
        prepare(table, ["sex"], weights="sex")
    with pytest.raises(TableError, match="no column 'v' \\(the weights\\)"):
        prepare(table, ["sex"], weights="v")


def test_rows_without_a_weight_are_dropped(tmp_path):
    table = table_of(tmp_path, "x,sex,w", lambda i: (i * i % 31, "fm"[i % 2], "" if i % 12 == 0 else 2))
    data = prepare(table, ["sex"], weights="w")
    assert data.preparation.dropped.by_column == {"w": 10}
    np.testing.assert_allclose(data.weights, 1)


CLASSES = {
    "two": (("good", "bad"), "bad", ("good", "bad")),
    "numbers": ((1, 2), "1", ("2", "1")),
    "three": (("low", "mid", "high"), "mid", ("not mid", "mid")),
}


@pytest.mark.parametrize("case", CLASSES)
def test_the_positive_class(tmp_path, case):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    classes, positive, names = CLASSES[case]
    table = table_of(tmp_path, "x,sex,y", lambda i: (i * i % 31, "fm"[i % 2], classes[i // 2 % len(classes)]))
    data = prepare(table, ["sex"], "y", positive=positive)
    expected = [int(str(classes[i // 2 % len(classes)]) == names[1]) for i in range(120)]
    assert data.label.tolist() == data.class_codes.tolist() == expected
    assert data.preparation.classes == names
    path = tmp_path / "people.parquet"
    columns = {
        "x": [float(i * i % 31) for i in range(120)],
        "sex": ["f", "m"] * 60,
        "y": [classes[i // 2 % len(classes)] for i in range(120)],
    }
    pyarrow.parquet.write_table(pa.table(columns), path)
    batches = streamed(path, "sex", "y", positive=positive, sample_rows=200)
    assert batches.label.tolist() == expected
    assert batches.preparation.classes == names
    with pytest.raises(TableError, match="has no class 'worst'; it has"):
        prepare(table, ["sex"], "y", positive="worst")
    with pytest.raises(TableError, match="without a label"):
        prepare(table, ["sex"], positive=positive)


def test_small_groups_are_merged_in_memory_and_streamed_alike(tmp_path, rng):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    sizes = {"a": 300, "b": 200, "c": 60, "d": 7, **{f"e{i}": 3 for i in range(30)}}
    region = rng.permutation(np.repeat(list(sizes), list(sizes.values())))
    x = rng.normal(size=len(region))
    x[:40] = np.nan
    told = np.where(np.isin(region, ["a", "b", "c"]), region, "rest")  # reveals the merged groups
    path = tmp_path / "people.parquet"
    columns = {"x": x, "y": rng.normal(size=len(region)), "told": told, "region": region}
    pyarrow.parquet.write_table(pa.table(columns), path, row_group_size=90)
    whole = prepare(read_table(path), ["region"], merge_small=50)
    batches = streamed(path, "region", merge_small=50, sample_rows=1000)
    assert sorted(set(whole.groups)) == ["a", "b", "c", "other"]
    assert set(whole.preparation.merged) == {label for label in sizes if label not in "abc"} & set(region[40:])
    assert whole.preparation.left_out == {"told": "it reveals the group"}
    rounded = {name: getattr(whole.preparation, name) for name in ("offsets", "scales")}
    assert replace(batches.preparation, sampled="", **rounded) == whole.preparation
    np.testing.assert_array_equal(batches.groups, whole.groups)
    np.testing.assert_array_equal(batches.moments.labels, sorted(set(whole.groups)))
    with pytest.raises(TableError, match=r"34 different values.*merge the small ones"):
        prepare(read_table(path), ["region"])


def test_one_small_group_needs_another(tmp_path):
    table = table_of(tmp_path, "x,sex", lambda i: (i * i % 31, "x" if i < 7 else "fm"[i % 2]))
    for merge in (0, 10):
        with pytest.raises(TableError, match=r"Group '(x|other)' of 'sex' has 7 rows; .* merge it with others"):
            prepare(table, ["sex"], merge_small=merge)
    assert prepare(table, ["sex"], merge_small=57).preparation.groups == {"m": 57, "other": 63}


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("", lambda i: i, "it counts the rows"),
        ("Unnamed: 0", lambda i: 3 * i + i % 2, "it identifies the rows"),
        ("id", lambda i: 1000 - i, "it identifies the rows"),
        ("ID", lambda i: 10**9 + 17 * i, "it identifies the rows"),
        ("patient", lambda i: 500 + i, "it counts the rows"),
        ("id", lambda i: i // 4, None),  # persons with several rows
        ("id", lambda i: i + 0.5, None),
        ("age", lambda i: 2 * i, None),
        ("row", lambda i: "" if i == 3 else i, None),
    ],
)
def test_columns_that_count_the_rows_are_left_out(tmp_path, name, values, reason):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    table = table_of(tmp_path, f"{name},x,sex", lambda i: (values(i), i * i % 31, "fm"[i % 2]))
    name = name or "column 1"
    path = tmp_path / "people.parquet"
    numbers = [None if values(i) == "" else float(values(i)) for i in range(120)]
    columns = {name: numbers, "x": [float(i * i % 31) for i in range(120)], "sex": ["f", "m"] * 60}
    pyarrow.parquet.write_table(pa.table(columns), path, row_group_size=50)
    for data in (prepare(table, ["sex"]), prepare(read_table(path), ["sex"]), streamed(path, "sex")):
        assert data.preparation.left_out == ({} if reason is None else {name: reason})
        assert (name in data.feature_names) == (reason is None)


def seen_in_parts(*parts):
    seen = SeenNumbers("x")
    for part in parts:
        seen.add(part)
    return seen.unfit_reason(sum(map(len, parts)))


def test_numbers_that_count_within_parts_only():
    assert seen_in_parts(np.arange(250.0), np.arange(300.0, 400.0)) is None
    assert seen_in_parts(np.full(9, 2.0**64)) == "it is constant"  # which is the same plus one


def test_row_numbers_do_not_depend_on_the_parts(rng):
    values = np.arange(500.0)
    for column in (values, np.where(values == 250, 251, values), values[::-1].copy()):
        cuts = np.sort(rng.integers(0, 500, 4))
        assert seen_in_parts(*np.split(column, cuts)) == seen_in_parts(column)
