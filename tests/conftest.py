"""Shared fixtures."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of the authors' data; tests that need it are skipped where it is absent."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("FAIRPCA_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"no data at {folder}; set FAIRPCA_DATA to the folder that holds lee2022/, uci/, ...")
    return folder
