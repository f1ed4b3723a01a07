"""What a table must be for a comparison of groups to make sense, and which of its columns say nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from fairpca.tables.errors import Remedy, TableError
from fairpca.tables.table import Table

__all__ = [
    "MAX_GROUPS",
    "MAX_LEVELS",
    "MIN_GROUP_ROWS",
    "check_any_feature",
    "check_class_counts",
    "check_classes",
    "check_few_classes",
    "check_few_groups",
    "check_group_counts",
    "check_levels",
    "check_magnitude",
    "check_roles",
    "every_row_lacks",
    "is_no_accident",
    "is_too_large",
]

#: A text column with more levels than this is an identifier or free text, not a category.
MAX_LEVELS = 100
#: More groups than this are a measurement.
MAX_GROUPS = 20
#: Figures of a smaller group say nothing, and it cannot be divided into rows to fit and rows to judge.
MIN_GROUP_ROWS = 10
#: Squares of larger numbers may overflow when summed: standardising would turn the column into zeros.
_LARGEST = 1e150
_OTHER_LABEL = Remedy("name another column", "label")


def check_roles(
    table: Table, sensitive: Sequence[str], label: str | None, drop: Sequence[str], clusters: str | None = None
) -> set[str]:
    """The columns that are not features; refuses those that are not there or cannot be read."""
    for name in sensitive:
        table.values(name, "the sensitive column")
    for name in drop:
        table.column(name, "to be dropped")
    if label is not None:
        table.values(label, "the label")
        if label in sensitive:
            problem = f"Column {label!r} cannot be both the sensitive column and the label"
            raise TableError(problem, _OTHER_LABEL)
    if clusters is not None:
        table.values(clusters, "the column of clusters")
    return {*sensitive, *drop, *(name for name in (label, clusters) if name)}


def check_any_feature(file: str, left: Collection[str], roles: Collection[str]) -> None:
    """Refuse a table in which no feature is left."""
    if not left:
        raise TableError(
            f"{file} has no feature left besides {', '.join(map(repr, sorted(roles)))}",
            "add columns that vary within the groups",
            Remedy("leave fewer out", "drop"),
        )


def every_row_lacks(file: str) -> TableError:
    """The error of a table without a complete row."""
    return TableError(
        f"Every row of {file} has a missing value", "fill them in", Remedy("leave the emptiest columns out", "drop")
    )


def check_group_counts(sensitive: Sequence[str], labels: Sequence[str] | np.ndarray, counts: np.ndarray) -> None:
    """Refuse what makes no groups: a single value, a measurement, a handful of rows."""
    what = " x ".join(repr(name) for name in sensitive)
    if len(labels) < 2:
        problem = f"{what} contains a single group, {str(labels[0])!r}, but at least two are needed"
        raise TableError(problem, Remedy("name another column", "sensitive"))
    check_few_groups(sensitive, len(labels))
    if counts.min() < MIN_GROUP_ROWS:
        raise TableError(
            f"Group {str(labels[int(counts.argmin())])!r} of {what} has {counts.min():g} rows; values based on fewer "
            f"than {MIN_GROUP_ROWS} say nothing",
            "merge it with another group",
            "drop its rows",
        )


def check_few_groups(sensitive: Sequence[str], count: int, *, so_far: bool = False) -> None:
    """``so_far``: there may be more."""
    if count > MAX_GROUPS:
        what = " x ".join(repr(name) for name in sensitive)
        raise TableError(
            f"{what} has {'at least ' if so_far else ''}{count} different values; at most {MAX_GROUPS} make groups",
            "if it is a measurement such as an age, add a column with a few ranges of it to the file",
            Remedy("name another column", "sensitive"),
        )


def check_classes(label: str, classes: np.ndarray) -> None:
    """Refuse a label from which nothing could be learnt."""
    check_class_counts(label, *np.unique(classes.astype(str), return_counts=True))


def check_class_counts(label: str, names: np.ndarray, counts: np.ndarray) -> None:
    found = names.tolist()
    if len(found) < 2:
        problem = f"The label {label!r} has a single value, {found[0]!r}, but at least two classes are needed"
        raise TableError(problem, _OTHER_LABEL)
    check_few_classes(label, len(found))
    if counts.min() < 4:
        problem = f"Class {found[counts.argmin()]!r} of the label {label!r} has {counts.min()} rows, too few to learn"
        raise TableError(problem, "merge it with another class", "drop its rows")


def check_few_classes(label: str, count: int, *, so_far: bool = False) -> None:
    """``so_far``: there may be more."""
    if count > MAX_GROUPS:
        raise TableError(
            f"The label {label!r} has {'at least ' if so_far else ''}{count} different values; it must be a class, "
            f"with at most {MAX_GROUPS}",
            _OTHER_LABEL,
        )


def check_levels(name: str, count: int, max_levels: int, *, so_far: bool = False) -> None:
    """Refuse to one-hot encode names or free text."""
    if count > max_levels:
        raise TableError(
            f"Column {name!r} is text with {'at least ' if so_far else ''}{count} different values, too many to "
            f"one-hot encode (limit {max_levels})",
            Remedy("leave it out", "drop"),
            "group its values",
            Remedy("raise the limit", "max_levels"),
        )


def check_magnitude(file: str, name: str, values: np.ndarray) -> None:
    """Refuse a column (of finite numbers) whose squares no number can hold."""
    largest = float(max(values.max(initial=0.0), -values.min(initial=0.0)))
    if is_too_large(largest):
        raise TableError(
            f"Column {name!r} of {file} holds numbers as large as {largest:.3g}, whose squares overflow",
            "correct or rescale it",
            Remedy("leave it out", "drop"),
        )


def is_too_large(magnitude: float) -> bool:
    return magnitude > _LARGEST


def is_no_accident(n_values: int, group_counts: np.ndarray) -> bool:
    """Whether values that occur in one group each tell more than chance: they do if rows share them.

    Rows of random groups that share a value are of one group with the probability that two rows are.
    """
    n_rows = group_counts.sum()
    return bool((n_rows - n_values) * np.log(np.square(group_counts / n_rows).sum()) < np.log(1e-3))
