"""RobustFairPCA: the certified sweep against the paper's subgradient descent, and what a step of the latter costs."""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

import numpy as np
from _papers import load_tables
from _timing import alternate

from fairpca import RobustFairPCA
from fairpca.moments import GroupMoments, group_moments
from fairpca.problems.robust import RobustGap
from fairpca.solvers.reference.subgradient import _descend
from fairpca.solvers.stiefel.geometry import random_frame

DATA = Path(os.environ.get("FAIRPCA_DATA", Path(__file__).parents[2] / "shared" / "data"))
ALPHAS = (0.05, 0.1, 0.15)
PENALTIES = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)


def moments_of(table) -> GroupMoments:
    kept = [j for j, name in enumerate(table.feature_names) if name not in ("perimX", "perimY")]
    X = table.data[:, kept]
    return group_moments((X - X.mean(axis=0)) / X.std(axis=0), sensitive_features=table.sensitive_features)


def certificates(tables: dict) -> None:
    """The whole grid of the paper on every table: calls, gap, and how far above the bound the descent ends."""
    print("Grid of 3 x 6 parameters, d = 3: eigenproblems and certificate of solver='spectral'")
    print(f"{'table':<24} {'p':>4} {'calls':>12} {'largest gap / objective':>25}")
    for name, table in tables.items():
        moments = moments_of(table)
        fits = [
            RobustFairPCA(3, radius=alpha, penalty=penalty).fit_moments(moments)
            for alpha, penalty in itertools.product(ALPHAS, PENALTIES)
        ]
        calls = [fit.n_oracle_calls_ for fit in fits]
        gap = max(fit.duality_gap_ / fit.objective_ for fit in fits)
        print(f"{name:<24} {moments.n_features:>4} {min(calls):>5} to {max(calls):<4} {gap:>20.1e}")


def against_subgradient(moments: GroupMoments, penalties: tuple[float, ...]) -> None:
    print("\nBiodeg, alpha = 0.1, d = 3: against 20 random starts of 1000 steps (and one from PCA)")
    print(f"{'penalty':>8} {'time':>9} {'spectral':>16} {'subgradient':>16} {'difference':>11}")
    for penalty in penalties:
        exact = RobustFairPCA(3, penalty=penalty)
        descent = RobustFairPCA(3, penalty=penalty, solver="subgradient")
        seconds = alternate(
            {"exact": lambda: exact.fit_moments(moments), "descent": lambda: descent.fit_moments(moments)},  # noqa: B023
            repeats=3,
        )
        print(
            f"{penalty:>8g} {seconds['descent'] / seconds['exact']:>7.0f} x {exact.objective_:>16.10f} "
            f"{descent.objective_:>16.10f} {descent.objective_ - exact.objective_:>11.1e}"
        )


def never_worse(tables: dict, n_init: int) -> None:
    """The largest amount by which the descent ends below the sweep, relative: at most the certificate."""
    print(f"\nWhole grid, {n_init} random starts each: (subgradient - spectral) / spectral")
    print(f"{'table':<24} {'smallest':>10} {'median':>10} {'largest':>10}")
    for name, table in tables.items():
        moments, excess = moments_of(table), []
        for alpha, penalty in itertools.product(ALPHAS, PENALTIES):
            exact = RobustFairPCA(3, radius=alpha, penalty=penalty).fit_moments(moments)
            descent = RobustFairPCA(3, radius=alpha, penalty=penalty, solver="subgradient", n_init=n_init)
            excess.append(descent.fit_moments(moments).objective_ / exact.objective_ - 1)
        print(f"{name:<24} {min(excess):>10.1e} {np.median(excess):>10.1e} {max(excess):>10.1e}")


def step_cost(moments: GroupMoments) -> None:
    """A step against its bare parts: products with both matrices, two for the projection, one QR."""
    matrices = moments.second_moments()
    p, d, steps = moments.n_features, 3, 300
    problem = RobustGap(moments.shares, np.array([0.01, 0.01]), 1.0)
    frame = random_frame(np.random.default_rng(0), p, p - d)

    def bare() -> None:
        for _ in range(steps):
            ambient = (matrices @ frame)[0]
            np.linalg.qr(frame - frame @ (frame.T @ ambient))

    def whole() -> None:
        _descend(problem, matrices, frame, 1e-3, steps)

    seconds = alternate({"bare": bare, "whole": whole}, repeats=7)
    print(f"\nOne step of the subgradient method: {seconds['whole'] / seconds['bare']:.2f} x its bare QR and products")


def main(full: bool) -> None:
    folder = DATA / "vu2022"
    if not folder.is_dir():
        print(f"(no tables at {folder}; set FAIRPCA_DATA)")
        return
    tables = load_tables(folder)
    certificates(tables)
    biodeg = moments_of(tables["Biodeg_Data"])
    step_cost(biodeg)
    against_subgradient(biodeg, PENALTIES if full else (0.5, 2.5))
    if full:
        never_worse(tables, 20)


if __name__ == "__main__":
    main("--full" in sys.argv)
