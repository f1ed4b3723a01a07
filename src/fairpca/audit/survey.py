"""One pass over the columns: which of them hold numbers, what commas in these mean, which texts occur, which vary.

All columns of a CSV file are texts. One is numeric if every text that is not a missing value is a number. Each distinct
text of a batch is looked at once; columns of numbers are converted as a whole.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fairpca._arrow import python_values
from fairpca._progress import Report
from fairpca.audit.checks import MAX_GROUPS
from fairpca.audit.errors import Remedy, TableError
from fairpca.audit.table import Table, rows_per_batch, silent
from fairpca.audit.texts import (
    COMMAS,
    MISSING_LEVEL,
    is_date,
    is_number,
    meanings_of_commas,
    plain_numbers,
    value_text,
)

#: Different texts that are counted; a category has fewer.
_MOST_TEXTS = 100_000
#: Squares of larger numbers may overflow when summed: standardising would turn the column into zeros.
_LARGEST = 1e150
#: Rows that are enough to see of most columns that they have many values.
_FIRST_ROWS = 1000
CONSTANT = "it is constant"
#: Names of row numbers and identifiers; a column without a name is called "column 1" and so on, "Unnamed: 0" by pandas.
_NAMES = re.compile(
    r"(unnamed: ?\d+|column \d+|_?id|_?index|idx|level_0|__index_level_\d+__|row|rownames?|"
    r"(row|record|case)[ _.-]?(id|index|no|nr|num|number))"
)


class SeenNumbers:
    """Statistics of a numeric column over all rows, complete or not, and whether it only counts or identifies them.

    It does if every row has a whole number, and each is one more than the one before; or if it is named like an
    identifier and the numbers span at least as many values as there are rows, as different numbers do.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.audit.survey import SeenNumbers
    >>> columns = {"patient": np.arange(5.0), "ID": np.array([7.0, 3.0]), "age": np.array([31.0, 47.0])}
    >>> for name, values in columns.items():
    ...     seen = SeenNumbers(name)
    ...     seen.add(values)
    ...     print(seen.unfit_reason(len(values)))
    it counts the rows
    it identifies the rows
    None
    """

    def __init__(self, name: str) -> None:
        self.n_known, self.smallest, self.largest, self._last = 0, np.inf, -np.inf, np.nan
        #: All values, if there are few.
        self.few: set[float] | None = set()
        self._consecutive, self._named = True, _NAMES.fullmatch(name.strip().lower()) is not None

    @property
    def magnitude(self) -> float:
        """The largest absolute value."""
        return max(self.largest, -self.smallest)

    @property
    def may_be_unique(self) -> bool:
        """Whether there is room for a different whole number per row."""
        return self.largest - self.smallest >= self.n_known - 1

    def add(self, values: np.ndarray) -> None:
        """Add rows; missing values are not finite."""
        known = values[np.isfinite(values)]
        if not len(known):
            return
        if self._consecutive or self._named:
            whole = bool((known == np.rint(known)).all())
            with np.errstate(over="ignore"):
                steps = np.diff(known, prepend=self._last if self.n_known else known[0] - 1)
            self._named = self._named and whole
            self._consecutive = self._consecutive and whole and bool((steps == 1).all())
        for part in (known[:_FIRST_ROWS], known):
            found = set() if self.few is None else self.few | set(np.unique(part).tolist())
            self.few = found if 0 < len(found) <= MAX_GROUPS else None
        self._last, self.n_known = known[-1], self.n_known + len(known)
        self.smallest = min(self.smallest, float(known.min()))
        self.largest = max(self.largest, float(known.max()))

    def unfit_reason(self, n_rows: int) -> str | None:
        """Why a column of so many rows is not a feature: it is constant, or tells the rows apart; None if it may be."""
        if self.n_known and self.smallest == self.largest:
            return CONSTANT
        if self.n_known < max(n_rows, 2):
            return None
        if self._consecutive:
            return "it counts the rows"
        return "it identifies the rows" if self._named and self.may_be_unique else None


class Column:
    """What the texts of a column are, and how to read them in every further pass.

    Attributes
    ----------
    numeric : bool
        Whether every known value is a number.
    commas : str
        What the commas in the numbers of a CSV file mean; empty if there are none, "unclear" if they may mean both.
    seen : SeenNumbers
        What the numbers are like.
    texts : Counter
        The rows of each known text; incomplete for a measurement.
    spellings : dict of str to set of str
        Of a column of groups or classes: how each text is written in the file, with the blanks around it.
    """

    def __init__(
        self, table: Table, name: str, *, label: bool = False, measured: bool = True, commas: str = ""
    ) -> None:
        self._table, self.name, self._label, self.commas = table, name, label, commas
        texts = ("string", "large_string", "string_view")
        self._typed = table.delimiter is not None and str(_plain_type(table.types[name])) in texts
        self.numeric = not label and ((self._typed and measured) or is_numeric_type(table.types[name]))
        self._meanings = set(COMMAS) if self._typed and not label else set[str]()
        self.texts, self.spellings = Counter[str](), dict[str, set[str]]()
        self.seen, self._n_rows, self._n_known, self._skipped = SeenNumbers(name), 0, 0, False

    def add(self, column: Any) -> None:
        """Add the rows of a batch."""
        self._n_rows += len(column)
        if self.numeric and (values := self._as_numbers(column)) is not None:
            self.seen.add(values)
            self._skipped, self._n_known = True, self.seen.n_known
            return
        codes, texts = self.codes(column)
        for text, count in zip(texts, np.bincount(codes, minlength=len(texts)).tolist(), strict=True):
            self._n_known += 0 if text is None else count
            if text is not None and count and len(self.texts) <= _MOST_TEXTS:
                self.texts[text] += count
        known = [text for text in texts if text is not None]
        self.numeric = self.numeric and all(map(is_number, known))
        self._meanings &= meanings_of_commas(known) if self._meanings else set()

    def again(self) -> Column | None:
        """The column to be read again: as text after all, or as numbers with commas; None if it is understood."""
        if self._skipped and not self.numeric:
            return Column(self._table, self.name, measured=False)
        if self.numeric or not self._meanings or not self._n_known:
            return None
        if len(self._meanings) > 1 and self._table.delimiter == ",":  # commas between values are never both
            self.commas = "unclear"
            return None
        return Column(self._table, self.name, commas=sorted(self._meanings)[0])

    @property
    def levels(self) -> tuple[str, ...]:
        return tuple(sorted({*self.texts, *([MISSING_LEVEL] if self._n_known < self._n_rows else [])}))

    @property
    def a_date(self) -> str | None:
        """One of the texts, if all that are known are dates."""
        return next(iter(self.texts), None) if all(map(is_date, self.texts)) else None

    def unclear_commas(self) -> TableError:
        example = min(text for text in self.texts if "," in text)
        return TableError(
            f"Column {self.name!r} of {self._table.name} contains numbers such as {example!r}, whose comma may be a "
            "thousands or a decimal separator",
            "write them with a decimal point",
        )

    def problem(self, max_levels: int) -> TableError | None:
        """Why the column cannot be a feature, though its values vary."""
        name, n_levels = self.name, len(self.levels)
        if self.commas == "unclear":
            return self.unclear_commas()
        if self.numeric and self.seen.magnitude > _LARGEST:
            problem = f"contains numbers as large as {self.seen.magnitude:.3g}, whose squares overflow"
            return TableError(f"Column {name!r} of {self._table.name} {problem}", "correct or rescale it")
        if self.numeric or n_levels <= max_levels:
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
        """Why the column is not a feature: mostly missing, or constant apart from missing values; None if it may be."""
        if self._n_known < 0.5 * self._n_rows:
            return f"{1 - self._n_known / self._n_rows:.0%} of it is missing"
        if self.numeric:
            return self.seen.unfit_reason(self._n_rows)
        return CONSTANT if self._n_rows and len(self.texts) < 2 else None

    def values(self, column: Any) -> np.ndarray:
        """The numbers of a batch, NaN where missing; float32 stays, other numbers become float64."""
        if (values := self._as_numbers(column)) is not None:
            return values
        codes, texts = self.codes(column)
        return self._table.missing.without(np.array(list(map(self._number, texts))))[codes]

    def _as_numbers(self, column: Any) -> np.ndarray | None:
        """The numbers of a batch; None if one of its texts is none."""
        import pyarrow
        from pyarrow import types

        values = None
        if is_numeric_type(column.type):
            kind = _plain_type(column.type)
            narrow = types.is_float32(kind) or types.is_float16(kind)
            numbers = column.cast(kind).cast(pyarrow.float32() if narrow else pyarrow.float64(), safe=False)
            values = numbers.to_numpy(zero_copy_only=False)
        elif self._typed:
            values = None if self.commas or hasattr(column, "dictionary") else plain_numbers(column)
            if values is None:  # there are missing values, or blanks
                values = plain_numbers(self._table.missing.clean(column), self.commas)
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

    def codes(self, column: Any) -> tuple[np.ndarray, list[str | None]]:
        """Codes and texts of a batch, without a Python object per row; the last text is None, for missing values."""
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
    """The columns as they are to be read; what later proves to be text is read again."""
    columns = {name: Column(table, name, label=name in labels) for name in dict.fromkeys(names)}
    wanted = list(columns)
    while wanted:
        for batch in table.batches(wanted, rows_per_batch(len(wanted)), progress, "finding levels"):
            for name in wanted:
                columns[name].add(batch.column(name))
        again = {name: column for name in wanted if (column := columns[name].again()) is not None}
        columns |= again
        wanted = list(again)
    return columns


def is_numeric_type(kind: Any) -> bool:
    """Whether an Arrow type is numeric; booleans count as numbers, and so does a column without values."""
    from pyarrow import types

    numbers = (types.is_floating, types.is_integer, types.is_decimal, types.is_boolean, types.is_null)
    return any(test(_plain_type(kind)) for test in numbers)


def _plain_type(kind: Any) -> Any:
    """The Arrow type of the values, encoded as a dictionary or not."""
    return getattr(kind, "value_type", kind)
