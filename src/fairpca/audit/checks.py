"""Limits: which groups, classes, columns and options an audit can use, and the errors for the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairpca.audit.errors import Remedy, TableError
from fairpca.audit.table import Table

#: A text column with more levels than this is an identifier or free text, not a category.
MAX_LEVELS = 100
#: A column with more groups than this is a measurement.
MAX_GROUPS = 20
#: More groups or classes than this are not counted, even if the small ones are to be merged.
MOST_COUNTED = 1000
#: Statistics of a smaller group are meaningless, and it cannot be split into training and test rows.
MIN_GROUP_ROWS = 10
_MIN_CLASS_ROWS = 4
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
        return _given(*self.sensitive, self.label)

    @property
    def measured(self) -> tuple[str, ...]:
        """Columns that must hold numbers."""
        return _given(self.weights, *self.continuous)

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns that must not be missing in a complete row."""
        return _given(*self.labels, self.clusters, *self.measured)

    @property
    def not_features(self) -> tuple[str, ...]:
        return _given(*self.needed, *self.drop)

    @property
    def groups(self) -> str:
        """The sensitive columns, for the middle of a sentence."""
        return " x ".join(map(repr, self.sensitive))

    def check(self, table: Table) -> None:
        """Raise an error if a named column is missing or unusable, or has two roles that exclude each other."""
        taken: dict[str, str] = {}
        for use, purpose in _PURPOSES.items():
            given = getattr(self, use)
            for name in _given(*(given if isinstance(given, tuple) else [given])):
                table.check_column(name, purpose)
                if name in taken:
                    problem = f"Column {name!r} cannot be both {taken[name]} and {purpose}"
                    raise TableError(problem, Remedy("name another column", use))
                taken[name] = purpose
        for name in self.drop:
            table.check_column(name, "a column to drop", readable=False)


def _given(*names: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name is not None))


def dropped_columns(table: Table, drop: Sequence[str]) -> tuple[str, ...]:
    """The columns to leave out: an entry that is not a column may hold several names, with commas between them."""
    names = (name for one in drop for name in ([one] if one in table.types else one.split(",")))
    return tuple(name if name in table.types else name.strip() for name in names)


def check_any_feature(file: str, left: Collection[object], roles: Collection[str], left_out: Mapping[str, str]) -> None:
    """Raise an error if no feature is left; ``left_out`` says why other columns are none."""
    if not left:
        reasons = [f"{name!r}: {reason}" for name, reason in left_out.items()]
        why = f" ({'; '.join(reasons[:3])}{'; ...' if len(reasons) > 3 else ''})" if reasons else ""
        raise TableError(
            f"{file} has no feature left besides {', '.join(map(repr, sorted(roles)))}{why}",
            "add columns that vary within the groups",
            Remedy("leave fewer out", "drop"),
        )


def check_group_counts(roles: Roles, counts: Mapping[str, int], n_sampled: int = 0) -> None:
    """Raise an error if the columns do not form usable groups: a single value, a measurement, or too few rows."""
    if len(counts) < 2:
        problem = f"{roles.groups} contains a single group, {next(iter(counts))!r}, but at least two are needed"
        raise TableError(problem, Remedy("name another column", "sensitive"))
    check_few_groups(roles, len(counts))
    smallest = min(counts, key=counts.__getitem__)
    if counts[smallest] < MIN_GROUP_ROWS:
        where = f" in the random sample of {n_sampled:,}" if n_sampled else ""
        raise TableError(
            f"Group {smallest!r} of {roles.groups} has {counts[smallest]} rows{where}; results based on fewer than "
            f"{MIN_GROUP_ROWS} are meaningless",
            *([Remedy("draw more rows", "sample_rows")] if n_sampled else []),
            Remedy("merge it with others", "merge_small"),
            "drop its rows",
        )


def check_class_counts(label: str, counts: Mapping[Any, int]) -> None:
    """Raise an error if a classifier cannot be trained on this label."""
    if len(counts) < 2:
        problem = f"The label {label!r} has a single value, {next(iter(counts))!r}, but at least two classes are needed"
        raise TableError(problem, _OTHER_LABEL)
    smallest = min(counts, key=counts.__getitem__)
    if counts[smallest] < _MIN_CLASS_ROWS:
        problem = f"Class {smallest!r} of the label {label!r} has only {counts[smallest]} rows"
        raise TableError(problem, "merge it with another class", "drop its rows")


def check_few_groups(roles: Roles, count: int, most: int = MAX_GROUPS) -> None:
    if count > most:
        counted = "at least " if count > MOST_COUNTED else ""  # there may be many more
        raise TableError(
            f"{roles.groups} has {counted}{count} different values; at most {MAX_GROUPS} groups are supported",
            "if it is a measurement such as age, add a column to the file that bins it into a few ranges",
            Remedy("merge the small ones", "merge_small"),
            Remedy("name another column", "sensitive"),
        )
