"""Long CSV files: `fairpca fit` against pyarrow's own reading of the same file, and its peak memory.

Each candidate runs in a process of its own, in turns. `python benchmarks/tables.py 1000000 10000000` sets the numbers
of rows; the files are written to a temporary folder (180 MB per million rows).
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

READ = "import sys, pyarrow.csv; pyarrow.csv.read_csv(sys.argv[1])"
FIT = (
    "import resource, sys; from fairpca.audit.command import main\n"
    "main(['fit', sys.argv[1], '--sensitive', 'sex', '--components', '5', '--out', sys.argv[2], '--json', '--quiet'])\n"
    "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3, file=sys.stderr)"
)


def write(path: Path, n_rows: int) -> None:
    """27 columns: numbers with four decimals, codes, texts."""
    import pyarrow
    import pyarrow.csv

    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, n_rows, 500_000):
        size = min(500_000, n_rows - start)
        columns = {f"x{j}": rng.normal(size=size).round(4) for j in range(20)}
        columns |= {f"code{j}": rng.integers(0, 100, size) for j in range(3)}
        columns |= {f"text{j}": rng.choice(["alpha", "beta", "gamma", "delta"], size) for j in range(3)}
        table = pyarrow.table(columns | {"sex": rng.choice(["female", "male"], size)})
        writer = writer or pyarrow.csv.CSVWriter(str(path), table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def run(code: str, *arguments: str) -> tuple[float, str]:
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return time.perf_counter() - start, done.stderr


def main() -> int:
    sizes = list(map(int, sys.argv[1:])) or [1_000_000]
    for n_rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "people.csv")
            write(path, n_rows)
            reading, fitting, peak = [], [], 0.0
            for _ in range(3 if n_rows < 5_000_000 else 1):
                reading.append(run(READ, str(path))[0])
                seconds, said = run(FIT, str(path), str(Path(folder, "model.npz")))
                fitting.append(seconds)
                peak = max(peak, float(said.split()[-1]))
            ours, theirs = statistics.median(fitting), statistics.median(reading)
            what = f"{n_rows:,} x 27, {path.stat().st_size / 1e6:,.0f} MB"
            print(f"{what}: fit {ours:.1f} s, pyarrow {theirs:.1f} s (ratio {ours / theirs:.1f}); peak {peak:,.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
