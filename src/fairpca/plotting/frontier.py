"""The trade-off between groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fairpca._labels import label_text
from fairpca._validation import check_choice
from fairpca.metrics._components import fitted_components
from fairpca.model_selection import Frontier, FrontierPoint, frontier
from fairpca.plotting._style import Display, method_style, plain

__all__ = ["FrontierDisplay"]


@dataclass
class FrontierDisplay(Display):
    """The error of all rows against the gap between groups, or the groups against each other, with methods marked.

    What is compared are losses where the estimator balances losses, as FairPCA does, and errors otherwise.

    Parameters
    ----------
    curve : Frontier
        From :func:`fairpca.model_selection.frontier`.
    methods : dict from name to FrontierPoint
    kind : {"trade-off", "groups"}
        Total error against gap, or, for two groups, one group against the other.

    See Also
    --------
    fairpca.model_selection.frontier : The values.

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.plotting import FrontierDisplay
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> pca = FairPCA(3).fit(X, sensitive_features=sex)
    >>> display = FrontierDisplay.from_estimator(pca, X, sensitive_features=sex)
    >>> sorted(display.methods), display.curve.of
    (['FairPCA', 'PCA'], 'loss')
    """

    curve: Frontier
    methods: dict[str, FrontierPoint]
    kind: str = "trade-off"

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, sensitive_features: Any, of: str | None = None, kind: str = "trade-off",
        ax: Any = None, **options: Any,
    ) -> Self:  # fmt: skip
        """Draw the frontier for a fitted estimator's number of components, and where the estimator lies on it.

        Returns the display, drawn on ``ax`` or in a new figure. Errors are those of X about its mean.
        ``of`` is "error" or "loss", by default what the estimator balances; ``options`` are passed to
        :func:`fairpca.model_selection.frontier`.
        """
        d = len(fitted_components(estimator, "estimator"))
        of = of or ("loss" if getattr(estimator, "criterion", None) == "loss" else "error")
        given: dict[str, Any] = {"sensitive_features": sensitive_features, "n_components": d, "of": of} | options
        curve = frontier(X, **given)
        located = {"methods": {type(estimator).__name__: estimator}, "n_points": 2, "penalties": []}  # no second curve
        own = frontier(X, **given | located)
        return cls(curve, curve.methods | own.methods, kind).plot(ax)

    @classmethod
    def from_frontier(cls, curve: Frontier, *, kind: str = "trade-off", ax: Any = None) -> Self:
        """Draw a frontier with the methods that it holds."""
        return cls(curve, curve.methods, kind).plot(ax)

    def _draw(self, ax: Any) -> None:
        curve, of = self.curve, self.curve.of
        if check_choice("kind", self.kind, ("trade-off", "groups")) == "groups":
            if not len(curve.errors):
                raise ValueError("kind='groups' needs exactly two groups; use kind='trade-off'.")
            own = curve.own_errors if of == "loss" else np.zeros(2)
            line, points = (curve.errors - own).T, {name: one.errors - own for name, one in self.methods.items()}
            names = [f"{of} of {plain(label_text(label))}" for label in curve.groups]
        else:
            line = np.array([curve.gap, curve.total_error])
            points = {name: np.array([one.gap, one.total_error]) for name, one in self.methods.items()}
            names = [f"gap between the groups' {'losses' if of == 'loss' else 'errors'}", "error of all rows"]
        known = "boundary" if self.kind == "groups" else "least error for each gap"
        self.line_ = ax.plot(*line, color="0.4", label=known)[0]
        for i, (name, values) in enumerate(points.items()):  # earlier ones are larger, so that none hides another
            size = 6 + 3 * min(len(points) - 1 - i, 3)
            ax.plot(*values, label=plain(name), linestyle="none", markersize=size, **method_style(name, points))
        title = "What balancing the groups costs"
        ax.set(xlabel=f"{names[0]} (← better)", ylabel=f"{names[1]} (↓ better)", title=title)
        ax.ticklabel_format(useOffset=False)
