"""Whether most of a group's loss is due to a rare value of one feature, or to a handful of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._validation import Groups, check_n_components
from fairpca.inference._checks import in_memory_rows
from fairpca.linalg import top_eigenpairs
from fairpca.moments import GroupMoments
from fairpca.moments._accumulate import accumulate
from fairpca.problems.evaluation import ROUNDING, leading_projections, losses_by_dimension

__all__ = ["Dominance", "dominant_parts", "dominant_parts_by_dimension"]

#: More than this share of a loss is most of it.
_MOST = 0.5
#: A handful of rows: this share of them.
_FEW_ROWS = 0.01


@dataclass(frozen=True)
class Dominance:
    """A rare value of one feature, or a handful of rows, that accounts for most of a group's loss.

    Attributes
    ----------
    group : label
    feature : str or None
        None where rows dominate.
    rows : int
        Rows that have the rare value; where rows dominate, these rows of the group.
    of_rows : int
        All rows; where rows dominate, all rows of the group.
    loss, loss_without : float
        The group's loss, and its loss without the feature or the rows.

    See Also
    --------
    dominant_parts : Finds them.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.inference import dominant_parts
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> dominant_parts(X, sensitive_features=np.repeat(["a", "b"], 150), n_components=2)
    ()
    """

    group: Any
    feature: str | None
    rows: int
    of_rows: int
    loss: float
    loss_without: float


def dominant_parts(
    X: Any, *, sensitive_features: Any, n_components: int, feature_names: Sequence[str] | None = None
) -> tuple[Dominance, ...]:
    """Find rare values and small sets of rows that account for most of a group's loss under ordinary PCA.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
    n_components : int
    feature_names : sequence of str, optional
        Default: ``column 0``, ``column 1`` and so on.

    Returns
    -------
    tuple of Dominance
        Empty if no loss depends on so little.

    See Also
    --------
    loss_test : Without permutations, says when a few rows dominate what chance gives.

    Notes
    -----
    A feature counts as rare if fewer than 1 % of all rows do not have its most frequent value, such as a level of a
    text column that few rows have. It dominates if the group's loss without the feature, with components fitted again,
    is less than half of the loss. Rows dominate if at most 1 % of the group's rows (or a single one) hold more than
    half of what rows add to the loss, ``x^T (P_a - P) x`` where that is positive, and the loss without them, fitted
    again, is less than half. P_a and P project on the group's own best and on the shared components.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.inference import dominant_parts
    >>> rng = np.random.default_rng(0)
    >>> X, groups = rng.normal(size=(600, 5)) * [3, 2, 1, 1, 0], np.repeat(["a", "b"], 300)
    >>> X[:4, 4] = 60  # four rows of one country
    >>> found = dominant_parts(X, sensitive_features=groups, n_components=2)
    >>> [(one.group, one.feature, one.rows) for one in found if one.feature]
    [('a', 'column 4', 4), ('b', 'column 4', 4)]
    """
    rows = in_memory_rows(X, sensitive_features, None)
    d = check_n_components(n_components, rows.n_features)
    names = [f"column {j}" for j in range(rows.n_features)] if feature_names is None else feature_names
    return dominant_parts_by_dimension(rows.X, rows.groups, [d], names)[d]


def dominant_parts_by_dimension(
    X: np.ndarray, groups: Groups, dimensions: Sequence[int], names: Sequence[str]
) -> dict[int, tuple[Dominance, ...]]:
    """:func:`dominant_parts` of several numbers of components; what they share is computed once."""
    n, p = X.shape
    found: dict[int, tuple[Dominance, ...]] = dict.fromkeys(dimensions, ())
    numbers = [d for d in dimensions if d < p]
    if not numbers:  # with all components nothing is lost
        return found
    moments = accumulate(X, groups)
    losses, rare = _pca_losses(moments, numbers), []
    for j in range(p):
        uncommon = n - int(np.unique(X[:, j], return_counts=True)[1].max())
        if 0 < uncommon < _FEW_ROWS * n:
            others = moments.select(np.delete(np.arange(p), j))
            rare.append((str(names[j]), uncommon, _pca_losses(others, numbers)))
    for i, d in enumerate(numbers):
        notable = np.flatnonzero(losses[i] > 100 * ROUNDING * moments.pooled_variance()).tolist()
        parts: list[tuple] = [
            (a, name, uncommon, n, without[i, a]) for name, uncommon, without in rare for a in notable
        ]
        parts += [(a, None, *_without_dominating_rows(X, groups, moments, a, d)) for a in notable]
        found[d] = tuple(
            Dominance(groups.labels[a], name, rows, of_rows, float(losses[i, a]), float(without))
            for a, name, rows, of_rows, without in parts
            if without < _MOST * losses[i, a]
        )
    return found


def _pca_losses(moments: GroupMoments, dimensions: Sequence[int]) -> np.ndarray:
    """Of shape (n_dimensions, n_groups)."""
    projections = leading_projections(moments.pooled_covariance(), dimensions)
    return losses_by_dimension(moments.second_moments(), projections)


def _without_dominating_rows(
    X: np.ndarray, groups: Groups, moments: GroupMoments, a: int, d: int
) -> tuple[int, int, float]:
    """The fewest rows of a group that hold most of its loss, all its rows, and its loss without the former.

    That loss is infinite if they are too many.
    """
    members = np.flatnonzero(groups.codes == a)
    rows = X[members] - moments.pooled_mean
    own, shared = (top_eigenpairs(one, d)[1] for one in (moments.second_moments()[a], moments.pooled_covariance()))
    gains = ((rows @ own) ** 2).sum(axis=1) - ((rows @ shared) ** 2).sum(axis=1)
    order = np.argsort(-gains)
    held = np.cumsum(np.maximum(gains[order], 0.0))
    few = order[: int(np.searchsorted(held, _MOST * held[-1], side="right")) + 1]
    if len(few) > max(_FEW_ROWS * len(rows), 1) or len(few) == len(rows):
        return len(few), len(rows), np.inf
    kept = np.delete(np.arange(len(X)), members[few])
    remaining = accumulate(X[kept], Groups(groups.labels, groups.codes[kept]))
    return len(few), len(rows), _pca_losses(remaining, [d])[0, a]
