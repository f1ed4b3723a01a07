"""The summary in words: what the values mean for a decision, without claiming more than they show.

Two statements are kept apart: whether a random division into groups of these sizes would show the losses (from the
permutation test), and whether the losses differ on new rows (from the interval of the corrected difference).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fairpca._display import fixed, number, with_interval
from fairpca._labels import label_text
from fairpca.audit.report._feature_words import influence_sentences, proxy_sentence
from fairpca.inference._claims import components_text
from fairpca.metrics import Estimate
from fairpca.model_selection import Comparison, MethodResult

__all__ = ["outvoted_sentence", "sample_sentence", "summary"]

#: Differences below this share of the error are not worth a sentence.
_NEGLIGIBLE = 1e-6
#: For more groups than this, only the largest and the smallest value are reported.
_FEW_GROUPS = 3


def sample_sentence(size: int, total: int) -> str:
    """Which values of a streamed file describe all rows, and which a sample."""
    return (
        "Losses in the sample and variance are those of all rows; values on new rows, intervals and p-values are "
        f"computed on a random sample of {size:,} of {total:,} rows."
    )


def summary(comparison: Comparison, d: int) -> list[str]:
    """Sentences about one number of components, the most important first."""
    present = {result.method: result for result in comparison.results if result.n_components == d}
    ordinary = present.get("PCA")
    if ordinary is None:
        return []
    sentences = [
        _losses(ordinary, comparison),
        _chance(comparison, d),
        _shown(comparison, "losses", ordinary),
        *influence_sentences(comparison, d),
        outvoted_sentence(comparison),
        _shown(comparison, "errors", ordinary),
        *(_balanced(ordinary, present[name], comparison) for name in ("FairPCA", "RobustFairPCA") if name in present),
        *_readable(ordinary, present.values()),
        proxy_sentence(comparison),
        *ordinary.new_rows.remarks,
    ]
    return [sentence for sentence in sentences if sentence]


def _losses(ordinary: MethodResult, comparison: Comparison) -> str:
    kept = fixed(100 * ordinary.explained_variance, 1)
    start = f"Ordinary PCA with {components_text(ordinary.n_components)} keeps {kept}\u00a0% of the variance. "
    values = ordinary.loss.by_group
    if ordinary.new_rows.keeps_everything:
        return f"Ordinary PCA with {components_text(ordinary.n_components)} keeps everything, so nothing is compared."
    if max(values.values()) <= _NEGLIGIBLE * max(ordinary.error.overall, 1e-300):
        return start + "Sharing the components costs no group anything: all losses are zero."
    expected = _by_group(comparison.expected_losses[ordinary.n_components], comparison, sizes=False)
    return (
        f"{start}Loss in the sample (shortfall against components fitted to the group's own rows, overfitting "
        f"included): {_by_group(values, comparison)}. Random groups of these sizes show {expected} on average."
    )


def _chance(comparison: Comparison, d: int) -> str:
    if comparison.test is None:
        return (
            "Rows repeat persons whose identities are not known: no p-value can be given, and the intervals are too "
            "short, so nothing is claimed."
        )
    claims = comparison.of_kind("chance", "PCA", d)
    return claims[0].text if claims else comparison.test[d].sentence


def _shown(comparison: Comparison, kind: str, ordinary: MethodResult) -> str:
    """A claim about ordinary PCA, or that nothing is shown."""
    if ordinary.new_rows.keeps_everything:
        return ""
    claims = comparison.of_kind(kind, "PCA", ordinary.n_components)
    if claims:
        return claims[0].text
    values = ordinary.corrected_loss if kind == "losses" else ordinary.error
    high, low = map(label_text, values.between)
    return (
        f"On new rows no difference of {kind} is shown: “{high}” {number(values[values.between[0]])}, “{low}” "
        f"{number(values[values.between[1]])}, difference {with_interval(values.gap.joint)}. That does not prove that "
        "they are equal."
    )


def outvoted_sentence(comparison: Comparison) -> str:
    """Why a ratio of losses is not informative."""
    small, large = min(comparison.counts), max(comparison.counts)
    if large <= 1.2 * small:
        return ""
    start = "A smaller group has less weight in the shared components, corrected losses included"
    if len(comparison.counts) > 2:
        return start + ": compare a loss with what random groups of its size show; do not divide one loss by another."
    return (
        f"{start}: two groups of these sizes that differ a little have losses of about {(large / small) ** 2:.1f} to 1 "
        "from their sizes alone, so do not divide one loss by another."
    )


def _balanced(ordinary: MethodResult, result: MethodResult, comparison: Comparison) -> str:
    changes = _changes(result, comparison)
    said = [_optimum(ordinary, result)] if result.method == "FairPCA" else []
    remark = f"{result.method}: {result.gap_remark}" if result.gap_remark else ""
    return " ".join([*said, changes, remark]).strip()


def _optimum(ordinary: MethodResult, balanced: MethodResult) -> str:
    before, after = (max(e.value for e in result.loss.by_group.values()) for result in (ordinary, balanced))
    cost = 100 * (ordinary.explained_variance - balanced.explained_variance)
    if before - after <= _NEGLIGIBLE * max(before, 1e-300):
        return "FairPCA cannot lower the largest loss in the sample: ordinary PCA already reaches the optimum."
    proven = balanced.certificate is not None and balanced.certificate <= 1e-6
    proof = ", the least possible for these rows (proven)" if proven else ""
    points = "less than 0.1 points" if cost < 0.1 else f"{fixed(cost, 1)} points"
    return (
        f"In the sample FairPCA lowers the largest loss from {number(before)} to {number(after)}{proof}, for {points} "
        "of explained variance; it would lower it for random groups too."
    )


def _changes(result: MethodResult, comparison: Comparison) -> str:
    """What the method is shown to change in the errors of groups on new rows."""
    claims = comparison.of_kind("change", result.method, result.n_components)
    start = f"On new rows, against ordinary PCA, {result.method}"
    if not claims:
        return f"{start} is not shown to change the error of any group."
    parts = [_change(claim.groups[0], Estimate(claim.value, claim.low, claim.high)) for claim in claims[:_FEW_GROUPS]]
    more = len(claims) - len(parts)
    others = len(comparison.groups) - len(claims)
    ends = ([f"changes that of {more} more"] if more else []) + (["of no other group"] if others else [])
    return f"{start} {_listed([*parts, *ends])}."


def _change(label: Any, one: Estimate) -> str:
    verb = "raises" if one > 0 else "lowers"
    return f"{verb} the error of “{label_text(label)}” by {with_interval(one if one > 0 else -one)}"


def _readable(ordinary: MethodResult, results: Iterable[MethodResult]) -> list[str]:
    """How well gradient boosting distinguishes the groups by the scores of new rows."""
    before = ordinary.held_out
    found = f"AUC {fixed(before.auc, 3)}; 19 of 20 random divisions stay under {fixed(before.auc_random, 3)}"
    if not before.readable:
        return [
            "On new rows gradient boosting does not predict the group from the scores of ordinary PCA any better "
            f"than random groups ({found})."
        ]
    sentences = [
        "The scores of ordinary PCA carry information about the group: on new rows gradient boosting predicts it from "
        f"them ({found})."
    ]
    return sentences + [_parity(ordinary, result) for result in results if result.family == "parity"]


def _parity(ordinary: MethodResult, result: MethodResult) -> str:
    cost = max(100 * (ordinary.explained_variance - result.explained_variance), 0.0)
    auc, level = result.held_out.auc, result.held_out.auc_random
    price = f"for {fixed(cost, 1)} points of explained variance"
    if not result.held_out.readable:
        return f"{result.method} brings that to {fixed(auc, 3)}, no more than random groups, {price}."
    found = f"{fixed(auc, 3)}, still more than random groups ({fixed(level, 3)}), {price}."
    if auc >= ordinary.held_out.auc:
        return f"{result.method} does not lower it: {found}"
    return f"{result.method} brings that to {found}"


def _by_group(values: Mapping[Any, float], comparison: Comparison, *, sizes: bool = True) -> str:
    """``2.86 for “female” (310 rows) and 0.327 for “male” (690 rows)``; for many groups, the two extremes."""
    counts = dict(zip(comparison.groups, comparison.counts, strict=True))

    def text(label: Any) -> str:
        rows = f" ({counts[label]:,} rows)" if sizes else ""
        return f"{number(values[label])} for “{label_text(label)}”{rows}"

    if len(values) <= _FEW_GROUPS:
        return _listed([text(label) for label in values])
    order = sorted(values, key=values.__getitem__)
    return f"from {text(order[0])} to {text(order[-1])}"


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
