"""Models of the command line take the original columns, as a file or as a data frame, and give the same scores."""

from __future__ import annotations

import copy
import csv
import json
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from fairpca import FairPCA, load_model, save_model
from fairpca.audit import PreparedModel, load
from fairpca.audit.command import main
from fairpca.persistence import read_model

pandas = pytest.importorskip("pandas")

CITIES = ("Bonn", "Ulm", "Köln")


@pytest.fixture
def people(tmp_path, monkeypatch):
    """Numbers, text with a rare level, flags that pandas reads as booleans, decimal commas, and a missing number."""
    monkeypatch.chdir(tmp_path)
    lines = ["id;age;rate;city;member;sex"]
    for i in range(400):
        city = "Oslo" if i in (3, 77) else CITIES[i * i % 31 % 3]
        age = "" if i == 9 else 20 + i * 7 % 41
        member = ("TRUE", "FALSE")[i * i % 7 % 2]
        lines.append(f"p{i};{age};{i % 13},{i % 10};{city};{member};{'fm'[i // 2 % 2]}")
    path = tmp_path / "people.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def fit(path, *options):
    assert main(["fit", str(path), "--sensitive", "sex", "--drop", "id", "--out", "m.npz", *options]) == 0
    return load("m.npz")


def scores_of_file(path, *options):
    assert main(["transform", "m.npz", str(path), "--out", "scores.csv", *options]) == 0
    with open("scores.csv", newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))[1:]
    return np.array([[float(cell) if cell else np.nan for cell in row] for row in rows])


def test_a_frame_gives_the_scores_of_its_file(people, capsys):
    model = fit(people)
    expected = scores_of_file(people)
    assert "1 of 400 rows lack a number (age in 1): their scores are missing." in capsys.readouterr().err
    assert np.isnan(expected[9]).all()
    assert np.isfinite(np.delete(expected, 9, axis=0)).all()
    frames = [
        pandas.read_csv(people, sep=";"),
        pandas.read_csv(people, sep=";", dtype=str, keep_default_na=False),
        pandas.read_csv(people, sep=";", decimal=","),
        pandas.read_csv(people, sep=";").convert_dtypes(),
        pandas.read_csv(people, sep=";")[["sex", "member", "city", "age", "rate"]],
    ]
    for frame in frames:
        with pytest.warns(UserWarning, match="1 of 400 rows lack a number"):
            np.testing.assert_allclose(model.transform(frame), expected, rtol=1e-12)


def test_polars_and_arrow_frames(people, capsys):
    model, frame = fit(people), pandas.read_csv(people, sep=";", decimal=",").drop(index=9)
    expected = model.transform(frame)
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    columns = {name: frame[name].tolist() for name in frame.columns}
    for other in (columns, polars.DataFrame(columns), pyarrow.table(columns)):
        np.testing.assert_allclose(model.transform(other), expected, rtol=1e-12)
    capsys.readouterr()


def test_rare_and_new_levels(people, capsys):
    model, frame = fit(people), pandas.read_csv(people, sep=";", decimal=",").iloc[:9]
    assert model.preparation.pooled["city"] == {"Oslo": 2}
    frame = frame.assign(city="Paris")
    with pytest.warns(UserWarning, match=r"'city' has values the model has not seen \('Paris'\)"):
        new = model.transform(frame)
    np.testing.assert_array_equal(new, model.transform(frame.assign(city="Oslo")))  # both have no column
    capsys.readouterr()


def test_imputation_is_part_of_the_model(people, capsys):
    model = fit(people, "--impute", "median")
    assert "age=(missing)" in model.preparation.feature_names
    scores = scores_of_file(people)
    assert np.isfinite(scores).all()
    frame = pandas.read_csv(people, sep=";", decimal=",")
    np.testing.assert_allclose(model.transform(frame), scores, rtol=1e-12)
    frame["rate"] = np.nan  # a column that was complete in fitting is filled in, too
    assert np.isfinite(model.transform(frame)).all()
    capsys.readouterr()


def test_missing_tokens_are_those_of_the_fit(people, capsys):
    people.write_text(people.read_text(encoding="utf-8").replace(";27;", ";-;"), encoding="utf-8")
    model = fit(people, "--missing", "-")
    n_missing = people.read_text(encoding="utf-8").count(";-;") + 1
    assert np.isnan(scores_of_file(people)[:, 0]).sum() == n_missing
    with pytest.warns(UserWarning, match=f"{n_missing} of 400 rows"):
        model.transform(pandas.read_csv(people, sep=";", decimal=","))
    other = people.with_name("other.csv")
    other.write_text(people.read_text(encoding="utf-8").replace(";-;", ";x;"), encoding="utf-8")
    assert main(["transform", "m.npz", str(other)]) == 2
    assert "must contain numbers, but contains 'x': correct it, or declare it missing (--missing)." in (
        capsys.readouterr().err
    )
    assert np.isnan(scores_of_file(other, "--missing", "x")[:, 0]).sum() == n_missing


