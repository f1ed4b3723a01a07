"""Parquet and Feather files batch by batch: needs the extra ``fairpca[arrow]``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "ArrowFile",
    "arrow_kind",
    "check_unique",
    "column_of_arrow",
    "import_pyarrow",
    "is_arrow",
    "is_number",
    "is_text",
    "loses_digits",
    "plain_values",
    "texts_of_arrow",
    "unusable_columns",
]

_KINDS = {".parquet": "Parquet", ".pq": "Parquet", ".feather": "Feather", ".arrow": "Feather"}
#: Bytes read of a column at a time, instead of its whole row group.
_READ_BYTES = 1 << 18
#: Decimals of so many digits differ in double precision if they differ at all.
_EXACT_DIGITS = 15


def is_arrow(path: Any) -> bool:
    """Whether the name ends as that of a Parquet or Feather file."""
    return arrow_kind(path) is not None


def arrow_kind(path: Any) -> str | None:
    """'Parquet' or 'Feather' by the ending of the name, or None."""
    return _KINDS.get(Path(path).suffix.lower())


class ArrowFile:
    """A Parquet or Feather (Arrow IPC) file of which only the schema and the number of rows are read at once.

    Examples
    --------
    >>> import os, tempfile
    >>> import pyarrow.parquet
    >>> from fairpca.tables.arrow import ArrowFile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "people.parquet")
    ...     pyarrow.parquet.write_table(pyarrow.table({"age": [31, 47, 25], "sex": ["f", "m", "f"]}), path)
    ...     file = ArrowFile(path)
    ...     sizes = [batch.num_rows for batch in file.batches(["age"], 2)]
    >>> file.n_rows, sizes
    (3, [2, 1])
    """

    def __init__(self, path: Any) -> None:
        self.path = Path(path)
        self.name = self.path.name
        if not self.path.exists():
            raise FileNotFoundError(f"{path} does not exist.")
        if self.path.is_dir():
            raise IsADirectoryError(f"{path} is a folder; give a CSV, Parquet or Feather file.")
        self._kind = _KINDS[self.path.suffix.lower()]
        arrow = import_pyarrow(self.name)
        self._problems = (arrow.ArrowException, OSError)
        try:
            self.schema, self.n_rows = self._describe()
        except self._problems as problem:
            raise self._unreadable(problem) from None

    def _describe(self) -> tuple[Any, int]:
        if self._kind == "Parquet":
            with self._parquet() as file:
                check_unique(file.schema_arrow.names, self.name)
                return file.schema_arrow, file.metadata.num_rows
        import pyarrow.dataset
        import pyarrow.ipc

        with pyarrow.memory_map(str(self.path)) as source:
            check_unique(pyarrow.ipc.open_file(source).schema.names, self.name)
        found = pyarrow.dataset.dataset(str(self.path), format="feather")
        return found.schema, found.count_rows()

    def batches(self, columns: Sequence[str], rows: int, *, categories: Sequence[str] = ()) -> Iterator[Any]:
        """Record batches of at most so many rows, in the order of the file; a damaged file ends in a sentence.

        ``categories`` are text columns of few values, which Parquet may decode to codes at once.
        """
        names = list(dict.fromkeys(columns))
        try:
            if self._kind == "Parquet":
                yield from self._parquet_batches(names, rows, [name for name in categories if name in names])
            else:
                yield from self._feather_batches(names, rows)
        except self._problems as problem:
            raise self._unreadable(problem) from None

    def null_counts(self) -> dict[str, int]:
        """Missing values by column as far as the file's own statistics tell them; NaN does not count there."""
        if self._kind != "Parquet":
            return {}
        counts: dict[str, int] = {}
        with self._parquet() as file:
            metadata = file.metadata
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

        return pyarrow.parquet.ParquetFile(
            self.path, pre_buffer=False, buffer_size=_READ_BYTES, read_dictionary=list(categories)
        )

    def _parquet_batches(self, columns: list[str], rows: int, categories: list[str]) -> Iterator[Any]:
        with self._parquet(categories) as file:
            yield from file.iter_batches(rows, columns=columns)

    def _feather_batches(self, columns: list[str], rows: int) -> Iterator[Any]:
        import pyarrow
        import pyarrow.ipc

        positions = [self.schema.get_field_index(name) for name in columns]
        options = pyarrow.ipc.IpcReadOptions(included_fields=positions)
        with pyarrow.memory_map(str(self.path)) as source:
            reader = pyarrow.ipc.open_file(source, options=options)
            for i in range(reader.num_record_batches):
                batch = reader.get_batch(i)
                yield from (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))

    def _unreadable(self, problem: Exception) -> ValueError:
        return ValueError(f"{self.name} cannot be read as {self._kind}: {str(problem).splitlines()[0]}")


def check_unique(names: Sequence[str], file: str) -> None:
    """Refuse a file in which a name does not tell the column."""
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise ValueError(f"{file} has two columns named {repeated!r}; rename one.")


def unusable_columns(schema: Any, file: str) -> dict[str, str]:
    """Columns of lists, structs, maps or the like, and the sentence that refuses each."""
    import pyarrow
    from pyarrow import types

    return {
        field.name: f"Column {field.name!r} of {file} holds {field.type}, neither numbers nor text: leave it out "
        "(--drop)."
        for field in schema
        if types.is_nested(field.type) or isinstance(field.type, pyarrow.BaseExtensionType)
    }


def is_number(kind: Any) -> bool:
    """Whether an Arrow type stands for numbers; booleans do, and so does a column without any value."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    numbers = types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind)
    return numbers or types.is_boolean(kind) or types.is_null(kind)


def is_text(kind: Any) -> bool:
    """Whether an Arrow type stands for plain strings."""
    from pyarrow import types

    return types.is_string(kind) or types.is_large_string(kind)


def column_of_arrow(column: Any) -> np.ndarray:
    """An Arrow array as float64 (NaN where missing), or as objects of type str ('' where missing)."""
    import pyarrow

    column = plain_values(column)
    if not is_number(column.type):
        values = column.to_pylist()
        return np.array(["" if value is None else str(value) for value in values], dtype=object)
    return np.asarray(column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False))


def plain_values(column: Any) -> Any:
    """An Arrow array with its values in place of codes."""
    from pyarrow import types

    return column.cast(column.type.value_type) if types.is_dictionary(column.type) else column


def loses_digits(column: Any) -> bool:
    """Whether different numbers of the column may be equal in double precision."""
    import pyarrow.compute
    from pyarrow import types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_decimal(kind):
        return kind.precision > _EXACT_DIGITS
    if not types.is_integer(kind) or kind.bit_width < 64:
        return False
    ends = pyarrow.compute.min_max(plain_values(column)).as_py()
    return ends["min"] is not None and max(-ends["min"], ends["max"]) > 2**53


def texts_of_arrow(column: Any) -> list[Any]:
    """Values for a CSV file, None where missing; numbers that Python would write with other digits come as text."""
    import pyarrow
    from pyarrow import types

    column = plain_values(column)
    kind = column.type
    if types.is_integer(kind) or types.is_boolean(kind) or types.is_float64(kind) or is_text(kind):
        return column.to_pylist()
    try:
        return column.cast(pyarrow.string()).to_pylist()
    except (pyarrow.ArrowException, ValueError):  # lists and the like have no text in Arrow
        return column.to_pylist()


def import_pyarrow(name: str) -> Any:
    """pyarrow, or how to get it."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError(f"Reading {name} needs pyarrow: pip install 'fairpca[arrow]'.") from None
    return pyarrow
