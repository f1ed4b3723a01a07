"""Split a table in memory into features, groups and label, with a record of how columns and rows were handled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairpca._labels import join_parts
from fairpca.tables.checking import (
    MAX_GROUPS,
    MAX_LEVELS,
    Roles,
    check_any_feature,
    check_class_counts,
    check_few_classes,
    check_group_counts,
    check_levels,
    check_magnitude,
    check_options,
    check_roles,
    check_weights,
    exceeds_chance,
    no_complete_rows_error,
)
from fairpca.tables.encoding import Encoder, standardising
from fairpca.tables.labels import decided_classes
from fairpca.tables.missing import KEPT_IN_LABELS
from fairpca.tables.preparation import OTHER_GROUP, Dropped, Imputed, Preparation
from fairpca.tables.rare import LevelPool, pool_levels, rows_of_min_level
from fairpca.tables.reasons import ALL_RARE, CONSTANT, REVEALS_GROUP, unfit_reason, without_row_index
from fairpca.tables.row_numbers import RowNumbers
from fairpca.tables.table import Table, as_text, is_missing

__all__ = ["TableData", "prepare_table", "small_groups"]


@dataclass(frozen=True)
class TableData:
    """Features, groups and label, and the ``preparation`` by which they were obtained from the file.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
    groups : ndarray of shape (n_rows,)
    label : ndarray of shape (n_rows,) or None
        Classes.
    encoder : Encoder
        How columns became features.
    preparation : Preparation
        What was done to columns and rows.
    table : Table
        The rows that are used.
    clusters, weights : ndarray of shape (n_rows,) or None
        Persons, and weights with an average of 1.

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
    label: np.ndarray | None  # numbers if all classes are numbers, otherwise text; 0 and 1 with a positive class
    encoder: Encoder
    table: Table
    preparation: Preparation
    clusters: np.ndarray | None = None  # the person each row belongs to
    weights: np.ndarray | None = None

    @property
    def feature_names(self) -> list[str]:
        return self.encoder.feature_names

    @property
    def remarks(self) -> list[str]:
        """The preparation in words."""
        return self.preparation.remarks()

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
    min_level: float | None = None,
    clusters: str | None = None,
    weights: str | None = None,
    positive: str | None = None,
    merge_small: int = 0,
    impute: str | None = None,
) -> TableData:
    """Split a table into features, groups and label.

    Numeric columns are used unchanged, and text columns are one-hot encoded; their rare levels are pooled. Columns that
    are constant, mostly missing, count the rows or reveal the group are left out. Rows with a missing group, label or
    number are dropped. With several sensitive columns, the groups are the combinations of their values. The
    ``preparation`` of the result records what was done, and its ``remarks`` describe it.

    Parameters
    ----------
    table : Table
    sensitive : list of str
        Columns of groups.
    label : str, optional
        Column of classes.
    drop : list of str
        Columns to leave out.
    standardise : bool, default=True
    max_levels : int, default=100
        Largest number of different values of a text column.
    min_level : float, optional
        Levels of text columns with fewer rows are rare: a number of rows, or a share of them below 1. Default: 1 % of
        the rows or 30 rows, whichever is more; with fewer than 300 rows, a tenth of them. 0 pools nothing.
    clusters : str, optional
        Column that identifies persons.
    weights : str, optional
        Column of weights, which count like repeated rows; they are scaled to an average of 1.
    positive : str, optional
        The class that counts as positive; all others count as negative.
    merge_small : int, default=0
        Groups with fewer rows are merged as "other".
    impute : {"median"}, optional
        Replace missing numbers by the median of their column, with one more feature that says where, instead of
        dropping these rows.

    Returns
    -------
    TableData

    See Also
    --------
    read_table : Reads the file.
    stream_table : For files that do not fit into memory.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.tables import Table, prepare_table
    >>> city = np.array(["a", "b"] * 20, dtype=object)
    >>> columns = {"x": np.arange(40.0) % 7, "city": city, "sex": np.repeat([0.0, 1.0], 20)}
    >>> data = prepare_table(Table("people.csv", columns, ""), ["sex"])
    >>> data.feature_names
    ['x', 'city=a', 'city=b']
    """
    check_options(sensitive, label, min_level, positive, merge_small, impute)
    roles = Roles(tuple(sensitive), label, clusters, weights, tuple(drop))
    kept_tokens, table = _kept_tokens(table, roles.labels), table.for_labels(roles.labels)
    check_roles(table, roles)
    left_out: dict[str, str] = {}
    features = _usable(table, [name for name in table.columns if name not in roles.not_features], left_out)
    rows = _select_rows(table, roles, [] if impute else features, merge_small)
    check_group_counts(roles.sensitive, list(rows.counts), np.array(list(rows.counts.values())))
    target, classes = (None, ()) if label is None else _class_labels(rows.table, label, positive)
    least = rows_of_min_level(min_level, rows.table.n_rows)
    numeric, pools = _vary_within_groups(rows, features, max_levels, least, left_out)
    check_any_feature(table.name, [*numeric, *_encoded(pools)], roles.not_features, left_out)
    encoder = _encoder(rows, numeric, pools, impute=impute is not None)
    encoder = standardising(encoder, rows.table, rows.weights, least) if standardise else encoder
    preparation = Preparation(
        file=table.name, delimiter=table.delimiter, missing=table.missing.all, rows=table.n_rows, groups=rows.counts,
        numeric=encoder.numeric, levels=encoder.levels, standardised=standardise, not_features=roles.not_features,
        left_out=left_out, commas={name: table.commas[name] for name in numeric if name in table.commas},
        kept_tokens=kept_tokens, dropped=rows.dropped, min_level=least,
        pooled={name: pool for name, pool in pools.items() if pool.rare},
        imputed={name: Imputed(encoder.fills[name], _n_missing(rows.table, name)) for name in encoder.indicators},
        merged=rows.merged, label=label, classes=classes, weights=weights, zero_weights=rows.zero_weights,
    )  # fmt: skip
    persons = None if clusters is None else rows.table.columns[clusters]
    return TableData(
        encoder.encode(rows.table), rows.groups, target, encoder, rows.table, preparation, persons, rows.weights
    )


