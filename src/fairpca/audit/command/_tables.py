"""Comparisons as text for a terminal: one screen, and tables of all values."""

from __future__ import annotations

import math
import textwrap
from typing import Any

from fairpca._display import fixed, number, percent, text_table, with_interval
from fairpca._labels import label_text
from fairpca.audit.report._verdict import signed, verdict
from fairpca.audit.report._words import (
    TERMS,
    adjusted_p,
    few_rows_sentence,
    influence_sentences,
    outvoted_sentence,
    proxy_rows,
    proxy_sentence,
    sample_sentence,
)
from fairpca.metrics import GroupValues
from fairpca.model_selection import Comparison, MethodResult

__all__ = ["WIDTH", "clean", "details_text", "screen_text"]

#: Of sentences; tables of all values may be wider.
WIDTH = 79
_LABEL_WIDTH = 14
_NAME_WIDTH = 40
_WHOLE_WORDS: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
_EXPLAINED = ("loss in the sample", "loss on new rows", "new rows", "adjusted p")


def clean(text: str, limit: int = _LABEL_WIDTH) -> str:
    """A label that is safe to print: control characters replaced, long labels truncated."""
    safe = "".join(character if character.isprintable() else "?" for character in text)
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"


def _wrapped(*texts: str) -> list[str]:
    parts = (clean(" ".join(text.split()), 3000) for text in texts)
    return [line for part in parts for line in textwrap.wrap(part, WIDTH, subsequent_indent="  ", **_WHOLE_WORDS)]


def screen_text(found: Comparison) -> str:
    """What a comparison comes to, on one screen: a few sentences and one small table."""
    said = verdict(found)
    if said is None:
        return ""
    lines = [*_wrapped(f"{said.finding} {said.doubt}", said.remedy), ""]
    if said.rows:
        table = text_table(said.heads, [[clean(row[0]), *row[1:]] for row in said.rows])
        level = f"{100 * found.settings['confidence']:g} %"
        lines += [f"Error on new rows: {TERMS['error']}", *table, "", f"Loss: {TERMS['loss']}"]
        lines += _wrapped(*(f"{title}: {text}, {meaning}" for title, text, meaning in said.numbers))
        lines += [f"In brackets: {level} intervals, for all of these together", ""]
    lines += _wrapped(said.readable, said.advice, sample_sentence(found))
    return "\n".join(lines + [clean(f"Left out: {reason}", WIDTH) for reason in found.omitted])


def details_text(found: Comparison) -> str:
    """Each group under ordinary PCA, every method on new rows, and what scores and features reveal."""
    level = f"{100 * found.settings['confidence']:g} %"
    single = dict.fromkeys(result.method for result in found.shown if result.new_rows.n_folds == 1)
    split = f"{', '.join(single)}: on one held-out part; the others by cross-validation. " if single else ""
    lines = [
        f"Each group under ordinary PCA (in brackets: {level} intervals, each alone)",
        *_by_group(found),
        "",
        *_wrapped(*_said(found)),
        "",
        *_wrapped(*(f"{word.capitalize()}: {TERMS[word]}" for word in _EXPLAINED), outvoted_sentence(found)),
        "",
        "Methods on new rows: change of each error against ordinary PCA, and the gap of losses "
        f"({level}, for all of these together)",
        *_methods(found),
        *_wrapped(f"{split}An interval that reaches zero does not show that nothing differs.", *found.remarks),
        "",
        "On rows that were not used in fitting (in brackets: the level that 19 of 20 random groups stay under in all "
        "of these)",
        *_held_out(found),
        *_wrapped(few_rows_sentence(found)),
        *_decisions(found),
        "",
        "Features that reveal the group, on held-out rows",
        *_wrapped(proxy_sentence(found)),
    ]
    if rows := [[clean(cell, _NAME_WIDTH) for cell in row] for row in proxy_rows(found)]:
        lines += text_table(["feature alone", "AUC", f"{level} interval", "groups", "fewest rows"], rows)
    return "\n".join([*lines, *_wrapped(*(f"Left out: {reason}" for reason in found.omitted))])


