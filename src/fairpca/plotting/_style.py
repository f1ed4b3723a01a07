"""Colours, markers and axes shared by all figures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fairpca._labels import label_text
from fairpca._optional import require

__all__ = [
    "COLOURS",
    "DASHES",
    "MARKERS",
    "PCA_COLOUR",
    "axes",
    "check_positions",
    "method_style",
    "plain",
    "plain_label",
]

#: Okabe and Ito's colours, distinguishable with any kind of colour vision; markers and dashes repeat the distinction.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKERS = ("o", "s", "^", "D", "P", "v", "X")
#: Ordinary PCA, to which everything is compared, is black and hollow: here and in the report.
PCA_COLOUR = "#000000"
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
    i = [other for other in methods if other != "PCA"].index(name)
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}


def axes(ax: Any) -> Any:
    """The given axes, or those of a new figure."""
    if ax is not None:
        return ax
    return require("matplotlib.pyplot", "Drawing").subplots(layout="constrained")[1]


def check_positions(components: Any, available: int) -> tuple[int, ...]:
    """Check that these are positions of components of the estimator."""
    positions = tuple(components)
    if not positions or not all(isinstance(c, int | np.integer) and 0 <= c < available for c in positions):
        raise ValueError(
            f"components={components!r} must be positions from 0 to {available - 1}: the estimator has {available} "
            "component(s)."
        )
    return tuple(int(c) for c in positions)


def plain_label(label: Any) -> str:
    """A group label as text that matplotlib does not interpret as mathematics."""
    return plain(label_text(label))


def plain(text: str) -> str:
    """Escape a name: a dollar sign must not start a formula, nor a leading underscore hide the legend entry."""
    text = str(text).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
