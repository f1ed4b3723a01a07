"""Inference: time as ratios, and calibration with a known truth.

``python benchmarks/inference.py`` prints the ratios (part of ``make bench``). With ``random``, ``robust``,
``rounding``, ``coverage`` or ``power`` it prints simulations, which take from minutes to an hour on two cores
(``--jobs N`` for more); ``--draws N`` makes them shorter, and ``--only NAME`` runs one setting. docs/chance.md shows
the results.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _papers import load_table
from _timing import alternate
from joblib import Parallel, delayed
from sklearn.decomposition import PCA

from fairpca import FairPCA, RobustFairPCA
from fairpca.datasets import load_german_credit
from fairpca.inference import Claim, cross_validate_groups, loss_test
from fairpca.linalg import single_blas_thread
from fairpca.model_selection import Comparison, compare
from fairpca.problems.evaluation import Evaluation

DATA = Path(os.environ.get("FAIRPCA_DATA", Path(__file__).parents[2] / "shared" / "data"))
#: Seeds of the simulations start here, far from those of the tests.
SEED = 290_000
Data = tuple[np.ndarray, np.ndarray]


def _over_draws(function: Callable[..., Any], *given: Any, draws: Iterable[int], jobs: int) -> list[Any]:
    """The result of every draw, with one BLAS thread each."""
    return Parallel(n_jobs=jobs)(delayed(_quietly)(function, *given, draw) for draw in draws)


def _quietly(function: Callable[..., Any], *given: Any) -> Any:
    with warnings.catch_warnings(), single_blas_thread():
        warnings.simplefilter("ignore")
        return function(*given)


def table(name: str) -> Data:
    """Standardised features and the real groups."""
    if name == "German":
        return load_german_credit(return_X_s=True)
    found = load_table(DATA / "vu2022" / name)
    X = found.data[:, found.data.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0), found.sensitive_features


def adult(rows: int | None = None) -> Data:
    """Numbers as they are, texts as indicators of the levels with at least 1 % of the rows; standardised."""
    import pandas as pd

    names = (
        "age workclass fnlwgt education education-num marital-status occupation relationship race sex gain loss hours"
    )
    frame = pd.read_csv(DATA / "uci" / "adult.data", header=None, skipinitialspace=True)
    frame.columns = [*names.split(), "country", "income"]
    sex = frame.pop("sex").to_numpy().astype(str)
    frame = frame.drop(columns=["fnlwgt", "income", "education"])
    wide = pd.get_dummies(frame)
    wide = wide.loc[:, wide.mean(axis=0).abs().ge(0.01) & wide.std().gt(0)].to_numpy(dtype=float)
    wide, sex = wide[:rows], sex[:rows]
    wide = wide[:, wide.std(axis=0) > 0]
    return (wide - wide.mean(axis=0)) / wide.std(axis=0), sex


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
        cases["default credit"] = table("default_credit.csv")
    for name, (X, groups) in cases.items():
        seconds = alternate(
            {
                "fit": lambda X=X: PCA(5).fit(X),
                "test": lambda X=X, groups=groups: loss_test(X, sensitive_features=groups, n_components=5),
            },
            repeats=5,
        )
        print(f"999 permutations, {name} {X.shape}: {seconds['test'] / seconds['fit']:.0f} x one PCA fit")


# Random groups: how often a comparison claims what is not so.


@dataclass(frozen=True)
class Setting:
    """Rows and random groups: normal rows with these variances, or a table whose labels are shuffled."""

    name: str
    sizes: tuple[int, ...] = ()
    variances: np.ndarray | None = None
    rows: Callable[[], Data] | None = None
    dimensions: tuple[int, ...] = (1, 2, 3, 5)
    draws: int = 200

    def draw(self, seed: int) -> Data:
        rng = np.random.default_rng([SEED, seed])
        if self.rows is not None:
            X, groups = self.rows()
            return X, rng.permutation(groups)
        assert self.variances is not None
        X = rng.normal(size=(sum(self.sizes), len(self.variances))) * np.sqrt(self.variances)
        return X, np.repeat(np.arange(len(self.sizes)), self.sizes)


def spectrum(p: int) -> np.ndarray:
    return np.linspace(2.0, 1.0, p) ** 2


SETTINGS = [
    Setting("k = 2, n = 600", (180, 420), spectrum(8)),
    Setting("k = 2, n = 300", (90, 210), spectrum(8)),
    Setting("k = 10, n = 1000", (40, 60, 60, 80, 80, 100, 120, 140, 160, 160), spectrum(8), draws=100),
    Setting("k = 4, p = 60", (40, 160, 300, 500), spectrum(60), dimensions=(2, 5, 10)),
    Setting("German, shuffled", rows=lambda: table("German"), dimensions=(2, 5, 10)),
    Setting("Biodeg, shuffled", rows=lambda: table("Biodeg_Data.csv"), dimensions=(2, 5, 10)),
    Setting("Adult, 3000 rows, shuffled", rows=lambda: adult(3000), dimensions=(2, 5, 10)),
]
KINDS = ("chance", "losses", "errors", "change", "readable", "feature", "decisions")


def random_groups(draws: int | None, only: str | None, jobs: int) -> None:
    print("share of comparisons with a false claim: by kind; losses, errors or changes; any kind")
    print(f"| random groups | {' | '.join(f'`{kind}`' for kind in KINDS)} | these three | any |")
    for setting in SETTINGS:
        if only is None or only in setting.name:
            count = min(draws or setting.draws, setting.draws)
            found = _over_draws(_false_kinds, setting, draws=range(count), jobs=jobs)
            shares = [np.mean([kind in one for one in found]) for kind in KINDS]
            shares += [np.mean([bool(one & {"losses", "errors", "change"}) for one in found])]
            shares += [np.mean([bool(one) for one in found])]
            print(f"| {setting.name} | {' | '.join(f'{100 * one:.3g} %' for one in shares)} |", flush=True)


def _false_kinds(setting: Setting, seed: int) -> set[str]:
    X, groups = setting.draw(seed)
    label = X[:, 0] + X[:, 1] + np.random.default_rng([SEED, seed, 1]).normal(size=len(X)) > 0
    two = len(np.unique(groups)) == 2
    methods = ["PCA", "FairPCA", *(["RobustFairPCA"] if two else []), "ParityPCA"]
    found = compare(
        X, label.astype(int), sensitive_features=groups, n_components=setting.dimensions, methods=methods,
        n_permutations=99, random_state=seed, n_jobs=1, progress=False,
    )  # fmt: skip
    return {claim.kind for claim in found.claims if _is_false(claim, found, setting)}


def _is_false(claim: Claim, found: Comparison, setting: Setting) -> bool:
    """Groups are random: only a change may be true, where it has the sign of the returned components' change."""
    if claim.kind != "change":
        return True
    if setting.variances is None:
        return claim.value < 0
    assert claim.n_components is not None
    truth = np.diag(setting.variances)[None]
    bases = [found[method, claim.n_components].estimator.components_.T for method in (claim.method, "PCA")]
    ours, ordinary = (Evaluation(truth, basis).errors[0] for basis in bases)
    return (ours - ordinary) * claim.value <= 0


