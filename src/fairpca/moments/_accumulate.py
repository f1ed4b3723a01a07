"""One pass over the rows: blocks are sorted by group, centred and multiplied while they are in the cache.

The cost is that of a single covariance matrix, N p^2 flops in symmetric rank-k updates, for any number of groups.
Each block is centred at its own group means before it is squared, so no precision is lost far from the origin; the
scatter between block means is added at the end. Sums and products are in float64, except for the products of large
float32 data (see :mod:`fairpca.moments._mixed_precision`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from fairpca._validation import (
    Groups,
    check_finite,
    check_grouped_rows,
    check_groups,
    check_plain_matrix,
    check_sample_weight,
    split_off_groups,
)
from fairpca.linalg import blas_threads, single_blas_thread, threads_for
from fairpca.moments._group_moments import GroupMoments, GroupTotal
from fairpca.moments._mixed_precision import MixedPrecisionTotal

#: A block of rows should stay in the second-level cache while it is sorted, centred and multiplied ...
_BLOCK_BYTES = 2 << 20
#: ... but a rank-k update of a large matrix needs enough rows to be worth reading that matrix: two per column.
_BLOCK_MAX_ROWS_OF_WIDE = 4096
#: From this many numbers on, and up to this many features, ranges of rows are worth a thread each.
_PARALLEL_SIZE = 4_000_000
_PARALLEL_FEATURES = 512
#: From this many numbers on, float32 data is multiplied in float32; below, the cost of float64 is negligible.
_MIXED_SIZE = 1_000_000
#: Such data is gathered in larger blocks, which hide the cost of calls that only one thread can make at a time ...
_MIXED_BYTES = 8 << 20
_MIXED_MAX_ROWS = 32_768
#: ... but not in smaller ones than this.
_MIXED_MIN_ROWS = 8192
#: Rows are sorted by group over this many blocks at a time. A few groups then fill their blocks, many groups get larger
#: ones, and cache lines that one block reads only in part are still in the cache for the next.
_SPAN = 8
#: Up to this many groups, the rows of each group are searched for separately; beyond that, all rows are sorted at once.
_FEW_GROUPS = 8
#: Rows per block of float32 data stored column by column, where every column takes one call.
_MIXED_ROWS_OF_COLUMNS = 20_480


def group_moments(X: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> GroupMoments:
    """Reduce data to the count, mean and scatter matrix of each group.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (N, p), or iterable of chunks
        An iterable yields ``(X, sensitive_features)`` or ``(X, sensitive_features, sample_weight)``. The chunks are
        merged one at a time and never held in memory together.
    sensitive_features : array-like, optional
        The group of each row; omitted if X is an iterable of chunks.
    sample_weight : array-like of shape (N,), optional
        Counts like repeated rows.

    Returns
    -------
    GroupMoments
        The summary of all rows.

    See Also
    --------
    fairpca.moments.arrow.moments_from_parquet : The same for files.
    fairpca.moments.dask.moments_from_dask : The same for Dask collections.

    Notes
    -----
    float64 data is processed in float64 throughout. float32 data of a million numbers or more (in one call or chunk) is
    multiplied in float32 in parts of a few thousand rows, and the parts are summed in float64. This is twice as fast,
    and the error of a scatter matrix is at most 1e-6 of its largest entry (measured: 2e-8 for a million rows). Convert
    X to float64 for full precision.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.moments import group_moments
    >>> X, groups = np.arange(12.0).reshape(6, 2), [0, 0, 1, 1, 0, 1]
    >>> batch = group_moments(X, sensitive_features=groups)
    >>> chunks = group_moments((X[rows], groups[rows]) for rows in (slice(0, 2), slice(2, 6)))
    >>> np.allclose(batch.scatters, chunks.scatters)
    True
    """
    if sensitive_features is None:
        return _merge_chunks(X)
    return accumulate(*check_grouped_rows(None, X, sensitive_features, sample_weight, finite=False))


def chunk_moments(X: Any, sensitive_features: Any, sample_weight: Any) -> GroupMoments:
    """Moments of one chunk, which may have no rows or no positive weight."""
    X, sensitive_features = split_off_groups(None, X, sensitive_features)
    X = check_plain_matrix(X, min_samples=0, finite=False)
    weights = check_sample_weight(sample_weight, X.shape[0], part=True)
    if not X.shape[0]:
        return GroupMoments.empty(X.shape[1])
    return accumulate(X, check_groups(sensitive_features, X.shape[0]), weights)


def _merge_chunks(chunks: Iterable[tuple]) -> GroupMoments:
    merged = None
    for chunk in chunks:
        if not isinstance(chunk, tuple) or len(chunk) not in (2, 3):
            raise ValueError(
                "Without sensitive_features, X must be an iterable of (X, sensitive_features) or "
                "(X, sensitive_features, sample_weight) tuples."
            )
        moments = chunk_moments(*chunk, *[None] * (3 - len(chunk)))
        merged = moments if merged is None else merged.merge(moments)
    if merged is None:
        raise ValueError("X is an empty iterable of chunks; give at least one.")
    if not merged.labels:
        raise ValueError("The chunks contain no row of positive weight; give at least two.")
    return merged


def accumulate(
    X: Any, groups: Groups, sample_weight: np.ndarray | None = None, *, parallel: bool = True
) -> GroupMoments:
    """Moments of validated data: X dense or CSR, groups encoded, weights finite; ``parallel`` allows threads."""
    if sample_weight is not None and not sample_weight.all():
        check_finite(X)  # rows of weight zero must be finite too
        kept = sample_weight > 0
        if not kept.any():
            return GroupMoments.empty(X.shape[1])
        X, sample_weight = X[kept], sample_weight[kept]
        groups = Groups(groups.labels, groups.codes[kept])
    work = X.shape[0] * X.shape[1] ** 2
    with np.errstate(over="ignore", invalid="ignore"), threads_for(work):  # non-finite results are reported below
        moments = _moments_of(X, groups, sample_weight, parallel)
    if not np.isfinite(np.einsum("ajj->aj", moments.scatters)).all():  # no entry exceeds the largest on the diagonal
        check_finite(X)  # only now: missing values always reach the scatter, so clean data is spared this pass
        raise ValueError("X has entries so large that their squares overflow; rescale its columns first.")
    return moments


def _moments_of(X: Any, groups: Groups, sample_weight: np.ndarray | None, parallel: bool) -> GroupMoments:
    if sparse.issparse(X):
        return _from_sparse(X, groups, sample_weight)
    mixed = X.dtype == np.float32 and X.size >= _MIXED_SIZE
    if not parallel or X.size < _PARALLEL_SIZE or X.shape[1] > _PARALLEL_FEATURES:
        return _from_dense(X, groups, sample_weight, mixed)
    return _from_dense_in_parallel(X, groups, sample_weight, mixed)


def _from_dense_in_parallel(
    X: np.ndarray, groups: Groups, sample_weight: np.ndarray | None, mixed: bool
) -> GroupMoments:
    """Divide the rows among as many threads as the linear algebra may use, each with single-threaded products.

    With few features, sorting and centring cost as much as the products; this way they run in parallel as well.
    """
    n_threads = blas_threads()
    if n_threads == 1:
        return _from_dense(X, groups, sample_weight, mixed)
    bounds = np.linspace(0, len(X), n_threads + 1).astype(int)

    def part(start: int, stop: int) -> GroupMoments:
        weights = None if sample_weight is None else sample_weight[start:stop]
        with np.errstate(over="ignore", invalid="ignore"):  # threads do not inherit the caller's setting
            return _from_dense(X[start:stop], Groups(groups.labels, groups.codes[start:stop]), weights, mixed)

    with single_blas_thread(), ThreadPoolExecutor(n_threads) as pool:
        first, *others = pool.map(part, bounds[:-1], bounds[1:])
    return first.merge(*others)


def _from_dense(X: np.ndarray, groups: Groups, sample_weight: np.ndarray | None, mixed: bool) -> GroupMoments:
    n_rows, n_features = X.shape
    if X.strides[0] == X.itemsize and not X.flags.c_contiguous:  # stored column by column, as data frames often are
        return _from_columns(list(X.T), groups, sample_weight, mixed)
    step = min(n_rows, _block_rows(n_features, mixed))
    buffer = np.empty((step, n_features), dtype=X.dtype)

    def gather(rows: np.ndarray) -> np.ndarray:
        # "take" would copy all of X first if its rows were not contiguous; mode="clip" lets it write into out directly.
        whole = X.flags.c_contiguous
        gathered = X.take(rows, axis=0, out=buffer[: len(rows)], mode="clip") if whole else X[rows]
        return gathered if mixed else gathered.astype(np.float64, copy=False)

    return _sum_blocks(gather, n_features, groups, sample_weight, step, mixed)


def accumulate_columns(
    columns: Sequence[np.ndarray], groups: Groups, sample_weight: np.ndarray | None = None
) -> GroupMoments:
    """Moments of validated data given as columns, which are gathered block by block and never converted to rows.

    Single-threaded: data that comes as columns (Arrow, Parquet) comes in many batches, which the caller distributes
    over threads. Missing values propagate to the sums, where the caller detects them.
    """
    narrow = all(column.dtype == np.float32 for column in columns)
    with np.errstate(over="ignore", invalid="ignore"):
        return _from_columns(columns, groups, sample_weight, narrow and len(columns[0]) * len(columns) >= _MIXED_SIZE)


def _from_columns(
    columns: Sequence[np.ndarray], groups: Groups, sample_weight: np.ndarray | None, mixed: bool
) -> GroupMoments:
    n_rows, n_features = len(columns[0]), len(columns)
    step = min(n_rows, _MIXED_ROWS_OF_COLUMNS if mixed else _block_rows(n_features, mixed))
    buffer = np.empty((n_features, step), dtype=np.float32 if mixed else np.float64)
    # Rows next to each other give the same sums, bit for bit, as data stored row by row; float32 is rounded anyway.
    whole_rows = None if mixed else np.empty((step, n_features))

    def gather(rows: np.ndarray) -> np.ndarray:
        for column, out in zip(columns, buffer[:, : len(rows)], strict=True):
            if column.dtype == out.dtype:
                column.take(rows, out=out, mode="clip")
            else:
                out[:] = column.take(rows)
        gathered = buffer[:, : len(rows)].T
        if whole_rows is None:
            return gathered
        whole_rows[: len(rows)] = gathered
        return whole_rows[: len(rows)]

    return _sum_blocks(gather, n_features, groups, sample_weight, step, mixed)


def _block_rows(n_features: int, mixed: bool) -> int:
    if mixed:
        return min(max(_MIXED_BYTES // (4 * n_features), _MIXED_MIN_ROWS), _MIXED_MAX_ROWS)
    return max(min(2 * n_features, _BLOCK_MAX_ROWS_OF_WIDE), _BLOCK_BYTES // (8 * n_features))


def _sum_blocks(
    gather: Callable[[np.ndarray], np.ndarray],
    n_features: int,
    groups: Groups,
    sample_weight: np.ndarray | None,
    step: int,
    mixed: bool,
) -> GroupMoments:
    """Sum block by block; ``gather`` returns rows by index, at most ``step``, in memory that may be overwritten."""
    totals = _totals(groups, n_features, mixed)
    for code, rows in blocks_by_group(groups.codes, len(totals), step):
        totals[code].add_dense(gather(rows), None if sample_weight is None else sample_weight[rows])
    return _finish(groups, totals)


def blocks_by_group(codes: np.ndarray, n_groups: int, step: int) -> Iterator[tuple[int, np.ndarray]]:
    """Row indices in blocks of at most ``step``, of nearly equal size, group by group within each span of rows."""
    span = _SPAN * step
    for start in range(0, len(codes), span):
        for code, members in _members(codes[start : start + span], n_groups):
            members += start
            n_blocks = -(-len(members) // step)
            bounds = [len(members) * block // n_blocks for block in range(n_blocks + 1)]
            for first, last in pairwise(bounds):
                yield code, members[first:last]


def _members(codes: np.ndarray, n_groups: int) -> Iterator[tuple[int, np.ndarray]]:
    """The rows of each non-empty group. For a few groups, one search per group is faster than sorting."""
    if n_groups <= _FEW_GROUPS:
        for code in range(n_groups):
            members = np.flatnonzero(codes == code)
            if len(members):
                yield code, members
        return
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(n_groups + 1)).tolist()
    for code, (first, last) in enumerate(pairwise(bounds)):
        if first < last:
            yield code, order[first:last]


def _from_sparse(X: Any, groups: Groups, sample_weight: np.ndarray | None) -> GroupMoments:
    totals = _totals(groups, X.shape[1])
    for code, total in enumerate(totals):
        rows = np.flatnonzero(groups.codes == code)
        if rows.size:
            total.add_sparse(X[rows], None if sample_weight is None else sample_weight[rows])
    return _finish(groups, totals)


def _totals(groups: Groups, n_features: int, mixed: bool = False) -> list[GroupTotal]:
    product = np.empty((n_features, n_features), dtype=np.float32 if mixed else np.float64)
    scatters = np.zeros((len(groups), n_features, n_features))
    return [(MixedPrecisionTotal if mixed else GroupTotal)(scatter, product) for scatter in scatters]


def _finish(groups: Groups, totals: list[GroupTotal]) -> GroupMoments:
    """Keep only groups with rows: in a range of rows, or after dropping rows of weight zero, some may be missing."""
    present = [(label, *total.finish()) for label, total in zip(groups.labels, totals, strict=True) if total.has_rows]
    labels, counts, means, scatters = zip(*present, strict=True)
    whole = scatters[0].base
    if len(present) < len(totals) or any(scatter.base is not whole for scatter in scatters):
        whole = np.stack(scatters)
    return GroupMoments(labels, np.array(counts, dtype=np.float64), np.stack(means), whole)
