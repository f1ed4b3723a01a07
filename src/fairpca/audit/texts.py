"""What a text means: nothing (a missing value), a number, or itself. Different values stay different labels."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

MISSING_LEVEL = "(missing)"
#: Texts of a CSV file that mean "missing", in upper or lower case; an empty cell always does.
MISSING_TOKENS = ("?", "NA", "N/A", "NaN", "null", "None")
#: Those of them that are often a group or class of their own, such as "None" of a column named disability.
KEPT_IN_LABELS = frozenset({"na", "n/a", "none"})
#: What commas in numbers may mean; the characters to remove, and to replace by a decimal point.
COMMAS = {"decimal points": (".", ","), "thousands separators": (",", ".")}
_EXPONENT = r"(?:[eE][+-]?\d+)?"
_PATTERNS = {
    "decimal points": re.compile(rf"[+-]?(?:(?:\d{{1,3}}(?:\.\d{{3}})+|\d+)(?:,\d+)?|,\d+){_EXPONENT}"),
    "thousands separators": re.compile(rf"[+-]?(?:(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d*)?|\.\d+){_EXPONENT}"),
}
_DATE = re.compile(r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2}))(?:[T ]\d{1,2}:\d{2}.*)?")


@dataclass(frozen=True)
class MissingTokens:
    """The usual tokens of CSV files, and those that the user adds, which count in every file and every column.

    Parameters
    ----------
    usual : tuple of str
        Compared in lower case; in columns of groups and classes, "NA", "N/A" and "None" do not count.
    added : tuple of str
        Compared as they are written; numbers also by their value.

    See Also
    --------
    read_table : Reads a file with these tokens.

    Examples
    --------
    >>> import pyarrow
    >>> from fairpca.audit import MissingTokens
    >>> tokens, texts = MissingTokens(added=("-999",)), pyarrow.array(["None", " 3 ", "-999.0"])
    >>> tokens.clean(texts).to_pylist(), tokens.clean(texts, label=True).to_pylist()
    ([None, '3', None], ['None', '3', None])
    """

    usual: tuple[str, ...] = MISSING_TOKENS
    added: tuple[str, ...] = ()
    #: Added tokens that were met so far.
    met: set[str] = field(default_factory=set, init=False, compare=False, repr=False)

    @cached_property
    def _numbers(self) -> dict[float, str]:
        return {float(token): token for token in self.added if is_number(token)}

    @cached_property
    def _forms(self) -> dict[str, str]:
        """The added tokens by the ways to write them: numbers as Python and pandas do."""
        written = {way(number): token for number, token in self._numbers.items() for way in (number_text, repr)}
        return written | {token: token for token in self.added}

    def clean(self, texts: Any, *, label: bool = False) -> Any:
        """Texts of a CSV file without surrounding blanks, as an Arrow array; null where they mean a missing value."""
        import pyarrow
        import pyarrow.compute as arrow

        texts = arrow.utf8_trim_whitespace(texts.cast(pyarrow.string()))
        usual = {token.lower() for token in self.usual} - (KEPT_IN_LABELS if label else frozenset())
        absent = arrow.is_in(arrow.ascii_lower(texts), pyarrow.array(["", *usual]))
        if self.added:
            absent = arrow.or_(absent, named := arrow.is_in(texts, pyarrow.array(list(self._forms))))
            self.met.update(self._forms[text] for text in texts.filter(named).to_pylist())
        return arrow.if_else(absent, pyarrow.scalar(None, pyarrow.string()), texts)

    def without(self, values: np.ndarray) -> np.ndarray:
        """NaN in place of numbers that mean a missing value."""
        if not self._numbers:
            return values
        absent = np.isin(values, list(self._numbers))
        self.met.update(self._numbers[number] for number in np.unique(values[absent]).tolist())
        return np.where(absent, np.nan, values)

    def names(self, text: str | None) -> bool:
        """Whether a value of a Parquet file, as text, was declared missing."""
        found = {self._forms[text]} if text in self._forms else set()
        self.met.update(found)
        return bool(found)


def is_number(text: str) -> bool:
    """Whether a text is a number; '1_0', which Python accepts, is taken for a code."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def plain_numbers(texts: Any, commas: str = "") -> np.ndarray | None:
    """The numbers that an Arrow array of texts holds, NaN for null; None unless all of them are numbers.

    Examples
    --------
    >>> import pyarrow
    >>> from fairpca.audit.texts import plain_numbers
    >>> plain_numbers(pyarrow.array(["1", "+2.5", None])), plain_numbers(pyarrow.array(["1_0"]))
    (array([1. , 2.5, nan]), None)
    >>> plain_numbers(pyarrow.array(["1.000,5"]), "decimal points")
    array([1000.5])
    """
    import pyarrow
    import pyarrow.compute as arrow

    if commas:
        removed, point = COMMAS[commas]
        texts = arrow.replace_substring(arrow.replace_substring(texts, removed, ""), point, ".")
    with suppress(pyarrow.ArrowException):  # Python's rules are wider: a plus sign, for example
        values = texts.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
        if np.isnan(values).sum() == texts.null_count:
            return values
    found = texts.to_pylist()
    if not all(text is None or is_number(text) for text in found):
        return None
    return np.array([math.nan if text is None else float(text) for text in found])


def meanings_of_commas(texts: Iterable[str]) -> set[str]:
    """What commas in these numbers may mean: '1,5' and '1,234,567' are clear, '1,234' is not."""
    texts = list(texts)
    return {meaning for meaning, pattern in _PATTERNS.items() if all(map(pattern.fullmatch, texts))}


def is_date(text: str) -> bool:
    """Whether a text looks like a date, perhaps with a time."""
    return _DATE.fullmatch(text) is not None


def value_text(value: Any) -> str | None:
    """Convert a value of an Arrow column to a label, without merging different values; None if it is missing.

    Examples
    --------
    >>> from decimal import Decimal
    >>> from fairpca.audit.texts import value_text
    >>> value_text(2**60 + 1), value_text(1.0), value_text(Decimal("1.50")), value_text("01"), value_text(float("nan"))
    ('1152921504606846977', '1', '1.5', '01', None)
    """
    if value is None or (isinstance(value, float | Decimal) and not math.isfinite(value)):
        return None
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, Decimal):
        text = f"{value:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return str(int(value)) if isinstance(value, int) else str(value) or None


def number_text(value: float) -> str:
    """Format a number as a level: whole numbers without a decimal point."""
    return str(int(value)) if value.is_integer() else repr(value)
