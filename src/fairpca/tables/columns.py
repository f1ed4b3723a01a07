"""Texts of a CSV column as numbers: which texts are one, which are codes, and what a number would lose of them."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca.tables.labels import is_number, number_text

__all__ = ["CsvColumn", "exact_values", "read_column"]

#: Text that stands for "not known".
_MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
#: Columns of more different numbers are measurements: nobody asks how each of them was written.
_MOST_WRITTEN = 10_000
_EXPONENT = r"(?:[eE][+-]?\d+)?"
_DECIMAL_COMMAS = re.compile(rf"[+-]?(?:(?:\d{{1,3}}(?:\.\d{{3}})+|\d+)(?:,\d+)?|,\d+){_EXPONENT}")
_COMMAS_OF_THOUSANDS = re.compile(rf"[+-]?(?:(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d*)?|\.\d+){_EXPONENT}")


@dataclass(frozen=True)
class CsvColumn:
    """A column as numbers or text.

    ``written`` holds the texts of a column of numbers where these do not tell them: '01' and '1' are two labels.
    ``commas`` says what the commas in its numbers were taken for, and ``doubt`` why the column cannot be read.
    """

    values: np.ndarray
    written: np.ndarray | None = None
    commas: str = ""
    doubt: str = ""


def read_column(texts: Sequence[str], delimiter: str = ",") -> CsvColumn:
    """Numbers where every known value is one, else text.

    Examples
    --------
    >>> from fairpca.tables.columns import read_column
    >>> read_column(["1", " 2.5", "?"]).values, read_column(["1_0", "1_1"]).values.tolist()
    (array([1. , 2.5, nan]), ['1_0', '1_1'])
    >>> read_column(["01", "1"]).written.tolist(), read_column(["0,5", "1,25"]).values
    (['01', '1'], array([0.5 , 1.25]))
    """
    if len(set(texts[: 2 * _MOST_WRITTEN])) > _MOST_WRITTEN and "_" not in "".join(texts):
        with contextlib.suppress(ValueError):
            return CsvColumn(np.array(texts, dtype=np.float64))
    known = {text: _known(text) for text in set(texts)}
    found = set(known.values()) - {""}
    as_text = np.array([known[text] for text in texts], dtype=object)
    if all(map(is_number, found)):
        lossless = all(text == number_text(float(text)) for text in found)
        return CsvColumn(_numbers(as_text, {text: text for text in found}), None if lossless else as_text)
    commas = _meaning_of_commas(found, delimiter)
    if commas == "unclear":
        example = next(text for text in sorted(found) if "," in text)
        doubt = f"holds numbers such as {example!r}, whose comma may separate thousands or decimals"
        return CsvColumn(as_text, doubt=doubt)
    if not commas:
        return CsvColumn(as_text)
    drop, point = (".", ",") if commas == "decimal points" else (",", ".")
    plain = {text: text.replace(drop, "").replace(point, ".") for text in found}
    return CsvColumn(_numbers(as_text, plain), as_text, commas)


def _known(text: str) -> str:
    """The text without blanks around it; empty where it stands for a missing value."""
    text = text.strip()
    return "" if text.lower() in _MISSING else text


def _numbers(known: np.ndarray, plain: dict[str, str]) -> np.ndarray:
    numbers = {text: float(number) for text, number in plain.items()} | {"": math.nan}
    return np.array([numbers[text] for text in known])


def _meaning_of_commas(found: Collection[str], delimiter: str) -> str:
    """Of '1,5' and '1,234,567' there is no doubt; '1,234' is one number or another."""
    decimals = all(map(_DECIMAL_COMMAS.fullmatch, found))
    thousands = all(map(_COMMAS_OF_THOUSANDS.fullmatch, found))
    if decimals and (not thousands or delimiter != ","):  # where commas delimit, decimals have points
        return "decimal points"
    if thousands:
        return "unclear" if decimals else "separators of thousands"
    return ""


def exact_values(texts: Sequence[str]) -> list[Any]:
    """Texts of a CSV column as numbers, None where missing; as they are where a number would lose something ('007').

    Examples
    --------
    >>> from fairpca.tables.columns import exact_values
    >>> exact_values(["1", "", "1000000000000000001"]), exact_values(["0.5", "2"]), exact_values(["007", "8"])
    ([1, None, 1000000000000000001], [0.5, 2.0], ['007', '8'])
    """
    known = [text if _known(text) else None for text in texts]
    given = [text for text in known if text is not None]
    if all(_is_whole(text) and -(2**63) <= int(text) < 2**63 for text in given):
        return [None if text is None else int(text) for text in known]
    if all(is_number(text) and (not _has_digits_only(text) or (_is_whole(text) and len(text) < 16)) for text in given):
        return [None if text is None else float(text) for text in known]
    return list(texts)


def _has_digits_only(text: str) -> bool:
    return text.strip().lstrip("+-").isdecimal()


def _is_whole(text: str) -> bool:
    """A whole number written as Python would write it."""
    return _has_digits_only(text) and str(int(text)) == text
