"""Sentences about the features: which of them reveal the group, and what a loss rests on."""

from __future__ import annotations

from typing import Any

from fairpca._display import fixed, number
from fairpca._labels import label_text
from fairpca.inference import Dominance
from fairpca.model_selection import Comparison
from fairpca.model_selection._features import NAMED, FeatureStudy

__all__ = ["few_rows_sentence", "influence_sentences", "proxy_rows", "proxy_sentence"]

#: Values from fewer rows are never shown without their number.
_FEW = 20
#: Statements about influence that are written out; the others are counted.
_STATED = 4


def proxy_sentence(comparison: Comparison) -> str:
    """Whether the features reveal the group, each alone and all together."""
    found = comparison.features
    if found is None:
        return ""
    together, best = found.together, found.proxies.found
    interval = f"{fixed(together.low, 3)} to {fixed(together.high, 3)}{_between(found, together)}"
    values = f"AUC {fixed(together.auc, 3)} ({interval}; random groups stay under {fixed(together.level, 3)})"
    verb = "predict" if together.readable else "do not predict"
    start = f"All features together {verb} the group on held-out rows better than chance: {values}."
    if not best:
        return f"{start} No feature alone does better than the best one with random groups."
    count = "1 feature" if len(best) == 1 else f"{len(best)} of {len(found.proxies.readings)} features"
    names = ", ".join(f"{one.by} ({fixed(one.auc, 3)})" for one in best[:3])
    return (
        f"{start} {count} alone {'does' if len(best) == 1 else 'do'} better than the best one with random groups "
        f"(AUC {fixed(found.proxies.level, 3)}); the strongest: {names}."
    )


def proxy_rows(comparison: Comparison) -> list[list[str]]:
    """Feature, AUC, interval, groups and rows of the smaller one, for the features that reveal the group most."""
    found = comparison.features
    if found is None:
        return []
    return [
        [one.by, fixed(one.auc, 3), f"{fixed(one.low, 3)} to {fixed(one.high, 3)}", pair_text(one.groups),
         f"{found.smallest(one.groups):,}"]
        for one in found.proxies.found[:NAMED]
    ]  # fmt: skip


def pair_text(groups: tuple[Any, Any]) -> str:
    """``Female against Male``; ``Asian against the rest``."""
    first, second = groups
    return f"{label_text(first)} against {'the rest' if second == 'rest' else label_text(second)}"


def _between(found: FeatureStudy, one: Any) -> str:
    if len(found.rows) == 2 and min(found.rows.values()) >= _FEW:
        return ""
    return f"; {pair_text(one.groups)}, {found.smallest(one.groups):,} rows"


def influence_sentences(comparison: Comparison, d: int) -> list[str]:
    """What most of a group's loss rests on, where that is a rare value or a handful of rows."""
    found = () if comparison.features is None else comparison.features.influence.get(d, ())
    said = [_influence(one) for one in found[:_STATED]]
    more = len(found) - len(said)
    return [*said, f"{more} more such statements are in the JSON output."] if more > 0 else said


def _influence(one: Dominance) -> str:
    values = f"in the sample {number(one.loss)}, without {{}} {number(one.loss_without)}"
    if one.feature is None:
        rows = "1 row" if one.rows == 1 else f"{one.rows} rows"
        return (
            f"Most of the loss of “{label_text(one.group)}” rests on {rows} of {one.of_rows:,}: "
            f"{values.format('it' if one.rows == 1 else 'them')}."
        )
    return (
        f"Most of the loss of “{label_text(one.group)}” rests on “{one.feature}”, which {one.rows} of {one.of_rows:,} "
        f"rows have: {values.format('this feature')}."
    )


def few_rows_sentence(comparison: Comparison) -> str:
    """Which groups have so few rows among those compared that values about them mean little."""
    rows = {} if comparison.features is None else comparison.features.rows
    few = [f"{label_text(label)} ({count})" for label, count in rows.items() if count < _FEW]
    if not few:
        return ""
    return (
        f"Fewer than {_FEW} of the {sum(rows.values()):,} held-out rows compared by AUC, MMD² and adversary: "
        f"{', '.join(few)}. A value that rests on such a group is uncertain."
    )
