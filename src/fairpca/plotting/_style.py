"""Colours, markers, axes and curves shared by all figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from fairpca._labels import label_text
from fairpca._optional import require

__all__ = [
    "COLOURS",
    "DASHES",
    "PCA_COLOUR",
    "Display",
    "check_positions",
    "draw_group_curves",
    "method_style",
    "named_estimators",
    "plain",
    "shown_of",
    "style_of",
]

#: Okabe and Ito's colours, distinguishable with any kind of colour vision; markers and dashes repeat the distinction.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKERS = ("o", "s", "^", "D", "P", "v", "X")
#: Ordinary PCA, to which everything is compared, is black and hollow: here and in the report.
PCA_COLOUR = "#000000"
#: Inches: a column of text.
_SIZE = (5.2, 3.8)
#: Most markers on a line; more would hide it.
_MARKS = 12
DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1)))


def method_style(name: str, methods: Iterable[str]) -> dict[str, Any]:
    """Colour and marker of a method: PCA's own, or by its position among the other methods.

    Examples
    --------
    >>> from fairpca.plotting._style import method_style
    >>> style = method_style("PCA", ["FairPCA", "PCA"])
    >>> style["color"], style["markerfacecolor"], style["marker"]
    ('#000000', 'white', 'o')
    """
    if name == "PCA":
        return {"color": PCA_COLOUR, "marker": "o", "markerfacecolor": "white", "markeredgewidth": 2}
    return style_of([other for other in methods if other != "PCA"].index(name))


def style_of(position: int) -> dict[str, Any]:
    """Colour and marker of a group or method by its position."""
    return {"color": COLOURS[position % len(COLOURS)], "marker": MARKERS[position % len(MARKERS)]}


class Display:
    """Base class: draws on the given axes, or in a new figure that fits into a column of text."""

    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None) -> Self:
        """Draw on the given axes, or in a new figure; return the display."""
        if ax is None:
            ax = require("matplotlib.pyplot", "Drawing").subplots(figsize=_SIZE, layout="constrained")[1]
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(fontsize="small")
        return self

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError


def named_estimators(estimator: Any) -> dict[str, Any]:
    """A dict from names to estimators as it is; one estimator by the name of its class."""
    named = estimator if isinstance(estimator, dict) else {type(estimator).__name__: estimator}
    if not named:
        raise ValueError("estimator is an empty dict; give at least one estimator.")
    return named


def draw_group_curves(
    ax: Any, dimensions: np.ndarray, values: Mapping[str, np.ndarray], groups: Sequence[Any]
) -> list[Any]:
    """A line per group and method against the number of components; values have shape (n_dimensions, n_groups).

    Earlier groups have wider lines and larger markers, so that all are seen where they coincide. Ordinary PCA is dashed
    and hollow, here and in the report; other methods begin with a solid line.
    """
    lines, others = [], [method for method in values if method != "PCA"]
    solid_first = [dash for dash in DASHES if dash != "--"]
    for method, curves in values.items():
        reference = method == "PCA"
        dashes = "--" if reference else solid_first[others.index(method) % len(solid_first)]
        for g, group in enumerate(groups):
            style, above = style_of(g), min(len(groups) - 1 - g, 3)
            lines += ax.plot(
                dimensions, curves[:, g], **style, linestyle=dashes, linewidth=1.2 + 1.6 * above,
                markersize=4.5 + 3.0 * above, markevery=max(len(dimensions) // _MARKS, 1),
                markerfacecolor="white" if reference else style["color"],
                label=f"{plain(label_text(group))}, {plain(method)}",
            )  # fmt: skip
    ax.set(xlabel="number of components")
    ax.xaxis.get_major_locator().set_params(integer=True)
    return lines


def check_positions(components: Any, available: int, least: int = 1) -> list[int]:
    """Check that these are one or two positions of components of the estimator, or at ``least`` so many."""
    positions = list(components)
    valid = all(isinstance(c, int | np.integer) and 0 <= c < available for c in positions)
    if not (valid and least <= len(positions) <= 2):
        raise ValueError(
            f"components={components!r} must be {'one or two' if least == 1 else 'two'} positions from 0 to "
            f"{available - 1}: the estimator has {available} component(s)."
        )
    return positions


def shown_of(count: int, total: int) -> str:
    """The title of a display that leaves some of the features out."""
    return f"{count} of {total} features" if count < total else f"{total} features"


def plain(text: str) -> str:
    """Escape a name: a dollar sign must not start a formula, nor a leading underscore hide the legend entry."""
    text = str(text).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
