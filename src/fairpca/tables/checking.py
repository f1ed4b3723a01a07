"""Checks that a table is suitable for comparing groups, and that its columns are usable as features."""

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
    "exceeds_chance",
    "is_too_large",
    "no_complete_rows_error",
]

#: A text column with more levels than this is an identifier or free text, not a category.
MAX_LEVELS = 100
#: A column with more groups than this is a measurement.
MAX_GROUPS = 20
#: Statistics of a smaller group are meaningless, and it cannot be split into training and test rows.
MIN_GROUP_ROWS = 10
#: Squares of larger numbers may overflow when summed: standardising would turn the column into zeros.
_LARGEST = 1e150
_OTHER_LABEL = Remedy("name another column", "label")


def check_roles(
    table: Table, sensitive: Sequence[str], label: str | None, drop: Sequence[str], clusters: str | None = None
) -> set[str]:
    """Return the columns that are not features; raises an error if a named column is missing or unusable."""
    for name in sensitive:
        table.values(name, "the sensitive column")
    for name in drop:
        table.column(name, "a column to drop")
    if label is not None:
        table.values(label, "the label")
        if label in sensitive:
            problem = f"Column {label!r} cannot be both the sensitive column and the label"
            raise TableError(problem, _OTHER_LABEL)
    if clusters is not None:
        table.values(clusters, "the cluster column")
    return {*sensitive, *drop, *(name for name in (label, clusters) if name)}


def check_any_feature(file: str, left: Collection[str], roles: Collection[str]) -> None:
    """Raise an error if no feature is left."""
    if not left:
        raise TableError(
            f"{file} has no feature left besides {', '.join(map(repr, sorted(roles)))}",
            "add columns that vary within the groups",
            Remedy("leave fewer out", "drop"),
        )


def no_complete_rows_error(file: str) -> TableError:
    """The error for a table without a complete row."""
    return TableError(
        f"Every row of {file} has a missing value", "fill them in", Remedy("drop the columns with the most", "drop")
    )


def check_group_counts(sensitive: Sequence[str], labels: Sequence[str] | np.ndarray, counts: np.ndarray) -> None:
    """Raise an error if the columns do not form usable groups: a single value, a measurement, or too few rows."""
    what = " x ".join(repr(name) for name in sensitive)
    if len(labels) < 2:
        problem = f"{what} contains a single group, {str(labels[0])!r}, but at least two are needed"
        raise TableError(problem, Remedy("name another column", "sensitive"))
    check_few_groups(sensitive, len(labels))
    if counts.min() < MIN_GROUP_ROWS:
        raise TableError(
            f"Group {str(labels[int(counts.argmin())])!r} of {what} has {counts.min():g} rows; results based on "
            f"fewer than {MIN_GROUP_ROWS} are meaningless",
            "merge it with another group",
            "drop its rows",
        )


def check_few_groups(sensitive: Sequence[str], count: int, *, so_far: bool = False) -> None:
    """Raise an error if there are too many groups; ``so_far`` means that ``count`` is a lower bound."""
    if count > MAX_GROUPS:
        what = " x ".join(repr(name) for name in sensitive)
        raise TableError(
            f"{what} has {'at least ' if so_far else ''}{count} different values; at most {MAX_GROUPS} groups are "
            "supported",
            "if it is a measurement such as age, add a column to the file that bins it into a few ranges",
            Remedy("name another column", "sensitive"),
        )


def check_classes(label: str, classes: np.ndarray) -> None:
    """Raise an error if a classifier cannot be trained on this label."""
    check_class_counts(label, *np.unique(classes.astype(str), return_counts=True))


def check_class_counts(label: str, names: np.ndarray, counts: np.ndarray) -> None:
    found = names.tolist()
    if len(found) < 2:
        problem = f"The label {label!r} has a single value, {found[0]!r}, but at least two classes are needed"
        raise TableError(problem, _OTHER_LABEL)
    check_few_classes(label, len(found))
    if counts.min() < 4:
        problem = f"Class {found[counts.argmin()]!r} of the label {label!r} has only {counts.min()} rows"
        raise TableError(problem, "merge it with another class", "drop its rows")


def check_few_classes(label: str, count: int, *, so_far: bool = False) -> None:
    """Raise an error if there are too many classes; ``so_far`` means that ``count`` is a lower bound."""
    if count > MAX_GROUPS:
        raise TableError(
            f"The label {label!r} has {'at least ' if so_far else ''}{count} different values; it must be a class "
            f"label with at most {MAX_GROUPS}",
            _OTHER_LABEL,
        )


def check_levels(name: str, count: int, max_levels: int, *, so_far: bool = False) -> None:
    """Raise an error if a text column has too many levels to one-hot encode, as names and free text do."""
    if count > max_levels:
        raise TableError(
            f"Column {name!r} is text with {'at least ' if so_far else ''}{count} different values, too many to "
            f"one-hot encode (limit {max_levels})",
            Remedy("leave it out", "drop"),
            "group its values",
            Remedy("raise the limit", "max_levels"),
        )


def check_magnitude(file: str, name: str, values: np.ndarray) -> None:
    """Raise an error if the squares of a column of finite numbers overflow."""
    largest = float(max(values.max(initial=0.0), -values.min(initial=0.0)))
    if is_too_large(largest):
        raise TableError(
            f"Column {name!r} of {file} contains numbers as large as {largest:.3g}, whose squares overflow",
            "correct or rescale it",
            Remedy("leave it out", "drop"),
        )


def is_too_large(magnitude: float) -> bool:
    return magnitude > _LARGEST


def exceeds_chance(n_values: int, group_counts: np.ndarray) -> bool:
    """Whether values that each occur in only one group would be unlikely to do so by chance.

    That depends on how many rows share a value: with random groups, two rows with the same value belong to the same
    group with the same probability as any two rows. The threshold for the probability of all of them is 0.001.
    """
    n_rows = group_counts.sum()
    return bool((n_rows - n_values) * np.log(np.square(group_counts / n_rows).sum()) < np.log(1e-3))
