"""Fixtures shared by all tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys

os.environ["SCIPY_ARRAY_API"] = "1"  # before scipy is imported: else scikit-learn skips one of its checks

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairpca


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the papers' data; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("FAIRPCA_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the papers' data is not at {folder}; set FAIRPCA_DATA to run this test")
    return folder


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20181204)


@pytest.fixture
def two_groups(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """300 rows of 7 features; the groups differ in size, mean and covariance."""
    groups = np.repeat(["a", "b"], [200, 100])
    X = rng.normal(size=(300, 7)) * np.linspace(2.0, 0.5, 7)
    X[200:] = X[200:, ::-1] + np.linspace(0.0, 1.0, 7)
    return X, groups


@pytest.fixture
def figures_of(tmp_path: Path) -> Callable[[str], Any]:
    """Runs a script in a process of its own, as clusters need it, and reads the JSON in its last line."""

    def run(script: str) -> Any:
        path = tmp_path / "script.py"
        path.write_text(script)
        sources = os.pathsep.join([str(Path(fairpca.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, str(path)],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "PYTHONPATH": sources},
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.strip().splitlines()[-1])

    return run
