"""Group statistics of Dask arrays and data frames: one task per chunk, then a tree of merges.

Every task is a pure function of its chunk, so the scheduler can repeat it elsewhere if a worker is lost. The rows
stay where they are; only one (k, p, p) summary per chunk is transferred. Needs the extra ``fairpca[dask]``; Dask is
imported only once a Dask collection has been given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fairpca._continuous import all_rows, check_beside, check_measurements, columns_by_name, separate_continuous
from fairpca._frames import is_column_name, split_columns
from fairpca._labels import quoted
from fairpca._validation import (
    Groups,
    check_groups,
    check_sample_weight,
    ordered_labels,
    rng_for,
    warn_user,
)
from fairpca.moments._accumulate import accumulate, checked_chunk
from fairpca.moments._attributes import AttributeMoments, JointMoments, accumulate_attributes, accumulate_joint
from fairpca.moments._dask_chunks import aligned_chunks, compute, count_features, tree, whole_rows
from fairpca.moments._group_moments import GroupMoments
from fairpca.moments._sources import merge_moments

__all__ = ["attribute_moments_from_dask", "moments_from_dask"]

#: Rows and numbers that are gathered in one place, at most; of a larger collection, a random sample.
GATHERED_ROWS, GATHERED_NUMBERS = 64_000, 20_000_000


def as_dask_features(X: Any, sensitive_features: Any) -> tuple[Any, Any]:
    """Split off sensitive columns given by name; the remaining columns must be numeric."""
    if sensitive_features is None:
        check_groups(None, 0)  # always raises; reuses the standard message
    _check_dimensions(X)
    if hasattr(X, "columns") and _is_by_name(sensitive_features):
        several = isinstance(sensitive_features, list | tuple)
        names = list(sensitive_features) if several else [sensitive_features]
        X, sensitive_features = split_columns(X, names, several)
    _check_features(X)
    return X, sensitive_features


def _is_by_name(sensitive_features: Any) -> bool:
    """Whether this is one or more column names. It cannot be labels in memory: a frame's chunk lengths are unknown."""
    if isinstance(sensitive_features, list | tuple):
        return bool(sensitive_features) and all(map(is_column_name, sensitive_features))
    return is_column_name(sensitive_features)


def _check_dimensions(X: Any) -> None:
    if getattr(X, "ndim", None) != 2:
        found = f" of shape {X.shape}" if hasattr(X, "chunks") else ""
        raise ValueError(
            "X must be a Dask data frame or a Dask array of two dimensions, rows and features; got a Dask "
            f"{type(X).__name__}{found}: use X.to_frame() or X.reshape(-1, 1) if it is a single feature."
        )


def _check_features(X: Any) -> None:
    """Raise if X is not a numeric table, judging by the types alone: later conversions could not name the column."""
    _check_dimensions(X)
    if not hasattr(X, "columns"):
        if X.dtype.kind in "SUMm":
            raise ValueError(f"X holds {X.dtype}, not numbers; encode it as numbers first.")
        return
    for name, dtype in X.dtypes.items():
        kind = (dtype.categories.dtype if hasattr(dtype, "categories") else dtype).kind
        if kind not in "biuf":
            raise ValueError(
                f"Column {name!r} of X holds {dtype}, not numbers: drop it, encode it as numbers first, or name it in "
                "sensitive_features if it is the group."
            )


def sample_of(X: Any) -> Any:
    """Two placeholder rows with the columns and types of X, for checks that need no data."""
    _check_dimensions(X)
    return X._meta_nonempty if hasattr(X, "_meta_nonempty") else np.zeros((2, X.shape[1]), dtype=X.dtype)


