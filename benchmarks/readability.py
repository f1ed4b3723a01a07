"""Who can still read the group off a representation: held-out AUC of gradient boosting, variance kept, MMD^2.

    python benchmarks/readability.py [table] [remedies] [chance] [picture] [--only German,COMPAS,Adult]
    [--dimensions 2,5,10] [--splits 10] [--data FOLDER]

1. Every parity method on the splits of German credit and COMPAS by Lee et al. (2022) and on samples of Adult.
2. What else helps, on the same rows: fewer dimensions, dropping features, erasure, noise.
3. How often random groups stay within the level that is said of them (German credit).
4. docs/atoms.png: why discrete data hide little (not by default; needs matplotlib).

Classifiers are trained on the training rows and evaluated on the test rows. Data: --data, the variable FAIRPCA_DATA, or
../shared/data.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _papers import load_splits
from mmd import load_adult
from sklearn.decomposition import PCA
from sklearn.utils import Bunch

from fairpca import KernelParityPCA, LeacePCA, MMDFairPCA, ParityPCA
from fairpca.metrics import explained_variance_ratio, mmd2, readability

PARTS = ("table", "remedies", "chance")
DATA = ("German", "COMPAS", "Adult")
#: Rows of an Adult sample: those of the paper (5 % of the table) for fitting, as many for evaluation.
ADULT_ROWS = 2261
#: Features that are dropped, and noise in standard deviations of each score.
DROPPED, NOISE = (2, 4), (0.1, 0.3, 1.0)

METHODS: dict[str, Callable[[int], Any]] = {
    "PCA": PCA,
    "ParityPCA, means": ParityPCA,
    "ParityPCA, means and covariances": lambda d: ParityPCA(d, covariance_penalty=1.0),
    "LeacePCA": LeacePCA,
    "KernelParityPCA": KernelParityPCA,
    "MMDFairPCA, median": lambda d: MMDFairPCA(d, bandwidth="median"),
    "MMDFairPCA, multiscale": lambda d: MMDFairPCA(d, bandwidth="multiscale"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    numbers = {"type": lambda text: [int(part) for part in text.split(",")]}
    parser.add_argument("parts", nargs="*", default=PARTS)
    parser.add_argument("--only", type=lambda text: text.split(","), default=DATA)
    parser.add_argument("--methods", default="", help="only methods whose name contains this")
    parser.add_argument("--dimensions", **numbers, default=[2, 5, 10])
    parser.add_argument("--splits", type=int, default=10)
    default = os.environ.get("FAIRPCA_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(default))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for part in arguments.parts:
        runs = {"table": run_table, "remedies": run_remedies, "chance": run_chance, "picture": draw_atoms}
        runs[part](arguments)


def splits_of(name: str, arguments: argparse.Namespace) -> Iterator[Bunch]:
    if name != "Adult":
        return load_splits(arguments.data / "lee2022" / "datasets" / name, splits=range(arguments.splits))
    X, sex = load_adult(arguments.data / "uci")
    return (_sample_of_adult(X, sex, split) for split in range(arguments.splits))


def _sample_of_adult(X: np.ndarray, sex: np.ndarray, split: int) -> Bunch:
    """Rows for fitting and for evaluation, standardised by the former; features constant there are left out."""
    rows = np.random.default_rng(split).permutation(len(X))[: 2 * ADULT_ROWS]
    train, test = X[rows[:ADULT_ROWS]], X[rows[ADULT_ROWS:]]
    varies = train.std(axis=0) > 1e-9
    mean, spread = train[:, varies].mean(axis=0), train[:, varies].std(axis=0)
    codes = (sex == "Male").astype(int)
    return Bunch(
        split=split,
        X_train=(train[:, varies] - mean) / spread,
        X_test=(test[:, varies] - mean) / spread,
        sensitive_train=codes[rows[:ADULT_ROWS]],
        sensitive_test=codes[rows[ADULT_ROWS:]],
    )


def run_table(arguments: argparse.Namespace) -> None:
    """Every method on every data set; means over the splits."""
    print("Means over the splits. AUC of boosting on held-out rows, with the means of its interval's ends and of the")
    print("level of random groups; variance kept on held-out rows; MMD^2 (multiscale, of the held-out scores).\n")
    print("| data, d | method | splits | variance | AUC | interval | level | se of AUC | MMD^2 | seconds |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in arguments.only:
        for d in arguments.dimensions:
            results: dict[str, list[tuple]] = {}
            for split in splits_of(name, arguments):
                for method, make in METHODS.items():
                    if arguments.methods in method:
                        results.setdefault(method, []).append(_measure_method(make, d, split))
            for method, rows in results.items():
                print(f"| {name} {d} | {method} | {len(rows)} | {_line(np.array(rows, dtype=float))} |", flush=True)


def _measure_method(make: Callable[[int], Any], d: int, split: Bunch) -> tuple:
    began = time.perf_counter()
    estimator = make(d)
    if isinstance(estimator, PCA):
        estimator.fit(split.X_train)
    else:
        estimator.fit(split.X_train, sensitive_features=split.sensitive_train)
    seconds = time.perf_counter() - began
    scores = estimator.transform(split.X_train), estimator.transform(split.X_test)
    found = _read(scores, split)
    variance = _variance(estimator, split) if hasattr(estimator, "components_") else np.nan
    return (variance, *found, mmd2(scores[1], sensitive_features=split.sensitive_test, bandwidth="multiscale"), seconds)


def _read(scores: tuple[np.ndarray, np.ndarray], split: Bunch) -> tuple[float, float, float, float]:
    found = readability(scores[1], sensitive_features=split.sensitive_test, train=(scores[0], split.sensitive_train))
    return found.auc, found.low, found.high, found.level


def _variance(projector: Any, split: Bunch) -> float:
    """Share of the held-out variance, about the mean of the training rows, that reconstructions keep."""
    return float(explained_variance_ratio(split.X_test, projector, mean=split.X_train.mean(axis=0)))  # type: ignore[arg-type]


def _line(rows: np.ndarray) -> str:
    variance, auc, low, high, level, distance, seconds = rows.mean(axis=0)
    error = rows[:, 1].std(ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else np.nan
    kept = "" if np.isnan(variance) else f"{100 * variance:.2f} %"
    return f"{kept} | {auc:.3f} | {low:.3f} to {high:.3f} | {level:.3f} | {error:.3f} | {distance:.4f} | {seconds:.1f}"


def run_remedies(arguments: argparse.Namespace) -> None:
    """What helps where a strong reader succeeds: AUC against variance kept, on the same rows."""
    print("\n| data | what | splits | variance kept | AUC of boosting |\n|---|---|---|---|---|")
    for name in arguments.only:
        results: dict[str, list[tuple[float, float]]] = {}
        for split in splits_of(name, arguments):
            for what, variance, auc in _remedies(split):
                results.setdefault(what, []).append((variance, auc))
        for what, rows in results.items():
            variance, auc = np.mean(rows, axis=0)
            print(f"| {name} | {what} | {len(rows)} | {100 * variance:.2f} % | {auc:.3f} |", flush=True)


def _remedies(split: Bunch, d: int = 5) -> Iterator[tuple[str, float, float]]:
    X, groups = split.X_train, split.sensitive_train
    bases = {"PCA": PCA(d).fit(X).components_}
    for size in (d, 2, 1):
        bases[f"ParityPCA, {size}"] = ParityPCA(size).fit(X, sensitive_features=groups).components_
    for size in (2, 1):
        bases[f"MMDFairPCA, {size}"] = MMDFairPCA(size).fit(X, sensitive_features=groups).components_
    for count in DROPPED:
        bases[f"PCA, {d}, without the {count} most telling features"] = _without(split, count, d)
    for what, components in bases.items():
        yield what, _variance(components, split), _auc_of(components, split)
    leace = LeacePCA(d).fit(X, sensitive_features=groups)
    yield f"LeacePCA, {d}", _variance(leace, split), _auc_of(leace.projection_, split)
    for what in (f"ParityPCA, {d}", "MMDFairPCA, 2"):
        for noise in NOISE:
            kept = _variance(bases[what], split) / (1.0 + noise**2)
            yield f"{what}, noise of {noise:g} sd", kept, _auc_of(bases[what], split, noise)


def _auc_of(components: np.ndarray, split: Bunch, noise: float = 0.0) -> float:
    scores = [part @ components.T for part in (split.X_train, split.X_test)]
    rng, spread = np.random.default_rng(split.split), scores[0].std(axis=0)
    noisy = tuple(part + noise * spread * rng.standard_normal(part.shape) for part in scores)
    return _read(noisy, split)[0]  # type: ignore[arg-type]


def _without(split: Bunch, count: int, d: int) -> np.ndarray:
    """Components of the features left when those are dropped off which, alone, most can be read (training rows)."""
    telling = [readability(column[:, None], sensitive_features=split.sensitive_train).auc for column in split.X_train.T]
    kept = np.sort(np.argsort(telling)[: len(telling) - count])
    components = np.zeros((min(d, len(kept)), split.X_train.shape[1]))
    components[:, kept] = PCA(len(components)).fit(split.X_train[:, kept]).components_
    return components


def run_chance(arguments: argparse.Namespace, draws: int = 100) -> None:
    """Random groups of German credit's sizes: how often the AUC stays within its level, and the interval holds 0.5."""
    split = next(load_splits(arguments.data / "lee2022" / "datasets" / "German", splits=[0]))
    scores = PCA(5).fit(split.X_train).transform(np.vstack([split.X_train, split.X_test]))
    codes = np.r_[split.sensitive_train, split.sensitive_test]
    rng = np.random.default_rng(0)
    for family in ("boosting", "linear", "rbf", "all"):
        found = [
            readability(scores, sensitive_features=rng.permutation(codes), family=family, random_state=i)
            for i in range(draws)
        ]
        within = sum(not one.readable for one in found)
        holds = sum(one.low <= 0.5 <= one.high for one in found)
        print(
            f"German, d = 5, {family}: {within} of {draws} random groups within the level; interval holds 0.5: {holds}"
        )


def draw_atoms(arguments: argparse.Namespace) -> None:
    """Scores of ParityPCA on COMPAS: equal means, and atoms that belong to one group."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    split = next(load_splits(arguments.data / "lee2022" / "datasets" / "COMPAS", splits=[0]))
    pca = ParityPCA(2).fit(split.X_train, sensitive_features=split.sensitive_train)
    scores = pca.transform(split.X_train)
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for code, colour in ((0, "#1f77b4"), (1, "#d62728")):
        rows = split.sensitive_train == code
        axes.scatter(*scores[rows].T, s=4, alpha=0.4, color=colour, label=f"group {code}", linewidths=0)
        axes.plot(*scores[rows].mean(axis=0), marker="+x"[code], color="black", markersize=12, linestyle="")
    axes.set(xlabel="component 1", ylabel="component 2", title="COMPAS, ParityPCA: both means are at the crosses")
    axes.legend(markerscale=4)
    path = Path(__file__).resolve().parents[1] / "docs" / "atoms.png"
    figure.savefig(path, dpi=110)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
