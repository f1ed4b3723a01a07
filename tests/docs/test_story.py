"""README, landing page and get started tell one story, and its numbers are those that the README's own code finds."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
STORY = re.search(r"<!-- story -->\n(.*)<!-- /story -->", README, re.DOTALL)[1]


@pytest.fixture(scope="module")
def story():
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("story", ROOT / "docs" / "story.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def told():
    """What the README's first block of code finds, and the lines that each block prints."""
    known, printed = {}, []
    for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(block, known)
        printed.append(output.getvalue().splitlines())
    return known["found"], printed


def words_and_numbers(text):
    number = r"(?<![\w.])-?\d[\d,]*\.?\d*"
    return re.split(number, text), [float(one.replace(",", "")) for one in re.findall(number, text)]


def test_the_table_is_what_the_code_finds(story, told):
    """But for the last digit: the ends of joint intervals are quantiles of draws, which depend on numpy's version."""
    words, numbers = words_and_numbers(story.written()[0])
    found, values = words_and_numbers(story.table(told[0]))
    assert words == found
    assert numbers == pytest.approx(values, rel=3e-3, abs=2e-3)


def test_the_code_prints_numbers_of_the_table(story, told):
    table, _ = story.written()
    lines = told[1][0]
    assert len(lines) == 3
    for line in lines:
        value, low, high = (part.lstrip("-") for part in re.search(r"by (\S+) \((\S+) to (\S+)\)", line).groups())
        assert all(re.search(rf"(?<![\d.]){re.escape(part)}(?!\d)", table) for part in (value, low, high)), line


def test_six_lines_are_enough():
    assert len([line for line in re.search(r"```python\n(.*?)```", README, re.DOTALL)[1].splitlines() if line]) <= 6


def test_outputs_stand_in_comments(told):
    for line in (line for lines in told[1][1:] for line in lines):
        assert re.search(rf"# {re.escape(line)}(?!\w)", README), line


def test_the_picture_shows_the_same_losses(story, told):
    _, curve = story.written()
    found = story.curves(told[0])
    for name, values in found.items():
        if name != "components":
            for d, now in zip(found["components"], values, strict=True):
                drawn = curve[name][curve["components"].index(d)]
                assert drawn == pytest.approx(now, abs=0.002), f"{name}, {d} components"


def test_the_same_words_on_every_page():
    for page in ("index.md", "get_started.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        included = "```{include} ../README.md\n:start-after: <!-- story -->\n:end-before: <!-- /story -->\n```\n"
        assert text.count(included) == 1
        prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        assert not re.findall(r"\d+\.\d\d", prose.replace("3.11", "")), f"{page} has a number that nothing checks"


def test_the_readme_has_no_other_number_of_the_data():
    """Results of the README's other blocks of code stand in comments, which are compared above."""
    prose = re.sub(r"```.*?```", "", README.replace(STORY, ""), flags=re.DOTALL)
    assert set(re.findall(r"\d+\.\d+", prose)) <= {"3.11", "0.5", "4.0"}
