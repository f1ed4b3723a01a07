"""The record of what was done to a table, from which reports, terminal output and JSON describe it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from fairpca.tables.rare import POOLED_LEVEL, LevelPool

__all__ = ["OTHER_GROUP", "Dropped", "Imputed", "Preparation", "some"]

#: The label of groups that were merged because they are small.
OTHER_GROUP = "other"
#: More columns than this that are left out for the same reason are listed together.
_MANY = 10


@dataclass(frozen=True)
class Dropped:
    """Rows with a missing value: in total, by column (a row may lack several) and by group."""

    rows: int = 0
    by_column: dict[str, int] = field(default_factory=dict)
    by_group: dict[str, int] = field(default_factory=dict)
    without_group: int = 0


@dataclass(frozen=True)
class Imputed:
    """A numeric column whose missing values were replaced: by what, and in how many rows."""

    value: float
    rows: int


@dataclass(frozen=True)
class Preparation:
    """What was done to the columns and rows of a file before anything was computed.

    Attributes
    ----------
    file : str
    delimiter : str or None
        Of a CSV file.
    missing : tuple of str
        Texts that meant a missing value, besides an empty cell.
    rows : int
        Number of rows in the file.
    groups : dict of str to int
        Rows used per group.
    numeric : tuple of str
        Numeric columns among the features.
    levels : dict of str to tuple of str
        Text columns among the features, and the levels that became features.
    standardised : bool
    not_features : tuple of str
        The columns of groups, label, clusters and weights, and those dropped by request.
    left_out : dict of str to str
        Further columns that are not features, and why.
    commas : dict of str to str
        How commas in numbers were read.
    kept_tokens : dict of str to dict of str to int
        Columns of groups or classes in which texts such as "None" were kept, with the rows of each.
    dropped : Dropped
    min_level : int
        Levels of text columns with fewer rows are rare.
    pooled : dict of str to LevelPool
        Text columns with rare levels.
    imputed : dict of str to Imputed
    merged : dict of str to int
        Groups that were merged into "other", with the rows of each.
    label, weights : str or None
        Columns.
    classes : tuple of str
        Classes of the label in ascending order; with two classes, the last is the positive one.
    zero_weights : int
        Rows left out because their weight is zero.
    sampled : str
        How a sample was drawn from a streamed file; empty if all rows are in memory.

    See Also
    --------
    prepare_table : Its result has one.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.tables import Table, prepare_table
    >>> columns = {"x": np.arange(40.0) % 7, "same": np.ones(40), "sex": np.repeat([0.0, 1.0], 20)}
    >>> preparation = prepare_table(Table("people.csv", columns, ""), ["sex"]).preparation
    >>> preparation.rows, preparation.numeric, list(preparation.left_out)
    (40, ('x',), ['same'])
    """

    file: str
    rows: int
    groups: dict[str, int]
    numeric: tuple[str, ...]
    levels: dict[str, tuple[str, ...]]
    delimiter: str | None = None
    missing: tuple[str, ...] = ()
    standardised: bool = True
    not_features: tuple[str, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    commas: dict[str, str] = field(default_factory=dict)
    kept_tokens: dict[str, dict[str, int]] = field(default_factory=dict)
    dropped: Dropped = Dropped()
    min_level: int = 0
    pooled: dict[str, LevelPool] = field(default_factory=dict)
    imputed: dict[str, Imputed] = field(default_factory=dict)
    merged: dict[str, int] = field(default_factory=dict)
    label: str | None = None
    classes: tuple[str, ...] = ()
    weights: str | None = None
    zero_weights: int = 0
    sampled: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain lists and dictionaries, for JSON."""
        return asdict(self)

    def remarks(self) -> list[str]:
        """The record in words, one line per fact."""
        return [
            *self._features(),
            *(f"read the commas in {name!r} as {meaning}" for name, meaning in self.commas.items()),
            *self._left_out(),
            *(_pool_remark(name, pool, self.min_level, name in self.left_out) for name, pool in self.pooled.items()),
            *self._missing_values(),
            *self._groups_and_label(),
            *([self.sampled] if self.sampled else []),
        ]

    def _features(self) -> list[str]:
        said = []
        if self.numeric:
            said.append(f"{len(self.numeric)} numeric columns: {some(self.numeric)}")
        if self.levels:
            sizes = [f"{name} ({len(levels)} levels)" for name, levels in self.levels.items()]
            said.append(f"{len(sizes)} text columns, one-hot encoded: {some(sizes)}")
        said.append(f"not among the features: {some(self.not_features)}")
        count = len(self.numeric) + sum(map(len, self.levels.values())) + len(self.imputed)
        return [
            *said,
            f"{count} features, standardised" if self.standardised else f"{count} features, not standardised",
        ]

    def _left_out(self) -> list[str]:
        """One line per column, or per reason if many columns share it."""
        names: dict[str, list[str]] = {}
        for name, reason in self.left_out.items():
            names.setdefault(reason, []).append(repr(name))
        said = []
        for reason, found in names.items():
            if len(found) > _MANY:
                said.append(f"left out {len(found):,} columns: {some(found)}: each because {reason}")
            else:
                said += [f"left out {name}: {reason}" for name in found]
        return said

    def _missing_values(self) -> list[str]:
        said = [
            f"{token!r} in {column!r} ({count:,} rows) was kept as a value of its own; declare it missing to drop "
            "these rows"
            for column, found in self.kept_tokens.items()
            for token, count in found.items()
        ]
        if self.imputed:
            counts = [f"{name} ({one.value:g} in {one.rows:,} rows)" for name, one in self.imputed.items()]
            said.append(
                f"replaced missing numbers by the median, with a column that says where: {some(counts, limit=20)}"
            )
        if self.dropped.rows:
            said.append(f"dropped {self.dropped.rows} of {self.rows} rows with a missing group, label or number")
            said.append(f"rows dropped by column: {some(_counted(self.dropped.by_column), limit=20)}")
            said.append(f"rows dropped by group: {', '.join(self._dropped_by_group())}")
        return said

    def _dropped_by_group(self) -> list[str]:
        lost = self.dropped.by_group
        labels = list(dict.fromkeys([*self.groups, *lost]))
        shares = [
            f"{label} {lost.get(label, 0):,} of {lost.get(label, 0) + self.groups.get(label, 0):,}" for label in labels
        ]
        unknown = self.dropped.without_group
        return [*shares, f"group missing {unknown:,}"] if unknown else shares

    def _groups_and_label(self) -> list[str]:
        said = []
        if self.merged:
            said.append(f"merged small groups as {OTHER_GROUP!r}: {', '.join(_counted(self.merged))}")
        if self.weights:
            left = f"; {self.zero_weights:,} rows of weight zero were left out" if self.zero_weights else ""
            said.append(
                f"rows count by their weight in {self.weights!r}, except in AUC, MMD² and adversary, which compare rows"
                f"{left}"
            )
        if len(self.classes) == 2:
            said.append(f"positive class of {self.label!r}: {self.classes[1]!r} (the other: {self.classes[0]!r})")
        return said


def _pool_remark(name: str, pool: LevelPool, least: int, left_out: bool) -> str:
    levels = f"{some(_counted(pool.rare))}, {pool.n_rows:,} rows in total"
    rare = f"levels of {name!r} with fewer than {least:,} rows"
    if POOLED_LEVEL in pool.kept and not left_out:
        return f"pooled {rare} as {POOLED_LEVEL!r}: {levels}"
    return f"no column for {rare}: {levels}"


def _counted(counts: Mapping[str, int]) -> list[str]:
    return [f"{name} ({count:,})" for name, count in counts.items()]


def some(names: Sequence[str], limit: int = 8) -> str:
    """A list that is cut off where it becomes long."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown}, ... ({len(names) - limit} more)"
