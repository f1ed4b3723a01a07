"""A messy table: everything that is wrong is said at once, and everything that a reader may want to change."""

from __future__ import annotations

import shlex
import sys

import numpy as np
import pytest
from tests.audit.files import rows, streamed, write

from fairpca.audit import TableError, load, prepare, read_table
from fairpca.audit.command import main

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.csv")
CITIES = ("Bonn", "Ulm", "Köln")


def messy(count=300):
    lines = ["Customer ID,Signup Date,age,City,Comment,sex"]
    for i in range(count):
        day = f"20{i % 23:02}-{i % 12 + 1:02}-{i % 28 + 1:02}"
        lines.append(f"c{i},{day},{20 + i * i % 31},{CITIES[i * i % 7 % 3]},note {i},{'fm'[i % 2]}")
    return "\n".join(lines) + "\n"


def test_all_columns_that_cannot_be_features_are_named_at_once_with_a_command_that_works(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, messy())
    fit = ["fit", "people.csv", "--sensitive", "sex", "--out", "m.npz"]
    assert main(fit) == 2
    said = capsys.readouterr().err
    assert said.startswith(
        "fairpca: 3 columns of people.csv cannot be features: Column 'Customer ID' is text with 300 "
    )
    assert "Column 'Signup Date' holds 300 dates such as '2000-01-01'" in said
    assert "Column 'Comment' is text with 300 different values" in said
    assert said.count("\n") == 1
    option = said.partition("leave them out (")[2].partition(")")[0]
    assert main([*fit, *shlex.split(option)]) == 0
    repeated = ["--drop", "Customer ID", "--drop", "Signup Date", "--drop", "Comment"]
    assert main([*fit, *repeated]) == 0


def test_a_date_alone_says_what_to_do(tmp_path):
    with pytest.raises(TableError, match=r"holds 300 dates .*: derive a number such as the year, or leave it out"):
        prepare(write(tmp_path, messy()), "sex", drop="Customer ID,Comment")


def test_names_with_blanks(tmp_path):
    text = rows(header="age,city ,sex,default")
    remarks = prepare(write(tmp_path, text), "sex", drop="city").remarks
    assert "blanks around the column name 'city ' were removed; use the name without them" in remarks
    with pytest.raises(TableError, match=r"two columns named 'sex' once blanks are removed \('sex', 'sex '\)"):
        read_table(write(tmp_path, rows(header="age,city,sex,sex ")))


def test_a_comma_in_a_name_is_no_list(tmp_path):
    text = '"age, in years",city,sex,default\n' + rows().partition("\n")[2]
    assert prepare(write(tmp_path, text), "sex", drop="age, in years").feature_names[0] == "city=Bonn"
    with pytest.raises(TableError, match="has no column 'in years'"):
        prepare(write(tmp_path, rows()), "sex", drop="age,in years")


def test_groups_that_differ_in_case_only_are_said_first_and_merged_on_request(tmp_path, capsys):
    text = "x,y,sex\n" + "".join(f"{i * i % 31},{i * i % 37},{('F', 'f', 'Female', 'M')[i % 4]}\n" for i in range(160))
    path = write(tmp_path, text)
    data = prepare(path, "sex")
    assert list(data.preparation.groups) == ["F", "Female", "M", "f"]
    assert data.remarks[0] == (
        "the values 'F' and 'f' of 'sex' differ in case or blanks only; merge them if they mean the same"
    )
    fit = ["fit", str(path), "--sensitive", "sex", "--out", str(tmp_path / "m.npz")]
    assert main(fit) == 0
    option = " ".join(capsys.readouterr().out.split()).partition("if they mean the same (")[2].partition(")")[0]
    assert main([*fit, *option.split(), "--merge", "Female=f"]) == 0
    said = capsys.readouterr().out
    assert "groups M (40), f (120)" in said
    assert "case or blanks" not in said  # they are merged


def test_merging_a_value_that_no_column_has_is_said(tmp_path):
    for data in (prepare, streamed):
        remarks = data(write(tmp_path, rows()), "sex", merge={"w": "f"}).remarks
        assert "no sensitive column has the value 'w', to be merged; check its spelling" in remarks


def test_the_rarer_spelling_is_merged_and_removed_blanks_are_said(tmp_path):
    text = "x,sex\n" + "".join(
        f"{i * i % 31},{'F' if i % 9 == 2 else 'f '[: 1 + i % 2] if i % 3 else 'm'}\n" for i in range(180)
    )
    first, second, *_ = prepare(write(tmp_path, text), "sex").remarks
    assert first.startswith("the values 'F' and 'f' of 'sex' differ in case")
    assert (
        second
        == "blanks around values of 'sex' were removed: 'f ' counts as 'f'; correct the file if they differ in meaning"
    )


