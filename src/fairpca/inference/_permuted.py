"""The data of a permutation test: what is permuted, and how the losses of a division are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from fairpca._validation import check_several_groups
from fairpca.inference._checks import CountedRows, check_clusters, check_dimensions, check_one_group_each
from fairpca.inference._fitting import fit_rows, fit_to_moments, is_fitted, needs_moments_only, uses_groups
from fairpca.inference._judges import FixedComponents, Judge, RefittedToMoments, RefittedToRows
from fairpca.inference._units import BlockUnits, ClusterUnits, RowUnits, Units
from fairpca.linalg import top_eigenpairs
from fairpca.metrics._components import fitted_encoder
from fairpca.metrics.reconstruction import check_projector
from fairpca.moments import GroupMoments, MemorySource, RandomCells, RowSource, accumulate, cell_moments, row_counts

__all__ = ["PermutedData", "name_of", "permuted_data"]

#: With more numbers than this in memory, blocks of rows are permuted instead of rows.
MANY_NUMBERS = 20_000_000
#: Minimum number of blocks in total and in the smallest group.
_MIN_BLOCKS, _MIN_BLOCKS_OF_GROUP = 100, 3
#: Maximum number of bytes for the moments of all blocks.
_BLOCK_BYTES = 1 << 30


@dataclass(frozen=True)
class PermutedData:
    """The units that are permuted, and the moments of the true groups; rows only if they are in memory."""

    units: Units
    moments: GroupMoments
    unit: str
    rows: MemorySource | None = None
    clusters: np.ndarray | None = None

    @property
    def labels(self) -> tuple[Any, ...]:
        return self.moments.labels

    def judge(self, estimator: Any, n_components: Any) -> Judge:
        """Choose how the losses of a division are computed."""
        if estimator is None:
            dimensions = check_dimensions(n_components, self.moments.n_features)
            vectors = top_eigenpairs(self.moments.pooled_covariance(), max(dimensions))[1]
            return FixedComponents(self.units, {d: vectors[:, :d] for d in dimensions})
        if is_fitted(estimator):
            return self._judge_fitted(estimator, n_components)
        estimators = _by_dimension(estimator, n_components, self.moments.n_features)
        if not uses_groups(estimator):
            fitted = [self._fit(one) for one in estimators.values()]
            return FixedComponents(self.units, {len(one.components_): one.components_.T for one in fitted})
        if needs_moments_only(estimator):
            return RefittedToMoments(self.units, estimators)
        return RefittedToRows(self.units, estimators, self._needed_rows(estimator), self.clusters)

    def _judge_fitted(self, estimator: Any, n_components: Any) -> Judge:
        basis = check_projector(estimator, self.moments.n_features)
        if n_components is not None and n_components != basis.shape[1]:
            raise ValueError(
                f"n_components={n_components!r}, but the fitted estimator has {basis.shape[1]} components: leave "
                "n_components out."
            )
        if self._has_seen_these_labels(estimator):
            raise ValueError(
                "estimator was fitted to the same labels, so they cannot be compared with random labels: pass it "
                "unfitted (sklearn.base.clone(estimator)), and it is refitted to every random division."
            )
        return FixedComponents(self.units, {basis.shape[1]: basis}, fitted_encoder(estimator))

    def _has_seen_these_labels(self, estimator: Any) -> bool:
        counts = getattr(estimator, "group_counts_", np.zeros(0))
        same_counts = np.array_equal(np.sort(counts), np.sort(self.moments.counts))
        return same_counts and np.allclose(estimator.mean_, self.moments.pooled_mean)

    def _fit(self, estimator: Any) -> Any:
        """Fit an estimator that does not use the groups."""
        if needs_moments_only(estimator):
            return fit_to_moments(estimator, self.moments)
        rows = self._needed_rows(estimator)
        return fit_rows(estimator, rows.X, None, rows.groups.codes, rows.weights)

    def _needed_rows(self, estimator: Any) -> MemorySource:
        if self.rows is None:
            raise ValueError(
                f"{name_of(estimator)} needs rows in memory, but only moments of blocks of rows are available. Pass a "
                "random sample of the rows, or an estimator with fit_moments."
            )
        return self.rows


def permuted_data(source: RowSource, clusters: Any, seed: int) -> PermutedData:
    if isinstance(source, CountedRows):
        if clusters is not None or not _blocks_save_time(source):
            return _row_data(source, check_clusters(clusters, source))
    elif clusters is not None:
        raise ValueError("clusters are supported for rows in memory only; pass a random sample of the clusters.")
    return _block_data(source, seed)


def _blocks_save_time(source: CountedRows) -> bool:
    """Many numbers, and few enough features for the moments of a hundred blocks to fit into memory."""
    many = source.X.shape[0] * source.n_features > MANY_NUMBERS
    return many and _MIN_BLOCKS * source.n_features**2 * 8 <= _BLOCK_BYTES


def _row_data(source: CountedRows, clusters: np.ndarray | None) -> PermutedData:
    X, groups, weights = source.X, source.groups, source.weights
    moments = accumulate(X, groups, weights)
    rows = RowUnits(X.toarray() if sparse.issparse(X) else X, groups, weights, moments.pooled_mean)
    if clusters is None:
        return PermutedData(rows, moments, "rows", source)
    check_one_group_each(clusters, groups)
    return PermutedData(ClusterUnits(rows, clusters), moments, "clusters", source, clusters)


def _block_data(source: RowSource, seed: int) -> PermutedData:
    counts = row_counts(source)
    check_several_groups(counts, sum(counts.values()))
    n_blocks = _blocks_per_group(counts, source.n_features)
    cells = RandomCells(tuple(counts), n_blocks, seed)
    blocks = cell_moments(source, cells)
    ends = np.cumsum(n_blocks)
    codes = np.searchsorted(ends, blocks.labels, side="right")
    positions = [np.flatnonzero(codes == code) for code in range(len(ends))]
    parts = [blocks.pick(chosen, tuple(range(len(chosen)))) for chosen in positions]
    merged = [part.merge_groups(label) for part, label in zip(parts, cells.labels, strict=True)]
    moments = merged[0].merge(*merged[1:])
    return PermutedData(BlockUnits(blocks, codes, moments.pooled_mean), moments, "blocks")


def _blocks_per_group(counts: dict[Any, int], n_features: int) -> tuple[int, ...]:
    """Numbers of blocks such that all have about the same size: enough in total and in the smallest group."""
    sizes = np.array(list(counts.values()))
    rows = min(sizes.sum() / _MIN_BLOCKS, sizes.min() / _MIN_BLOCKS_OF_GROUP)
    n_blocks = np.maximum(np.rint(sizes / rows), 1).astype(int)
    smallest = list(counts)[int(sizes.argmin())]
    if rows < 1:
        raise ValueError(f"Group {smallest!r} has {sizes.min()} rows; blocks of rows need at least 3.")
    if n_blocks.sum() * n_features**2 * 8 > _BLOCK_BYTES:
        raise ValueError(
            f"Group {smallest!r} is so small ({sizes.min():,} of {sizes.sum():,} rows) that {n_blocks.sum():,} blocks "
            "of rows would be needed; leave it out, merge it with another group, or pass a random sample of the rows "
            "in memory."
        )
    return tuple(n_blocks.tolist())


def _by_dimension(estimator: Any, n_components: Any, n_features: int) -> dict[int, Any]:
    """One copy for each number of components."""
    own = getattr(estimator, "n_components", None)
    dimensions = check_dimensions(own if n_components is None else n_components, n_features)
    if n_components is None:
        return {dimensions[0]: estimator}
    return {d: clone(estimator).set_params(n_components=d) for d in dimensions}


def name_of(estimator: Any) -> str:
    return type(estimator).__name__ if hasattr(estimator, "fit") else "the given components"
