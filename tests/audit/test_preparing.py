"""Files are split into features, groups and label, and remarks describe what was done."""

from __future__ import annotations

import numpy as np
import pytest
from tests.audit.files import rows, streamed, write

from fairpca.audit import prepare, read_table


def test_numbers_text_groups_and_label(tmp_path):
    table = read_table(write(tmp_path, rows()))
    data = prepare(table, ["sex"], "default")
    assert data.feature_names == ["age", "city=Bonn", "city=Köln", "city=Ulm"]
    assert sorted(set(data.groups)) == ["f", "m"]
    assert sorted(set(data.label)) == [0, 1]
    np.testing.assert_allclose(data.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(data.X.std(axis=0), 1)
    said = " / ".join(data.remarks)
    assert "1 numeric columns: age" in said
    assert "city (3 levels)" in said
    assert "not among the features: sex, default" in said


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        (("9", "10"), [9, 10]),
        (("9.5", "10.5"), [9.5, 10.5]),
        (("-1", "1"), [-1, 1]),
        (("1e3", "20"), [20, 1000]),
        (("no", "yes"), ["no", "yes"]),
        (("9", "10+"), ["10+", "9"]),
        (("01", "x"), ["01", "x"]),
    ],
)
def test_classes_are_ordered_as_numbers_where_all_are_numbers(tmp_path, classes, expected):
    text = "\n".join(["age,sex,y", *(f"{i % 17},{i % 2},{classes[i % 3 % 2]}" for i in range(60))])
    data = prepare(read_table(write(tmp_path, text)), ["sex"], "y")
    assert np.unique(data.label).tolist() == expected
    assert data.class_codes.tolist() == [expected.index(value) for value in data.label.tolist()]


def test_own_units_are_kept_on_request(tmp_path):
    data = prepare(read_table(write(tmp_path, rows())), ["sex"], "default", standardise=False)
    assert data.X[:, 0].min() == 20
    assert set(np.unique(data.X[:, 1:])) == {0.0, 1.0}


def test_missing_values_drop_rows_and_constants_columns(tmp_path):
    lines = rows().splitlines()
    lines[0] += ",same,empty"
    lines[1:] = [line + ",7," for line in lines[1:]]
    lines[3] = lines[3].replace(lines[3].split(",")[0], "?", 1)
    data = prepare(read_table(write(tmp_path, "\n".join(lines))), ["sex"], "default")
    assert len(data.X) == 39
    said = " / ".join(data.remarks)
    assert "left out 'same': it is constant" in said
    assert "left out 'empty': 100% of it is missing" in said
    assert "dropped 1 of 40 rows" in said


def test_copies_of_the_group_are_left_out(tmp_path):
    lines = rows().splitlines()
    lines[0] += ",title"
    lines[1:] = [line + (",Ms" if ",f," in line else ",Mr") for line in lines[1:]]
    data = prepare(read_table(write(tmp_path, "\n".join(lines))), ["sex"], "default")
    assert not any(name.startswith("title") for name in data.feature_names)
    assert any("title" in remark and "reveals the group" in remark for remark in data.remarks)


def test_combinations_of_columns_are_groups(tmp_path):
    data = prepare(read_table(write(tmp_path, rows(120))), ["sex", "city"])
    assert sorted(set(data.groups)) == sorted(f"{s}, {c}" for s in "fm" for c in ("Bonn", "Köln", "Ulm"))


BAD = {
    "no such column": (rows(), ["gender"], None, "no column 'gender'"),
    "empty": ("", ["sex"], None, "is empty"),
    "only a header": ("age,sex\n", ["sex"], None, "no rows"),
    "one group": (rows().replace(",m,", ",f,"), ["sex"], None, "a single group, 'f'"),
    "ragged": (rows() + "1,2\n", ["sex"], None, "line 42: 2 values"),
    "two columns of a name": (rows(header="age,city,sex,sex"), ["sex"], None, "two columns named 'sex'"),
    "label is the group": (rows(), ["sex"], "sex", "cannot be both"),
    "one class": (rows().replace(",1\n", ",0\n"), ["sex"], "default", "single value"),
    "small group": (rows() + "30,Ulm,x,1\n", ["sex"], None, "'x' of 'sex' has 1 rows"),
}


