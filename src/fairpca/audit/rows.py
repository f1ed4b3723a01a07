"""Passes over the rows of a table: blocks of those that lack nothing, and what was seen on the way."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fairpca._labels import join_parts
from fairpca._progress import Report
from fairpca._validation import Groups, groups_from_codes, intersect_groups
from fairpca.audit.checks import MOST_COUNTED, Roles, check_few_groups
from fairpca.audit.preparation import OTHER_GROUP, Dropped, Preparation, level_of
from fairpca.audit.survey import Column
from fairpca.audit.table import Table, rows_per_batch
from fairpca.moments._streams import RowBlock

#: The rows of a batch that are used, by column: numbers (NaN where missing), positions of levels, numbers of classes
#: and of persons; those of the groups are under ``GROUPS``.
Rows = dict[str | None, np.ndarray]
GROUPS = None


class Ids:
    """Numbers for labels in the order in which they are met."""

    def __init__(self) -> None:
        self.of: dict[str, int] = {}

    def encode(self, codes: np.ndarray, labels: Sequence[str | None]) -> np.ndarray:
        """The number of each row's label, -1 for None."""
        found = [-1 if label is None else self.of.setdefault(label, len(self.of)) for label in labels]
        return np.array(found, dtype=np.int32)[codes]

    def count(self, numbers: np.ndarray) -> Counter[Any]:
        """The rows of each label; those without one count as None."""
        found = np.bincount(numbers + 1, minlength=1).tolist()
        return Counter({label: count for label, count in zip([None, *self.of], found, strict=False) if count})


