"""Fixtures shared by all tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

os.environ["SCIPY_ARRAY_API"] = "1"  # before scipy is imported: else scikit-learn skips one of its checks

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairpca

# A shell's background job, or one under nohup, ignores these signals, and what it starts inherits that. The children of
# the tests are sent signals: a handler that does nothing is the same to this process, but is not inherited.
for _name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"):
    if signal.getsignal(getattr(signal, _name, signal.SIGTERM)) == signal.SIG_IGN:
        signal.signal(getattr(signal, _name), lambda *_: None)

#: For ``make fuzz``, in one process: these minutes are shared by all kinds of random cases. Without them, a few that
#: never change.
FUZZ_MINUTES = max(float(os.environ.get("FAIRPCA_FUZZ_MINUTES") or 0.0), 0.0)
#: Fits by class of estimator and cases by kind, counted where they are tested.
COUNTS: Counter[str] = Counter()
_KINDS: list[pytest.Item] = []


def pytest_collection_finish(session: pytest.Session) -> None:
    """Every property on random data is a kind of its own, and every test that takes ``cases``."""
    _KINDS[:] = [
        item
        for item in session.items
        if item.get_closest_marker("hypothesis") or "cases" in getattr(item, "fixturenames", ())
    ]


def fuzz_seconds() -> float:
    """The time of one kind of random cases."""
    return 60.0 * FUZZ_MINUTES / max(len(_KINDS), 1)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """hypothesis counts examples: a property that has a time instead is tested again until it is over."""
    if not (FUZZ_MINUTES and pyfuncitem.get_closest_marker("hypothesis")):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    end = time.monotonic() + fuzz_seconds()
    while True:
        pyfuncitem.obj(**arguments)
        if time.monotonic() >= end:
            return True


@pytest.fixture(scope="session")
def counts() -> Counter[str]:
    return COUNTS


def pytest_terminal_summary(terminalreporter) -> None:
    if FUZZ_MINUTES and COUNTS:
        terminalreporter.section("fits by class, cases by kind")
        for name, count in sorted(COUNTS.items()):
            terminalreporter.write_line(f"{name:40} {count:10,d}")


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
