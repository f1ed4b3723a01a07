"""A table as a stream of record batches: what every kind of file and data frame has in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fairpca._arrow import row_index
from fairpca._progress import Report
from fairpca.audit.errors import TableError
from fairpca.audit.texts import MissingTokens

#: How many numbers are decoded at a time.
_BATCH_NUMBERS = 2_000_000


class Table:
    """A table that is read in batches, as often as needed.

    Parameters
    ----------
    name : str
        Of the file.
    schema : pyarrow.Schema
        Names and types of the columns.
    missing : MissingTokens
        What means a missing value.

    Attributes
    ----------
    types : dict of str to pyarrow.DataType
        Of the columns, by name.
    delimiter : str or None
        Of a CSV file, in which what a text means follows from all texts of the column.
    row_index : tuple of str
        The index columns of a pandas data frame.
    trimmed : list of str
        Names in a CSV file whose blanks were removed.
    n_rows : int or None
        None as long as it is not known.

    See Also
    --------
    read_table : Returns it.

    Examples
    --------
    >>> from fairpca.audit import read_table
    >>> table = read_table({"age": [31, 47, 25], "sex": ["f", "m", "f"]})
    >>> list(table.types), table.n_rows
    (['age', 'sex'], 3)
    """

    delimiter: str | None = None
    trimmed: Sequence[str] = ()
    n_rows: int | None = None

    def __init__(self, name: str, schema: Any, missing: MissingTokens) -> None:
        check_unique(schema.names, name)
        self.name, self.schema, self.missing = name, schema, missing
        self.types = dict(zip(schema.names, schema.types, strict=True))
        self.row_index = row_index(schema)

    def batches(self, names: Sequence[str], rows: int, progress: Report, doing: str) -> Iterator[Any]:
        """Record batches of at most ``rows`` rows with these columns, in order."""
        raise NotImplementedError

    def sha256(self) -> str:
        """The fingerprint of the file; empty for a data frame."""
        return ""

    def check_column(self, name: str, purpose: str, *, readable: bool = True) -> None:
        """Raise an error that lists the available columns unless there is one of this name, perhaps of any type."""
        if name not in self.types:
            known = ", ".join(map(repr, list(self.types)[:12]))
            more = ", ..." if len(self.types) > 12 else ""
            raise TableError(f"{self.name} has no column {name!r} ({purpose}); it has {known}{more}")
        if readable and (unusable := self.problem_of_type(name)) is not None:
            raise unusable

    def problem_of_type(self, name: str) -> TableError | None:
        """The error to raise if a column of lists, structs, maps or similar types is used."""
        import pyarrow

        kind = self.types[name]
        if not (pyarrow.types.is_nested(kind) or isinstance(kind, pyarrow.BaseExtensionType)):
            return None
        return TableError(f"Column {name!r} of {self.name} holds {kind}, neither numbers nor text", "convert it")


def check_unique(names: Sequence[str], file: str, written: Sequence[str] = ()) -> None:
    """Raise an error if two columns have the same name; ``written`` has the names with the blanks around them."""
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        differ = {text for text, name in zip(written, names, strict=False) if name == repeated}
        blanks = f" once blanks are removed ({', '.join(map(repr, sorted(differ)))})" if len(differ) > 1 else ""
        raise TableError(f"{file} has two columns named {repeated!r}{blanks}", "rename one")


def rows_per_batch(n_numbers: int) -> int:
    """How many rows with so many numbers each are decoded at a time."""
    return max(_BATCH_NUMBERS // n_numbers, 1)


def sliced(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    for batch in batches:
        yield from (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


def silent(done: int, total: int, doing: str) -> None:
    """Report no progress."""
