"""Passes over the rows of a table: blocks of those that lack nothing, and what was seen on the way."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fairpca._labels import join_parts
from fairpca._progress import Report
from fairpca._validation import Groups, groups_from_codes
from fairpca.audit.checks import Roles, check_any_feature, check_few_classes, check_few_groups, is_too_large
from fairpca.audit.errors import Remedy, TableError, raise_together
from fairpca.audit.preparation import OTHER_GROUP, Dropped
from fairpca.audit.survey import Column, survey
from fairpca.audit.table import Table
from fairpca.audit.texts import MISSING_LEVEL
from fairpca.audit.watch import FewValues, SeenNumbers, missing_reason

__all__ = ["MOST_SMALL_GROUPS", "Block", "Ids", "Pass", "Plan"]

#: How many numbers are decoded at a time.
_BATCH_NUMBERS = 2_000_000
#: More groups than this are not counted, even if the small ones are to be merged.
MOST_SMALL_GROUPS = 1000
_INDEX = "it is the index of a pandas data frame"


@dataclass(frozen=True)
class Plan:
    """How to read the rows: which columns hold numbers, which levels texts have, what is replaced."""

    table: Table
    roles: Roles
    columns: dict[str, Column]
    progress: Report
    left_out: dict[str, str]
    numeric: tuple[str, ...]
    levels: dict[str, tuple[str, ...]]
    merged: dict[str, int] = field(default_factory=dict)
    impute: bool = False
    fills: dict[str, float] = field(default_factory=dict)
    indicators: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: Table, roles: Roles, max_levels: int, progress: Report) -> Plan:
        """Survey the columns; all that cannot be features are reported at once."""
        left_out = {name: _INDEX for name in table.types if name in table.row_index and name not in roles.not_features}
        names = [name for name in table.types if name not in roles.not_features and name not in left_out]
        problems = {name: problem for name in names if (problem := table.problem_of_type(name)) is not None}
        counts = table.null_counts()
        for name in names:
            missing = table.n_rows or 0 if str(table.types[name]) == "null" else counts.get(name, 0)
            if missing > 0.5 * (table.n_rows or 0):
                left_out[name] = missing_reason(missing / (table.n_rows or 1))
        names = [name for name in names if name not in problems and name not in left_out]
        others = [*roles.labels, *([roles.weights] if roles.weights else []), *roles.continuous]
        columns = survey(table, [*names, *others], roles.labels, progress)
        for name in names:
            column = columns[name]
            if column.n_rows and (reason := column.unfit_reason()) is not None:
                left_out[name] = reason
            elif (problem := column.problem(max_levels)) is not None:
                problems[name] = problem
        raise_together(table.name, problems, others=roles.drop)
        names = [name for name in names if name not in left_out]
        numeric = tuple(name for name in names if columns[name].is_number)
        levels = {name: columns[name].levels for name in names if name not in numeric}
        check_any_feature(table.name, names, roles.not_features, left_out)
        return cls(table, roles, columns, progress, left_out, numeric, levels)

    def without(self, reasons: Mapping[str, str]) -> Plan:
        """The same plan without some numeric columns."""
        left_out = {**self.left_out, **reasons}
        numeric = tuple(name for name in self.numeric if name not in reasons)
        check_any_feature(self.table.name, [*numeric, *self.levels], self.roles.not_features, left_out)
        return replace(self, left_out=left_out, numeric=numeric)

    @property
    def raw_features(self) -> list[str]:
        """Names of the columns whose moments are taken: each level has one, rare or not."""
        return [
            *self.numeric,
            *self.indicators,
            *(f"{name}={one}" for name, found in self.levels.items() for one in found),
            *self.roles.continuous,
        ]


@dataclass(frozen=True)
class Block:
    """The rows of a batch that are used: numbers (NaN where missing), positions of levels, and the roles of the row."""

    numbers: list[np.ndarray]
    codes: list[np.ndarray]
    groups: Groups
    classes: Groups | None
    weights: np.ndarray | None
    persons: np.ndarray | None
    continuous: list[np.ndarray]

    def __len__(self) -> int:
        return len(self.groups.codes)


class Ids:
    """Numbers for labels in the order in which they are met."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def of(self, groups: Groups) -> np.ndarray:
        found = [self._ids.setdefault(label, len(self._ids)) for label in groups.labels]
        return np.array(found, dtype=np.int32)[groups.codes]

    @property
    def labels(self) -> np.ndarray:
        return np.array(list(self._ids), dtype=object)