@dataclass(frozen=True)
class _Rows:
    """The rows that are used, with the group of each, and what happened to the others."""

    table: Table
    groups: np.ndarray
    weights: np.ndarray | None
    dropped: Dropped
    merged: dict[str, int]
    zero_weights: int

    @cached_property
    def counts(self) -> dict[str, int]:
        """Number of rows of each group."""
        found, counts = np.unique(self.groups, return_counts=True)
        return dict(zip(found.tolist(), counts.tolist(), strict=True))


def _kept_tokens(table: Table, labels: Sequence[str]) -> dict[str, dict[str, int]]:
    """Texts such as "None" in columns of groups and classes, and the number of their rows."""
    found = {name: Counter(table.as_label[name][0].tolist()) for name in labels if name in table.as_label}
    return {
        name: {text: count for text, count in counts.items() if str(text).lower() in KEPT_IN_LABELS}
        for name, counts in found.items()
    }


def _usable(table: Table, names: list[str], left_out: dict[str, str]) -> list[str]:
    """Columns that vary, are mostly non-missing and do not count the rows."""
    for name in without_row_index(names, table.row_index, left_out):
        column = table.values(name, "a feature")
        absent = is_missing(column)
        known = column[~absent]
        reason = unfit_reason(len(known), table.n_rows, varies=len(set(known.tolist())) > 1)
        if reason is None and column.dtype != object:
            reason = RowNumbers(name).add(column, absent if absent.any() else None).reason()
        if reason is not None:
            left_out[name] = reason
    return [name for name in names if name not in left_out]


def _select_rows(table: Table, roles: Roles, features: Sequence[str], merge_small: int) -> _Rows:
    """Leave out rows with a missing group, label or number, or of weight zero, and merge small groups."""
    numeric = [name for name in features if table.columns[name].dtype != object]
    labels = _group_labels(table, roles.sensitive)
    missing = {name: is_missing(table.columns[name]) for name in dict.fromkeys([*roles.needed, *numeric])}
    complete = ~np.logical_or.reduce(list(missing.values()))
    if not complete.any():
        raise no_complete_rows_error(table.name)
    weights = None if roles.weights is None else check_weights(table, roles.weights)
    used = complete if weights is None else complete & (weights > 0)
    merged = small_groups(Counter(labels[used].tolist()), merge_small)
    labels = np.array([OTHER_GROUP if label in merged else label for label in labels], dtype=object)
    lost = Counter(labels[~complete].tolist())
    dropped = Dropped(
        rows=int((~complete).sum()),
        by_column={name: int(absent.sum()) for name, absent in missing.items() if absent.any()},
        by_group={label: count for label, count in sorted(lost.items()) if label},
        without_group=lost[""],
    )
    kept = Table(
        table.name,
        {name: column[used] for name, column in table.columns.items()},
        table.sha256,
        written={name: table.written[name][used] for name in roles.needed if name in table.written},
    )
    weights = None if weights is None else weights[used] / weights[used].mean()
    zeros = int((complete & ~used).sum())
    return _Rows(kept, labels[used].astype(str), weights, dropped, merged, zeros)


