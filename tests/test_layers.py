"""The picture of the architecture stays true: a module imports from lower layers or its own folder only."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fairpca

ROOT = Path(fairpca.__file__).parent

#: Layer of each top-level module or folder, lowest first.
LAYERS = {
    "_archive": 0,
    "_arrow": 0,
    "_containers": 0,
    "_continuous": 0,
    "_display": 0,
    "_files": 0,
    "_frames": 0,
    "_labels": 0,
    "_optional": 0,
    "_progress": 0,
    "_validation": 0,
    "_values": 0,
    "_workers": 0,
    "linalg": 0,
    "protocols": 0,
    "joint_range": 1,
    "moments": 1,
    "datasets": 1,
    "problems": 2,
    "solvers": 2,
    "estimators": 3,
    "anndata": 4,
    "persistence": 4,
    "metrics": 4,
    "inference": 5,
    "model_selection": 6,
    "plotting": 7,
    "audit": 8,
}
#: Same-layer or otherwise forbidden pairs that deserve their own line.
FORBIDDEN = {("problems", "solvers"), ("solvers", "problems"), ("metrics", "estimators")}


def part_of(module: str) -> str | None:
    """``fairpca.solvers.range.dual`` -> ``solvers``; the package itself counts as the estimators that it re-exports."""
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


#: What the reproductions of papers, which are not in the package, use of it beyond its public modules.
PRIVATE_FOR_REPRODUCTIONS = {
    "fairpca._files",
    "fairpca._optional",
    "fairpca._progress",
    "fairpca._display",
    "fairpca.plotting._style",
}


def test_reproductions_stand_on_the_package_and_never_under_it():
    folder = Path(__file__).resolve().parents[1] / "reproductions"
    used = {module for path in folder.rglob("*.py") for module in imported_modules(path) if part_of(module)}
    assert {module for module in used if "._" in module} == PRIVATE_FOR_REPRODUCTIONS
    assert not [path for path in SOURCES for module in imported_modules(path) if module.startswith("reproductions")]


def test_the_rule_would_notice_a_breach(tmp_path):
    source = tmp_path / "bad.py"
    source.write_text("from fairpca.solvers.reference.mw import multiplicative_weights\nimport fairpca.audit.command\n")
    assert [part_of(module) for module in imported_modules(source)] == ["solvers", "audit"]


#: Names that belong to estimators alone; ``tol`` and ``max_iter`` mean the same to a solver.
ESTIMATOR_WORDS = re.compile(
    r"\b(n_components|sensitive_features|sample_weight|random_state|mean_tolerance|covariance_penalty|n_init|n_landmarks"
    r"|notion|bandwidth|center)\b|\b(solver|criterion)=[\"']"
)


def estimator_words(source: str) -> list[str]:
    """In code, messages, docstrings and comments: advice about parameters is added by the estimator."""
    return [match.group() for match in ESTIMATOR_WORDS.finditer(source)]


@pytest.mark.parametrize("path", sorted((ROOT / "solvers").rglob("*.py")), ids=lambda path: path.stem)
def test_solvers_name_no_parameter_of_an_estimator(path):
    assert not estimator_words(path.read_text(encoding="utf-8"))


def test_the_rule_on_names_would_notice_a_breach():
    assert estimator_words("raise ValueError(\"use solver='dual' or lower n_components\")") == [
        "solver='",
        "n_components",
    ]


STARTS_THREADS = {"concurrent", "joblib", "multiprocessing", "threading"}


@pytest.mark.parametrize("path", sorted((ROOT / "problems").rglob("*.py")), ids=lambda path: path.stem)
def test_problems_start_no_threads(path):
    modules = imported_modules(path)
    started = STARTS_THREADS & {module.split(".")[0] for module in modules} or "fairpca._workers" in modules
    assert not started


def test_import_loads_no_heavy_package():
    # scikit-learn itself imports pandas where it is installed, so only what fairpca adds is counted.
    code = (
        "import sys, sklearn.decomposition\n"
        "before = set(sys.modules)\n"
        "import fairpca, fairpca.datasets, fairpca.metrics, fairpca.audit, fairpca.audit.command\n"
        "heavy = {'cvxpy', 'dask', 'matplotlib', 'pandas', 'torch', 'pyarrow', 'plotly'}\n"
        "print(sorted(heavy & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_core_does_not_load_the_audit():
    code = (
        "import pkgutil, sys, fairpca\n"
        "names = [one.name for one in pkgutil.iter_modules(fairpca.__path__) if one.name != 'audit']\n"
        "[__import__(f'fairpca.{name}') for name in names]\n"
        "print([name for name in sys.modules if name.startswith('fairpca.audit')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
