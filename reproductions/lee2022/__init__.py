"""Lee, Kim, Olfat, Hasegawa-Johnson and Yoo (2022), Fast and Efficient MMD-Based Fair PCA via Optimization over Stiefel
Manifold: Table 1 for every data set in the folder, Figures 1 to 4, communalities and biplots.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from reproductions._outcome import Outcome, Progress
from reproductions.lee2022.loadings import Loadings, biplots, communalities
from reproductions.lee2022.running import run_jobs
from reproductions.lee2022.saved import FILE, compare_with_saved
from reproductions.lee2022.synthetic1 import figure_1, figure_1_jobs
from reproductions.lee2022.synthetic2 import figures_2_3, figures_2_3_jobs, planned_trials
from reproductions.lee2022.table1 import beyond_table, find_data, planned_fits, table_claims, table_jobs, tables

__all__ = ["WHERE", "run"]

WHERE = (
    "the folder `datasets` of the authors' public repository nick-jhlee/fair-manifold-pca, with train_0.csv, "
    "test_0.csv, ... for each data set in a folder of its own (no header; features, label, sensitive feature)."
)

_REMARKS = (
    "The classifier behind %Acc and Delta_DP is fitted to the test rows it is evaluated on, as in the authors' script; "
    "the values with a classifier fitted to the training rows are in beyond_table1.csv.",
    "Tolerances: PCA to the last printed digit; the others to one published standard deviation over the splits.",
    "FPCA is solved at rank d (ParityPCA), with the authors' mu = 0.01 in their units; MbF-PCA is MMDFairPCA.",
)


def run(folder: Path, *, quick: bool, errata: bool, progress: Progress) -> Outcome:
    """All experiments; quick takes the smallest data set's first split, d = 2, without the stricter tolerance."""
    data = find_data(folder)
    if not data:
        raise FileNotFoundError(f"{str(folder)!r} holds no data set. lee2022 needs its data: {WHERE}")
    parts = [
        table_jobs(folder, quick=quick, errata=errata),
        figure_1_jobs(quick=quick),
        figures_2_3_jobs(quick=quick),
    ]
    results = run_jobs([job for part in parts for job in part], progress, n_jobs=1 if quick else -1)
    starts = [0, len(parts[0]), len(parts[0]) + len(parts[1])]
    fits, samples, trials = (results[start : start + len(part)] for start, part in zip(starts, parts, strict=True))
    outcome = _outcome(folder, data, fits, samples, trials)
    return (
        replace(outcome, quick=True, unexamined=_left_out(outcome, folder, data, samples, errata)) if quick else outcome
    )


def _left_out(quick: Outcome, folder: Path, data: dict[str, Path], samples: list[Any], errata: bool) -> int:
    """How many more published values the full run would examine than the quick one."""
    fits = planned_fits(table_jobs(folder, quick=False, errata=errata))
    full = _outcome(folder, data, fits, samples, planned_trials(figures_2_3_jobs(quick=False)))
    return len(full.claims) - len(quick.claims)


def _outcome(folder: Path, data: dict[str, Path], fits: list[Any], samples: list[Any], trials: list[Any]) -> Outcome:
    saved_tables, saved_claims = compare_with_saved(fits, folder / FILE)
    table_1, drawing_1, claims_1 = figure_1(samples)
    table_2, drawing_2, claims_2 = figures_2_3(trials)
    used = dict.fromkeys(fit.data for fit in fits)
    loadings = [Loadings(name, data[name], fits) for name in used]
    shares, boxes, least = communalities(loadings)
    return Outcome(
        "lee2022",
        "Lee et al. (2022): Fast and Efficient MMD-Based Fair PCA via Optimization over Stiefel Manifold",
        [*table_claims(fits), *saved_claims, *claims_1, *claims_2, *least],
        [*tables(fits), beyond_table(fits), *saved_tables, table_1, table_2, *shares],
        [drawing_1, drawing_2, *boxes, *biplots(loadings)],
        _REMARKS,
    )
