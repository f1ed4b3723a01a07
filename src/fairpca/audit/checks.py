"""Limits: which groups, classes, columns and options an audit can use, and the errors for the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairpca._validation import check_choice, check_number
from fairpca.audit.errors import Remedy, TableError
from fairpca.audit.rare import check_min_level
from fairpca.audit.table import Table

__all__ = [
    "MAX_GROUPS",
    "MAX_LEVELS",
    "MIN_GROUP_ROWS",
    "Roles",
    "check_any_feature",
    "check_class_counts",
    "check_few_classes",
    "check_few_groups",
    "check_group_counts",
    "check_options",
    "exceeds_chance",
    "is_too_large",
    "no_complete_rows_error",
    "overflow_error",
]

#: A text column with more levels than this is an identifier or free text, not a category.
MAX_LEVELS = 100
#: A column with more groups than this is a measurement.
MAX_GROUPS = 20
#: Statistics of a smaller group are meaningless, and it cannot be split into training and test rows.
MIN_GROUP_ROWS = 10
#: Squares of larger numbers may overflow when summed: standardising would turn the column into zeros.
_LARGEST = 1e150
_PURPOSES = {
    "sensitive": "the sensitive column", "label": "the label", "clusters": "the cluster column",
    "weights": "the weights", "continuous": "a continuous sensitive column",
}  # fmt: skip
_OTHER_LABEL = Remedy("name another column", "label")


@dataclass(frozen=True)
class Roles:
    """The columns that are not features, and what they are."""

    sensitive: tuple[str, ...]
    label: str | None = None
    clusters: str | None = None
    weights: str | None = None
    drop: tuple[str, ...] = ()
    continuous: tuple[str, ...] = ()
    merge: Mapping[str, str] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        """Columns of groups and classes."""
        return (*self.sensitive, *([self.label] if self.label is not None else []))

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns that must not be missing in a complete row."""
        others = (name for name in (self.clusters, self.weights) if name is not None)
        return tuple(dict.fromkeys([*self.labels, *others, *self.continuous]))

    @property
    def not_features(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.needed, *self.drop]))

    @classmethod
    def of(cls, table: Table, sensitive: Sequence[str], drop: Sequence[str], **others: Any) -> Roles:
        """Raise an error if a named column is missing or unusable, or has two roles that exclude each other.

        An entry of ``drop`` that is not a column may hold several names, with commas between them.
        """
        parts = ([one] if one in table.types or "," not in one else one.split(",") for one in drop)
        roles = cls(tuple(sensitive), drop=tuple(name.strip() for part in parts for name in part), **others)
        uses = [(name, "sensitive") for name in dict.fromkeys(roles.sensitive)]
        uses += [(name, use) for use in ("label", "clusters", "weights") if (name := getattr(roles, use)) is not None]
        taken: dict[str, str] = {}
        for name, use in [*uses, *((name, "continuous") for name in roles.continuous)]:
            table.check_column(name, _PURPOSES[use])
            if (unusable := table.problem_of_type(name)) is not None:
                raise unusable
            if taken.setdefault(name, use) != use:
                problem = f"Column {name!r} cannot be both {_PURPOSES[taken[name]]} and {_PURPOSES[use]}"
                raise TableError(problem, Remedy("name another column", use))
        for name in roles.drop:
            table.check_column(name, "a column to drop")
        return roles


def check_options(
    sensitive: Sequence[str],
    label: str | None,
    min_level: float | None,
    positive: str | None,
    merge_small: int,
    impute: str | None,
) -> None:
    """Raise an error if the options of a preparation are inconsistent; the data is not needed for that."""
    if not sensitive:
        raise TableError("No sensitive column was given", Remedy("name at least one", "sensitive"))
    check_min_level(min_level)
    check_number("merge_small", merge_small, at_least=0, integer=True)
    if positive is not None and label is None:
        problem = f"The positive class {positive!r} was given without a label"
        raise TableError(problem, Remedy("name the column of classes", "label"))
    if impute is not None:
        check_choice("impute", impute, ("median",))


