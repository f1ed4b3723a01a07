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
from fairpca.audit.checks import Roles, check_any_feature, check_few_classes, check_few_groups, is_too_large
from fairpca.audit.errors import Remedy, TableError, raise_together
from fairpca.audit.preparation import OTHER_GROUP, Dropped
from fairpca.audit.survey import Column, survey
from fairpca.audit.table import Table
from fairpca.audit.texts import MISSING_LEVEL
from fairpca.audit.watch import FewValues, SeenNumbers, missing_reason

__all__ = ["GROUPS", "MOST_SMALL_GROUPS", "Pass", "Plan", "Rows"]

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


#: The rows of a batch that are used, by column: numbers (NaN where missing), positions of levels, numbers of classes
#: and of persons; those of the groups are under ``GROUPS``.
Rows = dict[str | None, np.ndarray]
GROUPS = None


class Ids:
    """Numbers for labels in the order in which they are met."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def of(self, codes: np.ndarray, labels: Sequence[str | None]) -> np.ndarray:
        """The number of each row's label, -1 for None."""
        found = [-1 if label is None else self._ids.setdefault(label, len(self._ids)) for label in labels]
        return np.array(found, dtype=np.int32)[codes]

    @property
    def labels(self) -> list[str]:
        return list(self._ids)


class Pass:
    """One pass over the rows, and what it found: in all rows, and in those that are used."""

    def __init__(self, plan: Plan, most_groups: int) -> None:
        self.plan, self._most_groups = plan, most_groups
        self.n_rows = self.zero_weights = 0
        self.seen = {name: SeenNumbers(name) for name in plan.numeric}
        self.few_values = {name: FewValues() for name in plan.numeric}
        self.too_large: dict[str, float] = {}
        #: By group (in the order of its number) and level.
        self.level_rows = {name: np.zeros((0, len(levels)), dtype=np.int64) for name, levels in plan.levels.items()}
        self.checksums = dict.fromkeys(plan.levels, 0)
        self.group_rows, self.class_rows = Counter[str](), Counter[str]()
        self.missing = Counter[str]()
        self.ids: dict[str | None, Ids] = {name: Ids() for name in (GROUPS, plan.roles.label, plan.roles.clusters)}
        #: Texts of sensitive columns before merging, and the rows of each one after it.
        self.written, self.values = set[str | None](), {name: Counter[str]() for name in plan.roles.sensitive}
        self._lost, self._without = Counter[str | None](), Counter[str]()
        self._columns = dict(plan.columns)
        if (clusters := plan.roles.clusters) is not None:  # persons are read without a survey
            self._columns.setdefault(clusters, Column(plan.table, clusters))

    def __iter__(self) -> Iterator[Rows]:
        plan = self.plan
        names = [*plan.numeric, *plan.levels, *plan.roles.needed]
        size = max(_BATCH_NUMBERS // max(len(names) + len(plan.raw_features), 1), 1)
        for batch in plan.table.batches(names, size, plan.progress, "rows read"):
            self.n_rows += batch.num_rows
            rows = self._used_rows(batch)
            if len(rows[GROUPS]):
                self._watch(rows)
                yield rows

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

    def _used_rows(self, batch: Any) -> Rows:
        plan, roles = self.plan, self.plan.roles
        rows, incomplete = Rows(), np.zeros(batch.num_rows, dtype=bool)
        for name, seen in self.seen.items():
            rows[name] = values = self._columns[name].values(batch.column(name))
            finite = np.isfinite(values)
            absent = None if finite.all() else ~finite
            seen.add(values, absent)
            if absent is not None and plan.impute:
                rows[name] = np.where(absent, np.nan, values)
            elif absent is not None:
                incomplete |= absent
        for name, levels in plan.levels.items():
            position = {level: i for i, level in enumerate(levels)}
            codes, texts = self._columns[name].codes(batch.column(name))
            found = [position.get(MISSING_LEVEL if text is None else text, 0) for text in texts]
            rows[name] = np.array(found, dtype=np.int32)[codes]
        encoded = {}
        for name in roles.needed:
            if name in roles.continuous or name == roles.weights:
                rows[name] = self._measurements(name, batch.column(name))
                absent = np.isnan(rows[name])
            else:
                codes, texts = encoded[name] = self._role_codes(name, batch.column(name))
                absent = np.array([text is None for text in texts])[codes]
            self._without[name] += int(absent.sum())
            incomplete |= absent
        for role in (roles.label, roles.clusters):
            if role is not None:
                rows[role] = self.ids[role].of(*encoded[role])
        codes, labels = _combined([encoded[name] for name in roles.sensitive])
        rows[GROUPS] = self.ids[GROUPS].of(codes, [OTHER_GROUP if one in plan.merged else one for one in labels])
        _count(self._lost, rows[GROUPS][incomplete], self.ids[GROUPS].labels)
        used = ~incomplete if roles.weights is None else ~incomplete & (rows[roles.weights] > 0)
        self.zero_weights += int((~incomplete & ~used).sum())
        return rows if used.all() else {name: values[used] for name, values in rows.items()}

    def _role_codes(self, name: str, column: Any) -> tuple[np.ndarray, list[str | None]]:
        """Codes and texts of groups, classes or persons."""
        codes, texts = self._columns[name].codes(column)
        if name in self.values:
            merge, written = self.plan.roles.merge, texts
            texts = [None if text is None else merge.get(text, text) for text in written]
            for text, new, count in zip(written, texts, np.bincount(codes, minlength=len(texts)).tolist(), strict=True):
                if new is not None and count:
                    self.written.add(text)
                    self.values[name][new] += count
        return codes, texts

    def _measurements(self, name: str, column: Any) -> np.ndarray:
        """The numbers of a column that is not a feature, NaN where missing; raises an error if it holds others."""
        role = "weights" if name == self.plan.roles.weights else "continuous"
        what = f"The {'weights' if role == 'weights' else 'continuous values'} {name!r} of {self.plan.table.name}"
        if not self._columns[name].is_number:
            text = next(text for text in self._columns[name].texts if text is not None)
            raise TableError(f"{what} must be numbers, but contain {text!r}", Remedy("name another column", role))
        values = self._columns[name].values(column).astype(np.float64)
        values[~np.isfinite(values)] = np.nan
        if role == "weights" and (values < 0).any():
            raise TableError(f"{what} are negative in places ({np.nanmin(values):g})",
                             Remedy("name another column", role))  # fmt: skip
        return values

    def _watch(self, rows: Rows) -> None:
        plan, groups, labels = self.plan, rows[GROUPS], self.ids[GROUPS].labels
        _count(self.group_rows, groups, labels)
        if len(self.group_rows) > self._most_groups:
            check_few_groups(plan.roles.sensitive, len(self.group_rows), so_far=True)
        if plan.roles.label is not None:
            _count(self.class_rows, rows[plan.roles.label], self.ids[plan.roles.label].labels)
            if len(self.class_rows) > MOST_SMALL_GROUPS:
                check_few_classes(plan.roles.label, len(self.class_rows), so_far=True)
        for name in plan.numeric:
            self.missing[name] += int(np.isnan(rows[name]).sum()) if plan.impute else 0
            if name in self.few_values and not self.few_values[name].add(rows[name], groups):
                del self.few_values[name]
            if is_too_large(self.seen[name].magnitude):
                largest = float(np.nanmax(np.abs(rows[name]), initial=self.too_large.get(name, 0.0)))
                self.too_large |= {name: largest} if is_too_large(largest) else {}
        for name, levels in plan.levels.items():
            self.checksums[name] = zlib.crc32(rows[name].data, self.checksums[name])
            both = groups.astype(np.int64) * len(levels) + rows[name]
            counts = np.bincount(both, minlength=len(labels) * len(levels)).reshape(len(labels), len(levels))
            counts[: len(self.level_rows[name])] += self.level_rows[name]
            self.level_rows[name] = counts


def _count(counts: Counter[Any], ids: np.ndarray, labels: Sequence[str]) -> None:
    """Add the rows of each label; those without one count as None."""
    found = np.bincount(ids + 1, minlength=1).tolist()
    counts.update({label: count for label, count in zip([None, *labels], found, strict=False) if count})


def _combined(encoded: list[tuple[np.ndarray, list[str | None]]]) -> tuple[np.ndarray, list[str | None]]:
    """The combinations that occur, such as 'female, young'; None for rows with a missing part."""
    if len(encoded) == 1:
        return encoded[0]
    found, inverse = np.unique(np.column_stack([codes for codes, _ in encoded]), axis=0, return_inverse=True)
    parts = [[texts[code] for code in column] for (_, texts), column in zip(encoded, found.T.tolist(), strict=True)]
    return inverse.reshape(-1), [None if None in label else join_parts(label) for label in zip(*parts, strict=True)]