def moments_from_dask(X: Any, *, sensitive_features: Any, sample_weight: Any = None) -> GroupMoments:
    """The moments of all chunks, reduced by whichever scheduler is active.

    Parameters
    ----------
    X : dask array or data frame
    sensitive_features : dask array, series or data frame, array-like, dict of such, or names of columns of X
        The chunks must hold the same rows as those of X. Values in memory require X to be a Dask array with known chunk
        sizes.
    sample_weight : dask array, series or array-like, optional
        Weights count like repeated rows.

    Returns
    -------
    GroupMoments
        The summary of all rows.

    See Also
    --------
    fairpca.moments.group_moments : The same for rows in memory.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from fairpca.moments.dask import moments_from_dask
    >>> X = da.from_array(np.arange(12.0).reshape(6, 2), chunks=(3, 2))
    >>> moments_from_dask(X, sensitive_features=np.array(["a", "b"] * 3)).counts.tolist()
    [3.0, 3.0]
    """
    return _summed(DaskSource(X, sensitive_features, sample_weight), _group_sums)


def attribute_moments_from_dask(
    X: Any, sensitive_features: Any, continuous: Any, sample_weight: Any = None
) -> AttributeMoments:
    """The same with continuous sensitive features; parameters as in :func:`fairpca.moments.attribute_moments`.

    Where ``sensitive_features`` are names of columns of X, ``continuous`` names some of them. Values must be a Dask
    collection with the same chunks as X, or values in memory if the chunk sizes of X are known.
    """
    return _summed(DaskSource(X, sensitive_features, sample_weight, continuous=continuous), _attribute_sums)


def joint_moments_from_dask(
    X: Any, sensitive_features: Any, continuous: Any, y: Any, sample_weight: Any
) -> JointMoments:
    """Moments of the features beside groups, continuous sensitive features and a label."""
    return _summed(DaskSource(X, sensitive_features, sample_weight, continuous=continuous, y=y), _joint_sums)


def _summed(source: DaskSource, function: Callable[..., Any]) -> Any:
    moments = source.map_reduce(function, merge_moments)
    if source.weighted:  # a single chunk may have little weight, all together may not
        check_sample_weight([getattr(moments, "joint", moments).total_count], 1)
    return moments


# The scheduler uses its own threads: parallel=False.


def _group_sums(number: int, X: Any, groups: Groups, weights: np.ndarray | None) -> GroupMoments:
    return accumulate(X, groups, weights, parallel=False)


def _attribute_sums(
    number: int, X: Any, groups: Groups, weights: np.ndarray | None, continuous: Any
) -> AttributeMoments:
    return accumulate_attributes(X, groups, check_measurements(continuous, X.shape[0]), weights, parallel=False)


def _joint_sums(
    number: int, X: Any, groups: Groups, weights: np.ndarray | None, continuous: Any = None, y: Any = None
) -> JointMoments:
    return accumulate_joint(X, check_beside(groups, continuous, y, X.shape[0]), weights, parallel=False)


def rows_lazily(X: Any, function: Callable[..., np.ndarray], *arguments: Any, width: int | None) -> Any:
    """``function(rows, *arguments)`` as a Dask array with the chunks of X: ``width`` columns, or one number per row."""
    rows = whole_rows(X if hasattr(X, "chunks") else X.to_dask_array())
    rows = rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)
    if width is None:
        return rows.map_blocks(function, *arguments, dtype=np.float64, drop_axis=1, meta=np.empty(0))
    chunks, meta = (rows.chunks[0], (width,)), np.empty((0, width), rows.dtype)
    return rows.map_blocks(function, *arguments, dtype=rows.dtype, chunks=chunks, meta=meta)


class DaskSource:
    """The rows of a Dask collection, processed chunk by chunk in place: a :class:`~fairpca.moments.RowSource`.

    Functions also receive the chunks of further columns, such as a label, that are given by keyword. With values of
    continuous sensitive features, no groups are needed.
    """

    owns_threads = False

    def __init__(
        self, X: Any, sensitive_features: Any, sample_weight: Any = None, *, continuous: Any = None, y: Any = None
    ) -> None:
        if sensitive_features is None and continuous is not None and columns_by_name(continuous) is None:
            _check_features(X)
        else:
            X, sensitive_features = as_dask_features(X, sensitive_features)
        groups, values = separate_continuous(sensitive_features, continuous)
        self.n_features, self.weighted = count_features(X), sample_weight is not None
        given = {name: column for name, column in (("continuous", values), ("y", y)) if column is not None}
        self._chunks = aligned_chunks(X, sensitive_features=groups, sample_weight=sample_weight, **given)

    def map_reduce(self, function: Callable[..., Any], merge: Callable[[Sequence[Any]], Any]) -> Any:
        """Apply ``function`` to every chunk that has rows, and merge the values."""
        import dask

        apply, combine = dask.delayed(_apply_to_chunk, pure=False), dask.delayed(_merge_present, pure=False)
        values = [apply(function, number, **chunk) for number, chunk in enumerate(self._chunks)]
        found = compute(tree(lambda parts: combine(merge, parts), values))[0]
        if found is None:
            raise ValueError("X has no rows (of positive weight).")
        return found


