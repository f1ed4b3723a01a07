"""Hostile tables and options: a result, or one sentence and exit code 2; never a traceback, never half a file."""

from __future__ import annotations

import contextlib
import csv
import io
import os

import numpy as np
import pytest

from fairpca.audit import prepare
from fairpca.audit.command import main

TOKENS = [
    b"\n", b"\r", b",", b";", b"\t", b'"', b'""', b"\0", b" ", b"-", b"+", b".", b"_", b"e5", b"1e309", b"nan", b"NA",
    b"?", b"inf", b"0", b"01", b"1_0", b"1,5", b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3\xb6", b"\xf6", b"\xe2\x80\xa8",
    b"=1+1", b"9" * 400, b"x" * 300,
]  # fmt: skip
OLD = "an older result"


def mutated(content: bytes, others: list[bytes], rng: np.random.Generator) -> bytes:
    """A few changes: tokens put in, pieces removed, repeated, or taken from another file."""
    for _ in range(rng.integers(0, 5)):
        start, stop = np.sort(rng.integers(0, len(content) + 1, 2))
        other = others[rng.integers(len(others))]
        piece = [
            TOKENS[rng.integers(len(TOKENS))],
            b"",
            content[start:stop] * 2,
            other[: rng.integers(0, len(other) + 1)],
            bytes(rng.integers(0, 256, 3, dtype=np.uint8)),
        ][rng.integers(5)]
        end = start if rng.random() < 0.5 else min(stop, start + 8)
        content = content[:start] + piece + content[end:]
    return content


def run(arguments: list[str]) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(arguments)
        except SystemExit as end:  # what argparse does with options
            code = int(str(end.code))
            return code, out.getvalue(), err.getvalue().strip().splitlines()[-1] if code else ""
    return code, out.getvalue(), err.getvalue()


def check(arguments: list[str], folder, result: str) -> int:
    """The command either writes its result or leaves the old one alone, with one sentence."""
    (folder / result).write_text(OLD)
    before = sorted(os.listdir(folder))
    code, _, said = run([*arguments, "--out", str(folder / result)])
    assert code in (0, 2), said
    if code == 2:
        assert said.rstrip("\n").count("\n") == 0
        assert said.startswith("fairpca")
        assert (folder / result).read_text() == OLD
    assert sorted(os.listdir(folder)) == before
    return code


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_file_of_the_corpus_is_read_or_rejected(corpus, folder):
    codes = {}
    for name, content in corpus.items():
        (folder / name).write_bytes(content)
        codes[name] = check(["fit", name, "--sensitive", "sex", "--components", "1"], folder, "model.npz")
    read = {name for name, code in codes.items() if code == 0}
    assert read == {
        "bidi.csv", "blank_lines.csv", "bom.csv", "codes.csv", "commas.csv", "crlf.csv", "digits.csv",
        "empty_cells.csv", "formulas.csv", "identifiers.csv", "large_integers.csv", "missing.csv", "names.csv",
        "none_groups.csv", "plain.csv", "quotes.csv", "rare_levels.csv", "row_numbers.csv", "tabs.csv", "told.csv",
        "weights.csv",
    }  # fmt: skip


def test_changed_tables(corpus, folder, cases):
    (folder / "plain.csv").write_bytes(corpus["plain.csv"])
    assert check(["fit", "plain.csv", "--sensitive", "sex"], folder, "model.npz") == 0
    os.replace("model.npz", "plain.npz")
    files = list(corpus.values())
    for rng in cases(60):
        (folder / "data.csv").write_bytes(mutated(files[rng.integers(len(files))], files, rng))
        check(["fit", "data.csv", "--sensitive", "sex", "--components", "1"], folder, "model.npz")
        check(["transform", "plain.npz", "data.csv", "--keep", "x"], folder, "scores.csv")


def test_labels_of_changed_tables_stay_apart(corpus, folder, cases):
    """Rows are in one group if the file has the same text there, and only then; read once more without our reader."""
    texts = ["1", "01", "1.0", "1.00", "+1", "1e0", "1_1", "11", "1,1", str(2**60), str(2**60 + 1), "é", "e\u0301", "a"]
    for rng in cases(60):
        labels = rng.choice(texts, rng.integers(2, 5), replace=False)
        chosen = [str(labels[i % len(labels)]) for i in range(60)]
        with (folder / "data.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream, delimiter=";")
            writer.writerows([["x", "group"], *([float(i * i % 23), label] for i, label in enumerate(chosen))])
        data = prepare("data.csv", "group")
        assert len(data.groups) == 60
        assert len(set(zip(data.groups, chosen, strict=True))) == len(set(data.groups)) == len(labels)


OPTIONS = {
    "--sensitive": ["sex", "city", "x", "no", ""],
    "--drop": ["x", "y", "sex", "no"],
    "--label": ["city", "sex", "y", "no"],
    "--method": ["FairPCA", "RobustFairPCA", "ParityPCA", "KernelParityPCA", "no"],
    "--components": ["1", "2", "5", "0", "-1", "99", "x", "1.5", "9" * 30],
    "--max-levels": ["0", "2", "-5", "x"],
    "--seed": ["0", "-1", str(2**32), "x"],
    "--set": ["criterion=error", "criterion=no", "tol=0", "tol=nan", "tol=-1", "max_iter=0", "center=group",
              "solver=mw", "radius=[1]", "penalty='a'", "mean_tolerance=1e-20", "callback=print", "n_components=None",
              "a", "=", "x=(", "kernel=rbf", "gamma=-1", "gamma=inf", "random_state=3", "n_init=0",
              "radius={'f': 1}", "radius=1e300"],
    "--min-level": ["0", "5", "0.3", "1e300", "nan", "-1", "x"],
    "--merge-small": ["0", "3", "9" * 30, "-1", "x"],
    "--impute": ["median", "mean"],
    "--weights": ["x", "y", "city", "sex", "no"],
    "--positive": ["a", "1", "", "no"],
    "--missing": ["0", "f", "", "-", "nan"],
    "--delimiter": [",", ";", "tab", "", "ab", "\n"],
    "--no-missing": None,
    "--no-standardise": None,
    "--stream": None,
    "--json": None,
    "--quiet": None,
}  # fmt: skip


def test_options_in_any_combination(corpus, folder, cases):
    (folder / "plain.csv").write_bytes(corpus["plain.csv"])
    names = list(OPTIONS)
    for rng in cases(60):
        arguments = ["fit", "plain.csv"] + (["--sensitive", "sex"] if rng.random() < 0.8 else [])
        for _ in range(rng.integers(0, 5)):
            name = names[rng.integers(len(names))]
            values = OPTIONS[name]
            arguments += [name] if values is None else [name, values[rng.integers(len(values))]]
        check(arguments, folder, "model.npz")


def test_an_unknown_parameter_with_a_long_value_is_reported_in_one_line(corpus, folder):
    (folder / "plain.csv").write_bytes(corpus["plain.csv"])
    long = ["--components", "9" * 30, "--set", "criterion=no", "--set", "radius=[1]"]
    assert check(["fit", "plain.csv", "--sensitive", "sex", *long], folder, "model.npz") == 2