def _by_group(found: Comparison) -> list[str]:
    """Rows, error on new rows, loss in the sample, expected loss by chance, loss on new rows, p-value."""
    heads = ["d", "group", "rows", "held out", "error on new rows", "loss in sample", "expected by chance",
             "loss on new rows", *["adjusted p"] * (found.test is not None)]  # fmt: skip
    labels = [clean(label_text(label)) for label in found.groups]
    rows: list[list[str]] = []
    for result in found.shown:
        if result.method == "PCA":
            d = result.n_components
            columns = [
                [str(d), *[""] * (len(labels) - 1)],
                labels,
                [f"{count:,}" for count in found.counts],
                [f"{count:,}" for count in found.held_out_counts],
                map(with_interval, result.error.values()),
                map(number, result.loss.values()),
                map(number, found.expected_losses[d].values()),
                map(with_interval, result.corrected_loss.values()),
                *([adjusted_p(found, d)] if found.test is not None else []),
            ]
            rows += map(list, zip(*columns, strict=True))
    return text_table(heads, rows, left=2)


def _said(found: Comparison) -> list[str]:
    """Conclusions of the test and of the interval of the difference of losses, for each number of components."""
    lines = []
    for result in found.shown:
        if result.method == "PCA":
            d = result.n_components
            test = "No p-value." if found.test is None else found.test[d].sentence
            said = [test, result.new_rows.sentence, *result.new_rows.remarks, *influence_sentences(found, d)]
            lines.append(f"d = {d}: {' '.join(said)}")
    return lines


def _methods(found: Comparison) -> list[str]:
    few = len(found.groups) <= 3
    labels = [clean(label_text(label)) for label in found.groups]
    changes = [f"error {label}" for label in labels] if few else ["largest decrease", "largest increase"]
    rows = []
    for result in found.shown:
        ordered = list(zip(labels, result.change.values(), strict=True))
        if not few:
            ordered.sort(key=lambda item: item[1])
            ordered = [ordered[0], ordered[-1]]
        cells = [signed(one.joint) + ("" if few else f" {label}") for label, one in ordered]
        rows.append([
            *_head(result), *(["-"] * len(changes) if result.method == "PCA" else cells),
            with_interval(result.corrected_loss.gap.joint), percent(result.explained_variance),
        ])  # fmt: skip
    return text_table(["d", "method", *changes, "gap of losses", "variance in sample"], rows, left=2)


def _head(result: MethodResult) -> list[str]:
    return [str(result.n_components) if result.method == "PCA" else "", clean(result.method)]


def _held_out(found: Comparison) -> list[str]:
    several = len(found.groups) > 2
    labelled = any(result.held_out.accuracy is not None for result in found.shown)
    heads = ["d", "method", "variance", "AUC", "", *["between (rows)"] * several, "MMD²", "", "adversary", "",
             *["accuracy", ""] * labelled]  # fmt: skip
    rows = []
    for result in found.shown:
        one = result.held_out
        row = [*_head(result), percent(one.explained_variance), fixed(one.auc, 3), f"({fixed(one.auc_random, 3)})"]
        if several:
            pair = [clean(label_text(label)) for label in one.auc_between]
            row.append(f"{' / '.join(pair)} ({one.auc_rows:,})")
        row += [number(one.mmd2), f"({number(one.mmd2_random)})"]
        row += [fixed(one.adversary, 3), f"({fixed(one.adversary_random, 3)})"]
        rows.append([*row, *[percent(one.accuracy), f"({percent(one.baseline)})"] * labelled])
    note = (
        "Accuracy: of a logistic regression that predicts the label from the scores (in brackets: of always predicting "
        "the most frequent class)."
    )
    return [*text_table(heads, rows, left=2), *_wrapped(note) * labelled]


def _decisions(found: Comparison) -> list[str]:
    """Differences between groups in decisions, each with its interval and the rows of the smallest group behind it."""
    decided = [(result, result.held_out.decisions) for result in found.shown if result.held_out.decisions is not None]
    if not decided:
        return []
    positive = clean(str(decided[0][1].positive))
    heads = ["d", "method", "Δ DP, all rows", f"Δ EOP, rows of class {positive!r}", "Δ EOD, either class"]
    rows = [[*_head(one), *map(_difference, made.rates.differences.values())] for one, made in decided]
    return [
        "",
        f"Decisions for the class {positive!r}: largest difference between groups (95 %, for all of these together; "
        "fewest rows)",
        *text_table(heads, rows, left=2),
    ]


def _difference(values: GroupValues) -> str:
    """A difference between groups in decisions, or why there is none."""
    gap = values.gap.joint
    if math.isnan(gap):
        return f"too few rows ({gap.rows})"
    return f"{fixed(gap, 3)} ({fixed(gap.low, 3)} to {fixed(gap.high, 3)}; {gap.rows:,})"
