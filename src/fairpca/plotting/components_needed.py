"""The share of its variance that each group keeps, against the number of components."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from fairpca._validation import check_choice
from fairpca.model_selection import ComponentsNeeded, components_needed
from fairpca.plotting._style import Display, draw_group_curves, named_estimators, plain

__all__ = ["ComponentsNeededDisplay"]


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
    def from_estimator(
        cls, estimator: Any, X: Any, *, sensitive_features: Any, share: float = 0.9, ax: Any = None, **options: Any
    ) -> Self:
        """Fit copies of an estimator with 1, 2, ... components to X, and draw the shares that the groups keep.

        ``estimator`` may be a dict from names to estimators, to compare them; scikit-learn's PCA is accepted too. Other
        ``options`` are those of :func:`fairpca.model_selection.components_needed`; with ``cv`` the shares on new rows
        are drawn.
        """
        methods = named_estimators(estimator)
        found = components_needed(X, sensitive_features=sensitive_features, share=share, methods=methods, **options)
        return cls.from_result(found, new_rows=found.new_rows is not None, ax=ax)

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
        ax.legend(fontsize="small")
