"""Features and rows in the plane of two components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fairpca.metrics._components import fitted_components
from fairpca.plotting._style import COLOURS, axes, check_positions, plain
from fairpca.plotting.projection import ProjectionDisplay

__all__ = ["BiplotDisplay"]


@dataclass
class BiplotDisplay:
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
        if len(rows) < 2:
            raise ValueError(f"A biplot needs two components; the estimator has {len(rows)}.")
        if len(components) != 2:
            raise ValueError(f"components={components!r} must be two positions, counted from 0: a biplot is a plane.")
        chosen = list(check_positions(components, len(rows)))
        spread = np.sqrt(np.maximum(estimator.explained_variance_[chosen], 0.0))
        loadings = (rows[chosen] * spread[:, None]).T
        projection = None
        if X is not None and sensitive_features is not None:
            projection = ProjectionDisplay.measured(estimator, X, sensitive_features, components)
        return cls(loadings, feature_list(estimator, feature_names), projection, n_features, components).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the given axes, or in a new figure; return the display."""
        ax = axes(ax)
        if self.projection is not None:
            self.projection.plot(ax)
        reach = (
            1.0 if self.projection is None else _reach(self.projection.scores) / max(np.abs(self.loadings).max(), 1e-12)
        )
        longest = np.argsort(-np.linalg.norm(self.loadings, axis=1), kind="stable")[: self.n_features]
        for j in longest:
            x, y = reach * self.loadings[j]
            arrow = {"arrowstyle": "->", "color": COLOURS[-1], "linewidth": 1.2}
            ax.annotate("", (x, y), (0, 0), arrowprops=arrow)
            ax.annotate(plain(self.feature_names[j]), (x, y), ha="left" if x >= 0 else "right", fontsize="small")
        ends = reach * self.loadings[longest]
        ax.update_datalim(np.vstack([1.2 * ends, -0.2 * ends]))
        ax.autoscale_view()
        ax.set(**{f"{axis}label": f"component {c + 1}" for axis, c in zip("xy", self.components, strict=True)})
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _reach(scores: np.ndarray) -> float:
    """Length of the longest arrow: about as far from zero as most scores."""
    return float(np.quantile(np.abs(scores), 0.95))


def feature_list(estimator: Any, feature_names: Sequence[str] | None) -> list[str]:
    """The given names, or those the estimator was fitted with, or x0, x1, ..."""
    count = fitted_components(estimator, "estimator").shape[1]
    if feature_names is None:
        feature_names = getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(count)])
    if len(feature_names) != count:
        raise ValueError(f"feature_names has {len(feature_names)} names, but the estimator has {count} features.")
    return [str(name) for name in feature_names]
