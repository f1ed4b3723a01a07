"""Features and rows in the plane of two components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.isotonic import isotonic_regression

from fairpca._frames import feature_names_of
from fairpca.metrics._components import fitted_components
from fairpca.plotting._style import COLOURS, Display, check_positions, plain, shown_of
from fairpca.plotting.projection import ProjectionDisplay

__all__ = ["BiplotDisplay"]

#: Size of the names of the features.
_POINTS = 8.0


@dataclass
class BiplotDisplay(Display):
    """Features as arrows over the scores: component weights times the standard deviation of the scores.

    Parameters
    ----------
    loadings : ndarray of shape (n_features, 2)
    feature_names : list of str
    projection : ProjectionDisplay or None
        The rows, drawn behind the arrows.
    n_features : int
        Number of arrows; the longest are drawn.
    components : tuple of int
        Which components, for the labels of the axes.

    See Also
    --------
    ProjectionDisplay : The rows alone.
    CommunalityDisplay : How much of each feature is kept.

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.plotting import BiplotDisplay
    >>> data = load_german_credit()
    >>> pca = FairPCA(2).fit(data.data, sensitive_features=data.sensitive_features)
    >>> display = BiplotDisplay.from_estimator(pca, feature_names=data.feature_names)
    >>> display.loadings.shape
    (57, 2)
    """

    loadings: np.ndarray
    feature_names: list[str]
    projection: ProjectionDisplay | None = None
    n_features: int = 10
    components: tuple[int, int] = (0, 1)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        sensitive_features: Any = None,
        feature_names: Sequence[str] | None = None,
        components: tuple[int, int] = (0, 1),
        n_features: int = 10,
        ax: Any = None,
    ) -> Self:
        """Draw the arrows of a fitted estimator with at least two components; with X and groups, also the rows.

        Returns the display, drawn on ``ax`` or in a new figure.
        """
        rows = fitted_components(estimator, "estimator")
        chosen = check_positions(components, len(rows), least=2)
        spread = np.sqrt(np.maximum(estimator.explained_variance_[chosen], 0.0))
        loadings = (rows[chosen] * spread[:, None]).T
        projection = None
        if X is not None and sensitive_features is not None:
            projection = ProjectionDisplay.measured(estimator, X, sensitive_features, components)
        names = feature_names_of(estimator, feature_names, rows.shape[1])
        return cls(loadings, names, projection, n_features, components).plot(ax)

    def _draw(self, ax: Any) -> None:
        largest = max(float(np.abs(self.loadings).max()), 1e-12)
        reach = 1.0
        if self.projection is not None:
            self.projection.plot(ax)  # the longest arrow is about as far from zero as most scores
            reach = float(np.quantile(np.abs(self.projection.scores), 0.95)) / largest
        longest = np.argsort(-np.linalg.norm(self.loadings, axis=1), kind="stable")[: self.n_features]
        tips = reach * self.loadings[longest]
        for tip in tips:
            ax.annotate("", tip, (0, 0), arrowprops={"arrowstyle": "->", "color": COLOURS[-1], "linewidth": 1.2})
        _label(ax, tips, [plain(self.feature_names[j]) for j in longest])
        labels = {f"{axis}label": f"component {c + 1}" for axis, c in zip("xy", self.components, strict=True)}
        ax.set(**labels, title=shown_of(len(longest), len(self.loadings)))


def _label(ax: Any, tips: np.ndarray, names: list[str]) -> None:
    """Names beside the tips of arrows: below each other where they would overlap, within the axes."""
    ax.update_datalim(np.vstack([tips, 0.0 * tips]))
    ax.autoscale_view()
    width, height = (72.0 * side / ax.figure.dpi for side in ax.get_window_extent().size)
    right = tips[:, 0] >= 0
    shares = np.array([0.6 * _POINTS * len(name) / width for name in names])  # of the width of the axes
    (left_end, right_end), bottom_top = ax.get_xlim(), np.array(ax.get_ylim())
    margins = [float(shares[side].max(initial=0.0)) for side in (~right, right)]
    span = (right_end - left_end) / max(1.0 - sum(margins), 0.3)
    ends = tips[:, 0] + np.where(right, shares, -shares) * span
    line = 1.5 * _POINTS / height * np.ptp(bottom_top)
    for side in (right, ~right):
        order = np.flatnonzero(side)[np.argsort(tips[side, 1], kind="stable")]
        steps = line * np.arange(len(order))
        # The least displacement that keeps the order and a line between neighbours.
        places = isotonic_regression(tips[order, 1] - steps) + steps if len(order) else steps
        for j, place in zip(order, places, strict=True):
            ax.annotate(
                names[j], tips[j], (tips[j, 0], place), ha="left" if right[j] else "right", va="center",
                fontsize=_POINTS, arrowprops={"arrowstyle": "-", "color": "0.6", "linewidth": 0.5},
                bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5},
            )  # fmt: skip
            ax.update_datalim([(tips[j, 0], place - line), (ends[j], place + line)])
    ax.autoscale_view()
