"""Data frames of pandas and polars, which are not imported here, and columns of labels, which may be given by name."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

#: So many columns are named in an error.
_LISTED = 5


def is_frame(X: Any) -> bool:
    """Whether X is a data frame in memory, of pandas, polars or a library that follows either."""
    return hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "get_column"))


def check_not_lazy(name: str, values: Any) -> None:
    """Raise an error for a frame that is only a query so far."""
    if type(values).__name__ == "LazyFrame":
        raise TypeError(f"{name} is a LazyFrame, which has no rows yet: pass {name}.collect().")


def feature_names_of(X: Any, given: Sequence[str] | None, count: int) -> list[str]:
    """One name per feature: those given, the columns of a data frame, those of an estimator's fit, or x0, x1, ..."""
    if given is None:
        given = getattr(X, "columns", getattr(X, "feature_names_in_", [f"x{j}" for j in range(count)]))
    if len(given) != count:
        raise ValueError(f"feature_names has {len(given)} names, but X has {count} features: pass one per feature.")
    return [str(name) for name in given]


def is_column_name(value: Any) -> bool:
    return isinstance(value, str | numbers.Number)


def split_named_columns(X: Any, sensitive_features: Any) -> tuple[Any, Any, list[Any]]:
    """Separate the columns of a frame that ``sensitive_features`` names from its features.

    Returns the features, the groups and the names. Without names, both arguments are returned unchanged.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairpca._frames import split_named_columns
    >>> frame = pd.DataFrame({"age": [25, 38, 51], "sex": ["f", "m", "f"]})
    >>> features, sex, names = split_named_columns(frame, "sex")
    >>> list(features.columns), list(sex), names
    (['age'], ['f', 'm', 'f'], ['sex'])
    """
    several = isinstance(sensitive_features, list | tuple)
    if several:
        names = _named(X, sensitive_features)
    elif is_column_name(sensitive_features):
        names = [sensitive_features]
    else:
        names = []
    if not names:
        return X, sensitive_features, []
    return *split_columns(X, names, several), names


def _named(X: Any, values: Sequence[Any]) -> list[Any]:
    """The entries of a list if they are names of columns; empty if they are the labels of the rows."""
    columns, n_rows = set(X.columns), len(X)
    known = (is_column_name(value) and value in columns for value in values)
    if len(values) == n_rows:
        if n_rows and all(known):
            raise ValueError(
                f"sensitive_features={values!r} could be the names of {n_rows} columns of X, or one label for each of "
                f"its {n_rows} rows: pass the columns themselves, or the labels as a numpy array."
            )
        return []
    if not any(known):
        return []
    return list(values)  # split_columns names the ones that X does not have


def split_columns(X: Any, names: list[Any], several: bool) -> tuple[Any, Any]:
    """The frame without some columns, and these: a frame, or a single column if not ``several``."""
    for name in names:
        if name not in X.columns:
            raise ValueError(
                f"sensitive_features={name!r} is not a column of X; give the name of a column, or one label per row."
            )
    if hasattr(X, "get_column"):  # polars
        return X.drop(names), X.select(names) if several else X.get_column(names[0])
    return X.drop(columns=names), X[names if several else names[0]]


def drop_columns(X: Any, names: Sequence[Any]) -> Any:
    """The frame without those of the columns that it has; anything else is returned unchanged."""
    present = [name for name in names if name in X.columns] if len(names) and is_frame(X) else []
    if not present:
        return X
    return X.drop(present) if hasattr(X, "get_column") else X.drop(columns=present)


def label_columns(sensitive_features: Any) -> list[Any]:
    """Split the argument into one-dimensional columns; categoricals are kept."""
    if sparse.issparse(sensitive_features):
        raise TypeError("sensitive_features must be dense: one label per row, or a few columns of labels.")
    check_not_lazy("sensitive_features", sensitive_features)
    if hasattr(sensitive_features, "columns") and hasattr(sensitive_features, "iloc"):
        columns = [sensitive_features.iloc[:, j] for j in range(sensitive_features.shape[1])]
    elif hasattr(sensitive_features, "columns") and hasattr(sensitive_features, "get_column"):
        columns = [sensitive_features.get_column(name) for name in sensitive_features.columns]
    elif isinstance(sensitive_features, dict):
        columns = [_flat(column) for column in sensitive_features.values()]
    elif is_categorical(sensitive_features):
        columns = [sensitive_features]
    else:
        array = _flat(sensitive_features)
        columns = [array] if array.ndim == 1 else [array[:, j] for j in range(array.shape[1])]
    if not columns:
        raise ValueError("sensitive_features has no columns; pass at least one.")
    return columns


def is_categorical(column: Any) -> bool:
    """Whether a column has codes and categories, as in pandas; polars has no such codes."""
    encoded = getattr(column, "cat", column)
    return hasattr(encoded, "codes") and hasattr(encoded, "categories")


def _flat(values: Any) -> np.ndarray:
    """A one- or two-dimensional array; mixed lists stay objects, so that 1 and '1' remain different."""
    if not isinstance(values, list | tuple) or not values:
        array = np.asarray(values)
    elif isinstance(values[0], list | tuple):
        array = np.array(values, dtype=object)
    elif isinstance(values[0], str | bytes) or len({type(value) for value in values}) > 1:
        array = np.empty(len(values), dtype=object)
        array[:] = values
    else:
        array = np.asarray(values)
    if array.ndim == 0 or array.ndim > 2:
        raise ValueError(
            f"sensitive_features must have one or two dimensions, got {array.ndim}: pass one label per row, or "
            "several columns of labels."
        )
    return array


def texts_by_column(X: Any) -> str:
    """The columns that hold something else than numbers, each with an example, for an error.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairpca._frames import texts_by_column
    >>> texts_by_column(pd.DataFrame({"age": [25, 38], "city": ["Ulm", "Bonn"]}))
    "'city' ('Ulm')"
    """
    named = is_frame(X)
    rows = X if named else np.asarray(X, dtype=object)
    found = []
    for name in X.columns if named else range(rows.shape[1]):
        column = np.asarray(X[name] if named else rows[:, name], dtype=object)
        text = next((value for value in column if isinstance(value, str) and not _reads_as_number(value)), None)
        if text is not None:
            found.append(f"{name!r} ({text!r})" if named else f"column {name} ({text!r})")
    return ", ".join(found[:_LISTED]) + (f" and {len(found) - _LISTED} more" if len(found) > _LISTED else "")


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
