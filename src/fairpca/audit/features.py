"""Which columns are features, and why others are not; and what a reader should know of them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fairpca._progress import Report
from fairpca.audit.checks import MAX_GROUPS, Roles, check_any_feature, check_class_counts
from fairpca.audit.errors import Remedy, TableError, drop_list, raise_together
from fairpca.audit.preparation import Dropped, Note, Preparation, some
from fairpca.audit.rare import POOLED_LEVEL, pool_levels
from fairpca.audit.rows import Pass, Rows
from fairpca.audit.survey import CONSTANT, Column, survey
from fairpca.audit.table import Table
from fairpca.audit.texts import KEPT_IN_LABELS, is_number

#: So many different whole numbers, one per row, do not measure anything.
_MANY_ROWS = 100
#: So many columns are named in the value of an option.
_MOST_NAMED = 20
_REVEALS_GROUP = "it reveals the group"
_ALL_RARE = "it does not have two levels that are not rare"
_INDEX = "it is the index of a pandas data frame"
_CODE_NAMES = re.compile(r"(.*[^a-z])?(zip|zip ?code|post(al)? ?code|plz|phone|telephone|mobile|fax)([^a-z].*)?")


def candidates(table: Table, roles: Roles, max_levels: int, progress: Report) -> tuple[dict[str, Column], Preparation]:
    """Survey the columns: how each is read, and which may be features, with all levels of the texts.

    All columns that cannot be features are reported at once.
    """
    left_out, problems = dict[str, str](), dict[str, TableError]()
    names = [name for name in table.types if name not in roles.not_features]
    for name in names:
        if name in table.row_index:
            left_out[name] = _INDEX
        elif (problem := table.problem_of_type(name)) is not None:
            problems[name] = problem
    names = [name for name in names if name not in left_out and name not in problems]
    columns = survey(table, [*names, *roles.labels, *roles.measured], roles.labels, progress)
    for name in names:
        if (reason := columns[name].unfit_reason()) is not None:
            left_out[name] = reason
        elif (problem := columns[name].problem(max_levels)) is not None:
            problems[name] = problem
    raise_together(table.name, problems, others=roles.drop)
    for name in roles.measured:
        role, what = ("weights", "weights") if name == roles.weights else ("continuous", "continuous values")
        where, column = f"The {what} {name!r} of {table.name}", columns[name]
        remedy = Remedy("name another column", role)
        text = next((text for text in column.texts if not is_number(text)), None)
        if text is not None and not column.numeric:
            raise TableError(f"{where} must be numbers, but contain {text!r}", remedy)
        if role == "weights" and column.seen.smallest < 0:
            raise TableError(f"{where} are negative in places ({column.seen.smallest:g})", remedy)
        if role == "weights" and column.seen.largest == 0:
            raise TableError(f"{where} are zero in every row", remedy)
    if roles.label is not None and len(columns[roles.label].texts) > MAX_GROUPS:
        many = f"The label {roles.label!r} has more than {MAX_GROUPS} different values; it must be a class label"
        raise TableError(many, Remedy("name another column", "label"))
    if roles.clusters is not None:  # persons are read without a survey
        columns.setdefault(roles.clusters, Column(table, roles.clusters))
    names = [name for name in names if name not in left_out]
    check_any_feature(table.name, names, roles.not_features, left_out)
    numeric = tuple(name for name in names if columns[name].numeric)
    levels = {name: columns[name].levels for name in names if not columns[name].numeric}
    commas = {name: columns[name].commas for name in numeric if columns[name].commas}
    tokens = table.missing
    kept = {token.lower() for token in tokens.usual} & KEPT_IN_LABELS
    kept_tokens = {
        name: texts
        for name in roles.labels
        if (texts := {text: rows for text, rows in columns[name].texts.items() if text.lower() in kept})
    }
    record = Preparation(
        file=table.name, delimiter=table.delimiter, missing=(*tokens.usual, *tokens.added), rows=0, groups={},
        numeric=numeric, levels=levels, not_features=roles.not_features, left_out=left_out, commas=commas,
        kept_tokens=kept_tokens, dropped=Dropped(0, {}, {}, 0), pooled={}, imputed={}, fills={}, merged={},
        label=roles.label, weights=roles.weights,
    )  # fmt: skip
    return columns, record


def chosen(rows: Pass, least: int) -> Preparation:
    """Columns that vary and do not reveal the group; why others are left out is recorded. Rare levels are pooled."""
    record, sizes = rows.record, rows.group_rows.values()
    reasons, levels, pooled = dict[str, str](), dict[str, tuple[str, ...]](), dict[str, dict[str, int]]()
    for name, found in rows.values.items():
        cells = rows.cells[name].reshape(-1, len(found))
        counts = {value: total for value, total in zip(found, cells.sum(axis=0).tolist(), strict=True) if total}
        if sum(value == value for value in counts) < 2:
            reasons[name] = CONSTANT
        elif (np.count_nonzero(cells, axis=0) <= 1).all() and _exceeds_chance(len(counts), sizes):
            reasons[name] = _REVEALS_GROUP
        elif name in record.levels:
            levels[name], rare = pool_levels(counts, least)
            if rare:
                pooled[name] = rare
            if not levels[name]:
                reasons[name] = _ALL_RARE
    left_out = record.left_out | reasons
    numeric = tuple(name for name in record.numeric if name not in left_out)
    levels = {name: found for name, found in levels.items() if name not in left_out}
    check_any_feature(record.file, [*numeric, *levels], record.not_features, left_out)
    of_numbers: dict[str, Any] = {
        field: {name: value for name, value in getattr(record, field).items() if name in numeric}
        for field in ("commas", "fills", "imputed")
    }
    return replace(
        record, numeric=numeric, levels=levels, left_out=left_out, min_level=least, pooled=pooled, **of_numbers
    )


def _exceeds_chance(n_values: int, group_counts: Iterable[int]) -> bool:
    """Whether values that each occur in only one group would be unlikely to do so by chance.

    That depends on how many rows share a value: with random groups, two rows with the same value belong to the same
    group with the same probability as any two rows. The threshold for the probability of all of them is 0.001.
    """
    counts = np.array(list(group_counts), dtype=float)
    n_rows = counts.sum()
    return bool((n_rows - n_values) * np.log(np.square(counts / n_rows).sum()) < np.log(1e-3))


def parts(record: Preparation, raw: Preparation, n_others: int) -> list[list[int]]:
    """For each feature, the features of all levels whose sum it is; other columns follow the features."""
    position = {key: j for j, key in enumerate(raw.keys)}
    found = []
    for name, level in record.keys:
        pool = record.pooled.get(name, {}) if level == POOLED_LEVEL else {}
        found.append([position[name, one] for one in (level, *pool) if (name, one) in position])
    return [*found, *([len(position) + j] for j in range(n_others))]


def decided_classes(
    label: str | None, counts: Mapping[str, int], positive: str | None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The value of each class, and the names of the classes in ascending order; the last is positive.

    If all classes are numbers, so are the values: 10 comes after 9. With a ``positive`` class, the values are 0 and 1,
    and all other classes count as negative. Classes for which no classifier can be trained raise an error.

    Examples
    --------
    >>> from fairpca.audit.features import decided_classes
    >>> decided_classes("risk", {"bad": 9, "good": 9}, "bad"), decided_classes("score", {"10": 9, "9": 9}, None)
    (({'bad': 1, 'good': 0}, ('good', 'bad')), ({'10': 10.0, '9': 9.0}, ('9', '10')))
    """
    if label is None:
        return {}, ()
    numbers = {text: float(text) for text in counts if is_number(text) and math.isfinite(float(text))}
    values: dict[str, Any] = {text: text for text in counts}
    names = values
    if positive is not None:
        if positive not in counts:
            known = f"{', '.join(map(repr, sorted(counts)[:12]))}{', ...' if len(counts) > 12 else ''}"
            problem = f"The label {label!r} has no class {positive!r}; it has {known}"
            raise TableError(problem, Remedy("name one of them", "positive"))
        values = {text: int(text == positive) for text in counts}
        if len(counts) > 2:
            names = {text: text if value else f"not {positive}" for text, value in values.items()}
    elif len(set(numbers.values())) == len(counts):  # '1' and '01' are two classes
        values = numbers
    rows = Counter[str]()
    for text in sorted(counts, key=values.__getitem__):
        rows[names[text]] += counts[text]
    check_class_counts(label, rows)
    return values, tuple(rows)


