"""The figures of Vu et al. (2022), drawn from our results."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from fairpca.datasets import make_toy
from fairpca.plotting._style import COLOURS, DASHES, MARKERS, plain
from reproductions._outcome import Drawing
from reproductions.vu2022.curves import ErrorsByComponents, Pareto
from reproductions.vu2022.toy import Direction, RadiusEffect

__all__ = ["drawings"]

_PANELS_A_ROW = 3
_METHOD_STYLE = {
    "RobustFairPCA": (COLOURS[0], MARKERS[0]),
    "FairPCA": (COLOURS[1], MARKERS[1]),
    "ParityPCA (means)": (COLOURS[2], MARKERS[2]),
    "PCA": (COLOURS[6], MARKERS[3]),
}
_ARROW = 3.0


def drawings(
    found: list[Direction], effect: RadiusEffect, curves: Sequence[Pareto], series: Sequence[ErrorsByComponents]
) -> list[Drawing]:
    """Figures 1 and 4, one Figure with all Pareto curves, and one per data set with the errors against k."""
    n_rows = math.ceil(len(curves) / _PANELS_A_ROW)
    return [
        Drawing("figure_1", "Figure 1: directions in the plane", lambda figure: _draw_toy(figure, found), (7.5, 6.0)),
        Drawing("figure_4", "Figure 4: effect of the radius", lambda figure: _draw_radius(figure, effect), (7.0, 4.5)),
        *(
            [
                Drawing(
                    "pareto", "Figures 2, 5, 6: total error against gap, all rows",
                    lambda figure: _draw_pareto(figure, curves), (11.0, 0.8 + 3.2 * n_rows),
                )
            ]
            if curves
            else []
        ),
        *(
            Drawing(
                f"errors_by_k_{number}_{_file_name(item.name)}",
                f"Figures 3, 7 to 16: errors against k, {item.title}",
                lambda figure, item=item: _draw_components(figure, item),  # type: ignore[misc]
            )
            for number, item in enumerate(series, start=1)
        ),
    ]  # fmt: skip


def _file_name(text: str) -> str:
    """Names of tables come from outside: only letters and digits reach a file name."""
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").lower()[:40]


def _draw_toy(figure: Any, found: list[Direction]) -> None:
    ax = figure.add_subplot()
    X, groups = make_toy(random_state=0)
    for label, colour, marker in ((0, COLOURS[5], "o"), (1, COLOURS[4], "^")):
        rows = X[groups == label]
        ax.scatter(*rows.T, s=12, color=colour, alpha=0.45, marker=marker, linewidths=0, label=f"group {label}")
    _arrow(ax, found[0].angle, 1.5 * _ARROW, COLOURS[6], 2.5)
    _arrow(ax, found[-1].angle, 1.5 * _ARROW, COLOURS[1], 2.5)
    shades = np.linspace(0.75, 0.15, len(found) - 2)
    for item, shade in zip(found[1:-1], shades, strict=True):
        _arrow(ax, item.angle, 0.9 * _ARROW, str(shade), 1.5)
    for name, colour, width in (
        ("PCA", COLOURS[6], 2.5),
        ("FairPCA", COLOURS[1], 2.5),
        ("RobustFairPCA, penalty 0 (light) to 10 (dark)", "0.45", 1.5),
    ):
        ax.plot([], [], color=colour, linewidth=width, label=name)
    ax.set(xlabel="feature 1", ylabel="feature 2", aspect="equal")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)


def _arrow(ax: Any, angle: float, length: float, colour: str, width: float) -> None:
    turn = np.radians(angle)
    tip = (length * np.cos(turn), length * np.sin(turn))
    ax.annotate("", tip, (0.0, 0.0), arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": width})


def _draw_radius(figure: Any, effect: RadiusEffect) -> None:
    ax = figure.add_subplot()
    mean, spread = effect.mean, effect.totals.std(axis=0)
    ax.fill_between(
        effect.alphas, mean - spread, mean + spread, color=COLOURS[0], alpha=0.2, linewidth=0,
        label="one standard deviation",
    )  # fmt: skip
    ax.plot(effect.alphas, mean, color=COLOURS[0], label=f"mean of {len(effect.totals)} simulations")
    ax.set(xlabel="alpha (radius of group 1: alpha / sqrt(100))", ylabel="ARE + ABDiff on test rows")
    ax.legend(frameon=False)


def _draw_pareto(figure: Any, curves: Sequence[Pareto]) -> None:
    n_rows = math.ceil(len(curves) / _PANELS_A_ROW)
    panels = figure.subplots(n_rows, _PANELS_A_ROW, squeeze=False).ravel()
    for ax, curve in zip(panels, curves, strict=False):
        ax.plot(*curve.path.T, color="0.5", linewidth=1.2, label="weighted PCAs from least error to least gap")
        for method, points in curve.points.items():
            colour, marker = _METHOD_STYLE[method]
            ax.plot(
                *points.T, linestyle="none", color=colour, marker=marker, markersize=7, fillstyle="none",
                markeredgewidth=1.5, label=method,
            )  # fmt: skip
        ax.set_title(plain(curve.title), fontsize="medium")
        ax.margins(0.08)
    for ax in panels[len(curves) :]:
        ax.set_axis_off()
    figure.supxlabel("ARE (error of all rows)", fontsize="medium")
    figure.supylabel("ABDiff (gap between groups)", fontsize="medium")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)


def _draw_components(figure: Any, item: ErrorsByComponents) -> None:
    panels = figure.subplots(1, len(item.errors), sharey=True)
    for ax, (part, methods) in zip(panels, item.errors.items(), strict=True):
        for method, errors in methods.items():
            colour, marker = _METHOD_STYLE[method]
            for group in (0, 1):
                ax.plot(
                    item.components, errors[:, group], color=colour, marker=marker, linestyle=DASHES[group],
                    markersize=5, fillstyle="full" if group == 0 else "none", label=f"{method}, group {group}",
                )  # fmt: skip
        ax.set(xlabel="number of components k", title=part, xticks=item.components)
    panels[0].set_ylabel("mean error of the group")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
