"""Moments of a stream of row blocks: several threads accumulate while the next block is being read.

Only a few blocks are in memory at a time, and the result does not depend on the timing of the threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from fairpca._progress import Report
from fairpca._validation import Groups
from fairpca.linalg import single_blas_thread
from fairpca.moments._accumulate import accumulate_columns
from fairpca.moments._group_moments import GroupMoments

#: Parts submitted per thread: enough that no thread has to wait for work, few enough that few summaries are pending.
PARTS_AHEAD = 2


@dataclass(frozen=True)
class RowBlock:
    """Some rows: feature columns in single or double precision, the group of each row, optional positive weights."""

    columns: Sequence[np.ndarray]
    groups: Groups
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.groups.codes)


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
    return StreamReducer(feature_names, _as_it_is).in_turns(blocks, n_threads(n_jobs))


def n_threads(n_jobs: int | None) -> int:
    """Number of threads; negative numbers count back from the number of cores, as in joblib."""
    cores = os.cpu_count() or 1
    if n_jobs is None:
        return cores
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ValueError(f"n_jobs={n_jobs!r} must be a number of threads, or -1 for one per core.")
    return int(n_jobs) if n_jobs > 0 else max(cores + 1 + int(n_jobs), 1)


class StreamReducer:
    """Moments of items that ``decode`` converts to row blocks; each thread decodes what it accumulates."""

    def __init__(
        self,
        feature_names: Sequence[str],
        decode: Callable[[Any], RowBlock],
        n_rows: int = 0,
        progress: Report | None = None,
    ) -> None:
        self._names, self._decode = feature_names, decode
        self._n_rows, self._done, self._progress, self._lock = n_rows, 0, progress, Lock()

    def side_by_side(self, parts: Iterable[Iterable[Any]], workers: int) -> GroupMoments:
        """One task per part; results are merged in order and as early as possible, because summaries may be large."""
        total, running = self._nothing(), deque[Future]()
        with single_blas_thread(), ThreadPoolExecutor(workers) as pool:
            for part in parts:
                if len(running) == PARTS_AHEAD * workers:
                    total = total.merge(running.popleft().result())
                running.append(pool.submit(self._sequence, part))
            while running:
                total = total.merge(running.popleft().result())
        return total

    def _sequence(self, items: Iterable[Any]) -> GroupMoments:
        total = self._nothing()
        for item in items:
            total = total.merge(self._moments(item))
        return total

    def in_turns(self, items: Iterable[Any], workers: int) -> GroupMoments:
        """This thread reads while others accumulate in a fixed rotation, so the result does not depend on timing."""
        totals = [self._nothing() for _ in range(workers)]
        running: list[Future | None] = [None] * workers
        with single_blas_thread(), ThreadPoolExecutor(workers) as pool:
            for turn, item in enumerate(items):
                worker = turn % workers
                before = running[worker]
                if before is not None:
                    totals[worker] = totals[worker].merge(before.result())
                running[worker] = pool.submit(self._moments, item)
            for worker, last in enumerate(running):
                if last is not None:
                    totals[worker] = totals[worker].merge(last.result())
        return totals[0].merge(*totals[1:])

    def _nothing(self) -> GroupMoments:
        return GroupMoments.empty(len(self._names))

    def _moments(self, item: Any) -> GroupMoments:
        block = self._decode(item)
        moments = self._nothing()
        if len(block):
            moments = accumulate_columns(block.columns, block.groups, block.weights)
        if not np.isfinite(moments.scatters).all():
            self._raise_not_finite(block.columns)
        self._report(len(item))  # includes rows of weight zero
        return moments

    def _raise_not_finite(self, columns: Sequence[np.ndarray]) -> None:
        for name, column in zip(self._names, columns, strict=True):
            if not np.isfinite(column).all():
                raise ValueError(f"Column {name!r} contains NaN or infinity; drop those rows or fill them in first.")
        raise ValueError("The columns have entries so large that their squares overflow; rescale them first.")

    def _report(self, n_rows: int) -> None:
        with self._lock:
            self._done += n_rows
            if self._progress is not None:
                self._progress(self._done, self._n_rows, "rows read")


def _as_it_is(block: RowBlock) -> RowBlock:
    return block
