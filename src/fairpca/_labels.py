"""Group labels as Python objects and as text, the same way in tables, charts, reports, errors and warnings."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = [
    "check_label_types",
    "group_sizes",
    "is_missing",
    "join_parts",
    "label_text",
    "label_texts",
    "plain_labels",
    "quoted",
    "raise_missing",
]

_SEPARATOR = ", "


def label_text(label: Any) -> str:
    """A label as a reader would write it; the parts of a combination of several columns are joined by commas.

    Examples
    --------
    >>> from fairpca._labels import label_text
    >>> label_text("female"), label_text(3), label_text(("female", "young"))
    ('female', '3', 'female, young')
    """
    return join_parts(map(str, label)) if isinstance(label, tuple) else str(label)


def join_parts(parts: Iterable[str]) -> str:
    """Join parts as ``female, young``; a part that contains the separator is quoted, so that the result is unambiguous.

    Examples
    --------
    >>> from fairpca._labels import join_parts
    >>> join_parts(["a, b", "c"]), join_parts(["a", "b, c"]), join_parts(["a, b"])
    ('"a, b", c', 'a, "b, c"', 'a, b')
    """
    parts = list(parts)
    return parts[0] if len(parts) == 1 else _SEPARATOR.join(map(_protected, parts))


def _protected(part: str) -> str:
    if _SEPARATOR not in part and not part.startswith('"'):
        return part
    doubled = part.replace('"', '""')
    return f'"{doubled}"'


def quoted(label: Any) -> str:
    """The text of a label in quotation marks, for the middle of a sentence: ``'female, young'``."""
    return repr(label_text(label))


def label_texts(labels: Iterable[Any]) -> list[str]:
    """Different labels as different texts: those with the same text, 1 and "1", are written as Python writes them.

    Examples
    --------
    >>> from fairpca._labels import label_texts
    >>> label_texts(["a", 1, "1", ("b", 2)])
    ['a', '1', "'1'", 'b, 2']
    """
    labels = list(labels)
    texts = [label_text(label) for label in labels]
    return [repr(label) if texts.count(text) > 1 else text for label, text in zip(labels, texts, strict=True)]


def group_sizes(labels: Iterable[Any], counts: Iterable[float]) -> str:
    """Every label with its number of rows: ``female (310), male (690)``."""
    return ", ".join(f"{label_text(label)} ({count:,.0f})" for label, count in zip(labels, counts, strict=True))


def check_label_types(before: tuple[Any, ...], now: tuple[Any, ...]) -> None:
    """Raise if a label has two types, 0 in earlier chunks and "0" in this one: one of them was read wrongly."""
    texts = {label_text(label): label for label in before}
    for label in now:
        other = texts.get(label_text(label), label)
        if other != label and label not in before and other not in now:
            raise ValueError(
                f"The labels of sensitive_features have different types in different chunks: {other!r} and {label!r}. "
                "Convert them to one type, for example with astype(str)."
            )


def plain_labels(values: np.ndarray) -> list[Any]:
    """As Python objects; times finer than microseconds have no Python type, and numpy turns them into integers."""
    plain = values.tolist()
    if values.dtype.kind not in "mM" or not any(isinstance(value, int) for value in plain):
        return plain
    coarse = values.astype(f"{values.dtype.kind}8[us]")
    return coarse.tolist() if (coarse == values).all() else [str(value) for value in values]


def is_missing(label: Any) -> bool:
    """Whether a label is None, NaN or pandas' NA."""
    if label is None or type(label).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(label, numbers.Number) and label != label


def raise_missing() -> None:
    raise ValueError(
        "sensitive_features contains missing values (NaN or None); drop those rows or give them a label of "
        "their own, such as 'unknown'."
    )