def notes(rows: Pass, preparation: Preparation, sample: Rows) -> Iterator[Note]:
    """What a reader may want to change, what matters most first."""
    yield from _labels_notes(rows, preparation)
    table = rows.table
    tokens = table.missing
    for token in (one for one in tokens.added if one not in tokens.met):
        yield Note(
            f"{token!r}, declared missing, does not occur in the columns that were read",
            Remedy("check how it is written", "missing"),
        )
    for name in table.trimmed:
        yield Note(f"blanks around the column name {name!r} were removed", Remedy("use the name without them"))
    for name in preparation.levels:
        if (date := rows.columns[name].a_date) is not None:
            yield Note(
                f"{name!r} holds dates such as {date!r}, each encoded as a level",
                Remedy("derive a number such as the year, or leave it out", "drop", name),
            )
    yield from _number_notes(rows, preparation, sample)
    found: dict[Any, list[str]] = {}
    for name in preparation.columns:
        found.setdefault((rows.checksums.get(name), rows.kinds[name]), []).append(name)
    copies = {other: first for first, *others in found.values() for other in others}
    if copies:
        said = some([f"{other!r} of {first!r}" for other, first in copies.items()])
        names = drop_list(list(copies)) if len(copies) <= _MOST_NAMED else ""
        yield Note(f"identical columns: {said}", Remedy("leave the copies out", "drop", names))


