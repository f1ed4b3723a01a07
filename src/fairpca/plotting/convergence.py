"""Convergence of a solver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fairpca.plotting._style import COLOURS, DASHES, Display

__all__ = ["ConvergenceDisplay"]

_NAMES = {
    "objective": "objective",
    "lower_bound": "lower bound",
    "loss": "minus explained variance ratio",
    "constraint": "MMD²",
}


@dataclass
class ConvergenceDisplay(Display):
    """Objective (and bound) against the iterations of a solver.

    Parameters
    ----------
    curves : list of (str, ndarray)
        Name and values of each curve; the starts of one method share a name.

    See Also
    --------
    fairpca.MMDFairPCA, fairpca.RobustFairPCA : Solvers with a history.

    Examples
    --------
    >>> from fairpca import RobustFairPCA
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.plotting import ConvergenceDisplay
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> pca = RobustFairPCA(3).fit(X, sensitive_features=sex)
    >>> [name for name, values in ConvergenceDisplay.from_estimator(pca).curves]
    ['objective', 'lower bound']
    """

    curves: list[tuple[str, np.ndarray]]

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the curves of a fitted estimator with a ``history_`` (RobustFairPCA).

        Returns the display, drawn on ``ax`` or in a new figure.
        """
        history = getattr(estimator, "history_", None)
        if not history:
            raise ValueError(
                f"{type(estimator).__name__} keeps no history_. RobustFairPCA does; for MMDFairPCA collect records "
                "with callback=records.append and draw ConvergenceDisplay.from_records(records)."
            )
        return cls.from_records(history, ax=ax)

    @classmethod
    def from_records(cls, records: Sequence[dict[str, Any]], *, ax: Any = None) -> Self:
        """Draw curves from dicts: one per step, or one per start that holds an array of objectives."""
        if not records:
            raise ValueError("records is empty; there is nothing to draw.")
        curves = []
        for key, name in _NAMES.items():
            values = [record[key] for record in records if key in record]
            if values and np.ndim(values[0]):
                curves += [(name, np.asarray(start, dtype=float)) for start in values]
            elif values:
                curves.append((name, np.array(values, dtype=float)))
        return cls(curves).plot(ax)

    def _draw(self, ax: Any) -> None:
        names = [name for name, _ in self.curves]
        for i, (name, values) in enumerate(self.curves):
            style = list(dict.fromkeys(names)).index(name)
            ax.plot(
                np.where(np.isfinite(values), values, np.nan), color=COLOURS[style % len(COLOURS)],
                linestyle=DASHES[style % len(DASHES)], alpha=0.5 if names.count(name) > 1 else 1.0,
                label=None if name in names[:i] else name,
            )  # fmt: skip
        ax.set(xlabel="step", ylabel=", ".join(dict.fromkeys(names)), title="Convergence")
        ax.ticklabel_format(axis="y", useOffset=False)