class Pass:
    """One pass over the rows, and what it found: in all rows, and in those that are used.

    ``record`` says which columns are used, and as what: all levels of a text, rare or not.
    """

    def __init__(
        self,
        table: Table,
        roles: Roles,
        columns: dict[str, Column],
        record: Preparation,
        progress: Report,
        impute: bool,
    ) -> None:
        self.table, self.roles, self.columns, self.record = table, roles, columns, record
        self._progress, self._impute = progress, impute
        self.n_rows = self.zero_weights = 0
        #: The levels of texts, and the values of numbers that have few; NaN stands for missing ones.
        few = {name: columns[name].seen.few for name in record.numeric}
        self.values: dict[str, Sequence[Any]] = {name: [*sorted(one), np.nan] for name, one in few.items() if one}
        self.values |= record.levels
        #: Rows by group (in the order of its number) and value, one after the other.
        self.cells = {name: np.zeros(0, dtype=np.int64) for name in self.values}
        #: What identical columns have in common, and checksums of those that have it.
        ranges = {name: (columns[name].seen.smallest, columns[name].seen.largest) for name in record.numeric}
        self.kinds: dict[str, tuple[Any, ...]] = ranges | record.levels
        alike = Counter(self.kinds.values())
        self.checksums = {name: 0 for name, kind in self.kinds.items() if alike[kind] > 1}
        self.group_rows, self.class_rows, self._lost = Counter[Any](), Counter[Any](), Counter[Any]()
        #: Rows that lack a value of a column, and missing values among the rows that are used.
        self._without, self.missing = Counter[str](), Counter[str]()
        self.ids: dict[str | None, Ids] = {name: Ids() for name in (GROUPS, roles.label, roles.clusters)}

    def __iter__(self) -> Iterator[Rows]:
        record, roles, table = self.record, self.roles, self.table
        names = [*record.columns, *roles.needed]
        size = rows_per_batch(len(names) + len(record.keys))
        for batch in table.batches(names, size, self._progress, "rows read"):
            self.n_rows += batch.num_rows
            rows = self._used_rows(batch)
            if len(rows[GROUPS]):
                self._watch(rows)
                yield rows

    @property
    def dropped(self) -> Dropped:
        """Rows that lack a group, label, person, weight or number."""
        columns = (*self.roles.needed, *self.record.numeric)
        return Dropped(
            self._lost.total(), {name: self._without[name] for name in columns if self._without[name]},
            {label: self._lost[label] for label in sorted(self._lost.keys() - {None})}, self._lost[None],
        )  # fmt: skip

    def levels(self, rows: Rows) -> dict[str, tuple[np.ndarray, tuple[str, ...]]]:
        """The columns of text, as codes and the text of each code."""
        return {name: (rows[name], levels) for name, levels in self.record.levels.items()}

    def block(self, rows: Rows) -> RowBlock:
        """The features of all levels."""
        roles = self.roles
        features = self.record.encoded(rows, self.levels(rows))
        groups = groups_from_codes(rows[GROUPS], list(self.ids[GROUPS].of))
        weights = None if roles.weights is None else rows[roles.weights]
        return RowBlock([*features, *(rows[name] for name in roles.continuous)], groups, weights)

    def _used_rows(self, batch: Any) -> Rows:
        roles, columns = self.roles, self.columns
        rows, absent = Rows(), dict[str, np.ndarray]()
        for name in (*self.record.numeric, *roles.measured):
            values = columns[name].values(batch.column(name))
            values = values.astype(np.float64, copy=False) if name in roles.measured else values
            finite = np.isfinite(values)
            rows[name] = values if finite.all() else np.where(finite, values, np.nan)
            if rows[name] is not values and (not self._impute or name in roles.measured):
                absent[name] = ~finite
        for name, levels in self.record.levels.items():
            position = {level: j for j, level in enumerate(levels)}
            codes, texts = columns[name].codes(batch.column(name))
            rows[name] = np.array([position.get(level_of(text), 0) for text in texts], dtype=np.int32)[codes]
        encoded = {}
        for name in (one for one in roles.needed if one not in roles.measured):
            codes, texts = columns[name].codes(batch.column(name))
            if name in roles.sensitive:
                texts = [roles.merge.get(text, text) if text is not None else None for text in texts]
            encoded[name] = codes, texts
            absent[name] = np.array([text is None for text in texts])[codes]
        self._without.update({name: int(lacking.sum()) for name, lacking in absent.items()})
        incomplete = np.logical_or.reduce(list(absent.values()))
        for role in (one for one in (roles.label, roles.clusters) if one is not None):
            rows[role] = self.ids[role].encode(*encoded[role])
        codes, groups = _combined([encoded[name] for name in roles.sensitive])
        labels = [OTHER_GROUP if label in self.record.merged else label for label in groups]
        rows[GROUPS] = self.ids[GROUPS].encode(codes, labels)
        self._lost += self.ids[GROUPS].count(rows[GROUPS][incomplete])
        used = ~incomplete if roles.weights is None else ~incomplete & (rows[roles.weights] > 0)
        self.zero_weights += int((~incomplete & ~used).sum())
        return rows if used.all() else {name: values[used] for name, values in rows.items()}

    def _watch(self, rows: Rows) -> None:
        roles, groups, n_groups = self.roles, rows[GROUPS], len(self.ids[GROUPS].of)
        self.group_rows += self.ids[GROUPS].count(groups)
        check_few_groups(roles, len(self.group_rows), MOST_COUNTED)
        if roles.label is not None:
            self.class_rows += self.ids[roles.label].count(rows[roles.label])
        for name, checksum in self.checksums.items():
            self.checksums[name] = zlib.crc32(rows[name].data, checksum)
        for name in self.record.numeric:
            self.missing[name] += int(np.isnan(rows[name]).sum()) if self._impute else 0
        for name, values in self.values.items():
            codes = rows[name] if name in self.record.levels else np.searchsorted(values[:-1], rows[name])
            cells = np.bincount(groups.astype(np.int64) * len(values) + codes, minlength=n_groups * len(values))
            cells[: len(self.cells[name])] += self.cells[name]
            self.cells[name] = cells


def _combined(encoded: list[tuple[np.ndarray, list[str | None]]]) -> tuple[np.ndarray, list[str | None]]:
    """The combinations that occur, such as 'female, young'; None for rows with a missing part."""
    if len(encoded) == 1:
        return encoded[0]
    found = intersect_groups([Groups(tuple(texts), codes) for codes, texts in encoded])
    return found.codes, [None if None in label else join_parts(label) for label in found.labels]
