"""Streams, Parquet, Dask and thousands of features, each against the plain cost of the same bytes.

``python benchmarks/scaling.py --small`` runs everything on a hundredth of the rows, as a check that it works.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from _timing import alternate, peak_memory
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from fairpca import FairPCA
from fairpca.moments import group_moments

FEATURES = 50
LABELS = np.array(["female", "male"])


def rows_of(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Single-precision rows of two groups with opposite spectra."""
    X = rng.standard_normal((n, FEATURES), dtype=np.float32) * np.linspace(2, 0.5, FEATURES, dtype=np.float32)
    codes = (rng.random(n) < 0.55).astype(np.int64)
    X[codes == 1] = X[codes == 1][:, ::-1]
    return X, codes


def write_parquet(path: Path, n_rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, n_rows, 500_000):
        X, codes = rows_of(rng, min(500_000, n_rows - start))
        columns = {f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(FEATURES)}
        table = pa.table({**columns, "sex": LABELS[codes]})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


PEAK = """
import pathlib, re, sys
from fairpca import FairPCA
from fairpca.moments.arrow import moments_from_parquet
FairPCA(5).fit_moments(moments_from_parquet(sys.argv[1], "sex"))
# Not ru_maxrss, which a new process inherits from the one that started it.
print(int(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]) / 1024)
"""


