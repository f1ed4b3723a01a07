"""The picture of the architecture stays true: a module imports from lower layers or its own folder only."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import fairpca

ROOT = Path(fairpca.__file__).parent

#: Layer of each top-level module or folder, lowest first.
LAYERS = {
    "_arrow": 0,
    "_files": 0,
    "_progress": 0,
    "_validation": 0,
    "_workers": 0,
    "linalg": 0,
    "protocols": 0,
    "joint_range": 1,
    "moments": 1,
    "datasets": 1,
    "tables": 2,
    "problems": 2,
    "solvers": 2,
    "streamed": 3,
    "estimators": 3,
    "persistence": 4,
    "metrics": 4,
    "inference": 5,
    "model_selection": 6,
    "plotting": 7,
    "report": 8,
    "reproductions": 9,
    "cli": 10,
}
#: Same-layer or otherwise forbidden pairs that deserve their own line.
FORBIDDEN = {("problems", "solvers"), ("solvers", "problems"), ("metrics", "estimators")}


def part_of(module: str) -> str | None:
    """``fairpca.solvers.mw`` -> ``solvers``; the package itself counts as what it re-exports, the estimators."""
    pieces = module.split(".")
    if pieces[0] != "fairpca":
        return None
    return pieces[1] if len(pieces) > 1 else "estimators"


def imported_modules(path: Path) -> list[str]:
    modules = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            modules.append(node.module or "")
            # `from fairpca import datasets` names a folder, not a name of the package
            modules += [
                f"fairpca.{name.name}" for name in node.names if node.module == "fairpca" and name.name in LAYERS
            ]
    return modules


SOURCES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_import_rule(path):
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    assert own in LAYERS, f"{own} has no layer: add it to DESIGN and here"
    for module in imported_modules(path):
        other = part_of(module)
        if other is None or other == own:
            continue
        assert (own, other) not in FORBIDDEN, f"{path.name} imports {module}"
        same_layer_ok = LAYERS[own] == 0 or (own, other) in {("moments", "joint_range")}
        assert LAYERS[other] < LAYERS[own] or same_layer_ok, f"{path.name} (layer {own}) imports {module}"


def test_the_rule_would_notice_a_breach(tmp_path):
    source = tmp_path / "bad.py"
    source.write_text("from fairpca.solvers.mw import multiplicative_weights\nimport fairpca.cli\n")
    assert [part_of(module) for module in imported_modules(source)] == ["solvers", "cli"]


def test_import_loads_no_heavy_package():
    # scikit-learn itself imports pandas where it is installed, so only what fairpca adds is counted.
    code = (
        "import sys, sklearn.decomposition\n"
        "before = set(sys.modules)\n"
        "import fairpca, fairpca.datasets, fairpca.metrics, fairpca.tables, fairpca.cli\n"
        "heavy = {'cvxpy', 'dask', 'matplotlib', 'pandas', 'torch', 'pyarrow', 'plotly'}\n"
        "print(sorted(heavy & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
