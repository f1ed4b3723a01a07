"""Which components keep the variance of a group that is in none of the rows? Every group is left out once.

Seiter et al. (2026) report that AnchorPCA keeps more variance of unseen groups than a method for the worst case,
which they solved by Adam. Here the worst case is FairPCA(criterion="variance"), with its certificate, absolute and
relative to each group's variance. Columns are standardised by the rows of the other groups; shares are about the unseen
group's own mean.

Run: ``python benchmarks/unseen_groups.py``. Tables are looked for in $FAIRPCA_DATA or ../shared/data, as in the tests;
those that are not there are named and skipped.
"""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA

from fairpca import AnchorPCA, FairPCA
from fairpca.datasets import load_adult
from fairpca.inference._fitting import fit_to_moments
from fairpca.moments import GroupMoments, group_moments

_FOLDER = Path(os.environ.get("FAIRPCA_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
#: Groups with fewer rows are left out: their own variances are mostly chance.
_FEWEST_ROWS = 20
_METHODS = {
    "PCA": PCA,
    "mean": lambda d: FairPCA(d, criterion="mean", center="group"),
    "AnchorPCA": AnchorPCA,
    "FairPCA": lambda d: FairPCA(d, criterion="variance", center="group"),
    "FairPCA, relative": lambda d: FairPCA(d, criterion="variance", center="group", relative=True),
}
_DIMENSIONS = (2, 5)


def _adult(column: str) -> tuple[np.ndarray, np.ndarray]:
    adult = load_adult(scaled=False)
    own = np.array([name.startswith(f"{column}=") for name in adult.feature_names])
    if column == "race":
        return adult.data[:, ~own], adult.race
    levels = np.array([name for name, mine in zip(adult.feature_names, own, strict=True) if mine])
    known = adult.data[:, own].any(axis=1)  # levels of less than 1 % of the people have no column
    return adult.data[known][:, ~own], levels[adult.data[known][:, own].argmax(axis=1)]


def _credit(with_sex: bool) -> tuple[np.ndarray, np.ndarray]:
    with (_FOLDER / "uci" / "UCI_Credit_Card.csv").open(newline="") as file:
        header, *lines = csv.reader(file)
    table, names = np.array(lines, dtype=float), [name.upper() for name in header]
    education = np.clip(table[:, names.index("EDUCATION")], 0, 4)
    education[education == 0] = 4  # not coded, like "other"
    groups = education * 10 + (table[:, names.index("SEX")] if with_sex else 0)
    left = {"ID", "EDUCATION", *(["SEX"] if with_sex else []), names[-1]}
    return table[:, [j for j, name in enumerate(names) if name not in left]], groups.astype(int)


def _wine() -> tuple[np.ndarray, np.ndarray]:
    files = [_FOLDER / "uci" / f"winequality-{colour}.csv" for colour in ("red", "white")]
    table = np.vstack([np.loadtxt(file, delimiter=";", skiprows=1) for file in files])
    return table[:, :-1], np.clip(table[:, -1], 4, 8).astype(int)


def _ecoli() -> tuple[np.ndarray, np.ndarray]:
    rows = [line.split() for line in (_FOLDER / "uci" / "ecoli.data").read_text().splitlines() if line]
    return np.array([row[1:-1] for row in rows], dtype=float), np.array([row[-1] for row in rows])


_TABLES: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "Adult by race": lambda: _adult("race"),
    "Adult by occupation": lambda: _adult("occupation"),
    "credit by education": lambda: _credit(False),
    "credit by education and sex": lambda: _credit(True),
    "wine by quality": _wine,
    "ecoli by site": _ecoli,
}


def kept_of_unseen(X: np.ndarray, groups: np.ndarray, d: int) -> tuple[list, np.ndarray, np.ndarray]:
    """Labels and counts of the groups, and shares kept of each when it is left out, of shape (n_groups, n_methods)."""
    moments = group_moments(X, sensitive_features=groups)
    moments, shares = _only(moments, moments.counts >= _FEWEST_ROWS), []
    for label in moments.labels:
        left_out = np.array([other == label for other in moments.labels])
        training = _only(moments, ~left_out)
        varies = np.flatnonzero(training.pooled_variances() > 1e-12)
        training, judged = training.select(varies), _only(moments, left_out).select(varies)
        scaling = training.pooled_mean, np.sqrt(training.pooled_variances())
        training, judged = training.standardised(*scaling), judged.standardised(*scaling)
        fits = [fit_to_moments(make(d), training).components_.T for make in _METHODS.values()]
        shares.append([np.trace(judged.forms(basis, "group")[0]) / judged.traces("group")[0] for basis in fits])
    return list(moments.labels), moments.counts, np.array(shares)


def _only(moments: GroupMoments, chosen: np.ndarray) -> GroupMoments:
    return moments.merge_by(np.where(chosen, np.arange(len(chosen)), -1), moments.labels)


def main() -> None:
    """Print shares kept, in percent: mean and smallest over the groups left out, and how often AnchorPCA keeps more."""
    warnings.simplefilter("ignore")  # gaps of single fits
    print(f"{'':30}{'groups':>7}  " + "".join(f"{name:>22}" for name in _METHODS))
    for d in _DIMENSIONS:
        every = []
        for name, load in _TABLES.items():
            try:
                labels, _, shares = kept_of_unseen(*load(), d)
            except OSError as missing:
                print(f"{name}: skipped, {missing}")
                continue
            every.append(100 * shares)
            cells = [f"{column.mean():.1f} (least {column.min():.1f})" for column in every[-1].T]
            print(f"{name + f', d = {d}':30}{len(labels):7}  " + "".join(f"{cell:>22}" for cell in cells), flush=True)
        together = np.concatenate(every)
        anchor = together[:, list(_METHODS).index("AnchorPCA")][:, None]
        more, difference = (anchor > together + 0.05).sum(axis=0), (anchor - together).mean(axis=0)
        less = (anchor < together - 0.05).sum(axis=0)
        for method, *values in zip(_METHODS, more, less, difference, strict=True):
            if method != "AnchorPCA":
                counts = f"more in {values[0]}, less in {values[1]} of {len(together)} groups"
                print(f"  AnchorPCA against {method}: {counts}, mean difference {values[2]:+.2f} points")


if __name__ == "__main__":
    main()
