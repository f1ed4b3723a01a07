"""Group statistics of Arrow record batches and Parquet files, streamed: needs the extra ``fairpca[arrow]``.

Decoding and accumulation overlap on all cores, and memory holds a few batches, whatever the size of the file.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from fairpca._validation import Groups, check_sample_weight, groups_from_codes, intersect_groups
from fairpca.linalg import single_blas_thread
from fairpca.moments._accumulate import accumulate_columns
from fairpca.moments._arrow_columns import ColumnRoles
from fairpca.moments._group_moments import GroupMoments

__all__ = ["ParquetChunks", "feature_columns", "moments_from_batches", "moments_from_parquet"]

#: Called with the rows done, the rows in all, and what is being done.
Progress = Callable[[int, int, str], None]

#: Numbers in a batch: enough to hide the cost of a call, few enough for several batches to share the cache.
_BATCH_SIZE = 4_000_000
#: Bytes read of a column at a time, instead of its whole row group.
_READ_BYTES = 1 << 18
#: Parts handed out for each thread: it has another at hand when it is done, and few summaries wait for their turn.
_PARTS_AHEAD = 2


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
        A folder stands for all ``*.parquet`` files in it, not in its subfolders. All files must hold the same kind of
        data in the columns that are read.
    sensitive : str or list of str
        The column that holds the group; several make groups of the combinations that occur.
    columns : list of str, optional
        Features, in this order; default: every column of the first file but ``sensitive``, ``weight`` and the index of
        a pandas frame. All must be numbers.
    weight : str, optional
        A column of weights, which count like repeated rows.
    batch_rows : int, optional
        Rows decoded at a time; default: about 4,000,000 numbers.
    n_jobs : int, optional
        Threads; default: one a core, as is -1; -2 leaves one core free.
    progress : callable, optional
        Called as ``progress(rows_done, rows_in_all, "rows read")`` after each batch, from one thread at a time.

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
    workers = _n_threads(n_jobs)
    roles, files = _checked_files(path, sensitive, columns, weight)
    batch_rows = _rows_of_batch(batch_rows, roles)
    reducer = _Reducer(roles, sum(file.n_rows for file in files), progress)
    parts = [part for file in files for part in file.split(workers if len(files) < workers else 1)]
    with single_blas_thread():
        if len(parts) < workers:  # too few row groups to give each thread its own: threads decode the columns
            batches = (batch for part in parts for batch in part.batches(roles, batch_rows, use_threads=True))
            return reducer.pipeline(batches, workers)
        return reducer.side_by_side((part.batches(roles, batch_rows) for part in parts), workers)


class ParquetChunks:
    """A Parquet file, a folder of them or a list as chunks of rows, read from disk again at every pass.

    For what needs more than one pass: :func:`fairpca.inference.cross_validate_groups` and
    :func:`fairpca.inference.loss_test`. Memory holds one batch. Parameters as in :func:`moments_from_parquet`.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np, pyarrow.parquet
    >>> from fairpca import FairPCA
    >>> from fairpca.inference import cross_validate_groups
    >>> from fairpca.moments.arrow import ParquetChunks
    >>> rng = np.random.default_rng(0)
    >>> table = pyarrow.table({"a": rng.normal(size=90), "b": rng.normal(size=90), "sex": ["f", "m", "f"] * 30})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "people.parquet")
    ...     pyarrow.parquet.write_table(table, file)
    ...     figures = cross_validate_groups(FairPCA(1), ParquetChunks(file, "sex"), cv=5)
    >>> figures.counts
    {'f': 60.0, 'm': 30.0}
    """

    def __init__(
        self,
        path: str | os.PathLike | Sequence[str | os.PathLike],
        sensitive: str | Sequence[str],
        *,
        columns: Sequence[str] | None = None,
        weight: str | None = None,
        batch_rows: int | None = None,
    ) -> None:
        self._roles, self._files = _checked_files(path, sensitive, columns, weight)
        self._batch_rows = _rows_of_batch(batch_rows, self._roles)

    def __iter__(self) -> Iterator[tuple[np.ndarray, Groups, np.ndarray | None]]:
        for file in self._files:
            for batch in file.batches(self._roles, self._batch_rows, use_threads=True):
                columns, groups, weights = _decode(batch, self._roles)
                yield np.column_stack(columns), groups, weights


def moments_from_batches(
    batches: Iterable[Any],
    sensitive: str | Sequence[str],
    *,
    columns: Sequence[str],
    weight: str | None = None,
    n_jobs: int | None = None,
) -> GroupMoments:
    """The same for any stream of :class:`pyarrow.RecordBatch`: an IPC file, Flight, a database cursor.

    A :class:`pyarrow.Table`, a single batch or a :class:`pyarrow.dataset.Dataset` will do as well.
    """
    roles = ColumnRoles(columns, sensitive, weight)
    with single_blas_thread():
        return _Reducer(roles).pipeline(_checked_batches(batches, roles), _n_threads(n_jobs))


def feature_columns(
    path: Any, sensitive: str | Sequence[str], *, columns: Sequence[str] | None = None, weight: str | None = None
) -> list[str]:
    """The features that :func:`moments_from_parquet` will use; an error names a column that is absent or no number."""
    return _checked_files(path, sensitive, columns, weight)[0].features


def _checked_files(
    path: Any, sensitive: str | Sequence[str], columns: Sequence[str] | None, weight: str | None
) -> tuple[ColumnRoles, list[_ParquetPart]]:
    """What to read, and the files, all of which have it."""
    parquet = _import_parquet()
    roles = None if columns is None else ColumnRoles(columns, sensitive, weight)
    files = []
    for file in _files(path):
        part = _ParquetPart(parquet, file)
        schema = part.describe()
        if roles is None:
            roles = ColumnRoles.from_schema(schema, str(file), sensitive, weight)
        roles.check(schema, str(file))
        files.append(part)
    assert roles is not None  # there is a first file
    return roles, files


def _checked_batches(batches: Any, roles: ColumnRoles) -> Iterator[Any]:
    schema = None
    for batch in _record_batches(batches):
        if schema is None or not batch.schema.equals(schema):
            schema = batch.schema
            roles.check(schema, "the batches")
        yield batch


def _record_batches(batches: Any) -> Iterator[Any]:
    """Batches of what is one, has some or yields some."""
    if hasattr(batches, "to_batches"):
        yield from batches.to_batches()
    elif _is_batch(batches):
        yield batches
    elif isinstance(batches, Iterable):
        for item in batches:
            if hasattr(item, "to_batches"):
                yield from item.to_batches()
            elif _is_batch(item):
                yield item
            else:
                raise _no_batches(f"an iterable of {type(item).__name__}")
    else:
        raise _no_batches(type(batches).__name__)


def _is_batch(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("schema", "num_rows", "column"))


def _no_batches(found: str) -> TypeError:
    return TypeError(
        f"batches must be a pyarrow Table or an iterable of pyarrow record batches, got {found}; convert it first, for "
        "example with pyarrow.Table.from_pandas."
    )


def _n_threads(n_jobs: int | None) -> int:
    """Negative numbers count back from all cores, as in joblib."""
    cores = os.cpu_count() or 1
    if n_jobs is None:
        return cores
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ValueError(f"n_jobs={n_jobs!r} must be a number of threads, or -1 for one a core.")
    return int(n_jobs) if n_jobs > 0 else max(cores + 1 + int(n_jobs), 1)


class _ParquetPart:
    """A file, or some of its row groups."""

    def __init__(self, parquet: Any, path: Path) -> None:
        self._parquet, self.path = parquet, path
        self.n_rows, self._row_groups = 0, list[int]()

    def describe(self) -> Any:
        """The schema; rows and row groups are counted on the way."""
        with self._readable(), self._open() as file:  # whose sensitive columns are still to be checked
            self.n_rows = file.metadata.num_rows
            self._row_groups = list(range(file.metadata.num_row_groups))
            return file.schema_arrow

    def _open(self, **options: Any) -> Any:
        # Buffering in advance would hold all row groups.
        return self._parquet.ParquetFile(self.path, pre_buffer=False, buffer_size=_READ_BYTES, **options)

    def split(self, count: int) -> list[_ParquetPart]:
        count = max(min(count, len(self._row_groups)), 1)
        return [self._with(list(groups)) for groups in np.array_split(self._row_groups, count)]

    def _with(self, row_groups: list[int]) -> _ParquetPart:
        part = object.__new__(_ParquetPart)
        part.__dict__.update(self.__dict__, _row_groups=[int(group) for group in row_groups])
        return part

    def batches(self, roles: ColumnRoles, rows: int, use_threads: bool = False) -> Iterator[Any]:
        # As a dictionary, a column of strings is decoded to codes.
        with self._readable(), self._open(read_dictionary=roles.sensitive) as file:
            yield from file.iter_batches(rows, self._row_groups, roles.all, use_threads=use_threads)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """A damaged or foreign file ends in a sentence that names it."""
        import pyarrow

        try:
            yield
        except (pyarrow.ArrowException, OSError) as problem:
            reason = str(problem).splitlines()[0]
            raise ValueError(f"{self.path} cannot be read as Parquet ({reason}): mend it, or leave it out.") from None


class _Reducer:
    """Moments of batches, in one thread or several."""

    def __init__(self, roles: ColumnRoles, n_rows: int = 0, progress: Progress | None = None) -> None:
        self._roles = roles
        self._n_rows, self._done, self._progress, self._lock = n_rows, 0, progress, Lock()

    def side_by_side(self, parts: Iterable[Iterable[Any]], workers: int) -> GroupMoments:
        """A thread for each part; merged in their order, and as they finish: the summary of a part may be large."""
        total, running = self._nothing(), deque[Future]()
        with ThreadPoolExecutor(workers) as pool:
            for part in parts:
                if len(running) == _PARTS_AHEAD * workers:
                    total = total.merge(running.popleft().result())
                running.append(pool.submit(self._sequence, part))
            while running:
                total = total.merge(running.popleft().result())
        return self._checked(total)

    def _sequence(self, batches: Iterable[Any]) -> GroupMoments:
        total = self._nothing()
        for batch in batches:
            total = total.merge(self._moments(batch))
        return total

    def pipeline(self, batches: Iterator[Any], workers: int) -> GroupMoments:
        """This thread decodes while others accumulate; each takes its turn, so the result does not depend on timing."""
        totals = [self._nothing() for _ in range(workers)]
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
        return self._checked(totals[0].merge(*totals[1:]))

    def _nothing(self) -> GroupMoments:
        return GroupMoments.empty(len(self._roles.features))

    def _checked(self, moments: GroupMoments) -> GroupMoments:
        if not moments.labels:
            raise ValueError("There are no rows (of positive weight) to learn from.")
        if self._roles.weight is not None:
            check_sample_weight([moments.total_count], 1)  # a batch may weigh little, all of them may not
        return moments

    def _moments(self, batch: Any) -> GroupMoments:
        columns, groups, weights = _decode(batch, self._roles)
        moments = GroupMoments.empty(len(columns))
        if len(groups.codes):
            moments = accumulate_columns(columns, groups, weights)
        if not np.isfinite(moments.scatters).all():
            self._raise_not_finite(columns)
        self._report(batch.num_rows)
        return moments

    def _raise_not_finite(self, columns: list[np.ndarray]) -> None:
        for name, column in zip(self._roles.features, columns, strict=True):
            if not np.isfinite(column).all():
                raise ValueError(f"Column {name!r} contains NaN or infinity; drop those rows or fill them in first.")
        raise ValueError("The columns have entries so large that their squares overflow; rescale them first.")

    def _report(self, n_rows: int) -> None:
        with self._lock:
            self._done += n_rows
            if self._progress is not None:
                self._progress(self._done, self._n_rows, "rows read")


def _rows_of_batch(batch_rows: int | None, roles: ColumnRoles) -> int:
    return max(_BATCH_SIZE // len(roles.features), 1024) if batch_rows is None else batch_rows


def _decode(batch: Any, roles: ColumnRoles) -> tuple[list[np.ndarray], Groups, np.ndarray | None]:
    """Features, groups and weights of the rows that count."""
    columns = [_numbers(batch, name) for name in roles.features]
    encoded = [_groups(batch, name) for name in roles.sensitive]
    groups = encoded[0] if len(encoded) == 1 else intersect_groups(encoded)
    if roles.weight is None:
        return columns, groups, None
    return _without_zero_weights(columns, groups, _numbers(batch, roles.weight).astype(np.float64))


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


def _files(path: Any) -> list[Path]:
    paths = [Path(path)] if isinstance(path, str | os.PathLike) else [Path(item) for item in path]
    if not paths:
        raise FileNotFoundError("path is an empty list; give at least one Parquet file.")
    return [file for item in paths for file in (_files_in(item) if item.is_dir() else [_existing(item)])]


def _files_in(folder: Path) -> list[Path]:
    files = sorted(folder.glob("*.parquet"))
    if not files and any(folder.glob("*/**/*.parquet")):
        raise FileNotFoundError(
            f"There is no *.parquet file in {folder} itself, and subfolders are not searched: list the files, for "
            f"example sorted(Path({str(folder)!r}).rglob('*.parquet')); values in the names of folders are not read."
        )
    if not files:
        raise FileNotFoundError(f"There is no *.parquet file in {folder}; give the files themselves.")
    return files


def _existing(file: Path) -> Path:
    if not file.exists():
        raise FileNotFoundError(f"There is no file {file}.")
    return file


def _import_parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise ImportError("Reading Parquet needs pyarrow: pip install 'fairpca[arrow]'.") from None
    return pyarrow.parquet
