"""Files become features, groups and label, and what was done is said."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca.datasets.table import Encoder, class_values, prepare_table, read_table


def write(folder, text, name="people.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def rows(count=40, header="age,city,sex,default"):
    lines = [f"{20 + i % 17},{('Bonn', 'Ulm', 'Köln')[i % 3]},{('f', 'm')[i % 2]},{i % 2}" for i in range(count)]
    return "\n".join([header, *lines]) + "\n"


def test_numbers_text_groups_and_label(tmp_path):
    table = read_table(write(tmp_path, rows()))
    data = prepare_table(table, ["sex"], "default")
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
    data = prepare_table(read_table(write(tmp_path, text)), ["sex"], "y")
    assert np.unique(data.label).tolist() == expected
    assert data.class_codes.tolist() == [expected.index(value) for value in data.label.tolist()]


def test_texts_that_are_the_same_number_stay_apart():
    assert class_values(np.array(["01", "1"], dtype=object)).tolist() == ["01", "1"]
    assert class_values(np.array(["inf", "1"], dtype=object)).tolist() == ["inf", "1"]


def test_own_units_are_kept_on_request(tmp_path):
    data = prepare_table(read_table(write(tmp_path, rows())), ["sex"], "default", standardise=False)
    assert data.X[:, 0].min() == 20
    assert set(np.unique(data.X[:, 1:])) == {0.0, 1.0}


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_delimiters_and_byte_order_mark(tmp_path, delimiter):
    text = "\ufeff" + rows().replace(",", delimiter)
    assert list(read_table(write(tmp_path, text)).columns) == ["age", "city", "sex", "default"]


def test_missing_values_drop_rows_and_constants_columns(tmp_path):
    lines = rows().splitlines()
    lines[0] += ",same,empty"
    lines[1:] = [line + ",7," for line in lines[1:]]
    lines[3] = lines[3].replace(lines[3].split(",")[0], "?", 1)
    data = prepare_table(read_table(write(tmp_path, "\n".join(lines))), ["sex"], "default")
    assert len(data.X) == 39
    said = " / ".join(data.remarks)
    assert "left out 'same': it is constant" in said
    assert "left out 'empty': 100% of it is missing" in said
    assert "dropped 1 of 40 rows" in said


def test_copies_of_the_group_are_left_out(tmp_path):
    lines = rows().splitlines()
    lines[0] += ",title"
    lines[1:] = [line + (",Ms" if ",f," in line else ",Mr") for line in lines[1:]]
    data = prepare_table(read_table(write(tmp_path, "\n".join(lines))), ["sex"], "default")
    assert not any(name.startswith("title") for name in data.feature_names)
    assert any("title" in remark and "read off" in remark for remark in data.remarks)


def test_combinations_of_columns_are_groups(tmp_path):
    data = prepare_table(read_table(write(tmp_path, rows(120))), ["sex", "city"])
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
def test_bad_files_end_in_one_sentence(tmp_path, case):
    text, sensitive, label, expected = BAD[case]
    with pytest.raises(ValueError, match=expected) as caught:
        prepare_table(read_table(write(tmp_path, text)), sensitive, label)
    assert "\n" not in str(caught.value)


def test_other_encodings_name_line_and_remedy(tmp_path):
    with pytest.raises(ValueError, match=r"not UTF-8 \(byte 0xf6 in line 4\).*iconv"):
        read_table(write(tmp_path, rows(), encoding="latin1"))


def test_text_with_many_levels_is_refused(tmp_path):
    text = "name,age,sex\n" + "".join(f"p{i},{i % 7},{i % 2}\n" for i in range(10_000))
    with pytest.raises(ValueError, match="'name' is text with 10000 different values"):
        prepare_table(read_table(write(tmp_path, text)), ["sex"])
    table = read_table(tmp_path / "people.csv")
    assert prepare_table(table, ["sex"], drop=["name"]).feature_names == ["age"]


def test_too_many_groups_are_refused(tmp_path):
    text = "age,x,sex\n" + "".join(f"{i % 21},{i},{i % 2}\n" for i in range(500))
    table = read_table(write(tmp_path, text))
    with pytest.raises(ValueError, match="'age' has 21 different values"):
        prepare_table(table, ["age"])


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
    ours, theirs = (prepare_table(read_table(p), ["sex"], "default") for p in (source, path))
    np.testing.assert_array_equal(ours.X, theirs.X)
    np.testing.assert_array_equal(ours.groups, theirs.groups)
    damaged = tmp_path / f"damaged.{kind}"
    damaged.write_bytes(b"PAR1 nothing")
    with pytest.raises(ValueError, match="cannot be read"):
        read_table(damaged)


def test_encoder_survives_json_and_treats_new_rows_alike(tmp_path):
    table = read_table(write(tmp_path, rows()))
    data = prepare_table(table, ["sex"], "default")
    again = Encoder.from_dict(data.encoder.as_dict())
    np.testing.assert_array_equal(again.encode(table), data.X)
    new = read_table(write(tmp_path, "city,age\nParis,20\nBonn,21\n", "new.csv"))
    assert again.unknown_levels(new) == {"city": ["Paris"]}
    assert again.encode(new).shape == (2, 4)
    with pytest.raises(ValueError, match="damaged"):
        Encoder.from_dict({"numeric": ["a"], "levels": {}, "offsets": [], "scales": []})
    text = read_table(write(tmp_path, "city,age\nBonn,old\n", "text.csv"))
    with pytest.raises(ValueError, match="'age' must hold numbers, but contains 'old'"):
        again.encode(text)