@pytest.mark.parametrize("case", BAD, ids=str)
def test_bad_files_raise_one_clear_error(tmp_path, case):
    text, sensitive, label, expected = BAD[case]
    with pytest.raises(ValueError, match=expected) as caught:
        prepare(read_table(write(tmp_path, text)), sensitive, label)
    assert "\n" not in str(caught.value)


def test_text_with_many_levels_is_refused(tmp_path):
    text = "name,age,sex\n" + "".join(f"p{i},{i % 7},{i % 2}\n" for i in range(10_000))
    with pytest.raises(ValueError, match="'name' is text with 10000 different values"):
        prepare(read_table(write(tmp_path, text)), ["sex"])
    table = read_table(tmp_path / "people.csv")
    assert prepare(table, ["sex"], drop=["name"]).feature_names == ["age"]


def test_too_many_groups_are_refused(tmp_path):
    text = "age,x,sex\n" + "".join(f"{i % 21},{i},{i % 2}\n" for i in range(500))
    table = read_table(write(tmp_path, text))
    with pytest.raises(ValueError, match="'age' has 21 different values"):
        prepare(table, ["age"])


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_arrow_files_equal_csv(tmp_path, kind):
    pytest.importorskip("pyarrow")
    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    source = write(tmp_path, rows())
    table = pyarrow.csv.read_csv(source)
    path = tmp_path / f"people.{kind}"
    if kind == "parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        pyarrow.feather.write_feather(table, str(path))
    ours, theirs = (prepare(read_table(p), ["sex"], "default") for p in (source, path))
    np.testing.assert_array_equal(ours.X, theirs.X)
    np.testing.assert_array_equal(ours.groups, theirs.groups)
    damaged = tmp_path / f"damaged.{kind}"
    damaged.write_bytes(b"PAR1 nothing")
    with pytest.raises(ValueError, match="cannot be read"):
        read_table(damaged)


@pytest.mark.parametrize(
    ("written", "labels"),
    [
        (("01", "1"), None),
        (("1_1", "11"), None),
        ((str(2**60), str(2**60 + 1)), None),
        (("1", "1.0"), None),
        (("1.10", "1.1"), None),
        (("+1", "1"), None),
        (("-0", "0"), None),
        (("1,5", "15"), None),
        ((" 7", "8 "), ["7", "8"]),
    ],
)
@pytest.mark.parametrize("role", ["sensitive", "label"])
def test_labels_that_are_written_differently_stay_apart(tmp_path, written, labels, role):
    other = "label" if role == "sensitive" else "sensitive"
    body = "".join(f"{i * i % 23};{written[i % 2]};{'ab'[i // 2 % 2]}\n" for i in range(60))
    data = prepare(read_table(write(tmp_path, f"x;{role};{other}\n{body}")), ["sensitive"], "label")
    found = data.groups if role == "sensitive" else data.label
    if found.dtype != float:  # fractional classes are numbers
        assert sorted(set(map(str, found))) == sorted(labels or written)
    np.testing.assert_array_equal(found == found[0], np.arange(60) % 2 == 0)


