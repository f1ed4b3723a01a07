"""Arrow code shared by moments and audit: a reader for Parquet and Feather files, and conversion of label values.

Needs the extra ``fairpca[audit]``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from fairpca._optional import require

_KINDS = {".parquet": "Parquet", ".pq": "Parquet", ".feather": "Feather", ".arrow": "Feather"}
#: Bytes to read from a column at a time, instead of its whole row group.
_READ_BYTES = 1 << 18


def arrow_kind(path: Any) -> str | None:
    """'Parquet' or 'Feather' according to the file extension, or None."""
    return _KINDS.get(Path(path).suffix.lower())


class ArrowFile:
    """A Parquet or Feather (Arrow IPC) file; only the schema is read at once.

    Parameters
    ----------
    path : path
    kind : {"Parquet", "Feather"}, optional
        Default: according to the file extension.
    name : str, optional
        Name of the file in error messages; default: its name without the folder.

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
            return pyarrow.ipc.open_file(source).schema  # that of a dataset must not have two columns of one name

    @cached_property
    def n_rows(self) -> int:
        """Number of rows in the whole file, from its metadata."""
        if self._kind == "Parquet":
            return self._metadata.num_rows
        with readable(self.name, self._kind):
            return self._feather.count_rows()

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Record batches of at most ``rows`` rows, in file order; Parquet decodes texts directly to codes."""
        names = list(dict.fromkeys(columns))
        texts = [name for name in names if str(self.schema.field(name).type) in ("string", "large_string")]
        with readable(self.name, self._kind):
            if self._kind == "Parquet":
                with self._parquet(texts) as file:
                    yield from file.iter_batches(rows, columns=names)
            else:
                yield from self._feather.to_batches(
                    columns=names, batch_size=rows, batch_readahead=1, fragment_readahead=1
                )

    def sha256(self) -> str:
        """Checksum of the file, read block by block."""
        with self.path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def _parquet(self, categories: Sequence[str] = ()) -> Any:
        import pyarrow.parquet

        # Pre-buffering would keep all row groups in memory.
        options = {"pre_buffer": False, "buffer_size": _READ_BYTES, "read_dictionary": list(categories)}
        return pyarrow.parquet.ParquetFile(self.path, **options)

    @property
    def _feather(self) -> Any:
        import pyarrow.dataset

        return pyarrow.dataset.dataset(str(self.path), format="feather")


@contextmanager
def readable(name: str, kind: str) -> Iterator[None]:
    """Turn pyarrow's errors for damaged or mislabeled files into one that names the file, the reason and a remedy."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError) as problem:
        reason = str(problem).splitlines()[0].rstrip(".")
        raise ValueError(f"{name} cannot be read as {kind} ({reason}): write the file again.") from None


def row_index(schema: Any) -> tuple[str, ...]:
    """Columns that pandas wrote for the index of a data frame; not features, unless requested explicitly."""
    try:
        described = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))["index_columns"]
        return tuple(name for name in described if isinstance(name, str) and name in schema.names)
    except (ValueError, KeyError, TypeError):  # the metadata may be malformed
        return ()


def python_values(column: Any) -> list[Any]:
    """Values as Python objects; times of day become text, because Python's time type has no nanoseconds.

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
    texts = column.cast(pyarrow.string()).to_pylist()
    return [text if text is None else text.rstrip("0").rstrip(".") for text in texts]


def import_pyarrow(name: str) -> Any:
    """Import pyarrow, or raise an error that says how to install it."""
    return require("pyarrow", f"Reading {name}")
