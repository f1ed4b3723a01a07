"""One pass over the columns of text: which of them hold numbers, what commas in these mean, which texts occur.

All columns of a CSV file are texts. One is numeric if every text that is not a missing value is a number. Each distinct
text of a batch is looked at once; columns of numbers are converted as a whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fairpca._arrow import python_values
from fairpca._progress import Report
from fairpca.audit.errors import Remedy, TableError
from fairpca.audit.table import Table, silent
from fairpca.audit.texts import (
    COMMAS,
    MISSING_LEVEL,
    MissingTokens,
    is_date,
    is_number,
    meanings_of_commas,
    number_text,
    plain_numbers,
    value_text,
)
from fairpca.audit.watch import unfit_reason

__all__ = ["Column", "is_numeric_type", "survey"]

#: Different texts that are counted; a category has fewer.
_MOST_TEXTS = 100_000
#: The longest text that Python's csv module reads.
_MOST_LETTERS = 131_072
_BATCH_NUMBERS = 2_000_000


class Column:
    """What the texts of a column are, and how to read them in every further pass.

    Attributes
    ----------
    numeric : bool
        Whether every known text is a number.
    texts : Counter
        The rows of each text, None for missing ones; incomplete for a measurement.
    spellings : dict of str to set of str
        Of a column of groups or classes: how each text is written in the file, with the blanks around it.
    """

    def __init__(self, table: Table, name: str, *, label: bool = False) -> None:
        self._table, self.name, self._label = table, name, label
        self._typed = table.delimiter is not None and is_text_type(table.types[name])
        self.numeric, self._meanings = self._typed, set(COMMAS) if self._typed else set[str]()
        self.texts, self.spellings = Counter[str | None](), dict[str, set[str]]()
        self.n_rows = self.n_known = 0
        self._skipped = self._careful = False
        #: Whether all known texts are numbers as Python writes them: pandas turns 1 into 1.0 if a value is missing.
        self._python_numbers = label and self._typed

    @property
    def to_survey(self) -> bool:
        """Whether the column's texts have to be seen before its rows can be used."""
        return self._typed or not (self._label or is_numeric_type(self._table.types[self.name]))

    @property
    def too_many(self) -> bool:
        return len(self.texts) > _MOST_TEXTS

    def add(self, column: Any) -> bool:
        """Add the rows of a batch; False if the column must be read again, with all of its texts."""
        self.n_rows += len(column)
        if self.numeric and not self._label and (values := self._as_numbers(column)) is not None:
            self._skipped = True
            self.n_known += int(np.isfinite(values).sum())
            return True
        codes, texts = self._distinct(column)
        counts = np.bincount(codes, minlength=len(texts)).tolist()
        self.n_known += sum(count for text, count in zip(texts, counts, strict=True) if text is not None)
        if not self.too_many:
            self.texts.update({text: count for text, count in zip(texts, counts, strict=True) if count})
        self._narrow([text for text in texts if text is not None])
        return not self._skipped or self._careful

    def again(self) -> Column:
        """The same column before its first row, to be read with all of its texts."""
        fresh = Column(self._table, self.name, label=self._label)
        fresh._careful, fresh.numeric = True, False
        return fresh

    def _narrow(self, known: list[str]) -> None:
        """What the column may still be, after these texts."""
        if self._typed and any(len(text) > _MOST_LETTERS for text in known):
            problem = f"{self._table.name} is not valid CSV (field larger than field limit ({_MOST_LETTERS}))"
            raise TableError(problem, "correct it")
        if self.numeric and not all(map(is_number, known)):
            self.numeric = False
        if self._meanings:
            self._meanings &= meanings_of_commas(known)
        self._python_numbers = self._python_numbers and all(is_number(one) and repr(float(one)) == one for one in known)

    @property
    def commas(self) -> str:
        """What the commas in the numbers mean; empty if there are none, 'unclear' if they may mean both."""
        if self.numeric or self._label or not self._meanings or not self.n_known:
            return ""
        if len(self._meanings) == 1:
            return next(iter(self._meanings))
        return "unclear" if self._table.delimiter == "," else "decimal points"  # commas between values are never both

    @property
    def levels(self) -> tuple[str, ...]:
        return tuple(sorted({MISSING_LEVEL if text is None else text for text in self.texts}))

    @property
    def is_number(self) -> bool:
        return self.numeric or self.commas in COMMAS or is_numeric_type(self._table.types[self.name])

    @property
    def a_date(self) -> str | None:
        """One of the texts, if all that are known are dates."""
        known = [text for text in self.texts if text is not None]
        return known[0] if known and all(map(is_date, known)) else None

    def problem(self, max_levels: int) -> TableError | None:
        """Why the column cannot be a feature, though its values vary."""
        name, file = self.name, self._table.name
        if self.commas == "unclear":
            example = min(text for text in self.texts if text is not None and "," in text)
            return TableError(
                f"Column {name!r} of {file} contains numbers such as {example!r}, whose comma may be a thousands or a "
                "decimal separator",
                "write them with a decimal point",
            )
        if self.is_number or len(self.texts) <= max_levels:
            return None
        count = f"more than {_MOST_TEXTS:,}" if self.too_many else f"{len(self.texts)}"
        if (date := self.a_date) is not None:
            problem = f"Column {name!r} holds {count} dates such as {date!r}"
            return TableError(problem, "derive a number such as the year")
        return TableError(
            f"Column {name!r} is text with {count} different values, too many to one-hot encode (limit {max_levels})",
            "group its values",
            Remedy("raise the limit", "max_levels", "" if self.too_many else f"{len(self.texts)}"),
        )

    def unfit_reason(self) -> str | None:
        """Why the column is not a feature: mostly missing, or constant; that numbers vary is seen in later passes."""
        return unfit_reason(self.n_known, self.n_rows, varies=self._skipped or len(self.texts.keys() - {None}) > 1)

    def codes(self, column: Any) -> tuple[np.ndarray, list[str | None]]:
        """Codes and texts of a batch, without a Python object per row; the last text is None, for missing values."""
        codes, texts = self._distinct(column)
        if self._python_numbers:
            texts = [None if text is None else number_text(float(text)) for text in texts]
        return codes, texts

    def values(self, column: Any) -> np.ndarray:
        """The numbers of a batch, NaN where missing."""
        if is_numeric_type(column.type):
            return _numbers_of(column, self._table.missing)
        values = self._as_numbers(column, self.commas)
        if values is not None:
            return values
        codes, texts = self._distinct(column)
        numbers = [_number(text, self._table.name, self.name) for text in texts]
        return self._table.missing.without(np.array(numbers))[codes]

    def _as_numbers(self, column: Any, commas: str = "") -> np.ndarray | None:
        """The numbers of a batch of texts; None if one of them is none."""
        if not self._typed:
            return None
        values = None if commas or hasattr(column, "dictionary") else plain_numbers(column)
        if values is None:  # there are missing values, or blanks
            values = plain_numbers(self._table.missing.clean(column), commas)
        return None if values is None else self._table.missing.without(values)

    def _distinct(self, column: Any) -> tuple[np.ndarray, list[str | None]]:
        encoded = column if hasattr(column, "dictionary") else column.dictionary_encode()
        codes = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False).astype(np.int64)
        tokens = self._table.missing
        if self._typed:
            texts = tokens.clean(encoded.dictionary, label=self._label).to_pylist()
            if self._label:
                for text, written in zip(texts, encoded.dictionary.to_pylist(), strict=True):
                    self.spellings.setdefault(text, set()).add(written)
            return codes, [*texts, None]
        texts = [value_text(value) for value in python_values(encoded.dictionary)]
        return codes, [*(None if tokens.names(text) else text for text in texts), None]


