"""Statements of the paper as numbers, and the measured values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reproductions._outcome import Claim
from reproductions.samadi2018.published import (
    ACCURACY,
    ERROR_GAP_TOLERANCE,
    MOST_CALLS,
    ROUNDING,
    SDP_ACCURACY,
    SECONDS,
    STEPS,
)
from reproductions.samadi2018.study import Study

__all__ = ["claims_of", "count_unexamined"]


def claims_of(study: Study) -> list[Claim]:
    """What the paper says about this data set by name, then what it says about any data."""
    found = [*_theorems(study), *_algorithm_one(study), *_cost(study)]
    if study.worse is not None:
        found = [*_statements(study, study.worse), *found]
    return found


def count_unexamined(study: Study) -> int:
    """Statements about samples of sizes that a quick run does not draw."""
    if study.worse is None or study.published is None or study.published.error_gap_percent is None:
        return 0
    return _CLAIMS_OF_A_SAMPLE * study.sizes_left_out


def _statements(study: Study, worse: int) -> Iterator[Claim]:
    published = study.published
    assert published is not None
    name, features = study.title, study.data.X.shape[1]
    yield Claim("Section 6", f"{name}: original dimensions", float(features), float(published.features), 0.0)
    yield _error_order(study, worse)
    yield from _error_gaps(study, worse)
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


def _error_gaps(study: Study, worse: int) -> Iterator[Claim]:
    """Figure 1: all rows, and samples with as many rows of each group."""
    assert study.published is not None
    percent = study.published.error_gap_percent
    if percent is None:
        return
    yield _error_gap("Section 6, Figure 1", study.title, study.pca.errors, study.pca.shares, worse, percent)
    for samples in study.samples:
        errors, shares = samples.mean("errors"), samples.pca[0].shares
        name = f"{study.title}, {samples.size} of each group (mean of {len(samples.pca)} samples)"
        what = f"{name}: {_PCA_ERROR}".format(study.groups[worse])
        yield _count("Figure 1, right", what, _exceeds(errors, worse))
        yield _error_gap("Section 6, Figure 1, right", name, errors, shares, worse, percent)


#: About the order of the errors, and about their largest difference.
_CLAIMS_OF_A_SAMPLE = 2
_PCA_ERROR = "values of d at which PCA's error is larger for {}"
_PCA_LOSS = "values of d at which PCA's loss is larger for {}"


def _exceeds(values: np.ndarray, column: int) -> np.ndarray:
    return values[:, column] > np.delete(values, column, axis=1).max(axis=1)


def _count(source: str, what: str, holds: np.ndarray, explanation: str = "") -> Claim:
    """At how many of the dimensions a statement holds, against all of them."""
    return Claim(source, what, float(holds.sum()), float(len(holds)), 0.0, explanation=explanation)


def _at_most(source: str, what: str, ours: float, theirs: float, why: str = "", precision: float = 0.0) -> Claim:
    """``why`` explains how ours can be less; it does not excuse a value of ours that is more."""
    reason = why if ours <= theirs else ""
    return Claim(source, what, ours, theirs, precision, "at most", absolute=True, explanation=reason)


def _error_order(study: Study, worse: int) -> Claim:
    proper = study.pca.dimensions < study.data.X.shape[1]
    exceeds, pooled = (_exceeds(curves.errors, worse)[proper] for curves in (study.pca, study.pca_pooled))
    totals = np.einsum("aii->a", study.data.moments.second_moments("group"))
    own, other = totals[worse], np.delete(totals, worse).max()
    dimensions = study.pca.dimensions[proper]
    explanation = (
        f"Larger at d = {_ranges(dimensions[exceeds])} only (about the common mean: at d = "
        f"{_ranges(dimensions[pooled])}): the group's own variance is {own:.4g}, that of the other {other:.4g}. The "
        "paper's sentence has no numbers; what its method balances, and its Figure 4 shows, is the loss."
    )
    what = f"{study.title}: {_PCA_ERROR}".format(study.groups[worse])
    # The reason does not hold for a group whose own variance is the larger one.
    return _count("Abstract, Figure 3", what, exceeds, explanation if own < other else "")


def _ranges(dimensions: np.ndarray) -> str:
    """1-3, 7, 9-10."""
    if not len(dimensions):
        return "none"
    parts = np.split(dimensions, np.flatnonzero(np.diff(dimensions) > 1) + 1)
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else f"{part[0]}" for part in parts)


def _error_gap(source: str, name: str, errors: np.ndarray, shares: np.ndarray, worse: int, percent: float) -> Claim:
    others = np.delete(errors, worse, axis=1).max(axis=1)
    gap = 100 * (errors[:, worse] - others) / (errors @ shares)
    what = f"{name}: largest difference of PCA's errors, in % of the average error"
    return Claim(source, what, float(gap.max()), percent, ERROR_GAP_TOLERANCE, absolute=True)


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
            explanation="" if method == "PCA" else f"The error rises for {where}. Unlike PCA's, the optimal subspaces "
            "are not nested: what is balanced at d may give one group more than what is balanced at d + 1.",
        )  # fmt: skip


def _theorems(study: Study) -> Iterator[Claim]:
    fair, name, k = study.fair, study.title, len(study.groups)
    extra = float((fair.ranks - fair.dimensions).max())
    source = "Theorem 5.1" if k == 2 else "Theorem 5.2"
    yield _at_most(source, f"{name}: dimensions used beyond d", extra, k - 1.0, _RANK if k == 2 else "")
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
    yield _at_most("Algorithm 1", f"{name}: dimensions beyond d after rounding", extra, k - 1.0, _RANK)
    if k == 2:
        ours = [study.fair.largest[study.fair.row(item.dimension)] for item in study.rounded]
        apart = max(abs(item.objective - value) for item, value in zip(study.rounded, ours, strict=True))
        what = f"{name}: largest distance of its objective from FairPCA's, of the total variance"
        yield Claim("Algorithm 1", what, float(apart / study.fair.total), 0.0, SDP_ACCURACY, absolute=True)


def _cost(study: Study) -> Iterator[Claim]:
    name, fair = study.title, study.fair
    if len(study.groups) == 2:
        what = f"{name}: ordinary PCAs (eigenproblems) that a FairPCA fit costs, at most"
        yield _at_most("Section 1", what, float(fair.calls.max()), float(MOST_CALLS), _CALLS)
    if study.data.images:
        what = f"{name}: processor seconds of the slowest FairPCA fit ({study.data.X.shape[1]} features)"
        yield _at_most("Section 5", what, float(fair.seconds.max()), SECONDS, _FASTER)
    if study.published is not None and study.searches:
        yield _tuned_weights(study)
        yield from _script(study)


_CALLS = "Eigenproblems of full size, those for each group's own optimum included."
_FASTER = "The second moments are computed once; a fit costs a few eigenproblems."


def _tuned_weights(study: Study) -> Claim:
    """The paper tunes the rate: of the table we try several, of the images its script has one for each d."""
    excess = [
        search.excess((search.tuned or search.fixed).values, STEPS) / study.fair.total for search in study.searches
    ]
    tried = any(search.tuned is not None for search in study.searches)
    rate = "best of the rates tried" if tried else "the script's rate 20 / d"
    what = f"{study.title}: multiplicative weights, {STEPS} steps, {rate}: largest distance from the optimum"
    worst = max([0.0, *excess])
    return _at_most("Section 5, Appendix A", f"{what}, of the total variance", worst, ACCURACY)


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
        yield _at_most(source, f"{what}, FairPCA", search.optimum, value, _TOO_FEW, precision)


_TOO_FEW = "So few steps at a fixed rate end above the optimum; ours is the optimum, by its lower bound."
