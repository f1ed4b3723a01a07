"""Measurements as tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from reproductions._outcome import Table
from reproductions.samadi2018.published import STEPS
from reproductions.samadi2018.study import Samples, Study

__all__ = ["file_name", "tables_of"]


def tables_of(study: Study) -> list[Table]:
    """Those for which there is something to show."""
    found = [_curves(study), _variants(study), _searches(study), _rounded(study), _errata(study)]
    found[1:1] = [_samples(study, samples) for samples in study.samples]
    return [table for table in found if table is not None and table.rows]


def file_name(text: str) -> str:
    """The name of a data set as part of a file's name."""
    return "".join(character if character.isalnum() or character in "-_" else "_" for character in text)


def _curves(study: Study) -> Table:
    pca, fair, groups = study.pca, study.fair, study.groups
    excess = 100 * (fair.average / np.where(pca.average > 1e-12 * fair.total, pca.average, np.nan) - 1)
    columns = ["d"]
    for measure in ("error", "loss"):
        columns += [f"{method} {measure}, {group}" for method in ("PCA", "FairPCA") for group in groups]
    columns += ["average error above PCA's, %", "FairPCA gap", "eigenproblems"]
    rows = [
        [
            int(d),
            *pca.errors[i],
            *fair.errors[i],
            *pca.losses[i],
            *fair.losses[i],
            excess[i],
            fair.gaps[i],
            int(fair.calls[i]),
        ]
        for i, d in enumerate(pca.dimensions)
    ]
    return Table(
        f"{file_name(study.name)}_curves", f"{study.title}: errors and losses by group (Figures 1, 3 and 4)", columns,
        [[_plain(value) for value in row] for row in rows],
        f"Group sizes: {_sizes(study)}. Groups about their own means; the gap is that to a proven bound, relative to "
        "the total variance. The paper prints these curves without numbers.",
    )  # fmt: skip


def _sizes(study: Study) -> str:
    moments = study.data.moments
    return ", ".join(f"{label} {count:g}" for label, count in zip(moments.labels, moments.counts, strict=True))


def _plain(value: Any) -> Any:
    """Python numbers, with an empty string for a missing value."""
    if isinstance(value, int | str):
        return value
    return "" if np.isnan(value) else float(value)


def _samples(study: Study, samples: Samples) -> Table:
    groups, fair = study.groups, samples.fair[0]
    columns = ["d", *(f"PCA error, {group}" for group in groups), *(f"PCA loss, {group}" for group in groups)]
    columns += [f"sd of PCA error, {group}" for group in groups]
    columns += [*(f"FairPCA error, {group}" for group in groups), "FairPCA loss"]
    errors, losses = samples.mean("errors"), samples.mean("losses")
    spread = np.std([curves.errors for curves in samples.pca], axis=0)
    fair_errors, fair_losses = samples.fair_mean("errors"), samples.fair_mean("losses").max(axis=1)
    rows = []
    for i, d in enumerate(samples.pca[0].dimensions):
        row = [int(d), *errors[i], *losses[i], *spread[i]]
        known = d in fair.dimensions
        row += [*fair_errors[fair.row(d)], fair_losses[fair.row(d)]] if known else [np.nan] * (len(groups) + 1)
        rows.append([_plain(value) for value in row])
    return Table(
        f"{file_name(study.name)}_samples_{samples.size}",
        f"{study.title}: {samples.size} rows of each group, mean of {len(samples.pca)} samples (Figure 1, right)",
        columns, rows,
        "The paper's sentence, 1000 faces with men and women equiprobable, is read both as 1000 in all and as 1000 of "
        "each group. It shows PCA only; FairPCA is added for a few d.",
    )  # fmt: skip