def test_what_is_refused(people, capsys):
    model, frame = fit(people), pandas.read_csv(people, sep=";", decimal=",")
    for matrix in (np.zeros((3, 4)), [[1.0, 2.0]], frame.to_numpy()):
        with pytest.raises(TypeError, match="without column names, but this model prepares the columns 'age'"):
            model.transform(matrix)
    with pytest.raises(ValueError, match="the data frame has no column 'city'"):
        model.transform(frame.drop(columns="city"))
    with pytest.raises(ValueError, match="the data frame has two columns named 'age'"):
        model.transform(pandas.concat([frame, frame[["age"]]], axis=1))
    with pytest.raises(ValueError, match="'age' must contain numbers, but contains 'old'"):
        model.transform(frame.assign(age="old"))
    with pytest.raises(AttributeError, match=r"use \.estimator\.fit"):
        model.fit(frame)
    prepared = np.zeros((1, len(model.preparation.offsets)))
    assert model.estimator.transform(prepared).shape == (1, 2)
    capsys.readouterr()


def test_it_behaves_like_the_estimator(people, capsys):
    model, frame = fit(people), pandas.read_csv(people, sep=";", decimal=",").drop(index=9)
    assert isinstance(model.estimator, FairPCA)
    assert model.criterion == "loss"
    assert model.components_ is model.estimator.components_
    assert model.feature_names_in_.tolist() == ["age", "rate", "city", "member"]
    assert model.score(frame) == pytest.approx(
        model.estimator.score(model.preparation.transform(people)[np.arange(400) != 9])
    )
    assert repr(model).startswith("PreparedModel(FairPCA(random_state=0), columns: age, rate, city, member")
    expected = model.transform(frame)
    for twin in (clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(twin.transform(frame), expected)
    shown = model.set_output(transform="pandas").transform(frame)
    assert shown.index.equals(frame.index)
    assert shown.columns.tolist() == ["fairpca0", "fairpca1"]
    capsys.readouterr()


def test_it_can_be_saved_again(people, capsys):
    model, frame = fit(people, "--missing", "-"), pandas.read_csv(people, sep=";", decimal=",").drop(index=9)
    again = load(model.save("again.npz"))
    np.testing.assert_array_equal(again.transform(frame), model.transform(frame))
    assert again.preparation == model.preparation
    assert type(load_model("again.npz")) is FairPCA
    plain = load_model(save_model(model.estimator, "plain.npz"))
    assert type(plain) is FairPCA
    assert main(["transform", "plain.npz", str(people)]) == 2
    assert "does not say how columns are prepared" in capsys.readouterr().err


@pytest.mark.parametrize(
    "damage",
    [
        3,
        {"delimiter": ",,"},
        {"missing": 1},
        {"scales": [0.0]},
        {"offsets": ["a"]},
        {"numeric": ["x"]},
        {"fills": {"x": 1}},
        {"levels": {"city": 3}},
        {"pooled": {"city": 3}},
        {"notes": ["x"]},
        {"dropped": {"x": 1}},
    ],
)
def test_damaged_preparations_are_refused(people, capsys, damage):
    fit(people)
    saved = read_model("m.npz")
    record = damage if isinstance(damage, int) else saved.extra["preparation"] | damage
    save_model(saved.estimator, "bad.npz", extra={"preparation": record})
    with pytest.raises(ValueError, match=r"bad\.npz is not a fairpca model, or it is damaged"):
        load("bad.npz")
    capsys.readouterr()


def test_the_record_is_stored_with_the_model(people, capsys):
    fit(people)
    record = read_model("m.npz").extra["preparation"]
    assert json.loads(json.dumps(record)) == record
    assert record["dropped"]["by_column"] == {"age": 1}
    assert record["pooled"]["city"] == {"Oslo": 2}
    assert record["delimiter"] == ";"
    assert isinstance(load("m.npz"), PreparedModel)
    capsys.readouterr()


def test_models_of_parquet_files_score_csv_files(people, capsys):
    """The tokens of CSV files are no matter of the fit then."""
    pytest.importorskip("pyarrow")
    frame = pandas.read_csv(people, sep=";", decimal=",").drop(columns="id")
    frame.to_parquet("people.parquet")
    assert main(["fit", "people.parquet", "--sensitive", "sex", "--out", "m.npz"]) == 0
    expected = scores_of_file("people.parquet")
    frame.assign(age=frame.age.astype(object).where(frame.age.notna(), "NA"), note=[[1]] * 400).to_csv("plain.csv")
    np.testing.assert_allclose(scores_of_file("plain.csv"), expected, rtol=1e-12)
    with pytest.warns(UserWarning, match="1 of 400 rows lack a number"):
        np.testing.assert_allclose(load("m.npz").transform(frame), expected, rtol=1e-12)
    capsys.readouterr()


def test_that_there_are_no_tokens_is_part_of_the_model(people, capsys):
    people.write_text(people.read_text(encoding="utf-8").replace("Ulm", "NA"), encoding="utf-8")
    model = fit(people, "--no-missing")
    assert model.preparation.levels["city"] == ("Bonn", "Köln", "NA")
    frame = pandas.read_csv(people, sep=";", decimal=",", keep_default_na=False, na_values={"age": ""})
    scores = scores_of_file(people)
    with pytest.warns(UserWarning, match="lack a number"):  # and no new levels
        np.testing.assert_allclose(model.transform(frame), scores, rtol=1e-12)
    assert model.preparation.tokens.usual == ()
    capsys.readouterr()
