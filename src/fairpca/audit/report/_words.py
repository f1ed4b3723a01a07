"""What a report says beside its verdict: definitions, what the values rest on, and what they do not show."""

from __future__ import annotations

from typing import Any

from fairpca._display import fixed, number, p_text
from fairpca._labels import label_text
from fairpca.inference import Dominance
from fairpca.model_selection import Comparison
from fairpca.model_selection._features import NAMED

__all__ = [
    "TERMS",
    "adjusted_p",
    "few_rows_sentence",
    "influence_sentences",
    "limits",
    "outvoted_sentence",
    "proxy_rows",
    "proxy_sentence",
    "sample_sentence",
]

#: Values from fewer rows are never shown without their number.
_FEW = 20
#: Statements about influence that are written out; the others are counted.
_STATED = 4

#: What the words mean, in the order in which a reader meets them.
TERMS = {
    "error": "mean squared distance between rows and their reconstruction",
    "loss": "the part of a group's error that components of its own would save",
    "loss on new rows": """The loss estimated for new rows (the corrected loss), against the best components of the
group's population. It is above zero for random groups too: interpret only differences.""",
    "loss in the sample": """The loss on the rows used in fitting. Components of a group's own overfit its rows, more so
in small groups, so that random groups show losses as well: what is expected by chance (do not subtract it).""",
    "new rows": "Further rows from the same source, estimated by leaving rows out of the fit.",
    "interval": """At the confidence level given under “How to repeat this”. Those of differences and changes hold for
all of them together: all groups, methods and numbers of components. Those of single groups each hold alone. One that
reaches zero does not show that nothing differs.""",
    "adjusted p": """The share of random divisions into groups of these sizes in which some group, at some number of
components, exceeds its own average over random divisions as strongly. It is not the probability that the groups do not
differ.""",
    "held out": "Rows for the tables on decisions and on what scores reveal: not used in the fits that they judge.",
    "AUC": """How well gradient boosting predicts the group from the scores of held-out rows: the probability that a
random row of one group has a higher score than one of the other. 0.5: not at all, 1: perfectly.""",
    "random": """The level that 19 of 20 random divisions into groups stay under, in all methods and numbers of
components together. Values below it are consistent with chance.""",
    "MMD²": "The squared distance between the groups' distributions of scores.",
    "adversary": """How well a linear classifier, trained to distinguish the groups by their scores, separates them on
held-out rows. 0: not at all, 1: perfectly.""",
    "certificate": """How far the method's own objective on these rows can be from the best possible value. It says
nothing about another objective, nor about new rows.""",
    "balanced quality": """FairPCA, RobustFairPCA: where the components stand in for the data, as in compression, plots,
or features for later work, and no group should be represented worse than necessary.""",
    "parity": """ParityPCA, MMDFairPCA: where decisions are based on the scores, which should reveal as little as
possible about the group. One does not give the other, and neither makes a decision fair: each balances a stated
quantity between the stated groups.""",
}

_LIMITS = """\
The audit describes these rows, and further rows from the same source. If the rows were selected, or were recorded \
differently for different groups, it does not show that.
It concerns PCA and what follows from its scores. It does not show whether a decision is lawful or justified, and no \
value here means that a method “is fair”.
“No difference is shown” is not “there is no difference”: small groups and wide intervals can hide one.
Of many intervals that each hold alone, some miss the true value.
“Optimal” and “proven” are statements about a method's own objective on these rows, not about new rows, another \
objective or another choice of features.
Components, losses and errors depend on how columns were encoded and scaled, and on the numbers of components chosen.
AUC, MMD², adversary and proxies use at most 2,000 training and 2,000 held-out rows, and the classifiers that were \
tried. Others might find more; an AUC below the level of random groups is not a proof.
Proxies are judged one feature at a time and all together; what two features reveal only in combination is seen in the \
AUC of all together alone.
MMDFairPCA is fitted to at most 700 rows and judged on one held-out part; its optimum is local."""