class Pass:
    """One pass over the rows, and what it found: in all rows, and in those that are used."""

    def __init__(self, plan: Plan, most_groups: int) -> None:
        self.plan, self._most_groups = plan, most_groups
        self.n_rows = self.zero_weights = 0
        self.seen = {name: SeenNumbers(name) for name in plan.numeric}
        self.few_values = {name: FewValues() for name in plan.numeric}
        self.too_large: dict[str, float] = {}
        self.level_rows: dict[str, dict[str, np.ndarray]] = {name: {} for name in plan.levels}
        self.group_rows, self.class_rows = Counter[str](), Counter[str]()
        self.missing = Counter[str]()
        self._lost, self._without = Counter[str | None](), Counter[str]()
        self._persons = Ids()
        self.checksums = dict.fromkeys(plan.levels, 0)
        self._positions = {name: {level: i for i, level in enumerate(levels)} for name, levels in plan.levels.items()}
        #: Columns that are read without a survey: identifiers of persons.
        clusters = plan.roles.clusters
        self._columns = dict(plan.columns)
        if clusters is not None:
            self._columns.setdefault(clusters, Column(plan.table, clusters))

    def __iter__(self) -> Iterator[Block]:
        plan = self.plan
        names = [*plan.numeric, *plan.levels, *plan.roles.needed]
        rows = max(_BATCH_NUMBERS // max(len(names) + len(plan.raw_features), 1), 1)
        for batch in plan.table.batches(names, rows, plan.progress, "rows read"):
            self.n_rows += batch.num_rows
            block = self._used_rows(batch)
            self._watch(block)
            if len(block):
                yield block

    @property
    def dropped(self) -> Dropped:
        """Rows that lack a group, label, person, weight or number."""
        numeric = {} if self.plan.impute else {name: seen.n_missing for name, seen in self.seen.items()}
        by_column = {name: self._without[name] for name in self.plan.roles.needed} | numeric
        lost = dict(sorted((label, count) for label, count in self._lost.items() if label is not None))
        return Dropped(
            self._lost.total(), {name: count for name, count in by_column.items() if count}, lost, self._lost[None]
        )

    def unfit(self) -> dict[str, str]:
        """Columns with missing values that are not features, after all: rows were dropped for them in vain."""
        missing = {name: seen for name, seen in self.seen.items() if seen.n_missing}
        return {name: reason for name, seen in missing.items() if (reason := seen.unfit_reason()) is not None}

    def _used_rows(self, batch: Any) -> Block:
        plan, incomplete = self.plan, np.zeros(batch.num_rows, dtype=bool)
        numbers = []
        for name, seen in self.seen.items():
            values = self._columns[name].values(batch.column(name))
            finite = np.isfinite(values)
            absent = None if finite.all() else ~finite
            seen.add(values, absent)
            if absent is not None and plan.impute:
                values = np.where(absent, np.nan, values)
            elif absent is not None:
                incomplete |= absent
            numbers.append(values)
        codes = [self._level_codes(name, batch.column(name)) for name in plan.levels]
        roles = plan.roles
        encoded = {name: self._role_codes(name, batch.column(name)) for name in roles.needed
                   if name != roles.weights and name not in roles.continuous}  # fmt: skip
        weights = None if roles.weights is None else self._weights_of(batch.column(roles.weights))
        continuous = [self._numbers_of(name, batch.column(name), "continuous") for name in roles.continuous]
        groups = _merged(*_combined([encoded[name] for name in roles.sensitive]), plan.merged)
        for found, texts in [groups, *encoded.values()]:
            incomplete |= found == len(texts) - 1
        for values in [*continuous, *([] if weights is None else [weights])]:
            incomplete |= np.isnan(values)
        self._count_lost(incomplete, *groups)
        used = ~incomplete if weights is None else ~incomplete & (weights > 0)
        self.zero_weights += int((~incomplete & ~used).sum())
        kept: Any = slice(None) if used.all() else used
        label, persons = roles.label, roles.clusters
        return Block(
            [values[kept] for values in numbers],
            [values[kept] for values in codes],
            _groups(groups, kept),
            None if label is None else _groups(encoded[label], kept),
            None if weights is None else weights[kept],
            None if persons is None else self._persons.of(_groups(encoded[persons], kept)),
            [values[kept] for values in continuous],
        )

    def _level_codes(self, name: str, column: Any) -> np.ndarray:
        codes, texts = self._columns[name].codes(column)
        positions = self._positions[name]
        return np.array([positions.get(MISSING_LEVEL if text is None else text, 0) for text in texts], np.int32)[codes]

    def _role_codes(self, name: str, column: Any) -> tuple[np.ndarray, list[str | None]]:
        codes, texts = self._columns[name].codes(column)
        if name in self.plan.roles.sensitive:
            texts = [self.plan.roles.merge.get(text, text) if text is not None else None for text in texts]
        codes, texts = _combined([(codes, texts)])
        self._without[name] += int((codes == len(texts) - 1).sum())
        return codes, texts

    def _weights_of(self, column: Any) -> np.ndarray:
        """The weights of the rows, NaN where missing; raises an error unless none is negative."""
        name = str(self.plan.roles.weights)
        weights = self._numbers_of(name, column, "weights")
        if (weights < 0).any():
            problem = f"The weights {name!r} of {self.plan.table.name} are negative in places ({np.nanmin(weights):g})"
            raise TableError(problem, Remedy("name another column", "weights"))
        return weights

    def _numbers_of(self, name: str, column: Any, role: str) -> np.ndarray:
        """The numbers of a column that is not a feature, NaN where missing; raises an error if it holds text."""
        if not self._columns[name].is_number:
            text = next(text for text in self._columns[name].texts if text is not None)
            what = "weights" if role == "weights" else f"{role} values"
            problem = f"The {what} {name!r} of {self.plan.table.name} must be numbers, but contain {text!r}"
            raise TableError(problem, Remedy("name another column", role))
        values = self._columns[name].values(column).astype(np.float64)
        values[~np.isfinite(values)] = np.nan
        self._without[name] += int(np.isnan(values).sum())
        return values

    def _count_lost(self, incomplete: np.ndarray, codes: np.ndarray, labels: Sequence[str | None]) -> None:
        counts = np.bincount(codes[incomplete], minlength=len(labels)).tolist()
        self._lost.update({label: count for label, count in zip(labels, counts, strict=True) if count})

    def _watch(self, block: Block) -> None:
        _count(self.group_rows, block.groups)
        if len(self.group_rows) > self._most_groups:
            check_few_groups(self.plan.roles.sensitive, len(self.group_rows), so_far=True)
        if block.classes is not None:
            _count(self.class_rows, block.classes)
            if len(self.class_rows) > MOST_SMALL_GROUPS:
                check_few_classes(str(self.plan.roles.label), len(self.class_rows), so_far=True)
        for name, values in zip(self.plan.numeric, block.numbers, strict=True):
            self.missing[name] += int(np.isnan(values).sum()) if self.plan.impute else 0
            if name in self.few_values and not self.few_values[name].add(values, block.groups):
                del self.few_values[name]
            if is_too_large(self.seen[name].magnitude):
                largest = float(np.nanmax(np.abs(values), initial=self.too_large.get(name, 0.0)))
                self.too_large |= {name: largest} if is_too_large(largest) else {}
        codes, n_groups = block.groups.codes.astype(np.int64), len(block.groups)
        for (name, levels), positions in zip(self.plan.levels.items(), block.codes, strict=True):
            self.checksums[name] = zlib.crc32(positions.data, self.checksums[name])
            rows = np.bincount(codes * len(levels) + positions, minlength=n_groups * len(levels))
            for group, counts in zip(block.groups.labels, rows.reshape(n_groups, len(levels)), strict=True):
                self.level_rows[name][group] = self.level_rows[name].get(group, 0) + counts


def _count(counts: Counter[str], groups: Groups) -> None:
    found = np.bincount(groups.codes, minlength=len(groups)).tolist()
    counts.update({label: count for label, count in zip(groups.labels, found, strict=True) if count})


def _groups(encoded: tuple[np.ndarray, list[str | None]], kept: Any) -> Groups:
    codes, texts = encoded
    return groups_from_codes(codes[kept], texts)


def _combined(encoded: list[tuple[np.ndarray, list[str | None]]]) -> tuple[np.ndarray, list[str | None]]:
    """The combinations that occur, such as 'female, young'; the last one is None, for rows with a missing part."""
    if len(encoded) == 1:
        return _renamed(*encoded[0])
    combined = np.zeros(len(encoded[0][0]), dtype=np.int64)
    for codes, texts in encoded:
        combined = combined * len(texts) + codes
    present, inverse = np.unique(combined, return_inverse=True)
    parts = []
    for _, texts in reversed(encoded):
        present, position = np.divmod(present, len(texts))
        parts.append([texts[i] for i in position])
    labels = [None if None in label else join_parts(label) for label in zip(*reversed(parts), strict=True)]
    return _renamed(inverse.reshape(-1), labels)


def _renamed(codes: np.ndarray, labels: Sequence[str | None]) -> tuple[np.ndarray, list[str | None]]:
    """The same labels, each once and in order, with None as the last."""
    names: list[str | None] = [*sorted({label for label in labels if label is not None}), None]
    positions = {label: position for position, label in enumerate(names)}
    return np.array([positions[label] for label in labels], dtype=np.int64)[codes], names


def _merged(
    codes: np.ndarray, labels: list[str | None], merged: Mapping[str, int]
) -> tuple[np.ndarray, list[str | None]]:
    """With one label for all small groups."""
    return (
        _renamed(codes, [OTHER_GROUP if label in merged else label for label in labels]) if merged else (codes, labels)
    )
