"""Split a file larger than memory into features, groups and label, batch by batch, as is done for a table in memory.

This takes one pass over the file. If there are text columns, a pass over them comes first, because the columns of a
one-hot encoding must be known beforehand. Numeric columns that are constant, mostly missing or reveal the group are
detected during the pass; if rows were dropped because of a column that is then left out, the pass is repeated without
it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairpca._arrow import ArrowFile, row_index
from fairpca._progress import Report
from fairpca._validation import Groups, groups_from_codes
from fairpca.tables.arrow import (
    combined_codes,
    is_arrow,
    is_number,
    is_text,
    numbers_of,
    one_hot,
    open_arrow,
    text_codes,
    unusable_columns,
)
from fairpca.tables.checking import (
    MAX_LEVELS,
    Roles,
    check_any_feature,
    check_few_classes,
    check_few_groups,
    check_levels,
    check_magnitude,
    check_roles,
    is_too_large,
)
from fairpca.tables.encoding import Encoder
from fairpca.tables.errors import TableError
from fairpca.tables.labels import MISSING_LEVEL
from fairpca.tables.missing import MissingTokens
from fairpca.tables.preparation import OTHER_GROUP, Dropped
from fairpca.tables.preparing import small_groups
from fairpca.tables.reasons import missing_reason, without_row_index
from fairpca.tables.sampling import LabelledBlock
from fairpca.tables.table import Table
from fairpca.tables.watching import FewValues, SeenNumbers, SeenTexts

__all__ = ["STREAM_NUMBERS", "TableStream", "is_large"]

#: Files of more numbers (rows x columns) than this are streamed: in memory, a few copies would take a gigabyte.
STREAM_NUMBERS = 20_000_000
#: How many numbers are decoded at a time.
_BATCH_NUMBERS = 2_000_000
_SURVEY = "finding levels"
#: More groups than this are not counted, even if the small ones are to be merged.
_MOST_SMALL_GROUPS = 1000


def is_large(path: Any) -> bool:
    """Whether the file is streamed automatically; only its metadata is read."""
    if not is_arrow(path):
        return False
    try:
        file = open_arrow(path)
    except ValueError:  # cannot be streamed: Feather files of version 1 are read into memory
        return False
    return file.n_rows * len(file.schema.names) > STREAM_NUMBERS


class TableStream:
    """Blocks of encoded features, with the group and, if there is a label, the class of each row.

    Attributes
    ----------
    encoder : Encoder
        Converts the file's columns to features, not yet standardised.
    left_out : dict of str to str
        Which columns were left out, and why.
    merged : dict of str to int
        Small groups that the blocks contain as "other", and the rows of each.
    class_counts : Counter
        Number of complete rows per class in the last pass.
    few_values : dict of str to FewValues
        Numeric columns that may be constant or reveal the group, after a pass.
    """

    def __init__(
        self,
        file: ArrowFile,
        sensitive: Sequence[str],
        label: str | None = None,
        *,
        drop: Sequence[str] = (),
        max_levels: int = MAX_LEVELS,
        merge_small: int = 0,
        missing: MissingTokens | None = None,
        progress: Report | None = None,
    ) -> None:
        if not file.n_rows:
            raise TableError(f"{file.name} has no rows")
        self.file, self.roles = file, Roles(tuple(sensitive), label, drop=tuple(drop))
        self.missing = MissingTokens((), missing.added if missing else ())
        self.left_out: dict[str, str] = {}
        self.merged: dict[str, int] = {}
        self._progress, self._max_levels, self._merge_small = progress or _silent, max_levels, merge_small
        outline = _outline(file)
        check_roles(outline, self.roles)
        names = [name for name in outline.columns if name not in self.roles.not_features]
        names = without_row_index(names, row_index(file.schema), self.left_out)
        for name in names:
            outline.values(name, "a feature")
        names = self._mostly_known(names)
        self._numeric = [name for name in names if is_number(file.schema.field(name).type)]
        self._levels = self._survey([name for name in names if name not in self._numeric])
        check_any_feature(file.name, [*self._numeric, *self._levels], self.roles.not_features, self.left_out)
        self._start_pass()

    @property
    def encoder(self) -> Encoder:
        return Encoder.plain(self._numeric, self._levels)

    @property
    def dropped(self) -> Dropped:
        """Rows of the last pass that lack a group, label or number."""
        numeric = {name: seen.n_missing for name, seen in self._seen.items()}
        by_column = {name: self._without[name] for name in self.roles.needed} | numeric
        lost = dict(sorted((label, count) for label, count in self._lost.items() if label is not None))
        return Dropped(
            self._lost.total(), {name: count for name, count in by_column.items() if count}, lost, self._lost[None]
        )

    def row_number_columns(self) -> dict[str, str]:
        """Numeric columns that only count or identify the rows, and the reason to leave each out, after a pass."""
        return {name: reason for name, seen in self._seen.items() if (reason := seen.row_numbers.reason())}

    def _start_pass(self) -> None:
        self.class_counts, self._groups = Counter[str](), set[str]()
        self._lost, self._without = Counter[str | None](), Counter[str]()
        self.few_values = {name: FewValues() for name in self._numeric}
        self._seen = {name: SeenNumbers(name) for name in self._numeric}
        self._too_large: dict[str, float] = {}

    def find_small_groups(self) -> None:
        """Take a pass to find the groups to be merged, if any are to be."""
        self.merged, counts = {}, Counter[str]()
        if not self._merge_small:
            return
        for block in self.blocks(counting=True):
            labels = block.groups.labels
            found = np.bincount(block.groups.codes, minlength=len(labels)).tolist()
            counts.update(dict(zip(labels, found, strict=True)))
        self.merged = small_groups(counts, self._merge_small)

    def blocks(self, *, counting: bool = False) -> Iterator[LabelledBlock]:
        """The complete rows; progress is reported along the way."""
        self._start_pass()
        names = [*self._numeric, *self._levels, *self.roles.needed]
        for batch in self._read(names, "rows read", width=len(names) + len(self.encoder.offsets)):
            block = self._prepare(batch)
            self._watch(block, counting)
            if len(block):
                yield self._summable(block)

    def leave_out_unfit(self) -> bool:
        """Whether to repeat the pass because it dropped rows for a missing value in a column that is not a feature."""
        unfit = self._without_unfit({name: seen for name, seen in self._seen.items() if seen.n_missing})
        if unfit:
            check_any_feature(self.file.name, [*self._numeric, *self._levels], self.roles.not_features, self.left_out)
        return unfit

    def check_magnitudes(self, numeric: Sequence[str]) -> None:
        """Raise an error if squares of a feature overflow; the blocks contain zeros in its place."""
        for name in numeric:
            check_magnitude(self.file.name, name, np.array([self._too_large.get(name, 0.0)]))

    def _mostly_known(self, names: list[str]) -> list[str]:
        """Leave out columns that are mostly missing according to the file's statistics or the column's type."""
        counts, kept = self.file.null_counts(), []
        for name in names:
            count = self.file.n_rows if str(self.file.schema.field(name).type) == "null" else counts.get(name, 0)
            if count > 0.5 * self.file.n_rows:
                self.left_out[name] = missing_reason(count / self.file.n_rows)
            else:
                kept.append(name)
        return kept

    def _without_unfit(self, seen: Mapping[str, SeenNumbers]) -> bool:
        """Leave out numeric columns that are constant or mostly missing; returns whether there were any."""
        found = {name: reason for name, column in seen.items() if (reason := column.unfit_reason())}
        self.left_out |= found
        self._numeric = [name for name in self._numeric if name not in found]
        return bool(found)

    def _survey(self, names: list[str]) -> dict[str, tuple[str, ...]]:
        """Find the levels of text columns in a pass over these columns only, unless one seems to have too many.

        In that case all columns are read, to exclude incomplete rows, whose levels do not count.
        """
        if not names:
            return {}
        seen = {name: SeenTexts(self._max_levels) for name in names}
        for batch in self._read(names, _SURVEY):
            for name, column in seen.items():
                column.add(*text_codes(batch.column(name), self.missing))
            if any(column.too_many and self._is_mostly_known(column) for column in seen.values()):
                break
        levels = {name: column.texts for name, column in seen.items()}
        if any(column.too_many for column in seen.values()):
            certain = {name for name, column in seen.items() if self._is_mostly_known(column)}
            seen, levels = self._levels_of_complete_rows(names, certain)
        return {name: self._checked_levels(name, levels[name]) for name in names if self._is_feature(name, seen[name])}

    def _is_mostly_known(self, column: SeenTexts) -> bool:
        """Whether the column is mostly non-missing, whatever the remaining rows contain."""
        return column.n_known >= 0.5 * self.file.n_rows

    def _is_feature(self, name: str, column: SeenTexts) -> bool:
        reason = column.unfit_reason()
        self.left_out |= {} if reason is None else {name: reason}
        return reason is None

    def _checked_levels(self, name: str, texts: set[str | None]) -> tuple[str, ...]:
        levels = {MISSING_LEVEL if text is None else text for text in texts}
        check_levels(name, len(levels), self._max_levels)
        return tuple(sorted(levels))

    def _levels_of_complete_rows(
        self, names: list[str], certain: set[str]
    ) -> tuple[dict[str, SeenTexts], dict[str, set[str | None]]]:
        """Texts in all rows and in complete rows; columns in ``certain`` are known to be features if they vary."""
        seen, complete = ({name: SeenTexts(self._max_levels) for name in names} for _ in "12")
        numbers = {name: SeenNumbers(name) for name in self._numeric}
        for batch in self._read([*names, *self._numeric, *self.roles.needed], _SURVEY):
            kept = ~self._incomplete(batch, numbers)
            for name in names:
                codes, texts = text_codes(batch.column(name), self.missing)
                seen[name].add(codes, texts)
                complete[name].add(codes[kept], texts)
                if name in certain:
                    check_levels(name, len(complete[name].texts), self._max_levels, so_far=True)
        if self._without_unfit({name: column for name, column in numbers.items() if column.n_missing}):
            return self._levels_of_complete_rows(names, certain)
        return seen, {name: column.texts for name, column in complete.items()}

    def _incomplete(self, batch: Any, numbers: dict[str, SeenNumbers]) -> np.ndarray:
        """Rows with a missing number, group or label; also updates ``numbers``."""
        incomplete = np.zeros(batch.num_rows, dtype=bool)
        for name, column in numbers.items():
            values, absent = numbers_of(batch.column(name), self.missing)
            column.add(values, absent)
            incomplete |= False if absent is None else absent
        for name in self.roles.needed:
            incomplete |= _is_absent(*text_codes(batch.column(name), self.missing))
        return incomplete

    def _read(self, names: list[str], doing: str, *, width: int | None = None) -> Iterator[Any]:
        """Read columns in batches; ``width`` is the size of a prepared row, which limits the rows per batch."""
        done, total = 0, self.file.n_rows
        texts = [name for name in names if is_text(self.file.schema.field(name).type)]
        rows = max(_BATCH_NUMBERS // max(width or len(names), 1), 1)
        for batch in self.file.batches(names, rows, categories=texts):
            done += batch.num_rows
            self._progress(done, total, doing)
            yield batch

    def _prepare(self, batch: Any) -> LabelledBlock:
        """The complete rows of a batch, encoded."""
        columns, incomplete = [], np.zeros(batch.num_rows, dtype=bool)
        for name, seen in self._seen.items():
            values, absent = numbers_of(batch.column(name), self.missing)
            columns.append(values)
            seen.add(values, absent)
            incomplete |= False if absent is None else absent
        for name, levels in self._levels.items():
            columns += one_hot(batch.column(name), levels, self.missing)
        roles = self._labels_of(batch)
        for codes, labels in roles:
            incomplete |= codes == len(labels)
        self._count_dropped(incomplete, *roles[0])
        kept = ~incomplete if incomplete.any() else slice(None)
        groups, *classes = [groups_from_codes(codes[kept], labels) for codes, labels in roles]
        return LabelledBlock([values[kept] for values in columns], groups, classes=classes[0] if classes else None)

    def _labels_of(self, batch: Any) -> list[tuple[np.ndarray, list[str]]]:
        """Codes and labels of the groups, and of the classes if there is a label; missing ones have the last code."""
        encoded = {name: text_codes(batch.column(name), self.missing) for name in self.roles.labels}
        self._without.update({name: int(_is_absent(*found).sum()) for name, found in encoded.items()})
        groups, labels = combined_codes([encoded[name] for name in self.roles.sensitive])
        if self.merged:
            groups, labels = _merge_labels(groups, labels, self.merged)
        label = self.roles.label
        return [(groups, labels), *([] if label is None else [combined_codes([encoded[label]])])]

    def _count_dropped(self, incomplete: np.ndarray, codes: np.ndarray, labels: Sequence[str]) -> None:
        counts = np.bincount(codes[incomplete], minlength=len(labels) + 1).tolist()
        self._lost.update({label: count for label, count in zip([*labels, None], counts, strict=True) if count})

    def _watch(self, block: LabelledBlock, counting: bool) -> None:
        self._groups.update(block.groups.labels)
        if not counting or len(self._groups) > _MOST_SMALL_GROUPS:
            check_few_groups(self.roles.sensitive, len(self._groups), so_far=True)
        for name, values in zip(self._numeric, block.columns, strict=False):  # one-hot columns follow
            if name in self.few_values and not self.few_values[name].add(values, block.groups):
                del self.few_values[name]
        if self.roles.label and block.classes is not None:
            self._count_classes(self.roles.label, block.classes)

    def _count_classes(self, label: str, classes: Groups) -> None:
        counts = np.bincount(classes.codes, minlength=len(classes)).tolist()
        self.class_counts.update(dict(zip(classes.labels, counts, strict=True)))
        check_few_classes(label, len(self.class_counts), so_far=True)

    def _summable(self, block: LabelledBlock) -> LabelledBlock:
        """Replace columns too large to be summed by zeros: they may still turn out to be constant or mostly missing."""
        suspects = [j for j, seen in enumerate(self._seen.values()) if is_too_large(seen.magnitude)]
        columns = list(block.columns)
        for j in suspects:
            largest = float(np.abs(columns[j]).max())
            if is_too_large(largest):
                name = self._numeric[j]
                self._too_large[name] = max(largest, self._too_large.get(name, 0.0))
                columns[j] = np.zeros_like(columns[j])
        return replace(block, columns=columns) if suspects else block


def _outline(file: ArrowFile) -> Table:
    """The names of the columns, and which are unusable."""
    columns = dict.fromkeys(file.schema.names, np.zeros(0))
    return Table(file.name, columns, "", unusable=unusable_columns(file.schema, file.name))


def _silent(done: int, total: int, doing: str) -> None:
    """Report no progress."""


def _is_absent(codes: np.ndarray, texts: Sequence[str | None]) -> np.ndarray:
    return np.array([text is None for text in texts])[codes]


def _merge_labels(codes: np.ndarray, labels: list[str], merged: Mapping[str, int]) -> tuple[np.ndarray, list[str]]:
    """Replace the labels of small groups; the code after the last label stays that of a missing group."""
    names = [OTHER_GROUP if label in merged else label for label in labels]
    found = sorted(set(names))
    positions = np.array([*(found.index(name) for name in names), len(found)], dtype=codes.dtype)
    return positions[codes], found
