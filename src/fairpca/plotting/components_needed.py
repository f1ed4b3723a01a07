"""How many components each group needs: the share that it keeps, and parallel analysis."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from fairpca._validation import check_choice
from fairpca.model_selection import ComponentsNeeded, ParallelAnalysis
from fairpca.plotting._style import Display, draw_group_curves, plain

__all__ = ["ComponentsNeededDisplay", "ParallelAnalysisDisplay"]


@dataclass
class ComponentsNeededDisplay(Display):
    """Share of the variance that each group keeps against the number of components, and where all keep enough.

    Ordinary PCA is dashed, as in the other figures. A vertical line per method marks the fewest components with which
    every group keeps the share.

    Parameters
    ----------
    result : ComponentsNeeded
    methods : tuple of str
        Those drawn.
    new_rows : bool
        Whether the shares on new rows are drawn instead of those in the sample.

    Attributes
    ----------
    ax_, figure_, lines_
        The matplotlib objects, after :meth:`plot`.

    See Also
    --------
    fairpca.model_selection.components_needed : Computes what is drawn.

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.model_selection import components_needed
    >>> from fairpca.plotting import ComponentsNeededDisplay
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> found = components_needed(X, sensitive_features=sex, share=0.8)
    >>> display = ComponentsNeededDisplay.from_result(found)  # doctest: +SKIP
    >>> ComponentsNeededDisplay(found, ("PCA", "FairPCA")).result.needed
    {'PCA': 29, 'FairPCA': 29}
    """

    result: ComponentsNeeded
    methods: tuple[str, ...]
    new_rows: bool = False

    @classmethod
    def from_result(
        cls, result: ComponentsNeeded, *, methods: Iterable[str] | None = None, new_rows: bool = False, ax: Any = None
    ) -> Self:
        """Draw the result of :func:`fairpca.model_selection.components_needed`."""
        names = tuple(result.kept if methods is None else methods)
        for name in names:
            check_choice("methods", name, result.kept)
        if new_rows and result.new_rows is None:
            raise ValueError("new_rows=True needs a result with cv; pass cv=10 to components_needed.")
        return cls(result, names, new_rows).plot(ax)

    def _draw(self, ax: Any) -> None:
        shown = self.result.new_rows if self.new_rows else self.result
        assert shown is not None
        curves = {method: shown.kept[method] for method in self.methods}
        self.lines_ = draw_group_curves(ax, shown.dimensions, curves, shown.groups)
        for method in self.methods:
            if (needed := shown.needed[method]) is not None:
                dashes = self.lines_[self.methods.index(method) * len(shown.groups)].get_linestyle()
                text = f"{plain(method)}: {needed} components"
                self.lines_.append(ax.axvline(needed, color="0.3", linewidth=1, linestyle=dashes, label=text))
        ax.axhline(shown.share, color="0.6", linewidth=1, zorder=0)
        where = "on new rows" if self.new_rows else "in the sample"
        ax.set(ylabel="share of its variance (↑ better)", title=f"What each group keeps, {where}")


@dataclass
class ParallelAnalysisDisplay(Display):
    """Variances of the components of all rows and of each group, against the 95 % level of permuted columns, dotted.

    Components count as long as their line lies above the dotted one of the same colour.

    Parameters
    ----------
    result : ParallelAnalysis

    Attributes
    ----------
    ax_, figure_, lines_
        The matplotlib objects, after :meth:`plot`.

    See Also
    --------
    fairpca.model_selection.components_needed : Computes what is drawn.

    Examples
    --------
    >>> from fairpca.datasets import make_toy
    >>> from fairpca.model_selection import components_needed
    >>> from fairpca.plotting import ParallelAnalysisDisplay
    >>> X, groups = make_toy(random_state=0)
    >>> found = components_needed(X, sensitive_features=groups, method="parallel")
    >>> len(ParallelAnalysisDisplay.from_result(found).lines_)
    6
    """

    result: ParallelAnalysis

    @classmethod
    def from_result(cls, result: ParallelAnalysis, *, ax: Any = None) -> Self:
        """Draw the result of :func:`fairpca.model_selection.components_needed` with ``method="parallel"``."""
        return cls(result).plot(ax)

    def _draw(self, ax: Any) -> None:
        found = self.result
        curves = {"in the sample": found.variances, "95 % by chance": found.levels}
        self.lines_ = draw_group_curves(ax, found.dimensions, curves, ("all rows", *found.groups))
        numbers = [found.needed, *found.needed_alone.values()]
        for number, line in zip(numbers, self.lines_, strict=False):
            line.set_label(f"{line.get_label()}: {number} components")
        ax.set(ylabel="variance of the component", yscale="log", title="Components above chance")
