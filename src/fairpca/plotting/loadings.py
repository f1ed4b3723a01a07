"""How strongly each feature takes part in each component."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fairpca._frames import feature_names_of
from fairpca.plotting._style import Display, plain, shown_of

__all__ = ["LoadingsDisplay"]


@dataclass
class LoadingsDisplay(Display):
    """Loadings of features on components as coloured cells: of a fitted estimator, or after a rotation.

    Parameters
    ----------
    loadings : ndarray of shape (n_features, n_components)
    feature_names : list of str
    n_features : int or None
        Number of rows; the features with the largest loadings are drawn, in the order of the components on which they
        load most. None draws all.

    See Also
    --------
    BiplotDisplay : Two components, with the rows.

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.plotting import LoadingsDisplay
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> pca = FairPCA(4).fit(X, sensitive_features=sex)
    >>> display = LoadingsDisplay.from_estimator(pca.rotated("varimax"))
    >>> display.loadings.shape
    (57, 4)
    """

    loadings: np.ndarray
    feature_names: list[str]
    n_features: int | None = 15

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, feature_names: Sequence[str] | None = None, n_features: int | None = 15, ax: Any = None
    ) -> Self:
        """Draw the loadings of a fitted estimator, or of what its ``rotated`` returned; return the display."""
        fitted = getattr(estimator, "estimator", estimator)
        names = feature_names_of(fitted, feature_names, len(estimator.loadings_))
        return cls(estimator.loadings_, names, n_features).plot(ax)

    def _draw(self, ax: Any) -> None:
        size = np.abs(self.loadings)
        chosen = np.argsort(-size.max(axis=1), kind="stable")[: self.n_features]
        chosen = chosen[np.lexsort((-size[chosen].max(axis=1), size[chosen].argmax(axis=1)))]
        largest = float(size.max(initial=0.0)) or 1.0
        image = ax.imshow(self.loadings[chosen], cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto")
        ax.set_yticks(np.arange(len(chosen)), [plain(self.feature_names[j]) for j in chosen])
        ax.set_xticks(np.arange(self.loadings.shape[1]), np.arange(1, self.loadings.shape[1] + 1))
        ax.set(xlabel="component", title=shown_of(len(chosen), len(size)))
        ax.figure.colorbar(image, ax=ax, label="loading")
