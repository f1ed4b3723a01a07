"""The code in the pages of docs/ that show output runs, and gives that output."""

from __future__ import annotations

import doctest
import warnings
from pathlib import Path

import pytest
import sklearn

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.mark.parametrize("page", ["pipelines.md"])
def test_code_of_the_page_gives_the_output_shown(page):
    pytest.importorskip("pandas", reason="pandas is not installed")
    with sklearn.config_context(), warnings.catch_warnings():
        warnings.simplefilter("error")
        found = doctest.testfile(str(DOCS / page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 10
    assert not found.failed
