"""Vu, Tran, Yue and Nguyen (2022), Distributionally Robust Fair Principal Components via Geodesic Descents.

``python -m reproductions vu2022 --data FOLDER`` repeats Tables 1, 3 and 4 and the figures on every table of the folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from fairpca.linalg import single_blas_thread
from reproductions._differences import Difference, count_steps, difference_tables, sentences
from reproductions._outcome import Claim, Outcome, Progress, Table
from reproductions._steps import Steps
from reproductions.datasets import load_tables
from reproductions.vu2022 import errata as scripts
from reproductions.vu2022 import protocol
from reproductions.vu2022.comparisons import judge_groups
from reproductions.vu2022.curves import by_components, curve_claims, curve_tables, pareto
from reproductions.vu2022.drawings import drawings
from reproductions.vu2022.published import PUBLISHED
from reproductions.vu2022.tables import (
    Result,
    Study,
    average,
    one_split,
    performance_claims,
    performance_tables,
)
from reproductions.vu2022.toy import directions, radius_effect, toy_claims, toy_tables

__all__ = ["WHERE", "run"]

WHERE = (
    "the folder data/ of the authors' public repository github.com/hieuvt29/distributionally_robust_fair_pca, or any "
    "folder of .csv tables of numbers under a header line, whose last column is the group and whose last but one is "
    "the label."
)

_TITLE = "Vu et al. (2022), Distributionally Robust Fair Principal Components: published values and ours"
_REMARKS = (
    "ABDiff is the difference between the groups' mean errors, each group about its own training mean; ARE the mean "
    "error of all rows. Parameters minimise their sum over three folds, so that one may be traded for the other.",
    "Figures 1 to 16 are drawings: the paper prints no numbers for them. What its text says is stated as a number.",
)


def run(folder: Path, *, quick: bool, errata: bool, progress: Progress) -> Outcome:
    """Repeat Tables 1, 3 and 4 and Figures 1 to 16 on every table of ``folder``.

    The full run takes ten splits of each table, five for the errors against k and a hundred simulations for the
    effect of the radius; ``quick`` two, one and ten, and it tests no difference between groups against chance.
    ``errata`` repeats those of the authors' scripts.
    """
    tables = _tables(folder)
    usable = {name: table for name, table in tables.items() if not protocol.obstacle(table)}
    remarks = [f"{name} is left out: {protocol.obstacle(tables[name])}." for name in tables if name not in usable]
    # The matrices are small: threads inside the linear algebra would only slow each other down.
    with single_blas_thread():
        return _Run(usable, quick, errata, progress).outcome([*_REMARKS, *remarks])


def _tables(folder: Path) -> dict[str, Bunch]:
    try:
        return load_tables(folder)
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder} holds no .csv file. vu2022 needs its data: {WHERE}") from None


class _Run:
    """One reproduction, step by step, with progress."""

    def __init__(self, tables: dict[str, Bunch], quick: bool, with_errata: bool, progress: Progress) -> None:
        self._tables, self._quick, self._with_errata = tables, quick, with_errata
        self._splits, self._component_splits, self._port_splits = (2, 1, 1) if quick else (10, 5, 10)
        self._simulations, self._alphas = (10, 11) if quick else (100, 51)
        ported = len(self._ported()) * self._port_splits if with_errata else 0
        total = len(tables) * (self._splits + 2 + with_errata) + self._simulations + ported + with_errata
        total += 0 if quick else len(tables) * count_steps()
        self._step = Steps(progress, total)

    def outcome(self, remarks: Sequence[str]) -> Outcome:
        studies = [self._study(name) for name in self._tables]
        curves = [
            self._at(f"{name}: trade-off", pareto, name, self._title(name), *self._data(name)) for name in self._tables
        ]
        series = [
            self._at(
                f"{name}: errors against k", by_components, name, self._title(name), *self._data(name),
                self._component_splits,
            )
            for name in self._tables
        ]  # fmt: skip
        found = directions()
        effect = radius_effect(self._simulations, self._alphas, lambda: self._step("effect of the radius"))
        claims, extra = self._errata() if self._with_errata else ([], [])
        performance = performance_claims(studies)  # a quick run has all of them, too, as means over fewer splits
        differences = [] if self._quick else self._differences()
        self._step("writing")
        measured = [*performance_tables(studies), *toy_tables(found, effect), *curve_tables(curves, series), *extra]
        return Outcome(
            "vu2022", _TITLE,
            [*performance, *toy_claims(found, effect), *curve_claims(curves, series), *claims],
            [*difference_tables(differences), *measured],
            drawings(found, effect, curves, series), remarks, self._quick, differences=sentences(differences),
        )  # fmt: skip

    def _differences(self) -> list[Difference]:
        return [
            one for name in self._tables for one in judge_groups(name, self._title(name), *self._data(name), self._step)
        ]

    def _study(self, name: str) -> Study:
        X, groups = self._data(name)
        results = [
            self._at(f"{name}: split {seed + 1} of {self._splits}", one_split, X, groups, seed)
            for seed in range(self._splits)
        ]
        counts = np.unique(groups[protocol.split(groups, 0)[1]], return_counts=True)[1]
        return Study(name, average(results), self._splits, counts)

    def _errata(self) -> tuple[list[Claim], list[Table]]:
        claims, tables = self._at("erratum: last iterate", scripts.last_iterate, self._tables)
        lowered = [
            row
            for name in self._tables
            for row in self._at(f"{name}: lambda", scripts.clipping_rows, self._title(name), *self._data(name))
        ]
        tables.append(scripts.clipping_table(lowered, len(self._tables)))
        ported = [(name, self._port(name)) for name in self._ported()]
        printed = {name: PUBLISHED[name].methods["FairPCA"] if name in PUBLISHED else None for name, _ in ported}
        tables.append(scripts.port_table([(self._title(name), result, printed[name]) for name, result in ported]))
        for name, result in ported:
            values = printed[name]
            if values is not None:
                claims += scripts.port_claims(self._title(name), result, values)
        return claims, tables

    def _port(self, name: str) -> Result:
        X, groups = self._data(name)
        results = [
            {"port": self._at(f"{name}: the port, split {seed + 1}", scripts.port_split, X, groups, seed)}
            for seed in range(self._port_splits)
        ]
        return average(results)["port"]

    def _ported(self) -> list[str]:
        return [name for name in self._tables if scripts.port_is_affordable(self._data(name)[0].shape[1])]

    def _data(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        return protocol.features(self._tables[name]), self._tables[name].sensitive_features

    def _title(self, name: str) -> str:
        return PUBLISHED[name].title if name in PUBLISHED else name

    def _at(self, what: str, function: Any, *arguments: Any) -> Any:
        """Tell what comes next, then do it."""
        self._step(what)
        return function(*arguments)
