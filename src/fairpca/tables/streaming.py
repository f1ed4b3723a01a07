"""A file larger than memory as features, groups and label: prepared batch by batch, as a table in memory would be.

One pass over the file; a pass over its text columns comes first where there are any, since the columns of a one-hot
encoding must be known beforehand. Which columns of numbers are constant or tell the group is found on the way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fairpca._arrow_files import ArrowFile, row_index
from fairpca._progress import Report
from fairpca._validation import Groups, groups_from_codes
from fairpca.tables.arrow import is_arrow, is_number, is_text, open_arrow, plain_values, unusable_columns
from fairpca.tables.checking import (
    MAX_GROUPS,
    MAX_LEVELS,
    check_any_feature,
    check_few_classes,
    check_few_groups,
    check_levels,
    check_magnitude,
    check_roles,
    every_row_lacks,
)
from fairpca.tables.encoding import Encoder
from fairpca.tables.errors import Remedy, TableError
from fairpca.tables.labels import MISSING_LEVEL, joined_group, label_text
from fairpca.tables.remarks import constant_remark, missing_remark, without_row_index
from fairpca.tables.sampling import LabelledBlock
from fairpca.tables.table import Table

__all__ = ["STREAM_NUMBERS", "TableStream", "is_large"]

#: Files of more numbers (rows x columns) than this are streamed: in memory, a few copies would take a gigabyte.
STREAM_NUMBERS = 20_000_000
#: Numbers decoded at a time.
_BATCH_NUMBERS = 2_000_000
#: Rows of a batch that rule out most columns.
_FIRST_ROWS = 1000


def is_large(path: Any) -> bool:
    """Whether the file is streamed without being asked to; only its metadata is read."""
    if not is_arrow(path):
        return False
    try:
        file = open_arrow(path)
    except ValueError:  # no stream, at least: Feather files of the first version are read in memory
        return False
    return file.n_rows * len(file.schema.names) > STREAM_NUMBERS


class TableStream:
    """Blocks of encoded features, with the group and perhaps the class of each row.

    Attributes
    ----------
    encoder : Encoder
        From the file's columns to the features; offsets and scales are still those of no standardising.
    remarks : list of str
        What was left out, and why.
    n_dropped : int
        Rows of the last pass that lack a group, label or number.
    class_counts : Counter
        Complete rows of the last pass by label.
    few_values : dict of str to FewValues
        Numeric columns that may be constant or tell the group, after a pass.
    """

    def __init__(
        self,
        file: ArrowFile,
        sensitive: Sequence[str],
        label: str | None = None,
        *,
        drop: Sequence[str] = (),
        max_levels: int = MAX_LEVELS,
        progress: Report | None = None,
    ) -> None:
        if not file.n_rows:
            raise TableError(f"{file.name} holds no rows")
        self.file, self.sensitive, self.label = file, list(sensitive), label
        self.remarks: list[str] = []
        self.n_dropped, self.class_counts = 0, Counter[str]()
        self.few_values: dict[str, FewValues] = {}
        self._progress = progress or _silent
        outline = _outline(file)
        roles = check_roles(outline, sensitive, label, drop)
        names = [name for name in outline.columns if name not in roles]
        names = without_row_index(names, row_index(file.schema), self.remarks)
        for name in names:
            outline.values(name, "a feature")
        names = self._mostly_known(names)
        numeric = [name for name in names if is_number(file.schema.field(name).type)]
        levels = self._survey([name for name in names if name not in numeric], numeric, max_levels)
        check_any_feature(file.name, [*numeric, *levels], roles)
        size = len(numeric) + sum(map(len, levels.values()))
        self.encoder = Encoder(tuple(numeric), levels, np.zeros(size), np.ones(size))

    def blocks(self) -> Iterator[LabelledBlock]:
        """Complete rows; progress is told as they come."""
        names = [*self.encoder.numeric, *self.encoder.levels, *self._needed]
        self.n_dropped, self.class_counts, groups = 0, Counter(), set[str]()
        missing = dict.fromkeys(self.encoder.numeric, 0)
        self.few_values = {name: FewValues() for name in self.encoder.numeric}
        for batch in self._read(names, "rows read", width=len(names) + len(self.encoder.offsets)):
            block = self._prepare(batch, missing)
            self.n_dropped += batch.num_rows - len(block)
            groups.update(block.groups.labels)
            check_few_groups(self.sensitive, len(groups), so_far=True)
            self._watch_values(block)
            if self.label and block.classes:
                self._count_classes(self.label, block.classes)
            if len(block):
                yield block
        for name, count in missing.items():
            if count > 0.5 * self.file.n_rows:
                share = count / self.file.n_rows
                raise TableError(
                    f"Column {name!r} of {self.file.name} is missing in {share:.0%} of the rows",
                    Remedy("leave it out", "drop"),
                )
        if self.n_dropped == self.file.n_rows:
            raise every_row_lacks(self.file.name)

    @property
    def _needed(self) -> list[str]:
        """Columns without which a row is of no use."""
        return [*self.sensitive, *([self.label] if self.label else [])]

    def _mostly_known(self, names: list[str]) -> list[str]:
        """Without columns that the file's statistics (or type) say to be mostly empty."""
        counts, kept = self.file.null_counts(), []
        for name in names:
            count = self.file.n_rows if str(self.file.schema.field(name).type) == "null" else counts.get(name, 0)
            if count > 0.5 * self.file.n_rows:
                self.remarks.append(missing_remark(name, count / self.file.n_rows))
            else:
                kept.append(name)
        return kept

    def _watch_values(self, block: LabelledBlock) -> None:
        for name, values in zip(self.encoder.numeric, block.columns, strict=False):  # levels come after
            if name in self.few_values and not self.few_values[name].add(values, block.groups):
                del self.few_values[name]

    def _count_classes(self, label: str, classes: Groups) -> None:
        counts = np.bincount(classes.codes, minlength=len(classes)).tolist()
        self.class_counts.update(dict(zip(classes.labels, counts, strict=True)))
        check_few_classes(label, len(self.class_counts), so_far=True)

    def _survey(self, names: list[str], numeric: list[str], max_levels: int) -> dict[str, tuple[str, ...]]:
        """The levels of text columns: a pass over these columns only, unless that finds too many.

        Then incomplete rows, whose levels do not count, have to be told apart, which takes all columns.
        """
        found = self._levels_of_all_rows(names, max_levels)
        if any(len(levels) > max_levels for levels in found.values()):
            found = self._levels_of_complete_rows(names, numeric, max_levels)
        return {name: tuple(sorted(map(_level, found[name]))) for name in names if name in found}

    def _levels_of_all_rows(self, names: list[str], max_levels: int) -> dict[str, set[str | None]]:
        """Levels of columns that vary; the search ends where a column has too many."""
        found: dict[str, set[str | None]] = {name: set() for name in names}
        missing = dict.fromkeys(names, 0)
        for batch in self._read(names, "looking for levels") if names else ():
            for name, levels in found.items():
                codes, texts = _text_codes(batch.column(name))
                levels.update(texts[code] for code in np.unique(codes).tolist())
                missing[name] += int(_absent(codes, texts).sum())
            if any(len(levels) > max_levels for levels in found.values()):
                return found
        return {name: found[name] for name in names if self._varies(name, found[name], missing[name])}

    def _levels_of_complete_rows(
        self, names: list[str], numeric: list[str], max_levels: int
    ) -> dict[str, set[str | None]]:
        found: dict[str, set[str | None]] = {name: set() for name in names}
        missing = dict.fromkeys(names, 0)
        for batch in self._read([*names, *numeric, *self._needed], "looking for levels"):
            complete = ~_incomplete(batch, numeric, self._needed)
            for name, levels in found.items():
                codes, texts = _text_codes(batch.column(name))
                levels.update(texts[code] for code in np.unique(codes[complete]).tolist())
                missing[name] += int(_absent(codes, texts).sum())
                check_levels(name, len(levels), max_levels, so_far=True)
        return {name: found[name] for name in names if self._varies(name, found[name], missing[name])}

    def _varies(self, name: str, levels: set[str | None], missing: int) -> bool:
        if missing > 0.5 * self.file.n_rows:
            self.remarks.append(missing_remark(name, missing / self.file.n_rows))
        elif len(levels - {None}) < 2:
            self.remarks.append(constant_remark(name))
        else:
            return True
        return False

    def _read(self, names: list[str], doing: str, *, width: int | None = None) -> Iterator[Any]:
        """``width``: numbers that a row takes once it is prepared, which bounds the rows at a time."""
        done, total = 0, self.file.n_rows
        texts = [name for name in names if is_text(self.file.schema.field(name).type)]
        rows = max(_BATCH_NUMBERS // max(width or len(names), 1), 1)
        for batch in self.file.batches(names, rows, categories=texts):
            done += batch.num_rows
            self._progress(done, total, doing)
            yield batch

    def _prepare(self, batch: Any, missing: dict[str, int]) -> LabelledBlock:
        """The batch encoded; ``missing`` is added to."""
        columns, incomplete = [], np.zeros(batch.num_rows, dtype=bool)
        for name in self.encoder.numeric:
            values, absent = _numbers(batch.column(name))
            columns.append(values)
            check_magnitude(self.file.name, name, values if absent is None else values[~absent])
            if absent is not None:
                missing[name] += int(absent.sum())
                incomplete |= absent
        for name, levels in self.encoder.levels.items():
            columns += _one_hot(batch.column(name), levels)
        group_codes, groups = _joined([_text_codes(batch.column(name)) for name in self.sensitive])
        incomplete |= group_codes == len(groups)
        if self.label:
            class_codes, classes = _joined([_text_codes(batch.column(self.label))])
            incomplete |= class_codes == len(classes)
        kept = ~incomplete if incomplete.any() else slice(None)
        return LabelledBlock(
            [values[kept] for values in columns],
            groups_from_codes(group_codes[kept], groups),
            classes=groups_from_codes(class_codes[kept], classes) if self.label else None,
        )


class FewValues:
    """The values of a column, as long as it is constant, or they are few and each occurs in one group only."""

    def __init__(self) -> None:
        self._groups: dict[float, str | None] = {}  # None for several

    def __len__(self) -> int:
        return len(self._groups)

    def add(self, values: np.ndarray, groups: Groups) -> bool:
        """Whether that is still so with these rows; the first rows mostly decide, so they are looked at alone."""
        codes, labels = groups.codes.astype(np.int64), groups.labels
        return self._add(values[:_FIRST_ROWS], codes[:_FIRST_ROWS], labels) and self._add(values, codes, labels)

    def _add(self, values: np.ndarray, codes: np.ndarray, labels: Sequence[str]) -> bool:
        found, positions = np.unique(values, return_inverse=True)
        if len(found) > MAX_GROUPS:
            return False
        for together in np.unique(positions.reshape(-1) * len(labels) + codes).tolist():
            position, code = divmod(together, len(labels))
            value, group = float(found[position]), labels[code]
            if self._groups.setdefault(value, group) != group:
                self._groups[value] = None
        return len(self) <= 1 or (len(self) <= MAX_GROUPS and None not in self._groups.values())


def _numbers(column: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Values in single precision if they came so, else double; and which are missing, if any."""
    import pyarrow
    from pyarrow import types

    narrow = types.is_float32(column.type) or types.is_float16(column.type)
    kind = pyarrow.float32() if narrow else pyarrow.float64()
    values = plain_values(column).cast(kind, safe=False).to_numpy(zero_copy_only=False)
    finite = np.isfinite(values)
    return values, None if finite.all() else ~finite


def _one_hot(column: Any, levels: Sequence[str]) -> list[np.ndarray]:
    codes, texts = _text_codes(column)
    named = list(map(_level, texts))
    return [np.array([text == level for text in named], dtype=np.float32)[codes] for level in levels]


def _incomplete(batch: Any, numeric: Sequence[str], needed: Sequence[str]) -> np.ndarray:
    """Rows that lack a number or one of the ``needed`` columns."""
    incomplete = np.zeros(batch.num_rows, dtype=bool)
    for name in numeric:
        absent = _numbers(batch.column(name))[1]
        if absent is not None:
            incomplete |= absent
    for name in needed:
        incomplete |= _absent(*_text_codes(batch.column(name)))
    return incomplete


def _text_codes(column: Any) -> tuple[np.ndarray, list[str | None]]:
    """Codes and texts of a column, without a Python object per row; the texts end with None, for a missing value."""

    encoded = column if hasattr(column, "dictionary") else column.dictionary_encode()
    texts = [label_text(value) for value in encoded.dictionary.to_pylist()]
    codes = encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
    return codes.astype(np.int64), [*texts, None]


def _absent(codes: np.ndarray, texts: list[str | None]) -> np.ndarray:
    return np.array([text is None for text in texts])[codes]


def _level(text: str | None) -> str:
    return MISSING_LEVEL if text is None else text


def _joined(encoded: list[tuple[np.ndarray, list[str | None]]]) -> tuple[np.ndarray, list[str]]:
    """Combinations that occur, as 'female, young'; rows that lack one of them get a code beyond the texts."""
    combined = np.zeros(len(encoded[0][0]), dtype=np.int64)
    for codes, texts in encoded:
        combined = combined * len(texts) + codes
    present, inverse = np.unique(combined, return_inverse=True)
    parts = []
    for _, texts in reversed(encoded):
        present, position = np.divmod(present, len(texts))
        parts.append([texts[i] for i in position])
    labels = [None if None in label else joined_group(label) for label in zip(*reversed(parts), strict=True)]
    names = sorted({label for label in labels if label is not None})
    code_of = {label: code for code, label in enumerate(names)} | {None: len(names)}
    table = np.array([code_of[label] for label in labels], dtype=np.int32)
    return table[inverse.reshape(-1)], names


def _outline(file: ArrowFile) -> Table:
    """The names of the columns, and which are unusable."""
    columns = dict.fromkeys(file.schema.names, np.zeros(0))
    return Table(file.name, columns, "", unusable=unusable_columns(file.schema, file.name))


def _silent(done: int, total: int, doing: str) -> None:
    """No progress is shown."""
