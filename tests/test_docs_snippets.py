"""The Python in the pages on balanced quality runs, and prints what the pages say."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"


def run_page(name: str) -> tuple[str, str]:
    """The text of a page up to its caution, and everything that its Python blocks print, run one after the other."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    text = (DOCS / name).read_text(encoding="utf-8").partition("## Caution")[0]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec("\n".join(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)), {})
    matplotlib.pyplot.close("all")
    return text, printed.getvalue()


@pytest.mark.skipif(not DOCS.exists(), reason="docs/ is not part of this copy")
def test_fair_pca():
    text, printed = run_page("fair_pca.md")
    lines = printed.splitlines()
    shares = [[float(x) for x in re.findall(r"[\d.]+", line)] for line in lines[:2]]
    assert f"women {shares[0][0]:.3f}, men {shares[0][1]:.3f}" in text
    assert f"# {shares[1][0]:.3f} each" in text
    assert f"{shares[1][1]:.3f}" == f"{shares[1][0]:.3f}"
    assert f"# {lines[3]}: the fewest" in text
    costs = [float(x) for x in re.findall(r"\d\.\d+e[+-]\d+", printed.split("new rows")[-1])]
    assert len(costs) == 10
    assert f"# what nesting costs: 0 to {100 * max(costs):.1f} %" in text
    table = printed[printed.index("Fewest components") :].split("flattered")[0]
    assert table in re.sub(r"^    ", "", text, flags=re.M)


@pytest.mark.skipif(not DOCS.exists(), reason="docs/ is not part of this copy")
def test_robust():
    _, printed = run_page("robust.md")
    assert re.match(r"\d+ \[0\.5\d+ 0\.5\d+\]", printed)
