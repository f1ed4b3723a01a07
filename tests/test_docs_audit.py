"""The commands of docs/audit.md print what stands there, and its record is what the options say."""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from fairpca.audit.command import main
from fairpca.audit.command._main import _parser
from fairpca.audit.texts import KEPT_IN_LABELS, MISSING_TOKENS

PAGE = (Path(__file__).parents[1] / "docs" / "audit.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture
def survey(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(next(block for block in blocks("python") if "survey.csv" in block and "write" in block), {})


def commands():
    """Each command, and the lines that it prints according to the page."""
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = part.splitlines()
            yield command, lines


def test_every_shown_line_is_printed(survey, capsys):
    shown = list(commands())
    assert len(shown) >= 5
    for command, lines in shown:
        program, *arguments = command.split()
        assert program == "fairpca"
        assert main(arguments) == 0
        printed = " ".join(capsys.readouterr().out.split())
        for line in lines:
            assert " ".join(line.split()) in printed, (command, line)


def test_the_loaded_model_of_the_page(survey, capsys):
    pytest.importorskip("pandas")
    assert main(next(command for command, _ in commands()).split()[1:]) == 0
    names: dict = {}
    exec(next(block for block in blocks("python") if "model.transform" in block), names)
    assert names["scores"].shape == (584, 2)
    assert np.isfinite(names["scores"]).all()
    capsys.readouterr()


def test_the_tokens_of_the_page_are_those_of_the_code():
    listed = ", ".join(f"`{token}`" for token in MISSING_TOKENS[:-1]) + f" and `{MISSING_TOKENS[-1]}`"
    assert f"In CSV files so are {listed}, in upper or lower case." in " ".join(PAGE.split())
    kept = [token for token in MISSING_TOKENS if token.lower() in KEPT_IN_LABELS]
    assert f"{', '.join(f'`{token}`' for token in kept[:-1])} and `{kept[-1]}` are kept" in " ".join(PAGE.split())


def test_each_option_is_in_the_table_once_with_its_commands():
    (commands,) = [one for one in _parser()._actions if isinstance(one, argparse._SubParsersAction)]
    options = defaultdict(set)
    for name, parser in commands.choices.items():
        for text in {text for one in parser._actions for text in one.option_strings} - {"-h", "--help"}:
            options[text].add(name[0])
    table = PAGE.partition("### All options")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| `")]
    listed = [(text, set(row[2].split())) for row in rows for text in re.findall(r"--[a-z-]+", row[1])]
    assert len(listed) == len(dict(listed))
    assert dict(listed) == options
