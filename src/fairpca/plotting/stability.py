"""How far components are from those of the population."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fairpca.inference import ComponentStability
from fairpca.plotting._style import COLOURS, Display

__all__ = ["ComponentStabilityDisplay"]


@dataclass
class ComponentStabilityDisplay(Display):
    """Angles of each component and of all together: medians and intervals, and small dots for fits without a block.

    Parameters
    ----------
    result : ComponentStability

    Attributes
    ----------
    ax_, figure_, bars_, dots_
        The matplotlib objects, after :meth:`plot`.

    See Also
    --------
    fairpca.inference.component_stability : Computes what is drawn.

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.inference import component_stability
    >>> from fairpca.plotting import ComponentStabilityDisplay
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> found = component_stability(FairPCA(2, criterion="mean"), X, sensitive_features=sex)  # doctest: +SKIP
    >>> display = ComponentStabilityDisplay.from_result(found)  # doctest: +SKIP
    """

    result: ComponentStability

    @classmethod
    def from_result(cls, result: ComponentStability, *, ax: Any = None) -> Self:
        """Draw the result of :func:`fairpca.inference.component_stability`."""
        return cls(result).plot(ax)

    def _draw(self, ax: Any) -> None:
        found = [*self.result.components, self.result.subspace]
        positions, values = np.arange(len(found)), np.array(found)
        ends = np.abs(np.array([[one.low, one.high] for one in found]).T - values)
        style = {"fmt": "o", "color": COLOURS[0], "capsize": 4, "label": "to the population's"}
        self.bars_ = ax.errorbar(positions, values, ends, **style)
        moved = self.result.without_block
        beside = np.tile(positions, len(moved)) + 0.2
        self.dots_ = ax.plot(beside, moved.ravel(), ".", color="0.5", label="without a block")
        ax.set_xticks(positions, [*range(1, len(found)), "all\ntogether"])
        ax.set(xlabel="component", ylabel="angle in degrees (↓ more stable)", title=f"Stability, {self.result.method}")
