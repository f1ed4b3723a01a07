"""Measurements as figures like those of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from fairpca.plotting import GroupErrorDisplay
from fairpca.plotting._style import COLOURS, plain
from reproductions._outcome import Drawing
from reproductions.samadi2018.study import Search, Study
from reproductions.samadi2018.tables import file_name

__all__ = ["drawings_of"]

_PANEL = (5.0, 4.0)
#: Panels of the figure on multiplicative weights: the paper's text has no such figure.
_SHOWN_SEARCHES = (5, 8, 12, 20)
#: Distances below this, relative to the total variance, are rounding.
_SMALLEST = 1e-13


def drawings_of(studies: Sequence[Study]) -> list[Drawing]:
    """Figures 3 and 4 with one panel per data set; Figure 1 and the searches with one figure per data set."""
    found = [_figure_one(study) for study in studies if study.samples]
    width = _PANEL[0] * len(studies)
    found.append(Drawing("figure3", "Figure 3: reconstruction error", partial(_errors, studies), (width, _PANEL[1])))
    found.append(Drawing("figure4", "Figure 4: loss", partial(_losses, studies), (width, _PANEL[1])))
    for study in studies:
        found += [_searches(study)] if _shown(study) else []
        found += [_errata(study)] if study.errata else []
    return found


def _figure_one(study: Study) -> Drawing:
    title = f"Figure 1: PCA's reconstruction error, {study.title}, all rows and equal-sized samples"
    return Drawing(f"figure1_{file_name(study.name)}", title, partial(_draw_figure_one, study), (10.0, 4.0))


def _draw_figure_one(study: Study, figure: Any) -> None:
    left, right = figure.subplots(1, 2, sharey=True)
    samples = study.samples[0]
    for ax, curves, errors, title in (
        (left, study.pca, study.pca.errors, f"{study.title}, all rows"),
        (
            right,
            samples.pca[0],
            samples.mean("errors"),
            f"{samples.size} rows of each group, mean of {len(samples.pca)}",
        ),
    ):
        GroupErrorDisplay(curves.dimensions, {"PCA": errors}, study.groups).plot(ax)
        ax.set(title=plain(title), ylim=(0, None))
        ax.label_outer()


def _errors(studies: Sequence[Study], figure: Any) -> None:
    for ax, study in zip(_panels(figure, studies), studies, strict=True):
        values = {"PCA": study.pca.errors, "FairPCA": study.fair.errors}
        GroupErrorDisplay(study.pca.dimensions, values, study.groups).plot(ax)
        ax.set(title=plain(study.title), ylim=(0, None))


def _losses(studies: Sequence[Study], figure: Any) -> None:
    for ax, study in zip(_panels(figure, studies), studies, strict=True):
        GroupErrorDisplay(study.pca.dimensions, {"PCA": study.pca.losses}, study.groups, "loss").plot(ax)
        label = "every group, FairPCA" if len(study.groups) == 2 else "largest, FairPCA"
        ax.plot(study.fair.dimensions, study.fair.largest, color="black", linestyle="--", marker="x", label=label)
        ax.set(title=plain(study.title), ylim=(0, None))
        ax.legend()


def _panels(figure: Any, items: Sequence[Any], **options: Any) -> Sequence[Any]:
    return figure.subplots(1, len(items), squeeze=False, **options)[0]


def _shown(study: Study) -> list[Search]:
    if len(study.groups) != 2:
        return []  # the distance from the optimum is known for two groups
    return [search for search in study.searches if search.dimension in _SHOWN_SEARCHES]


def _searches(study: Study) -> Drawing:
    shown = _shown(study)
    title = f"Multiplicative weights and FairPCA: {study.title}, distance from the optimum by eigenproblems solved"
    size = (2.0 + 3.2 * len(shown), 4.4)
    return Drawing(f"weights_{file_name(study.name)}", title, partial(_draw_searches, study), size)


def _draw_searches(study: Study, figure: Any) -> None:
    shown = _shown(study)
    axes = _panels(figure, shown, sharey=True)
    for ax, search in zip(axes, shown, strict=True):
        first = len(study.groups) + 1  # after one eigenproblem per group for its own optimum
        lines = {"fixed rate of the scripts": search.fixed, "best fixed rate tried": search.tuned}
        for colour, marker, (label, trace) in zip(COLOURS, "os", lines.items(), strict=False):
            if trace is not None:
                calls, excess = _above(np.arange(first, first + len(trace.losses)), trace.values, search, study)
                ax.plot(calls, excess, color=colour, marker=marker, markersize=3, linewidth=1, label=label)
        calls, excess = _above(search.ours[:, 0], search.ours[:, 1], search, study)
        ax.plot(calls, excess, color="black", marker="X", linestyle="--", label="FairPCA")
        ax.set(yscale="log", xlabel="eigenproblems solved", title=f"d = {search.dimension}")
    axes[0].set_ylabel("largest loss above the optimum,\nof the total variance")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    figure.suptitle(plain(study.title))


def _above(calls: np.ndarray, values: np.ndarray, search: Search, study: Study) -> tuple[np.ndarray, np.ndarray]:
    """Distance from the optimum, until it is below rounding: that point is drawn at the smallest distance."""
    excess = (values - search.optimum) / study.fair.total
    lost = np.flatnonzero(excess <= _SMALLEST)
    end = lost[0] + 1 if len(lost) else len(excess)
    return calls[:end], np.maximum(excess[:end], _SMALLEST)


def _errata(study: Study) -> Drawing:
    title = f"{study.title}: the script's fair loss with its erratum, relative to the optimum"
    return Drawing(f"errata_{file_name(study.name)}", title, partial(_draw_errata, study), (7.0, 4.0))


def _draw_errata(study: Study, figure: Any) -> None:
    ax = figure.subplots()
    assert study.pooled is not None
    proper = study.fair.dimensions < study.data.X.shape[1]
    values = np.array([erratum.fair for erratum in study.errata])[proper]
    optima = {"groups about the common mean": study.pooled, "groups about their own means": study.fair}
    for colour, marker, (label, curves) in zip(COLOURS, "os", optima.items(), strict=False):
        dimensions = curves.dimensions[proper]
        ax.plot(dimensions, values / curves.largest[proper], color=colour, marker=marker, label=label)
    ax.axhline(1.0, color="black", linewidth=1)
    ax.set(xlabel="number of components", ylabel="script's largest loss / optimum", title=plain(study.title))
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend()
