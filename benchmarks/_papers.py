"""Parts of the papers' reproductions that benchmarks use; they are next to this folder and not installed."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reproductions.datasets import (
    load_credit,
    load_faces,
    load_splits,
    load_table,
    load_tables,
    make_projected_gaussians,
)
from reproductions.lee2022.protocol import Method
from reproductions.lee2022.saved import FILE, Saved, holds_against, read_saved
from reproductions.lee2022.synthetic1 import project_sample

__all__ = [
    "FILE",
    "Method",
    "Saved",
    "holds_against",
    "load_credit",
    "load_faces",
    "load_splits",
    "load_table",
    "load_tables",
    "make_projected_gaussians",
    "project_sample",
    "read_saved",
]
