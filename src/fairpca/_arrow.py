"""What moments and tables share of Arrow: a reader of Parquet and Feather files, and values of labels.

Needs the extra ``fairpca[arrow]``.
"""

from __future__ import annotations

import copy
import datetime
import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fairpca._optional import require

__all__ = ["ArrowFile", "arrow_kind", "import_pyarrow", "python_values", "readable", "row_index"]

_KINDS = {".parquet": "Parquet", ".pq": "Parquet", ".feather": "Feather", ".arrow": "Feather"}
#: Bytes read of a column at a time, instead of its whole row group.
_READ_BYTES = 1 << 18


def arrow_kind(path: Any) -> str | None:
    """'Parquet' or 'Feather' by the ending of the name, or None."""
    return _KINDS.get(Path(path).suffix.lower())


class ArrowFile:
    """A Parquet or Feather (Arrow IPC) file, or some row groups of it; only the schema is read at once.

    Parameters
    ----------
    path : path
    kind : {"Parquet", "Feather"}, optional
        Default: by the ending of the name.
    name : str, optional
        What errors call the file; default: its name without the folder.

    Examples
    --------
    >>> import os, tempfile
    >>> import pyarrow.parquet
    >>> from fairpca._arrow import ArrowFile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "people.parquet")
    ...     pyarrow.parquet.write_table(pyarrow.table({"age": [31, 47, 25], "sex": ["f", "m", "f"]}), path)
    ...     file = ArrowFile(path)
    ...     sizes = [batch.num_rows for batch in file.batches(["age"], 2)]
    >>> file.n_rows, sizes
    (3, [2, 1])
    """

    def __init__(self, path: Any, kind: str | None = None, *, name: str | None = None) -> None:
        self.path = Path(path)
        self.name = name or self.path.name
        self._kind = kind or _KINDS[self.path.suffix.lower()]
        self._metadata: Any = None
        self._row_groups: list[int] | None = None  # all of them
        import_pyarrow(self.name)
        with readable(self.name, self._kind):
            self.schema = self._read_schema()

    def _read_schema(self) -> Any:
        if self._kind == "Parquet":
            with self._parquet() as file:
                self._metadata = file.metadata
                return file.schema_arrow
        import pyarrow.ipc

        with pyarrow.memory_map(str(self.path)) as source:
            return pyarrow.ipc.open_file(source).schema

    @cached_property
    def n_rows(self) -> int:
        """Rows of the whole file, counted by its metadata."""
        if self._kind == "Parquet":
            return self._metadata.num_rows
        import pyarrow.dataset

        with readable(self.name, self._kind):
            return pyarrow.dataset.dataset(str(self.path), format="feather").count_rows()

    def split(self, count: int) -> list[ArrowFile]:
        """A Parquet file as at most ``count`` parts, each some of its row groups."""
        row_groups = range(self._metadata.num_row_groups)
        count = max(min(count, len(row_groups)), 1)
        return [self._part(part.tolist()) for part in np.array_split(np.array(row_groups, dtype=int), count)]

    def _part(self, row_groups: list[int]) -> ArrowFile:
        part = copy.copy(self)
        part._row_groups = row_groups
        return part

    def batches(
        self, columns: Sequence[str], rows: int, *, categories: Sequence[str] = (), use_threads: bool = True
    ) -> Iterator[Any]:
        """Record batches of at most so many rows, in the order of the file.

        ``categories`` are text columns of few values, which Parquet may decode to codes at once.
        """
        names = list(dict.fromkeys(columns))
        with readable(self.name, self._kind):
            if self._kind == "Feather":
                yield from self._feather_batches(names, rows)
                return
            with self._parquet([name for name in categories if name in names]) as file:
                yield from file.iter_batches(rows, self._row_groups, names, use_threads=use_threads)

    def null_counts(self) -> dict[str, int]:
        """Missing values by column as far as the file's own statistics tell them; NaN does not count there."""
        if self._kind != "Parquet":
            return {}
        counts: dict[str, int] = {}
        metadata = self._metadata
        filled = [g for g in range(metadata.num_row_groups) if metadata.row_group(g).num_rows]  # others tell nothing
        for j in range(metadata.num_columns):
            parts = [metadata.row_group(g).column(j).statistics for g in filled]
            if all(part is not None and part.has_null_count for part in parts):
                counts[metadata.schema.column(j).path] = sum(part.null_count for part in parts)
        return counts

    def sha256(self) -> str:
        """Checksum of the file, read block by block."""
        with self.path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def _parquet(self, categories: Sequence[str] = ()) -> Any:
        import pyarrow.parquet

        # Buffering in advance would hold all row groups.
        options = {"pre_buffer": False, "buffer_size": _READ_BYTES, "read_dictionary": list(categories)}
        return pyarrow.parquet.ParquetFile(self.path, **options)

    def _feather_batches(self, columns: list[str], rows: int) -> Iterator[Any]:
        import pyarrow.ipc

        positions = [self.schema.get_field_index(name) for name in columns]
        options = pyarrow.ipc.IpcReadOptions(included_fields=positions)
        with pyarrow.memory_map(str(self.path)) as source:
            reader = pyarrow.ipc.open_file(source, options=options)
            for i in range(reader.num_record_batches):
                batch = reader.get_batch(i)
                yield from (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


@contextmanager
def readable(name: str, kind: str) -> Iterator[None]:
    """Where a file is damaged or of another kind, pyarrow's reason and a remedy in one sentence that names it."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError) as problem:
        reason = str(problem).splitlines()[0].rstrip(".")
        raise ValueError(f"{name} cannot be read as {kind} ({reason}): write the file again.") from None


def row_index(schema: Any) -> tuple[str, ...]:
    """Columns that pandas wrote for the index of a frame; not features, unless somebody asks for them."""
    try:
        described = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))["index_columns"]
        return tuple(name for name in described if isinstance(name, str) and name in schema.names)
    except (ValueError, KeyError, TypeError):  # anybody may write such metadata
        return ()


def python_values(column: Any) -> list[Any]:
    """Values as Python objects, different where they differ: times of day are text, as Python's know no nanoseconds.

    Examples
    --------
    >>> import pyarrow
    >>> from fairpca._arrow import python_values
    >>> python_values(pyarrow.array([1, 2_000, 3_600 * 10**9, None], pyarrow.time64("ns")))
    ['00:00:00.000000001', '00:00:00.000002', '01:00:00', None]
    """
    import pyarrow

    if column.type != pyarrow.time64("ns"):
        return column.to_pylist()
    nanoseconds = column.cast(pyarrow.int64()).to_pylist()
    times = column.cast(pyarrow.time64("us"), safe=False).to_pylist()
    return [time if time is None else _time_text(time, count) for time, count in zip(times, nanoseconds, strict=True)]


def _time_text(time: datetime.time, nanoseconds: int) -> str:
    """As Python writes times, with three more digits where the nanoseconds need them."""
    rest = nanoseconds % 1000
    return f"{time.isoformat('microseconds')}{rest:03}" if rest else str(time)


def import_pyarrow(name: str) -> Any:
    """pyarrow, or how to get it."""
    return require("pyarrow", f"Reading {name}")
