"""Nothing is written twice."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import fairpca

ROOT = Path(fairpca.__file__).parent
SOURCES = sorted(ROOT.rglob("*.py"))
PAPERS = Path(__file__).resolve().parents[1] / "reproductions"

LONGEST_COPY = 10


def code_lines(text: str) -> list[tuple[int, str]]:
    """Lines that do something, stripped, with their numbers; no constructors, docstrings, imports or comments."""
    tree, skipped = ast.parse(text), set()
    for node in ast.walk(tree):
        documented = (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None
        )
        constructor = isinstance(node, ast.FunctionDef) and node.name == "__init__"
        left_out = [node.body[0]] if documented else []
        left_out += [node] if constructor or isinstance(node, ast.Import | ast.ImportFrom) else []
        for part in left_out:
            skipped.update(range(part.lineno, part.end_lineno + 1))
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if number not in skipped)
    return [(number, line) for number, line in lines if re.search(r"\w", line) and not line.startswith("#")]


def copies(texts: dict[str, str], size: int) -> list[str]:
    """Places of runs of so many equal lines that occur twice."""
    places = defaultdict(list)
    for name, text in texts.items():
        lines = code_lines(text)
        for start in range(len(lines) - size + 1):
            places[tuple(line for _, line in lines[start : start + size])].append(f"{name}:{lines[start][0]}")
    return [" = ".join(found) for found in places.values() if len(found) > 1]


def test_no_block_stands_twice():
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in SOURCES}
    assert copies(texts, LONGEST_COPY + 1) == []


def test_copies_would_be_noticed():
    block = "\n".join(f"value_{i} = compute({i})" for i in range(LONGEST_COPY + 1))
    indented = "def f():\n" + "\n".join(f"    {line}" for line in block.splitlines())
    assert copies({"a": block, "b": indented}, LONGEST_COPY + 1) == ["a:1 = b:2"]
    shorter = "\n".join(block.splitlines()[1:])
    assert copies({"a": block, "b": shorter}, LONGEST_COPY + 1) == []
