"""Stability of components: how far they turn without a part of the rows, and how far they are from the population's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from fairpca._display import TableResult, fixed, number
from fairpca._labels import group_sizes
from fairpca._validation import check_share, rng_for, seed_from
from fairpca.inference._blocks import make_blocks
from fairpca.inference._checks import as_source
from fairpca.inference._fitting import fit_to_moments, needs_moments_only, quietly
from fairpca.inference._study import threads_for_fits
from fairpca.metrics import Estimate
from fairpca.moments._folds import FoldMoments

__all__ = ["ComponentStability", "component_stability"]

#: Quantiles of so many draws vary by less than the blocks do.
_DRAWS = 2000


@dataclass(frozen=True, repr=False)
class ComponentStability(TableResult):
    """Result of :func:`component_stability`; all angles in degrees.

    Attributes
    ----------
    method : str
    groups : tuple
    counts : ndarray of shape (n_groups,)
        Rows of each group, or their total weight.
    without_block : ndarray of shape (n_blocks, n_components + 1)
        Angles between the fit and that without each block: of each component, and last the largest of the subspaces.
    components : tuple of Estimate
        Angle between each component and the population's: its median and interval.
    subspace : Estimate
        Largest angle between the subspace that is returned and the population's: its median and interval.
    confidence : float

    See Also
    --------
    component_stability : Computes it.
    fairpca.plotting.ComponentStabilityDisplay : Draws it.

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import make_toy
    >>> from fairpca.inference import component_stability
    >>> X, groups = make_toy(random_state=0)
    >>> found = component_stability(FairPCA(1, criterion="mean"), X, sensitive_features=groups)
    >>> found.subspace.low < found.subspace < found.subspace.high
    True
    """

    method: str
    groups: tuple[Any, ...]
    counts: np.ndarray
    without_block: np.ndarray
    components: tuple[Estimate, ...]
    subspace: Estimate
    confidence: float

    def _cells(self) -> list[dict[str, str]]:
        return [
            {
                "component": one["component"],
                "without a block, at most": number(one["without_block"]),
                "from the population's": fixed(one["angle"], 1),
                "interval": f"{fixed(one['low'], 1)} to {fixed(one['high'], 1)}",
            }
            for one in self._records()
        ]

    def _sentences(self) -> tuple[list[str], list[str]]:
        above = f"{self.method}: angles in degrees, {100 * self.confidence:g} % intervals, each alone"
        rows = (
            f"Fitted without each of {len(self.without_block)} blocks of rows; {group_sizes(self.groups, self.counts)}."
        )
        return [above], [rows]

    def _records(self) -> list[dict[str, Any]]:
        names = [*(str(i + 1) for i in range(len(self.components))), "all together"]
        found = zip(names, (*self.components, self.subspace), self.without_block.max(axis=0), strict=True)
        return [
            {"component": name, "without_block": float(moved), "angle": float(one), "low": one.low, "high": one.high}
            for name, one, moved in found
        ]


def component_stability(
    estimator: Any,
    X: Any,
    *,
    sensitive_features: Any = None,
    clusters: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
    random_state: Any = None,
) -> ComponentStability:
    """How far components turn without a part of the rows, and how far they are from those of the population.

    Components may turn among each other where their variances are similar, while their subspace stays: angles are
    given for each component, and for all together.

    Parameters
    ----------
    estimator : estimator
        A fairpca estimator that needs moments only, or scikit-learn's PCA; it is cloned.
    X : array-like, sparse matrix, or Dask array or data frame of shape (n_samples, n_features); or chunks
        As in :func:`cross_validate_groups`.
    sensitive_features : array-like
        The group of each row; left out when X is an iterable of chunks.
    clusters : array-like, optional
        The person that each row belongs to; these rows stay in one block.
    sample_weight : array-like of shape (n_samples,), optional
        Counts like repeated rows.
    confidence : float, default=0.95
    random_state : int, RandomState or None
        Divides the rows into blocks; None is a fixed seed.

    Returns
    -------
    ComponentStability

    See Also
    --------
    cross_validate_groups : Errors and losses on new rows.

    Notes
    -----
    The rows of each group are divided into 40 random blocks. With V the fit and W that without block j, the tangent
    ``T_j = W (V^T W)^-1 - V`` is to first order minus what the block adds to the error of V. Blocks are independent, so
    the error of V is nearly normal, and ``sum_j e_j c_j (T_j - mean T)`` with normal e_j, ``c^2 = (g - 1) / g`` and the
    mean over the g blocks of the same group is distributed like it: a jackknife. The angles of the drawn subspaces give
    the median and the interval of the angle between the fit and what the method finds in the population. For one
    component, V and W are the component and its counterpart.

    This needs a solution that moves smoothly with the moments, as that of ordinary PCA does. The weights of a worst
    case (``FairPCA`` of losses or errors) can be decided by chance where groups have the same population; intervals are
    a rough guide there.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.inference import component_stability
    >>> from sklearn.decomposition import PCA
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> found = component_stability(PCA(3), X, sensitive_features=sex)
    >>> len(found.components), found.without_block.shape  # 40 blocks of each group
    (3, (80, 4))
    """
    check_share("confidence", confidence, example=0.95)
    name, seed = type(estimator).__name__, seed_from(random_state)
    if not needs_moments_only(estimator):
        raise ValueError(f"{name} cannot be fitted to moments, from which blocks are left out; use one that can.")
    source = as_source(X, sensitive_features, sample_weight)
    blocks = make_blocks(source, 2, clusters, seed)
    cells = blocks.moments(source)
    if cells is None:
        raise ValueError(
            f"X has {source.n_features} features, too many for a matrix per group and block; use "
            "sklearn.decomposition.PCA().fit_transform(X) in place of X, with fewer components than it has."
        )
    parts = FoldMoments(cells, blocks.group, blocks.block, blocks.labels)
    with threads_for_fits(source.n_features):
        basis = fit_to_moments(estimator, parts.whole).components_.T
        fits = [quietly(fit_to_moments, estimator, parts.training(j)) for j in range(len(parts.parts))]
    changes = np.stack([_change(basis, fit.components_.T) for fit in fits])
    moved = np.degrees([_angles(change) for change in changes])
    for a in range(len(blocks.labels)):
        members = blocks.stratum == a
        factor = np.sqrt(1.0 - 1.0 / np.count_nonzero(members))
        changes[members] = factor * (changes[members] - changes[members].mean(axis=0))
    rng = rng_for(seed, "stability")
    drawn = [_angles(np.tensordot(rng.standard_normal(len(changes)), changes, 1)) for _ in range(_DRAWS)]
    tail = (1.0 - confidence) / 2.0
    values = np.quantile(np.degrees(drawn), [0.5, tail, 1.0 - tail], axis=0).T
    *components, subspace = (Estimate(*value) for value in values)
    counts = parts.whole.counts.copy()
    return ComponentStability(name, parts.whole.labels, counts, moved, tuple(components), subspace, confidence)


def _change(basis: np.ndarray, fit: np.ndarray) -> np.ndarray:
    """Tangents at each component, and at the subspace, side by side: shape (p, 2 d)."""
    fit = fit[:, linear_sum_assignment(-np.abs(basis.T @ fit))[1]]  # in the order of their counterparts
    inner = basis.T @ fit
    return np.hstack([fit / np.diag(inner) - basis, fit @ np.linalg.inv(inner) - basis])


def _angles(change: np.ndarray) -> np.ndarray:
    """Of each component, and last the largest of the subspaces."""
    alone, together = np.hsplit(change, 2)
    return np.arctan([*np.linalg.norm(alone, axis=0), np.linalg.norm(together, 2)])
