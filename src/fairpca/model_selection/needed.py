"""How many components each group needs: the share of its variance that it keeps, against their number."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA

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
from fairpca.model_selection.methods import Method, choose_methods
from fairpca.moments import GroupMoments, group_moments
from fairpca.moments._folds import FoldMoments
from fairpca.moments.dask import moments_from_dask

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
    kept_on_new_rows, own_on_new_rows
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
    kept_on_new_rows: dict[str, np.ndarray] | None = None
    own_on_new_rows: np.ndarray | None = None

    @property
    def needed(self) -> dict[str, int | None]:
        """For each method, the fewest components with which every group keeps the share; None if none do."""
        return {method: self._first(curve.min(axis=1)) for method, curve in self.kept.items()}

    @property
    def needed_on_new_rows(self) -> dict[str, int | None] | None:
        """The same on rows that were not used for fitting; None without ``cv``."""
        if self.kept_on_new_rows is None:
            return None
        return {method: self._first(curve.min(axis=1)) for method, curve in self.kept_on_new_rows.items()}

    @property
    def needed_alone(self) -> dict[Any, int | None]:
        """For each group, the fewest components of its own with which it keeps the share."""
        return dict(zip(self.groups, map(self._first, self.own.T), strict=True))

    def _first(self, curve: np.ndarray) -> int | None:
        enough = np.flatnonzero(curve >= self.share - _ROUNDING)
        return int(self.dimensions[enough[0]]) if len(enough) else None

    def _curves(self) -> dict[str, np.ndarray]:
        curves = {"own components": self.own, **self.kept}
        if self.kept_on_new_rows is not None:
            curves |= {f"{method}, new rows": curve for method, curve in self.kept_on_new_rows.items()}
        return curves

    def _headings(self) -> list[str]:
        return ["group", "rows", *self._curves()]

    def _rows(self) -> list[list[str]]:
        curves = self._curves().values()
        rows = [
            [text, f"{count:,.0f}", *(_text(self._first(curve[:, a])) for curve in curves)]
            for a, (text, count) in enumerate(zip(label_texts(self.groups), self.counts, strict=True))
        ]
        every = [_text(self._first(curve.min(axis=1))) for curve in curves]
        return [*rows, ["every group", f"{self.counts.sum():,.0f}", *every]]

    def _sentences(self) -> tuple[list[str], list[str]]:
        above = f"Fewest components with which a group keeps {self.share:.4g} of its variance"
        below = "Small groups are flattered in the sample, since components fit their rows more closely"
        new_rows = "." if self.kept_on_new_rows is not None else "; cv=10 adds new rows."
        return [above], [below + new_rows]

    def _records(self) -> list[dict[str, Any]]:
        new = self.kept_on_new_rows or {}
        curves = [("own components", self.own, self.own_on_new_rows)]
        curves += [(method, curve, new.get(method)) for method, curve in self.kept.items()]
        return [
            {"method": method, "n_components": int(d), "group": group, "kept": float(curve[i, a])}
            | ({} if held_out is None else {"kept_on_new_rows": float(held_out[i, a])})
            for method, curve, held_out in curves
            for i, d in enumerate(self.dimensions)
            for a, group in enumerate(self.groups)
        ]

    def to_frame(self) -> Any:
        """The curves as a :class:`pandas.DataFrame`, one row per method, number of components and group."""
        return super().to_frame()


def _text(number: int | None) -> str:
    return "-" if number is None else str(number)


def components_needed(
    X: Any,
    *,
    sensitive_features: Any = None,
    share: float = 0.9,
    methods: Iterable[str] | Mapping[str, Any] = ("PCA", "FairPCA"),
    n_components: int | None = None,
    center: str = "pooled",
    cv: int | None = None,
    sample_weight: Any = None,
    random_state: Any = None,
) -> ComponentsNeeded:
    """How many components every group needs to keep a share of its variance, and the curve that leads there.

    Components that keep 90 % of the variance of all rows may keep much less of a group that varies in other directions.
    Group a keeps ``<M_a, V V^T> / tr M_a`` of its own variance.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features), Dask collection, or GroupMoments
    sensitive_features : array-like
        The group of each row; not needed if X is a GroupMoments.
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
    ComponentsNeeded

    See Also
    --------
    fairpca.FairPCA : ``FairPCA(n_components=0.9)`` is fitted with the number found here.
    fairpca.plotting.ComponentsNeededDisplay : Draws the curves.

    Notes
    -----
    In the sample, components fit the rows they were computed from, and a small group more closely than a large one:
    differences between groups may be due to their sizes. ``cv`` shows what holds on new rows. Warnings of single fits,
    such as that of a gap that did not close with three or more groups, are not repeated here.

    No projection keeps more of the group that keeps least than ``FairPCA(criterion="error", relative=True)``, so no
    method needs fewer components than this one does with two groups.

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
    """
    check_share("share", share, example=0.9)
    check_choice("center", center, ("pooled", "group"))
    chosen = _check_methods(methods, seed_from(random_state))
    moments, folds = _moments(X, sensitive_features, sample_weight, cv, seed_from(random_state))
    last = None if n_components is None else check_n_components(n_components, moments.n_features)
    with threads_for(len(chosen) * (last or moments.n_features) * moments.n_features**3):
        sample = _Curves([_in_sample(moments, center)], chosen, seed_from(random_state))
        new = None if folds is None else _Curves(_without_folds(folds, center), chosen, seed_from(random_state))
        both = [sample] if new is None else [sample, new]
        while not all(curves.finished(share, last) for curves in both):
            for curves in both:
                curves.extend()
    return ComponentsNeeded(
        share=float(share),
        groups=moments.labels,
        counts=moments.counts.copy(),
        dimensions=np.arange(1, len(sample) + 1),
        kept=sample.kept(),
        own=sample.own(),
        kept_on_new_rows=None if new is None else new.kept(),
        own_on_new_rows=None if new is None else new.own(),
    )


def _check_methods(methods: Any, seed: int) -> list[Method]:
    chosen = choose_methods(methods)
    for method in chosen:
        if not needs_moments_only(method.make(1, seed)):
            raise ValueError(
                f"methods: {method.name} cannot be fitted to moments, which a curve over all numbers of components "
                "needs; fit it with a share as n_components instead."
            )
    return chosen


def _moments(
    X: Any, sensitive_features: Any, sample_weight: Any, cv: Any, seed: int
) -> tuple[GroupMoments, FoldMoments | None]:
    """The moments of all rows and, for cross-validation, of every fold; one pass over the rows."""
    if isinstance(X, GroupMoments):
        if cv is not None:
            raise ValueError("cv needs the rows, but X is a GroupMoments; pass the rows, or leave cv out.")
        check_several_groups(X.check().labels, X.total_count)
        return X, None
    check_groups_given(sensitive_features)
    if cv is not None:
        source = as_source(X, sensitive_features, sample_weight)
        folds = make_blocks(source, cv, None, seed).fold_moments(source, None, cv, 0)
        return folds.whole, folds
    reduce = moments_from_dask if is_dask(X) else group_moments
    moments = reduce(X, sensitive_features=sensitive_features, sample_weight=sample_weight)
    check_several_groups(moments.labels, moments.total_count)
    return moments, None


class _View(NamedTuple):
    """Moments to which components are fitted, and the scatter matrix of each group in the rows that judge them."""

    training: GroupMoments
    scatters: np.ndarray
    own: np.ndarray  # eigenvectors of each group's second moment in the training rows, leading first


def _view(training: GroupMoments, judging: GroupMoments, about: Any, labels: Sequence[Any], center: str) -> _View:
    order = [judging.labels.index(label) for label in labels]
    scatters = (judging.second_moments(about) * judging.counts[:, None, None])[order]
    own = training.second_moments(center)[[training.labels.index(label) for label in labels]]
    return _View(training, scatters, np.linalg.eigh(own)[1][:, :, ::-1])


def _in_sample(moments: GroupMoments, center: str) -> _View:
    return _view(moments, moments, center, moments.labels, center)


def _without_folds(folds: FoldMoments, center: str) -> list[_View]:
    """One view per fold; new rows are centred by the mean of the training rows, or by their own."""
    views = []
    for number, judging in enumerate(folds.parts):
        training = folds.training(number)
        about = "group" if center == "group" else training.pooled_mean
        views.append(_view(training, judging, about, folds.whole.labels, center))
    return views


class _Curves:
    """What every method captures of each group, one number of components after the other."""

    def __init__(self, views: Sequence[_View], methods: Sequence[Method], seed: int) -> None:
        self._views, self._seed = views, seed
        self._methods = {method.name: method for method in methods}
        self._totals = sum(np.einsum("aii->a", view.scatters) for view in views)
        self._captured: dict[str, list[np.ndarray]] = {name: [] for name in self._methods}
        self._possible = dict.fromkeys(self._methods, True)
        self._ordinary = [np.linalg.eigh(view.training.pooled_covariance())[1][:, ::-1] for view in views]

    def __len__(self) -> int:
        return len(next(iter(self._captured.values())))

    def extend(self) -> None:
        """Add one component to every curve."""
        d = len(self) + 1
        for name in self._methods:
            self._captured[name].append(self._capture(name, d))

    def finished(self, share: float, last: int | None) -> bool:
        """Whether the curves have ``last`` components or, if that is None, every method that can keeps the share."""
        n_features = self._views[0].training.n_features
        if last is not None or not len(self) or len(self) == n_features:
            return len(self) == (last or n_features)
        kept = {name: np.nan_to_num(curve).min(axis=1).max() for name, curve in self.kept().items()}
        return all(kept[name] >= share - _ROUNDING or not possible for name, possible in self._possible.items())

    def kept(self) -> dict[str, np.ndarray]:
        return {name: self._share(np.array(captured)) for name, captured in self._captured.items()}

    def own(self) -> np.ndarray:
        """The share that each group keeps with its own leading components."""
        parts = sum(
            np.einsum("api,apq,aqi->ai", view.own, view.scatters, view.own, optimize=True) for view in self._views
        )
        return self._share(np.cumsum(parts, axis=1)[:, : len(self)].T)

    def _share(self, captured: np.ndarray) -> np.ndarray:
        """As a share of the group's variance; 1 for a group without any."""
        return np.divide(captured, self._totals, out=np.ones_like(captured), where=self._totals > 0)

    def _capture(self, name: str, d: int) -> np.ndarray:
        """Missing where the method has no so many components."""
        captured = np.zeros_like(self._totals)
        for view, ordinary in zip(self._views, self._ordinary, strict=True):
            basis = self._basis(name, d, view.training, ordinary) if self._possible[name] else None
            if basis is None:
                self._possible[name] = False
                return np.full_like(captured, np.nan)
            captured += np.einsum("pi,api->a", basis, view.scatters @ basis)
        return captured

    def _basis(self, name: str, d: int, training: GroupMoments, ordinary: np.ndarray) -> np.ndarray | None:
        estimator = self._methods[name].make(d, self._seed)
        if type(estimator) is PCA:
            return ordinary[:, :d]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            try:
                return fit_to_moments(estimator, training).components_.T
            except ValueError:
                if d == 1:
                    raise
                return None
