"""How much of each feature the components keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fairpca._frames import feature_names_of
from fairpca.metrics import communality
from fairpca.metrics._components import fitted_components
from fairpca.plotting._style import PCA_COLOUR, Display, method_style, named_estimators, plain, shown_of

__all__ = ["CommunalityDisplay"]


@dataclass
class CommunalityDisplay(Display):
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
        named = named_estimators(estimator)
        values = {name: communality(fitted_components(one, "estimator")) for name, one in named.items()}
        first = next(iter(named))
        return cls(values, feature_names_of(named[first], feature_names, len(values[first])), n_features).plot(ax)

    def _draw(self, ax: Any) -> None:
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
        title = shown_of(len(order), len(self.feature_names))
        ax.set(xlabel="communality: the share of the feature that is kept", title=title)
