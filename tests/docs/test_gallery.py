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
    question = ast.get_docstring(ast.parse(source)).partition("\n")[0]
    assert question.endswith("?")
    assert len(source.splitlines()) < LONGEST
    assert "\n# %%\n" in source
    assert source.count("plt.subplots(") == 1


def test_blocks_keep_their_line_numbers():
    runner = pytest.importorskip("run_example")
    source = '"""Question?"""\n\n# %%\n# Text.\n# More.\nx = 1\n\n# %%\ny = 2\n'
    blocks = runner.blocks_of(source)
    assert [text for text, _, _ in blocks] == ["", "Text.\nMore.", ""]
    lines = source.splitlines()
    for _, code, first in blocks[1:]:
        assert lines[first - 1] == code.splitlines()[0]


def test_a_warning_or_an_error_stops_an_example(tmp_path):
    runner = pytest.importorskip("run_example")
    path = tmp_path / "bad.py"
    path.write_text('"""Question?"""\n\n# %%\nimport warnings\nwarnings.warn("careful")\n')
    with pytest.raises(UserWarning, match="careful"):
        runner.run(path)


def test_every_page_is_in_the_menu():
    yaml = pytest.importorskip("yaml")
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]

    def leaves(entry):
        if isinstance(entry, str):
            yield entry
        for one in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
            yield from leaves(one)

    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= set(leaves(menu))
