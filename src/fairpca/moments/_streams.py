"""Moments of a stream of row blocks: several threads accumulate while the next block is being read.

Only a few blocks are in memory at a time, and the result does not depend on the timing of the threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fairpca._validation import Groups
from fairpca.linalg import single_blas_thread
from fairpca.moments._accumulate import accumulate_columns
from fairpca.moments._group_moments import GroupMoments


@dataclass(frozen=True)
class RowBlock:
    """Some rows: feature columns in single or double precision, the group of each row, optional weights."""

    columns: Sequence[np.ndarray]
    groups: Groups
    weights: np.ndarray | None = None


def moments_from_blocks(
    blocks: Iterable[RowBlock], feature_names: Sequence[str], *, n_jobs: int | None = None
) -> GroupMoments:
    """Reduce blocks of rows as they arrive: the calling thread fetches the next block while other threads accumulate.

    Parameters
    ----------
    blocks : iterable of RowBlock
        Blocks of any size; they may contain different groups, and some may have no rows.
    feature_names : list of str
        Names of the columns, for error messages.
    n_jobs : int, optional
        Number of threads. None and -1 mean one per core; -2 leaves one core free.

    Returns
    -------
    GroupMoments
        Without any groups if there were no rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca._validation import check_groups
    >>> from fairpca.moments._streams import RowBlock, moments_from_blocks
    >>> a, b = np.array([1.0, 2.0, 4.0]), np.array([0.0, 1.0, 1.0])
    >>> blocks = [RowBlock([a, b], check_groups(["f", "m", "f"], 3))]
    >>> moments = moments_from_blocks(blocks, ["a", "b"])
    >>> moments.labels, moments.means.tolist()
    (('f', 'm'), [[2.5, 0.5], [2.0, 1.0]])
    """
    return merged_in_order(partial(block_moments, feature_names), blocks, feature_names, n_jobs)


def merged_in_order(
    function: Callable[[Any], GroupMoments], items: Iterable[Any], feature_names: Sequence[str], n_jobs: int | None
) -> GroupMoments:
    """Merge ``function(item)`` of all items in their order and as early as possible, because summaries may be large.

    The calling thread fetches the next item meanwhile, and at most one per thread is waiting.
    """
    workers = n_threads(n_jobs)
    total, running = GroupMoments.empty(len(feature_names)), deque[Future]()
    with single_blas_thread(), ThreadPoolExecutor(workers) as pool:
        for item in items:
            if len(running) == 2 * workers:
                total = total.merge(running.popleft().result())
            running.append(pool.submit(function, item))
        while running:
            total = total.merge(running.popleft().result())
    return total


def block_moments(feature_names: Sequence[str], block: RowBlock) -> GroupMoments:
    """The moments of a block; missing values and numbers that are too large are an error that names the column."""
    moments = accumulate_columns(block.columns, block.groups, block.weights)
    if np.isfinite(moments.scatters).all():
        return moments
    for name, column in zip(feature_names, block.columns, strict=True):
        if not np.isfinite(column).all():
            raise ValueError(f"Column {name!r} contains NaN or infinity; drop those rows or fill them in first.")
    raise ValueError("The columns have entries so large that their squares overflow; rescale them first.")


def n_threads(n_jobs: int | None) -> int:
    """Number of threads; negative numbers count back from the number of cores, as in joblib."""
    cores = os.cpu_count() or 1
    if n_jobs is None:
        return cores
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ValueError(f"n_jobs={n_jobs!r} must be a number of threads, or -1 for one per core.")
    return int(n_jobs) if n_jobs > 0 else max(cores + 1 + int(n_jobs), 1)
