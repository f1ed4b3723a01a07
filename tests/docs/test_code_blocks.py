"""Every block of Python and every command in the README and on the pages of the site runs."""

from __future__ import annotations

import re
import shlex
import shutil
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn

from fairpca import FairPCA
from fairpca.audit.command import main
from fairpca.datasets import load_german_credit

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "RELEASING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(r"^( *)```([^\s`]*)[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
#: Commands that other tests run, and those that need data of the papers or an environment of their own.
SMALLER = ["--components", "2", "--methods", "PCA,FairPCA", "--permutations", "19", "--jobs", "1"]
TRIED_ELSEWHERE = ("fairpca demo", "fairpca info", "python -m reproductions", "pip install")


def blocks(path: Path, language: str) -> list[str]:
    """The blocks of one language, without their indentation."""
    found = BLOCK.findall(path.read_text(encoding="utf-8"))
    return [re.sub(rf"(?m)^{indent}", "", code) for indent, kind, code in found if kind == language]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_pages_are_found():
    assert sum(len(blocks(path, "python")) for path in PAGES) > 30
    text = "- item\n\n  ```python\n  x = 1\n  ```\n"
    assert [code for _, kind, code in BLOCK.findall(text) if kind == "python"] == ["  x = 1\n"]


def without_prompts(path: Path) -> bool:
    """Whether a page has Python to run as it stands; pages with prompts and outputs are in tests/test_docs.py."""
    found = blocks(path, "python") if path.name != "README.md" else []  # whose outputs test_story compares
    return bool(found) and not found[0].startswith(">>>")


@pytest.mark.parametrize("path", [*filter(without_prompts, PAGES)], ids=name_of)
def test_python_runs(path, tables, tmp_path, monkeypatch):
    """As a reader would: one block after the other, with warnings as errors."""
    pytest.importorskip("matplotlib").use("svg")
    shutil.copytree(tables, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    credit = load_german_credit()
    few = slice(0, 250), slice(0, 8)  # pages that begin with data of the reader's own
    known = {"np": np, "FairPCA": FairPCA, "X": credit.data[few], "sex": credit.sensitive_features[few[0]]}
    known |= {"label": credit.target[few[0]], "names": credit.feature_names[few[1]]}
    known["age"] = load_german_credit(scaled=False).data[few[0], credit.feature_names.index("age")]
    known["people"] = pytest.importorskip("pandas").DataFrame({"sex": known["sex"], "age": known["age"]})
    known["pca"] = FairPCA(3).fit(known["X"], sensitive_features=known["sex"])
    with sklearn.config_context(), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", module="dask")  # about pandas' interface, not ours to change
        for number, (_, kind, code) in enumerate(BLOCK.findall(path.read_text(encoding="utf-8")), 1):
            if kind == "python":
                exec(compile(textwrap.dedent(code), f"{name_of(path)}, block {number}", "exec"), known)
            elif kind == "console":
                assert all(main(shlex.split(line)[1:]) == 0 for line in re.findall(r"(?m)^\$ (fairpca .*)$", code))


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 110


def commands() -> list[str]:
    """Lines of all blocks of shell commands, without comments."""
    codes = [code.replace("\\\n", " ") for path in PAGES for code in blocks(path, "sh")]
    lines = (line.partition("#")[0].strip() for code in codes for line in code.splitlines())
    return list(dict.fromkeys(line for line in lines if line))


def test_fairpca_commands_run(tables, tmp_path, monkeypatch, capsys):
    shutil.copytree(tables, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    tried = [line for line in commands() if line.startswith("fairpca ") and not line.startswith(TRIED_ELSEWHERE)]
    assert len(tried) >= 3
    for line in tried:
        smaller = SMALLER if line.startswith("fairpca audit") else []
        code = main([*shlex.split(line)[1:], *smaller])
        assert code == 0 or ("--fail-if" in line and code == 3), line
        capsys.readouterr()


def test_other_commands_exist():
    targets = set(re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8")))
    for line in commands():
        if line.startswith(("fairpca ", *TRIED_ELSEWHERE)):
            continue
        program, *arguments = shlex.split(line)
        assert program == "make", line
        assert targets.issuperset(one for one in arguments if "=" not in one), line