def test_few_dates_become_levels_with_a_remark(rng):
    columns = {
        "x": rng.normal(size=300),
        "wave": rng.choice(["2020-01-01", "2021-01-01"], 300),
        "sex": ["f", "m"] * 150,
    }
    for data in (prepare(columns, "sex"), streamed(columns, "sex")):
        (said,) = [remark for remark in data.remarks if "dates" in remark]
        assert said.endswith("each encoded as a level; derive a number such as the year, or leave it out")


def test_whole_numbers_that_repeat_are_not_identifiers_in_a_sample(rng):
    """A sample may hold no number twice though the file does; what is said of a sample says so."""
    columns = {
        "salary": rng.integers(0, 20_000, 30_000), "customer": rng.permutation(30_000) * 2, "sex": ["f", "m"] * 15_000,
    }  # fmt: skip
    said = [remark for remark in streamed(columns, "sex", sample_rows=120).remarks if "whole number" in remark]
    assert said == [
        "'customer' has a different whole number in every row, as identifiers have, as far as 120 random rows show; "
        "leave it out if it is one"
    ]


def test_a_label_of_three_classes_asks_for_the_positive_one(tmp_path):
    text = "x,sex,risk\n" + "".join(f"{i * i % 31},{'fm'[i % 2]},{('low', 'mid', 'high')[i % 3]}\n" for i in range(120))
    path = write(tmp_path, text)
    (said,) = [remark for remark in prepare(path, "sex", "risk").remarks if "positive class" in remark]
    assert "has 3 classes: high (40), low (40), mid (40); name the positive class" in said
    assert not [one for one in prepare(path, "sex", "risk", positive="high").remarks if "no decisions" in one]


def test_columns_that_may_be_no_features_are_remarked(rng):
    columns = {
        "income": rng.normal(size=400).round(3), "copy": None, "zip_code": rng.integers(10_000, 10_050, 400),
        "customer": rng.permutation(400) + 7000, "age": rng.integers(20, 70, 400), "city": rng.choice(["a", "b"], 400),
        "town": None, "sex": rng.choice(["f", "m"], 400),
    }  # fmt: skip
    columns |= {"copy": columns["income"], "town": columns["city"]}
    for data in (prepare(columns, "sex"), streamed(columns, "sex")):
        said = " / ".join(data.remarks)
        assert "identical columns: 'copy' of 'income', 'town' of 'city'; leave the copies out" in said
        assert "'zip_code' holds codes, but counts as a number; leave it out" in said
        assert "'customer' has a different whole number in every row, as identifiers have" in said
        assert said.count("; leave") == 3


@pytest.mark.parametrize("kind", ["parquet", "csv", "csv.gz"])
def test_a_folder_is_read_as_one_table(tmp_path, monkeypatch, kind):
    import pyarrow.csv
    import pyarrow.parquet

    whole = pyarrow.csv.read_csv(write(tmp_path, rows(120)))
    folder = tmp_path / "parts"
    folder.mkdir()
    for number in range(3):
        part, path = whole.slice(40 * number, 40), str(folder / f"{number}.{kind}")
        if kind == "parquet":
            pyarrow.parquet.write_table(part, path)
            continue
        with pyarrow.output_stream(path) as stream:
            pyarrow.csv.write_csv(part, stream)
    one, several = (prepare(path, "sex", "default") for path in (whole, folder))
    np.testing.assert_array_equal(one.X, several.X)
    np.testing.assert_array_equal(one.groups, several.groups)
    assert several.preparation.file == "parts"
    monkeypatch.setattr(sys.modules["fairpca.audit.prepare"], "STREAM_NUMBERS", 100)
    assert prepare(folder, "sex", "default").moments.total_count == 120
    odd = folder / f"9.{kind}"
    if kind == "csv":
        odd.write_text("other\n1\n")
        with pytest.raises(TableError, match=r"9\.csv and 0\.csv of parts differ in their columns"):
            prepare(folder, "sex")


