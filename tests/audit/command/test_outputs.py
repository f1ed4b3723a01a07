"""Results replace files of their own kind only, as a whole, and go to the standard output on request."""

from __future__ import annotations

import json
import os
import threading

import pytest

from fairpca import load_model
from fairpca.audit.command import main

OLD = "an older result"
AUDIT = ["--sensitive", "sex", "--components", "1", "--methods", "PCA", "--permutations", "19", "--jobs", "1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    body = "".join(f"{i * i % 31},{i * i % 37},{'fm'[i // 2 % 2]}\n" for i in range(80))
    (tmp_path / "people.csv").write_text(f"x,y,sex\n{body}")
    assert main(["fit", "people.csv", "--sensitive", "sex", "--out", "m.npz"]) == 0
    return tmp_path


def arguments(command, out):
    return {
        "audit": ["audit", "people.csv", *AUDIT, "--out", out],
        "demo": ["demo", "--out", out],
        "fit": ["fit", "people.csv", "--sensitive", "sex", "--out", out],
        "transform": ["transform", "m.npz", "people.csv", "--out", out],
    }[command]


@pytest.mark.parametrize(
    ("command", "name", "expected"),
    [
        ("audit", "notes.csv", "--out notes.csv does not end in .html or .htm; give such a name, or - to print it."),
        ("audit", "report", "--out report does not end in .html or .htm"),
        ("demo", "notes.txt", "--out notes.txt does not end in .html or .htm"),
        ("fit", "notes.csv", "--out notes.csv does not end in .npz"),
        ("fit", "model.npz.bak", "--out model.npz.bak does not end in .npz"),
        ("transform", "scores.html", "--out scores.html does not end in .csv or .txt or .parquet"),
        ("transform", "m.npz", "--out m.npz is the input m.npz itself"),
    ],
)
@pytest.mark.parametrize("exists", [True, False])
def test_another_ending_is_refused_before_anything_is_read(folder, capsys, command, name, expected, exists):
    if exists and name != "m.npz":
        (folder / name).write_text(OLD)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    capsys.readouterr()
    assert main(arguments(command, name)) == 2
    assert expected in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(("command", "name"), [("audit", "old.HTML"), ("fit", "old.npz"), ("transform", "old.csv")])
def test_an_older_result_is_replaced_as_a_whole(folder, capsys, command, name):
    (folder / name).write_text(OLD * 100_000)
    assert main(arguments(command, name)) == 0
    content = (folder / name).read_bytes()
    assert OLD.encode() not in content
    assert {"old.HTML": b"</html>", "old.npz": b"PK", "old.csv": b"fairpca1"}[name] in content
    capsys.readouterr()


@pytest.mark.parametrize("command", ["audit", "fit", "transform"])
def test_pipes_and_devices_take_any_name(folder, capsys, command):
    assert main(arguments(command, os.devnull)) == 0
    os.mkfifo("results.xyz")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((folder / "results.xyz").read_bytes()))
    reader.start()
    assert main(arguments(command, "results.xyz")) == 0
    reader.join()
    assert len(read[0]) > 500
    capsys.readouterr()


@pytest.mark.parametrize(
    ("command", "start"), [("audit", b"<!DOCTYPE html>"), ("fit", b"PK"), ("transform", b'"fairpca0","fairpca1"\n')]
)
def test_a_dash_is_the_standard_output(folder, capfdbinary, command, start):
    capfdbinary.readouterr()
    assert main(arguments(command, "-")) == 0
    said = capfdbinary.readouterr()
    assert said.out.lower().startswith(start.lower())
    assert not (folder / "-").exists()
    if command != "transform":
        assert b"people.csv: 80 rows" in said.err
    if command == "fit":
        (folder / "piped.npz").write_bytes(said.out)
        assert load_model("piped.npz").n_components_ == 2


def test_report_and_values_do_not_share_the_standard_output(folder, capsys):
    capsys.readouterr()
    assert main([*arguments("audit", "/dev/stdout"), "--json"]) == 2
    assert "--json prints the values, but --out sends the report to the same place" in capsys.readouterr().err


def test_the_record_is_part_of_the_values(folder, capsys):
    (folder / "people.csv").write_text((folder / "people.csv").read_text().replace("\n0,", "\n,"))
    capsys.readouterr()
    assert main([*arguments("audit", "r.html"), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)["data"]["preparation"]
    assert record["dropped"]["by_column"] == {"x": record["dropped"]["rows"]}
    assert sum(record["dropped"]["by_group"].values()) == record["dropped"]["rows"] > 0
    assert sum(record["groups"].values()) + record["dropped"]["rows"] == record["rows"] == 80


OPTIONS = {
    ("--delimiter", ";;"): "The delimiter ';;' is not a single character",
    ("--min-level", "-1"): "min_level=-1.0 is neither a number of rows nor a share of them",
    ("--min-level", "nan"): "min_level=nan is neither",
    ("--min-level", "1.5"): "is neither a number of rows nor a share",
    ("--merge-small", "many"): "'many' is not a whole number of at least 0",
    ("--impute", "mean"): "invalid choice: 'mean'",
}


def code_of(given):
    """Options are refused when they are parsed, or when they are used."""
    try:
        return main(given)
    except SystemExit as stop:
        return stop.code


@pytest.mark.parametrize("option", OPTIONS)
def test_wrong_values_of_options(folder, capsys, option):
    assert code_of([*arguments("fit", "new.npz"), *option]) == 2
    assert OPTIONS[option] in capsys.readouterr().err
