"""The commands on files: what they print, write and refuse."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from fairpca import FairPCA, load_model
from fairpca._display import text_table
from fairpca._progress import Progress
from fairpca.audit import prepare
from fairpca.audit.command import main
from fairpca.audit.command._main import guarded
from fairpca.audit.command._tables import clean
from fairpca.persistence import read_model


@pytest.fixture
def people(tmp_path):
    """120 rows: two numbers, a text, an identifier, groups and a label."""
    rng = np.random.default_rng(0)
    path = tmp_path / "people.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "income", "age", "city", "sex", "default"])
        for i in range(120):
            sex = ("f", "m")[i % 2]
            income = round(float(rng.normal(20 + 5 * (sex == "m"), 4)), 3)
            age = int(rng.integers(20, 60))
            writer.writerow([f"p{i}", income, age, ("Bonn", "Ulm")[int(rng.integers(2))], sex, int(rng.integers(2))])
    return path


def run(arguments, folder):
    """The command in a folder of its own, as a user runs it."""
    with contextlib.chdir(folder):
        return main([str(argument) for argument in arguments])


COMMON = ["--sensitive", "sex", "--drop", "id", "--methods", "FairPCA,ParityPCA", "--jobs", "1", "--permutations", "39"]


def test_audit_prints_figures_and_ends_with_the_path(people, tmp_path, capsys):
    arguments = ["audit", people, *COMMON, "--label", "default", "--out", "report.html"]
    assert run(arguments, tmp_path) == 0
    assert len(capsys.readouterr().out.splitlines()) <= 30
    assert run([*arguments, "--details"], tmp_path) == 0
    captured = capsys.readouterr()
    text = captured.out
    assert "2 numeric columns: income, age" in text
    assert "city (2 levels)" in text
    assert "not among the features: sex, default, id" in text
    assert "expected by chance" in text
    assert "A random division into groups of these sizes" in text
    assert "On new rows" in text
    assert "adversary" in text
    assert "Δ EOD" in text
    assert str(tmp_path / "report.html") in text.splitlines()[-1]
    assert captured.err == ""  # no progress where there is no terminal
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "SHA-256 of the file" in page
    assert "fairpca audit" in page


def test_audit_as_json(people, tmp_path, capsys):
    code = run(
        ["audit", people, *COMMON, "--drop", "default", "--components", "2", "--json", "--out", "r.html"], tmp_path
    )
    assert code == 0
    found = json.loads(capsys.readouterr().out)
    assert found["groups"] == {"f": 60, "m": 60}
    assert found["data"]["features"] == ["income", "age", "city=Bonn", "city=Ulm"]
    assert [row["method"] for row in found["results"]] == ["PCA", "FairPCA", "ParityPCA"]
    assert found["results"][1]["loss"]["gap"][0] < 1e-9
    assert found["results"][0]["held_out"]["accuracy"] is None
    assert (tmp_path / found["report"]).is_file()


def test_values_in_a_file_are_the_same_for_the_same_seed(people, tmp_path, capsys):
    arguments = ["audit", people, *COMMON, "--label", "default", "--components", "2", "--out", "r.html"]
    for name in ("one.json", "two.json"):
        assert run([*arguments, "--json", name], tmp_path) == 0
    assert re.search(r"components? +rows +PCA +FairPCA +change", capsys.readouterr().out)
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    found = json.loads((tmp_path / "one.json").read_text())
    entry = found["results"][1]
    assert set(entry["new_rows"]) == {"gap", "low", "high", "claimed"}
    assert entry["chance"]["p_value"] == found["results"][0]["chance"]["p_value"]


def test_clusters_are_a_column_of_the_file(people, tmp_path, capsys):
    text = people.read_text().splitlines()
    lines = [f"{text[0]},person", *(f"{line},q{i // 4 * 2 + i % 2}" for i, line in enumerate(text[1:]))]
    people.write_text("\n".join(lines))
    arguments = ["compare", people, *COMMON, "--components", "2", "--details", "--clusters", "person"]
    assert run(arguments, tmp_path) == 0
    shown = capsys.readouterr().out
    assert "A random division of the clusters into groups of these sizes" in shown
    assert "not among the features: sex, person, id" in shown
    assert run([*arguments[:-2], "--repeated-rows"], tmp_path) == 0
    shown = capsys.readouterr().out
    assert "No p-value. Rows repeat persons whose identities are not known" in shown
    assert "adjusted p" not in shown
    assert run([*arguments[:-1], "nobody"], tmp_path) == 2
    assert "nobody" in capsys.readouterr().err


def test_compare_writes_nothing(people, tmp_path, capsys):
    assert run(["compare", people, *COMMON, "--components", "1-3", "--details"], tmp_path) == 0
    text = capsys.readouterr().out
    _, _, tables = text.partition("Each group under ordinary PCA")
    assert len(re.findall(r"(?m)^ +FairPCA", tables)) == 6  # two tables, three numbers of components
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]
    assert run(["compare", people, *COMMON, "--components", "1", "--json"], tmp_path) == 0
    assert json.loads(capsys.readouterr().out)["n_features"] == 5


def test_fit_and_transform_agree_with_python(people, tmp_path, capsys):
    arguments = ["fit", people, "--sensitive", "sex", "--drop", "id", "--drop", "default", "--components", "2"]
    assert run([*arguments, "--set", "criterion=error", "--out", "model.npz"], tmp_path) == 0
    assert "FairPCA(criterion='error'" in capsys.readouterr().out
    assert run(["transform", "model.npz", people, "--keep", "id", "--out", "scores.csv"], tmp_path) == 0
    assert "120 rows, 2 scores each: scores.csv" in capsys.readouterr().out
    data = prepare(people, "sex", drop="id,default")
    expected = (
        FairPCA(2, criterion="error", random_state=0).fit(data.X, sensitive_features=data.groups).transform(data.X)
    )
    with (tmp_path / "scores.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["id"] for row in rows] == [f"p{i}" for i in range(120)]
    np.testing.assert_allclose([float(row["fairpca1"]) for row in rows], expected[:, 1], rtol=1e-12)
    assert load_model(tmp_path / "model.npz").criterion == "error"


def test_fit_takes_a_share_and_flags(people, tmp_path):
    options = ["--set", "relative=true", "--set", "nested=True", "--components", "0.6", "--out", "m.npz"]
    run(["fit", people, "--sensitive", "sex", "--drop", "id", "--drop", "default", *options], tmp_path)
    model = load_model(tmp_path / "m.npz")
    assert model.relative
    assert model.nested
    assert model.n_components == 0.6
    assert (1 - model.group_errors_ / model.group_variances_).min() >= 0.6


def test_transform_to_parquet_and_with_new_values(people, tmp_path, capsys):
    parquet = pytest.importorskip("pyarrow.parquet")
    run(["fit", people, "--sensitive", "sex", "--drop", "id", "--json", "--out", "m.npz"], tmp_path)
    assert json.loads(capsys.readouterr().out)["estimator"] == "FairPCA"
    new = tmp_path / "new.csv"
    new.write_text("income,age,city,default\n20,30,Paris,0\n22,31,Bonn,1\n")
    assert run(["transform", "m.npz", new, "--out", "scores.parquet"], tmp_path) == 0
    assert "'Paris'" in capsys.readouterr().err
    scores = parquet.read_table(tmp_path / "scores.parquet")
    assert scores.column_names == ["fairpca0", "fairpca1"]
    new.write_text("income,age,default\n20,30,0\n")
    assert run(["transform", "m.npz", new, "--out", "again.csv"], tmp_path) == 2
    assert "no column 'city'" in capsys.readouterr().err
    assert not (tmp_path / "again.csv").exists()


@pytest.fixture
def people_of(people):
    """The same people with other words for the two classes."""

    def renamed(negative, positive):
        lines = people.read_text(encoding="utf-8").splitlines()
        words = {"0": negative, "1": positive}
        body = [f"{line.rpartition(',')[0]},{words[line.rpartition(',')[2]]}" for line in lines[1:]]
        people.write_text("\n".join([lines[0], *body]) + "\n", encoding="utf-8")
        return people

    return renamed


@pytest.mark.parametrize("classes", [("9", "10"), ("9.5", "10.5")])
def test_the_positive_class_is_the_larger_number(people_of, tmp_path, capsys, classes):
    arguments = [*COMMON, "--label", "default", "--components", "2", "--json"]
    figures = []
    for words in (("0", "1"), classes):
        path = people_of(*words)
        assert run(["compare", path, *arguments], tmp_path) == 0
        figures.append([row["held_out"] for row in json.loads(capsys.readouterr().out)["results"]])
        assert {row["decisions"].pop("positive") for row in figures[-1]} == {words[1]}
    assert figures[0] == figures[1]
    fit = ["fit", path, "--sensitive", "sex", "--drop", "id", "--label", "default", "--method", "MMDFairPCA"]
    assert run([*fit, "--set", "notion=equal_opportunity", "--set", "tolerance=0.2", "--out", "m.npz"], tmp_path) == 0
    positive = float(classes[1])
    assert load_model(tmp_path / "m.npz").pairs_ == [((positive, "f"), (positive, "m"))]
    assert read_model(tmp_path / "m.npz").extra["preparation"]["label"] == "default"


def test_kept_columns_of_a_csv_file_are_written_as_they_stand_there(people, tmp_path, capsys):
    run(["fit", people, "--sensitive", "sex", "--drop", "id", "--out", "m.npz"], tmp_path)
    new = tmp_path / "new.csv"
    new.write_text(
        "number,zip,share,income,age,city,default\n1000000000000000001,0815,0.50,20,30,Bonn,0\n,53111,,22,31,Ulm,1\n"
    )
    keep = ["--keep", "number", "--keep", "zip", "--keep", "share"]
    assert run(["transform", "m.npz", new, *keep], tmp_path) == 0
    with (tmp_path / "scores.csv").open(newline="") as stream:
        rows = [list(row.values())[:3] for row in csv.DictReader(stream)]
    assert rows == [["1000000000000000001", "0815", "0.50"], ["", "53111", ""]]
    parquet = pytest.importorskip("pyarrow.parquet")
    assert run(["transform", "m.npz", new, *keep, "--out", "scores.parquet"], tmp_path) == 0
    found = parquet.read_table(tmp_path / "scores.parquet").to_pydict()
    assert [found[name] for name in ("number", "zip", "share")] == [
        ["1000000000000000001", ""], ["0815", "53111"], ["0.50", ""],
    ]  # fmt: skip
    capsys.readouterr()


def test_transform_refuses_other_endings_and_columns_named_as_scores(people, tmp_path, capsys):
    run(["fit", people, "--sensitive", "sex", "--drop", "id", "--out", "m.npz"], tmp_path)
    capsys.readouterr()
    assert run(["transform", "m.npz", people, "--out", "scores.xlsx"], tmp_path) == 2
    assert "--out scores.xlsx does not end in .csv or .txt or .parquet" in capsys.readouterr().err
    people.write_text(people.read_text(encoding="utf-8").replace("id,", "fairpca0,", 1), encoding="utf-8")
    assert run(["transform", "m.npz", people, "--keep", "fairpca0"], tmp_path) == 2
    assert "--keep fairpca0: a score has the same name; rename the column in the file." in capsys.readouterr().err
    assert not list(tmp_path.glob("scores*"))


def spoil(kind, people):
    text = people.read_text(encoding="utf-8")
    if kind == "non-UTF-8":
        people.write_bytes(text.replace("Bonn", "Köln").encode("latin1"))
    elif kind == "empty":
        people.write_bytes(b"")
    elif kind == "one group":
        people.write_text(text.replace(",m,", ",f,"), encoding="utf-8")
    elif kind == "10,000 levels":
        body = "".join(f"name{i},{i % 50},{i % 2}\n" for i in range(10_000))
        people.write_text(f"name,age,sex\n{body}", encoding="utf-8")
    elif kind == "huge numbers":
        lines = [f"{(-1) ** (i // 2) * (i % 7 + 1)}e200,{i % 50},{'fm'[i % 2]}\n" for i in range(120)]
        people.write_text("".join(["debt,age,sex\n", *lines]), encoding="utf-8")
    elif kind == "missing column":
        people.write_text(text.replace("sex", "gender"), encoding="utf-8")
    elif kind == "missing file":
        people.unlink()
    elif kind == "bad parquet":
        people.rename(people.with_suffix(".parquet"))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("missing column", "people.csv has no column 'sex' (the sensitive column); it has 'id', 'income'"),
        ("empty", "people.csv is empty."),
        (
            "one group",
            "'sex' contains a single group, 'f', but at least two are needed: name another column (--sensitive).",
        ),
        ("non-UTF-8", "people.csv is not encoded in UTF-8 (byte 0xf6 in line"),
        ("10,000 levels", "Column 'name' is text with 10000 different values, too many to one-hot encode"),
        ("huge numbers", "Column 'debt' of people.csv contains numbers as large as 7e+200, whose squares overflow"),
        ("missing file", "people.csv does not exist."),
        ("bad parquet", "people.parquet cannot be read as Parquet"),
    ],
)
@pytest.mark.parametrize("command", ["audit", "compare", "fit"])
def test_bad_files_end_in_one_sentence_and_leave_nothing(people, tmp_path, capsys, kind, expected, command):
    spoil(kind, people)
    path = people.with_suffix(".parquet") if kind == "bad parquet" else people
    before = sorted(item.name for item in tmp_path.iterdir())
    drop = ["--drop", "id"] if kind == "one group" else []
    assert run([command, path, "--sensitive", "sex", *drop], tmp_path) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("fairpca: ")
    assert captured.err.count("\n") == 1
    assert expected in captured.err
    assert sorted(item.name for item in tmp_path.iterdir()) == before


def test_text_identifiers_are_named_with_their_remedy(people, tmp_path, capsys):
    assert run(["audit", people, "--sensitive", "sex"], tmp_path) == 2
    assert "'id' is text with 120 different values" in capsys.readouterr().err


def test_reports_that_cannot_be_written_are_refused_at_once(people, tmp_path, capsys):
    assert run(["audit", people, *COMMON, "--out", tmp_path], tmp_path) == 2
    assert "is a folder" in capsys.readouterr().err
    assert run(["audit", people, *COMMON, "--out", "no/such/report.html"], tmp_path) == 2
    assert "does not exist; create it first" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--methods", "Magic"], "'Magic' is not one of"),
        (["--components", "0"], "--components"),
        (["--set", "x"], "unrecognized"),
        (["--components", "1-1000000000000"], "asks for more than 100,000 components"),
        (["--components", "1-" + "9" * 5000], "is not a list"),
        (["--permutations", "0"], "'0' is not a whole number of at least 19"),
        (["--permutations", "-3"], "'-3' is not a whole number of at least 19"),
        (["--permutations", "many"], "'many' is not a whole number of at least 19"),
        (["--seed", "-1"], "'-1' is not a whole number of at least 0"),
        (["--jobs", "0"], "'0' is not a whole number of at least 1"),
    ],
)
def test_wrong_options_end_with_two(people, arguments, expected, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["audit", str(people), "--sensitive", "sex", *arguments])
    assert stop.value.code == 2
    assert expected in capsys.readouterr().err


def test_values_replace_no_other_file(people, capsys):
    assert main(["audit", str(people), "--sensitive", "sex", "--json", "people.csv"]) == 2
    assert "--json people.csv does not end in .json" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["print", "None", "3"])
def test_functions_cannot_be_set(people, tmp_path, capsys, value):
    fit = ["fit", people, "--sensitive", "sex", "--drop", "id", "--method", "MMDFairPCA"]
    assert run([*fit, "--set", f"callback={value}"], tmp_path) == 2
    assert capsys.readouterr().err == (
        "fairpca: --set callback takes a function, which cannot be given here; omit it, or use Python.\n"
    )


@pytest.mark.parametrize(
    ("encoding", "errors"),
    [("ascii", "strict"), ("cp1252", "strict"), ("ascii", "surrogateescape"), ("utf-8", "strict")],
)
def test_output_survives_any_encoding(people, tmp_path, monkeypatch, encoding, errors):
    people.write_text(people.read_text(encoding="utf-8").replace(",f,", ",女,"), encoding="utf-8")
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding=encoding, errors=errors))
    with pytest.raises(SystemExit):
        main(["audit", "--help"])
    assert run(["audit", people, *COMMON, "--label", "default", "--components", "1", "--details"], tmp_path) == 0
    sys.stdout.flush()
    for text in ("Δ           difference", "error 女", "Δ EOP"):
        assert text.encode(encoding, "backslashreplace") in shown.getvalue()


def test_interrupting_leaves_no_half_written_file(people, tmp_path):
    text = people.read_text().splitlines()
    people.write_text("\n".join([text[0], *text[1:] * 200]))
    command = [
        sys.executable,
        "-m",
        "fairpca.audit.command",
        "audit",
        str(people),
        "--sensitive",
        "sex",
        "--drop",
        "id",
        "--jobs",
        "1",
    ]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    with process:
        assert process.stdout.readline().startswith("people.csv: 24,000 rows")
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert (process.returncode, errors) == (130, "fairpca: interrupted\n")
    assert [item.name for item in tmp_path.iterdir()] == ["people.csv"]


@pytest.fixture
def interruptible():
    """A job in the background ignores interrupts, and so does ours then."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_that_became_another_error_is_one_all_the_same(interruptible, capsys):
    """As when it comes while a compiled module is imported."""

    def run():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("module failed to import") from None

    assert guarded("fairpca", run) == 130
    assert capsys.readouterr().err == "fairpca: interrupted\n"


def test_help_teaches(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["audit", "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert "Does PCA treat the groups in your data differently" in text
    assert "exit codes" in text


class Terminal:
    def __init__(self):
        self.written = ""

    def isatty(self):
        return True

    def write(self, text):
        self.written += text

    def flush(self):
        pass


def test_progress_is_shown_on_a_terminal_and_removed():
    stream = Terminal()
    with Progress(stream) as progress:
        progress(1, 4, "FairPCA, 2 components")
    assert "] 1/4 " in stream.written
    assert stream.written.endswith("\r\033[K")
    silent = Terminal()
    with Progress(silent, quiet=True) as progress:
        progress(1, 4, "x")
    assert silent.written == ""


def test_labels_cannot_steer_the_terminal():
    assert clean("a\033[2Jb\n") == "a?[2Jb?"
    assert clean("x" * 40).endswith("…")
    assert text_table(["a", "b"], [["x", "10"], ["yy", "9"]]) == ["a    b", "x   10", "yy   9"]
