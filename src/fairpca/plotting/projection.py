"""Scores of rows by group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fairpca._labels import label_text
from fairpca._validation import check_groups, split_off_groups
from fairpca.plotting._style import Display, check_positions, plain, style_of

__all__ = ["ProjectionDisplay"]


@dataclass
class ProjectionDisplay(Display):
    """Rows in the plane of two components, with one colour and marker per group.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, 2) or (n_samples, 1)
        With one column, a histogram per group is drawn.
    codes : ndarray of shape (n_samples,)
        Position of each row's group in ``groups``.
    groups : tuple
    components : tuple of int
        Which components, for the labels of the axes. Large markers are the groups' means.

    See Also
    --------
    BiplotDisplay : The features as arrows over the rows.

    Examples
    --------
    >>> from fairpca import ParityPCA
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.plotting import ProjectionDisplay
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> pca = ParityPCA(2).fit(X, sensitive_features=sex)
    >>> display = ProjectionDisplay.from_estimator(pca, X, sensitive_features=sex)
    >>> display.scores.shape
    (1000, 2)
    """

    scores: np.ndarray
    codes: np.ndarray
    groups: tuple[Any, ...]
    components: tuple[int, ...] = (0, 1)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        sensitive_features: Any,
        components: tuple[int, ...] = (0, 1),
        ax: Any = None,
    ) -> Self:
        """Draw the scores of X under a fitted estimator.

        Returns the display, drawn on ``ax`` or in a new figure.
        """
        return cls.measured(estimator, X, sensitive_features, components).plot(ax)

    @classmethod
    def measured(cls, estimator: Any, X: Any, sensitive_features: Any, components: tuple[int, ...] = (0, 1)) -> Self:
        """The display of these scores, not drawn yet."""
        X, sensitive_features = split_off_groups(None, X, sensitive_features)
        scores = np.asarray(estimator.transform(X))
        groups = check_groups(sensitive_features, len(scores))
        if components == (0, 1):  # with a single component, the default is its histogram
            components = components[: scores.shape[1]]
        shown = check_positions(components, scores.shape[1])
        return cls(scores[:, shown], groups.codes, groups.labels, tuple(shown))

    def _draw(self, ax: Any) -> None:
        flat = self.scores.shape[1] == 1
        for g, group in enumerate(self.groups):
            own, above = self.scores[self.codes == g], min(len(self.groups) - 1 - g, 3)
            style, label = style_of(g), f"{plain(label_text(group))} ({len(own):,} rows)"
            if flat:  # earlier groups have wider lines, so that all are seen where they coincide
                lines = {"histtype": "step", "linewidth": 1.5 + 2.0 * above, "color": style["color"]}
                ax.hist(own[:, 0], bins=30, density=True, label=label, **lines)
                continue
            ax.scatter(*own.T, s=12, alpha=0.5, linewidths=0, label=label, **style)
            ax.scatter(*own.mean(axis=0), s=90 * (1 + above) ** 2, edgecolors="white", zorder=3, **style)
        ax.set(xlabel=f"component {self.components[0] + 1}", title="Scores by group")
        ax.set(ylabel="share of rows per unit" if flat else f"component {self.components[1] + 1}")