@pytest.mark.parametrize("options", [{}, {"impute": "median"}, {"standardise": False, "impute": "median"}])
def test_scikit_learn_prepares_alike(rng, options):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "a": rng.normal(size=900), "b": rng.integers(0, 9, 900).astype(float),
            "city": rng.choice(["x", "y", "z", "v", "w"], 900, p=[0.5, 0.3, 0.16, 0.02, 0.02]),
            "job": rng.choice(np.array(["u", "v", None, "w"], dtype=object), 900, p=[0.5, 0.3, 0.19, 0.01]),
            "sex": rng.choice(["f", "m"], 900),
        }
    )  # fmt: skip
    frame.loc[::7, "b"] = np.nan
    frame.loc[5:9, "a"] = np.nan
    data = prepare(frame, "sex", **options)
    used = frame if options else frame.dropna(subset=["a", "b"])
    theirs = data.preparation.to_sklearn().fit(used)
    np.testing.assert_allclose(theirs.transform(used), data.X, atol=1e-12)
    new = pandas.DataFrame({"a": [0.5], "b": [3.0], "city": ["elsewhere"], "job": [None]})
    with pytest.warns(UserWarning, match="'city' has values the model has not seen"):
        np.testing.assert_allclose(theirs.transform(new), data.preparation.transform(new), atol=1e-12)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_weights_persons_and_medians_do_not_depend_on_the_division(tmp_path, rng, monkeypatch, size):
    """A CSV file in memory, in batches of any size, and as a data frame."""
    x = np.where(rng.random(200) < 0.1, np.nan, rng.normal(size=200).round(3))
    columns = {
        "x": x, "y": rng.normal(size=200).round(3), "city": rng.choice(["a", "b", "c"], 200),
        "w": rng.integers(0, 3, 200), "person": rng.integers(0, 90, 200),
        "old": rng.choice(["yes", "no"], 200), "sex": rng.choice(["f", "m"], 200),
    }  # fmt: skip
    names = ",".join(columns)
    body = "".join(
        ",".join("" if v != v else str(v) for v in row) + "\n" for row in zip(*columns.values(), strict=True)
    )
    path = write(tmp_path, f"{names}\n{body}")
    options = {"weights": "w", "clusters": "person", "impute": "median"}
    whole = prepare(path, ["sex", "old"], **options)
    monkeypatch.setattr("fairpca.audit.csv_table._BLOCK_BYTES", 512)
    monkeypatch.setattr("fairpca.audit.table._BATCH_NUMBERS", size)
    parts = prepare(path, ["sex", "old"], **options)
    batches = prepare(path, ["sex", "old"], **options, stream=True, sample_rows=1000)
    for other in (parts, batches, prepare(columns, ["sex", "old"], **options)):
        np.testing.assert_allclose(other.X, whole.X, atol=1e-9)
        np.testing.assert_array_equal(other.groups, whole.groups)
        np.testing.assert_allclose(other.weights, whole.weights)
        persons = {tuple(sorted(np.flatnonzero(other.clusters == one))) for one in set(other.clusters.tolist())}
        assert persons == {tuple(sorted(np.flatnonzero(whole.clusters == one))) for one in set(whole.clusters.tolist())}
    expected = np.average(whole.X, axis=0, weights=whole.weights)
    np.testing.assert_allclose(batches.moments.pooled_mean, expected, atol=1e-9)
    assert batches.moments.total_count == pytest.approx(len(whole.X))


def test_continuous_columns_in_memory_and_streamed(rng, tmp_path):
    age = rng.integers(20, 70, 500).astype(float)
    columns = {f"x{j}": rng.normal(size=500) + age / 20 for j in range(4)}
    columns |= {"age": np.where(rng.random(500) < 0.05, np.nan, age), "sex": rng.choice(["f", "m"], 500)}
    pyarrow.csv.write_csv(pyarrow.table(columns), tmp_path / "people.csv")
    fit = ["fit", str(tmp_path / "people.csv"), "--sensitive", "sex", "--continuous", "age", "--method", "ParityPCA"]
    found = []
    for option in ([], ["--stream"]):
        assert main([*fit, *option, "--out", str(tmp_path / "m.npz")]) == 0
        found.append(load(tmp_path / "m.npz"))
    np.testing.assert_allclose(*(np.abs(model.components_) for model in found), atol=1e-9)
    assert found[0].preparation.not_features == ("sex", "age")
    known = {name: values[np.isfinite(columns["age"])] for name, values in columns.items()}
    correlation = np.corrcoef(found[1].transform(known).T, known["age"])[-1, :-1]
    np.testing.assert_allclose(correlation, 0, atol=1e-9)
    assert main([*fit, "--method", "FairPCA"]) == 2
    with pytest.raises(TableError, match="The continuous values 'sex' of the data frame must be numbers, but contain"):
        prepare(columns | {"group": ["a", "b"] * 250}, "group", continuous=["sex"])
