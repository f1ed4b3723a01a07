"""Streaming group statistics of Arrow record batches and Parquet files; needs the extra ``fairpca[audit]``.

Decoding and accumulation overlap on all cores, and only a few batches are in memory at a time, whatever the file size.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairpca._arrow import ArrowFile, python_values
from fairpca._progress import Report
from fairpca._validation import Groups, check_sample_weight, groups_from_codes, intersect_groups, warn_user
from fairpca.moments._arrow_columns import ColumnRoles
from fairpca.moments._group_moments import GroupMoments
from fairpca.moments._streams import RowBlock, block_moments, merged_in_order

__all__ = ["ParquetChunks", "feature_columns", "moments_from_batches", "moments_from_parquet"]


#: Numbers decoded at a time: enough to hide the overhead of a call, few enough for several batches to be in memory.
_BATCH_NUMBERS = 4_000_000


def moments_from_parquet(
    path: str | os.PathLike | Sequence[str | os.PathLike],
    sensitive: str | Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    n_jobs: int | None = None,
    progress: Report | None = None,
) -> GroupMoments:
    """Reduce a Parquet file, a folder of Parquet files or a list of them to the moments of each group, in one pass.

    Parameters
    ----------
    path : path, or list of paths
        A folder stands for all ``*.parquet`` files directly in it, not in its subfolders. All files must hold the same
        kind of data in the columns that are read.
    sensitive : str or list of str
        The column that holds the group. With several columns, every combination that occurs is a group.
    columns : list of str, optional
        Names of the feature columns, in this order. By default, every column of the first file except ``sensitive``,
        ``weight`` and the index of a pandas data frame. All must be numeric.
    weight : str, optional
        A column of weights, which count like repeated rows.
    n_jobs : int, optional
        Number of threads. None and -1 mean one per core; -2 leaves one core free.
    progress : callable, optional
        Called as ``progress(rows_done, rows_in_total, "rows read")`` after each batch, from one thread at a time.

    Returns
    -------
    GroupMoments
        The summary of all rows.

    See Also
    --------
    feature_columns : The features, in order.
    moments_from_batches : The same for any stream of record batches.

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
    chunks = ParquetChunks(path, sensitive, columns=columns, weight=weight)
    return _moments(chunks._batches(progress), chunks._roles, n_jobs)


