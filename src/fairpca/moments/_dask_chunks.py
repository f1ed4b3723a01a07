"""Chunks of Dask collections with the matching groups, weights and labels; Dask is imported only when it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fairpca._validation import check_groups_given, is_dask
from fairpca.linalg import single_blas_thread

#: Summaries merged by one task: enough to keep the number of tasks small, few enough to spread the work.
_FAN_IN = 8


def compute(*tasks: Any) -> tuple:
    """Run tasks with single-threaded BLAS: the scheduler's threads in this process take the place of its own."""
    import dask

    with single_blas_thread():
        return dask.compute(*tasks)


def tree(merge: Callable, level: list[Any]) -> Any:
    """Merge many values into one, a few at a time."""
    while len(level) > 1:
        level = [merge(level[i : i + _FAN_IN]) for i in range(0, len(level), _FAN_IN)]
    return level[0]


def count_features(X: Any) -> int:
    return len(X.columns) if hasattr(X, "columns") else X.shape[1]


def aligned_chunks(X: Any, **columns: Any) -> list[dict[str, Any]]:
    """Each chunk of X with its parts of the columns; None is repeated for each chunk."""
    rows = whole_rows(X)
    pieces = {"X": _parts(rows)}
    count = len(pieces["X"])
    for name, values in columns.items():
        pieces[name] = [None] * count if values is None else _aligned(name, values, rows, count)
    return [dict(zip(pieces, chunk, strict=True)) for chunk in zip(*pieces.values(), strict=True)]


def whole_rows(X: Any) -> Any:
    return X.rechunk({1: -1}) if hasattr(X, "chunks") and X.numblocks[1] > 1 else X


def _aligned(name: str, values: Any, X: Any, n_parts: int) -> list[Any]:
    """One piece of ``values`` for each chunk of X."""
    if isinstance(values, dict):
        columns = {key: _aligned(f"{name}[{key!r}]", column, X, n_parts) for key, column in values.items()}
        return [{key: pieces[part] for key, pieces in columns.items()} for part in range(n_parts)]
    if not is_dask(values):
        return _slices(name, values, X)
    if hasattr(values, "chunks"):
        known = hasattr(X, "chunks") and not np.isnan(np.sum(X.chunks[0])) and not np.isnan(np.sum(values.chunks[0]))
        if known and values.shape[0] == X.shape[0]:
            values = values.rechunk({0: X.chunks[0], **({1: -1} if values.ndim == 2 else {})})
    parts = _parts(values)
    if len(parts) != n_parts:
        raise ValueError(
            f"{name} has {len(parts)} chunks, but X has {n_parts}: they must hold the same rows; rechunk or "
            "repartition one of them."
        )
    return parts


def _parts(collection: Any) -> list[Any]:
    """The chunks of an array, or the partitions of a data frame or column.

    Dask may combine the partitions of a few columns of a file, but not those of the others; then each is taken alone.
    """
    if hasattr(collection, "chunks"):
        return list(collection.to_delayed().ravel())
    parts = collection.to_delayed()
    if len(parts) == collection.npartitions:
        return parts
    return [collection.partitions[number].to_delayed()[0] for number in range(collection.npartitions)]


def _slices(name: str, values: Any, X: Any) -> list[Any]:
    """Divide values in memory into the chunks of X, whose lengths must be known; every chunk checks its own."""
    if name == "sensitive_features":
        check_groups_given(values)
    if isinstance(values, str):
        raise TypeError(
            f"{name}={values!r} is a single string, but only sensitive_features may be the name of a column: give the "
            f"column itself, for example X[{values!r}], and drop it from X."
        )
    if not hasattr(X, "chunks") or np.isnan(np.sum(X.chunks[0])):
        by_name = ", or the name of a column of X," if name == "sensitive_features" and hasattr(X, "columns") else ""
        raise ValueError(
            f"{name} must be a Dask collection with the same chunks as X{by_name} because the lengths of the chunks of "
            "X are not known."
        )
    if not hasattr(values, "__len__") or len(values) != X.shape[0]:
        found = f"has {len(values)} rows" if hasattr(values, "__len__") else f"is {values!r}"
        raise ValueError(f"{name} {found}, but X has {X.shape[0]}: give one entry per row.")
    ends, rows = np.cumsum(X.chunks[0]).tolist(), getattr(values, "iloc", values)
    return [rows[end - size : end] for end, size in zip(ends, X.chunks[0], strict=True)]
