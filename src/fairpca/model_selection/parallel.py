"""Parallel analysis by group: the components whose variance exceeds that of columns without any relation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._display import TableResult
from fairpca._labels import label_texts
from fairpca._validation import check_groups_given, is_dask, rng_for
from fairpca.inference._checks import in_memory_rows
from fairpca.moments import GroupMoments
from fairpca.moments._accumulate import accumulate

__all__ = ["ParallelAnalysis", "parallel_analysis"]

#: The 95 % level is then the tenth largest value.
_PERMUTATIONS, _LEVEL = 199, 0.95
#: Variances are compared up to rounding: those of two rows are the same in every permutation.
_ROUNDING = 1e-9


@dataclass(frozen=True, repr=False)
class ParallelAnalysis(TableResult):
    """Result of :func:`components_needed` with ``method="parallel"``.

    Attributes
    ----------
    groups : tuple
    counts : ndarray of shape (n_groups,)
        Rows of each group.
    dimensions : ndarray of shape (n_features,)
        1, 2, ...
    variances : ndarray of shape (n_features, n_groups + 1)
        Of the components of all rows, then of each group's own; about the group means.
    levels : ndarray of shape (n_features, n_groups + 1)
        The 95 % level of the same with each column permuted within each group.

    See Also
    --------
    components_needed : Computes it.
    fairpca.plotting.ParallelAnalysisDisplay : Draws it.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.model_selection import components_needed
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> found = components_needed(X, sensitive_features=sex, method="parallel")
    >>> found.needed, found.needed_alone
    (23, {'female': 21, 'male': 19})
    """

    groups: tuple[Any, ...]
    counts: np.ndarray
    dimensions: np.ndarray
    variances: np.ndarray
    levels: np.ndarray

    @property
    def needed(self) -> int:
        """How many components of all rows count: those before the first that does not exceed its level."""
        return self._numbers()[0]

    @property
    def needed_alone(self) -> dict[Any, int]:
        """The same for each group's own components."""
        return dict(zip(self.groups, self._numbers()[1:], strict=True))

    def _numbers(self) -> list[int]:
        return (self.variances > self.levels * (1.0 + _ROUNDING)).cumprod(axis=0).sum(axis=0).tolist()

    def _cells(self) -> list[dict[str, str]]:
        given = (["all rows", *label_texts(self.groups)], [self.counts.sum(), *self.counts], self._numbers())
        return [
            {"group": text, "rows": f"{count:,}", "components": str(number)}
            for text, count, number in zip(*given, strict=True)
        ]

    def _sentences(self) -> tuple[list[str], list[str]]:
        above = "Components whose variance exceeds the 95 % level of columns permuted within each group"
        return [above], ["Few rows show few components: a smaller number does not show that a group has fewer."]

    def _records(self) -> list[dict[str, Any]]:
        return [
            {"n_components": int(d), "group": group, "variance": float(self.variances[i, a]), "level": float(level)}
            for a, group in enumerate(["all rows", *self.groups])
            for i, (d, level) in enumerate(zip(self.dimensions, self.levels[:, a], strict=True))
        ]


def parallel_analysis(X: Any, sensitive_features: Any, seed: int) -> ParallelAnalysis:
    """Permute each column within each group, and compare the variances of all components."""
    if isinstance(X, GroupMoments) or is_dask(X):
        raise ValueError(
            f"method='parallel' permutes rows, which must be in memory, but X is a {type(X).__name__}; pass a random "
            "sample of the rows as an array."
        )
    check_groups_given(sensitive_features)
    given, rng = in_memory_rows(X, sensitive_features, None), rng_for(seed, "parallel analysis")
    rows = given.X.toarray() if hasattr(given.X, "toarray") else np.array(given.X, dtype=float)
    moments, permuted = accumulate(rows, given.groups, None), []
    for _ in range(_PERMUTATIONS):
        for code in range(len(given.groups)):
            members = given.groups.codes == code
            rows[members] = rng.permuted(rows[members], axis=0)
        permuted.append(_variances(accumulate(rows, given.groups, None)))
    levels, dimensions = np.quantile(permuted, _LEVEL, axis=0), np.arange(1, moments.n_features + 1)
    return ParallelAnalysis(moments.labels, moments.counts.astype(int), dimensions, _variances(moments), levels)


def _variances(moments: GroupMoments) -> np.ndarray:
    """Within the groups together, and within each one, descending, of shape (n_features, n_groups + 1)."""
    within = moments.scatters.sum(axis=0) / moments.total_count
    return np.linalg.eigvalsh(np.stack([within, *moments.second_moments("group")]))[:, ::-1].T
