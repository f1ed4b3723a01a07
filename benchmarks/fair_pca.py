"""FairPCA against ordinary PCA on the same data, and against the 2018 paper's algorithms."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from _papers import load_faces
from _timing import alternate, peak_memory
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from fairpca import FairPCA
from fairpca.datasets import load_german_credit

DATA = Path(os.environ.get("FAIRPCA_DATA", Path(__file__).parents[2] / "shared" / "data"))


def against_pca(name: str, X: np.ndarray, groups: np.ndarray, d: int, repeats: int) -> None:
    ordinary = PCA(d, svd_solver="covariance_eigh")
    balanced = FairPCA(d)
    seconds = alternate(
        {"pca": lambda: ordinary.fit(X), "fair": lambda: balanced.fit(X, sensitive_features=groups)}, repeats
    )
    total = balanced.explained_variance_[0] / balanced.explained_variance_ratio_[0]
    memory = peak_memory(lambda: FairPCA(d).fit(X, sensitive_features=groups))
    square = X.shape[1] ** 2 * 8 / 1e6
    print(
        f"{name:<28} {seconds['fair'] / seconds['pca']:>6.2f} x  "
        f"{balanced.n_oracle_calls_:>4}  {balanced.duality_gap_ / total:>8.0e}  "
        f"{abs(np.diff(balanced.group_losses_)[0]) / total:>8.0e}  {memory:>7.0f} MB = {memory / square:.1f} p x p"
    )


def fit_time_table() -> None:
    print("FairPCA against sklearn PCA(svd_solver='covariance_eigh'), median of alternating runs")
    print(f"{'data':<28} {'time':>8}  {'calls':>4} {'gap':>9} {'losses':>9}  peak extra memory")
    faces = DATA / "samadi2018" / "lfw_42x42.npz"
    if faces.exists():
        images = load_faces(faces)
        against_pca("LFW 13232 x 1764, d = 20", images.data, images.sensitive_features, 20, repeats=5)
    else:
        print(f"(no LFW faces at {faces})")
    against_pca("1000000 x 50, d = 5", *two_groups(1_000_000), 5, repeats=7)


def two_groups(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of 50 features whose variances fall in one group and rise in the other."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 50)) * np.linspace(2, 0.5, 50)
    groups = rng.integers(0, 2, len(X))
    X[groups == 1] = X[groups == 1][:, ::-1]
    return X, groups


def single_thread_table() -> None:
    """Processor time with one BLAS thread, which other work on the machine hardly changes."""
    print("\nThe same, processor time with one BLAS thread")
    cases = {
        "German credit 1000 x 57, d = 5": (*load_german_credit(return_X_s=True), 5, 301),
        "100000 x 50, d = 5": (*two_groups(100_000), 5, 31),
        "1000000 x 50, d = 5": (*two_groups(1_000_000), 5, 5),
    }
    faces = DATA / "samadi2018" / "lfw_42x42.npz"
    if faces.exists():
        images = load_faces(faces)
        cases["LFW 13232 x 1764, d = 20"] = (images.data, images.sensitive_features, 20, 3)
    for name, (X, groups, d, repeats) in cases.items():
        ordinary, balanced = PCA(d, svd_solver="covariance_eigh"), FairPCA(d)
        fits = {"pca": partial(ordinary.fit, X), "fair": partial(balanced.fit, X, sensitive_features=groups)}
        with threadpool_limits(1):
            seconds = alternate(fits, repeats, clock=time.process_time)
        print(f"{name:<32} {seconds['fair'] / seconds['pca']:>5.2f} x  {1e3 * seconds['fair']:>9.2f} ms")


def solvers_table() -> None:
    X, sex = load_german_credit(return_X_s=True)
    print("\nSolvers on German credit (1000 x 57, d = 5)")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = {
            "dual": lambda: FairPCA(5).fit(X, sensitive_features=sex),
            "mw (20 steps)": lambda: FairPCA(5, solver="mw", max_iter=20).fit(X, sensitive_features=sex),
            "mw (500 steps)": lambda: FairPCA(5, solver="mw").fit(X, sensitive_features=sex),
            "sdp": lambda: FairPCA(5, solver="sdp").fit(X, sensitive_features=sex),
        }
        seconds = alternate(fits, repeats=3)
        for name, fit in fits.items():
            pca = fit()
            ratio = seconds[name] / seconds["dual"]
            print(f"{name:<16} {ratio:>8.1f} x  objective {pca.objective_:.9f}  gap {pca.duality_gap_:.0e}")


def import_cost() -> None:
    code = "import time, sys; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"

    def seconds(module: str) -> float:
        return float(subprocess.run([sys.executable, "-c", code.format(module)], capture_output=True, text=True).stdout)

    pairs = [(seconds("sklearn.decomposition"), seconds("fairpca")) for _ in range(5)]
    base, ours = np.median(pairs, axis=0)
    print(f"\nimport fairpca: {ours / base:.2f} x importing sklearn.decomposition")


if __name__ == "__main__":
    fit_time_table()
    single_thread_table()
    solvers_table()
    import_cost()
