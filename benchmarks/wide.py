"""Wide and sparse data, many groups and small fits, each against scikit-learn's PCA on the same data in the same run.

Processor time with one BLAS thread, which other work on the machine hardly changes.
``python benchmarks/wide.py sparse robust`` runs the parts with these names only.
"""

from __future__ import annotations

import ctypes
import re
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from _timing import alternate
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from fairpca import FairPCA, LeacePCA, ParityPCA, RobustFairPCA

STATUS = Path("/proc/self/status")


def resident(field: str) -> float:
    """Megabytes of memory that this process holds now (VmRSS) or has held at most (VmHWM)."""
    found = re.search(rf"{field}:\s+(\d+)", STATUS.read_text())
    return float(found[1]) * 1024 / 1e6 if found else np.nan


def memory_beyond(run: Callable[[], object]) -> float:
    """Megabytes at the peak of ``run``, without what was held before it; BLAS and LAPACK included."""
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = resident("VmRSS")
    run()
    return resident("VmHWM") - before


def compare(name: str, X: object, groups: np.ndarray, anchor: PCA, estimators: dict, repeats: int = 1) -> None:
    """Time in units of the anchor's, memory beyond the data, and the certificate."""
    fits = {label: partial(one.fit, X, sensitive_features=groups) for label, one in estimators.items()}
    memory = {label: memory_beyond(fit) for label, fit in fits.items()}
    with threadpool_limits(1):
        seconds = alternate({"anchor": partial(anchor.fit, X), **fits}, repeats, clock=time.process_time)
    print(f"{name}: anchor {seconds['anchor']:.4g} s")
    for label, pca in estimators.items():
        total = pca.explained_variance_[0] / max(pca.explained_variance_ratio_[0], np.finfo(float).tiny)
        print(
            f"  {label:<26} {seconds[label]:>9.4g} s {seconds[label] / seconds['anchor']:>7.2f} x"
            f" {memory[label]:>6.0f} MB  objective {pca.objective_ / total:.10g}, gap {pca.duality_gap_ / total:.1e}",
            flush=True,
        )


def correlated_rows(n: int, p: int, k: int, *, rank: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Groups that share half of their ``rank`` directions, with variances that fall like 1 / i, and noise."""
    rng = np.random.default_rng(seed)
    shared, groups = rng.standard_normal((rank, p)), rng.integers(0, k, n)
    X = rng.standard_normal((n, p))
    for a in range(k):
        own = np.where(np.arange(rank)[:, None] % 2 == 0, shared, rng.standard_normal((rank, p)))
        rows = groups == a
        scores = rng.standard_normal((rows.sum(), rank)) * (3.0 / np.sqrt(np.arange(1, rank + 1)))
        X[rows] += scores @ own + 0.3 * rng.standard_normal(p)
    return X, groups


def counts_of_genes(n: int, p: int, k: int, *, seed: int = 0) -> tuple[sparse.csr_array, np.ndarray]:
    """Logarithms of Poisson counts, about 12 % of them positive: programs of genes, and batches that express them."""
    rng = np.random.default_rng(seed)
    level = rng.gamma(0.3, 0.4, p)
    programs = rng.standard_normal((60, p)) * (rng.random((60, p)) < 0.1) * np.linspace(0.8, 0.2, 60)[:, None]
    batches = 0.3 * rng.standard_normal((k, p))
    groups, depth = rng.integers(0, k, n), 0.4 * rng.standard_normal(n)
    blocks = []
    for start in range(0, n, 1000):
        rows = slice(start, start + 1000)
        active = rng.standard_normal((len(groups[rows]), len(programs)))
        rates = level * np.exp(depth[rows, None] + active @ programs + batches[groups[rows]])
        blocks.append(sparse.csr_array(np.log1p(rng.poisson(rates))))
    return sparse.vstack(blocks, format="csr"), groups


def by_name(*estimators: object) -> dict[str, object]:
    return {type(one).__name__: one for one in estimators}


def sparse_rows() -> None:
    for k, d in ((2, 10), (12, 30)):
        X, groups = counts_of_genes(10_000, 5_000, k)
        name = f"CSR 10000 x 5000, {X.nnz / np.prod(X.shape):.0%} nonzero, d = {d}, {k} groups"
        fits = by_name(FairPCA(d)) if k == 2 else by_name(FairPCA(d), ParityPCA(d), LeacePCA(d))
        compare(name, X, groups, PCA(d, svd_solver="arpack", random_state=0), fits)


def many_groups_of_wide_rows() -> None:
    for k in (2, 4, 8, 12):
        X, groups = correlated_rows(5_000, 1_000, k, rank=40)
        compare(f"5000 x 1000, d = 30, {k} groups", X, groups, PCA(30, random_state=0), by_name(FairPCA(30)), 3)


def wide_rows() -> None:
    X, groups = correlated_rows(5_000, 3_000, 2, rank=40)
    fits = by_name(FairPCA(20), ParityPCA(20), RobustFairPCA(20), LeacePCA(20))
    compare("5000 x 3000, d = 20, 2 groups", X, groups, PCA(20, random_state=0), fits, 3)


def tall_rows() -> None:
    X, groups = correlated_rows(13_000, 1_764, 2, rank=40)
    fits = by_name(FairPCA(20), RobustFairPCA(20))
    compare("13000 x 1764, d = 20, 2 groups", X, groups, PCA(20, random_state=0), fits, 3)


def robust_rows() -> None:
    for p, k in ((50, 5), (50, 10), (50, 20), (100, 20)):
        X, groups = correlated_rows(4_000, p, k, rank=10)
        fits = by_name(RobustFairPCA(5), FairPCA(5))
        compare(f"4000 x {p}, d = 5, {k} groups", X, groups, PCA(5, random_state=0), fits)


def thousands_of_groups() -> None:
    for k in (1_000, 9_000):
        rng = np.random.default_rng(0)
        groups = np.arange(20 * k) % k
        X = rng.standard_normal((20 * k, 5)) * rng.uniform(0.5, 2.0, (k, 5))[groups]
        compare(f"{20 * k} x 5, d = 2, {k} groups", X, groups, PCA(2), by_name(FairPCA(2)))


def nested_rows() -> None:
    X, groups = np.eye(100), np.arange(100) % 4
    fits = {"FairPCA(10, nested=True)": FairPCA(10, nested=True)}
    compare("rows of an identity matrix, 100 x 100, four groups", X, groups, PCA(10), fits)


def small_rows() -> None:
    X, groups = correlated_rows(1_000, 57, 2, rank=10)
    compare("1000 x 57, d = 5, 2 groups", X, groups, PCA(5), by_name(FairPCA(5), RobustFairPCA(5)), 101)


PARTS = {
    "small": small_rows,
    "nested": nested_rows,
    "robust": robust_rows,
    "groups": thousands_of_groups,
    "many": many_groups_of_wide_rows,
    "tall": tall_rows,
    "wide": wide_rows,
    "sparse": sparse_rows,
}


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