def check_any_feature(
    file: str, left: Collection[Any], roles: Collection[str], left_out: Mapping[str, str] | None = None
) -> None:
    """Raise an error if no feature is left; ``left_out`` says why other columns are none."""
    if not left:
        reasons = [f"{name!r}: {reason}" for name, reason in (left_out or {}).items()]
        why = f" ({'; '.join(reasons[:3])}{'; ...' if len(reasons) > 3 else ''})" if reasons else ""
        raise TableError(
            f"{file} has no feature left besides {', '.join(map(repr, sorted(roles)))}{why}",
            "add columns that vary within the groups",
            Remedy("leave fewer out", "drop"),
        )


def no_complete_rows_error(file: str) -> TableError:
    """The error for a table without a complete row."""
    return TableError(
        f"Every row of {file} has a missing value", "fill them in", Remedy("drop the columns with the most", "drop")
    )


def check_group_counts(sensitive: Sequence[str], counts: Mapping[str, int]) -> None:
    """Raise an error if the columns do not form usable groups: a single value, a measurement, or too few rows."""
    what = " x ".join(repr(name) for name in sensitive)
    if len(counts) < 2:
        problem = f"{what} contains a single group, {next(iter(counts))!r}, but at least two are needed"
        raise TableError(problem, Remedy("name another column", "sensitive"))
    check_few_groups(sensitive, len(counts))
    smallest = min(counts, key=counts.__getitem__)
    if counts[smallest] < MIN_GROUP_ROWS:
        raise TableError(
            f"Group {smallest!r} of {what} has {counts[smallest]} rows; results based on fewer than {MIN_GROUP_ROWS} "
            "are meaningless",
            Remedy("merge it with others", "merge_small"),
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
            Remedy("merge the small ones", "merge_small"),
            Remedy("name another column", "sensitive"),
        )


def check_class_counts(label: str, counts: Mapping[str, int]) -> None:
    """Raise an error if a classifier cannot be trained on this label."""
    if len(counts) < 2:
        problem = f"The label {label!r} has a single value, {next(iter(counts))!r}, but at least two classes are needed"
        raise TableError(problem, _OTHER_LABEL)
    check_few_classes(label, len(counts))
    smallest = min(counts, key=counts.__getitem__)
    if counts[smallest] < 4:
        problem = f"Class {smallest!r} of the label {label!r} has only {counts[smallest]} rows"
        raise TableError(problem, "merge it with another class", "drop its rows")


def check_few_classes(label: str, count: int, *, so_far: bool = False) -> None:
    """Raise an error if there are too many classes; ``so_far`` means that ``count`` is a lower bound."""
    if count > MAX_GROUPS:
        raise TableError(
            f"The label {label!r} has {'at least ' if so_far else ''}{count} different values; it must be a class "
            f"label with at most {MAX_GROUPS}",
            _OTHER_LABEL,
        )


def overflow_error(file: str, name: str, largest: float) -> TableError:
    """The error for a column of finite numbers whose squares overflow."""
    problem = f"Column {name!r} of {file} contains numbers as large as {largest:.3g}, whose squares overflow"
    return TableError(problem, "correct or rescale it")


def is_too_large(magnitude: float) -> bool:
    return magnitude > _LARGEST


def exceeds_chance(n_values: int, group_counts: Iterable[int]) -> bool:
    """Whether values that each occur in only one group would be unlikely to do so by chance.

    That depends on how many rows share a value: with random groups, two rows with the same value belong to the same
    group with the same probability as any two rows. The threshold for the probability of all of them is 0.001.
    """
    counts = np.array(list(group_counts), dtype=float)
    n_rows = counts.sum()
    return bool((n_rows - n_values) * np.log(np.square(counts / n_rows).sum()) < np.log(1e-3))
