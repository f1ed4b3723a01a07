"""Comparisons as text for a terminal."""

from __future__ import annotations

import math
import textwrap
from typing import Any

from fairpca._display import fixed, number, p_text, percent, with_interval
from fairpca._labels import label_text
from fairpca.audit.report import outvoted_sentence, sample_sentence
from fairpca.audit.report._feature_words import few_rows_sentence, influence_sentences, proxy_rows, proxy_sentence
from fairpca.audit.report._verdict import DEFINITIONS, verdict
from fairpca.metrics import GroupValues
from fairpca.model_selection import Comparison, MethodResult

__all__ = ["clean", "details_text", "format_table", "screen_text"]

_LABEL_WIDTH = 14
_WIDTH = 112
_CHANCE = (
    "New rows: further rows from the same source, estimated by leaving rows out. Expected by chance: components fitted "
    "to one group alone overfit its rows, more so in small groups, so that random groups show losses as well; do not "
    "subtract it. Corrected loss: the estimated shortfall against the best components of the group's population; it is "
    "above zero for random groups too, so interpret only differences."
)
_NO_IDENTITIES = "No p-value."


def clean(text: str, limit: int = _LABEL_WIDTH) -> str:
    """A label that is safe to print: control characters replaced, long labels truncated."""
    safe = "".join(character if character.isprintable() else "?" for character in text)
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"


def format_table(heads: list[str], rows: list[list[str]], left: int = 1) -> list[str]:
    """Columns as wide as their contents; the first ``left`` of them aligned left."""
    widths = [max(len(row[j]) for row in [heads, *rows]) for j in range(len(heads))]
    return [
        "  ".join(
            cell.ljust(width) if j < left else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [heads, *rows]
    ]


def screen_text(found: Comparison) -> str:
    """What an audit comes to, on one screen: a few sentences and one small table."""
    said = verdict(found)
    if said is None:
        return details_text(found)
    table = format_table(said.heads, [[clean(row[0]), *row[1:]] for row in said.rows])
    below = [DEFINITIONS, *said.below]
    if found.n_sampled is not None:
        below.append(sample_sentence(found.n_sampled, found.n_samples))
    above, below = ([line for text in part for line in _wrapped(clean(text, 2000))] for part in (said.above, below))
    return "\n".join([*above, "", *table, "", *below, *(f"Left out: {reason}" for reason in found.omitted)])


def details_text(found: Comparison) -> str:
    """Three tables: each group under ordinary PCA, every method on new rows, and what the scores reveal."""
    results, level = found.shown, f"{100 * found.settings['confidence']:g} %"
    lines = [
        f"Each group under ordinary PCA (in brackets: {level} intervals, each alone)",
        *_by_group(found, results),
        *_said(found),
    ]
    single = [r.method for r in results if r.new_rows.n_folds == 1]
    split = (
        f"{', '.join(dict.fromkeys(single))}: evaluated on one held-out part of the rows, the others by "
        "cross-validation on all rows."
    )
    lines += [
        "",
        "Methods on new rows: change of each error against ordinary PCA, gap of corrected losses "
        f"({level}, for all of these together)",
        *_methods(found, results),
        *(line for remark in found.remarks for line in _wrapped(clean(remark, 1000))),
        *_wrapped(
            f"{split if single else ''} An interval that reaches zero does not show that nothing differs.".strip()
        ),
        "",
        "On rows that were not used in fitting (in brackets: the level that 19 of 20 random groups stay under in all "
        "of these)",
        *_held_out(found, results),
        *_wrapped(few_rows_sentence(found)),
        *_accuracy_note(found, results),
        *_decisions(found, results),
        *_features(found),
    ]
    if found.n_sampled is not None:
        lines += ["", sample_sentence(found.n_sampled, found.n_samples)]
    lines += [f"Left out: {reason}" for reason in found.omitted]
    return "\n".join(lines)


def _by_group(found: Comparison, results: list[MethodResult]) -> list[str]:
    """Rows, error on new rows, loss, expected loss by chance, corrected loss, p-value."""
    tested = found.test is not None
    heads = [
        "d",
        "group",
        "rows",
        "held out",
        "error on new rows",
        "loss in sample",
        "expected by chance",
        "corrected loss",
    ]
    rows = []
    for result in results:
        if result.method != "PCA":
            continue
        d, figures = result.n_components, result.new_rows
        for position, (label, count, held_out) in enumerate(
            zip(found.groups, found.counts, found.held_out_counts, strict=True)
        ):
            row = [
                str(d) if position == 0 else "",
                clean(label_text(label)),
                f"{count:,}",
                f"{held_out:,}",
                with_interval(figures.error.by_group[label]),
                number(figures.loss.by_group[label].value),
                number(found.expected_losses[d][label]),
                with_interval(figures.corrected_loss.by_group[label]),
            ]
            rows.append([*row, *([_p_value(found, d, label)] if tested else [])])
    return format_table([*heads, *(["adjusted p"] if tested else [])], rows, left=2)


def _p_value(found: Comparison, d: int, label: Any) -> str:
    assert found.test is not None
    return p_text(found.test[d].by_group[label].p_value, found.test.n_permutations).removeprefix("= ")


def _said(found: Comparison) -> list[str]:
    """Conclusions of the test and of the corrected difference's interval, for each number of components."""
    lines = [""]
    for result in found.results:
        if result.method == "PCA":
            test = found.test and found.test[result.n_components].sentence
            said = [test or _NO_IDENTITIES, result.new_rows.sentence, *result.new_rows.remarks]
            said += influence_sentences(found, result.n_components)
            lines += _wrapped(f"d = {result.n_components}: {' '.join(clean(line, 300) for line in said)}")
    outvoted = outvoted_sentence(found)
    return [*lines, "", *_wrapped(f"{_CHANCE} {outvoted}".strip())]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent="  ", break_long_words=False)


