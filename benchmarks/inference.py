"""Inference: time as ratios, and calibration with a known truth.

``python benchmarks/inference.py`` prints the ratios (part of ``make bench``). With ``alarms``, ``gaps``, ``power``,
``coverage``, ``flow`` or ``sentences`` it prints simulations, which take from minutes to an hour; ``--draws N`` makes
them shorter.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from _timing import alternate
from scipy import stats
from sklearn.decomposition import PCA

from fairpca import FairPCA
from fairpca.datasets import load_german_credit, load_table
from fairpca.inference import chance_losses, cross_validate_groups, loss_test
from fairpca.model_selection._held_out import HeldOut
from fairpca.report._words import summary

comparison = importlib.import_module("fairpca.model_selection.compare")  # the module, not its function
DATA = Path(os.environ.get("FAIRPCA_DATA", Path(__file__).parents[2] / "shared" / "data"))
TABLES = {
    "Steel": "Steel_Data.csv",
    "Biodeg": "Biodeg_Data.csv",
    "default credit": "default_credit.csv",
    "Wine": "Wine_Quality_Data.csv",
    "Ecoli": "Ecoli_Data.csv",
    "Energy": "Energy_Data.csv",
}
Data = tuple[np.ndarray, np.ndarray]


def table(name: str) -> Data:
    """Standardised features and the real groups."""
    if name == "German":
        return load_german_credit(return_X_s=True)
    if name == "noise":
        rng = np.random.default_rng(5000)
        return rng.normal(size=(5000, 20)), np.repeat([0, 1], [60, 4940])
    found = load_table(DATA / "vu2022" / TABLES[name])
    X = found.data[:, found.data.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0), found.sensitive_features


def dimensions(X: np.ndarray) -> list[int]:
    return [d for d in (2, 5, 10) if d < X.shape[1]]


def ratios() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_000_000, 50)) * np.linspace(2, 0.5, 50)
    groups = rng.integers(0, 2, len(X))
    X[groups == 1] = X[groups == 1][:, ::-1]
    seconds = alternate(
        {
            "fit": lambda: FairPCA(5).fit(X, sensitive_features=groups),
            "folds": lambda: cross_validate_groups(FairPCA(5), X, sensitive_features=groups, cv=10),
        },
        repeats=5,
    )
    print(f"cross_validate_groups(FairPCA(5), cv=10), 1000000 x 50: {seconds['folds'] / seconds['fit']:.2f} x one fit")
    cases = {"German": table("German")}
    if (DATA / "vu2022").is_dir():
        cases["default credit"] = table("default credit")
    for name, (X, groups) in cases.items():
        seconds = alternate(
            {
                "fit": lambda X=X: PCA(5).fit(X),
                "test": lambda X=X, groups=groups: loss_test(X, sensitive_features=groups, n_components=5),
            },
            repeats=5,
        )
        print(f"999 permutations, {name} {X.shape}: {seconds['test'] / seconds['fit']:.0f} x one PCA fit")


def alarms(draws: int) -> None:
    """Random labels: how often the test rejects, and how often the corrected interval excludes zero."""
    print("loss_test, d = 2, 5, 10 together, 99 permutations: share rejected at 0.05, p of uniformity")
    for name in ("German", "Steel", "Biodeg", "default credit", "noise"):
        X, groups = table(name)
        rng = np.random.default_rng(1)
        found = [
            loss_test(
                X,
                sensitive_features=rng.permutation(groups),
                n_components=dimensions(X),
                n_permutations=99,
                random_state=i,
            )
            for i in range(draws)
        ]
        # p-values are multiples of 1/100: spread over their cell, they are uniform if the test is exact
        p_values = np.array([one.p_value for one in found]) - rng.uniform(0, 0.01, draws)
        rejected = np.mean([one.rejected for one in found])
        print(f"{name:<16} {rejected:.3f}  {stats.kstest(p_values, 'uniform').pvalue:.3f}", flush=True)
    cluster_alarms(draws)


def cluster_alarms(draws: int) -> None:
    X, _ = table("German")
    X, persons = np.repeat(X[:300], 4, axis=0), np.repeat(np.arange(300), 4)
    rng, by_person, by_row = np.random.default_rng(2), [], []
    for i in range(draws):
        groups = rng.permutation(np.repeat([0, 1], [100, 200]))[persons]
        options = {"sensitive_features": groups, "n_components": 5, "n_permutations": 99, "random_state": i}
        by_person.append(loss_test(X, clusters=persons, **options).rejected)
        if i < draws // 10:
            by_row.append(loss_test(X, **options).rejected)
    print(f"persons at random, 4 rows each: {np.mean(by_person):.3f} with clusters, {np.mean(by_row):.3f} without")


def gap_alarms(draws: int, names: list[str]) -> None:
    print(
        "corrected gap of random groups, its interval excludes zero: two groups of the real sizes; 2, 4, 10 equal ones"
    )
    for name in names:
        X, groups = table(name)
        for d in dimensions(X):
            numbers = [None] if name == "noise" else [None, 2, 4, 10]
            shares = [_share_of_alarms(X, groups if k is None else np.arange(len(X)) % k, d, draws) for k in numbers]
            print(f"{name:<16} d = {d:<3} {'  '.join(shares)}", flush=True)
    print("* flagged in most draws: fewer rows than features, or a few dominating rows")


def _share_of_alarms(X: np.ndarray, labels: np.ndarray, d: int, draws: int) -> str:
    rng = np.random.default_rng(3)
    found = [
        cross_validate_groups(PCA(d), X, sensitive_features=rng.permutation(labels), random_state=i)
        for i in range(draws)
    ]
    flagged = np.mean([bool(one.remarks) for one in found]) > 0.5
    return f"{np.mean([one.corrected_loss.gap_excludes_zero for one in found]):.3f}{'*' if flagged else ' '}"


def power(draws: int) -> None:
    for name in ("Wine", "Biodeg"):
        X, groups = table(name)
        for d in (2, 5):
            test = loss_test(X, sensitive_features=groups, n_components=d)
            gap = cross_validate_groups(PCA(d), X, sensitive_features=groups).corrected_loss.gap
            interval = f"{gap.value:.2f} ({gap.low:.2f} to {gap.high:.2f})"
            print(f"{name}, real groups, d = {d}: p = {test.p_value:.3g}, corrected gap {interval}")
    print(f"60/800/800, effect in the third group: found in {np.mean([_third_found(i) for i in range(draws)]):.3f}")
    test, gap = np.mean([_heavy_tails(i) for i in range(draws)], axis=0)
    print(f"equal covariances, heavier tails in 200 of 2000 rows: test {test:.3f}, corrected gap {gap:.3f}")


def _third_found(seed: int) -> bool:
    """The standard deviations of the third group differ by factors of 0.8 to 1.25."""
    rng, groups = np.random.default_rng([4, seed]), np.repeat([0, 1, 2], [60, 800, 800])
    X = rng.normal(size=(1660, 10)) * np.linspace(2, 1, 10)
    X[groups == 2] *= np.linspace(0.8, 1.25, 10)
    test = loss_test(X, sensitive_features=groups, n_components=3, n_permutations=99, random_state=seed)
    return test.by_group[2].p_value <= 0.05


def _heavy_tails(seed: int) -> tuple[bool, bool]:
    """Rows of the small group are those of a multivariate t with 5 degrees of freedom and the same covariance."""
    rng, groups = np.random.default_rng([5, seed]), np.repeat([0, 1], [200, 1800])
    X = rng.normal(size=(2000, 10)) * np.linspace(2, 1, 10)
    X[:200] *= np.sqrt(3.0 / rng.chisquare(5, size=(200, 1)))
    test = loss_test(X, sensitive_features=groups, n_components=3, n_permutations=99, random_state=seed)
    figures = cross_validate_groups(PCA(3), X, sensitive_features=groups, random_state=seed)
    return test.rejected, figures.corrected_loss.gap_excludes_zero


def coverage(draws: int) -> None:
    """Tables as populations, PCA: bias of the difference of losses, plug-in and corrected; coverage of its interval."""
    print("table, n, d: bias of plug-in, of corrected, Monte Carlo error; coverage")
    for name in ("German", "Wine", "Biodeg", "Ecoli", "Energy", "Steel", "default credit"):
        X, groups = table(name)
        for n in (500, 2000):
            for d in dimensions(X)[:2]:
                plug_in, corrected, covered = np.array(list(_draws_of(X, groups, n, d, draws))).T
                error = np.std(corrected) / np.sqrt(draws)
                holds = abs(corrected.mean()) <= abs(plug_in.mean()) / 2 + 2 * error
                biases = f"{plug_in.mean():>8.4f} {corrected.mean():>8.4f} {error:.4f} {' ' if holds else '!'}"
                print(f"{name:<16} {n:>5} {d:>3}  {biases}  {covered.mean():.3f}", flush=True)


def _draws_of(X: np.ndarray, groups: np.ndarray, n: int, d: int, draws: int) -> Iterator[tuple[float, float, bool]]:
    """Errors of both estimates of the difference of losses that the fitted components have in the population."""
    codes = np.unique(groups, return_inverse=True)[1]
    centred = X - X.mean(axis=0)
    moments = [centred[codes == a].T @ centred[codes == a] / (codes == a).sum() for a in (0, 1)]
    best = [np.linalg.eigvalsh(moment)[::-1][:d].sum() for moment in moments]
    rng = np.random.default_rng(6)
    for i in range(draws):
        rows = rng.integers(len(X), size=n)
        while np.bincount(codes[rows], minlength=2).min() < 10:
            rows = rng.integers(len(X), size=n)
        basis = PCA(d, svd_solver="covariance_eigh").fit(X[rows]).components_.T
        losses = [own - np.vdot(basis, moment @ basis) for own, moment in zip(best, moments, strict=True)]
        figures = cross_validate_groups(PCA(d), X[rows], sensitive_features=codes[rows], random_state=i)
        plug_in, corrected = (
            values.by_group[0].value - values.by_group[1].value - (losses[0] - losses[1])
            for values in (figures.loss, figures.corrected_loss)
        )
        gap = figures.corrected_loss.gap
        yield plug_in, corrected, abs(corrected) <= (gap.high - gap.low) / 2


def sentences(draws: int, names: list[str]) -> None:
    """How often the report's own sentences claim something of random groups; then of the real ones."""
    # What a classifier reads off the scores takes most of the time, and no sentence about losses depends on it.
    comparison.measure = lambda *_: HeldOut(explained_variance=0.0, adversary=0.0, adversary_random=1.0)
    print("report, d = 5: 'would not show this', 'on new rows the losses differ'")
    for name in names:
        X, groups = table(name)
        rng = np.random.default_rng(7)
        found = np.mean([_claims(X, rng.permutation(groups), i) for i in range(draws)], axis=0)
        print(
            f"{name:<16} random groups {found[0]:.3f} {found[1]:.3f}; real groups {_claims(X, groups, 0)}", flush=True
        )
    for name in ("Wine",):
        print(f"{name:<16} real groups {_claims(*table(name), 0)}", flush=True)


