"""Odd and hostile files: one clear sentence or a right result, and the input stays byte for byte as it was."""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass, field
from typing import Any

import pytest

from fairpca.audit.command import main
from fairpca.persistence import read_model


def rows(count=60, *, header="age,city,sex", group=None, age=None, city=None):
    """A small file; each argument gives the value of a row."""
    lines = [header]
    for i in range(count):
        cells = [
            str(age(i)) if age else str(20 + i * i % 23),
            city(i) if city else ("Bonn", "Ulm", "Köln")[i * i % 7 % 3],
            group(i) if group else "fm"[i % 2],
        ]
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Case:
    """Contents of a file, options, and either what the error says or what the record of the preparation holds."""

    content: str | bytes
    error: str = ""
    options: tuple[str, ...] = ()
    name: str = "people.csv"
    record: dict[str, Any] = field(default_factory=dict)

    @property
    def bytes(self) -> bytes:
        return self.content if isinstance(self.content, bytes) else self.content.encode()


TWO = {"f": 30, "m": 30}
HOSTILE = '=HYPERLINK("http://x","y")'
CASES = {
    "plain": Case(rows(), record={"groups": TWO, "delimiter": ","}),
    "byte order mark": Case("\ufeff" + rows(), record={"groups": TWO, "numeric": ["age"]}),
    "UTF-16": Case(rows().encode("utf-16"), "people.csv is encoded in UTF-16, not in UTF-8"),
    "Latin-1": Case(rows().encode("latin-1"), "not encoded in UTF-8 (byte 0xf6 in line"),
    "Windows quotes": Case(rows().replace("ö", "o").encode() + b"1,\x93A\x94,f\n", "not encoded"),
    "line ends of Windows": Case(rows().replace("\n", "\r\n"), record={"groups": TWO}),
    "line ends of old Macs": Case(rows().replace("\n", "\r"), record={"groups": TWO}),
    "blank lines": Case(rows().replace("\n", "\n\n"), record={"groups": TWO}),
    "one row too long": Case(rows() + "1,2,3,4\n", "line 62: 4 values, but the header names 3 columns"),
    "one row too short": Case(rows() + "1,2\n", "line 62: 2 values, but the header names 3 columns"),
    "a delimiter after every row": Case(
        rows().replace("\n", ",\n"), record={"left_out": {"column 4": "100% of it is missing"}}
    ),
    "tabs": Case(rows().replace(",", "\t"), record={"delimiter": "\t", "groups": TWO}),
    "bars": Case(rows().replace(",", "|"), "people.csv has no column 'sex'"),
    "bars, as said": Case(
        rows().replace(",", "|"), options=("--delimiter", "|"), record={"delimiter": "|", "groups": TWO}
    ),
    "the wrong delimiter": Case(rows(), "has no column 'sex'", ("--delimiter", ";")),
    "a quotation mark that is never closed": Case(rows() + '30,"Ulm,f\n', "line 62"),
    "lines within quotes": Case(
        rows(city=lambda i: '"a\nb"' if i % 3 else "c"), record={"levels": {"city": ["a\nb", "c"]}}
    ),
    "zero bytes": Case(rows() + "30,\0,f\n", "people.csv is not a text file"),
    "empty": Case("", "people.csv is empty."),
    "spaces only": Case("  \n \n", "people.csv is empty."),
    "only a header": Case("age,sex\n", "has a header but no rows"),
    "two columns of a name": Case(rows(header="age,sex,sex"), "has two columns named 'sex': rename one."),
    "one row, many times": Case(
        "age,city,sex\n" + "30,Ulm,f\n30,Ulm,m\n" * 30,
        "besides 'sex' ('age': it is constant; 'city': it is constant)",
    ),
    "rows that are repeated": Case(rows(12) + "".join(rows(12).splitlines(True)[1:] * 4), record={"groups": TWO}),
    "one group": Case(rows(group=lambda i: "f"), "'sex' contains a single group, 'f'"),
    "no group known": Case(rows(group=lambda i: ""), "Every row of people.csv has a missing value"),
    "groups missing in places": Case(
        rows(group=lambda i: ("f", "m", "")[i % 3]),
        record={"dropped.without_group": 20, "dropped.by_column": {"sex": 20}},
    ),
    "a group of 7 rows": Case(
        rows(group=lambda i: "x" if i < 7 else "fm"[i % 2]),
        "Group 'x' of 'sex' has 7 rows; results based on fewer than 10 are meaningless: merge it with others "
        "(--merge-small), or drop its rows.",
    ),
    "a group of 7 rows, merged": Case(
        rows(group=lambda i: "x" if i < 7 else "fm"[i % 2]),
        options=("--merge-small", "27"),
        record={"groups": {"m": 27, "other": 33}, "merged": {"f": 26, "x": 7}},
    ),
    "None is a group": Case(
        rows(group=lambda i: ("None", "m")[i % 2]),
        record={"groups": {"None": 30, "m": 30}, "kept_tokens": {"sex": {"None": 30}}},
    ),
    "NA is a group": Case(rows(group=lambda i: ("NA", "m")[i % 2]), record={"groups": {"NA": 30, "m": 30}}),
    "None is missing, as said": Case(
        rows(group=lambda i: ("None", "m", "f")[i % 3]),
        options=("--missing", "None"),
        record={"groups": {"f": 20, "m": 20}},
    ),
    "a number that means missing": Case(
        rows(age=lambda i: -999 if i % 6 == 0 else i * i % 23),
        options=("--missing", "-999"),
        record={"dropped.by_column": {"age": 10}, "dropped.by_group": {"f": 10}},
    ),
    "missing numbers filled in": Case(
        rows(age=lambda i: "" if i % 6 == 0 else i * i % 23),
        options=("--impute", "median"),
        record={"dropped.rows": 0, "imputed.age": 10},
    ),
    "formulas": Case(
        rows(city=lambda i: ("=1+1", "@SUM(A1)", "+3", HOSTILE.replace(",", ";").replace('"', "'"))[i // 2 % 4]),
        record={"levels": {"city": ["+3", "=1+1", "=HYPERLINK('http://x';'y')", "@SUM(A1)"]}},
    ),
    "bidirectional text": Case(
        rows(group=lambda i: ("\u202efemale\u202c", "m")[i % 2]), record={"groups": {"m": 30, "\u202efemale\u202c": 30}}
    ),
    "escape sequences": Case(
        rows(group=lambda i: ("\x1b[2Jf", "m")[i % 2]), record={"groups": {"\x1b[2Jf": 30, "m": 30}}
    ),
    "script in labels": Case(
        rows(group=lambda i: ("<script>alert(1)</script>", "m")[i % 2]),
        record={"groups": {"<script>alert(1)</script>": 30, "m": 30}},
    ),
    "letters outside the basic plane": Case(
        rows(group=lambda i: "🙂🙃"[i % 2]), record={"groups": {"🙂": 30, "🙃": 30}}
    ),
    "an index without a name": Case(
        rows(header=",city,sex", age=lambda i: i).replace("Köln", "Trier"),
        record={"left_out": {"column 1": "it counts the rows"}},
    ),
    "an identifier": Case(
        rows(header="id,city,sex", age=lambda i: 9000 - 7 * i), record={"left_out": {"id": "it identifies the rows"}}
    ),
    "names of people": Case(rows(120, city=lambda i: f"name {i}"), "'city' is text with 120 different values"),
    "infinite numbers": Case(
        rows(age=lambda i: "inf" if i % 6 == 0 else i * i % 23), record={"dropped.by_column": {"age": 10}}
    ),
    "numbers that are too large": Case(
        rows(age=lambda i: f"{i % 7 + 1}e200"), "numbers as large as 7e+200, whose squares overflow"
    ),
    "decimal commas": Case(
        rows(age=lambda i: f"{i * i % 23}.5").replace(",", ";").replace(".", ","),
        record={"commas": {"age": "decimal points"}},
    ),
    "ambiguous commas": Case(
        rows(age=lambda i: f'"{i % 7 + 1},500"'), "whose comma may be a thousands or a decimal separator"
    ),
    "rare levels": Case(
        rows(400, city=lambda i: f"village {i}" if i < 20 else "ab"[i % 3 % 2]), record={"levels": {"city": ["a", "b"]}}
    ),
    "a level named like the pool": Case(
        rows(400, city=lambda i: "c" if i < 20 else ("a", "other (rare)")[i % 3 % 2]),
        record={"levels": {"city": ["a", "other (rare)"]}},
    ),
    "gzip": Case(gzip.compress(rows().encode()), name="people.csv.gz", record={"groups": TWO}),
    "half a gzip file": Case(
        gzip.compress(rows().encode())[:60], "people.csv.gz cannot be decompressed", name="people.csv.gz"
    ),
    "text named gzip": Case(rows(), "people.csv.gz cannot be decompressed", name="people.csv.gz"),
    "text named Zstandard": Case(rows(), "people.csv.zst cannot be decompressed", name="people.csv.zst"),
    "Parquet named CSV": Case(b"PAR1\0\0PAR1", "people.csv is not a text file in UTF-8: use CSV, or name Parquet"),
    "CSV named Parquet": Case(rows(), "people.parquet cannot be read as Parquet", name="people.parquet"),
    "the label is the group": Case(rows(), "cannot be both the sensitive column and the label", ("--label", "sex")),
    "a class that does not occur": Case(
        rows(),
        "The label 'city' has no class 'Rome'; it has 'Bonn', 'Köln', 'Ulm': name one of them (--positive).",
        ("--label", "city", "--positive", "Rome"),
    ),
    "weights that are text": Case(rows(), "The weights 'city' of people.csv must be numbers", ("--weights", "city")),
}


def entry(record, path):
    for part in path.split("."):
        record = record[part]
    return record


def plain(value):
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("case", CASES)
def test_a_sentence_or_a_right_record(tmp_path, monkeypatch, capsys, case):
    case = CASES[case]
    if case.name.endswith((".zst", ".parquet")):
        pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / case.name
    path.write_bytes(case.bytes)
    code = main(["fit", case.name, "--sensitive", "sex", "--components", "1", "--out", "m.npz", *case.options])
    said = capsys.readouterr()
    assert path.read_bytes() == case.bytes
    if case.error:
        assert code == 2
        assert said.out == ""
        assert said.err.startswith("fairpca: ")
        assert said.err.count("\n") == 1
        assert case.error in said.err
        assert os.listdir(tmp_path) == [case.name]
        return
    assert code == 0, said.err
    assert all(letter.isprintable() or letter == "\n" for letter in said.out)
    record = read_model("m.npz").extra["preparation"]
    assert {key: plain(entry(record, key)) for key in case.record} == case.record


def test_there_are_enough_cases():
    assert len(CASES) >= 40


@pytest.mark.parametrize("kind", ["link", "hard link", "link to a link"])
def test_links_are_read_and_never_replaced(tmp_path, monkeypatch, capsys, kind):
    monkeypatch.chdir(tmp_path)
    content = rows().encode()
    (tmp_path / "people.csv").write_bytes(content)
    os.link("people.csv", "other.csv") if kind == "hard link" else os.symlink("people.csv", "other.csv")
    name = "other.csv"
    if kind == "link to a link":
        os.symlink("other.csv", "again.csv")
        name = "again.csv"
    fit = ["fit", name, "--sensitive", "sex"]
    assert main([*fit, "--out", "m.npz"]) == 0
    os.symlink("people.csv", "report.html")
    os.symlink("people.csv", "model.npz")
    os.symlink("people.csv", "scores.csv")
    capsys.readouterr()
    commands = (
        [*fit, "--out", "model.npz"],
        ["audit", name, "--sensitive", "sex", "--out", "report.html"],
        ["transform", "m.npz", name, "--out", "scores.csv"],
    )
    for arguments in commands:
        assert main(arguments) == 2
        assert f"is the input {name} itself; give another name." in capsys.readouterr().err
    assert (tmp_path / "people.csv").read_bytes() == content


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: os.symlink("nowhere.csv", "people.csv"), "people.csv does not exist."),
        (lambda: os.symlink("people.csv", "people.csv"), "people.csv"),
        (lambda: os.mkdir("people.csv"), "people.csv is a folder"),
    ],
)
def test_names_that_are_no_file(tmp_path, monkeypatch, capsys, make, expected):
    monkeypatch.chdir(tmp_path)
    make()
    assert main(["fit", "people.csv", "--sensitive", "sex", "--out", "m.npz"]) == 2
    said = capsys.readouterr().err
    assert expected in said
    assert said.count("\n") == 1
    assert os.listdir(tmp_path) == ["people.csv"]


