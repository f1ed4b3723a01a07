"""How much of each feature the components keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fairpca.metrics import communality
from fairpca.plotting._style import PCA_COLOUR, axes, method_style, plain
from fairpca.plotting.biplot import feature_list

__all__ = ["CommunalityDisplay"]


@dataclass
class CommunalityDisplay:
    """Communality of each feature, of one method or of several side by side (as in Lee et al. 2022, section J).

    Parameters
    ----------
    values : dict from method to ndarray of shape (n_features,)
    feature_names : list of str
    n_features : int or None
        Number of bars; the largest are drawn. None draws all.

    See Also
    --------
    fairpca.metrics.communality : The values.

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.plotting import CommunalityDisplay
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> pca = FairPCA(2).fit(X, sensitive_features=sex)
    >>> display = CommunalityDisplay.from_estimator(pca)
    >>> round(float(display.values["FairPCA"].sum()), 6)
    2.0
    """

    values: dict[str, np.ndarray]
    feature_names: list[str]
    n_features: int | None = 15

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        feature_names: Sequence[str] | None = None,
        n_features: int | None = 15,
        ax: Any = None,
    ) -> Self:
        """Draw the communalities of a fitted estimator, or of a dict from names to fitted estimators.

        Returns the display, drawn on ``ax`` or in a new figure.
        """
        named = estimator if isinstance(estimator, dict) else {type(estimator).__name__: estimator}
        if not named:
            raise ValueError("estimator is an empty dict; give at least one fitted estimator.")
        names = feature_list(next(iter(named.values())), feature_names)
        return cls({name: communality(one) for name, one in named.items()}, names, n_features).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the given axes, or in a new figure; return the display."""
        ax = axes(ax)
        order = np.argsort(-np.max(list(self.values.values()), axis=0), kind="stable")[: self.n_features]
        height = 0.8 / len(self.values)
        for m, (method, values) in enumerate(self.values.items()):
            position = np.arange(len(order)) + (m - (len(self.values) - 1) / 2) * height
            style = {"color": method_style(method, self.values)["color"], "edgecolor": "white"}
            style["hatch"] = ("", "//", "..", "xx")[m % 4]
            if method == "PCA":
                style = {"color": "white", "edgecolor": PCA_COLOUR}
            ax.barh(position, values[order], height, label=plain(method), **style)
        ax.set_yticks(np.arange(len(order)), [plain(self.feature_names[j]) for j in order])
        ax.invert_yaxis()
        ax.set(xlabel="communality")
        if len(self.values) > 1:
            ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self
