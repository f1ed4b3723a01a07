"""What was done to a table: the record that reports, terminal and JSON describe, and that new rows are encoded by."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from fairpca.audit.errors import Remedy
from fairpca.audit.rare import POOLED_LEVEL, LevelPool
from fairpca.audit.texts import MISSING_LEVEL, MISSING_TOKENS, MissingTokens

__all__ = ["OTHER_GROUP", "Dropped", "Imputed", "Note", "Preparation", "some"]

#: The label of groups that were merged because they are small.
OTHER_GROUP = "other"
#: More columns than this that are left out for the same reason are listed together.
_MANY = 10
_DAMAGED = "the description of its columns is damaged"


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
class Note:
    """Something that a reader may want to change, and how."""

    problem: str
    remedy: Remedy

    def text(self, options: Mapping[str, str]) -> str:
        return f"{self.problem}; {self.remedy.text(options)}"


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(map(str, values))


def _numbers(values: Any) -> tuple[float, ...]:
    return tuple(map(float, values))


#: How fields are made of the lists and dictionaries of JSON.
_RESTORED: dict[str, Callable[[Any], Any]] = {
    "numeric": _texts, "missing": _texts, "not_features": _texts, "classes": _texts, "offsets": _numbers,
    "scales": _numbers, "dropped": lambda given: Dropped(**given),
    "levels": lambda given: {str(name): _texts(found) for name, found in given.items()},
    "pooled": lambda given: {name: LevelPool(_texts(one["kept"]), dict(one["rare"])) for name, one in given.items()},
    "fills": lambda given: {str(name): float(value) for name, value in given.items()},
    "imputed": lambda given: {name: Imputed(float(one["value"]), int(one["rows"])) for name, one in given.items()},
    "notes": lambda given: tuple(Note(str(one["problem"]), Remedy(**one["remedy"])) for one in given),
}  # fmt: skip


@dataclass(frozen=True)
class Preparation:
    """What was done to the columns and rows of a table before anything was computed, and how to do it to new rows.

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
        How a sample was drawn from a streamed table; empty if all rows are in memory.
    notes : tuple of Note
        What a reader may want to change.
    offsets, scales : tuple of float
        Subtracted from each feature, and what it is then divided by.
    fills : dict of str to float
        Numeric columns whose missing values are replaced, and by what; ``imputed`` are those that had some.

    See Also
    --------
    prepare : Its result has one.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.audit import prepare
    >>> columns = {"x": np.arange(40.0) % 7, "same": np.ones(40), "sex": np.repeat([0.0, 1.0], 20)}
    >>> preparation = prepare(columns, ["sex"]).preparation
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
    notes: tuple[Note, ...] = ()
    offsets: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    fills: dict[str, float] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """The columns of a table that new rows need."""
        return [*self.numeric, *self.levels]

    @property
    def feature_names(self) -> list[str]:
        levels = [f"{name}={level}" for name, levels in self.levels.items() for level in levels]
        return [*self.numeric, *levels, *(f"{name}={MISSING_LEVEL}" for name in self.imputed)]

    @property
    def tokens(self) -> MissingTokens:
        """What means a missing value."""
        usual = tuple(token for token in MISSING_TOKENS if token in self.missing)
        return MissingTokens(usual, tuple(token for token in self.missing if token not in usual))

    def features(
        self, numbers: Mapping[str, np.ndarray], texts: Mapping[str, tuple[np.ndarray, Sequence[str | None]]]
    ) -> np.ndarray:
        """The matrix of rows that are given column by column, with NaN where a number is missing that is not filled in.

        ``texts`` holds codes and the text of each code. A level not seen in fitting counts as rare; without a feature
        for rare levels, it becomes all zeros before standardising.
        """
        n_rows = len(next(iter(numbers.values()))) if numbers else len(next(iter(texts.values()))[0])
        X = np.zeros((n_rows, len(self.feature_names)))  # filled in place: X may take most of the memory
        indicators = {name: j for j, name in enumerate(self.imputed, start=X.shape[1] - len(self.imputed))}
        for j, name in enumerate(self.numeric):
            X[:, j] = numbers[name]
            absent = ~np.isfinite(X[:, j])
            X[absent, j] = self.fills.get(name, math.nan)
            if name in indicators:
                X[:, indicators[name]] = absent
        start = len(self.numeric)
        for name, levels in self.levels.items():
            position = {level: start + i for i, level in enumerate(levels)}
            rest = position.get(POOLED_LEVEL, -1)
            codes, found = texts[name]
            columns = np.array([position.get(_level(text), rest) for text in found], dtype=int)[codes]
            known = np.flatnonzero(columns >= 0)
            X[known, columns[known]] = 1.0
            start += len(levels)
        if self.scales:
            X -= np.array(self.offsets)
            X /= np.array(self.scales)
        return X

    def transform(self, data: Any) -> np.ndarray:
        """The features of the rows of another table, with NaN where a number is missing that is not filled in."""
        from fairpca.audit.model import Scores
        from fairpca.audit.read import read_table
        from fairpca.audit.table import Table

        table = data if isinstance(data, Table) else read_table(data, missing=self.tokens)
        return np.concatenate([features for _, features in Scores(self, table)])

    def pools_new_levels(self, name: str) -> bool:
        """Whether levels of this column that were not seen in fitting count as rare."""
        return POOLED_LEVEL in self.levels[name]

    def unknown_levels(self, name: str, found: Sequence[str | None]) -> list[str]:
        """Texts of a column that were not seen in fitting."""
        rare = self.pooled[name].rare if name in self.pooled else {}
        return sorted({_level(text) for text in found} - {*self.levels[name], *rare})

    def to_sklearn(self) -> Any:
        """The same preparation as a ``ColumnTransformer`` of scikit-learn, not yet fitted, for a pipeline of your own.

        Fitted to the rows that this preparation used, as a data frame, it gives the same features in the same order.
        Texts must be as they are in the file, and missing ones None.
        """
        from fairpca.audit._sklearn import column_transformer

        return column_transformer(self)

    def as_dict(self) -> dict[str, Any]:
        """Plain lists and dictionaries, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Any) -> Preparation:
        """The inverse of :meth:`as_dict`, with checks: the file may come from an untrusted source."""
        try:
            given = {one.name: values[one.name] for one in dataclasses.fields(cls) if one.name in values}
            found = cls(**given | {name: restore(given[name]) for name, restore in _RESTORED.items()})
            sizes = {len(found.offsets), len(found.scales), len(found.feature_names)}
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ValueError(_DAMAGED) from None
        finite = np.isfinite([*found.offsets, *found.scales, *found.fills.values()]).all()
        if len(sizes) > 1 or not finite or not all(scale > 0 for scale in found.scales):
            raise ValueError(_DAMAGED)
        if not found.imputed.keys() <= found.fills.keys() <= set(found.numeric):
            raise ValueError(_DAMAGED)
        if not (found.delimiter is None or (isinstance(found.delimiter, str) and len(found.delimiter) == 1)):
            raise ValueError(_DAMAGED)
        return found

    def remarks(self, options: Mapping[str, str] | None = None) -> list[str]:
        """The record in words, one line per fact; ``options`` maps parameters to the options of a program."""
        return [
            *(note.text(options or {}) for note in self.notes),
            *self.columns_used(),
            *(f"read the commas in {name!r} as {meaning}" for name, meaning in self.commas.items()),
            *self._left_out(),
            *(_pool_remark(name, pool, self.min_level, name in self.left_out) for name, pool in self.pooled.items()),
            *self._missing_values(),
            *self._groups_and_label(),
            *([self.sampled] if self.sampled else []),
        ]

    def columns_used(self) -> list[str]:
        """What is a feature and what is not: those of the remarks that every table has."""
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
                f"replaced missing numbers by the median{' of a random sample' if self.sampled else ''}, with a column "
                f"that says where: {some(counts, limit=20)}"
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


def _level(text: str | None) -> str:
    return MISSING_LEVEL if text is None else text


def _counted(counts: Mapping[str, int]) -> list[str]:
    return [f"{name} ({count:,})" for name, count in counts.items()]


def some(names: Sequence[str], limit: int = 8) -> str:
    """A list that is cut off where it becomes long."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown}, ... ({len(names) - limit} more)"