def survey(
    table: Table, names: Iterable[str], labels: Sequence[str] = (), progress: Report = silent
) -> dict[str, Column]:
    """The columns as they are to be read; those whose texts must be known are looked at in a pass of their own."""
    columns = {name: Column(table, name, label=name in labels) for name in dict.fromkeys(names)}
    wanted = [name for name, column in columns.items() if column.to_survey]
    while wanted:
        again = set[str]()
        for batch in table.batches(wanted, max(_BATCH_NUMBERS // len(wanted), 1), progress, "finding levels"):
            again |= {name for name in wanted if not columns[name].add(batch.column(name))}
        columns |= {name: columns[name].again() for name in again}
        wanted = [name for name in wanted if name in again]
    return columns


def is_numeric_type(kind: Any) -> bool:
    """Whether an Arrow type is numeric; booleans count as numbers, and so does a column without values."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    numbers = types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind)
    return numbers or types.is_boolean(kind) or types.is_null(kind)


def is_text_type(kind: Any) -> bool:
    """Whether an Arrow type holds strings, encoded as a dictionary or not."""
    return str(getattr(kind, "value_type", kind)) in ("string", "large_string", "string_view")


def _numbers_of(column: Any, missing: MissingTokens) -> np.ndarray:
    """float32 stays, other numbers become float64."""
    import pyarrow
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    narrow = types.is_float32(column.type) or types.is_float16(column.type)
    kind = pyarrow.float32() if narrow else pyarrow.float64()
    return missing.without(column.cast(kind, safe=False).to_numpy(zero_copy_only=False))


def _number(text: str | None, file: str, name: str) -> float:
    """The number that a text means; booleans of a Parquet file are True and False in a CSV file."""
    if text is None:
        return math.nan
    if not is_number(text) and text.lower() not in ("true", "false"):
        problem = f"{file}: column {name!r} must contain numbers, but contains {text!r}"
        raise TableError(problem, "correct it", Remedy("declare it missing", "missing"))
    return float(text) if is_number(text) else float(text.lower() == "true")
