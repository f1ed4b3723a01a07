"""Table 1 of Lee et al. (2022), for every data set in the folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from reproductions._outcome import Claim, Table
from reproductions.datasets import load_splits
from reproductions.lee2022.protocol import HELD_OUT, UNIT_WEIGHT, Fit, Method, evaluate, methods
from reproductions.lee2022.published import DIMENSIONS, MEASURES, PUBLISHED, ROUNDING, Printed
from reproductions.lee2022.reasons import reason
from reproductions.lee2022.running import Job

__all__ = ["beyond_table", "find_data", "planned_fits", "table_claims", "table_jobs", "tables"]

_RELATIONS = {"%Var": "at least", "%Acc": "at least", "MMD^2": "at most", "Delta_DP": "at most"}


def find_data(folder: Path) -> dict[str, Path]:
    """Data sets by name: folders with ``train_0.csv``, ... in ``datasets``, in the folder, or the folder itself."""
    base = folder / "datasets" if (folder / "datasets").is_dir() else folder
    found = {path.name: path for path in sorted(base.iterdir()) if path.is_dir() and _split_numbers(path)}
    return found or ({folder.name: folder} if _split_numbers(folder) else {})


def _split_numbers(folder: Path) -> list[int]:
    names = (path.stem.removeprefix("train_") for path in folder.glob("train_*.csv"))
    return sorted(int(name) for name in names if name.isdigit())


def table_jobs(folder: Path, *, quick: bool, errata: bool) -> list[Job]:
    """One job per data set, split, number of components and method; quick takes the smallest data set's first split."""
    data = find_data(folder)
    if quick:
        smallest = min(
            data, key=lambda name: (data[name] / f"train_{_split_numbers(data[name])[0]}.csv").stat().st_size
        )
        data = {smallest: data[smallest]}
    jobs = []
    for name, path in data.items():
        splits = _split_numbers(path)[: 1 if quick else None]
        n_features = _n_features(path / f"train_{splits[0]}.csv")
        for d in _dimensions(n_features)[: 1 if quick else None]:
            for method in methods(n_features, d, quick=quick, errata=errata):
                jobs += [Job(f"{name}, d = {d}, {method.name}", _fit, (name, path, i, d, method)) for i in splits]
    return jobs


def planned_fits(jobs: Sequence[Job]) -> list[Fit]:
    """Stand-ins for the results of jobs that are not run: which published values they would be compared with."""
    found = []
    for job in jobs:
        name, path, number, d, method = job.arguments
        components = np.eye(d, _n_features(path / f"train_{number}.csv"))
        nothing = dict.fromkeys((*MEASURES, *HELD_OUT), 0.0)
        found.append(Fit(name, number, d, method, components, nothing, nothing, converged=False))
    return found


def _fit(name: str, path: Path, number: int, n_components: int, method: Method) -> Fit:
    split = next(iter(load_splits(path, splits=[number])))
    return evaluate(name, split, n_components, method)


def _n_features(path: Path) -> int:
    with path.open(encoding="utf-8") as file:
        return file.readline().count(",") - 1


def _dimensions(n_features: int) -> list[int]:
    """Those of the paper, where there are more features (and a direction to spare for equal means)."""
    return [d for d in DIMENSIONS if d < n_features] or [1]


def _grouped(fits: Sequence[Fit]) -> dict[tuple[str, int, Method], list[Fit]]:
    groups: dict[tuple[str, int, Method], list[Fit]] = {}
    for fit in fits:
        groups.setdefault((fit.data, fit.n_components, fit.method), []).append(fit)
    return groups


def _mean(fits: Sequence[Fit], measure: str, part: str = "test") -> float:
    return float(np.mean([getattr(fit, part)[measure] for fit in fits]))


def _spread(fits: Sequence[Fit], measure: str) -> float:
    return float(np.std([fit.test[measure] for fit in fits], ddof=1)) if len(fits) > 1 else float("nan")


