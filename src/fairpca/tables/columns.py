"""Convert a CSV column to numbers: which texts are numbers, which are codes, and what the conversion would lose."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca.tables.labels import is_number, number_text
from fairpca.tables.missing import USUAL_TOKENS, MissingTokens

__all__ = ["CsvColumn", "exact_values", "read_column"]

#: A column with more different numbers is a measurement: how each one was written does not matter.
_MOST_WRITTEN = 10_000
_EXPONENT = r"(?:[eE][+-]?\d+)?"
_DECIMAL_COMMAS = re.compile(rf"[+-]?(?:(?:\d{{1,3}}(?:\.\d{{3}})+|\d+)(?:,\d+)?|,\d+){_EXPONENT}")
_COMMAS_OF_THOUSANDS = re.compile(rf"[+-]?(?:(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d*)?|\.\d+){_EXPONENT}")


@dataclass(frozen=True)
class CsvColumn:
    """A column as numbers or text.

    ``written`` holds the original texts of a numeric column if different texts have the same value: '01' and '1' are
    two labels. ``commas`` says how commas in its numbers were interpreted, and ``doubt`` why the column is ambiguous.
    """

    values: np.ndarray
    written: np.ndarray | None = None
    commas: str = ""
    doubt: str = ""


def read_column(
    texts: Sequence[str], delimiter: str = ",", missing: MissingTokens = USUAL_TOKENS, *, label: bool = False
) -> CsvColumn:
    """Read a column as numbers if every non-missing value is a number, otherwise as text.

    ``label`` says that it holds groups or classes, in which fewer texts mean that a value is missing.

    Examples
    --------
    >>> from fairpca.tables.columns import read_column
    >>> read_column(["1", " 2.5", "?"]).values, read_column(["1_0", "1_1"]).values.tolist()
    (array([1. , 2.5, nan]), ['1_0', '1_1'])
    >>> read_column(["01", "1"]).written.tolist(), read_column(["0,5", "1,25"]).values
    (['01', '1'], array([0.5 , 1.25]))
    """
    many = len(set(texts[: 2 * _MOST_WRITTEN])) > _MOST_WRITTEN
    if many and not missing.numbers and "_" not in "".join(texts):
        with contextlib.suppress(ValueError):
            return CsvColumn(np.array(texts, dtype=np.float64))
    known = {text: missing.known(text, label=label) for text in set(texts)}
    found = set(known.values()) - {""}
    as_text = np.array([known[text] for text in texts], dtype=object)
    if all(map(is_number, found)):
        lossless = all(text == number_text(float(text)) for text in found)
        return CsvColumn(_numbers(as_text, {text: text for text in found}), None if lossless else as_text)
    commas = _meaning_of_commas(found, delimiter)
    if commas == "unclear":
        example = next(text for text in sorted(found) if "," in text)
        doubt = f"contains numbers such as {example!r}, whose comma may be a thousands or a decimal separator"
        return CsvColumn(as_text, doubt=doubt)
    if not commas:
        return CsvColumn(as_text)
    drop, point = (".", ",") if commas == "decimal points" else (",", ".")
    plain = {text: text.replace(drop, "").replace(point, ".") for text in found}
    return CsvColumn(_numbers(as_text, plain), as_text, commas)


def _numbers(known: np.ndarray, plain: dict[str, str]) -> np.ndarray:
    numbers = {text: float(number) for text, number in plain.items()} | {"": math.nan}
    return np.array([numbers[text] for text in known])


def _meaning_of_commas(found: Collection[str], delimiter: str) -> str:
    """How to interpret commas: '1,5' and '1,234,567' are unambiguous, '1,234' is not."""
    decimals = all(map(_DECIMAL_COMMAS.fullmatch, found))
    thousands = all(map(_COMMAS_OF_THOUSANDS.fullmatch, found))
    if decimals and (not thousands or delimiter != ","):  # comma-delimited files use decimal points
        return "decimal points"
    if thousands:
        return "unclear" if decimals else "thousands separators"
    return ""


def exact_values(texts: Sequence[str]) -> list[Any]:
    """Convert a CSV column to numbers, None where missing; unchanged if the conversion would lose something ('007').

    Examples
    --------
    >>> from fairpca.tables.columns import exact_values
    >>> exact_values(["1", "", "1000000000000000001"]), exact_values(["0.5", "2"]), exact_values(["007", "8"])
    ([1, None, 1000000000000000001], [0.5, 2.0], ['007', '8'])
    """
    known = [text if USUAL_TOKENS.known(text) else None for text in texts]
    given = [text for text in known if text is not None]
    if all(_is_whole(text) and -(2**63) <= int(text) < 2**63 for text in given):
        return [None if text is None else int(text) for text in known]
    if all(is_number(text) and (not _has_digits_only(text) or (_is_whole(text) and len(text) < 16)) for text in given):
        return [None if text is None else float(text) for text in known]
    return list(texts)


def _has_digits_only(text: str) -> bool:
    return text.strip().lstrip("+-").isdecimal()


def _is_whole(text: str) -> bool:
    """Whether the text is a whole number formatted as Python would format it."""
    return _has_digits_only(text) and str(int(text)) == text
