"""What becomes of the columns once all rows were seen: which are features, and what a reader should know of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca.audit.checks import MAX_GROUPS, check_any_feature, exceeds_chance, overflow_error
from fairpca.audit.errors import Remedy, drop_list, raise_together
from fairpca.audit.preparation import Note, Preparation, some
from fairpca.audit.rare import POOLED_LEVEL, LevelPool, pool_levels
from fairpca.audit.rows import Pass, Plan, Rows
from fairpca.audit.texts import KEPT_IN_LABELS
from fairpca.audit.watch import CONSTANT

__all__ = ["Features", "kept_tokens", "notes"]

#: So many different whole numbers, one per row, do not measure anything.
_MANY_ROWS = 100
#: So many columns are named in the value of an option.
_MOST_NAMED = 20
_REVEALS_GROUP = "it reveals the group"
_ALL_RARE = "it does not have two levels that are not rare"
_CODE_NAMES = re.compile(r"(.*[^a-z])?(zip|zip ?code|post(al)? ?code|plz|phone|telephone|mobile|fax)([^a-z].*)?")


@dataclass(frozen=True)
class Features:
    """Features made of the columns: numeric ones, levels (each the sum of one or more indicators), and gaps."""

    numeric: list[str]
    pools: dict[str, LevelPool]
    parts: list[list[int]]
    left_out: dict[str, str]

    @property
    def levels(self) -> dict[str, tuple[str, ...]]:
        return {name: pool.kept for name, pool in self.pools.items() if pool.kept}

    @classmethod
    def of(cls, plan: Plan, rows: Pass, least: int) -> Features:
        """Columns that vary and do not reveal the group; why others are left out is recorded."""
        left_out: dict[str, str] = {}
        for name in plan.numeric:
            few = rows.few_values.get(name)
            reason = rows.seen[name].row_number_reason()
            if reason is None and few is not None:
                reveals = len(few) <= MAX_GROUPS and exceeds_chance(len(few), rows.group_rows.values())
                reason = CONSTANT if few.constant else _REVEALS_GROUP if reveals else None
            left_out |= {} if reason is None else {name: reason}
        found = cls([name for name in plan.numeric if name not in left_out], {}, [], left_out)
        positions = {name: j for j, name in enumerate(plan.raw_features[: len(plan.numeric)])}
        found.parts.extend([positions[name]] for name in found.numeric)
        start = len(plan.numeric) + len(plan.indicators)
        for name, levels in plan.levels.items():
            left_out |= found._add_levels(name, levels, rows.level_rows[name], rows.group_rows.values(), start, least)
            start += len(levels)
        gaps = enumerate(plan.indicators, start=len(plan.numeric))
        found.parts.extend([j] for j, name in gaps if name in found.numeric)
        large = [name for name in found.numeric if name in rows.too_large]
        problems = {name: overflow_error(plan.table.name, name, rows.too_large[name]) for name in large}
        raise_together(plan.table.name, problems, others=plan.roles.drop)
        check_any_feature(plan.table.name, found.parts, plan.roles.not_features, plan.left_out | left_out)
        return found

    def _add_levels(
        self, name: str, levels: Sequence[str], counts: np.ndarray, sizes: Any, start: int, least: int
    ) -> dict[str, str]:
        """Add the levels of a column, or return the reason to leave it out; ``counts`` is per group and level."""
        totals = counts.sum(axis=0).tolist()
        present = {level: total for level, total in zip(levels, totals, strict=True) if total}
        if len(present) == 1:
            return {name: CONSTANT}
        if (np.count_nonzero(counts, axis=0) <= 1).all() and exceeds_chance(len(present), sizes):
            return {name: _REVEALS_GROUP}
        pool = self.pools[name] = pool_levels(present, least)
        position = {level: start + j for j, level in enumerate(levels)}
        for level in pool.kept:
            pooled = [*([level] if level in present and level not in pool.rare else []), *pool.rare]
            self.parts.append([position[text] for text in (pooled if level == POOLED_LEVEL else [level])])
        return {} if pool.kept else {name: _ALL_RARE}


def kept_tokens(plan: Plan) -> dict[str, dict[str, int]]:
    """Texts such as "None" in columns of groups and classes, and the number of their rows."""
    kept = {token.lower() for token in plan.table.missing.usual} & KEPT_IN_LABELS
    found = {
        name: {
            text: rows for text, rows in plan.columns[name].texts.items() if text is not None and text.lower() in kept
        }
        for name in plan.roles.labels
    }
    return {name: texts for name, texts in found.items() if texts}


def notes(rows: Pass, preparation: Preparation, sample: Rows) -> Iterator[Note]:
    """What a reader may want to change, what matters most first."""
    yield from _labels_notes(rows, preparation)
    plan = rows.plan
    tokens = plan.table.missing
    for token in (one for one in tokens.added if one not in tokens.met):
        yield Note(
            f"{token!r}, declared missing, does not occur in the columns that were read",
            Remedy("check how it is written", "missing"),
        )
    for name in getattr(plan.table, "trimmed", ()):
        yield Note(f"blanks around the column name {name!r} were removed", Remedy("use the name without them"))
    for name in preparation.levels:
        if (date := plan.columns[name].a_date) is not None:
            yield Note(
                f"{name!r} holds dates such as {date!r}, each encoded as a level",
                Remedy("derive a number such as the year, or leave it out", "drop", name),
            )
    yield from _number_notes(rows, preparation, sample)
    found: dict[Any, list[str]] = {}
    for name in preparation.numeric:
        found.setdefault(rows.seen[name].same_as(), []).append(name)
    for name in preparation.levels:
        found.setdefault((rows.checksums[name], plan.levels[name]), []).append(name)
    copies = {other: first for first, *others in found.values() for other in others}
    if copies:
        said = some([f"{other!r} of {first!r}" for other, first in copies.items()])
        names = drop_list(list(copies)) if len(copies) <= _MOST_NAMED else ""
        yield Note(f"identical columns: {said}", Remedy("leave the copies out", "drop", names))


def _labels_notes(rows: Pass, preparation: Preparation) -> Iterator[Note]:
    """Groups and classes that are written in several ways, that were not met, or that are too many for decisions."""
    roles = rows.plan.roles
    for name in roles.sensitive:
        alike: dict[str, list[str]] = {}
        for text in rows.values[name]:
            alike.setdefault(" ".join(text.split()).casefold(), []).append(text)
        for several in sorted(map(sorted, alike.values())):
            *others, usual = sorted(several, key=lambda text: rows.values[name][text])
            for other in others:
                yield Note(
                    f"the values {other!r} and {usual!r} of {name!r} differ in case or blanks only",
                    Remedy("merge them if they mean the same", "merge", f"{other}={usual}"),
                )
    for name in roles.labels:
        for text, written in rows.plan.columns[name].spellings.items():
            if len(written) > 1:
                ways = ", ".join(map(repr, sorted(written - {text})))
                yield Note(
                    f"blanks around values of {name!r} were removed: {ways} counts as {text!r}",
                    Remedy("correct the file if they differ in meaning"),
                )
    for text in roles.merge.keys() - rows.written:
        yield Note(f"no sensitive column has the value {text!r}, to be merged", Remedy("check its spelling", "merge"))
    if len(preparation.classes) > 2:
        counts = ", ".join(f"{name} ({rows.class_rows[name]:,})" for name in preparation.classes)
        yield Note(
            f"no decisions are compared, since the label {preparation.label!r} has {len(preparation.classes)} classes: "
            f"{counts}",
            Remedy("name the positive class to compare it with all others", "positive"),
        )


def _number_notes(rows: Pass, preparation: Preparation, sample: Rows) -> Iterator[Note]:
    """Numbers that are codes, or may identify the rows."""
    for name in preparation.numeric:
        values, seen = sample[name], rows.seen[name]
        if (values != np.rint(values)).any():
            continue
        if _CODE_NAMES.fullmatch(name.lower().replace("_", " ")):
            yield Note(f"{name!r} holds codes, but counts as a number", Remedy("leave it out", "drop", name))
        elif len(values) >= _MANY_ROWS and seen.may_be_unique and len(np.unique(values)) == len(values):
            rest = "" if len(values) == seen.n_known else f", as far as {len(values):,} random rows show"
            problem = f"{name!r} has a different whole number in every row, as identifiers have{rest}"
            yield Note(problem, Remedy("leave it out if it is one", "drop", name))
