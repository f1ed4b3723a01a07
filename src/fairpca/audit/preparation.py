"""What was done to a table: the record that reports, terminal and JSON describe, and that new rows are encoded by."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fairpca.audit.errors import Remedy
from fairpca.audit.rare import POOLED_LEVEL
from fairpca.audit.texts import MISSING_LEVEL, MISSING_TOKENS, MissingTokens

#: The label of groups that were merged because they are small.
OTHER_GROUP = "other"
#: More columns than this that are left out for the same reason are counted, and some of them named.
_MANY = 10

#: A column by name: codes, and the text of each code.
Coded = tuple[np.ndarray, Sequence[str | None]]


@dataclass(frozen=True)
class Dropped:
    """Rows with a missing value: in total, by column (a row may lack several) and by group."""

    rows: int
    by_column: dict[str, int]
    by_group: dict[str, int]
    without_group: int


@dataclass(frozen=True)
class Note:
    """Something that a reader may want to change, and how."""

    problem: str
    remedy: Remedy

    def text(self, options: Mapping[str, str]) -> str:
        return f"{self.problem}; {self.remedy.text(options)}"


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
    pooled : dict of str to dict of str to int
        Text columns with rare levels, and the rows of each.
    imputed : dict of str to int
        Numeric columns in which missing numbers were replaced, and in how many rows.
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
    delimiter: str | None
    missing: tuple[str, ...]
    rows: int
    groups: dict[str, int]
    numeric: tuple[str, ...]
    levels: dict[str, tuple[str, ...]]
    not_features: tuple[str, ...]
    left_out: dict[str, str]
    commas: dict[str, str]
    kept_tokens: dict[str, dict[str, int]]
    dropped: Dropped
    pooled: dict[str, dict[str, int]]
    imputed: dict[str, int]
    fills: dict[str, float]
    merged: dict[str, int]
    label: str | None
    weights: str | None
    standardised: bool = True
    min_level: int = 0
    classes: tuple[str, ...] = ()
    zero_weights: int = 0
    sampled: str = ""
    notes: tuple[Note, ...] = ()
    offsets: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()

    @property
    def columns(self) -> list[str]:
        """The columns of a table that new rows need."""
        return [*self.numeric, *self.levels]

    @property
    def keys(self) -> list[tuple[str, str | None]]:
        """What each feature stands for: a column of numbers, a level of a column, or the gaps of a column."""
        levels = [(name, level) for name, found in self.levels.items() for level in found]
        return [*((name, None) for name in self.numeric), *levels, *((name, MISSING_LEVEL) for name in self.imputed)]

    @property
    def feature_names(self) -> list[str]:
        return [name if level is None else f"{name}={level}" for name, level in self.keys]

    @property
    def tokens(self) -> MissingTokens:
        """What means a missing value; the usual ones of CSV files, too, if the fit was not to a CSV file."""
        usual = tuple(token for token in MISSING_TOKENS if token in self.missing or self.delimiter is None)
        return MissingTokens(usual, tuple(token for token in self.missing if token not in usual))

    def encoded(self, numbers: Mapping[Any, np.ndarray], texts: Mapping[str, Coded]) -> Iterator[np.ndarray]:
        """The features in their own units, one after the other; NaN where a number is missing that is not filled in.

        A level not seen in fitting counts as rare; without a feature for rare levels, it becomes all zeros.
        """
        for name in self.numeric:
            known = np.isfinite(numbers[name])
            fill = self.fills.get(name, math.nan)
            yield numbers[name] if known.all() else np.where(known, numbers[name], fill)
        for name, levels in self.levels.items():
            codes, found = texts[name]
            position = {level: j for j, level in enumerate(levels)}
            rest = position.get(POOLED_LEVEL, -1)
            rows = np.array([position.get(level_of(text), rest) for text in found], dtype=np.int32)[codes]
            yield from ((rows == j).astype(np.float32) for j in range(len(levels)))
        for name in self.imputed:
            yield (~np.isfinite(numbers[name])).astype(np.float32)

    def features(self, numbers: Mapping[Any, np.ndarray], texts: Mapping[str, Coded]) -> np.ndarray:
        """The matrix of rows that are given column by column."""
        X = np.column_stack(list(self.encoded(numbers, texts))).astype(np.float64, copy=False)
        if self.scales:
            X -= np.array(self.offsets)
            X /= np.array(self.scales)
        return X

    def transform(self, data: Any) -> np.ndarray:
        """The features of the rows of another table, with NaN where a number is missing that is not filled in."""
        from fairpca.audit.model import Scores

        return Scores(self, data).gathered()

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
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            given = {one.name: _frozen(values[one.name]) for one in dataclasses.fields(cls)}
            given["dropped"] = Dropped(**given["dropped"])
            given["notes"] = tuple(Note(str(one["problem"]), Remedy(**one["remedy"])) for one in given["notes"])
            found = cls(**given)
            if (
                len(found.offsets) == len(found.scales) == len(found.keys)
                and found.imputed.keys() <= found.fills.keys() <= set(found.numeric)
                and np.isfinite([*found.offsets, *found.scales, *found.fills.values()]).all()
                and min(found.scales) > 0
                and (found.delimiter is None or len(found.delimiter) == 1)
                and found.tokens
                and found.remarks()
            ):
                return found
        raise ValueError("the description of its columns is damaged")

    def remarks(self, options: Mapping[str, str] | None = None) -> list[str]:
        """The record in words, one line per fact; ``options`` maps parameters to the options of a program."""
        return [
            *(note.text(options or {}) for note in self.notes),
            *self.columns_used(),
            *(f"read the commas in {name!r} as {meaning}" for name, meaning in self.commas.items()),
            *self._left_out(),
            *(self._pooled(name, rare) for name, rare in self.pooled.items()),
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
        return [*said, f"{len(self.keys)} features, {'' if self.standardised else 'not '}standardised"]

    def _left_out(self) -> list[str]:
        """One line per reason."""
        names: dict[str, list[str]] = {}
        for name, reason in self.left_out.items():
            names.setdefault(reason, []).append(repr(name))
        counts = {reason: f"{len(found):,} columns: " if len(found) > _MANY else "" for reason, found in names.items()}
        return [f"left out {counts[reason]}{some(found, _MANY)}: {reason}" for reason, found in names.items()]

    def _pooled(self, name: str, rare: Mapping[str, int]) -> str:
        levels = f"levels of {name!r} with fewer than {self.min_level:,} rows"
        said = f"{some(_counted(rare))}, {sum(rare.values()):,} rows in total"
        if POOLED_LEVEL in self.levels.get(name, ()):
            return f"pooled {levels} as {POOLED_LEVEL!r}: {said}"
        return f"no column for {levels}: {said}"

    def _missing_values(self) -> list[str]:
        said = [
            f"{token!r} in {column!r} ({count:,} rows) was kept as a value of its own; declare it missing to drop "
            "these rows"
            for column, found in self.kept_tokens.items()
            for token, count in found.items()
        ]
        if self.imputed:
            counts = [f"{name} ({self.fills[name]:g} in {rows:,} rows)" for name, rows in self.imputed.items()]
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


def _frozen(value: Any) -> Any:
    """A value from JSON, which has lists in place of tuples."""
    if isinstance(value, dict):
        return {key: _frozen(one) for key, one in value.items()}
    return tuple(value) if isinstance(value, list) else value


def level_of(text: str | None) -> str:
    return MISSING_LEVEL if text is None else text


def _counted(counts: Mapping[str, int]) -> list[str]:
    return [f"{name} ({count:,})" for name, count in counts.items()]


def some(names: Sequence[str], limit: int = 8) -> str:
    """A list that is cut off where it becomes long."""
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown}, ... ({len(names) - limit} more)"
