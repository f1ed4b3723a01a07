"""Convert values to text without merging different values: labels of groups and classes, levels of columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from fairpca.tables.errors import Remedy, TableError

__all__ = ["MISSING_LEVEL", "class_values", "decided_classes", "is_number", "number_text", "value_text"]

MISSING_LEVEL = "(missing)"
#: Whole numbers below this are exact in double precision.
_EXACT_INTEGERS = 2.0**53


def value_text(value: Any) -> str | None:
    """Convert a value of an Arrow column to a label, without merging different values; None if it is missing.

    Examples
    --------
    >>> from decimal import Decimal
    >>> from fairpca.tables.labels import value_text
    >>> value_text(2**60 + 1), value_text(1.0), value_text(Decimal("1.50")), value_text("01"), value_text(float("nan"))
    ('1152921504606846977', '1', '1.5', '01', None)
    """
    if value is None or (isinstance(value, float | Decimal) and not math.isfinite(value)):
        return None
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, Decimal):
        return str(int(value)) if value == int(value) else f"{value.normalize():f}"
    return str(int(value)) if isinstance(value, int) else str(value) or None


def number_text(value: float) -> str:
    """Format a number as a level: whole numbers without a decimal point."""
    if not math.isfinite(value):
        return MISSING_LEVEL
    return str(int(value)) if value == int(value) else repr(value)


def is_number(text: str) -> bool:
    """Whether a text is a number; '1_0', which Python accepts, is taken for a code."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def class_values(texts: np.ndarray) -> np.ndarray:
    """Convert classes to numbers if all of them are numbers, so that 10 comes after 9; otherwise keep them as text.

    Whole numbers become integers.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.tables.labels import class_values
    >>> class_values(np.array(["10", "9"], dtype=object)), class_values(np.array(["10", "none"], dtype=object)).tolist()
    (array([10,  9]), ['10', 'none'])
    """
    found, codes = np.unique(texts.astype(str), return_inverse=True)
    if not all(is_number(text) for text in found):
        return texts
    numbers = np.array([float(text) for text in found])
    if not np.isfinite(numbers).all() or len(np.unique(numbers)) < len(found):  # '1' and '01' are two classes
        return texts
    whole = (numbers == np.round(numbers)).all() and np.abs(numbers).max() < _EXACT_INTEGERS
    return (numbers.astype(np.int64) if whole else numbers)[codes.reshape(-1)]


def decided_classes(
    label: str, texts: np.ndarray, found: Sequence[str], positive: str | None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The class of each row, and the names of the classes in ascending order, of which the last is positive.

    With a ``positive`` class, the classes are 0 and 1, and all others count as negative. ``found`` lists the classes of
    all rows, of which ``texts`` may be a sample.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.tables.labels import decided_classes
    >>> decided_classes("risk", np.array(["good", "bad"], dtype=object), ["bad", "good"], "bad")
    (array([0, 1]), ('good', 'bad'))
    """
    if positive is None:
        values = class_values(np.array(found, dtype=object))
        names = tuple(found[i] for i in np.argsort(values, kind="stable"))
        return values[np.searchsorted(found, texts)] if values.dtype != object else texts, names
    wanted = next((text for text in found if text == positive or _equal_numbers(text, positive)), None)
    if wanted is None:
        known = ", ".join(map(repr, found[:12]))
        problem = f"The label {label!r} has no class {positive!r}; it has {known}{', ...' if len(found) > 12 else ''}"
        raise TableError(problem, Remedy("name one of them", "positive"))
    rest = [text for text in found if text != wanted]
    name = rest[0] if len(rest) == 1 else f"not {wanted}"
    return (texts == wanted).astype(np.int64), (name, wanted) if rest else (wanted,)


def _equal_numbers(first: str, second: str) -> bool:
    return is_number(first) and is_number(second) and float(first) == float(second)
