"""Files of a release agree with each other and with the package."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import fairpca

ROOT = Path(__file__).parents[2]


def tool(name):
    """A program of the folder tools, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_one_version():
    assert re.search(r"(?m)^version: (.+)$", read("CITATION.cff"))[1] == fairpca.__version__
    assert f"Version {fairpca.__version__}." in read("docs/about/cite.md")


def test_the_citation_is_well_formed():
    citation = pytest.importorskip("yaml").safe_load(read("CITATION.cff"))
    assert {"cff-version", "message", "title", "authors", "version", "license"} <= set(citation)


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_workflows_call_targets_that_exist(path):
    content = pytest.importorskip("yaml").safe_load(path.read_text(encoding="utf-8"))
    targets = set(re.findall(r"(?m)^([\w-]+):", read("Makefile")))
    steps = [step for job in content.get("jobs", {}).values() for step in job["steps"]]
    called = [word for step in steps for word in re.findall(r"make ([\w-]+)", step.get("run", ""))]
    assert set(called) <= targets
    assert path.parent.name != "workflows" or {"test-oldest", "docs-check", "release-check"} <= set(called)


def test_minimums_are_read_from_the_project():
    oldest = tool("oldest_versions")
    minimums = oldest.declared_minimums(read("pyproject.toml"))
    assert {"numpy", "scipy", "scikit-learn", "joblib", "pandas", "pyarrow", "matplotlib", "dask"} <= set(minimums)
    text = (
        '[project]\ndependencies = ["a>=1"]\noptional-dependencies = {x = ["a>=2"]}\n[dependency-groups]\ntest = []\n'
    )
    with pytest.raises(SystemExit, match="a has two minimums, 1 and 2"):
        oldest.declared_minimums(text)


def test_archives_with_other_data_are_refused():
    check = tool("release_check").check_contents
    check(["fairpca/py.typed", "fairpca/datasets/data/german.data", "tests/saved_models/x.npz"], ("fairpca/py.typed",))
    for names in (["fairpca/data/people.csv"], ["fairpca/faces.npz"], ["fairpca/datasets/data/adult.data"]):
        with pytest.raises(SystemExit, match="should not be in the archive"):
            check(names)
    with pytest.raises(SystemExit, match="missing"):
        check(["README.md"], ("fairpca/py.typed",))


def test_public_docstrings_are_complete():
    pytest.importorskip("numpydoc")
    assert tool("check_docstrings").main() == 0
