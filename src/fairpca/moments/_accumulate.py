"""One pass over the rows: blocks are sorted by group, centred and multiplied while they are in the cache.

The cost is that of a single covariance matrix, N p^2 flops in symmetric rank-k updates, for any number of groups.
Each block is centred at its own group means before it is squared, so no precision is lost far from the origin; the
scatter between block means is added at the end. Sums and products are in float64, except for the products of large
float32 data (see :mod:`fairpca.moments._group_total`).
"""

from __future__ import annotations

import functools
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
from fairpca.moments._group_moments import GroupMoments
from fairpca.moments._group_total import GroupTotal
from fairpca.moments._sparse_shift import shift_dense_columns

#: Rows, groups and weights.
Chunk = tuple[Any, Groups, "np.ndarray | None"]

#: A block of rows should stay in the second-level cache while it is sorted, centred and multiplied ...
_BLOCK_BYTES = 2 << 20
#: ... but a rank-k update of a large matrix needs enough rows to be worth reading that matrix: two per column.
_MAX_ROWS_OF_WIDE = 4096
#: From this many numbers on, and up to this many features, ranges of rows are worth a thread each.
_PARALLEL_SIZE = 4_000_000
_PARALLEL_FEATURES = 512
#: From this many numbers on, float32 data is multiplied in float32; below, the cost of float64 is negligible.
_NARROW_SIZE = 1_000_000
#: Rows of a block that is multiplied in float32: few enough to be accurate, enough to be fast.
_ROWS_OF_NARROW = 8192
#: Rows are sorted by group over this many blocks at a time. A few groups then fill their blocks, many groups get larger
#: ones, and cache lines that one block reads only in part are still in the cache for the next.
_SPAN = 8


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
    multiplied in float32 in blocks of a few thousand rows, and the blocks are summed in float64. This is twice as fast,
    and the error of a scatter matrix is at most 1e-6 of its largest entry (measured: 3e-8 for a million rows). Convert
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
        return functools.reduce(GroupMoments.merge, (accumulate(*chunk) for _, chunk in checked_chunks(X)))
    return accumulate(*check_grouped_rows(None, X, sensitive_features, sample_weight, finite=False))


def chunk_moments(X: Any, sensitive_features: Any, sample_weight: Any) -> GroupMoments:
    """Moments of one chunk, which may have no rows or no positive weight."""
    chunk = checked_chunk(X, sensitive_features, sample_weight)
    return GroupMoments.empty(X.shape[1]) if chunk is None else accumulate(*chunk)


def checked_chunk(X: Any, sensitive_features: Any, sample_weight: Any = None) -> Chunk | None:
    """Rows, groups and weights of a chunk, or None if it has no rows or no positive weight."""
    X, sensitive_features = split_off_groups(None, X, sensitive_features)
    X = check_plain_matrix(X, min_samples=0, finite=False)
    weights = check_sample_weight(sample_weight, X.shape[0], part=True)
    if not X.shape[0] or (weights is not None and not weights.any()):
        return None
    return X, check_groups(sensitive_features, X.shape[0]), weights


def checked_chunks(chunks: Iterable[tuple]) -> Iterator[tuple[int, Chunk]]:
    """The chunks that have rows of positive weight, with their numbers among all chunks."""
    found = False
    for number, chunk in enumerate(chunks):
        if not isinstance(chunk, tuple) or len(chunk) not in (2, 3):
            raise ValueError(
                "Without sensitive_features, X must be an iterable of (X, sensitive_features) or "
                "(X, sensitive_features, sample_weight) tuples."
            )
        checked = checked_chunk(*chunk)
        if checked is not None:
            found = True
            yield number, checked
    if not found:
        raise ValueError("X is an empty iterable of chunks, or none has a row of positive weight; give at least two.")


def accumulate(
    X: Any, groups: Groups, sample_weight: np.ndarray | None = None, *, parallel: bool = True
) -> GroupMoments:
    """Moments of validated data: X dense or CSR, groups encoded, weights finite; ``parallel`` allows threads.

    Groups without rows of positive weight are left out.
    """
    if sample_weight is not None and not sample_weight.all():
        check_finite(X)  # rows of weight zero must be finite too
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
    n_threads = blas_threads() if parallel and X.size >= _PARALLEL_SIZE and X.shape[1] <= _PARALLEL_FEATURES else 1
    if n_threads > 1:
        return _from_dense_in_parallel(X, groups, sample_weight, n_threads)
    return _from_dense(X, groups, sample_weight)


def _from_dense_in_parallel(
    X: np.ndarray, groups: Groups, sample_weight: np.ndarray | None, n_threads: int
) -> GroupMoments:
    """Divide the rows among threads, each with single-threaded products.

    With few features, sorting and centring cost as much as the products; this way they run in parallel as well.
    """
    bounds = np.linspace(0, len(X), n_threads + 1).astype(int)

    def part(start: int, stop: int) -> GroupMoments:
        weights = None if sample_weight is None else sample_weight[start:stop]
        with np.errstate(over="ignore", invalid="ignore"):  # threads do not inherit the caller's setting
            return _from_dense(X[start:stop], Groups(groups.labels, groups.codes[start:stop]), weights)

    with single_blas_thread(), ThreadPoolExecutor(n_threads) as pool:
        first, *others = pool.map(part, bounds[:-1], bounds[1:])
    return first.merge(*others)


