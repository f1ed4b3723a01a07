"""The verdict: what the claims of a comparison come to, in a few sentences and one small table.

It speaks of one number of components, the one with the clearest difference between groups under ordinary PCA. Choosing
it is allowed, because claims of a kind hold together for all numbers of components. Terminal and report begin with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fairpca._display import fixed, number, p_text, percent, with_interval
from fairpca._labels import label_text
from fairpca.inference import Claim
from fairpca.inference._claims import components_text
from fairpca.metrics import Estimate
from fairpca.model_selection import Comparison, MethodResult

__all__ = ["DEFINITIONS", "JOINT", "Verdict", "verdict"]

JOINT = "95 %, for all of these together"
DEFINITIONS = (
    "Error: mean squared distance between a group's rows and their reconstruction from the components, on rows that "
    "were not used in fitting."
)
#: Groups in the small table; of more, those whose errors the balancing method changes most.
_SHOWN_GROUPS = 6
#: Which method the small table sets beside ordinary PCA: the first that was compared.
_PREFERRED = ("FairPCA", "RobustFairPCA", "ParityPCA", "MMDFairPCA")


@dataclass(frozen=True)
class Verdict:
    """What was found, what can be done, what it costs, and how sure that is."""

    n_components: int
    finding: str
    detail: str
    remedy: str
    left: str
    numbers: list[tuple[str, str, str]]  # what it is, the number, its interval or what it means
    heads: list[str]
    rows: list[list[str]]
    left_out: str
    cost: str
    readable: str
    advice: str

    @property
    def above(self) -> list[str]:
        """What belongs before the table."""
        sentences = (f"{self.finding} {self.detail}".strip(), f"{self.remedy} {self.left}".strip())
        return [one for one in sentences if one]

    @property
    def below(self) -> list[str]:
        """What belongs after the table."""
        return [one for one in (self.left_out, self.cost, self.readable, self.advice) if one]


def verdict(found: Comparison) -> Verdict | None:
    """What the claims come to; None if ordinary PCA was not among the methods."""
    ordinary = _clearest(found)
    if ordinary is None:
        return None
    present = {one.method: one for one in found.results if one.n_components == ordinary.n_components}
    other = next((present[name] for name in [*_PREFERRED, *present] if name in present and name != "PCA"), None)
    heads, rows, left_out = _table(found, ordinary, other)
    shown = bool(_claims(found, "losses", ordinary) or _claims(found, "errors", ordinary))
    return Verdict(
        ordinary.n_components,
        *_finding(found, ordinary),
        _remedy(found, ordinary, other),
        _left(found, ordinary, other),
        _numbers(ordinary, other),
        heads,
        rows,
        left_out,
        _cost(ordinary, other),
        _readable(found, present.values()),
        _advice(found, ordinary, shown, present),
    )


def _clearest(found: Comparison) -> MethodResult | None:
    ordinary = [one for one in found.results if one.method == "PCA"]
    judged = [one for one in ordinary if not one.new_rows.keeps_everything] or ordinary

    def certain(result: MethodResult) -> tuple[float, float, int]:
        """How large the differences of losses and of errors are at least, as far as they are claimed."""
        lows = [
            max((claim.low for claim in _claims(found, kind, result)), default=0.0) for kind in ("losses", "errors")
        ]
        return lows[0], lows[1], result.n_components

    return max(judged, key=certain, default=None)


def _claims(found: Comparison, kind: str, result: MethodResult) -> list[Claim]:
    return found.of_kind(kind, result.method, result.n_components)


def _sure(one: Any) -> str:
    return with_interval(Estimate(one.value, one.low, one.high))


def _finding(found: Comparison, ordinary: MethodResult) -> tuple[str, str]:
    """Whether groups are shown to be treated differently, and by how much."""
    count = components_text(ordinary.n_components)
    with_d = f"ordinary PCA with {count}"
    if ordinary.new_rows.keeps_everything:
        return f"With {count} ordinary PCA keeps everything, so there is nothing to compare.", ""
    for claim in _claims(found, "losses", ordinary):
        worse, better = map(label_text, claim.groups)
        return (
            f"On new rows, {with_d} represents “{worse}” worse than “{better}”.",
            f"The loss of “{worse}”, the part of its error that components of its own would save, is larger by "
            f"{_sure(claim)}. In brackets: {JOINT}.",
        )
    for claim in _claims(found, "errors", ordinary):
        worse, better = map(label_text, claim.groups)
        return (
            f"On new rows, the error of “{worse}” under {with_d} is larger than that of “{better}”.",
            f"It is larger by {_sure(claim)} (in brackets: {JOINT}). That components of its own would save more of it "
            "is not shown.",
        )
    if found.test is None:
        return (
            "Nothing is claimed: rows repeat persons whose identities are not known.",
            "Name the column that identifies them (clusters) to learn more.",
        )
    chance = min(found.of_kind("chance"), key=lambda claim: claim.value, default=None)
    if chance is None:
        return (
            "No difference between the groups is shown.",
            "Random groups of these sizes would have losses like these, and on new rows neither losses nor errors are "
            "shown to differ.",
        )
    p_value = p_text(chance.value, found.test.n_permutations)
    return (
        "On new rows no difference between the groups is shown.",
        f"In these rows their losses differ more than in random groups of these sizes (adjusted p {p_value}).",
    )


def _remedy(found: Comparison, ordinary: MethodResult, other: MethodResult | None) -> str:
    """How another method is shown to change the errors of groups."""
    if other is None or ordinary.new_rows.keeps_everything:
        return ""
    changes = _claims(found, "change", other)[:_SHOWN_GROUPS]
    lowered, raised = ([claim for claim in changes if (claim.value > 0) == up] for up in (False, True))
    parts = [
        f"{verb} the error of " + ", ".join(f"“{label_text(one.groups[0])}” by {_size(one)}" for one in claims)
        for verb, claims in (("lowers", lowered), ("raises", raised))
        if claims
    ]
    if not parts:
        return f"That {other.method} changes the error of any group is not shown."
    return f"{other.method} {' and '.join(parts)}."


def _left(found: Comparison, ordinary: MethodResult, other: MethodResult | None) -> str:
    """What remains of a claimed difference of losses."""
    if other is None or not _claims(found, "losses", ordinary):
        return ""
    for claim in _claims(found, "losses", other):
        worse, better = map(label_text, claim.groups)
        return f"With it, the loss of “{worse}” is larger than that of “{better}” by {_sure(claim)}."
    return f"With it, no difference of losses is shown ({with_interval(other.corrected_loss.gap.joint)})."


def _cost(ordinary: MethodResult, other: MethodResult | None) -> str:
    if other is None or ordinary.new_rows.keeps_everything:
        return ""
    return (
        f"Cost: {other.method} keeps {percent(other.explained_variance)} of the variance, ordinary PCA "
        f"{percent(ordinary.explained_variance)}; the error of all rows together goes from "
        f"{number(ordinary.error.overall)} to {number(other.error.overall)}."
    )


def _numbers(ordinary: MethodResult, other: MethodResult | None) -> list[tuple[str, str, str]]:
    """The differences of losses before and after, and what all rows together pay."""
    results = [one for one in (ordinary, other) if one is not None and not one.new_rows.keeps_everything]
    found = []
    for result in results:
        gap = result.corrected_loss.gap.joint
        name = "ordinary PCA" if result is ordinary else result.method
        interval = f"{number(gap.low)} to {number(gap.high)}"
        found.append(
            (
                f"difference of losses, {name} (95 %, all together)",
                number(gap),
                interval if gap.low > 0 else f"{interval}: none is shown",
            )
        )
    if other is not None and found:
        before, after = (number(one.error.overall) for one in results)
        kept = [percent(one.explained_variance) for one in results]
        found.append(("error of all rows together", f"{before} → {after}", f"variance kept: {kept[0]} → {kept[1]}"))
    return found


def _size(claim: Claim) -> str:
    one = Estimate(claim.value, claim.low, claim.high)
    return with_interval(one if one > 0 else -one)


def _readable(found: Comparison, results: Iterable[MethodResult]) -> str:
    """From which scores the group can be read off."""
    parts: dict[bool, list[str]] = {True: [], False: []}
    for result in results:
        parts[bool(_claims(found, "readable", result))].append(f"{result.method} {fixed(result.held_out.auc, 2)}")
    if not parts[True]:
        return "That the group can be predicted from the scores of new rows is not shown for any method."
    said = f"The group can be predicted from the scores of new rows (AUC: {', '.join(parts[True])})"
    return f"{said}; not shown for {', '.join(parts[False])}." if parts[False] else f"{said}."


def _advice(found: Comparison, ordinary: MethodResult, shown: bool, present: dict[str, MethodResult]) -> str:
    revealed = bool(_claims(found, "readable", ordinary))
    if not shown and not revealed:
        return "No reason to leave ordinary PCA is shown; small groups and wide intervals can hide one."
    said = []
    if shown and "FairPCA" in present:
        said.append("If no group should be represented worse than necessary, use FairPCA.")
    parity = [one for one in present.values() if one.family == "parity"]
    if revealed and parity:
        hidden = [one.method for one in parity if not _claims(found, "readable", one)]
        said.append(
            f"If the scores should not reveal the group, consider {' or '.join(hidden)}."
            if hidden
            else "None of the parity methods keeps the group from being read off the scores."
        )
    return " ".join(said)


def _table(
    found: Comparison, ordinary: MethodResult, other: MethodResult | None
) -> tuple[list[str], list[list[str]], str]:
    """Each group's error on new rows, and how the other method changes it; then all rows together."""
    labels = list(ordinary.new_rows.counts)
    change = None if other is None else other.change.by_group
    order = sorted(labels, key=lambda label: -abs(change[label])) if change else labels
    kept = [label for label in labels if label in order[:_SHOWN_GROUPS]]
    rows = []
    for label, count in zip(found.groups, found.counts, strict=True):
        if label in kept:
            row = [label_text(label), f"{count:,}", number(ordinary.error[label])]
            rows.append(
                row if other is None else [*row, number(other.error[label]), _signed(other.change[label].joint)]
            )
    together = ["all rows", f"{sum(found.counts):,}", number(ordinary.error.overall)]
    if other is not None:
        together += [number(other.error.overall), _signed_number(other.error.overall - ordinary.error.overall)]
    heads = [components_text(ordinary.n_components), "rows", "error, PCA"]
    heads += [] if other is None else [f"error, {other.method}", "change (95 %, all together)"]
    missing = len(labels) - len(kept)
    left_out = f"{missing} more groups, with smaller changes, are in the report." if missing else ""
    return heads, [*rows, together], left_out


def _signed(one: Estimate) -> str:
    return f"{'+' if one > 0 else ''}{with_interval(one)}"


def _signed_number(value: float) -> str:
    return f"{'+' if value > 0 else ''}{number(value)}"