def _variants(study: Study) -> Table | None:
    columns, values = ["d", "groups about their own means"], [study.fair.largest]
    if study.pooled is not None:
        columns.append("groups about the common mean")
        values.append(study.pooled.largest)
    if study.complete is not None and study.data.complete is not None:
        columns.append(f"all {study.data.complete.shape[1]} features, own means")
        values.append(study.complete.largest)
    if len(values) == 1:
        return None
    rows = [[int(d), *(float(value[i]) for value in values)] for i, d in enumerate(study.fair.dimensions)]
    return Table(
        f"{file_name(study.name)}_variants", f"{study.title}: FairPCA's loss under other readings of the paper",
        columns, rows,
        "The authors' scripts centre each group by its own mean, the paper's text speaks of the common mean.",
    )  # fmt: skip


def _searches(study: Study) -> Table | None:
    if not study.searches:
        return None
    first = study.searches[0]
    last = len(first.fixed.losses)
    columns = ["d", "rate", f"after {first.authors_steps} steps", "above the optimum, %", f"after {last} steps"]
    columns += ["best rate tried", f"after {STEPS} steps, best rate"] if first.tuned is not None else []
    columns += [f"adaptive rate, {STEPS} steps", "FairPCA", "FairPCA's eigenproblems", "eigengap at the optimum"]
    rows = []
    for search in study.searches:
        values = search.fixed.values
        authors = values[search.authors_steps - 1]
        row = [search.dimension, search.rate, authors, 100 * (authors / search.optimum - 1), values[-1]]
        row += [search.tuned_rate, search.tuned.values[STEPS - 1]] if search.tuned is not None else []
        row += [search.adaptive, search.optimum, int(search.ours[-1, 0]), search.eigengap]
        rows.append([_plain(value) for value in row])
    return Table(
        f"{file_name(study.name)}_weights", f"{study.title}: largest loss by multiplicative weights and by FairPCA",
        columns, rows,
        "Every step costs one eigenproblem, plus one per group for its own optimum, which FairPCA's number includes. "
        "Rate and first number of steps are those of the authors' scripts, and so is the choice of average or last "
        "iterate. The eigengap is 1 - lambda_(d+1) / lambda_d of the weighted sum: the smaller it is, the faster "
        "losses change with the weights, and the smaller the rate must be.",
    )  # fmt: skip


def _rounded(study: Study) -> Table | None:
    rows = []
    for item in study.rounded:
        ours = float(study.fair.largest[study.fair.row(item.dimension)])
        rows.append([item.dimension, item.rank, item.objective, item.dimension, ours, item.objective - ours])
    columns = ["d", "rank, Algorithm 1", "loss, Algorithm 1", "rank, FairPCA", "loss, FairPCA", "difference"]
    return Table(
        f"{file_name(study.name)}_algorithm1", f"{study.title}: the paper's Algorithm 1 and FairPCA", columns, rows,
        "Algorithm 1: semidefinite program (SCS), then an extreme point of its solutions.",
    )  # fmt: skip


def _errata(study: Study) -> Table | None:
    columns = ["d", *(f"script's PCA loss, {group}" for group in study.groups), "script's fair loss"]
    columns += ["optimum, groups about the common mean", "optimum, groups about their own means", "below which optimum"]
    rows = []
    for erratum in study.errata:
        row = study.fair.row(erratum.dimension)
        assert study.pooled is not None
        optima = float(study.pooled.largest[row]), float(study.fair.largest[row])
        rows.append([erratum.dimension, *map(float, erratum.pca), erratum.fair, *optima, _below(erratum.fair, *optima)])
    return Table(
        f"{file_name(study.name)}_errata", f"{study.title}: repeated erratum of creditProcess.m (errata requested)",
        columns, rows,
        "The script centres only the first rows of each group, as many as there are features. Its rows are then nearly "
        "those about the common mean, but each group's best is taken about its own mean: a loss can come out below "
        "what any projection attains.",
    )  # fmt: skip


def _below(value: float, pooled: float, own: float) -> str:
    names = [name for name, optimum in (("common", pooled), ("own", own)) if value < optimum - 1e-9]
    return " and ".join(names) or "none"
