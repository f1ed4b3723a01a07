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
    is_date,
    is_number,
    meanings_of_commas,
    number_text,
    plain_numbers,
    value_text,
)
from fairpca.audit.watch import unfit_reason

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
        Whether every known text of a CSV file is a number.
    texts : Counter
        The rows of each text, None for missing ones; incomplete for a measurement.
    spellings : dict of str to set of str
        Of a column of groups or classes: how each text is written in the file, with the blanks around it.
    """

    def __init__(self, table: Table, name: str, *, label: bool = False, measured: bool = True) -> None:
        self._table, self.name, self._label = table, name, label
        self._typed = table.delimiter is not None and is_text_type(table.types[name])
        self.numeric = self._typed and measured and not label
        self._meanings = set(COMMAS) if self._typed and not label else set[str]()
        self.texts, self.spellings = Counter[str | None](), dict[str, set[str]]()
        self.n_rows = self.n_known = 0
        self._skipped = False
        #: Whether all known texts are numbers as Python writes them: pandas turns 1 into 1.0 if a value is missing.
        self._python_numbers = label and self._typed

    @property
    def to_survey(self) -> bool:
        """Whether the column's texts have to be seen before its rows can be used."""
        return self._typed or self._label or not is_numeric_type(self._table.types[self.name])

    @property
    def incomplete(self) -> bool:
        """Whether texts were taken for numbers, and a later one is none: they must be read again."""
        return self._skipped and not self.numeric

    def add(self, column: Any) -> None:
        """Add the rows of a batch."""
        self.n_rows += len(column)
        if self.numeric and (values := self._as_numbers(column)) is not None:
            self._skipped = True
            self.n_known += int(np.isfinite(values).sum())
            return
        codes, texts = self._distinct(column)
        for text, count in zip(texts, np.bincount(codes, minlength=len(texts)).tolist(), strict=True):
            self.n_known += 0 if text is None else count
            if count and len(self.texts) <= _MOST_TEXTS:
                self.texts[text] += count
        known = [text for text in texts if text is not None]
        if self._typed and any(len(text) > _MOST_LETTERS for text in known):
            problem = f"{self._table.name} is not valid CSV (field larger than field limit ({_MOST_LETTERS}))"
            raise TableError(problem, "correct it")
        self.numeric = self.numeric and all(map(is_number, known))
        self._meanings &= meanings_of_commas(known) if self._meanings else set()
        self._python_numbers = self._python_numbers and all(is_number(one) and repr(float(one)) == one for one in known)

    @property
    def commas(self) -> str:
        """What the commas in the numbers mean; empty if there are none, 'unclear' if they may mean both."""
        if self.numeric or not self._meanings or not self.n_known:
            return ""
        if len(self._meanings) == 1:
            return next(iter(self._meanings))
        return "unclear" if self._table.delimiter == "," else "decimal points"  # commas between values are never both

    @property
    def is_number(self) -> bool:
        return self.numeric or self.commas in COMMAS or is_numeric_type(self._table.types[self.name])

    @property
    def counts(self) -> Counter[str]:
        """The rows of each label."""
        return Counter({self._shown(text): count for text, count in self.texts.items() if text is not None})

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
        n_levels = len(self.texts)
        if self.is_number or n_levels <= max_levels:
            return None
        many = n_levels > _MOST_TEXTS
        count = f"more than {_MOST_TEXTS:,}" if many else f"{n_levels}"
        if (date := self.a_date) is not None:
            problem = f"Column {name!r} holds {count} dates such as {date!r}"
            return TableError(problem, "derive a number such as the year")
        return TableError(
            f"Column {name!r} is text with {count} different values, too many to one-hot encode (limit {max_levels})",
            "group its values",
            Remedy("raise the limit", "max_levels", "" if many else count),
        )

    def unfit_reason(self) -> str | None:
        """Why the column is not a feature: mostly missing, or constant; that numbers vary is seen in later passes."""
        return unfit_reason(self.n_known, self.n_rows, varies=self._skipped or len(self.texts.keys() - {None}) > 1)

    def codes(self, column: Any) -> tuple[np.ndarray, list[str | None]]:
        """Codes and texts of a batch, without a Python object per row; the last text is None, for missing values."""
        codes, texts = self._distinct(column)
        return codes, [None if text is None else self._shown(text) for text in texts]

    def values(self, column: Any) -> np.ndarray:
        """The numbers of a batch, NaN where missing; float32 stays, other numbers become float64."""
        import pyarrow
        from pyarrow import types

        if is_numeric_type(column.type):
            if types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            narrow = types.is_float32(column.type) or types.is_float16(column.type)
            numbers = column.cast(pyarrow.float32() if narrow else pyarrow.float64(), safe=False)
            return self._table.missing.without(numbers.to_numpy(zero_copy_only=False))
        if (values := self._as_numbers(column, self.commas)) is not None:
            return values
        codes, texts = self._distinct(column)
        return self._table.missing.without(np.array(list(map(self._number, texts))))[codes]

    def _shown(self, text: str) -> str:
        return number_text(float(text)) if self._python_numbers else text

    def _as_numbers(self, column: Any, commas: str = "") -> np.ndarray | None:
        """The numbers of a batch of texts; None if one of them is none."""
        if not self._typed:
            return None
        values = None if commas or hasattr(column, "dictionary") else plain_numbers(column)
        if values is None:  # there are missing values, or blanks
            values = plain_numbers(self._table.missing.clean(column), commas)
        return None if values is None else self._table.missing.without(values)

    def _number(self, text: str | None) -> float:
        """The number that a text means; booleans of a Parquet file are True and False in a CSV file."""
        if text is None:
            return math.nan
        if is_number(text):
            return float(text)
        if text.lower() not in ("true", "false"):
            problem = f"{self._table.name}: column {self.name!r} must contain numbers, but contains {text!r}"
            raise TableError(problem, "correct it", Remedy("declare it missing", "missing"))
        return float(text.lower() == "true")

    def _distinct(self, column: Any) -> tuple[np.ndarray, list[str | None]]:
        encoded = column if hasattr(column, "dictionary") else column.dictionary_encode()
        codes = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False).astype(np.int64)
        tokens = self._table.missing
        if not self._typed:
            found = map(value_text, python_values(encoded.dictionary))
            return codes, [*(None if tokens.names(text) else text for text in found), None]
        texts = tokens.clean(encoded.dictionary, label=self._label).to_pylist()
        for text, written in zip(texts, encoded.dictionary.to_pylist() if self._label else [], strict=False):
            if text is not None:
                self.spellings.setdefault(text, set()).add(written)
        return codes, [*texts, None]


def survey(
    table: Table, names: Iterable[str], labels: Sequence[str] = (), progress: Report = silent
) -> dict[str, Column]:
    """The columns as they are to be read; those whose texts must be known are looked at in a pass of their own."""
    columns = {name: Column(table, name, label=name in labels) for name in dict.fromkeys(names)}
    wanted = [name for name, column in columns.items() if column.to_survey]
    while wanted:
        for batch in table.batches(wanted, max(_BATCH_NUMBERS // len(wanted), 1), progress, "finding levels"):
            for name in wanted:
                columns[name].add(batch.column(name))
        wanted = [name for name in wanted if columns[name].incomplete]
        columns |= {name: Column(table, name, measured=False) for name in wanted}
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