def robust(draws: int | None, only: str | None, jobs: int) -> None:
    print("random groups, n = 600, p = 8: share in which a difference of losses is claimed, and of errors")
    for estimator in (RobustFairPCA(1), RobustFairPCA(2), RobustFairPCA(1, penalty=3.0), RobustFairPCA(2, penalty=3.0)):
        count = draws or 300
        kinds = _over_draws(_robust_kinds, estimator, draws=range(count), jobs=jobs)
        shares = [np.mean([kind in one for one in kinds]) for kind in ("losses", "errors")]
        print(f"{estimator!s:<45} {shares[0]:.3f} {shares[1]:.3f}", flush=True)


def _robust_kinds(estimator: RobustFairPCA, seed: int) -> set[str]:
    X, groups = SETTINGS[0].draw(10_000 + seed)
    found = cross_validate_groups(estimator, X, sensitive_features=groups, random_state=seed)
    return {claim.kind for claim in found.claims}


def rounding(draws: int | None, only: str | None, jobs: int) -> None:
    print("d = p and rank-deficient rows, random groups: claims about new rows in so many comparisons (0 expected)")
    for k in (2, 5, 10):
        claims = _over_draws(_claims_of_rounding, k, draws=range(draws or 300), jobs=jobs)
        print(f"k = {k}: {sum(claims)}", flush=True)


def _claims_of_rounding(k: int, seed: int) -> int:
    rng = np.random.default_rng([SEED, 20_000 + seed, k])
    X, d = rng.normal(size=(60 * k, 5)), 5
    if seed % 2:
        X, d = X[:, :3] @ rng.normal(size=(3, 5)), 3
    groups = rng.permutation(np.arange(len(X)) % k)
    estimators = (PCA(d), FairPCA(d))
    return sum(bool(cross_validate_groups(one, X, sensitive_features=groups, cv=5).claims) for one in estimators)


# Coverage of what the returned components change, and of differences of losses.


@dataclass(frozen=True)
class Population:
    """Normal groups with these second moments about zero."""

    name: str
    sizes: tuple[int, ...]
    roots: tuple[np.ndarray, ...]
    n_components: int
    estimators: tuple[type, ...] = (FairPCA, RobustFairPCA)

    def draw(self, seed: int) -> Data:
        rng = np.random.default_rng([SEED, 30_000 + seed])
        parts = [rng.normal(size=(n, len(root))) @ root for n, root in zip(self.sizes, self.roots, strict=True)]
        return np.vstack(parts), np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def moments(self) -> np.ndarray:
        return np.stack([root.T @ root for root in self.roots])


def _root(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrix)
    return vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T


