"""Tables 1, 3 and 4 of Vu et al. (2022), ours next to the published values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from reproductions._outcome import Claim, Table
from reproductions.vu2022 import protocol
from reproductions.vu2022.published import (
    FIGURE_TOLERANCE,
    METHODS,
    PUBLISHED,
    SUM_TOLERANCE,
    Printed,
    Published,
)

__all__ = ["Result", "Study", "average", "one_split", "performance_claims", "performance_tables"]

_CHOICE = (
    "alpha and lambda minimise the sum of both criteria over three folds; near-ties of the folds are decided by the "
    "accuracy of the fits (ours are exact), and trade one criterion for the other."
)
_PORT = (
    "The published column is that of a Python port of FairPCA which judges its iterate by a matrix product where an "
    "elementwise one is meant, measures a relaxed projector and, with large steps, depends on rounding (see --errata "
    "and the README); ours is the exact optimum."
)
_LIMIT = (
    "Ours is the optimum of the stated problem, and an open-source conic solver returns it for the scripts' relaxation "
    "too; the published value has the larger error in sample as well, so their solver ended elsewhere."
)
_MU = (
    "In the scripts mu lands in another argument and is always 1, in units of ||X||, and a relaxed optimum is rounded "
    "to its leading eigenvectors, which capture little of the data; ours is solved at rank d for the paper's mu."
)
_SVM = (
    "The scripts minimise the plain hinge loss, whose optimum for groups of unequal size or equal means is nearly the "
    "constant rule: the direction is left to the rounding of a commercial solver. Ours is the squared hinge loss."
)
_REASONS = dict(zip(METHODS, (_CHOICE, _PORT, _LIMIT, _MU), strict=True))


@dataclass(frozen=True)
class Result:
    """One method on one table, or the mean over splits; the pairs are (ABDiff, ARE)."""

    test: np.ndarray
    train: np.ndarray
    separation: float


@dataclass(frozen=True)
class Study:
    """Means over the splits of one table, by method."""

    name: str
    results: dict[str, Result]
    n_splits: int
    test_counts: np.ndarray

    @property
    def published(self) -> Published | None:
        return PUBLISHED.get(self.name)

    @property
    def title(self) -> str:
        return self.published.title if self.published else self.name


def one_split(X: np.ndarray, groups: np.ndarray, seed: int, *, separation: bool = True) -> dict[str, Result]:
    """Every method on one split, with parameters chosen on its training rows."""
    sample = protocol.Sample.draw(X, groups, seed)
    parts = protocol.folds(sample.X[sample.train], groups[sample.train], seed)
    bases = {
        "RobustFairPCA": protocol.robust(sample.inside, *protocol.choose_robust(parts)),
        "FairPCA": protocol.fair(sample.inside),
        "ParityPCA (means)": protocol.parity(sample.inside, protocol.choose_delta(parts)),
        "ParityPCA (means, covariances)": protocol.parity(sample.inside, weight=protocol.choose_weight(parts)),
        "PCA": protocol.plain(sample.inside),
    }
    return {method: result_of(sample, basis, separation=separation) for method, basis in bases.items()}


def result_of(sample: protocol.Sample, basis: np.ndarray, *, separation: bool = True) -> Result:
    outside, inside = sample.figures(basis)
    return Result(
        np.array([outside.difference, outside.average]),
        np.array([inside.difference, inside.average]),
        sample.separation(basis) if separation else np.nan,
    )


def average(results: Sequence[dict[str, Result]]) -> dict[str, Result]:
    """Method by method."""
    return {
        method: Result(
            np.mean([split[method].test for split in results], axis=0),
            np.mean([split[method].train for split in results], axis=0),
            float(np.mean([split[method].separation for split in results])),
        )
        for method in results[0]
    }


def performance_tables(studies: Sequence[Study]) -> list[Table]:
    """Tables 1, 3 and 4 in the paper's layout: one row per data set and method."""
    note = "Means over the splits; d = 3. Published values are those of the paper's column for the method."
    return [
        Table("table_1", "Table 1: out of sample", *_pairs(studies, "test"), note=note),
        Table("table_3", "Table 3: in sample", *_pairs(studies, "train"), note=note),
        Table("table_4", "Table 4: separation of the groups by a linear SVM, out of sample", *_separations(studies)),
    ]


def _pairs(studies: Sequence[Study], part: str) -> tuple[list[str], list[list[Any]]]:
    columns = ["data set", "method", "splits", "ABDiff", "published", "ARE", "published", "sum", "published"]
    rows = []
    for study, method, result, printed in _entries(studies):
        ours = getattr(result, part)
        theirs = ["", "", ""] if printed is None else [*getattr(printed, part), sum(getattr(printed, part))]
        values = [x for pair in zip([*map(float, ours), float(ours.sum())], theirs, strict=True) for x in pair]
        rows.append([study.title, method, study.n_splits, *values])
    return columns, rows


def _separations(studies: Sequence[Study]) -> tuple[list[str], list[list[Any]]]:
    rows = [
        [study.title, method, study.n_splits, result.separation, "" if printed is None else printed.separation]
        for study, method, result, printed in _entries(studies)
    ]
    return ["data set", "method", "splits", "separation", "published"], rows


def _entries(studies: Sequence[Study]) -> Iterator[tuple[Study, str, Result, Printed | None]]:
    for study in studies:
        for method, result in study.results.items():
            printed = study.published.methods.get(method) if study.published else None
            yield study, method, result, printed


def performance_claims(studies: Sequence[Study]) -> list[Claim]:
    """A claim for every published value of the data sets found."""
    claims: list[Claim] = []
    for study, method, result, printed in _entries(studies):
        if printed is not None:
            claims += pair_claims("Table 1", study.title, method, result.test, printed.test)
            claims += pair_claims("Table 3", study.title, method, result.train, printed.train)
            claims.append(_separation_claim(study, method, result, printed))
    return claims


def pair_claims(
    source: str, title: str, method: str, ours: np.ndarray, theirs: tuple[float, float], reason: str | None = None
) -> list[Claim]:
    """ABDiff, ARE and, for the paper's own method, the sum that its parameters minimise."""
    name = f"{title}, {method} ({METHODS[method]})" if method in METHODS else f"{title}, {method}"
    reason = _REASONS.get(method, "") if reason is None else reason
    allowed = FIGURE_TOLERANCE * sum(theirs)
    better: Literal["at most", "equal"] = "at most" if method == "ParityPCA (means, covariances)" else "equal"
    claims = [
        Claim(source, f"{name}, {what}", float(a), b, allowed, better, absolute=True, explanation=reason)
        for what, a, b in zip(("ABDiff", "ARE"), ours, theirs, strict=True)
    ]
    if method == "RobustFairPCA":
        claims.append(Claim(source, f"{name}, ABDiff + ARE", float(ours.sum()), sum(theirs), SUM_TOLERANCE, "at most"))
    return claims


def _separation_claim(study: Study, method: str, result: Result, printed: Printed) -> Claim:
    error = 0.5 * float(np.sqrt((1.0 / study.test_counts).sum()))
    what = f"{study.title}, {method} ({METHODS[method]}), separation"
    reason = f"{_SVM} {_MU}" if method == "ParityPCA (means, covariances)" else _SVM
    return Claim("Table 4", what, result.separation, printed.separation, error, absolute=True, explanation=reason)
