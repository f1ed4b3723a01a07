"""Examples keep to their form: one question, one picture, short. The build of the site runs them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
LONGEST = 60


def test_there_is_one_article_per_paper():
    papers = {path.parent.name for path in (ROOT / "reproductions").glob("*/README.md")}
    assert {path.stem for path in (ROOT / "examples" / "articles").glob("*.py")} == papers


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_form(path):
    source = path.read_text(encoding="utf-8")
    question, underline, *_ = ast.get_docstring(ast.parse(source)).splitlines()
    assert question.endswith("?")
    assert underline == "=" * len(question)
    assert len(source.splitlines()) < LONGEST
    assert "\n# %%\n" in source
    assert source.count("plt.subplots(") == 1
