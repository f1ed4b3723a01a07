"""The authors' saved loading matrices, by their variance and MMD^2 (``authors_solutions.csv``), compared with ours."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reproductions._outcome import Claim, Table
from reproductions.lee2022.protocol import Fit

__all__ = ["FILE", "Saved", "compare_with_saved", "holds_against", "read_saved"]

FILE = "authors_solutions.csv"
#: The file stores eight decimals.
_STORED = 1e-8


class Saved(NamedTuple):
    """Shares of variance and MMD^2 of one saved solution."""

    var_train: float
    mmd2_train: float
    var_test: float
    mmd2_test: float


def read_saved(path: Path) -> dict[tuple[str, int, str], dict[int, Saved]]:
    """From (data set, components, method) to the solution of each split."""
    solutions: dict[tuple[str, int, str], dict[int, Saved]] = {}
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = row["dataset"], int(row["n_components"]), _method_name(row["algorithm"], row["parameter"])
            values = Saved(*(float(row[field]) for field in Saved._fields))
            solutions.setdefault(key, {})[int(row["split"])] = values
    return solutions


def _method_name(algorithm: str, parameter: str) -> str:
    """As in the tables: ``fpca`` with ``delta=0.1 mu=0.01`` is FPCA (0.1)."""
    if algorithm == "pca":
        return "PCA"
    value = float(parameter.split()[0].split("=")[1])
    return f"{'FPCA' if algorithm == 'fpca' else 'MbF-PCA'} ({value:g})"


def holds_against(saved: Saved, *, variance: float, discrepancy: float, tolerance: float) -> bool:
    """Whether a solution is at least as good as a saved one on the training rows.

    If the saved one meets the tolerance: within it too, with at least the same variance. If it does not: within the
    tolerance, or with no more MMD^2.
    """
    if saved.mmd2_train <= tolerance:
        return discrepancy <= tolerance and variance >= saved.var_train - _STORED
    return discrepancy <= max(tolerance, saved.mmd2_train * (1 + 1e-6))


def compare_with_saved(fits: Sequence[Fit], path: Path) -> tuple[list[Table], list[Claim]]:
    """Variance and MMD^2 of both on the training rows; empty if the file is absent."""
    if not path.is_file():
        return [], []
    rows, claims = [], []
    for (data, d, name), saved in read_saved(path).items():
        ours = {fit.split: fit for fit in fits if (fit.data, fit.n_components, fit.method.name) == (data, d, name)}
        common = sorted(ours.keys() & saved.keys())
        if not common:
            continue
        rows.append(_row(data, d, name, [ours[i] for i in common], [saved[i] for i in common]))
        if name.startswith("MbF-PCA"):
            claims.append(_claim(data, d, name, [ours[i] for i in common], [saved[i] for i in common]))
    columns = ("data", "d", "method", "splits", "%Var", "theirs", "MMD^2", "theirs ")
    note = "Means over the splits, on the training rows; theirs recomputed from the saved loading matrices."
    return [Table("saved_solutions", "Against the authors' saved solutions", columns, rows, note)], claims


def _row(data: str, d: int, name: str, fits: Sequence[Fit], saved: Sequence[Saved]) -> list[Any]:
    return [
        data,
        d,
        name,
        len(fits),
        float(np.mean([fit.train["%Var"] for fit in fits])),
        100 * float(np.mean([one.var_train for one in saved])),
        float(np.mean([fit.train["MMD^2"] for fit in fits])),
        float(np.mean([one.mmd2_train for one in saved])),
    ]


def _claim(data: str, d: int, name: str, fits: Sequence[Fit], saved: Sequence[Saved]) -> Claim:
    count = sum(
        holds_against(
            one,
            variance=fit.train["%Var"] / 100,
            discrepancy=fit.train["MMD^2"],
            tolerance=float(fit.method.parameter or 0.0),
        )
        for fit, one in zip(fits, saved, strict=True)
    )
    what = f"{data}, d = {d}, {name}: splits on which ours is at least as good on the training rows"
    return Claim("saved solutions", what, float(count), float(len(fits)), 0.0, "equal", absolute=True)
