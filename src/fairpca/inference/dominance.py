"""Whether most of a group's loss is due to a rare value of one feature, or to a handful of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._validation import Groups, check_grouped_rows, check_n_components, check_several_groups
from fairpca.linalg import top_eigenpairs
from fairpca.moments import GroupMoments
from fairpca.moments._accumulate import accumulate
from fairpca.problems.evaluation import ROUNDING, Evaluation

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
    X, groups, _ = check_grouped_rows(None, X, sensitive_features)
    check_several_groups(groups.labels, X.shape[0])
    d = check_n_components(n_components, X.shape[1])
    names = [f"column {j}" for j in range(X.shape[1])] if feature_names is None else feature_names
    return dominant_parts_by_dimension(X, groups, [d], names)[d]


def dominant_parts_by_dimension(
    X: np.ndarray, groups: Groups, dimensions: Sequence[int], names: Sequence[str]
) -> dict[int, tuple[Dominance, ...]]:
    """:func:`dominant_parts` of several numbers of components; what they share is computed once."""
    study = _Losses(X, groups, dimensions)
    features = [list(study.dominant_features(names, i)) for i in range(len(dimensions))]
    return {d: (*features[i], *study.dominant_rows(i)) for i, d in enumerate(dimensions)}


class _Losses:
    """Losses of all groups under ordinary PCA, as they are and without some features or rows.

    Of shape (n_dimensions, n_groups).
    """

    def __init__(self, X: np.ndarray, groups: Groups, dimensions: Sequence[int]) -> None:
        self.X, self.groups, self.dimensions = X, groups, list(dimensions)
        self.moments = accumulate(X, groups)
        self.shared = top_eigenpairs(self.moments.pooled_covariance(), max(dimensions))[1]
        self.losses = pca_losses_by_dimension(self.moments, self.dimensions)
        self.without = {j: (rows, self._without_feature(j)) for j, rows in self._rare_features()}

    def _without_feature(self, j: int) -> np.ndarray:
        """Where all other features are components, the losses as they are: nothing is shown to depend on it."""
        kept = np.delete(np.arange(self.X.shape[1]), j)
        possible = [d for d in self.dimensions if d <= len(kept)]
        losses = self.losses.copy()
        losses[: len(possible)] = pca_losses_by_dimension(self.moments.select(kept), possible)
        return losses

    def _notable(self, i: int) -> np.ndarray:
        """Groups with a loss larger than rounding."""
        return np.flatnonzero(self.losses[i] > 100 * ROUNDING * np.trace(self.moments.pooled_covariance()))

    def dominant_features(self, names: Sequence[str], i: int) -> Iterator[Dominance]:
        for j, (uncommon, without) in self.without.items():
            for a in self._notable(i):
                if without[i, a] < _MOST * self.losses[i, a]:
                    yield self._dominance(i, a, str(names[j]), uncommon, len(self.X), without[i, a])

    def _rare_features(self) -> Iterator[tuple[int, int]]:
        """Features with a rare value, and the rows that have it."""
        for j in range(self.X.shape[1]) if min(self.dimensions) < self.X.shape[1] else ():
            uncommon = len(self.X) - int(np.unique(self.X[:, j], return_counts=True)[1].max())
            if 0 < uncommon < _FEW_ROWS * len(self.X):
                yield j, uncommon

    def dominant_rows(self, i: int) -> Iterator[Dominance]:
        d = self.dimensions[i]
        shared = self.shared[:, :d]
        for a in self._notable(i):
            members = np.flatnonzero(self.groups.codes == a)
            rows = self.X[members] - self.moments.pooled_mean
            own = top_eigenpairs(self.moments.second_moments()[a], d)[1]
            few = _fewest_rows(((rows @ own) ** 2).sum(axis=1) - ((rows @ shared) ** 2).sum(axis=1))
            if len(few) > max(_FEW_ROWS * len(rows), 1) or len(few) == len(rows):
                continue
            without = self._losses_without(members[few], d)[a]
            if without < _MOST * self.losses[i, a]:
                yield self._dominance(i, a, None, len(few), len(rows), without)

    def _losses_without(self, rows: np.ndarray, d: int) -> np.ndarray:
        kept = np.delete(np.arange(len(self.X)), rows)
        moments = accumulate(self.X[kept], Groups(self.groups.labels, self.groups.codes[kept]))
        return pca_losses_by_dimension(moments, [d])[0]

    def _dominance(self, i: int, a: int, feature: str | None, rows: int, of_rows: int, without: float) -> Dominance:
        return Dominance(self.groups.labels[a], feature, rows, of_rows, float(self.losses[i, a]), float(without))


def _fewest_rows(gains: np.ndarray) -> np.ndarray:
    """The fewest rows that hold more than half of all positive parts."""
    order = np.argsort(-gains)
    held = np.cumsum(np.maximum(gains[order], 0.0))
    return order[: int(np.searchsorted(held, _MOST * held[-1], side="right")) + 1]


def pca_losses_by_dimension(moments: GroupMoments, dimensions: Sequence[int]) -> np.ndarray:
    """In-sample losses under ordinary PCA with several numbers of components: shape (n_dimensions, n_groups)."""
    matrices = moments.second_moments()
    basis = top_eigenpairs(moments.pooled_covariance(), max(dimensions))[1]
    return np.stack([Evaluation(matrices, basis[:, :d]).losses for d in dimensions])
