"""Split a table in memory into features, groups and label, with remarks on how each column was handled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fairpca._labels import join_parts
from fairpca.tables.checking import (
    MAX_GROUPS,
    MAX_LEVELS,
    check_any_feature,
    check_classes,
    check_group_counts,
    check_levels,
    check_magnitude,
    check_roles,
    exceeds_chance,
    no_complete_rows_error,
)
from fairpca.tables.encoding import Encoder, fitted_encoder
from fairpca.tables.errors import Remedy, TableError
from fairpca.tables.labels import class_values
from fairpca.tables.remarks import (
    constant_remark,
    copy_remark,
    describe_columns,
    dropped_remark,
    unfit_remark,
    without_row_index,
)
from fairpca.tables.table import Table, as_text, is_missing

__all__ = ["TableData", "prepare_table"]


@dataclass(frozen=True)
class TableData:
    """Features, groups and label, and ``remarks`` on how they were obtained from the file.

    See Also
    --------
    prepare_table : Returns it.

    Examples
    --------
    >>> import os, tempfile
    >>> from fairpca.tables import prepare_table, read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "people.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("age,job,sex\\n" + "30,a,f\\n41,b,m\\n52,b,f\\n28,a,m\\n" * 10)
    ...     table = read_table(path)
    >>> prepare_table(table, ["sex"]).X.shape[0]
    40
    """

    X: np.ndarray
    groups: np.ndarray
    label: np.ndarray | None  # numbers if all classes are numbers, otherwise text
    encoder: Encoder
    table: Table
    remarks: list[str] = field(default_factory=list)
    clusters: np.ndarray | None = None  # the person each row belongs to

    @property
    def feature_names(self) -> list[str]:
        return self.encoder.feature_names

    @property
    def class_codes(self) -> np.ndarray | None:
        """The label encoded as 0, 1, ... in sorted order, because classifiers reject fractional class labels."""
        return None if self.label is None else np.unique(self.label, return_inverse=True)[1].reshape(-1)


def prepare_table(
    table: Table,
    sensitive: Sequence[str],
    label: str | None = None,
    *,
    drop: Sequence[str] = (),
    standardise: bool = True,
    max_levels: int = MAX_LEVELS,
    clusters: str | None = None,
) -> TableData:
    """Split a table into features, groups and label; ``clusters`` names the column that identifies persons.

    Numeric columns are used unchanged, and text columns are one-hot encoded. Columns that are constant, mostly missing
    or reveal the group are left out. Rows with a missing group, label or number are dropped. With several sensitive
    columns, the groups are the combinations of their values. The ``remarks`` describe what was done.

    See Also
    --------
    read_table : Reads the file.
    stream_table : For files that do not fit into memory.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.tables import Table, prepare_table
    >>> city = np.array(["a", "b"] * 20, dtype=object)
    >>> columns = {"x": np.arange(40.0), "city": city, "sex": np.repeat([0.0, 1.0], 20)}
    >>> data = prepare_table(Table("people.csv", columns, ""), ["sex"])
    >>> data.feature_names
    ['x', 'city=a', 'city=b']
    """
    if not sensitive:
        raise TableError("No sensitive column was given", Remedy("name at least one", "sensitive"))
    roles = check_roles(table, sensitive, label, drop, clusters)
    others = [name for name in (label, clusters) if name is not None]
    remarks: list[str] = []
    features = _usable(table, [name for name in table.columns if name not in roles], remarks)
    table = _complete_rows(table, [*sensitive, *others], features, remarks)
    groups = _group_labels(table, sensitive)
    target = None if label is None else _class_labels(table, label)
    numeric, levels = _without_copies(table, features, groups, max_levels, remarks)
    check_any_feature(table.name, [*numeric, *levels], roles)
    for name in numeric:
        check_magnitude(table.name, name, table.columns[name])
    encoder = fitted_encoder(table, numeric, levels, standardise)
    describe_columns(encoder, [*sensitive, *others, *drop], standardise, remarks)
    persons = None if clusters is None else table.columns[clusters]
    return TableData(encoder.encode(table), groups, target, encoder, table, remarks, persons)


def _usable(table: Table, names: list[str], remarks: list[str]) -> list[str]:
    """Columns that vary and are mostly non-missing."""
    kept = []
    for name in without_row_index(names, table.row_index, remarks):
        column = table.values(name, "a feature")
        known = column[~is_missing(column)]
        remark = unfit_remark(name, len(known), table.n_rows, varies=len(set(known.tolist())) > 1)
        if remark is None:
            kept.append(name)
            remark = f"read the commas in {name!r} as {table.commas[name]}" if name in table.commas else None
        remarks += [remark] if remark else []
    return kept


def _complete_rows(table: Table, needed: list[str], features: list[str], remarks: list[str]) -> Table:
    incomplete = np.zeros(table.n_rows, dtype=bool)
    for name in needed:
        incomplete |= is_missing(table.columns[name])
    for name in features:
        if table.columns[name].dtype != object:
            incomplete |= is_missing(table.columns[name])
    if incomplete.all():
        raise no_complete_rows_error(table.name)
    if incomplete.any():
        remarks.append(dropped_remark(incomplete.sum(), table.n_rows))
    columns = {name: column[~incomplete] for name, column in table.columns.items()}
    written = {name: table.written[name][~incomplete] for name in needed if name in table.written}
    return Table(table.name, columns, table.sha256, written=written)


def _group_labels(table: Table, sensitive: Sequence[str]) -> np.ndarray:
    """Group labels as text; several columns are joined by :func:`join_parts`."""
    columns = [table.labels(name, "the sensitive column") for name in sensitive]
    labels = np.array([join_parts(parts) for parts in zip(*columns, strict=True)], dtype=object)
    check_group_counts(sensitive, *np.unique(labels.astype(str), return_counts=True))
    return labels.astype(str)


def _class_labels(table: Table, label: str) -> np.ndarray:
    classes = table.labels(label, "the label")
    check_classes(label, classes)
    return class_values(classes)


def _without_copies(
    table: Table, features: list[str], groups: np.ndarray, max_levels: int, remarks: list[str]
) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """The numeric columns, and the levels of the text columns, that vary and do not just encode the group."""
    text = [name for name in features if table.columns[name].dtype == object]
    levels = {name: _levels(table, name, max_levels) for name in text}
    redundant = {name for name in features if _is_redundant(table.columns[name], name, groups, remarks)}
    numeric = [name for name in features if name not in levels and name not in redundant]
    return numeric, {name: found for name, found in levels.items() if name not in redundant}


def _levels(table: Table, name: str, max_levels: int) -> tuple[str, ...]:
    found = sorted(set(as_text(table.columns[name])))
    check_levels(name, len(found), max_levels)
    return tuple(found)


def _is_redundant(column: np.ndarray, name: str, groups: np.ndarray, remarks: list[str]) -> bool:
    """Whether a column is constant or just encodes the group."""
    values, codes = np.unique(column, return_inverse=True)
    found, group_codes, counts = np.unique(groups, return_inverse=True, return_counts=True)
    if len(values) == 1:  # constant once incomplete rows are dropped
        remarks.append(constant_remark(name))
        return True
    if column.dtype != object and len(values) > MAX_GROUPS:
        return False  # a measurement
    together = np.unique(codes.reshape(-1) * len(found) + group_codes.reshape(-1))
    if len(together) > len(values) or not exceeds_chance(len(values), counts):
        return False
    remarks.append(copy_remark(name))
    return True
