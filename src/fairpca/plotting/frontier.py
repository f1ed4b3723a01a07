"""The trade-off between groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from fairpca.metrics import GroupValues, reconstruction_error
from fairpca.metrics._components import fitted_components
from fairpca.model_selection import Frontier, frontier
from fairpca.plotting._style import axes, method_style, plain, plain_label

__all__ = ["FrontierDisplay"]


@dataclass
class FrontierDisplay:
    """Total error against the gap between groups, or the groups' errors against each other, with the methods marked.

    Parameters
    ----------
    curve : Frontier
        From :func:`fairpca.model_selection.frontier`.
    methods : dict from name to ndarray of shape (n_groups + 2,)
        Errors of the groups, total error, gap.

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
    >>> sorted(display.methods)
    ['FairPCA', 'PCA', 'RobustFairPCA']
    """

    curve: Frontier
    methods: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        sensitive_features: Any,
        kind: str = "trade-off",
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the frontier for a fitted estimator's number of components, and where the estimator lies on it.

        Returns the display, drawn on ``ax`` or in a new figure; ``kind`` as in :meth:`plot`. Errors are those of X
        about the estimator's mean. ``options`` are passed to :func:`fairpca.model_selection.frontier`.
        """
        n_components = len(fitted_components(estimator, "estimator"))
        curve = frontier(X, sensitive_features=sensitive_features, n_components=n_components, **options)
        display = cls(curve, _methods_of(curve))
        errors = reconstruction_error(
            X, estimator, sensitive_features=sensitive_features, center=options.get("center", "pooled")
        )
        assert isinstance(errors, GroupValues)
        display.methods[type(estimator).__name__] = np.array([*errors.values(), errors.overall, errors.gap])
        return display.plot(ax, kind=kind)

    @classmethod
    def from_frontier(cls, curve: Frontier, *, kind: str = "trade-off", ax: Any = None) -> Self:
        """Draw a frontier with the methods that it holds."""
        return cls(curve, _methods_of(curve)).plot(ax, kind=kind)

    def plot(self, ax: Any = None, *, kind: str = "trade-off") -> Self:
        """Draw ``"trade-off"`` (total error against gap) or, for two groups, ``"errors"`` (one against the other)."""
        if kind not in ("trade-off", "errors"):
            raise ValueError(f"kind={kind!r} is unknown; choose 'trade-off' or 'errors'.")
        if kind == "errors" and not len(self.curve.errors):
            raise ValueError("kind='errors' needs exactly two groups; use kind='trade-off'.")
        ax = axes(ax)
        if kind == "errors":
            line, columns = self.curve.errors.T, (0, 1)
            names = [f"error of {plain_label(label)}" for label in self.curve.groups]
        else:
            line, columns = np.array([self.curve.gap, self.curve.total_error]), (-1, -2)
            names = ["gap between errors", "error of all rows"]
        self.line_ = ax.plot(*line, color="0.4", label="frontier")[0]
        for name, values in self.methods.items():
            mark = {"linestyle": "none", "markersize": 8, **method_style(name, self.methods)}
            ax.plot(values[columns[0]], values[columns[1]], label=plain(name), **mark)
        ax.set(xlabel=names[0], ylabel=names[1])
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _methods_of(curve: Frontier) -> dict[str, np.ndarray]:
    return {name: np.array([*point.errors, point.total_error, point.gap]) for name, point in curve.methods.items()}
