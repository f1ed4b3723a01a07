"""Comparisons as text for a terminal."""

from __future__ import annotations

from typing import Any

from fairpca.model_selection import Comparison, MethodResult
from fairpca.report import number, sample_sentence

__all__ = ["clean", "comparison_text", "format_table"]

_LABEL_WIDTH = 14


def clean(text: str, limit: int = _LABEL_WIDTH) -> str:
    """A label as it may be printed: control characters replaced, long ones cut."""
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


def comparison_text(found: Comparison, *, full: bool = False) -> str:
    """Two tables: quality for each group, and what can be read off the scores of new rows."""
    shown = found.dimensions if full else _spread(found.dimensions)
    results = [result for result in found.results if result.n_components in shown]
    percent = f"{100 * found.settings['confidence']:g} %"
    lines = [
        f"Quality for each group (in brackets: {percent} intervals of the gap)",
        *_quality(found, results),
        "",
        "On rows that were not used in fitting (in brackets: the level that 19 of 20 random groups stay under)",
        *_held_out(results),
    ]
    if len(shown) < len(found.dimensions):
        lines += ["", f"Shown: {_listed(shown)} of {_listed(found.dimensions)} components; --full-table prints all."]
    if found.n_sampled is not None:
        lines += ["", sample_sentence(found.n_sampled, found.n_samples)]
    lines += [f"Left out: {reason}" for reason in found.omitted]
    return "\n".join(lines)


def _quality(found: Comparison, results: list[MethodResult]) -> list[str]:
    labels = [clean(_label(label)) for label in found.groups]
    if len(labels) > 3:  # too wide for a terminal: the worst and the best of them
        heads = [
            "d",
            "method",
            "largest error",
            "smallest",
            "largest loss",
            "smallest",
            "of group",
            "gap of losses",
            "",
            "variance",
        ]
    else:
        heads = [
            "d",
            "method",
            *(f"error {label}" for label in labels),
            *(f"loss {label}" for label in labels),
            "gap of losses",
            "",
            "variance",
        ]
    rows = []
    for result in results:
        if len(labels) > 3:
            figures = [*_extremes(result.error), *_extremes(result.loss), clean(_label(result.loss.worst))]
        else:
            figures = [number(e.value) for kind in (result.error, result.loss) for e in kind.by_group.values()]
        gap = result.loss.gap
        interval = f"[{number(gap.low)}, {number(gap.high)}]"
        rows.append([*_head(result), *figures, number(gap.value), interval, f"{result.explained_variance:.1%}"])
    return format_table(heads, rows, left=2)


def _held_out(results: list[MethodResult]) -> list[str]:
    optional = [
        ("accuracy", "accuracy"),
        ("demographic_parity", "Δ DP"),
        ("equal_opportunity", "Δ EOP"),
        ("equalized_odds", "Δ EOD"),
    ]
    shown = [(name, head) for name, head in optional if any(getattr(r.held_out, name) is not None for r in results)]
    heads = ["d", "method", "variance", "MMD²", "", "adversary", "", *(head for _, head in shown)]
    rows = []
    for result in results:
        figures = result.held_out
        row = [*_head(result), f"{figures.explained_variance:.1%}"]
        row += [_number(figures.mmd2), f"({_number(figures.mmd2_random)})"]
        row += [f"{figures.adversary:.3f}", f"({figures.adversary_random:.3f})"]
        row += [_share(name, getattr(figures, name)) for name, _ in shown]
        rows.append(row)
    return format_table(heads, rows, left=2)


def _head(result: MethodResult) -> list[str]:
    first = result.method == "PCA"
    return [str(result.n_components) if first else "", clean(result.method)]


def _extremes(estimates: Any) -> list[str]:
    values = [estimate.value for estimate in estimates.by_group.values()]
    return [number(max(values)), number(min(values))]


def _number(value: float | None) -> str:
    return "-" if value is None else number(value)


def _share(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1%}" if name == "accuracy" else f"{value:.3f}"


def _label(label: Any) -> str:
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def _spread(numbers: list[int]) -> list[int]:
    """At most three: an early one, the middle, the last."""
    if len(numbers) <= 3:
        return numbers
    return list(dict.fromkeys([numbers[1], numbers[(len(numbers) - 1) // 2], numbers[-1]]))


def _listed(numbers: list[int]) -> str:
    consecutive = len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1))
    return f"{numbers[0]}-{numbers[-1]}" if consecutive else ", ".join(map(str, numbers))