def _methods(found: Comparison, results: list[MethodResult]) -> list[str]:
    few = len(found.groups) <= 3
    labels = [clean(label_text(label)) for label in found.groups]
    changes = [f"error {label}" for label in labels] if few else ["largest decrease", "largest increase"]
    heads = ["d", "method", *changes, "gap of corrected losses", "variance in sample"]
    rows = []
    for result in results:
        if result.method == "PCA":
            cells = ["-"] * len(changes)
        elif few:
            cells = [_signed(one.joint) for one in result.change.values()]
        else:
            order = sorted(result.change.items(), key=lambda item: item[1])
            cells = [f"{_signed(one.joint)} {clean(label_text(label))}" for label, one in (order[0], order[-1])]
        gap = with_interval(result.corrected_loss.gap.joint)
        rows.append([*_head(result), *cells, gap, percent(result.explained_variance)])
    return format_table(heads, rows, left=2)


def _signed(estimate: Any) -> str:
    return f"{'+' if estimate.value > 0 else ''}{with_interval(estimate)}"


def _held_out(found: Comparison, results: list[MethodResult]) -> list[str]:
    several = len(found.groups) > 2
    labelled = any(result.held_out.accuracy is not None for result in results)
    heads = [
        "d",
        "method",
        "variance",
        "AUC",
        "",
        *["between (rows)"] * several,
        "MMD²",
        "",
        "adversary",
        "",
        *["accuracy", ""] * labelled,
    ]
    rows = []
    for result in results:
        figures = result.held_out
        row = [*_head(result), percent(figures.explained_variance)]
        row += [fixed(figures.auc, 3), f"({fixed(figures.auc_random, 3)})", *_between(result) * several]
        row += [_number(figures.mmd2), f"({_number(figures.mmd2_random)})"]
        row += [fixed(figures.adversary, 3), f"({fixed(figures.adversary_random, 3)})"]
        row += [percent(figures.accuracy), f"({percent(figures.baseline)})"] * labelled
        rows.append(row)
    return format_table(heads, rows, left=2)


def _between(result: MethodResult) -> list[str]:
    """The groups that boosting tells apart best, and the held-out rows of the smaller one."""
    first, second = result.held_out.auc_between
    return [f"{clean(label_text(first))} / {clean(label_text(second))} ({result.held_out.auc_rows:,})"]


def _features(found: Comparison) -> list[str]:
    """Which features reveal the group, the strongest first."""
    rows = [[clean(feature, 40), *others] for feature, *others in proxy_rows(found)]
    lines = ["", "Features that reveal the group, on held-out rows", *_wrapped(proxy_sentence(found))]
    if not rows:
        return lines
    heads = ["feature alone", "AUC", "95 % interval", "groups", "fewest rows"]
    return [*lines, *format_table(heads, [[*row[:3], clean(row[3], 40), row[4]] for row in rows])]


def _head(result: MethodResult) -> list[str]:
    first = result.method == "PCA"
    return [str(result.n_components) if first else "", clean(result.method)]


def _number(value: float | None) -> str:
    return "-" if value is None else number(value)


def _accuracy_note(found: Comparison, results: list[MethodResult]) -> list[str]:
    if found.label is None or all(result.held_out.accuracy is None for result in results):
        return []
    return _wrapped(
        f"Accuracy: of a logistic regression that predicts {clean(found.label.name, 40)!r} from the scores (in "
        "brackets: of always predicting the most frequent class)."
    )


def _decisions(found: Comparison, results: list[MethodResult]) -> list[str]:
    """Differences between groups in decisions, each with its interval and the rows of the smallest group behind it."""
    decided = [(result, result.held_out.decisions) for result in results if result.held_out.decisions is not None]
    if not decided:
        return []
    positive = clean(str(decided[0][1].positive))
    of_label = "" if found.label is None else f" of {clean(found.label.name, 40)!r}"
    return [
        "",
        f"Decisions for the class {positive!r}{of_label}: largest difference between groups (95 %, for all "
        "of these together; fewest rows)",
        *format_table(
            ["d", "method", "Δ DP, all rows", f"Δ EOP, rows of class {positive!r}", "Δ EOD, either class"],
            [[*_head(one), *map(_difference, made.rates.differences.values())] for one, made in decided],
            left=2,
        ),
    ]


def _difference(values: GroupValues) -> str:
    """A difference between groups in decisions, or why there is none."""
    gap = values.gap.joint
    if math.isnan(gap):
        return f"too few rows ({gap.rows})"
    return f"{fixed(gap, 3)} ({fixed(gap.low, 3)} to {fixed(gap.high, 3)}; {gap.rows:,})"
