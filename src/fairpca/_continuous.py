"""Continuous sensitive features, such as age: which columns they are, and their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._validation import Groups, check_groups, code_type

#: The label of the only group where every sensitive feature is continuous.
ALL_ROWS = "all"


@dataclass(frozen=True)
class Measurements:
    """Values of continuous sensitive features, of shape (n, n_columns), and the name of each column."""

    names: tuple[str, ...]
    values: np.ndarray


def check_continuous(sensitive_features: Any, continuous: Any, n_samples: int) -> tuple[Groups, Measurements]:
    """Divide sensitive features into groups and measurements.

    ``continuous`` holds values, or names of columns of ``sensitive_features``. Without any other column, all rows are
    one group, with the label ``ALL_ROWS``.
    """
    rest, given = separate_continuous(sensitive_features, continuous)
    measured = check_measurements(given, n_samples)
    return all_rows(n_samples) if rest is None else check_groups(rest, n_samples), measured


def all_rows(n_samples: int) -> Groups:
    """All rows as one group, with the label ``ALL_ROWS``."""
    return Groups((ALL_ROWS,), np.zeros(n_samples, dtype=code_type(1)))


def check_beside(sensitive_features: Any, continuous: Any, y: Any, n_samples: int) -> dict[str, Groups | Measurements]:
    """What an erasure refers to, by role: "group", "continuous", and y as "class" or, if it holds floats, "number"."""
    if continuous is None:
        found: dict[str, Groups | Measurements] = {"group": check_groups(sensitive_features, n_samples)}
    else:
        groups, measured = check_continuous(sensitive_features, continuous, n_samples)
        found = {"group": groups, "continuous": measured}
    if y is not None:
        numbers = np.asarray(y).dtype.kind == "f"
        try:
            found["number" if numbers else "class"] = (check_measurements if numbers else check_groups)(y, n_samples)
        except (TypeError, ValueError) as problem:
            message = str(problem).replace("sensitive_features", "y").replace("continuous column 'continuous0'", "y")
            raise type(problem)(message) from None
    return found


def separate_continuous(sensitive_features: Any, continuous: Any) -> tuple[Any, Any]:
    """The columns that are groups, None if there are none, and those that are continuous; nothing is read yet."""
    names = columns_by_name(continuous)
    if names is None:
        return sensitive_features, continuous
    columns = _named_columns(sensitive_features)
    if columns is None:
        raise TypeError(
            f"continuous={continuous!r} names columns, but sensitive_features is a {type(sensitive_features).__name__} "
            "without named columns; give a data frame or a dict, or pass the values themselves as continuous."
        )
    for name in names:
        if name not in columns:
            raise ValueError(
                f"continuous={name!r} is not a column of sensitive_features, which has "
                f"{', '.join(repr(column) for column in columns)}."
            )
    rest = {name: column for name, column in columns.items() if name not in names}
    return rest or None, {name: columns[name] for name in names}


def columns_by_name(continuous: Any) -> list[str] | None:
    """The names, if ``continuous`` is one or several; None if it holds values."""
    if isinstance(continuous, str):
        return [continuous]
    several = isinstance(continuous, list | tuple) and len(continuous) > 0
    return list(continuous) if several and all(isinstance(one, str) for one in continuous) else None


def _named_columns(sensitive_features: Any) -> dict[Any, Any] | None:
    if isinstance(sensitive_features, Mapping):
        return dict(sensitive_features)
    if getattr(sensitive_features, "columns", None) is not None:
        return {name: sensitive_features[name] for name in sensitive_features.columns}
    name = getattr(sensitive_features, "name", None)
    return None if name is None else {name: sensitive_features}


def check_measurements(given: Any, n_samples: int) -> Measurements:
    """Values of one or several columns as numbers; those that are already checked are returned unchanged."""
    if isinstance(given, Measurements):
        return given
    columns = _named_columns(given)
    if columns is None:
        array = np.asarray(given)
        if array.ndim not in (1, 2):
            raise ValueError(f"continuous must have one or two dimensions, got {array.ndim}: pass one value per row.")
        table = array[:, None] if array.ndim == 1 else array
        columns = {f"continuous{j}": column for j, column in enumerate(table.T)}
    if not columns:
        raise ValueError("continuous has no columns; pass at least one, or leave it out.")
    values = np.column_stack([_check_column(name, column, n_samples) for name, column in columns.items()])
    return Measurements(tuple(map(str, columns)), values)


def _check_column(name: Any, column: Any, n_samples: int) -> np.ndarray:
    values = np.asarray(column)
    if values.shape != (n_samples,):
        raise ValueError(
            f"continuous column {name!r} has shape {values.shape}, but X has {n_samples} rows: they must describe the "
            "same rows."
        )
    try:
        numbers = values.astype(np.float64) if values.dtype.kind in "biufO" else None
    except (TypeError, ValueError):
        numbers = None
    if numbers is None:
        raise TypeError(
            f"continuous column {name!r} does not hold numbers: leave it out of continuous if it is a group, or "
            "convert it (a date, for example, to days)."
        )
    if not np.isfinite(numbers).all():
        raise ValueError(
            f"continuous column {name!r} contains missing or infinite values; drop those rows or fill them in first."
        )
    return numbers