def populations() -> Iterator[Population]:
    X, sex = table("German")
    yield Population(
        "German's moments, d = 5", (310, 690), tuple(_root(np.cov(X[sex == a].T, bias=True)) for a in np.unique(sex)), 5
    )
    rng = np.random.default_rng(SEED)
    roots = []
    for _ in range(3):
        tilted = np.linalg.qr(np.eye(40) + 0.15 * rng.normal(size=(40, 40)))[0]
        roots.append(_root(tilted @ np.diag(np.linspace(3.0, 0.5, 40) ** 2) @ tilted.T))
    yield Population("2000 x 40, k = 3, d = 5", (300, 600, 1100), tuple(roots), 5)
    flat = np.diag(np.sqrt(spectrum(8)))
    yield Population("random groups 600 x 8, d = 2", (180, 420), (flat, flat), 2)
    yield Population("random groups 600 x 8, d = 1", (180, 420), (flat, flat), 1)


def coverage(draws: int | None, only: str | None, jobs: int) -> None:
    print(
        "change of the returned components: coverage by group (single), half-width / (1.96 sd of the error) by group,"
    )
    print("all changes within joint intervals; difference of corrected losses within its interval")
    for population in populations():
        for estimator in population.estimators:
            if only is None or only in population.name:
                rows = _over_draws(_covered, population, estimator, draws=range(draws or 300), jobs=jobs)
                _print_coverage(population, estimator, np.array(rows))


def _covered(population: Population, kind: type, seed: int) -> list[float]:
    """Half-widths and errors of the changes by group; whether all joint intervals hold; share of intervals of pairs."""
    d, moments = population.n_components, population.moments
    X, groups = population.draw(seed)
    fitted, ordinary = kind(d).fit(X, sensitive_features=groups), PCA(d).fit(X)
    ours, other = (Evaluation(moments, one.components_.T) for one in (fitted, ordinary))
    found = cross_validate_groups(kind(d), X, sensitive_features=groups, random_state=seed)
    change, truth = found.change, ours.errors - other.errors
    half = [(one.high - one.low) / 2 for one in change.values()]
    errors = np.array([float(one) for one in change.values()]) - truth
    joint = all(one.joint_low <= true <= one.joint_high for one, true in zip(change.values(), truth, strict=True))
    pairs = [
        one.low <= ours.losses[a] - ours.losses[b] <= one.high for (a, b), one in found.corrected_loss.pairs.items()
    ]
    return [*half, *errors, joint, float(np.mean(pairs))]


def _print_coverage(population: Population, kind: type, found: np.ndarray) -> None:
    k = len(population.sizes)
    half, errors = found[:, :k], found[:, k : 2 * k]
    covered = (np.abs(errors) <= half).mean(axis=0)
    length = half.mean(axis=0) / (1.96 * errors.std(axis=0))
    values = f"{' '.join(f'{one:.3f}' for one in covered)}   {' '.join(f'{one:.2f}' for one in length)}"
    print(
        f"{population.name:<30} {kind.__name__:<14} {values}   {found[:, -2].mean():.3f} {found[:, -1].mean():.3f}",
        flush=True,
    )


def power(draws: int | None, only: str | None, jobs: int) -> None:
    for name in ("Wine_Quality_Data.csv", "Biodeg_Data.csv"):
        X, groups = table(name)
        found = compare(
            X, sensitive_features=groups, n_components=[2, 5], methods=["PCA"], n_permutations=99, progress=False
        )
        claims = {d: found.of_kind("losses", "PCA", d) for d in (2, 5)}
        print(name, {d: [claim.text for claim in those] for d, those in claims.items()}, flush=True)
    X, sex = adult()
    for estimator in (PCA(), FairPCA()):
        found = cross_validate_groups(estimator, X, sensitive_features=sex, n_components=[5, 10])
        for d, one in found.items():
            print(f"Adult, {type(estimator).__name__}, d = {d}:", *(claim.text for claim in one.claims), sep="\n  ")
    claimed = _over_draws(_reversed_is_claimed, draws=range(draws or 100), jobs=jobs)
    print(f"600 x 8, variances of one group reversed, d = 2: losses differ in {np.mean(claimed):.2f}")


def _reversed_is_claimed(seed: int) -> bool:
    rng, variances = np.random.default_rng([SEED, 40_000 + seed]), spectrum(8)
    X = rng.normal(size=(600, 8)) * np.sqrt(variances)
    X[:180] = X[:180, ::-1]
    groups = np.repeat([0, 1], [180, 420])
    return cross_validate_groups(PCA(2), X, sensitive_features=groups, random_state=seed).claimed


def main() -> None:
    parts = {"random": random_groups, "robust": robust, "rounding": rounding, "coverage": coverage, "power": power}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", default="ratios", choices=["ratios", *parts])
    parser.add_argument("--draws", type=int)
    parser.add_argument("--only")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    if chosen.what == "ratios":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ratios()
    else:
        _quietly(parts[chosen.what], chosen.draws, chosen.only, chosen.jobs)


if __name__ == "__main__":
    sys.exit(main())
