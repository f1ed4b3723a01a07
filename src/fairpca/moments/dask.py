"""Group statistics of Dask arrays and data frames: one task a chunk, then a tree of merges.

Every task is a pure function of its chunk, so the engine may repeat it elsewhere when a worker is lost. The rows
stay where they are; what travels is one (k, p, p) summary a chunk. Needs the extra ``fairpca[dask]``; Dask is only
imported once a Dask collection has been given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairpca._validation import check_groups, check_plain_matrix, check_sample_weight
from fairpca.moments._accumulate import accumulate
from fairpca.moments._group_moments import GroupMoments

__all__ = ["as_dask_features", "is_dask", "moments_from_dask", "project_lazily", "sample_of"]

#: Summaries merged by one task: wide enough for few tasks, narrow enough to spread the work.
_FAN_IN = 8


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection; asks nothing of Dask itself."""
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(X, "compute")


def as_dask_features(X: Any, sensitive_features: Any) -> tuple[Any, Any]:
    """Split off the sensitive column, or columns, where they are given by name."""
    names = [sensitive_features] if isinstance(sensitive_features, str) else sensitive_features
    by_name = isinstance(names, list) and names and all(isinstance(name, str) for name in names)
    if not by_name or not hasattr(X, "columns"):
        return X, sensitive_features
    for name in names:
        if name not in X.columns:
            raise ValueError(f"sensitive_features={name!r} is no column of X.")
    return X.drop(columns=names), X[sensitive_features]


def sample_of(X: Any) -> Any:
    """Two rows of the right columns and types, for checks that need no data."""
    return X._meta_nonempty if hasattr(X, "_meta_nonempty") else np.zeros((2, X.shape[1]), dtype=X.dtype)


def moments_from_dask(X: Any, sensitive_features: Any, sample_weight: Any = None) -> GroupMoments:
    """The moments of all chunks, reduced by whichever scheduler is active.

    Parameters
    ----------
    X : dask array or data frame
    sensitive_features : dask array, series or data frame, array-like, or names of columns of X
        Chunks must hold the same rows as those of X.
    sample_weight : dask array or series, or array-like, optional
    """
    import dask

    if sensitive_features is None:
        check_groups(None, 0)  # raises, in the words used everywhere
    X, sensitive_features = as_dask_features(X, sensitive_features)
    n_features = len(X.columns) if hasattr(X, "columns") else X.shape[1]
    rows = _whole_rows(X)
    parts = list(rows.to_delayed().ravel()) if hasattr(rows, "chunks") else rows.to_delayed()
    labels = _aligned("sensitive_features", sensitive_features, rows, len(parts))
    weights = (
        [None] * len(parts) if sample_weight is None else _aligned("sample_weight", sample_weight, rows, len(parts))
    )
    chunk, merge = dask.delayed(_chunk_moments, pure=True), dask.delayed(_merge, pure=True)
    level = [chunk(*each, n_features) for each in zip(parts, labels, weights, strict=True)]
    while len(level) > 1:
        level = [merge(level[i : i + _FAN_IN]) for i in range(0, len(level), _FAN_IN)]
    moments = level[0].compute()
    if not moments.labels:
        raise ValueError("X has no rows (of positive weight).")
    return moments


def project_lazily(X: Any, components: np.ndarray, mean: np.ndarray) -> Any:
    """The scores as a Dask array with the chunks of X."""
    rows = _whole_rows(X if hasattr(X, "chunks") else X.to_dask_array())
    dtype = rows.dtype if rows.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    return rows.map_blocks(
        _scores,
        components.T.astype(dtype),
        (mean @ components.T).astype(dtype),
        dtype=dtype,
        chunks=(rows.chunks[0], (len(components),)),
        meta=np.empty((0, len(components)), dtype=dtype),
    )


def _scores(rows: Any, basis: np.ndarray, offset: np.ndarray) -> np.ndarray:
    rows = rows if rows.dtype == basis.dtype else rows.astype(basis.dtype)
    return rows @ basis - offset


def _whole_rows(X: Any) -> Any:
    return X.rechunk({1: -1}) if hasattr(X, "chunks") and X.numblocks[1] > 1 else X


def _aligned(name: str, values: Any, X: Any, n_parts: int) -> list[Any]:
    """One piece of ``values`` for each chunk of X."""
    if not is_dask(values):
        return _slices(name, values, X)
    if hasattr(values, "chunks"):
        known = hasattr(X, "chunks") and not np.isnan(np.sum(X.chunks[0])) and not np.isnan(np.sum(values.chunks[0]))
        if known and values.shape[0] == X.shape[0]:
            values = values.rechunk({0: X.chunks[0], **({1: -1} if values.ndim == 2 else {})})
        parts = list(values.to_delayed().ravel())
    else:
        parts = values.to_delayed()
    if len(parts) != n_parts:
        raise ValueError(
            f"{name} has {len(parts)} chunks, but X has {n_parts}: they must hold the same rows; rechunk or "
            "repartition one of them."
        )
    return parts


def _slices(name: str, values: Any, X: Any) -> list[Any]:
    """Cut an array in memory as X is cut, where the lengths of its chunks are known."""
    if not hasattr(X, "chunks") or np.isnan(np.sum(X.chunks[0])):
        raise ValueError(
            f"{name} must be a Dask collection cut like X, or the name of a column, because the lengths of the chunks "
            "of X are not known."
        )
    values = np.asarray(values)
    if values.ndim and len(values) != X.shape[0]:
        raise ValueError(f"{name} has {len(values)} rows, but X has {X.shape[0]}: they must describe the same rows.")
    ends = np.cumsum(X.chunks[0])
    return [values[end - size : end] for end, size in zip(ends, X.chunks[0], strict=True)]


def _chunk_moments(X: Any, sensitive_features: Any, sample_weight: Any, n_features: int) -> GroupMoments:
    if X.shape[0] == 0:
        return GroupMoments.empty(n_features)
    X = check_plain_matrix(X, finite=False)
    groups = check_groups(sensitive_features, X.shape[0])
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights is not None:
        if weights.shape != (X.shape[0],) or not (np.isfinite(weights) & (weights >= 0)).all():
            check_sample_weight(weights, X.shape[0])  # raises, in the words used everywhere
        if not weights.any():
            return GroupMoments.empty(n_features)  # only all chunks together need a positive weight
    return accumulate(X, groups, weights, parallel=False)  # the scheduler has its own threads


def _merge(parts: Sequence[GroupMoments]) -> GroupMoments:
    return parts[0].merge(*parts[1:])