@pytest.mark.parametrize("kind", ["parquet", "feather"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_large_integers_and_decimals_of_arrow_files_stay_apart(tmp_path, kind, dictionary):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.feather
    import pyarrow.parquet

    values = {
        "int64": pa.array([2**60, 2**60 + 1] * 30),
        "uint64": pa.array([2**64 - 1, 2**64 - 2] * 30, pa.uint64()),
        "decimal": pa.array([12345678901234567890, 12345678901234567891] * 30, pa.decimal128(20)),
    }
    for column in values.values():
        labels = column.dictionary_encode() if dictionary and not pa.types.is_decimal(column.type) else column
        table = pa.table({"x": np.arange(60.0) % 23, "y": np.arange(60.0) % 19, "group": labels})
        path = tmp_path / f"people.{kind}"
        write_table = pyarrow.parquet.write_table if kind == "parquet" else pyarrow.feather.write_feather
        write_table(table, str(path))
        in_memory, batches = prepare(read_table(path), ["group"]), streamed(path, "group", sample_rows=60)
        expected = sorted(map(str, column.to_pylist()[:2]))
        assert sorted(set(in_memory.groups)) == sorted(set(batches.groups)) == list(batches.moments.labels) == expected


def test_decimal_commas_are_reported(tmp_path):
    body = "".join(f"{i % 23},{i % 10};{'fm'[i % 2]}\n" for i in range(60))
    data = prepare(read_table(write(tmp_path, f"height;sex\n{body}")), ["sex"], standardise=False)
    assert data.feature_names == ["height"]
    np.testing.assert_allclose(data.X[:, 0], [i % 23 + i % 10 / 10 for i in range(60)])
    assert "read the commas in 'height' as decimal points" in data.remarks


def test_ambiguous_commas_are_refused(tmp_path):
    body = "".join(f'"{i % 7 + 1},500",{i * i % 31},{i % 2}\n' for i in range(60))
    table = read_table(write(tmp_path, f"income,x,sex\n{body}"))
    with pytest.raises(ValueError, match=r"'income' of people\.csv contains numbers such as '1,500', whose comma may"):
        prepare(table, ["sex"])
    assert prepare(table, ["sex"], drop=["income"]).feature_names == ["x"]


GROUPS = ["north", "south", "west"]
#: Each entry: a column as a function of the row number, and whether it reveals the group, ``GROUPS[i % 3]``.
TELLING = {
    "title": (lambda i: f"{GROUPS[i % 3][0]}{i % 5}", True),
    "code": (lambda i: 10.0 * (i % 3) + i % 5, True),
    "copy": (lambda i: GROUPS[i % 3].upper(), True),
    "coast": (lambda i: ("yes", "yes", "no")[i % 3], False),
    "shore": (lambda i: (1.0, 1.0, 0.0)[i % 3], False),
    "mixed": (lambda i: "same" if i == 7 or i == 8 else GROUPS[i % 3], False),
    "measured": (lambda i: i % 3 + i / 1000, False),  # more values than groups can have
}


@pytest.mark.parametrize("column", TELLING)
def test_columns_that_reveal_the_group_are_left_out(tmp_path, column):
    """And no others: columns that are determined by the group alone may stay."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    value, tells = TELLING[column]
    columns = {"x": [float(i * i % 31) for i in range(90)], column: [value(i) for i in range(90)]}
    path = tmp_path / "people.parquet"
    pyarrow.parquet.write_table(pa.table(columns | {"region": [GROUPS[i % 3] for i in range(90)]}), path)
    for data in (prepare(read_table(path), ["region"]), streamed(path, "region")):
        assert (f"left out {column!r}: it reveals the group" in data.remarks) == tells
        assert any(name.startswith(column) for name in data.feature_names) != tells


def test_values_that_do_not_recur_do_not_reveal_the_group(tmp_path):
    """Twenty different numbers in twenty rows determine any group."""
    body = "".join(f"{i * 1.5},{i % 3},{i % 2}\n" for i in range(20))
    assert prepare(read_table(write(tmp_path, f"x,y,sex\n{body}")), ["sex"]).feature_names == ["x", "y"]


def test_columns_constant_once_rows_are_dropped(tmp_path):
    body = "".join(f"{i % 7},{'rare' if i == 5 else 'usual'},{'' if i == 5 else i % 5},{i % 2}\n" for i in range(60))
    data = prepare(read_table(write(tmp_path, f"x,kind,y,sex\n{body}")), ["sex"])
    assert data.feature_names == ["x", "y"]
    assert "left out 'kind': it is constant" in data.remarks
