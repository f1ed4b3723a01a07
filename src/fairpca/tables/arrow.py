"""Convert columns of Parquet and Feather files to numbers and text; needs the extra ``fairpca[arrow]``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairpca._arrow import ArrowFile, arrow_kind, python_values
from fairpca._labels import join_parts
from fairpca.tables.errors import Remedy, TableError
from fairpca.tables.labels import MISSING_LEVEL, value_text
from fairpca.tables.missing import NO_TOKENS, MissingTokens

__all__ = [
    "check_file",
    "check_unique",
    "column_of_arrow",
    "combined_codes",
    "csv_values_of_arrow",
    "is_arrow",
    "is_number",
    "is_text",
    "loses_digits",
    "numbers_of",
    "one_hot",
    "open_arrow",
    "plain_values",
    "text_codes",
    "unusable_columns",
]

#: Different decimals with at most this many digits stay different in double precision.
_EXACT_DIGITS = 15


def is_arrow(path: Any) -> bool:
    """Whether the file name has the extension of a Parquet or Feather file."""
    return arrow_kind(path) is not None


def open_arrow(path: Any) -> ArrowFile:
    """Open a file for reading batch by batch; its column names must be unique."""
    check_file(Path(path))
    file = ArrowFile(path)
    check_unique(file.schema.names, file.name)
    return file


def check_file(path: Path) -> None:
    """Raise an error if the path is not a file."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; pass a CSV, Parquet or Feather file.")


def check_unique(names: Sequence[str], file: str) -> None:
    """Raise an error if two columns have the same name."""
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise TableError(f"{file} has two columns named {repeated!r}", "rename one")


def unusable_columns(schema: Any, file: str) -> dict[str, TableError]:
    """Columns of lists, structs, maps or similar types, each with the error to raise if it is used."""
    import pyarrow
    from pyarrow import types

    return {
        field.name: TableError(
            f"Column {field.name!r} of {file} holds {field.type}, neither numbers nor text",
            "convert it",
            Remedy("leave it out", "drop"),
        )
        for field in schema
        if types.is_nested(field.type) or isinstance(field.type, pyarrow.BaseExtensionType)
    }


def is_number(kind: Any) -> bool:
    """Whether an Arrow type is numeric; booleans count as numbers, and so does a column without values."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    numbers = types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind)
    return numbers or types.is_boolean(kind) or types.is_null(kind)


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is a plain string type."""
    from pyarrow import types

    return types.is_string(kind) or types.is_large_string(kind)


def column_of_arrow(column: Any, missing: MissingTokens = NO_TOKENS) -> np.ndarray:
    """Convert an Arrow array to float64 (NaN where missing) or to objects of type str ('' where missing)."""
    import pyarrow

    column = plain_values(column)
    if not is_number(column.type):
        texts = ("" if value is None else str(value) for value in python_values(column))
        return np.array(["" if missing.is_added(text) else text for text in texts], dtype=object)
    return _without(np.asarray(column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)), missing)


def _without(values: np.ndarray, missing: MissingTokens) -> np.ndarray:
    """NaN in place of numbers that mean a missing value."""
    return np.where(np.isin(values, missing.numbers), np.nan, values) if missing.numbers else values


def plain_values(column: Any) -> Any:
    """Decode a dictionary-encoded Arrow array; other arrays are returned unchanged."""
    from pyarrow import types

    return column.cast(column.type.value_type) if types.is_dictionary(column.type) else column


def loses_digits(column: Any) -> bool:
    """Whether different numbers in the column may become equal in double precision."""
    import pyarrow.compute
    from pyarrow import types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_decimal(kind):
        return kind.precision > _EXACT_DIGITS
    if not types.is_integer(kind) or kind.bit_width < 64:
        return False
    ends = pyarrow.compute.min_max(plain_values(column)).as_py()
    return ends["min"] is not None and max(-ends["min"], ends["max"]) > 2**53


def csv_values_of_arrow(column: Any) -> list[Any]:
    """Values to write to a CSV file, None where missing; numbers that Python would format differently become text."""
    import pyarrow
    from pyarrow import types

    column = plain_values(column)
    kind = column.type
    if types.is_integer(kind) or types.is_boolean(kind) or types.is_float64(kind) or is_text(kind):
        return column.to_pylist()
    try:
        return column.cast(pyarrow.string()).to_pylist()
    except (pyarrow.ArrowException, ValueError):  # Arrow cannot cast lists and similar types to text
        return column.to_pylist()


def numbers_of(column: Any, missing: MissingTokens = NO_TOKENS) -> tuple[np.ndarray, np.ndarray | None]:
    """The values and a mask of missing ones (None if there are none); float32 stays, others become float64."""
    import pyarrow
    from pyarrow import types

    narrow = types.is_float32(column.type) or types.is_float16(column.type)
    kind = pyarrow.float32() if narrow else pyarrow.float64()
    values = _without(plain_values(column).cast(kind, safe=False).to_numpy(zero_copy_only=False), missing)
    finite = np.isfinite(values)
    return values, None if finite.all() else ~finite


def text_codes(column: Any, missing: MissingTokens = NO_TOKENS) -> tuple[np.ndarray, list[str | None]]:
    """Codes and texts of a column, without a Python object per row; the last text is None, for missing values."""
    encoded = column if hasattr(column, "dictionary") else column.dictionary_encode()
    texts = [value_text(value) for value in python_values(encoded.dictionary)]
    codes = encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
    known = [None if text is None or missing.is_added(text) else text for text in texts]
    return codes.astype(np.int64), [*known, None]


def one_hot(column: Any, levels: Sequence[str], missing: MissingTokens = NO_TOKENS) -> list[np.ndarray]:
    """One column of zeros and ones per level."""
    codes, texts = text_codes(column, missing)
    named = [MISSING_LEVEL if text is None else text for text in texts]
    return [np.array([text == level for text in named], dtype=np.float32)[codes] for level in levels]


def combined_codes(encoded: list[tuple[np.ndarray, list[str | None]]]) -> tuple[np.ndarray, list[str]]:
    """The combinations that occur, such as 'female, young'; a row with a missing part gets the code ``len(texts)``."""
    combined = np.zeros(len(encoded[0][0]), dtype=np.int64)
    for codes, texts in encoded:
        combined = combined * len(texts) + codes
    present, inverse = np.unique(combined, return_inverse=True)
    parts = []
    for _, texts in reversed(encoded):
        present, position = np.divmod(present, len(texts))
        parts.append([texts[i] for i in position])
    labels = [None if None in label else join_parts(label) for label in zip(*reversed(parts), strict=True)]
    names = sorted({label for label in labels if label is not None})
    code_of = {label: code for code, label in enumerate(names)} | {None: len(names)}
    table = np.array([code_of[label] for label in labels], dtype=np.int32)
    return table[inverse.reshape(-1)], names
