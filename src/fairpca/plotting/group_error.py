"""Error or loss of each group against the number of components."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from fairpca._validation import check_choice, split_off_groups
from fairpca.inference._checks import check_dimensions
from fairpca.inference._fitting import fit_rows
from fairpca.metrics import GroupValues, reconstruction_error, reconstruction_loss
from fairpca.model_selection import Comparison
from fairpca.plotting._style import Display, draw_group_curves, named_estimators

__all__ = ["GroupErrorDisplay"]

_MEASURES = {"error": reconstruction_error, "loss": reconstruction_loss}
#: Values that a comparison holds, and the label of their axis.
_COMPARED = {
    "error": "error on new rows",
    "loss": "loss in the sample",
    "corrected_loss": "corrected loss on new rows",
}


@dataclass
class GroupErrorDisplay(Display):
    """Error (or loss) of each group against the number of components, as in the figures of Samadi et al. (2018).

    Parameters
    ----------
    dimensions : ndarray of shape (n_dimensions,)
    values : dict from method to ndarray of shape (n_dimensions, n_groups)
    groups : tuple
    of : {"error", "loss", "corrected_loss"}
    label : str
        Of the vertical axis; by default what is drawn.

    Attributes
    ----------
    ax_, figure_, lines_
        The matplotlib objects, after :meth:`plot`.

    See Also
    --------
    fairpca.metrics.reconstruction_error, fairpca.metrics.reconstruction_loss : The values.

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.plotting import GroupErrorDisplay
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> options = {"sensitive_features": sex, "n_components": [1, 2, 3], "of": "loss"}
    >>> display = GroupErrorDisplay.from_estimator(FairPCA(), X, **options)
    >>> display.values["FairPCA"].shape
    (3, 2)
    """

    dimensions: np.ndarray
    values: dict[str, np.ndarray]
    groups: tuple[Any, ...]
    of: str = "error"
    label: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        sensitive_features: Any,
        n_components: int | Iterable[int] | None = None,
        of: str = "error",
        ax: Any = None,
    ) -> Self:
        """Fit copies of an estimator with several numbers of components to X, measure them on X, and draw.

        Returns the display, drawn on ``ax`` or in a new figure.
        ``estimator`` may be a dict from names to estimators, to compare them; scikit-learn's PCA is accepted too.
        ``n_components`` is 1 to 10 by default, or up to the number of features if that is smaller.
        """
        named = named_estimators(estimator)
        measure = _MEASURES[check_choice("of", of, _MEASURES)]
        X, sensitive_features = split_off_groups(None, X, sensitive_features)
        dimensions = check_dimensions(n_components, np.shape(X)[1], default=range(1, 11))
        values, groups = {}, ()
        for name, one in named.items():
            rows = []
            for d in dimensions:
                fitted = fit_rows(clone(one).set_params(n_components=d), X, None, sensitive_features, None)
                found = measure(X, fitted, sensitive_features=sensitive_features)
                assert isinstance(found, GroupValues)
                groups = tuple(found)
                rows.append(list(found.values()))
            values[name] = np.array(rows)
        return cls(np.array(dimensions), values, groups, of).plot(ax)

    @classmethod
    def from_comparison(
        cls, comparison: Comparison, *, methods: Iterable[str] | None = None, of: str = "error", ax: Any = None
    ) -> Self:
        """Draw the values of :func:`fairpca.model_selection.compare`: error or corrected loss on new rows, or loss.

        Where a method could not be fitted with some number of components, its values and markers are missing.
        """
        check_choice("of", of, _COMPARED)
        names = comparison.methods if methods is None else list(methods)
        for name in names:
            check_choice("methods", name, comparison.methods)
        values = {name: np.full((len(comparison.dimensions), len(comparison.groups)), np.nan) for name in names}
        for result in comparison.results:
            if result.method in values:
                row = comparison.dimensions.index(result.n_components)
                values[result.method][row] = [e.value for e in getattr(result, of).by_group.values()]
        return cls(np.array(comparison.dimensions), values, comparison.groups, of, _COMPARED[of]).plot(ax)

    def _draw(self, ax: Any) -> None:
        self.lines_ = draw_group_curves(ax, self.dimensions, self.values, self.groups)
        label = self.label or f"reconstruction {self.of}"
        ax.set(ylabel=f"{label}\nin squared units (↓ better)", title=f"Each group's {label}")