def _from_dense(X: np.ndarray, groups: Groups, sample_weight: np.ndarray | None) -> GroupMoments:
    if X.strides[0] == X.itemsize and not X.flags.c_contiguous:  # stored column by column, as data frames often are
        return accumulate_columns(list(X.T), groups, sample_weight)

    def gather(rows: np.ndarray, out: np.ndarray) -> np.ndarray:
        if X.dtype != out.dtype or not X.flags.c_contiguous:  # "take" would copy all of X first
            return X[rows].astype(out.dtype, copy=False)
        return X.take(rows, axis=0, out=out.reshape(len(rows), -1), mode="clip")  # "clip" writes into out directly

    return _sum_blocks(gather, X.shape[1], _type_of_products([X.dtype], X.size), groups, sample_weight)


def accumulate_columns(
    columns: Sequence[np.ndarray], groups: Groups, sample_weight: np.ndarray | None = None
) -> GroupMoments:
    """Moments of validated data given as columns, which are gathered block by block and never converted to rows.

    Single-threaded: data that comes as columns (Arrow, Parquet) comes in many batches, which the caller distributes
    over threads. Missing values propagate to the sums, where the caller detects them.
    """

    def gather(rows: np.ndarray, out: np.ndarray) -> np.ndarray:
        gathered = out.reshape(-1, len(rows))
        for column, part in zip(columns, gathered, strict=True):
            if column.dtype == out.dtype:
                column.take(rows, out=part, mode="clip")
            else:
                part[:] = column.take(rows)
        # Rows next to each other give the same sums, bit for bit, as data stored row by row; float32 is rounded anyway.
        return gathered.T if out.dtype == np.float32 else np.ascontiguousarray(gathered.T)

    size = len(columns) * len(columns[0])
    dtype = _type_of_products([column.dtype for column in columns], size)
    with np.errstate(over="ignore", invalid="ignore"):
        return _sum_blocks(gather, len(columns), dtype, groups, sample_weight)


def _type_of_products(dtypes: Iterable[np.dtype], size: int) -> type[np.floating]:
    return np.float32 if size >= _NARROW_SIZE and all(dtype == np.float32 for dtype in dtypes) else np.float64


def _sum_blocks(
    gather: Callable[[np.ndarray, np.ndarray], np.ndarray],
    n_features: int,
    dtype: type[np.floating],
    groups: Groups,
    sample_weight: np.ndarray | None,
) -> GroupMoments:
    """Sum block by block; ``gather`` returns rows by index, in the given memory if it can, which is overwritten."""
    step = _ROWS_OF_NARROW
    if dtype == np.float64:
        step = max(min(2 * n_features, _MAX_ROWS_OF_WIDE), _BLOCK_BYTES // (8 * n_features))
    step = max(min(step, len(groups.codes)), 1)
    buffer, product = np.empty(step * n_features, dtype), np.empty((n_features, n_features), dtype)
    totals = [GroupTotal(scatter, product) for scatter in np.zeros((len(groups), n_features, n_features))]
    for code, rows in _blocks_by_group(groups.codes, len(groups), step):
        rows = rows if sample_weight is None else rows[sample_weight[rows] > 0]
        if len(rows):
            weights = None if sample_weight is None else sample_weight[rows]
            totals[code].add(gather(rows, buffer[: len(rows) * n_features]), weights)
    present = [a for a, total in enumerate(totals) if total.has_rows]
    if not present:
        return GroupMoments.empty(n_features)
    counts, means, scatters = zip(*(totals[a].finish() for a in present), strict=True)
    whole = scatters[0].base if len(present) == len(totals) else np.stack(scatters)
    return GroupMoments(tuple(groups.labels[a] for a in present), np.array(counts), np.stack(means), whole)


def _blocks_by_group(codes: np.ndarray, n_groups: int, step: int) -> Iterator[tuple[int, np.ndarray]]:
    """Row indices in blocks of at most ``step``, of nearly equal size, group by group within each span of rows."""
    for start in range(0, len(codes), _SPAN * step):
        span = codes[start : start + _SPAN * step]
        order = np.argsort(span, kind="stable")
        bounds = np.searchsorted(span[order], np.arange(n_groups + 1)).tolist()
        order += start
        for code, (first, last) in enumerate(pairwise(bounds)):
            n_blocks = -(-(last - first) // step)
            for block in range(n_blocks):
                part = slice(
                    first + (last - first) * block // n_blocks, first + (last - first) * (block + 1) // n_blocks
                )
                yield code, order[part]


def _from_sparse(X: Any, groups: Groups, sample_weight: np.ndarray | None) -> GroupMoments:
    """Squares of sparse rows are taken without centring them; only mostly nonzero columns are shifted towards zero."""
    shifted, shift = shift_dense_columns(X)
    weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    parts = [GroupMoments.empty(X.shape[1])]
    for code, label in enumerate(groups.labels):
        members = np.flatnonzero((groups.codes == code) & (weights > 0))
        if not members.size:
            continue
        rows, count = shifted[members].astype(np.float64), weights[members].sum()
        mean = rows.T @ weights[members] / count
        rows = rows.multiply(np.sqrt(weights[members])[:, None]).tocsr()
        scatter = (rows.T @ rows).toarray() - count * np.outer(mean, mean)
        parts.append(GroupMoments((label,), np.array([count]), (mean + shift)[None], scatter[None]))
    return parts[0].merge(*parts[1:])