def parquet(n_rows: int) -> None:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        print("(pyarrow is not installed: no Parquet)")
        return
    from fairpca.moments.arrow import moments_from_parquet

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_parquet(path, n_rows)
        batch = 4_000_000 // FEATURES

        def decode(**options: bool) -> None:
            """As anybody would: pyarrow's own threads over the columns of a batch."""
            with pq.ParquetFile(path, **options) as file:
                for _ in file.iter_batches(batch):
                    pass

        seconds = alternate(
            {
                "decode": decode,
                "decode unbuffered": lambda: decode(pre_buffer=False),
                "bare reader": lambda: read_only(path, batch),
                "moments": lambda: moments_from_parquet(path, "sex"),
            },
            repeats=5,
        )
        memory = subprocess.run([sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True)
        print(
            f"Parquet {n_rows} x {FEATURES} float32: moments of the stream {seconds['moments']:.2f} s = "
            f"{seconds['moments'] / seconds['decode']:.2f} x pyarrow's iter_batches as it is, "
            f"{seconds['moments'] / seconds['decode unbuffered']:.2f} x the same without buffering the file ahead, "
            f"{seconds['moments'] / seconds['bare reader']:.2f} x our own reader without the sums (row groups on both "
            f"cores, groups as codes); peak memory of the whole process {float(memory.stdout):.0f} MiB"
        )


def read_only(path: Path, batch: int, n_threads: int = 2) -> None:
    """The fastest way we know to decode the same batches: row groups shared out, strings left as codes."""
    import pyarrow.parquet as pq

    def part(row_groups: np.ndarray) -> None:
        with pq.ParquetFile(path, read_dictionary=["sex"], pre_buffer=False, buffer_size=1 << 18) as file:
            for _ in file.iter_batches(batch, row_groups.tolist(), use_threads=False):
                pass

    with ThreadPoolExecutor(n_threads) as pool:
        count = pq.ParquetFile(path).metadata.num_row_groups
        list(pool.map(part, np.array_split(np.arange(count), n_threads)))


def plain_products(X: np.ndarray, n_threads: int = 2, step: int = 8192) -> np.ndarray:
    """X^T X by blocks: what no method can avoid."""

    def part(start: int, stop: int) -> np.ndarray:
        total = np.zeros((X.shape[1], X.shape[1]), dtype=np.float32)
        for first in range(start, stop, step):
            block = X[first : min(first + step, stop)]
            total += block.T @ block
        return total

    bounds = np.linspace(0, len(X), n_threads + 1).astype(int)
    with threadpool_limits(1), ThreadPoolExecutor(n_threads) as pool:
        return sum(pool.map(part, bounds[:-1], bounds[1:]))


def in_memory(n_rows: int) -> None:
    rng = np.random.default_rng(0)
    X = np.empty((n_rows, FEATURES), dtype=np.float32)
    codes = np.empty(n_rows, dtype=np.int64)
    for start in range(0, n_rows, 500_000):
        stop = min(start + 500_000, n_rows)
        X[start:stop], codes[start:stop] = rows_of(rng, stop - start)
    runs = {
        "plain": lambda: plain_products(X),
        "moments": lambda: group_moments(X, sensitive_features=codes),
        "fit": lambda: FairPCA(5).fit(X, sensitive_features=codes),
    }
    try:
        import dask.array as da
    except ImportError:
        print("(dask is not installed: no Dask array)")
    else:
        lazy = da.from_array(X, chunks=(max(n_rows // 8, 1), FEATURES), name=False)
        groups = da.from_array(codes, chunks=max(n_rows // 8, 1), name=False)
        runs["dask fit"] = lambda: FairPCA(5).fit(lazy, sensitive_features=groups)
    seconds = alternate(runs, repeats=5)
    shares = ", ".join(f"{name} {seconds['plain'] / seconds[name]:.0%}" for name in runs if name != "plain")
    print(f"In memory {n_rows} x {FEATURES} float32: throughput against plain float32 X^T X on two threads: {shares}")
    exact = group_moments(X[: n_rows // 5].astype(np.float64), sensitive_features=codes[: n_rows // 5])
    narrow = group_moments(X[: n_rows // 5], sensitive_features=codes[: n_rows // 5])
    error = np.abs(narrow.scatters - exact.scatters).max() / np.abs(exact.scatters).max()
    print(f"  largest error of a float32 scatter against float64, relative: {error:.1e}")


def _slow(block: np.ndarray) -> np.ndarray:
    time.sleep(0.25)
    return block


def lost_worker() -> None:
    try:
        import dask.array as da
        from distributed import Client, LocalCluster
    except ImportError:
        print("(dask.distributed is not installed: no lost worker)")
        return
    rng = np.random.default_rng(0)
    X, codes = rows_of(rng, 20_000)
    X = X.astype(np.float64)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        lazy = da.from_array(X, chunks=(1000, FEATURES)).map_blocks(_slow, dtype=X.dtype)
        victim = next(iter(cluster.workers.values())).pid
        threading.Timer(1.0, os.kill, (victim, signal.SIGKILL)).start()
        start = time.perf_counter()
        pca = FairPCA(5).fit(lazy, sensitive_features=da.from_array(codes, chunks=1000))
        seconds = time.perf_counter() - start
    memory = FairPCA(5).fit(X, sensitive_features=codes)
    print(
        f"Cluster of two, one worker killed after 1 s of {seconds:.1f} s: components differ from those in memory by "
        f"{np.abs(pca.components_ - memory.components_).max():.0e}, the objective by "
        f"{abs(pca.objective_ - memory.objective_):.0e}"
    )


def leading_directions(n: int, p: int, rank: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Two groups with the spectrum 1 / i that share every second direction; noise is a tenth of the variance."""
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.standard_normal((p, rank + rank // 2)))[0]
    own = np.arange(rank)
    own[1::2] = rank + np.arange(rank // 2)
    groups = np.arange(n) % 2
    variance = 1.0 / np.arange(1, rank + 1)
    X = rng.standard_normal((n, p)) * np.sqrt(variance.sum() / 9 / p)
    for a, chosen in enumerate((np.arange(rank), own)):
        rows = groups == a
        X[rows] += (rng.standard_normal((rows.sum(), rank)) * np.sqrt(variance)) @ directions[:, chosen].T
    return X, groups


def many_features(n: int, p: int) -> None:
    X, groups = leading_directions(n, p)
    ordinary = PCA(10, svd_solver="randomized", random_state=0)
    balanced = FairPCA(10)
    seconds = alternate(
        {"pca": lambda: ordinary.fit(X), "fair": lambda: balanced.fit(X, sensitive_features=groups)}, repeats=3
    )
    memory = peak_memory(lambda: FairPCA(10).fit(X, sensitive_features=groups))
    print(
        f"{n} x {p}, d = 10: {seconds['fair'] / seconds['pca']:.2f} x the time of randomised PCA; certified gap "
        f"{balanced.duality_gap_ / balanced.objective_:.1e} of the loss; {memory:.0f} MB on top of the data "
        f"(a p x p matrix: {p * p * 8e-6:.0f} MB)"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true")
    small = parser.parse_args().small
    n_rows = 100_000 if small else 10_000_000
    print(json.dumps({"cores": os.cpu_count()}))
    parquet(n_rows)
    in_memory(n_rows)
    for shape in [(500, 4000)] if small else [(5000, 20_000), (2000, 20_000)]:  # the last: in the space of the rows
        many_features(*shape)
    lost_worker()  # last: its cluster writes to the log about the lost worker


if __name__ == "__main__":
    main()
