"""Figure 4 and section J of Lee et al. (2022): communality of the sensitive feature, and biplots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairpca.metrics import communality
from fairpca.moments import group_moments
from fairpca.plotting import BiplotDisplay
from fairpca.plotting._style import COLOURS
from reproductions._outcome import Claim, Drawing, Table
from reproductions.datasets import load_splits
from reproductions.lee2022.protocol import Fit, Method
from reproductions.lee2022.published import FEATURES

__all__ = ["biplots", "communalities", "feature_names", "sensitive_column"]

#: The lines that section 8.3 compares.
METHODS = (Method("PCA"), Method("FPCA", 0.0), Method("MbF-PCA", 1e-3))
_BIPLOT_SPLIT, _BIPLOT_FEATURES = 5, 10


def sensitive_column(X: np.ndarray, groups: np.ndarray) -> int | None:
    """The column of X that is the sensitive feature itself (standardised), if there is one."""
    fixed = group_moments(X, sensitive_features=groups).columns_fixed_by_group()
    return int(fixed[0]) if len(fixed) else None


def feature_names(data: str, n_features: int) -> list[str]:
    names = FEATURES.get(data, [])
    return names if len(names) == n_features else [f"x{j}" for j in range(n_features)]


class Loadings:
    """The fits of one data set that the figures compare, and which feature is the sensitive one."""

    def __init__(self, data: str, path: Path, fits: Sequence[Fit]) -> None:
        self.data = data
        self.fits = [fit for fit in fits if fit.data == data and fit.method in METHODS]
        split = next(iter(load_splits(path, splits=[self.fits[0].split])))
        self.column = sensitive_column(split.X_train, split.sensitive_train)
        self.names = feature_names(data, split.X_train.shape[1])

    @property
    def dimensions(self) -> list[int]:
        return sorted({fit.n_components for fit in self.fits})

    def of(self, method: Method, n_components: int) -> list[Fit]:
        return [fit for fit in self.fits if (fit.method, fit.n_components) == (method, n_components)]

    def communality(self, method: Method, n_components: int) -> np.ndarray:
        """Communality of the sensitive feature, one value per split."""
        assert self.column is not None
        return np.array([communality(fit.components)[self.column] for fit in self.of(method, n_components)])


def communalities(loadings: Sequence[Loadings]) -> tuple[list[Table], list[Drawing], list[Claim]]:
    """Communality of the sensitive feature, for the data sets that have it among their features."""
    shown = [one for one in loadings if one.column is not None]
    if not shown:
        return [], [], []
    columns = ("data", "feature", "d", "method", "median", "smallest", "largest")
    rows, claims = [], []
    for one in shown:
        for d in one.dimensions:
            for method in METHODS:
                values = map(float, np.quantile(one.communality(method, d), (0.5, 0, 1)))
                rows.append([one.data, one.names[one.column or 0], d, method.name, *values])
            claims += [_least(one, d)] if (one.data, d) == ("German", 10) else []
    note = "Sum of squared loadings of the sensitive feature, over the splits."
    table = Table("communality", "Figure 4 and section J: communality of the sensitive feature", columns, rows, note)
    size = (3.2 * max(len(one.dimensions) for one in shown) + 1.5, 3.2 * len(shown))
    title = "Figures 4, 7, 11 and 15: communality of the sensitive feature over the splits"
    return [table], [Drawing("communality", title, lambda figure: _draw_boxes(figure, shown), size)], claims


def _least(one: Loadings, d: int) -> Claim:
    """Figure 4's text: the loadings of MbF-PCA account for the least of age."""
    *others, mbf = (float(np.median(one.communality(method, d))) for method in METHODS)
    what = (
        f"{one.data}, d = {d}: median communality of {one.names[one.column or 0]}, MbF-PCA / the smaller of the others"
    )
    return Claim("Figure 4", what, mbf / max(min(others), 1e-300), 1.0, 0.0, "at most")


def _draw_boxes(figure: Any, shown: Sequence[Loadings]) -> None:
    panels = figure.subplots(len(shown), max(len(one.dimensions) for one in shown), squeeze=False)
    for line, one in zip(panels, shown, strict=True):
        for ax in line[len(one.dimensions) :]:
            ax.remove()
        for ax, d in zip(line, one.dimensions, strict=False):
            values = [one.communality(method, d) for method in METHODS]
            boxes = ax.boxplot(values, patch_artist=True, widths=0.6, medianprops={"color": "black"})
            for box, colour in zip(boxes["boxes"], COLOURS, strict=False):
                box.set(facecolor=colour, alpha=0.6)
            ax.set_xticks(range(1, len(METHODS) + 1), [method.name for method in METHODS], fontsize="small")
            ax.set(title=f"{one.data}, {d} components", ylabel=f"communality of {one.names[one.column or 0]}")
            ax.set_ylim(bottom=0)


def biplots(loadings: Sequence[Loadings]) -> list[Drawing]:
    """Two components, the features with the largest communalities, one split."""
    return [
        Drawing(f"biplot_{one.data}", f"Section J: biplots, {one.data}, one split", _biplot(one), (14.0, 5.0))
        for one in loadings
        if 2 in one.dimensions
    ]


def _biplot(one: Loadings) -> Any:
    def draw(figure: Any) -> None:
        for ax, method in zip(figure.subplots(1, len(METHODS)), METHODS, strict=True):
            fits = one.of(method, 2)
            fit = next((fit for fit in fits if fit.split == _BIPLOT_SPLIT), fits[0])
            chosen = _largest(fit.components, one.column)
            BiplotDisplay(fit.components.T[chosen], [one.names[j] for j in chosen], n_features=len(chosen)).plot(ax)
            ax.set_title(f"{method.name}, split {fit.split}")
            ax.axhline(0, color="0.85", zorder=0)
            ax.axvline(0, color="0.85", zorder=0)

    return draw


def _largest(components: np.ndarray, sensitive: int | None) -> list[int]:
    """Features by communality, and the sensitive one if it is not among them."""
    chosen = np.argsort(-communality(components), kind="stable")[:_BIPLOT_FEATURES].tolist()
    return chosen if sensitive is None or sensitive in chosen else [*chosen, sensitive]
