"""Statements of the paper as numbers, beside what was measured."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairpca.reproductions._outcome import Claim
from fairpca.reproductions.samadi2018.algorithms import RATES
from fairpca.reproductions.samadi2018.published import (
    ACCURACY,
    ERROR_GAP_TOLERANCE,
    MOST_CALLS,
    ROUNDING,
    SDP_ACCURACY,
    SECONDS,
    STEPS,
)
from fairpca.reproductions.samadi2018.study import Study

__all__ = ["claims_of"]


def claims_of(study: Study) -> list[Claim]:
    """What the paper says of this data set by name, then what it says of any data."""
    found = [*_theorems(study), *_algorithm_one(study), *_cost(study)]
    if study.worse is not None:
        found = [*_figures(study, study.worse), *found]
    return found


def _figures(study: Study, worse: int) -> Iterator[Claim]:
    published = study.published
    assert published is not None
    name, features = study.title, study.data.X.shape[1]
    yield Claim("Section 6", f"{name}: original dimensions", float(features), float(published.features), 0.0)
    yield _error_order(study, worse)
    if published.error_gap_percent is not None:
        yield _error_gap(study, worse, published.error_gap_percent)
    for samples in study.samples:
        exceeds = _exceeds(samples.mean("errors"), worse)
        what = f"{name}, {samples.size} of each group (mean of {len(samples.pca)} samples): {_PCA_ERROR}"
        yield _count("Figure 1, right", what.format(published.worse), exceeds)
    proper = study.pca.dimensions < features
    exceeds = _exceeds(study.pca.losses, worse)[proper]
    yield _count("Figure 4", f"{name}: {_PCA_LOSS}".format(published.worse), exceeds)
    low, high = study.pca.losses.min(axis=1), study.pca.losses.max(axis=1)
    between = (low < study.fair.largest) & (study.fair.largest < high)
    yield _count("Section 6", f"{name}: values of d at which FairPCA's loss lies between PCA's two", between[proper])
    yield from _decrease(study)
    if not proper.all():
        largest = max(study.pca.errors[~proper].max(), study.fair.errors[~proper].max()) / study.fair.total
        yield Claim(
            "Section 6", f"{name}: error left at d = {features}, of the total variance", float(largest), 0.0, ROUNDING,
            absolute=True,
        )  # fmt: skip


_PCA_ERROR = "values of d at which PCA's error is larger for {}"
_PCA_LOSS = "values of d at which PCA's loss is larger for {}"


def _exceeds(values: np.ndarray, column: int) -> np.ndarray:
    return values[:, column] > np.delete(values, column, axis=1).max(axis=1)


def _count(source: str, what: str, holds: np.ndarray, explanation: str = "") -> Claim:
    """At how many of the dimensions a statement holds, against all of them."""
    return Claim(source, what, float(holds.sum()), float(len(holds)), 0.0, explanation=explanation)


def _error_order(study: Study, worse: int) -> Claim:
    proper = study.pca.dimensions < study.data.X.shape[1]
    exceeds = _exceeds(study.pca.errors, worse)[proper]
    pooled = _exceeds(study.pca_pooled.errors, worse)[proper]
    group = study.groups[worse]
    totals = np.einsum("aii->a", study.data.moments.second_moments("group"))
    explanation = (
        f"Larger at d = {_ranges(study.pca.dimensions[proper][exceeds])} only (about the common mean: at d = "
        f"{_ranges(study.pca.dimensions[proper][pooled])}). The group's own variance is {totals[worse]:.4g}, that of "
        f"the other {np.delete(totals, worse).max():.4g}. The paper's sentence has no numbers; what its method "
        "balances, and its Figure 4 shows, is the loss."
    )
    return _count("Abstract, Figure 3", f"{study.title}: {_PCA_ERROR}".format(group), exceeds, explanation)


def _ranges(dimensions: np.ndarray) -> str:
    """1-3, 7, 9-10."""
    if not len(dimensions):
        return "none"
    parts = np.split(dimensions, np.flatnonzero(np.diff(dimensions) > 1) + 1)
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else f"{part[0]}" for part in parts)


def _error_gap(study: Study, worse: int, percent: float) -> Claim:
    others = np.delete(study.pca.errors, worse, axis=1).max(axis=1)
    gap = 100 * (study.pca.errors[:, worse] - others) / study.pca.average
    what = f"{study.title}: largest difference of PCA's errors, in % of the average error"
    return Claim("Section 6, Figure 1", what, float(gap.max()), percent, ERROR_GAP_TOLERANCE, absolute=True)


def _decrease(study: Study) -> Iterator[Claim]:
    for method, curves in (("PCA", study.pca), ("FairPCA", study.fair)):
        rises = np.diff(curves.errors, axis=0) > ROUNDING * study.fair.total
        where = ", ".join(
            f"{study.groups[a]} at d = {_ranges(curves.dimensions[1:][rises[:, a]])}"
            for a in range(len(study.groups))
            if rises[:, a].any()
        )
        yield Claim(
            "Section 6", f"{study.title}: rises of a group's {method} error with d", float(rises.sum()), 0.0, 0.0,
            absolute=True,
            explanation=f"The error rises for {where}. Unlike PCA's, the optimal subspaces are not nested: what is "
            "balanced at d may give one group more than what is balanced at d + 1.",
        )  # fmt: skip


def _theorems(study: Study) -> Iterator[Claim]:
    fair, name, k = study.fair, study.title, len(study.groups)
    extra = float((fair.ranks - fair.dimensions).max())
    source = "Theorem 5.1" if k == 2 else "Theorem 5.2"
    yield Claim(source, f"{name}: dimensions used beyond d", extra, k - 1.0, 0.0, "at most", True, _RANK)
    if k != 2:
        return
    spread = float(np.ptp(fair.losses, axis=1).max()) / fair.total
    what = f"{name}: largest difference between the groups' FairPCA losses, of the total variance"
    yield Claim("Theorem 4.5", what, spread, 0.0, ROUNDING, absolute=True)
    what = f"{name}: FairPCA's largest distance from the optimum of the relaxation, of the total variance"
    yield Claim("Theorem 5.1", what, float(fair.gaps.max()), 0.0, ROUNDING, absolute=True)


_RANK = "For two groups the relaxation loses nothing: the optimum is attained by a projection on d dimensions."


def _algorithm_one(study: Study) -> Iterator[Claim]:
    if not study.rounded:
        return
    name, k = study.title, len(study.groups)
    extra = float(max(item.rank - item.dimension for item in study.rounded))
    yield Claim(
        "Algorithm 1", f"{name}: dimensions beyond d after rounding", extra, k - 1.0, 0.0, "at most", True, _RANK
    )
    if k == 2:
        ours = [study.fair.largest[study.fair.row(item.dimension)] for item in study.rounded]
        apart = max(abs(item.objective - value) for item, value in zip(study.rounded, ours, strict=True))
        what = f"{name}: largest distance of its objective from FairPCA's, of the total variance"
        yield Claim("Algorithm 1", what, float(apart / study.fair.total), 0.0, SDP_ACCURACY, absolute=True)


def _cost(study: Study) -> Iterator[Claim]:
    name, fair = study.title, study.fair
    what = f"{name}: ordinary PCAs (eigenproblems) that a FairPCA fit costs, at most"
    yield Claim("Section 1", what, float(fair.calls.max()), float(MOST_CALLS), 0.0, "at most", explanation=_CALLS)
    what = f"{name}: processor seconds of the slowest FairPCA fit ({study.data.X.shape[1]} features)"
    yield Claim("Section 5", what, float(fair.seconds.max()), SECONDS, 0.0, "at most", explanation=_FASTER)
    tuned = [search for search in study.searches if search.tuned is not None]
    if tuned:
        yield _tuned_weights(study)
    if study.published is not None:
        yield from _script(study)


_CALLS = "Eigenproblems of full size, those for each group's own optimum included."
_FASTER = "The second moments are computed once; a fit costs a few eigenproblems."


def _tuned_weights(study: Study) -> Claim:
    excess = {
        search.dimension: search.excess(search.tuned.values, STEPS) / study.fair.total
        for search in study.searches
        if search.tuned is not None
    }
    missed = np.array([d for d, value in excess.items() if value > ACCURACY])
    what = f"{study.title}: multiplicative weights, {STEPS} steps, best of the rates tried: largest distance from "
    explanation = (
        f"Not reached at d = {_ranges(missed)} with any of the rates tried, {', '.join(f'{rate:g}' for rate in RATES)}."
    )
    worst = max(0.0, *excess.values())
    return Claim("Section 5, Appendix A", f"{what}the optimum, of the total variance", worst, ACCURACY, 0.0, "at most",
                 explanation=explanation)  # fmt: skip


def _script(study: Study) -> Iterator[Claim]:
    """The authors' script with its own rate and number of steps, on centred groups."""
    assert study.published is not None
    for search in study.searches:
        if search.dimension not in study.published.script:
            continue
        value, precision = study.published.script[search.dimension]
        source = f"authors' mw.m, {search.authors_steps} steps"
        what = f"{study.title}, d = {search.dimension}: largest loss"
        repeated = float(search.fixed.values[search.authors_steps - 1])
        yield Claim(source, f"{what}, multiplicative weights", repeated, value, precision, absolute=True)
        yield Claim(
            source, f"{what}, FairPCA", search.optimum, value, precision, "at most", True,
            "So few steps at a fixed rate end above the optimum; ours is the optimum, by its lower bound.",
        )  # fmt: skip