def limits(comparison: Comparison) -> list[str]:
    """What the audit does not show, one statement each."""
    lines = _LIMITS.splitlines()
    if comparison.label is not None:
        lines.append(
            "Decisions are those of a logistic regression trained here on the scores, not of a system in use. Rates "
            f"are shown with their rows; differences that would rest on fewer than {_FEW} rows of a class are left out."
        )
    if comparison.settings.get("repeated_rows"):
        lines.append(
            "Rows repeat persons whose identities are not known: intervals are too short, and p-values left out."
        )
    elif not comparison.settings.get("clusters"):
        lines.append(
            "Rows are taken as independent. If persons have several rows, p-values and intervals are too small."
        )
    return lines


def sample_sentence(comparison: Comparison) -> str:
    """Which values of a streamed file describe all rows, and which a sample."""
    if comparison.n_sampled is None:
        return ""
    return (
        "Losses in the sample and variance are those of all rows; values on new rows, intervals and p-values are "
        f"computed on a random sample of {comparison.n_sampled:,} of {comparison.n_samples:,} rows."
    )


def outvoted_sentence(comparison: Comparison) -> str:
    """Why a ratio of losses is not informative."""
    small, large = min(comparison.counts), max(comparison.counts)
    if large <= 1.2 * small:
        return ""
    return (
        "A smaller group has less weight in the shared components, which makes its loss larger by itself: compare "
        "it with what random groups of its size show; do not divide one loss by another."
    )


def adjusted_p(comparison: Comparison, d: int) -> list[str]:
    """Adjusted p-values of the groups as text; none if no test was made."""
    if comparison.test is None:
        return []
    tests, count = comparison.test[d].by_group.values(), comparison.test.n_permutations
    return [p_text(one.p_value, count).removeprefix("= ") for one in tests]


def proxy_sentence(comparison: Comparison) -> str:
    """Whether the features reveal the group, each alone and all together."""
    found = comparison.features
    if found is None:
        return ""
    together, best = found.together, found.proxies.found
    said = (
        f"All features together {'predict' if together.readable else 'are not shown to predict'} the group on held-out "
        f"rows: AUC {fixed(together.auc, 3)} ({_range(together)}; {_pair(together.groups)}, "
        f"{found.smallest(together.groups):,} rows); random groups stay under {fixed(together.level, 3)}."
    )
    if not best:
        return f"{said} No feature alone does better than the best one with random groups."
    return (
        f"{said} {len(best)} of {len(found.proxies.readings)} features alone {'does' if len(best) == 1 else 'do'} "
        f"better than the best one with random groups (AUC {fixed(found.proxies.level, 3)}), above all "
        f"{', '.join(one.by for one in best[:3])}."
    )


def proxy_rows(comparison: Comparison) -> list[list[str]]:
    """Feature, AUC, interval, groups and rows of the smaller one, for the features that reveal the group most."""
    found = comparison.features
    if found is None:
        return []
    return [
        [one.by, fixed(one.auc, 3), _range(one), _pair(one.groups), f"{found.smallest(one.groups):,}"]
        for one in found.proxies.found[:NAMED]
    ]


def _range(one: Any) -> str:
    return f"{fixed(one.low, 3)} to {fixed(one.high, 3)}"


def _pair(groups: tuple[Any, Any]) -> str:
    """``Female against Male``; ``Asian against the rest``."""
    first, second = groups
    return f"{label_text(first)} against {'the rest' if second == 'rest' else label_text(second)}"


def influence_sentences(comparison: Comparison, d: int) -> list[str]:
    """What most of a group's loss rests on, where that is a rare value or a handful of rows."""
    found = () if comparison.features is None else comparison.features.influence.get(d, ())
    said, more = [_influence(one) for one in found[:_STATED]], len(found) - _STATED
    return [*said, f"{more} more such statements are in the JSON output."] if more > 0 else said


def _influence(one: Dominance) -> str:
    rows = f"{one.rows} row{'' if one.rows == 1 else 's'} of {one.of_rows:,}"
    what, without = (
        (rows, "it" if one.rows == 1 else "them")
        if one.feature is None
        else (f"“{one.feature}”, which {one.rows} of {one.of_rows:,} rows have", "this feature")
    )
    return (
        f"Most of the loss of “{label_text(one.group)}” rests on {what}: in the sample {number(one.loss)}, without "
        f"{without} {number(one.loss_without)}."
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
