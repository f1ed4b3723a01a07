"""How many components each group needs: the share of its variance that it keeps, against their number."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._display import TableResult
from fairpca._labels import label_texts
from fairpca._validation import (
    check_choice,
    check_groups_given,
    check_n_components,
    check_several_groups,
    check_share,
    is_dask,
    seed_from,
)
from fairpca.inference._blocks import make_blocks
from fairpca.inference._checks import as_source
from fairpca.inference._fitting import fit_to_moments, needs_moments_only
from fairpca.linalg import threads_for
from fairpca.metrics._components import fitted_projection
from fairpca.model_selection.methods import choose_methods
from fairpca.model_selection.parallel import parallel_analysis
from fairpca.moments import GroupMoments, group_moments
from fairpca.moments._folds import FoldMoments
from fairpca.moments.dask import moments_from_dask
from fairpca.problems.evaluation import captured_variances

__all__ = ["ComponentsNeeded", "components_needed"]

#: Shares are compared up to rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, repr=False)
class ComponentsNeeded(TableResult):
    """Result of :func:`components_needed`.

    Attributes
    ----------
    share : float
    groups : tuple
    counts : ndarray of shape (n_groups,)
        Rows of each group, or their total weight.
    dimensions : ndarray of shape (n_dimensions,)
        1, 2, ...
    kept : dict from method to ndarray of shape (n_dimensions, n_groups)
        The share of its variance that each group keeps, in the sample; missing where a method has fewer components.
    own : ndarray of shape (n_dimensions, n_groups)
        The same with components of its own for each group: more than any shared components can keep.
    new_rows : ComponentsNeeded or None
        The same on rows that were not used for fitting; None without ``cv``.

    See Also
    --------
    components_needed : Computes it.
    fairpca.plotting.ComponentsNeededDisplay : Draws it.

    Examples
    --------
    >>> from fairpca.datasets import make_toy
    >>> from fairpca.model_selection import components_needed
    >>> X, groups = make_toy(random_state=0)
    >>> found = components_needed(X, sensitive_features=groups, share=0.5, methods=["PCA"])
    >>> found.kept["PCA"].shape == (len(found.dimensions), len(found.groups))
    True
    """

    share: float
    groups: tuple[Any, ...]
    counts: np.ndarray
    dimensions: np.ndarray
    kept: dict[str, np.ndarray]
    own: np.ndarray
    new_rows: ComponentsNeeded | None = None

    @property
    def needed(self) -> dict[str, int | None]:
        """For each method, the fewest components with which every group keeps the share; None if none do."""
        return {method: self._first(curve.min(axis=1)) for method, curve in self.kept.items()}

    @property
    def needed_alone(self) -> dict[Any, int | None]:
        """For each group, the fewest components of its own with which it keeps the share."""
        return dict(zip(self.groups, map(self._first, self.own.T), strict=True))

    def _first(self, curve: np.ndarray) -> int | None:
        enough = np.flatnonzero(curve >= self.share - _ROUNDING)
        return int(self.dimensions[enough[0]]) if len(enough) else None

    def _curves(self) -> dict[str, np.ndarray]:
        return {"own components": self.own, **self.kept}

    def _new_curves(self) -> dict[str, np.ndarray]:
        return {} if self.new_rows is None else self.new_rows.kept

    def _cells(self) -> list[dict[str, str]]:
        curves = self._curves() | {f"{name}, new rows": curve for name, curve in self._new_curves().items()}
        texts, counts = [*label_texts(self.groups), "every group"], [*self.counts, self.counts.sum()]
        fewest = {name: map(self._first, [*curve.T, curve.min(axis=1)]) for name, curve in curves.items()}
        return [
            {"group": text, "rows": f"{count:,.0f}"}
            | {name: "-" if (d := next(column)) is None else str(d) for name, column in fewest.items()}
            for text, count in zip(texts, counts, strict=True)
        ]

    def _sentences(self) -> tuple[list[str], list[str]]:
        above = f"Fewest components with which a group keeps {self.share:.4g} of its variance"
        below = "Small groups are flattered in the sample, since components fit their rows more closely"
        return [above], [below + ("; cv=10 adds new rows." if self.new_rows is None else ".")]

    def _records(self) -> list[dict[str, Any]]:
        new = None if self.new_rows is None else self.new_rows._curves()
        return [
            {"method": method, "n_components": int(d), "group": group, "kept": float(curve[i, a])}
            | ({} if new is None else {"kept_on_new_rows": float(new[method][i, a])})
            for method, curve in self._curves().items()
            for i, d in enumerate(self.dimensions)
            for a, group in enumerate(self.groups)
        ]


def components_needed(
    X: Any,
    *,
    sensitive_features: Any = None,
    method: str = "share",
    share: float = 0.9,
    methods: Iterable[str] | Mapping[str, Any] = ("PCA", "FairPCA"),
    n_components: int | None = None,
    center: str = "pooled",
    cv: int | None = None,
    sample_weight: Any = None,
    random_state: Any = None,
) -> Any:
    """How many components every group needs: to keep a share of its variance, or before only noise is left.

    Components that keep 90 % of the variance of all rows may keep much less of a group that varies in other directions.
    Group a keeps ``<M_a, V V^T> / tr M_a`` of its own variance.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features), Dask collection, or GroupMoments
    sensitive_features : array-like
        The group of each row; not needed if X is a GroupMoments.
    method : {"share", "parallel"}, default="share"
        "parallel" is parallel analysis by group, for rows in memory; it has no other options than ``random_state``.
    share : float, default=0.9
    methods : iterable of str or mapping from name to estimator, default=("PCA", "FairPCA")
        Names as in ``fairpca.model_selection.METHODS``, or estimators of your own with a parameter ``n_components``.
        Moments must be enough to fit them.
    n_components : int or None, default=None
        Largest number of components on the curves. None: up to the first with which every method keeps the share in
        every group.
    center : {"pooled", "group"}, default="pooled"
        Whether the variance is about the mean of all rows or about each group's own.
    cv : int, optional
        Adds the shares on new rows: components are fitted without each of so many folds, stratified by group, and
        judged on it.
    sample_weight : array-like of shape (n_samples,), optional
        Counts like repeated rows.
    random_state : int, RandomState or None, default=None
        For the folds and the methods; None is a fixed seed.

    Returns
    -------
    ComponentsNeeded, or ParallelAnalysis with ``method="parallel"``

    See Also
    --------
    fairpca.FairPCA : ``FairPCA(n_components=0.9)`` is fitted with the number found here.
    fairpca.plotting.ComponentsNeededDisplay, fairpca.plotting.ParallelAnalysisDisplay : Draw the curves.

    Notes
    -----
    In the sample, components fit the rows they were computed from, and a small group more closely than a large one:
    differences between groups may be due to their sizes. ``cv`` shows what holds on new rows. Warnings of single fits,
    such as that of a gap that did not close with three or more groups, are not repeated here.

    No projection keeps more of the group that keeps least than ``FairPCA(criterion="error", relative=True)``, so no
    method needs fewer components than this one does with two groups.

    *Parallel analysis* (Horn 1965) permutes each column within each group 199 times: this keeps all means and variances
    of groups and removes all relations between columns. Components count, from the first on, while their variance
    exceeds the 95 % level of the permuted rows: those of all rows, and each group's own. Variances are about the group
    means, so a difference of means is not a component. Where nothing is related, a component is found in one case of
    20, in all rows and in each group. Strong components hide weak ones, since permuting spreads their variance over all
    others; standardise columns in different units.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.model_selection import components_needed
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> found = components_needed(X, sensitive_features=sex, share=0.8)
    >>> found.needed
    {'PCA': 29, 'FairPCA': 29}
    >>> found
    Fewest components with which a group keeps 0.8 of its variance
    <BLANKLINE>
    group         rows  own components  PCA  FairPCA
    female         310              26   29       27
    male           690              28   29       29
    every group  1,000              28   29       29
    Small groups are flattered in the sample, since components fit their rows more closely; cv=10 adds new rows.
    >>> components_needed(X, sensitive_features=sex, method="parallel")
    Components whose variance exceeds the 95 % level of columns permuted within each group
    <BLANKLINE>
    group      rows  components
    all rows  1,000          23
    female      310          21
    male        690          19
    Few rows show few components: a smaller number does not show that a group has fewer.
    """
    seed = seed_from(random_state)
    if check_choice("method", method, ("share", "parallel")) == "parallel":
        others = {"share": share, "methods": methods, "n_components": n_components, "center": center, "cv": cv}
        others["sample_weight"] = sample_weight
        known = inspect.signature(components_needed).parameters
        if useless := [name for name, value in others.items() if value is not known[name].default]:
            raise ValueError(f"method='parallel' has no use for {', '.join(useless)}; leave out all of them.")
        return parallel_analysis(X, sensitive_features, seed)
    check_share("share", share, example=0.9)
    check_choice("center", center, ("pooled", "group"))
    chosen = choose_methods(methods)
    for one in chosen:
        if not needs_moments_only(one.make(1, seed)):
            raise ValueError(
                f"methods: {one.name} cannot be fitted to moments, which a curve over all numbers of components "
                "needs; fit it with a share as n_components instead."
            )
    moments, folds = _moments(X, sensitive_features, sample_weight, cv, seed)
    last = None if n_components is None else check_n_components(n_components, moments.n_features)
    curves = [_Curves([(moments, moments)], moments.labels, center)]
    if folds is not None:
        parts = [(folds.training(number), judged) for number, judged in enumerate(folds.parts)]
        curves.append(_Curves(parts, moments.labels, center))
    with threads_for(len(chosen) * (last or moments.n_features) * moments.n_features**3):
        for d in range(1, (last or moments.n_features) + 1):
            for curve in curves:
                for one in chosen:
                    curve.extend(one.name, one.make(d, seed))
            if last is None and all(curve.reach(share) for curve in curves):
                break
    found = None
    for curve in reversed(curves):  # the one on new rows is part of the one in the sample
        kept = {name: np.array(values) for name, values in curve.kept.items()}
        given = (float(share), moments.labels, moments.counts.copy(), np.arange(1, d + 1))
        found = ComponentsNeeded(*given, kept, curve.own[:d], found)
    assert found is not None
    return found


def _moments(
    X: Any, sensitive_features: Any, sample_weight: Any, cv: Any, seed: int
) -> tuple[GroupMoments, FoldMoments | None]:
    """The moments of all rows and, for cross-validation, of every fold; one pass over the rows."""
    if isinstance(X, GroupMoments):
        if cv is not None:
            raise ValueError("cv needs the rows, but X is a GroupMoments; pass the rows, or leave cv out.")
        moments = X.check()
    else:
        check_groups_given(sensitive_features)
        if cv is not None:
            source = as_source(X, sensitive_features, sample_weight)
            folds = make_blocks(source, cv, None, seed).fold_moments(source, None, cv, 0)
            return folds.whole, folds
        reduce = moments_from_dask if is_dask(X) else group_moments
        moments = reduce(X, sensitive_features=sensitive_features, sample_weight=sample_weight)
    check_several_groups(moments.labels, moments.total_count)
    return moments, None


class _Curves:
    """The share that every method keeps of each group, one number of components after the other.

    ``parts`` are moments to which components are fitted, and those of the rows that judge them. These are about the
    mean of the former, or about their own.
    """

    def __init__(self, parts: Sequence[tuple[GroupMoments, GroupMoments]], labels: Sequence[Any], center: str) -> None:
        self._fits: list[tuple[GroupMoments, np.ndarray]] = []
        own = np.zeros((parts[0][0].n_features, len(labels)))
        for training, judging in parts:
            known, judged = ([part.labels.index(label) for label in labels] for part in (training, judging))
            about = "group" if center == "group" else training.pooled_mean
            scatters = (judging.second_moments(about) * judging.counts[:, None, None])[judged]
            vectors = np.linalg.eigh(training.second_moments(center)[known])[1][:, :, ::-1]
            own += np.einsum("api,apq,aqi->ia", vectors, scatters, vectors, optimize=True)
            self._fits.append((training, scatters))
        self._totals = sum(np.einsum("aii->a", scatters) for _, scatters in self._fits)
        #: With the group's own leading components.
        self.own = self._shares(np.cumsum(own, axis=0))
        self.kept: dict[str, list[np.ndarray]] = {}

    def _shares(self, captured: np.ndarray) -> np.ndarray:
        """Of the group's variance; 1 for a group without any."""
        return np.divide(captured, self._totals, out=np.ones_like(captured), where=self._totals > 0)

    def extend(self, name: str, estimator: Any) -> None:
        """Add one number of components to the curve of a method; missing where it has no so many."""
        curve, captured = self.kept.setdefault(name, []), np.zeros_like(self._totals)
        try:
            for training, scatters in self._fits:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)
                    fitted = fit_to_moments(estimator, training)
                captured += captured_variances(scatters, *fitted_projection(fitted))
        except ValueError:
            if not curve:
                raise
            captured = np.full_like(captured, np.nan)
        curve.append(self._shares(captured))

    def reach(self, share: float) -> bool:
        """Whether every method has kept the share in every group, or has no more components."""
        return all(
            np.isnan(curve[-1]).all() or np.nan_to_num(curve).min(axis=1).max() >= share - _ROUNDING
            for curve in self.kept.values()
        )