def _printed(data: str, d: int, method: Method) -> dict[str, Printed]:
    """What the paper prints for a line, whichever way it is repeated; an erratum of other authors is no such way."""
    if method.variant == UNIT_WEIGHT:
        return {}
    plain = replace(method, variant="")
    return PUBLISHED.get(data, {}).get((d, plain.name), {})


def tables(fits: Sequence[Fit]) -> list[Table]:
    """One table per data set: ours and published, each as mean (standard deviation over splits)."""
    columns = ["d", "method", "splits", *(text for name in MEASURES for text in (name, f"{name}, published"))]
    rows: dict[str, list[list[Any]]] = {}
    for (data, d, method), group in _grouped(fits).items():
        cells: list[Any] = [d, method.name, len(group)]
        for measure in MEASURES:
            printed = _printed(data, d, method).get(measure)
            cells += [_cell(_mean(group, measure), _spread(group, measure), measure)]
            cells += [_cell(*printed, measure) if printed else ""]
        rows.setdefault(data, []).append(cells)
    note = "Test rows; mean (standard deviation over splits). FPCA (delta), MbF-PCA (tau). Classifier as in the paper."
    return [Table(f"table1_{data}", f"Table 1, {data}", columns, lines, note) for data, lines in rows.items()]


def _cell(mean: float, spread: float, measure: str) -> str:
    digits = 3 if measure == "MMD^2" else 2
    return f"{mean:.{digits}f}" + ("" if np.isnan(spread) else f" ({spread:.{digits}f})")


def beyond_table(fits: Sequence[Fit]) -> Table:
    """What the paper does not print: the training rows, and a classifier judged on rows it has not seen."""
    columns = ("data", "d", "method", "splits", "%Var train", "MMD^2 train", "converged", *HELD_OUT)
    rows = []
    for (data, d, method), group in _grouped(fits).items():
        measured = [_mean(group, "%Var", "train"), _mean(group, "MMD^2", "train")]
        converged = f"{sum(fit.converged for fit in group)} of {len(group)}"
        held_out = [_mean(group, measure) for measure in HELD_OUT]
        rows.append([data, d, method.name, len(group), *measured, converged, *held_out])
    note = "Held out: the classifier is fitted to the training rows. Converged: for MbF-PCA, MMD^2 within tau on them."
    return Table("beyond_table1", "Training rows, and the classifier on rows it has not seen", columns, rows, note)


def table_claims(fits: Sequence[Fit]) -> list[Claim]:
    """Every printed mean; for PCA, which leaves no choice, the printed standard deviations too."""
    claims = []
    for (data, d, method), group in _grouped(fits).items():
        for measure, printed in _printed(data, d, method).items():
            what = f"{data}, d = {d}, {method.name}: {measure}"
            if method.family == "PCA":
                claims += _exact_claims(what, group, measure, printed, reason(data, d, method, measure))
            else:
                claims.append(_claim(what, (data, d, method, measure), _mean(group, measure), printed))
    return claims


def _exact_claims(what: str, group: Sequence[Fit], measure: str, printed: Printed, why: str) -> list[Claim]:
    pairs = [(what, _mean(group, measure), printed.mean)]
    if len(group) > 1:
        pairs.append((what + ", spread", _spread(group, measure), printed.spread))
    # One split is not the printed mean: it lies within the spread around it.
    tolerance = ROUNDING[measure] * (1 + 1e-9) if len(group) > 1 else max(printed.spread, ROUNDING[measure])
    return [Claim("Table 1", *pair, tolerance, absolute=True, explanation=why) for pair in pairs]


def _claim(what: str, key: tuple[str, int, Method, str], ours: float, printed: Printed) -> Claim:
    data, d, method, measure = key
    tolerance = max(printed.spread, ROUNDING[measure])
    relation: Any = "equal" if method.variant else _RELATIONS[measure]
    why = reason(data, d, method, measure)
    return Claim("Table 1", what, ours, printed.mean, tolerance, relation, absolute=True, explanation=why)
