"""The roles of the columns of Arrow data; every schema is checked before any values are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from fairpca._arrow import row_index

_LEAVE_OUT = "leave it out by listing the features in columns="


class ColumnRoles:
    """The feature, sensitive and weight columns; their types must be compatible in all files and batches.

    With None for the features, every column of the first schema is one, except those with another role and the index of
    a pandas data frame.
    """

    def __init__(self, features: Sequence[str] | None, sensitive: str | Sequence[str], weight: str | None) -> None:
        self.sensitive, self.weight = _as_names(sensitive), weight
        self.features = [] if features is None else _as_names(features)
        self._others = [*self.sensitive, *([weight] if weight else [])]
        self._kinds: dict[str, tuple[str, str]] = {}  # kind of the labels, and where it was first seen
        if not self.sensitive:
            raise ValueError("sensitive is an empty list; name at least one column that holds the group.")
        if features is not None and not self.features:
            raise ValueError("columns is an empty list; name at least one feature.")
        for name in self.features:
            if name in self._others:
                raise ValueError(f"Column {name!r} cannot be both a feature and the sensitive feature or weight.")

    @property
    def all(self) -> list[str]:
        return [*self.features, *self._others]

    def check(self, schema: Any, where: str) -> None:
        """Raise if a schema lacks a column or has the wrong type in one; ``where`` names the source in the error."""
        if not self.features:
            others = [*self._others, *row_index(schema)]
            self.features = [name for name in schema.names if name not in others]
        if not self.features:
            raise ValueError(f"There is no feature column in {where} besides the sensitive one; add the features.")
        self._check_present(schema.names, where)
        for name in self.features:
            _check_numbers(schema.field(name), where, f"{_LEAVE_OUT}, or encode it as numbers first")
        if self.weight:
            _check_numbers(schema.field(self.weight), where, "weights must be numbers; convert them first")
        for name in self.sensitive:
            self._check_labels(schema.field(name), where)

    def _check_present(self, present: list[str], where: str) -> None:
        counts = Counter(present)
        for name in [*self._others, *self.features]:
            if not counts[name]:
                remedy = f"correct the name, or {_LEAVE_OUT}" if name in self.features else "correct the name"
                found = ", ".join(map(repr, present[:20]))
                raise ValueError(f"There is no column {name!r} in {where}, which has {found}: {remedy}.")
            if counts[name] > 1:
                raise ValueError(f"There are {counts[name]} columns {name!r} in {where}: rename all but one.")

    def _check_labels(self, field: Any, where: str) -> None:
        kind = _kind_of_labels(field, where)
        before, first = self._kinds.setdefault(field.name, (kind, where))
        if kind != before:
            raise ValueError(
                f"The sensitive column {field.name!r} holds {kind} in {where}, but {before} in {first}: convert it to "
                "one type, so that equal groups have equal labels."
            )


def _as_names(names: str | Sequence[str]) -> list[str]:
    """Return a list of names; a single name becomes a list of one."""
    return [names] if isinstance(names, str) else list(names)


def _check_numbers(field: Any, where: str, remedy: str) -> None:
    from pyarrow import types

    kind = field.type
    if not (types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)):
        raise ValueError(f"Column {field.name!r} holds {kind}, not numbers, in {where}: {remedy}.")


def _kind_of_labels(field: Any, where: str) -> str:
    """Labels of the same kind can be equal even if their Arrow types differ in width or unit."""
    from pyarrow import types

    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    if types.is_nested(kind):
        raise ValueError(
            f"The sensitive column {field.name!r} holds {kind} in {where}, which cannot be a label: give a column of "
            "text or numbers, or the names of several columns."
        )
    if str(kind) in ("string", "large_string", "string_view"):
        return "text"
    if types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind):
        return "numbers"
    return str(kind)