def _group_labels(table: Table, sensitive: Sequence[str]) -> np.ndarray:
    """Group labels as text, empty where missing; several columns are joined by :func:`join_parts`."""
    columns = [table.labels(name, "the sensitive column") for name in sensitive]
    labels = np.array([join_parts(parts) for parts in zip(*columns, strict=True)], dtype=object)
    labels[np.logical_or.reduce([is_missing(table.columns[name]) for name in sensitive])] = ""
    return labels


def small_groups(counts: Mapping[str, int], least: int) -> dict[str, int]:
    """The groups with fewer rows than ``least``, to be merged, and their rows."""
    return {label: count for label, count in sorted(counts.items()) if count < least}


def _class_labels(table: Table, label: str, positive: str | None) -> tuple[np.ndarray, tuple[str, ...]]:
    texts = table.labels(label, "the label")
    check_few_classes(label, len(set(texts.tolist())))
    target, names = decided_classes(label, texts, sorted(set(texts.tolist())), positive)
    check_class_counts(label, names, np.unique(target, return_counts=True)[1])
    return target, names


def _vary_within_groups(
    rows: _Rows, features: list[str], max_levels: int, least: int, left_out: dict[str, str]
) -> tuple[list[str], dict[str, LevelPool]]:
    """The numeric columns, and the levels of the text columns, that vary and do not just encode the group."""
    columns = {name: rows.table.columns[name] for name in features}
    levels = {name: Counter(as_text(column).tolist()) for name, column in columns.items() if column.dtype == object}
    for name, counts in levels.items():
        check_levels(name, len(counts), max_levels)
    groups = np.unique(rows.groups, return_inverse=True, return_counts=True)[1:]
    left_out |= {name: reason for name, column in columns.items() if (reason := _redundancy(column, *groups))}
    pools = {name: pool_levels(counts, least) for name, counts in levels.items() if name not in left_out}
    left_out |= {name: ALL_RARE for name, pool in pools.items() if not pool.kept}
    numeric = [name for name in features if name not in levels and name not in left_out]
    for name in numeric:
        known = columns[name][np.isfinite(columns[name])]
        check_magnitude(rows.table.name, name, known)
    return numeric, pools


def _redundancy(column: np.ndarray, groups: np.ndarray, counts: np.ndarray) -> str | None:
    """Whether a column is constant or just encodes the group: the reason to leave it out."""
    values, codes = np.unique(column, return_inverse=True)
    if len(values) == 1 or (column.dtype != object and np.isfinite(values).sum() == 1):
        return CONSTANT  # once incomplete rows are dropped
    if column.dtype != object and len(values) > MAX_GROUPS:
        return None  # a measurement
    together = np.unique(codes.reshape(-1) * len(counts) + groups.reshape(-1))
    reveals = len(together) <= len(values) and exceeds_chance(len(values), counts)
    return REVEALS_GROUP if reveals else None


def _encoded(pools: Mapping[str, LevelPool]) -> dict[str, tuple[str, ...]]:
    return {name: pool.kept for name, pool in pools.items() if pool.kept}


def _encoder(rows: _Rows, numeric: list[str], pools: Mapping[str, LevelPool], *, impute: bool) -> Encoder:
    levels = _encoded(pools)
    columns = rows.table.columns
    return Encoder.plain(
        numeric,
        levels,
        pooled={name: tuple(pools[name].rare) for name in levels if pools[name].rare},
        fills={name: _median(columns[name], rows.weights) for name in numeric} if impute else {},
        indicators=[name for name in numeric if _n_missing(rows.table, name)],
    )


def _n_missing(table: Table, name: str) -> int:
    return int(is_missing(table.columns[name]).sum())


def _median(column: np.ndarray, weights: np.ndarray | None) -> float:
    """The median of the non-missing numbers; weights count like repeated rows."""
    known = np.isfinite(column)
    values, factors = column[known], np.ones(int(known.sum())) if weights is None else weights[known]
    order = np.argsort(values, kind="stable")
    shares = np.cumsum(factors[order])
    middle = [np.searchsorted(shares, shares[-1] / 2, side=side) for side in ("left", "right")]
    return float(np.mean(values[order][np.minimum(middle, len(values) - 1)]))
