"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of the papers' data, which is not part of the repository."""
    folder = Path(os.environ.get("FAIRPCA_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"the papers' data are not at {folder}; set FAIRPCA_DATA to their folder")
    return folder
