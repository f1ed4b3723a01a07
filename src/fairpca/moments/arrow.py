"""Group statistics of Arrow record batches and Parquet files, streamed: needs the extra ``fairpca[arrow]``.

Decoding and accumulation overlap on all cores, and memory holds a few batches, whatever the size of the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from fairpca._validation import Groups, check_sample_weight, groups_from_codes, intersect_groups
from fairpca.linalg import single_blas_thread
from fairpca.moments._accumulate import accumulate_columns
from fairpca.moments._group_moments import GroupMoments

__all__ = ["feature_columns", "moments_from_batches", "moments_from_parquet"]

#: Called with the rows done, the rows in all, and what is being read.
Progress = Callable[[int, int, str], None]

#: Numbers in a batch: enough to hide the cost of a call, few enough for several batches to share the cache.
_BATCH_SIZE = 4_000_000
#: Bytes read of a column at a time, instead of its whole row group.
_READ_BYTES = 1 << 18


def moments_from_parquet(
    path: str | os.PathLike | Sequence[str | os.PathLike],
    sensitive: str | Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    batch_rows: int | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> GroupMoments:
    """Reduce a Parquet file, a folder of them or a list to the moments of each group, in one pass.

    Parameters
    ----------
    path : path, or list of paths
        A folder stands for all ``*.parquet`` files in it.
    sensitive : str or list of str
        The column that holds the group; several make groups of the combinations that occur.
    columns : list of str, optional
        Features, in this order; default: every column but ``sensitive`` and ``weight``. All must be numbers.
    weight : str, optional
        A column of weights, which count like repeated rows.
    batch_rows : int, optional
        Rows decoded at a time; default: about 4,000,000 numbers.
    n_jobs : int, optional
        Threads; default: one a core.
    progress : callable, optional
        Called as ``progress(rows_done, rows_in_all, file_name)``.

    Examples
    --------
    >>> import os, tempfile
    >>> import pyarrow.parquet
    >>> from fairpca import FairPCA
    >>> from fairpca.moments.arrow import moments_from_parquet
    >>> table = pyarrow.table({"a": [1.0, 2.0, 4.0], "b": [0.0, 1.0, 1.0], "sex": ["f", "m", "f"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "people.parquet")
    ...     pyarrow.parquet.write_table(table, file)
    ...     moments = moments_from_parquet(file, "sex")
    >>> moments.labels, moments.means.tolist()
    (('f', 'm'), [[2.5, 0.5], [2.0, 1.0]])
    """
    parquet = _import_parquet()
    names = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    features = feature_columns(path, names, columns=columns, weight=weight)
    wanted = [*features, *names, *([weight] if weight else [])]
    files = [_ParquetPart(parquet, file, names, wanted) for file in _files(path)]
    if batch_rows is None:
        batch_rows = max(_BATCH_SIZE // max(len(features), 1), 1024)
    workers = n_jobs or os.cpu_count() or 1
    reducer = _Reducer(features, names, weight, sum(file.n_rows for file in files), progress)
    parts = [part for file in files for part in file.split(workers if len(files) < workers else 1)]
    with single_blas_thread():
        if len(parts) < workers:  # too few row groups to give each thread its own: threads decode the columns
            batches = (batch for part in parts for batch in part.batches(batch_rows, use_threads=True))
            return _checked(reducer.pipeline(batches, workers))
        with ThreadPoolExecutor(workers) as pool:
            sums = list(pool.map(lambda part: reducer.sequence(part.batches(batch_rows)), parts))
    return _checked(_merge(sums))


def moments_from_batches(
    batches: Iterable[Any],
    sensitive: str | Sequence[str],
    *,
    columns: Sequence[str],
    weight: str | None = None,
    n_jobs: int | None = None,
) -> GroupMoments:
    """The same for any stream of :class:`pyarrow.RecordBatch`: an IPC file, Flight, a database cursor."""
    names = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    reducer = _Reducer(list(columns), names, weight, 0, None)
    with single_blas_thread():
        return _checked(reducer.pipeline(iter(batches), n_jobs or os.cpu_count() or 1))


def feature_columns(
    path: Any, sensitive: str | Sequence[str], *, columns: Sequence[str] | None = None, weight: str | None = None
) -> list[str]:
    """The features that :func:`moments_from_parquet` will use; an error names a column that is absent or no number."""
    schema = _import_parquet().read_schema(_files(path)[0])
    names = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    others = [*names, *([weight] if weight else [])]
    features = [name for name in schema.names if name not in others] if columns is None else list(columns)
    for name in [*others, *features]:
        if name not in schema.names:
            raise ValueError(f"There is no column {name!r}; the file has {', '.join(map(repr, schema.names[:20]))}.")
    both = [name for name in features if name in others]
    if both:
        raise ValueError(f"Column {both[0]!r} cannot be a feature and the sensitive feature or weight as well.")
    for name in features:
        _check_number_type(schema.field(name))
    if not features:
        raise ValueError("The file has no feature columns beside the sensitive one.")
    return features


def _check_number_type(field: Any) -> None:
    from pyarrow import types

    kind = field.type
    if not (types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)):
        raise ValueError(
            f"Column {field.name!r} holds {kind}, not numbers: leave it out by listing the features in columns=, or "
            "encode it first."
        )


class _ParquetPart:
    """A file, or some of its row groups."""

    def __init__(self, parquet: Any, path: Path, categories: list[str], columns: list[str]) -> None:
        self._parquet, self.path = parquet, path
        self._categories, self._columns = categories, columns
        metadata = self._open().metadata
        self.n_rows = metadata.num_rows
        self._row_groups = list(range(metadata.num_row_groups))

    def _open(self) -> Any:
        # As a dictionary, a column of strings is decoded to codes. Buffering in advance would hold all row groups.
        return self._parquet.ParquetFile(
            self.path, read_dictionary=self._categories, pre_buffer=False, buffer_size=_READ_BYTES
        )

    def split(self, count: int) -> list[_ParquetPart]:
        count = max(min(count, len(self._row_groups)), 1)
        return [self._with(list(groups)) for groups in np.array_split(self._row_groups, count)]

    def _with(self, row_groups: list[int]) -> _ParquetPart:
        part = object.__new__(_ParquetPart)
        part.__dict__.update(self.__dict__, _row_groups=[int(group) for group in row_groups])
        return part

    def batches(self, rows: int, use_threads: bool = False) -> Iterator[Any]:
        with self._open() as file:
            yield from file.iter_batches(rows, self._row_groups, self._columns, use_threads=use_threads)


class _Reducer:
    """Moments of batches, in one thread or several."""

    def __init__(
        self, features: list[str], sensitive: list[str], weight: str | None, n_rows: int, progress: Progress | None
    ) -> None:
        self._features, self._sensitive, self._weight = features, sensitive, weight
        self._n_rows, self._done, self._progress, self._lock = n_rows, 0, progress, Lock()

    def sequence(self, batches: Iterable[Any]) -> GroupMoments:
        total = GroupMoments.empty(len(self._features))
        for batch in batches:
            total = total.merge(self._moments(batch))
        return total

    def pipeline(self, batches: Iterator[Any], workers: int) -> GroupMoments:
        """This thread decodes while others accumulate; each takes its turn, so the result does not depend on timing."""
        totals = [GroupMoments.empty(len(self._features)) for _ in range(workers)]
        running: list[Future | None] = [None] * workers
        with ThreadPoolExecutor(workers) as pool:
            for turn, batch in enumerate(batches):
                worker = turn % workers
                before = running[worker]
                if before is not None:
                    totals[worker] = totals[worker].merge(before.result())
                running[worker] = pool.submit(self._moments, batch)
            for worker, last in enumerate(running):
                if last is not None:
                    totals[worker] = totals[worker].merge(last.result())
        return _merge(totals)

    def _moments(self, batch: Any) -> GroupMoments:
        columns = [_numbers(batch, name) for name in self._features]
        encoded = [_groups(batch, name) for name in self._sensitive]
        groups = encoded[0] if len(encoded) == 1 else intersect_groups(encoded)
        weights = None if self._weight is None else _numbers(batch, self._weight).astype(np.float64)
        if weights is not None:
            columns, groups, weights = _without_zero_weights(columns, groups, weights)
        moments = GroupMoments.empty(len(columns))
        if len(groups.codes):
            moments = accumulate_columns(columns, groups, weights)
        if not np.isfinite(moments.scatters).all():
            self._raise_not_finite(columns)
        self._report(batch.num_rows)
        return moments

    def _raise_not_finite(self, columns: list[np.ndarray]) -> None:
        for name, column in zip(self._features, columns, strict=True):
            if not np.isfinite(column).all():
                raise ValueError(f"Column {name!r} contains NaN or infinity; drop those rows or fill them in first.")
        raise ValueError("The columns have entries so large that their squares overflow; rescale them first.")

    def _report(self, n_rows: int) -> None:
        with self._lock:
            self._done += n_rows
            if self._progress is not None:
                self._progress(self._done, self._n_rows, "rows read")


def _without_zero_weights(
    columns: list[np.ndarray], groups: Groups, weights: np.ndarray
) -> tuple[list[np.ndarray], Groups, np.ndarray]:
    if not np.isfinite(weights).all() or weights.min(initial=0.0) < 0:
        check_sample_weight(weights, len(weights))  # raises, in the words used everywhere
    kept = weights > 0
    if kept.all():
        return columns, groups, weights
    return [column[kept] for column in columns], Groups(groups.labels, groups.codes[kept]), weights[kept]


def _numbers(batch: Any, name: str) -> np.ndarray:
    column = batch.column(name)
    if column.null_count:
        raise ValueError(f"Column {name!r} contains nulls; drop those rows or fill them in first.")
    array = column.to_numpy(zero_copy_only=False)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _groups(batch: Any, name: str) -> Groups:
    """Codes and labels of a column, without a Python object per row."""
    column = batch.column(name)
    if column.null_count:
        raise ValueError(
            f"The sensitive column {name!r} contains nulls; drop those rows or give them a label of their own, such as "
            "'unknown'."
        )
    encoded = column if hasattr(column, "dictionary") else column.dictionary_encode()
    labels = [_label(value) for value in encoded.dictionary.to_pylist()]
    if any(label is None or label != label for label in labels):
        raise ValueError(f"The sensitive column {name!r} contains missing values; give them a label of their own.")
    return groups_from_codes(encoded.indices.to_numpy(zero_copy_only=False), labels)


def _label(value: Any) -> Any:
    """0.0 and 1.0 are the labels 0 and 1, as for arrays."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _merge(parts: Sequence[GroupMoments]) -> GroupMoments:
    return parts[0].merge(*parts[1:])


def _checked(moments: GroupMoments) -> GroupMoments:
    if not moments.labels:
        raise ValueError("There are no rows (of positive weight) to learn from.")
    return moments


def _files(path: Any) -> list[Path]:
    paths = [Path(path)] if isinstance(path, str | os.PathLike) else [Path(item) for item in path]
    files = [file for item in paths for file in (sorted(item.glob("*.parquet")) if item.is_dir() else [item])]
    if not files:
        raise FileNotFoundError(f"There is no *.parquet file in {paths[0] if paths else 'an empty list'}.")
    for file in files:
        if not file.exists():
            raise FileNotFoundError(f"There is no file {file}.")
    return files


def _import_parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise ImportError("Reading Parquet needs pyarrow: pip install 'fairpca[arrow]'.") from None
    return pyarrow.parquet
