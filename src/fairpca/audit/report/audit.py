"""The audit: from rows to a report in one call."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_array

from fairpca._files import write_text
from fairpca._frames import feature_names_of
from fairpca._progress import Report
from fairpca._validation import check_groups, rng_for, split_off_groups
from fairpca.audit.report._page import page
from fairpca.model_selection import Comparison, Frontier, compare, frontier
from fairpca.moments import GroupMoments

__all__ = ["Audit", "audit"]

#: Rows drawn in the projections: enough to see a shape, few enough for a phone.
_MAX_POINTS = 500
_FRONTIER_POINTS = 40


@dataclass(frozen=True, repr=False)
class Audit:
    """A comparison, the frontier for every number of components, and the scores of a sample of rows.

    Attributes
    ----------
    comparison : Comparison
    frontiers : dict of int to Frontier
    feature_names : list of str
    scores : dict of (str, int) to ndarray of shape (n_points, 1 or 2)
        Leading scores of a sample of the rows, by method and number of components; empty with ``points=False``.
    point_groups : ndarray of shape (n_points,)
        Position of each point's group in ``comparison.groups``.
    title : str
    remarks : list of str
        How the data was read.
    provenance : dict of str to str
        What a reader needs to repeat the audit.

    See Also
    --------
    audit : Computes it.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.audit import audit
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> found = audit(X, sensitive_features=sex, n_components=[2], methods=["PCA"], n_permutations=19, progress=False)
    >>> found.comparison.methods, sorted(found.frontiers)
    (['PCA'], [2])
    """

    comparison: Comparison
    frontiers: dict[int, Frontier]
    feature_names: list[str]
    scores: dict[tuple[str, int], np.ndarray]
    point_groups: np.ndarray
    title: str
    remarks: list[str] = field(default_factory=list)
    provenance: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"{self.title}\n{self.comparison!r}"

    def _repr_html_(self) -> str:
        return f"<h4>{escape(self.title)}</h4>{self.comparison._repr_html_()}"

    def html(self) -> str:
        """The report: one self-contained page that needs no network."""
        return page(self)

    def save(self, path: Any) -> Path:
        """Write the report atomically: the file appears complete or not at all."""
        return write_text(path, self.html())


def audit(
    X: Any,
    y: Any = None,
    *,
    sensitive_features: Any,
    n_components: int | Iterable[int] | None = None,
    methods: Iterable[str] | Mapping[str, Any] | None = None,
    feature_names: Sequence[str] | None = None,
    title: str = "Audit of PCA by group",
    points: bool = True,
    random_state: Any = None,
    remarks: Sequence[str] = (),
    provenance: Mapping[str, str] | None = None,
    progress: Report | bool | None = None,
    moments: GroupMoments | None = None,
    **options: Any,
) -> Audit:
    """Audit a data set: how each method treats the groups, and what it costs.

    Parameters
    ----------
    X, y, sensitive_features, n_components, methods, random_state, progress, moments
        As in :func:`fairpca.model_selection.compare`.
    feature_names : sequence of str, optional
        Default: the columns of a DataFrame, else x0, x1, ...
    title : str
    points : bool, default=True
        Whether the report draws the scores of a sample of rows. Each point is one row of the data, often a person:
        leave them out of reports shared externally.
    remarks, provenance
        Text shown in the report: how the data was read, and how to repeat the audit.
    **options
        Further arguments of :func:`fairpca.model_selection.compare`.

    Returns
    -------
    Audit
        Its ``save`` writes the report.

    See Also
    --------
    fairpca.model_selection.compare : The values without a report.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.audit import audit
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> found = audit(X, sensitive_features=sex, n_components=[2], methods=["PCA", "FairPCA"])
    >>> path = found.save("fairpca-report.html")  # doctest: +SKIP
    """
    X, sensitive_features = split_off_groups(None, X, sensitive_features)
    names = feature_names_of(X, feature_names, np.shape(X)[1])
    X = check_array(X, dtype=np.float64)
    groups = check_groups(sensitive_features, len(X))
    comparison = compare(
        X, y, sensitive_features=groups, n_components=n_components, methods=methods, random_state=random_state,
        progress=progress, moments=moments, feature_names=names, **options,
    )  # fmt: skip
    # In random order, so that no group is always drawn on top of the others.
    order = rng_for(comparison.settings["random_state"], "points").permutation(len(X))
    rows = order[: _MAX_POINTS if points else 0]
    scores = {
        (result.method, result.n_components): result.estimator.transform(X[rows])[:, :2]
        for result in comparison.results
        if points
    }
    frontiers = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the comparison already holds the warnings of these estimators
        for d in comparison.dimensions:
            fitted = {one.method: one.estimator for one in comparison.results if one.n_components == d}
            frontiers[d] = frontier(comparison.moments, n_components=d, methods=fitted, n_points=_FRONTIER_POINTS)
    return Audit(
        comparison, frontiers, names, scores, groups.codes[rows], title, list(remarks), dict(provenance or {})
    )  # fmt: skip
