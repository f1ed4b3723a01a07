"""FairPCA and ParityPCA next to other public implementations, on the same matrices and rows.

1. Random covariances, p = 10 and 50, k = 5 and 50, d = 3 and 8: the largest loss and the smallest captured variance.
   minPCA (Fries et al. 2026), StablePCA (Wang et al. 2026), and the algorithms of Samadi et al. (2018):
   multiplicative weights and the semidefinite program.
2. Equal group means: the closed form of Kleindessner et al. (2023), on German credit and random rows.
3. 50 and 200 groups, p = 50, d = 5, for comparisons between versions of this package.

Each value is computed here, in double precision, from the subspace that an implementation returns. Other packages are
used if they can be imported; FAIRPCA_RIVALS may name folders, separated by colons, that contain them. Others are listed
as missing. Times are ratios of processor time, measured in turn; run with OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import itertools
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from types import ModuleType

import numpy as np

from fairpca import ParityPCA
from fairpca.datasets import load_german_credit
from fairpca.joint_range import JointRange
from fairpca.problems.balanced import balanced_problem
from fairpca.protocols import RangeProblem, SolverResult
from fairpca.solvers.range.dual import minimise_on_range
from fairpca.solvers.reference.mw import multiplicative_weights
from fairpca.solvers.reference.sdp import solve_sdp

sys.path += [folder for folder in os.environ.get("FAIRPCA_RIVALS", "").split(":") if folder]

#: Modules that contain the other implementations, by the names under which their repositories publish them.
RIVALS = {"minPCA": "minPCA.minpca", "StablePCA": "src.PCAalg", "closed form": "fair_PCA"}
SETTINGS = list(itertools.product((10, 50), (5, 50), (3, 8)))
CRITERIA = ("loss", "variance")
#: Values this close count as equal: minPCA computes in single precision.
EQUAL = 1e-9

Subspace = np.ndarray
Fit = Callable[[np.ndarray, int, str], Subspace]


def load(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(RIVALS[name])
    except ImportError:
        return None


def random_covariances(kind: str, k: int, p: int, rng: np.random.Generator) -> np.ndarray:
    """Matrices of trace one: products of square Gaussian matrices, or five shared and five own directions each."""
    if kind == "gaussian":
        factors = rng.standard_normal((k, p, p))
    else:
        common = np.linalg.qr(rng.standard_normal((p, 5)))[0]
        own = rng.standard_normal((k, p, 5))
        own = np.linalg.qr(own - common @ (common.T @ own))[0]
        sizes = np.sqrt(rng.uniform(0.1, 1.0, 10))
        factors = np.concatenate([np.broadcast_to(common, (k, p, 5)), own], axis=2) * sizes
    matrices = factors @ factors.transpose(0, 2, 1)
    return matrices / np.einsum("aii->a", matrices)[:, None, None]


def make_problem(matrices: np.ndarray, d: int, criterion: str) -> tuple[RangeProblem, JointRange]:
    joint = JointRange(matrices.copy(), d)
    return balanced_problem(criterion, joint.traces, joint.best), joint


def solve_ours(matrices: np.ndarray, d: int, criterion: str) -> SolverResult:
    problem, joint = make_problem(matrices, d, criterion)
    return minimise_on_range(problem, joint, tol=1e-11, max_iter=500, rng=np.random.default_rng(0))


def fit_weights(matrices: np.ndarray, d: int, criterion: str) -> Subspace:
    problem, joint = make_problem(matrices, d, criterion)
    return multiplicative_weights(problem, joint, tol=1e-11, max_iter=500).basis


def fit_sdp(matrices: np.ndarray, d: int, criterion: str) -> Subspace:
    problem, joint = make_problem(matrices, d, criterion)
    return solve_sdp(problem, joint, tol=1e-11).basis


def fit_minpca(matrices: np.ndarray, d: int, criterion: str) -> Subspace:
    """With the defaults of the package: Adam, 500 steps, five starts."""
    import torch

    torch.manual_seed(0)
    objective = {"loss": "maxregret", "variance": "minpca"}[criterion]
    model = load("minPCA").minPCA(d, function=objective, norm=False)
    model.fit(list(matrices))
    return model.v_.detach().numpy().astype(float)


def fit_stable(matrices: np.ndarray, d: int, criterion: str) -> Subspace:
    """Mirror-prox with the defaults of the package: at most 1000 steps."""
    method = {"loss": "fair", "variance": "stable"}[criterion]
    model = load("StablePCA").PCA_MP(n_components=d, method=method)
    rows = [np.linalg.cholesky(matrix + 1e-8 * np.eye(len(matrix))).T for matrix in matrices]
    model.fit(rows, Sigma_list=list(matrices), verbose=False)
    return np.asarray(model.components_).T


def candidates() -> dict[str, Fit]:
    fits: dict[str, Fit] = {"weights": fit_weights}
    with contextlib.suppress(ImportError):
        importlib.import_module("cvxpy")
        fits["sdp"] = fit_sdp
    fits |= {name: fit for name, fit in (("minPCA", fit_minpca), ("StablePCA", fit_stable)) if load(name)}
    return fits


def timed(run: Callable[[], object]) -> tuple[object, float]:
    start = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = run()
    return result, time.process_time() - start


def compare_setting(matrices: np.ndarray, d: int, criterion: str, fits: dict[str, Fit]) -> tuple[str, bool]:
    problem, joint = make_problem(matrices, d, criterion)
    runs = [timed(lambda: solve_ours(matrices, d, criterion)) for _ in range(3)]
    ours, seconds = runs[0][0], statistics.median(run[1] for run in runs)
    cells, never_worse = [f"{ours.objective:>10.6f}  {max(ours.objective - ours.lower_bound, 0.0):>7.0e}"], True
    for fit in fits.values():
        basis, theirs = timed(lambda fit=fit: fit(matrices, d, criterion))
        value = problem.value(joint.captured(np.linalg.qr(basis)[0]))
        cells.append(f"{value - ours.objective:>+9.1e} {theirs / seconds:>6.1f} x")
        never_worse &= value >= ours.objective - EQUAL
    return "  ".join(cells), never_worse


def settings_table(kind: str, seed: int) -> None:
    fits = candidates()
    missing = [name for name in ("minPCA", "StablePCA") if name not in fits]
    print(f"Random covariances of trace one ({kind}); not found: {', '.join(missing) or 'none'}")
    print("ours: objective and certified gap; others: objective minus ours, and time divided by ours\n")
    columns = "  ".join(f"{name:>18}" for name in fits)
    print(f"criterion    p   k  d   {'objective':>10}  {'gap':>7}  {columns}")
    for fit in fits.values():
        timed(lambda fit=fit: fit(random_covariances(kind, 3, 6, np.random.default_rng(0)), 2, "loss"))  # lazy imports
    worse = 0
    for criterion, (p, k, d) in itertools.product(CRITERIA, SETTINGS):
        matrices = random_covariances(kind, k, p, np.random.default_rng([seed, p, k]))
        line, never_worse = compare_setting(matrices, d, criterion, fits)
        worse += not never_worse
        print(f"{criterion:<9} {p:>4} {k:>3} {d:>2}   {line}", flush=True)
    print(f"\nours is worse than another in {worse} of {2 * len(SETTINGS)} settings")


def parity_table() -> None:
    module = load("closed form")
    if module is None:
        print("\nEqual means: the closed form of Kleindessner et al. (2023) was not found")
        return
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((20_000, 50)) * np.linspace(2, 0.5, 50)
    cases = {"German credit, d = 5": load_german_credit(return_X_s=True), "20000 x 50, d = 5": (rows, rows[:, 0] > 0.5)}
    print("\nEqual means of two groups: variance kept by ours, theirs minus ours; largest difference of means; time")
    for name, (X, groups) in cases.items():
        X = np.asarray(X, dtype=float)
        print(f"{name:<22} {compare_parity(module, X - X.mean(axis=0), np.unique(groups, return_inverse=True)[1])}")


def compare_parity(module: ModuleType, X: np.ndarray, labels: np.ndarray, repeats: int = 5) -> str:
    fits = (
        lambda: ParityPCA(5).fit(X, sensitive_features=labels).components_.T,
        lambda: module.FairPCA(5, False, 0).fit(X, labels).transformation_matrix,
    )
    runs = [[timed(fit) for fit in fits] for _ in range(repeats)]
    ours, theirs = (runs[0][i][0] for i in range(2))
    kept = [float(((X @ basis) ** 2).sum() / (X**2).sum()) for basis in (ours, theirs)]
    means = np.diff([X[labels == a].mean(axis=0) for a in (0, 1)], axis=0)[0]
    apart = [float(np.abs(means @ basis).max()) for basis in (ours, theirs)]
    ratio = statistics.median(run[1][1] for run in runs) / statistics.median(run[0][1] for run in runs)
    difference = f"{kept[1] - kept[0]:+.0e}  means {apart[0]:.0e} / {apart[1]:.0e}"
    return f"{kept[0]:.6f}  {difference}  {ratio:.1f} x our time"


def many_groups_table(seeds: int = 3) -> None:
    print("\nMany groups, p = 50, d = 5, matrices of trace one: gap and seconds of processor time, medians over seeds")
    for k, criterion in ((50, "loss"), (50, "error"), (50, "variance"), (200, "loss")):
        gaps, seconds = [], []
        for seed in range(seeds):
            matrices = random_covariances("gaussian", k, 50, np.random.default_rng(seed))
            result, taken = timed(lambda matrices=matrices, criterion=criterion: solve_ours(matrices, 5, criterion))
            gaps.append(result.objective - result.lower_bound)
            seconds.append(taken)
        print(f"k = {k:<4} {criterion:<9} gap {statistics.median(gaps):.1e}  {statistics.median(seconds):.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=("gaussian", "shared"), default="gaussian")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=("settings", "parity", "groups"))
    options = parser.parse_args()
    if options.only in (None, "settings"):
        settings_table(options.kind, options.seed)
    if options.only in (None, "parity"):
        parity_table()
    if options.only in (None, "groups"):
        many_groups_table()


if __name__ == "__main__":
    main()
