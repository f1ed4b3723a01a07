"""The verdict: what the claims of a comparison come to, in a few sentences and one small table.

Terminal and page say it in these words. It speaks of one number of components; choosing one is allowed, because
claims of a kind hold together for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairpca._display import fixed, number, p_text, percent, with_interval
from fairpca._labels import label_text
from fairpca.inference import Claim
from fairpca.inference._claims import components_text
from fairpca.metrics import Estimate
from fairpca.model_selection import Comparison, MethodResult

__all__ = ["Verdict", "signed", "verdict"]

#: Groups in the small table; of more, those whose errors the method changes most.
_SHOWN_GROUPS = 4
#: Which method is set beside ordinary PCA: the first that was compared.
_PREFERRED = ("FairPCA", "RobustFairPCA", "ParityPCA", "MMDFairPCA")


@dataclass(frozen=True)
class Verdict:
    """What was found and for whom, how sure that is, what can be done, and at what price.

    ``numbers`` has, for each of at most three, a title, a number with its interval, and what it means.
    """

    n_components: int
    finding: str
    doubt: str = ""
    remedy: str = ""
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    numbers: Sequence[Sequence[str]] = ()
    readable: str = ""
    advice: str = ""


def verdict(found: Comparison, n_components: int | None = None) -> Verdict | None:
    """What the claims come to, by default where the difference is clearest; None without ordinary PCA."""
    candidates = [one for one in found.results if one.method == "PCA" and n_components in (None, one.n_components)]
    ordinary = max(candidates, key=lambda one: _clarity(found, one), default=None)
    if ordinary is None:
        return None
    d = ordinary.n_components
    if ordinary.new_rows.keeps_everything:
        return Verdict(d, f"With {components_text(d)} ordinary PCA keeps everything, so there is nothing to compare.")
    present = {one.method: one for one in found.results if one.n_components == d}
    others = [present[name] for name in [*_PREFERRED, *present] if name in present and name != "PCA"][:1]
    return Verdict(
        d,
        *_finding(found, ordinary),
        "".join(_remedy(found, ordinary, other) for other in others),
        *_table(found, ordinary, others),
        _numbers(found, ordinary, others),
        _readable(found, list(present.values())),
        _advice(found, ordinary, present),
    )


def _claims(found: Comparison, kind: str, result: MethodResult) -> list[Claim]:
    return found.of_kind(kind, result.method, result.n_components)


def _clarity(found: Comparison, one: MethodResult) -> tuple[Any, ...]:
    """How large the differences of losses and of errors are at least, as far as they are claimed."""
    lows = [max((claim.low for claim in _claims(found, kind, one)), default=0.0) for kind in ("losses", "errors")]
    return not one.new_rows.keeps_everything, *lows, len(_claims(found, "chance", one)), one.n_components


def _finding(found: Comparison, ordinary: MethodResult) -> tuple[str, str]:
    """Whether groups are shown to be treated differently, and what speaks against it."""
    count = components_text(ordinary.n_components)
    start = f"On new rows, ordinary PCA with {count}"
    for claim in _claims(found, "losses", ordinary):
        worse, better = _names(claim.groups)
        return f"{start} loses more of {worse} than of {better}.", ""
    for claim in _claims(found, "errors", ordinary):
        return claim.text, "That components of its own would save more of it is not shown."
    if found.test is None:
        doubt = "Name the column that identifies them (clusters) to learn more."
        return "Nothing is claimed: rows repeat persons whose identities are not known.", doubt
    doubt = "Random groups of these sizes could have losses like these."
    for claim in _claims(found, "chance", ordinary):
        p_value = p_text(claim.value, found.test.n_permutations)
        doubt = f"In these rows losses differ more than those of random groups would (p {p_value})."
    return f"With {count}, no difference between the groups is shown on new rows.", doubt


def _gap(result: MethodResult) -> tuple[list[str], str]:
    """Between which groups losses differ most clearly on new rows, and by how much."""
    losses = result.corrected_loss
    pair = losses.shown_pair or losses.between
    return _names(pair), with_interval(losses.pairs[pair].joint)


def _turn(ordinary: MethodResult, other: MethodResult) -> str:
    """What a method does to the gap of losses, as far as intervals show it that hold together for all methods."""
    before, after = ordinary.corrected_loss, other.corrected_loss
    if after.shown_pair is not None and before.shown_pair == after.shown_pair[::-1]:
        return "reverses"
    (least, most), (new_least, new_most) = _bounds(before), _bounds(after)
    return "widens" if new_least > most else "narrows" if new_most < least else ""


def _bounds(losses: Any) -> tuple[float, float]:
    """Between which values the largest difference of losses lies."""
    pairs = losses.pairs.values()
    return max(one.joint_low for one in pairs), max(max(one.joint_high, -one.joint_low) for one in pairs)


def _remedy(found: Comparison, ordinary: MethodResult, other: MethodResult) -> str:
    """What another method is shown to do to a difference of losses, and to the errors of groups."""
    name, changes = other.method, _claims(found, "change", other)
    parts = [
        f"{verb} the error of {' and '.join(_names(labels))}"
        for verb, up in (("lowers", False), ("raises", True))
        if (labels := [claim.groups[0] for claim in changes if (claim.value > 0) == up][:_SHOWN_GROUPS])
    ]
    change = " and ".join(parts) or "is not shown to change the error of any group"
    if not _claims(found, "losses", ordinary):
        return f"{name} {change}."
    verb = _turn(ordinary, other)
    if verb == "narrows" and not _claims(found, "losses", other):
        return f"With {name} no difference of losses is shown. It {change}."
    return f"{name} {verb or 'is not shown to change'} that difference: it {change}."


def _numbers(found: Comparison, ordinary: MethodResult, others: Sequence[MethodResult]) -> list[list[str]]:
    """Title, number and meaning: the differences of losses before and after, the largest rise of an error."""
    rows = []
    for result in (ordinary, *others):
        (high, low), gap = _gap(result)
        meaning = f"{high} more than {low}" if _claims(found, "losses", result) else "none is shown"
        rows.append([f"Difference of losses, {result.method}", gap, meaning])
    for other in others:
        label, rise = max(other.change.items(), key=lambda item: item[1])
        rows.append([f"Price: error of “{label_text(label)}”", signed(rise.joint), f"of all rows {_rise(other)}"])
    return rows


def _readable(found: Comparison, results: Sequence[MethodResult]) -> str:
    """From which scores the group can be read off."""
    parts: dict[bool, list[str]] = {True: [], False: []}
    for result in results:
        if not result.nothing_to_compare:
            parts[bool(_claims(found, "readable", result))].append(f"{result.method} {fixed(result.held_out.auc, 2)}")
    if not parts[True]:
        return "That the group can be predicted from the scores of new rows is not shown for any method."
    said = f"The group can be predicted from the scores of new rows (AUC, 0.5 is chance: {', '.join(parts[True])})"
    return f"{said}; not shown for {', '.join(parts[False])}." if parts[False] else f"{said}."


def _advice(found: Comparison, ordinary: MethodResult, present: dict[str, MethodResult]) -> str:
    losses, errors, readable = (_claims(found, kind, ordinary) for kind in ("losses", "errors", "readable"))
    if not (losses or errors or readable):
        return "No reason to leave ordinary PCA is shown; small groups and wide intervals can hide one."
    said = []
    if losses:
        verb = "use" if "FairPCA" in present else "compare"
        said.append(f"To make the largest loss of a group as small as possible, {verb} FairPCA.")
    elif errors:
        said.append("If the errors themselves should be closer, try criterion='error' of FairPCA.")
    if readable:
        parity = [one for one in present.values() if one.family == "parity" and not one.nothing_to_compare]
        hidden = [one for one in parity if not _claims(found, "readable", one)]
        listed = " or ".join(f"{one.method} ({percent(one.explained_variance)} of the variance)" for one in hidden)
        if hidden:
            said.append(f"If the scores should not reveal the group, consider {listed}.")
        elif parity:
            said.append("None of the methods for parity keeps the group from being read off the scores.")
        else:
            said.append("If the scores should not reveal the group, compare ParityPCA and MMDFairPCA.")
    return " ".join(said)


def _table(
    found: Comparison, ordinary: MethodResult, others: Sequence[MethodResult]
) -> tuple[list[str], list[list[str]]]:
    """Each group's error on new rows, and how the other method changes it; then all rows together."""
    results = [ordinary, *others]
    change = results[-1].change.by_group  # zeros, if there is no other method
    kept = sorted(found.groups, key=lambda label: -abs(change[label]))[:_SHOWN_GROUPS]
    heads = [
        components_text(ordinary.n_components),
        "rows",
        *(one.method for one in results),
        *["change"] * len(others),
    ]
    rows = [
        [label_text(label), f"{count:,}", *(number(one.error[label]) for one in results)]
        + [signed(one.change[label].joint) for one in others]
        for label, count in zip(found.groups, found.counts, strict=True)
        if label in kept
    ]
    if more := len(found.groups) - len(kept):
        rows.append([f"({more} more)", *[""] * (len(heads) - 1)])
    together = [number(one.error.overall) for one in results]
    return heads, [*rows, ["all rows", f"{sum(found.counts):,}", *together, *map(_rise, others)]]


def _rise(result: MethodResult) -> str:
    """By how much the error of all rows together changes."""
    change = result.change.overall
    return f"{'+' if change > 0 else ''}{number(change)}"


def _names(labels: Sequence[Any]) -> list[str]:
    return [f"“{label_text(label)}”" for label in labels]


def signed(one: Estimate) -> str:
    """A change with its interval: ``+1.20 (1.02 to 1.38)``."""
    return f"{'+' if one > 0 else ''}{with_interval(one)}"
