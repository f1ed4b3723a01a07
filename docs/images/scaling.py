"""Measures and draws docs/images/scaling.svg: ``python docs/images/scaling.py``, which takes a few minutes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import matplotlib as mpl
import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from fairpca import FairPCA, ParityPCA, RobustFairPCA
from fairpca.plotting._style import method_style

#: Runs of less than this many seconds are repeated, and the shortest counts.
SHORT = 0.5
Rows = tuple[object, np.ndarray]


def dense_rows(n: int, p: int, k: int) -> Rows:
    """Groups that vary differently along shared and own directions, with variances that fall like 1 / i."""
    rng = np.random.default_rng(0)
    groups, X = rng.integers(0, k, n), rng.standard_normal((n, p))
    X *= 3.0 / np.sqrt(np.arange(1, p + 1))
    for a in range(k):
        X[groups == a] = np.roll(X[groups == a], a, axis=1)
    return X, groups


def sparse_rows(p: int) -> Rows:
    """Logarithms of 3,000 rows of Poisson counts, some 5 % of them positive, that follow 30 programs of features."""
    rng = np.random.default_rng(0)
    groups, active = rng.integers(0, 2, 3_000), rng.standard_normal((3_000, 30)) * np.linspace(1, 0.2, 30)
    programs, level = rng.standard_normal((30, p)) * (rng.random((30, p)) < 0.2), rng.gamma(0.2, 0.2, p)
    shift = 0.3 * rng.standard_normal((2, p))
    blocks = []
    for rows in np.array_split(np.arange(3_000), 30):
        rates = level * np.exp(np.minimum(active[rows] @ programs + shift[groups[rows]], 5))
        blocks.append(sparse.csr_array(np.log1p(rng.poisson(rates))))
    return sparse.vstack(blocks, format="csr"), groups


def seconds_of(fit: Callable[[], object]) -> float:
    times = []
    while not times or (times[0] < SHORT and len(times) < 3):
        start = time.process_time()
        fit()
        times.append(time.process_time() - start)
    return min(times)


def panel(ax: mpl.axes.Axes, name: str, sizes: Sequence[int], rows: Callable[[int], Rows], methods: dict) -> None:
    """Time against one size. PCA's solver is that of scikit-learn's own choice, or the one that takes sparse rows."""
    found: dict[str, list[float]] = {}
    for size in sizes:
        X, groups = rows(size)
        components = next(iter(methods.values())).n_components
        solver = "arpack" if sparse.issparse(X) else "auto"
        pca = PCA(components, svd_solver=solver, random_state=0)
        fits = {"PCA": partial(pca.fit, X)}
        fits |= {label: partial(one.fit, X, sensitive_features=groups) for label, one in methods.items()}
        for label, fit in fits.items():
            found.setdefault(label, []).append(seconds_of(fit))
    draw(ax, name, sizes, found)


def draw(ax: mpl.axes.Axes, name: str, sizes: Sequence[int], found: dict[str, list[float]]) -> None:
    for label, times in found.items():
        ax.loglog(sizes, times, label=label, **method_style(label, ["FairPCA", "ParityPCA", "RobustFairPCA"]))
    ax.set(xlabel=name)
    if max(sizes) < 100:  # ticks at powers of ten would say little
        ax.set_xticks(sizes, sizes)
        ax.minorticks_off()
    ax.legend(frameon=False)


def main() -> None:
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "fairpca"
    import matplotlib.pyplot as plt

    warnings.simplefilter("ignore", ConvergenceWarning)
    axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")[1]
    all_three = {"FairPCA": FairPCA(5), "ParityPCA": ParityPCA(5), "RobustFairPCA": RobustFairPCA(5)}
    fair_and_parity = {"FairPCA": FairPCA(10), "ParityPCA": ParityPCA(10)}
    with threadpool_limits(1):
        panel(
            axes[0],
            "rows (20 features, 2 groups)",
            [10**e for e in range(3, 8)],
            lambda n: dense_rows(n, 20, 2),
            all_three,
        )
        panel(axes[1], "groups (4,000 x 50)", (2, 3, 5, 8, 12, 20), lambda k: dense_rows(4_000, 50, k), all_three)
        sizes = (100, 300, 1_000, 3_000, 10_000, 20_000)
        panel(axes[2], "features (3,000 rows, 5 % nonzero)", sizes, sparse_rows, fair_and_parity)
    axes[0].set_ylabel("processor time (s)")
    figure = axes[0].figure
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))


if __name__ == "__main__":
    main()