@dataclass(frozen=True)
class _Draw:
    """Draws some of the rows of positive weight of a chunk, and names all groups that have such rows."""

    share: float
    seed: int

    def __call__(self, number: int, X: Any, groups: Groups, weights: np.ndarray | None, y: Any = None) -> list[tuple]:
        counted = np.arange(X.shape[0]) if weights is None else np.flatnonzero(weights > 0)
        present, codes = np.unique(groups.codes[counted], return_inverse=True)
        drawn = rng_for(self.seed, f"rows {number}").random(len(counted)) < self.share
        rows, labels = counted[drawn], tuple(groups.labels[code] for code in present)
        weights, y = (None if values is None else np.asarray(values)[rows] for values in (weights, y))
        return [(X[rows], Groups(labels, codes[drawn]), weights, y)]


def _joined(parts: Sequence[list]) -> list:
    return [one for part in parts for one in part]


def gather_rows(
    X: Any, sensitive_features: Any, sample_weight: Any, y: Any, seed: int
) -> tuple[Any, Groups, np.ndarray | None, np.ndarray | None]:
    """Rows in memory, their groups, weights and labels: all in their order or, with a warning, a random sample.

    Every row has the same chance, so groups keep their proportions; a group without a drawn row is an error.
    """
    n_rows = X.shape[0] if hasattr(X, "chunks") and not np.isnan(X.shape[0]) else len(X)
    source = DaskSource(X, sensitive_features, sample_weight, y=y)
    share = min(GATHERED_ROWS, GATHERED_NUMBERS // source.n_features) / max(n_rows, 1)
    parts, groups, *columns = zip(*source.map_reduce(_Draw(share, seed), _joined), strict=True)
    labels = ordered_labels({one for part in groups for one in part.labels})
    codes = np.concatenate([np.array([labels.index(one) for one in part.labels])[part.codes] for part in groups])
    counts = np.bincount(codes, minlength=len(labels))
    if not counts.all():
        raise ValueError(
            f"Group {quoted(labels[counts.argmin()])} has so few of the {n_rows} rows of X that none of them is among "
            f"the {len(codes)} that were drawn at random; merge small groups, or give a sample in memory."
        )
    if share < 1.0:
        warn_user(
            f"X is a Dask collection of {n_rows} rows, too many to be compared with each other in one place: a random "
            f"sample of {len(codes)} is used, and the results describe these rows. Give the rows in memory to use all."
        )
    rows = sparse.vstack(parts).tocsr() if sparse.issparse(parts[0]) else np.concatenate(parts)
    weights, y = (None if column[0] is None else np.concatenate(column) for column in columns)
    return rows, Groups(labels, codes), check_sample_weight(weights, len(codes)), y


def _apply_to_chunk(
    function: Callable[..., Any], number: int, X: Any, sensitive_features: Any, sample_weight: Any, **columns: Any
) -> Any:
    groups = all_rows(X.shape[0]) if sensitive_features is None else sensitive_features
    chunk = checked_chunk(X, groups, sample_weight)
    return None if chunk is None else function(number, *chunk, **columns)


def _merge_present(merge: Callable[[Sequence[Any]], Any], parts: Sequence[Any]) -> Any:
    present = [part for part in parts if part is not None]
    return present[0] if len(present) == 1 else merge(present) if present else None
