"""Large files are read batch by batch, and give what they would give in memory."""

from __future__ import annotations

import contextlib
import csv
import json
import sys

import numpy as np
import pytest

from fairpca import FairPCA
from fairpca.audit import Preparation, prepare, read_table
from fairpca.audit.command import main
from fairpca.persistence import read_model

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
feather = pytest.importorskip("pyarrow.feather")
pyarrow_csv = pytest.importorskip("pyarrow.csv")
pq = pytest.importorskip("pyarrow.parquet")

N_ROWS = 900


@pytest.fixture(autouse=True)
def tiny_batches(monkeypatch):
    monkeypatch.setattr("fairpca.audit.table._BATCH_NUMBERS", 500)


@pytest.fixture
def columns():
    """Numbers of several types, text, an identifier, a constant, a copy of the group, and values that are missing."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], N_ROWS)
    income = rng.normal(20 + 5 * (sex == "m"), 4)
    age = [None if i == 3 else int(value) for i, value in enumerate(rng.integers(20, 60, N_ROWS))]
    city = rng.choice(["Bonn", "Ulm", "Köln"], N_ROWS).tolist()
    city[3], city[8], city[9] = "Trier", None, ""  # a level of an incomplete row only, and one of missing values
    rent = (0.3 * income + rng.normal(size=N_ROWS)).astype(np.float32)
    income[7] = np.nan
    return {
        "id": [f"p{i}" for i in range(N_ROWS)],
        "income": income,
        "age": pa.array(age),
        "rent": rent,
        "owner": rng.random(N_ROWS) < 0.4,
        "city": city,
        "same": np.full(N_ROWS, 0.1, dtype=np.float32),
        "title": np.where(sex == "f", "Ms", "Mr"),
        "empty": pa.array([1.0] + [None] * (N_ROWS - 1)),
        "sex": pa.array([None if i == 20 else str(value) for i, value in enumerate(sex)]),
        "old": rng.random(N_ROWS) < 0.3,
        "default": rng.integers(0, 2, N_ROWS),
    }


def write(folder, columns, kind="parquet"):
    path = folder / f"people.{kind}"
    table = pa.table(columns)
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=250)
    elif kind == "csv":
        pyarrow_csv.write_csv(table, path)
    else:
        feather.write_feather(table, str(path), chunksize=300)
    return path


def run(arguments, folder):
    with contextlib.chdir(folder):
        return main([str(argument) for argument in arguments])


def assert_same_model(first, second):
    ours, theirs = first.extra["preparation"], second.extra["preparation"]
    assert {**ours, "offsets": 0, "scales": 0} == {**theirs, "offsets": 0, "scales": 0}
    np.testing.assert_allclose(ours["offsets"], theirs["offsets"], rtol=1e-10)
    np.testing.assert_allclose(ours["scales"], theirs["scales"], rtol=1e-10)
    ours, theirs = vars(first.estimator), vars(second.estimator)
    assert list(ours) == list(theirs)
    assert first.estimator.get_params() == second.estimator.get_params()
    for name in ("components_", "mean_", "explained_variance_", "group_errors_", "group_losses_", "objective_"):
        np.testing.assert_allclose(ours[name], theirs[name], atol=1e-7, err_msg=name)
    assert ours["groups_"].tolist() == theirs["groups_"].tolist()
    assert ours["group_counts_"].tolist() == theirs["group_counts_"].tolist()


@pytest.mark.parametrize("kind", ["parquet", "feather"])
@pytest.mark.parametrize("method", ["FairPCA", "RobustFairPCA", "ParityPCA", "LeacePCA"])
def test_fit_saves_the_model_of_the_rows_in_memory(tmp_path, columns, capsys, kind, method):
    path = write(tmp_path, columns, kind)
    arguments = ["fit", path, "--sensitive", "sex", "--drop", "id", "--label", "default", "--method", method]
    assert run([*arguments, "--out", "memory.npz"], tmp_path) == 0
    memory = capsys.readouterr().out
    assert run([*arguments, "--stream", "--out", "stream.npz"], tmp_path) == 0
    streamed = capsys.readouterr().out
    assert sorted(memory.replace("memory.npz", "").split("\n")) == sorted(
        streamed.replace("stream.npz", "").split("\n")
    )
    assert "dropped 3 of 900 rows" in streamed
    assert "left out 'same': it is constant" in streamed
    assert "left out 'title': it reveals the group" in streamed
    assert_same_model(read_model(tmp_path / "stream.npz"), read_model(tmp_path / "memory.npz"))


def test_fit_in_own_units_and_by_combinations(tmp_path, columns, capsys):
    path = write(tmp_path, columns)
    arguments = ["fit", path, "--sensitive", "sex", "--sensitive", "old", "--drop", "id", "--no-standardise"]
    run([*arguments, "--out", "memory.npz"], tmp_path)
    run([*arguments, "--stream", "--out", "stream.npz"], tmp_path)
    streamed = read_model(tmp_path / "stream.npz")
    assert streamed.estimator.groups_.tolist() == ["f, 0", "f, 1", "m, 0", "m, 1"]
    assert_same_model(streamed, read_model(tmp_path / "memory.npz"))
    capsys.readouterr()


@pytest.mark.parametrize("classes", [(9, 10), (9.5, 10.5), ("9", "10"), ("no", "yes"), (False, True)])
def test_classes_are_those_of_the_rows_in_memory(tmp_path, columns, classes):
    columns["default"] = pa.array([classes[value] for value in columns["default"].tolist()])
    path = write(tmp_path, columns)
    drop = ["id", "city", "title", "same", "empty"]
    streamed = prepare(path, "sex", "default", drop=drop, stream=True, sample_rows=N_ROWS)
    memory = prepare(path, "sex", "default", drop=drop)
    assert streamed.label.dtype == memory.label.dtype
    np.testing.assert_array_equal(streamed.label, memory.label)
    wanted = classes if isinstance(classes[0], str) and classes[0] == "no" else [float(value) for value in classes]
    assert np.unique(streamed.label).tolist() == list(wanted)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_large_files_are_streamed_unasked(tmp_path, columns, capsys, monkeypatch, kind):
    path = write(tmp_path, columns, kind)
    assert prepare(path, "sex", drop="id").moments is None
    monkeypatch.setattr(sys.modules["fairpca.audit.prepare"], "STREAM_NUMBERS", 1000)
    assert prepare(path, "sex", drop="id").moments is not None
    fitted = []
    fit = FairPCA.fit_moments
    monkeypatch.setattr(FairPCA, "fit_moments", lambda *given: fitted.append(1) or fit(*given))
    assert run(["fit", path, "--sensitive", "sex", "--drop", "id"], tmp_path) == 0
    assert fitted
    # A method that needs rows still gets them.
    arguments = ["fit", path, "--sensitive", "sex", "--drop", "id", "--method", "MMDFairPCA", "--set", "tolerance=0.5"]
    assert run(arguments, tmp_path) == 0
    capsys.readouterr()
    assert run([*arguments, "--stream"], tmp_path) == 2
    assert "compares the rows themselves" in capsys.readouterr().err


def compared(folder, arguments, capsys):
    assert run(["compare", *arguments, "--json"], folder) == 0
    return json.loads(capsys.readouterr().out)


def test_audit_tells_figures_of_all_rows_and_names_its_sample(tmp_path, columns, capsys):
    columns["city"][8:10] = ["Bonn", "Ulm"]  # a level of two rows would decide the intervals alone
    path = write(tmp_path, columns)
    arguments = [path, "--sensitive", "sex", "--drop", "id", "--label", "default", "--components", "2", "--jobs", "1",
                 "--permutations", "99", "--methods", "FairPCA,ParityPCA"]  # fmt: skip
    streamed = compared(tmp_path, [*arguments, "--stream", "--sample-rows", "300"], capsys)
    memory = compared(tmp_path, arguments, capsys)
    assert (streamed["n_samples"], streamed["n_sampled"], memory["n_sampled"]) == (897, 300, None)
    assert streamed["groups"] == memory["groups"]
    for ours, theirs in zip(streamed["results"], memory["results"], strict=True):
        assert ours["method"] == theirs["method"]
        assert np.isclose(ours["explained_variance"], theirs["explained_variance"], rtol=1e-8)
        for group, (value, *_) in ours["loss"]["groups"].items():
            assert np.isclose(value, theirs["loss"]["groups"][group][0], rtol=1e-6, atol=1e-8)
            assert np.isclose(ours["sample_error"][group], theirs["sample_error"][group], rtol=1e-6)
            # On new rows: the sample's, with longer intervals.
            (_, low, high), (expected, least, most) = (one["error"]["groups"][group] for one in (ours, theirs))
            assert low < expected < high
            assert high - low > most - least
        assert np.isclose(ours["loss"]["overall"], theirs["loss"]["overall"], rtol=1e-6, atol=1e-8)
    for group, expected in memory["expected_losses"]["2"].items():  # of the file's sizes, not the sample's
        assert np.isclose(streamed["expected_losses"]["2"][group], expected, rtol=0.5)
    assert run(["audit", *arguments, "--stream", "--sample-rows", "300", "--out", "r.html"], tmp_path) == 0
    text, page = capsys.readouterr().out, (tmp_path / "r.html").read_text(encoding="utf-8")
    for shown in (text, page):
        assert "computed on a random sample of 300 of 897 rows" in " ".join(shown.split())
    assert "people.parquet: 897 rows" in text
    assert read_table(path).sha256() in page


def test_a_sample_as_large_as_the_file_gives_the_same_figures(tmp_path, columns, capsys):
    path = write(tmp_path, columns)
    arguments = [path, "--sensitive", "sex", "--drop", "id", "--components", "2", "--jobs", "1",
                 "--permutations", "19", "--methods", "FairPCA"]  # fmt: skip
    streamed = compared(tmp_path, [*arguments, "--stream"], capsys)
    memory = compared(tmp_path, arguments, capsys)
    for ours, theirs in zip(streamed["results"], memory["results"], strict=True):
        for group, interval in theirs["loss"]["groups"].items():
            assert np.allclose(ours["loss"]["groups"][group], interval, atol=1e-6)
        assert np.isclose(ours["held_out"]["mmd2"], theirs["held_out"]["mmd2"], rtol=1e-5)


@pytest.mark.parametrize("out", ["csv", "parquet", "feather"])
def test_transform_streams_row_by_row(tmp_path, columns, capsys, out, monkeypatch):
    monkeypatch.setattr("fairpca.audit.table._BATCH_NUMBERS", 400)
    path = write(tmp_path, columns)
    run(["fit", path, "--sensitive", "sex", "--drop", "id", "--drop", "age", "--drop", "income"], tmp_path)
    columns["city"][500] = "Paris"
    columns["note"] = [None] * 400 + ["x"] * (N_ROWS - 400)
    new = write(tmp_path, columns)
    capsys.readouterr()
    arguments = ["transform", "fairpca-model.npz", new, "--keep", "id", "--keep", "note"]
    assert run([*arguments, "--out", f"stream.{out}"], tmp_path) == 0
    captured = capsys.readouterr()
    assert "'Paris'" in captured.err
    assert captured.err.count("\n") == 1
    assert f"900 rows, 2 scores each: stream.{out}" in captured.out
    monkeypatch.setattr("fairpca.audit.table._BATCH_NUMBERS", 10**6)
    assert run([*arguments, "--out", "memory.csv"], tmp_path) == 0
    with (tmp_path / "memory.csv").open(encoding="utf-8", newline="") as lines:
        expected = list(csv.DictReader(lines))
    if out == "csv":
        assert (tmp_path / "stream.csv").read_bytes() == (tmp_path / "memory.csv").read_bytes()
        return
    table = (pq if out == "parquet" else feather).read_table(tmp_path / f"stream.{out}")
    assert table.column("id").to_pylist() == [row["id"] for row in expected]
    assert table.column("note").to_pylist() == [row["note"] or None for row in expected]
    assert table.column("fairpca1").to_pylist() == [float(row["fairpca1"]) for row in expected]


def spoil(kind, columns, path):
    if kind == "text":
        columns["rent"] = [f"{value:.2f}" for value in columns["rent"].tolist()]
    elif kind == "one group":
        columns["sex"] = ["f"] * N_ROWS
    elif kind == "measurement":
        columns["sex"] = columns["income"]
    elif kind == "huge numbers":
        columns["income"] = columns["income"] * 1e200
    elif kind == "small group":
        columns["sex"] = ["x"] * 4 + ["f", "m"] * (N_ROWS // 2 - 2)
    elif kind == "all missing":
        columns |= {"a": [1.0, None, 2.0, None] * (N_ROWS // 4), "b": [None, 1.0, None, 2.0] * (N_ROWS // 4)}
    elif kind == "missing column":
        columns["gender"] = columns.pop("sex")
    elif kind == "no rows":
        columns |= {name: values[:0] for name, values in columns.items()}
    write(path.parent, columns)
    if kind == "damaged":
        content = bytearray(path.read_bytes())
        content[200:4000] = bytes(3800)
        path.write_bytes(content)
    elif kind == "truncated":
        path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("text", "Column 'rent' is text with"),
        (
            "one group",
            "'sex' contains a single group, 'f', but at least two are needed: name another column (--sensitive).",
        ),
        ("measurement", "different values; at most 20 groups are supported"),
        ("small group", "Group 'x' of 'sex' has 3 rows"),
        ("huge numbers", "Column 'income' of people.parquet contains numbers as large as"),
        ("all missing", "Every row of people.parquet has a missing value"),
        ("missing column", "people.parquet has no column 'sex' (the sensitive column); it has 'id', 'income'"),
        ("no rows", "people.parquet has no rows."),
        ("damaged", "people.parquet cannot be read as Parquet ("),
        ("truncated", "people.parquet cannot be read as Parquet ("),
    ],
)
@pytest.mark.parametrize("command", ["audit", "fit", "transform"])
def test_bad_files_end_in_one_sentence_and_leave_nothing(tmp_path, columns, capsys, kind, expected, command):
    path = write(tmp_path, columns)
    run(["fit", path, "--sensitive", "sex", "--drop", "id", "--drop", "age", "--out", "model.npz"], tmp_path)
    capsys.readouterr()
    spoil(kind, columns, path)
    before = sorted(item.name for item in tmp_path.iterdir())
    arguments = [command, path, "--sensitive", "sex", "--drop", "id", "--stream"]
    if command == "transform":
        arguments, expected = ["transform", "model.npz", path], "people.parquet"
        if kind not in ("damaged", "truncated", "no rows"):
            return  # such a file has scores
    assert run(arguments, tmp_path) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("fairpca: ")
    assert captured.err.count("\n") == 1
    assert expected in captured.err
    assert sorted(item.name for item in tmp_path.iterdir()) == before


def test_samples_hold_every_group(tmp_path, columns, capsys):
    path = write(tmp_path, columns)
    arguments = ["compare", path, "--sensitive", "sex", "--drop", "id", "--stream", "--sample-rows"]
    assert run([*arguments, "15"], tmp_path) == 2
    said = capsys.readouterr().err
    assert "rows in the random sample of 15; " in said
    assert "draw more rows (--sample-rows), merge it" in said


@pytest.fixture
def model(tmp_path, capsys):
    """A model of two numbers, x and y."""
    rng = np.random.default_rng(0)
    columns = {"x": rng.normal(size=60), "y": rng.normal(size=60), "sex": ["f", "m"] * 30}
    run(["fit", write(tmp_path, columns), "--sensitive", "sex", "--out", "model.npz"], tmp_path)
    capsys.readouterr()
    return tmp_path / "model.npz"


KEPT = {
    "id": pa.array([10**18 + 1 + i for i in range(60)]),
    "count": pa.array([None, *range(59)], pa.int32()),
    "member": pa.array([None, True, False] * 20),
    "rate": pa.array(np.linspace(0, 1, 60).astype(np.float32)),
    "price": pa.array(range(60)).cast(pa.decimal128(20)).cast(pa.decimal128(24, 2)),
    "seen": pa.array([10**18 + 1] * 60, pa.timestamp("ns")),
    "city": pa.array(["Bonn", None, "Ulm"] * 20).dictionary_encode(),
}
KEEP = [part for name in KEPT for part in ("--keep", name)]


@pytest.mark.parametrize("out", ["parquet", "pq", "feather", "arrow"])
def test_kept_columns_are_written_as_they_were_read(tmp_path, model, capsys, monkeypatch, out):
    monkeypatch.setattr("fairpca.audit.table._BATCH_NUMBERS", 100)
    path = write(tmp_path, {"x": np.arange(60.0), "y": np.arange(60.0), **KEPT})
    assert run(["transform", model, path, *KEEP, "--out", f"scores.{out}"], tmp_path) == 0
    found = (pq if out in ("parquet", "pq") else feather).read_table(tmp_path / f"scores.{out}")
    for name, column in KEPT.items():
        expected = column.cast(column.type.value_type) if name == "city" else column
        assert found.column(name).type == expected.type
        assert found.column(name).equals(pa.chunked_array([expected])), name
    capsys.readouterr()


def test_kept_columns_keep_their_digits_in_csv(tmp_path, model, capsys):
    path = write(tmp_path, {"x": np.arange(60.0), "y": np.arange(60.0), **KEPT})
    assert run(["transform", model, path, *KEEP, "--out", "scores.csv"], tmp_path) == 0
    with (tmp_path / "scores.csv").open(encoding="utf-8", newline="") as lines:
        first, second = list(csv.DictReader(lines))[:2]
    assert [first[name] for name in ("id", "count", "member", "city")] == ["1000000000000000001", "", "", "Bonn"]
    assert [second[name] for name in ("count", "member", "price", "city")] == ["0", "true", "1.00", ""]
    assert np.float32(second["rate"]) == np.float32(1 / 59)
    assert len(second["rate"]) < 12  # the digits of single precision
    assert second["seen"].endswith(".000000001")
    capsys.readouterr()


@pytest.mark.parametrize("kind", ["decimal", "text"])
def test_numbers_may_arrive_as_decimals_or_text(tmp_path, model, capsys, kind):
    numbers = np.arange(60) / 4
    plain = write(tmp_path, {"x": numbers, "y": numbers})
    run(["transform", model, plain, "--out", "plain.csv"], tmp_path)
    texts = pa.array([str(value) for value in numbers])
    columns = {"x": texts if kind == "text" else texts.cast(pa.decimal128(20, 3)), "y": numbers}
    assert run(["transform", model, write(tmp_path, columns), "--out", "other.csv"], tmp_path) == 0
    assert (tmp_path / "other.csv").read_bytes() == (tmp_path / "plain.csv").read_bytes()
    capsys.readouterr()


def test_what_transform_refuses(tmp_path, model, capsys):
    x = np.arange(60.0)
    pair = pa.Table.from_arrays([pa.array(x)] * 3, names=["x", "y", "x"])
    cases = [
        (pa.table({"x": ["1.5", "old"] * 30, "y": x}), "column 'x' must contain numbers, but contains 'old'"),
        (
            pa.table({"x": [[1.0]] * 60, "y": x}),
            "neither numbers nor text: convert it.\n",
        ),
        (pair, "people.parquet has two columns named 'x': rename one."),
    ]
    for table, expected in cases:
        pq.write_table(table, tmp_path / "people.parquet")
        assert run(["transform", model, "people.parquet"], tmp_path) == 2
        assert expected in capsys.readouterr().err
    assert not (tmp_path / "scores.csv").exists()


def test_transform_prepares_a_bounded_number_of_rows_at_a_time(tmp_path, columns, capsys, monkeypatch):
    """Text is counted by the columns of its one-hot encoding."""
    monkeypatch.setattr("fairpca.audit.table._BATCH_NUMBERS", 3_000)
    columns = {"x": np.arange(900.0) % 31, "city": [f"c{i % 100}" for i in range(900)], "sex": columns["sex"]}
    path = write(tmp_path, columns)
    run(["fit", path, "--sensitive", "sex", "--min-level", "0"], tmp_path)
    sizes, features = [], Preparation.features
    monkeypatch.setattr(Preparation, "features", lambda *given: sizes.append((X := features(*given)).size) or X)
    assert run(["transform", "fairpca-model.npz", path], tmp_path) == 0
    assert max(sizes) <= 3_000
    assert sum(sizes) == 900 * 101
    capsys.readouterr()


@pytest.mark.parametrize(("ending", "kind"), [("parquet", "Parquet"), ("feather", ""), ("csv", "CSV")])
def test_columns_that_a_kind_of_file_does_not_know(tmp_path, model, capsys, ending, kind):
    span = pa.array([pa.MonthDayNano([1, 2, 3])] * 60)
    pytest.importorskip("pyarrow.feather").write_feather(
        pa.table({"x": np.arange(60.0), "y": np.arange(60.0), "span": span}), tmp_path / "new.feather"
    )
    out = tmp_path / f"scores.{ending}"
    code = main(["transform", str(model), str(tmp_path / "new.feather"), "--keep", "span", "--out", str(out)])
    said = capsys.readouterr().err
    assert code == (2 if kind else 0)
    assert out.exists() == (not kind)
    assert (f"--keep: {kind} files cannot hold one of span (month_day_nano_interval) (" in said) == bool(kind)