class ParquetChunks:
    """A Parquet file, a folder or a list of files as chunks of rows, read from disk again in every pass.

    For functions that need more than one pass: :func:`fairpca.inference.cross_validate_groups` and
    :func:`fairpca.inference.loss_test`. Only one batch is in memory at a time.

    Parameters
    ----------
    path, sensitive, columns, weight : as in moments_from_parquet
        The file, and the roles of its columns.

    See Also
    --------
    moments_from_parquet : One pass is enough for a fit.

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
    ...     held_out = cross_validate_groups(FairPCA(1), ParquetChunks(file, "sex"), cv=5)
    >>> held_out.counts
    {'f': 60, 'm': 30}
    """

    def __init__(
        self,
        path: str | os.PathLike | Sequence[str | os.PathLike],
        sensitive: str | Sequence[str],
        *,
        columns: Sequence[str] | None = None,
        weight: str | None = None,
    ) -> None:
        self._roles = ColumnRoles(columns, sensitive, weight)
        self._files = [ArrowFile(file, "Parquet", name=str(file)) for file in _files(path)]
        for file in self._files:
            self._roles.check(file.schema, file.name)

    def __iter__(self) -> Iterator[tuple[np.ndarray, Groups, np.ndarray | None]]:
        for batch in self._batches():
            block = _decode(self._roles, batch)
            yield np.column_stack(block.columns), block.groups, block.weights

    def _batches(self, progress: Report | None = None) -> Iterator[Any]:
        rows, done = max(_BATCH_NUMBERS // len(self._roles.features), 1), 0
        n_rows = sum(file.n_rows for file in self._files)
        for file in self._files:
            for batch in file.batches(self._roles.all, rows):
                yield batch
                done += batch.num_rows
                if progress is not None:
                    progress(done, n_rows, "rows read")


def moments_from_batches(
    batches: Iterable[Any],
    sensitive: str | Sequence[str],
    *,
    columns: Sequence[str],
    weight: str | None = None,
    n_jobs: int | None = None,
) -> GroupMoments:
    """Reduce any stream of :class:`pyarrow.RecordBatch` to the moments of each group.

    The batches may come from an IPC file, Flight or a database cursor.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        A :class:`pyarrow.Table`, a single batch or a :class:`pyarrow.dataset.Dataset` is accepted as well.
    sensitive, columns, weight, n_jobs : as in moments_from_parquet
        The roles of the columns, and the number of threads.

    Returns
    -------
    GroupMoments
        The summary of all rows.

    See Also
    --------
    moments_from_parquet : The same for files.

    Examples
    --------
    >>> import pyarrow
    >>> from fairpca.moments.arrow import moments_from_batches
    >>> table = pyarrow.table({"a": [1.0, 2.0, 4.0], "b": [0.0, 1.0, 1.0], "sex": ["f", "m", "f"]})
    >>> moments_from_batches(table.to_batches(), "sex", columns=["a", "b"]).counts.tolist()
    [2.0, 1.0]
    """
    roles = ColumnRoles(columns, sensitive, weight)
    return _moments(_checked_batches(batches, roles), roles, n_jobs)


def feature_columns(
    path: Any, sensitive: str | Sequence[str], *, columns: Sequence[str] | None = None, weight: str | None = None
) -> list[str]:
    """The features that :func:`moments_from_parquet` will use; raises if a column is missing or not numeric.

    Parameters
    ----------
    path, sensitive, columns, weight : as in moments_from_parquet
        The file and the roles of its columns.

    Returns
    -------
    list of str
        Names of the columns, in the order of the components' entries.

    See Also
    --------
    moments_from_parquet : Reads them.

    Examples
    --------
    >>> import os, tempfile
    >>> import pyarrow.parquet
    >>> from fairpca.moments.arrow import feature_columns
    >>> table = pyarrow.table({"a": [1.0, 2.0], "b": [0, 1], "sex": ["f", "m"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "people.parquet")
    ...     pyarrow.parquet.write_table(table, file)
    ...     feature_columns(file, "sex")
    ['a', 'b']
    """
    return ParquetChunks(path, sensitive, columns=columns, weight=weight)._roles.features


def _checked_batches(batches: Any, roles: ColumnRoles) -> Iterator[Any]:
    schema = None
    for batch in _record_batches(batches):
        if schema is None or not batch.schema.equals(schema):
            schema = batch.schema
            roles.check(schema, "the batches")
        yield batch


def _record_batches(batches: Any) -> Iterator[Any]:
    """Yield the batches of a single batch, a table, a dataset, or an iterable of batches and tables."""
    whole = hasattr(batches, "to_batches") or _is_batch(batches)
    items = [batches] if whole or not isinstance(batches, Iterable) else batches
    for item in items:
        if hasattr(item, "to_batches"):
            yield from item.to_batches()
        elif _is_batch(item):
            yield item
        else:
            raise TypeError(
                "batches must be a pyarrow Table or an iterable of pyarrow record batches, but contains a "
                f"{type(item).__name__}; convert it first, for example with pyarrow.Table.from_pandas."
            )


def _is_batch(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("schema", "num_rows", "column"))


def _moments(batches: Iterable[Any], roles: ColumnRoles, n_jobs: int | None) -> GroupMoments:
    """Each thread decodes what it accumulates."""
    moments = merged_in_order(
        lambda batch: block_moments(roles.features, _decode(roles, batch)), batches, roles.features, n_jobs
    )
    if not moments.labels:
        raise ValueError("There are no rows (of positive weight) to learn from.")
    if roles.weight is not None:
        check_sample_weight([moments.total_count], 1)  # a single batch may have little weight, all together may not
    return moments


def _decode(roles: ColumnRoles, batch: Any) -> RowBlock:
    columns = [_numbers(batch, name) for name in roles.features]
    encoded = [_groups(batch, name) for name in roles.sensitive]
    groups = encoded[0] if len(encoded) == 1 else intersect_groups(encoded)
    weights = None
    if roles.weight is not None:
        weights = check_sample_weight(_numbers(batch, roles.weight), batch.num_rows, part=True)
    return RowBlock(columns, groups, weights)


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
            f"The sensitive column {name!r} contains nulls; drop those rows or give them their own label, such as "
            "'unknown'."
        )
    encoded = column if hasattr(column, "dictionary") else column.dictionary_encode()
    labels = [_label(value) for value in python_values(encoded.dictionary)]
    if any(label is None or label != label for label in labels):
        raise ValueError(f"The sensitive column {name!r} contains missing values; give them their own label.")
    return groups_from_codes(encoded.indices.to_numpy(zero_copy_only=False), labels)


def _label(value: Any) -> Any:
    """Convert 0.0 and 1.0 to the labels 0 and 1, as for arrays."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _files(path: Any) -> list[Path]:
    paths = [Path(path)] if isinstance(path, str | os.PathLike) else [Path(item) for item in path]
    if not paths:
        raise FileNotFoundError("path is an empty list; give at least one Parquet file.")
    files = [file for item in paths for file in _files_at(item)]
    repeated = [str(file) for file, times in Counter(file.resolve() for file in files).items() if times > 1]
    if repeated:
        warn_user(f"Listed more than once, and counted as often: {', '.join(repeated)}. List each file once.")
    return files


def _files_at(path: Path) -> list[Path]:
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise FileNotFoundError(
            f"There is no *.parquet file in {path} itself, and subfolders are not searched: list the files, for "
            f"example sorted(Path({str(path)!r}).rglob('*.parquet')); values in folder names are not read."
        )
    return files
