"""The benchmark of streams, Dask and many features runs, on a hundredth of its rows; its timings are not judged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "benchmarks" / "scaling.py"


@pytest.mark.skipif(not SCRIPT.exists(), reason="benchmarks/ is not part of this copy")
def test_small_version_of_the_scaling_benchmark():
    for package in ("pyarrow", "dask", "distributed"):
        pytest.importorskip(package)
    done = subprocess.run([sys.executable, str(SCRIPT), "--small"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    for part in ("Parquet 100000 x 50", "In memory 100000 x 50", "500 x 4000", "one worker killed"):
        assert part in done.stdout
