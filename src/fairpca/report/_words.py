"""The summary in words: what the figures mean for somebody who has to decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairpca.model_selection.compare import Comparison, MethodResult

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["number", "sample_sentence", "summary"]

#: Differences below this share of the error are not worth a sentence.
_NEGLIGIBLE = 1e-6


def number(value: float) -> str:
    """Three significant digits, without an exponent where that reads well."""
    if abs(value) < 5e-10:
        return "0"
    if not 1e-4 <= abs(value) < 1e6:
        return f"{value:.1e}"
    digits = max(0, 2 - _magnitude(value))
    return f"{value:,.{digits}f}"


def _magnitude(value: float) -> int:
    return int(f"{abs(value):e}".rpartition("e")[2])


def sample_sentence(size: int, total: int) -> str:
    """Which figures of a streamed file are those of all rows, and which are not."""
    return (
        "Errors, losses and variance are those of all rows; intervals and the figures of rows not used in fitting are "
        f"computed on a random sample of {size:,} of {total:,} rows."
    )


def summary(comparison: Comparison, d: int) -> list[str]:
    """Sentences about one number of components, the most important first."""
    present = {result.method: result for result in comparison.results if result.n_components == d}
    ordinary = present.get("PCA")
    if ordinary is None:
        return []
    sentences = [_quality(ordinary, comparison), _errors(ordinary)]
    if "FairPCA" in present:
        sentences.append(_mended(ordinary, present["FairPCA"]))
    sentences += _readable(ordinary, present.values())
    return [sentence for sentence in sentences if sentence]


def _quality(ordinary: MethodResult, comparison: Comparison) -> str:
    loss = ordinary.loss
    values = {label: estimate.value for label, estimate in loss.by_group.items()}
    best = min(values, key=values.__getitem__)
    kept = 100 * ordinary.explained_variance
    start = f"Ordinary PCA with {_components(ordinary.n_components)} keeps {kept:.1f}\u00a0% of the variance. "
    if loss.gap.value <= _NEGLIGIBLE * max(ordinary.error.overall, 1e-300):
        return start + "It costs every group the same: no group pays more than another for sharing the components."
    sure = (
        "a difference this large is unlikely to be chance"
        if loss.gap.low > 0
        else "the interval reaches zero, so with these rows the difference may be chance"
    )
    return (
        f"{start}Sharing the components costs group “{loss.worst}” most: a loss of {number(values[loss.worst])}, "
        f"against {number(values[best])} for “{best}” (difference {_interval(loss.gap)}; {sure})."
    )


def _errors(ordinary: MethodResult) -> str:
    error = ordinary.error
    values = {label: estimate.value for label, estimate in error.by_group.items()}
    best = min(values, key=values.__getitem__)
    if error.worst == best:
        return ""
    same = "also " if error.worst == ordinary.loss.worst else ""
    return (
        f"The group that is {same}reconstructed worst is “{error.worst}”: mean squared error "
        f"{number(values[error.worst])}, against {number(values[best])} for “{best}”. Part of such a difference is in "
        "the data: some groups vary more, and no projection can change that. The loss leaves that part out."
    )


def _mended(ordinary: MethodResult, balanced: MethodResult) -> str:
    before, after = (max(e.value for e in result.loss.by_group.values()) for result in (ordinary, balanced))
    cost = 100 * (ordinary.explained_variance - balanced.explained_variance)
    if before - after <= _NEGLIGIBLE * max(before, 1e-300):
        return "FairPCA cannot lower the largest loss: ordinary PCA already reaches the optimum."
    proof = (
        ""
        if balanced.certificate is None or balanced.certificate > 1e-6
        else " No projection can do better; that is proven."
    )
    points = "less than 0.1 points" if cost < 0.1 else f"{cost:.1f} points"
    return (
        f"FairPCA lowers the largest loss from {number(before)} to {number(after)}, and pays {points} of explained "
        f"variance for it.{proof}"
    )


def _readable(ordinary: MethodResult, results: Iterable[MethodResult]) -> list[str]:
    before = ordinary.held_out
    if before.adversary <= before.adversary_random:
        return [
            "On new rows a linear classifier cannot tell the groups apart from the scores of ordinary PCA any better "
            f"than random groups ({before.adversary:.2f}; random groups reach {before.adversary_random:.2f})."
        ]
    sentences = [
        "The group can be read off the scores of ordinary PCA: on new rows a linear classifier separates the groups by "
        f"{before.adversary:.2f} on a scale from 0 to 1 (random groups reach {before.adversary_random:.2f})."
    ]
    sentences += [_parity(ordinary, result) for result in results if result.family == "parity"]
    return sentences


def _parity(ordinary: MethodResult, result: MethodResult) -> str:
    cost = 100 * (ordinary.explained_variance - result.explained_variance)
    left = result.held_out
    like = "no more than random groups" if left.adversary <= left.adversary_random else "still more than random groups"
    return (
        f"{result.method} brings that to {left.adversary:.2f}, {like}, for {max(cost, 0.0):.1f} points of explained "
        "variance."
    )


def _interval(estimate: object) -> str:
    value, low, high = (getattr(estimate, name) for name in ("value", "low", "high"))
    return f"{number(value)}, interval {number(low)} to {number(high)}"


def _components(d: int) -> str:
    return "1 component" if d == 1 else f"{d} components"