def _claims(X: np.ndarray, groups: np.ndarray, seed: int) -> tuple[bool, bool]:
    found = comparison.compare(
        X, groups, n_components=5, methods=["PCA"], n_permutations=199, random_state=seed, n_jobs=1
    )
    text = " ".join(summary(found, 5))
    return "would not show this" in text, "On new rows the losses differ" in text


def flow() -> None:
    print("closed form / permutation mean, by group (* rests on few rows)")
    for name in ("German", "Wine", "Biodeg", "Ecoli", "Energy", "Steel", "noise"):
        X, groups = table(name)
        for d in dimensions(X):
            closed = chance_losses(X, sensitive_features=groups, n_components=d)
            test = loss_test(X, sensitive_features=groups, n_components=d)
            shares = [
                f"{one.expected / test.by_group[label].expected:.2f}{'*' if one.few_rows else ''}"
                for label, one in closed.by_group.items()
            ]
            print(f"{name:<16} d = {d:<3} {'  '.join(shares)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "what",
        nargs="?",
        default="ratios",
        choices=["ratios", "alarms", "gaps", "power", "coverage", "flow", "sentences"],
    )
    parser.add_argument("--draws", type=int)
    parser.add_argument("--tables", nargs="*", default=["German", "Biodeg", "noise", "Steel", "default credit"])
    chosen = parser.parse_args()
    parts: dict[str, Callable[[], None]] = {
        "ratios": ratios,
        "alarms": lambda: alarms(chosen.draws or 1000),
        "gaps": lambda: gap_alarms(chosen.draws or 200, chosen.tables),
        "power": lambda: power(chosen.draws or 200),
        "coverage": lambda: coverage(chosen.draws or 200),
        "sentences": lambda: sentences(chosen.draws or 200, chosen.tables),
        "flow": flow,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts[chosen.what]()


if __name__ == "__main__":
    sys.exit(main())
