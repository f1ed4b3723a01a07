"""Fixtures shared by all tests."""

from __future__ import annotations

import os

os.environ["SCIPY_ARRAY_API"] = "1"  # before scipy is imported: else scikit-learn skips one of its checks

from pathlib import Path

import numpy as np
import pytest


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