def test_a_hundred_thousand_columns(tmp_path, monkeypatch, capsys):
    """Most of them are empty, and are not listed one by one."""
    monkeypatch.chdir(tmp_path)
    size, filled = 100_000, 500
    header = ",".join(f"x{j}" for j in range(size))
    lines = [",".join(str(i * j % 7) for j in range(1, filled)) + "," * (size - filled + 1) for i in range(20)]
    text = "\n".join([f"sex,{header}", *(f"{'fm'[i % 2]},{line}" for i, line in enumerate(lines))]) + "\n"
    (tmp_path / "wide.csv").write_text(text)
    assert main(["fit", "wide.csv", "--sensitive", "sex", "--components", "1", "--out", "m.npz"]) == 0
    said = capsys.readouterr().out
    assert "428 numeric columns: x0, x1, x2, x3, x4, x5, x7, x8, ... (420 more)" in said
    assert "left out 99,501 columns: 'x499', 'x500'" in said
    assert len(said) < 4000
    assert (tmp_path / "wide.csv").read_text() == text


def test_zstandard_files(tmp_path, monkeypatch, capsys):
    pyarrow = pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    with pyarrow.CompressedOutputStream("people.csv.zst", "zstd") as stream:
        stream.write(rows().encode())
    assert main(["fit", "people.csv.zst", "--sensitive", "sex", "--out", "m.npz"]) == 0
    assert read_model("m.npz").extra["preparation"]["groups"] == TWO
    capsys.readouterr()


def test_the_report_shows_the_record_and_hostile_labels_as_text(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    label = "<img src=x onerror=alert(1)>"
    text = rows(
        240, group=lambda i: ("None", label)[i % 2], age=lambda i: "" if i % 20 == 0 else i * i % 23,
        city=lambda i: "<b>x</b>" if i < 9 else "ab"[i % 3 % 2],
    )  # fmt: skip
    (tmp_path / "people.csv").write_text(text)
    arguments = ["audit", "people.csv", "--sensitive", "sex", "--components", "1", "--methods", "PCA"]
    assert main([*arguments, "--permutations", "19", "--jobs", "1"]) == 0
    page = (tmp_path / "fairpca-report.html").read_text()
    assert "<img" not in page
    assert "<b>x" not in page
    for remark in ("rows dropped by column: age (12)", "rows dropped by group: ", "was kept as a value of its own"):
        assert remark in page
    shown = capsys.readouterr().out
    assert "dropped 12 of 240 rows" in shown
    assert (tmp_path / "people.csv").read_text() == text