def _labels_notes(rows: Pass, preparation: Preparation) -> Iterator[Note]:
    """Groups and classes that are written in several ways, that were not met, or that are too many for decisions."""
    roles, columns = rows.roles, rows.columns
    for name in roles.sensitive:
        counts, alike = Counter[str](), dict[str, list[str]]()
        for text, count in columns[name].texts.items():
            counts[roles.merge.get(text, text)] += count
        for text in sorted(counts, key=lambda text: (counts[text], text)):
            alike.setdefault(" ".join(text.split()).casefold(), []).append(text)
        for key in sorted(alike):
            *others, usual = alike[key]
            for other in others:
                yield Note(
                    f"the values {other!r} and {usual!r} of {name!r} differ in case or blanks only",
                    Remedy("merge them if they mean the same", "merge", f"{other}={usual}"),
                )
    for name in roles.labels:
        for text, written in columns[name].spellings.items():
            if len(written) > 1:
                ways = ", ".join(map(repr, sorted(written - {text})))
                yield Note(
                    f"blanks around values of {name!r} were removed: {ways} counts as {text!r}",
                    Remedy("correct the file if they differ in meaning"),
                )
    for text in roles.merge.keys() - {text for name in roles.sensitive for text in columns[name].texts}:
        yield Note(f"no sensitive column has the value {text!r}, to be merged", Remedy("check its spelling", "merge"))
    if len(preparation.classes) > 2:
        sizes = ", ".join(f"{name} ({rows.class_rows[name]:,})" for name in preparation.classes)
        yield Note(
            f"no decisions are compared, since the label {preparation.label!r} has {len(preparation.classes)} classes: "
            f"{sizes}",
            Remedy("name the positive class to compare it with all others", "positive"),
        )


def _number_notes(rows: Pass, preparation: Preparation, sample: Rows) -> Iterator[Note]:
    """Numbers that are codes, or may identify the rows."""
    for name in preparation.numeric:
        values, seen = sample[name][np.isfinite(sample[name])], rows.columns[name].seen
        if (values != np.rint(values)).any():
            continue
        if _CODE_NAMES.fullmatch(name.lower().replace("_", " ")):
            yield Note(f"{name!r} holds codes, but counts as a number", Remedy("leave it out", "drop", name))
        elif len(values) >= _MANY_ROWS and seen.may_be_unique and len(np.unique(values)) == len(values):
            rest = "" if len(values) == seen.n_known else f", as far as {len(values):,} random rows show"
            problem = f"{name!r} has a different whole number in every row, as identifiers have{rest}"
            yield Note(problem, Remedy("leave it out if it is one", "drop", name))
