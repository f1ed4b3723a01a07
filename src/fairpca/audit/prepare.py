"""From record batches to features, groups, label, weights and persons, with a record of how columns and rows were used.

Every pass over a table yields blocks of rows that lack nothing. A first look at the columns of text (the survey) says
what they hold. Then one pass gives what is needed of all rows: their moments, or the rows themselves if these are few,
and the counts from which it follows which columns are features. If rows were dropped because of a numeric column that
is then left out, the pass is repeated without it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairpca._progress import Report
from fairpca._validation import groups_from_codes
from fairpca.audit.checks import (
    MAX_GROUPS,
    MAX_LEVELS,
    MIN_GROUP_ROWS,
    Roles,
    check_class_counts,
    check_few_classes,
    check_group_counts,
    check_options,
    no_complete_rows_error,
)
from fairpca.audit.errors import Remedy, TableError
from fairpca.audit.features import Features, kept_tokens, notes
from fairpca.audit.preparation import Imputed, Preparation
from fairpca.audit.rare import rows_of_min_level
from fairpca.audit.read import read_table
from fairpca.audit.rows import GROUPS, MOST_SMALL_GROUPS, Pass, Plan, Rows
from fairpca.audit.sample import RowSample
from fairpca.audit.table import Table, silent
from fairpca.audit.texts import decided_classes
from fairpca.moments import AttributeMoments, GroupMoments
from fairpca.moments._streams import RowBlock, moments_from_blocks

__all__ = ["STREAM_NUMBERS", "Prepared", "prepare"]

#: Tables of more numbers (rows x columns) than this are streamed: in memory, a few copies would take a gigabyte.
STREAM_NUMBERS = 20_000_000
#: Rows of a streamed table to look at if no sample is wanted.
_ROWS_FOR_NOTES = 1000


@dataclass(frozen=True)
class Prepared:
    """Rows as features, groups and label, and the ``preparation`` by which they were obtained from the table.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
        All rows that are used; if ``moments`` is given, a random sample of them.
    groups : ndarray of shape (n_rows,)
    label : ndarray of shape (n_rows,) or None
        Classes: numbers if all classes are numbers, otherwise text; 0 and 1 with a positive class.
    clusters, weights : ndarray of shape (n_rows,) or None
        Persons, and weights with an average of 1.
    moments : GroupMoments, AttributeMoments or None
        Of all rows of a streamed table.
    continuous : dict of str to ndarray
        Values of the continuous sensitive columns.
    preparation : Preparation
        What was done to columns and rows.
    table : Table
        What was read.

    See Also
    --------
    prepare : Returns it.

    Examples
    --------
    >>> from fairpca.audit import prepare
    >>> people = {"age": [30, 41, 52] * 20, "hours": [40] * 60, "sex": ["f", "m"] * 30}
    >>> prepare(people, "sex").feature_names
    ['age']
    """

    X: np.ndarray
    groups: np.ndarray
    label: np.ndarray | None
    clusters: np.ndarray | None
    weights: np.ndarray | None
    moments: GroupMoments | AttributeMoments | None
    preparation: Preparation
    table: Table
    continuous: dict[str, np.ndarray]

    @property
    def feature_names(self) -> list[str]:
        return self.preparation.feature_names

    @property
    def remarks(self) -> list[str]:
        """The preparation in words."""
        return self.preparation.remarks()

    @property
    def n_rows(self) -> int:
        """Number of rows that are used."""
        return sum(self.preparation.groups.values())

    @property
    def class_codes(self) -> np.ndarray | None:
        """The label encoded as 0, 1, ... in sorted order, because classifiers reject fractional class labels."""
        return None if self.label is None else np.unique(self.label, return_inverse=True)[1].reshape(-1)


def prepare(
    data: Any,
    sensitive: str | Sequence[str],
    label: str | None = None,
    *,
    drop: str | Sequence[str] = (),
    standardise: bool = True,
    max_levels: int = MAX_LEVELS,
    min_level: float | None = None,
    clusters: str | None = None,
    weights: str | None = None,
    positive: str | None = None,
    merge: Mapping[str, str] | None = None,
    merge_small: int = 0,
    impute: str | None = None,
    continuous: Sequence[str] = (),
    stream: bool | None = None,
    sample_rows: int = 0,
    seed: int = 0,
    progress: Report | None = None,
) -> Prepared:
    """Split a table into features, groups and label.

    Numeric columns are used unchanged, and text columns are one-hot encoded; their rare levels are pooled. Columns that
    are constant, mostly missing, count the rows or reveal the group are left out. Rows with a missing group, label or
    number are dropped. With several sensitive columns, the groups are the combinations of their values. The
    ``preparation`` of the result records what was done, and its ``remarks`` describe it.

    Parameters
    ----------
    data : Table, path, or data frame
        As in :func:`read_table`.
    sensitive : str or list of str
        Columns of groups.
    label : str, optional
        Column of classes.
    drop : str or list of str
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
    merge : dict of str to str, optional
        Values of sensitive columns to be replaced by others, such as ``{"f": "F"}``.
    merge_small : int, default=0
        Groups with fewer rows are merged as "other".
    impute : {"median"}, optional
        Replace missing numbers by the median of their column, with one more feature that says where, instead of
        dropping these rows.
    continuous : list of str
        Further sensitive columns that hold measurements, such as age; they are no features, and no groups.
    stream : bool, optional
        Whether to keep the moments of all rows and a sample instead of the rows. Default: for more than 20 million
        values.
    sample_rows : int, default=0
        How many rows of a streamed table to draw at random for ``X``, ``groups`` and ``label``.
    seed : int, default=0
        Random seed of the sample; the same seed draws the same rows, however the table is divided into batches.
    progress : callable, optional
        Called as ``progress(done, total, step)``.

    Returns
    -------
    Prepared

    See Also
    --------
    read_table : Opens a file.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.audit import prepare
    >>> people = {"x": np.arange(40.0) % 7, "city": ["a", "b"] * 20, "sex": ["f"] * 20 + ["m"] * 20}
    >>> prepare(people, "sex").feature_names
    ['x', 'city=a', 'city=b']
    """
    sensitive = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    check_options(sensitive, label, min_level, positive, merge_small, impute)
    table = data if isinstance(data, Table) else read_table(data)
    dropped = [drop] if isinstance(drop, str) else list(drop)
    roles = Roles.of(
        table, sensitive, dropped, label=label, clusters=clusters, weights=weights, merge=merge or {},
        continuous=tuple(continuous),
    )  # fmt: skip
    plan = Plan.of(table, roles, max_levels, progress or silent)
    if table.n_rows == 0:
        raise TableError(f"{table.name} has no rows")
    large = (table.n_rows or 0) * len(table.types) > STREAM_NUMBERS
    plan = replace(plan, impute=impute is not None)
    study = _Study(plan, merge_small, large if stream is None else stream, sample_rows, seed)
    study.run()
    return study.prepared(standardise, min_level, positive)


class _Study:
    """The passes over a table, and the result."""

    def __init__(self, plan: Plan, merge_small: int, streamed: bool, sample_rows: int, seed: int) -> None:
        self.plan, self._merge_small, self._streamed, self._seed = plan, merge_small, streamed, seed
        self._sample_rows = sample_rows
        self.moments: GroupMoments | None = None

    def run(self) -> None:
        """Read the rows until no row is dropped for a column that is not a feature."""
        unfit: Mapping[str, str] = {}
        while True:
            self.plan = self.plan.without(unfit)
            if self._merge_small or self.plan.impute:
                self._count_first()
            self.rows = Pass(self.plan, MOST_SMALL_GROUPS if self._merge_small or not self._streamed else MAX_GROUPS)
            # No more rows than would be read into memory anyway.
            most = max(STREAM_NUMBERS // len(self.plan.raw_features), 1)
            self.sample = self._sample(min(self._sample_rows or _ROWS_FOR_NOTES, most))
            blocks = self._sampled_blocks()
            if self._streamed:
                self.moments = moments_from_blocks(map(self._row_block, blocks), self.plan.raw_features)
            else:
                deque(blocks, maxlen=0)
            if not (unfit := self.rows.unfit()):
                break
        if not self.rows.group_rows:
            if self.rows.zero_weights:
                problem = f"The weights {self.plan.roles.weights!r} of {self.plan.table.name} are zero in every row"
                raise TableError(problem, Remedy("name another column", "weights"))
            raise no_complete_rows_error(self.plan.table.name)

    def _sample(self, size: int) -> RowSample:
        return RowSample(size if self._streamed else None, self._seed)

    def _count_first(self) -> None:
        """Take a pass to find the groups to be merged, and the medians."""
        plan = self.plan = replace(self.plan, merged={}, fills={}, indicators=())
        first, fills = Pass(plan, MOST_SMALL_GROUPS), {}
        sample = self._sample(max(STREAM_NUMBERS // max(len(plan.numeric), 1), 1))
        for rows in first:
            if plan.impute:
                sample.add({name: rows[name] for name in (*plan.numeric, plan.roles.weights or GROUPS)})
        if plan.impute and first.group_rows:
            found = sample.rows()
            weights = None if plan.roles.weights is None else found[plan.roles.weights]
            fills = {name: _median(found[name], weights) for name in plan.numeric}
        self.plan = replace(
            plan, fills=fills, indicators=tuple(name for name in fills if first.missing[name]),
            merged={label: count for label, count in sorted(first.group_rows.items()) if count < self._merge_small},
        )  # fmt: skip

    def _sampled_blocks(self) -> Iterator[Rows]:
        for rows in self.rows:
            self.sample.add(rows)
            yield rows

    def _row_block(self, rows: Rows) -> RowBlock:
        """The features of all levels; what is too large to be summed may still turn out to be no feature."""
        plan, roles = self.plan, self.plan.roles
        filled = [
            np.zeros_like(rows[name]) if name in self.rows.too_large
            else np.where(np.isnan(rows[name]), plan.fills[name], rows[name]) if name in plan.fills else rows[name]
            for name in plan.numeric
        ]  # fmt: skip
        filled += [np.isnan(rows[name]).astype(np.float32) for name in plan.indicators]
        for name, levels in plan.levels.items():
            filled += [(rows[name] == position).astype(np.float32) for position in range(len(levels))]
        groups = groups_from_codes(rows[GROUPS], self.rows.ids[GROUPS].labels)
        weights = None if roles.weights is None else rows[roles.weights]
        return RowBlock([*filled, *(rows[name] for name in roles.continuous)], groups, weights)

    def prepared(self, standardise: bool, min_level: float | None, positive: str | None) -> Prepared:
        plan, rows = self.plan, self.rows
        counts = dict(sorted(rows.group_rows.items()))
        check_group_counts(plan.roles.sensitive, counts)
        values, classes = self._decided(positive)
        least = rows_of_min_level(min_level, sum(counts.values()))
        features = Features.of(plan, rows, least)
        numeric = features.numeric
        preparation = Preparation(
            file=plan.table.name, delimiter=plan.table.delimiter, missing=plan.table.missing.all, rows=rows.n_rows,
            groups=counts, numeric=tuple(numeric), levels=features.levels, standardised=standardise,
            not_features=plan.roles.not_features, left_out=plan.left_out | features.left_out,
            commas={name: commas for name in numeric if (commas := plan.columns[name].commas)},
            kept_tokens=kept_tokens(plan), dropped=rows.dropped, min_level=least,
            pooled={name: pool for name, pool in features.pools.items() if pool.rare},
            imputed={name: Imputed(plan.fills[name], rows.missing[name])
                     for name in plan.indicators if name in numeric},
            merged=plan.merged, label=plan.roles.label, classes=classes, weights=plan.roles.weights,
            zero_weights=rows.zero_weights, fills={name: fill for name, fill in plan.fills.items() if name in numeric},
        )  # fmt: skip
        return self._result(preparation, features, values)

    def _decided(self, positive: str | None) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The value of each class, and their names in ascending order."""
        label, found = self.plan.roles.label, sorted(self.rows.class_rows)
        if label is None:
            return {}, ()
        check_few_classes(label, len(found))
        values, names = decided_classes(label, found, positive)
        rows = Counter[Any]()
        for text, value in zip(found, values.tolist(), strict=True):
            rows[value] += self.rows.class_rows[text]
        check_class_counts(label, dict(zip(names, (rows[value] for value in sorted(rows)), strict=True)))
        return dict(zip(found, values.tolist(), strict=True)), names

    def _result(self, preparation: Preparation, features: Features, values: dict[str, Any]) -> Prepared:
        plan, roles, moments, rows = self.plan, self.plan.roles, self.moments, self.sample.rows()
        X = preparation.features(rows, {name: (rows[name], levels) for name, levels in plan.levels.items()})
        weights = None if roles.weights is None else rows[roles.weights] / rows[roles.weights].mean()
        if moments is not None:
            if weights is not None:
                factor = self.rows.group_rows.total() / moments.total_count
                moments = replace(moments, counts=moments.counts * factor, scatters=moments.scatters * factor)
            first = len(plan.raw_features) - len(roles.continuous)
            moments = moments.sum_columns([*features.parts, *([first + j] for j in range(len(roles.continuous)))])
        means, deviations = _of_rows(X, weights) if moments is None else _of_moments(moments, X.shape[1])
        if not preparation.standardised:
            means, deviations = np.zeros_like(means), np.zeros_like(means)
        scales = np.where(deviations > 0, deviations, 1.0)
        # The indicator of a few missing values keeps its own units, so that a handful of rows cannot dominate.
        rare = [self.rows.missing[name] < preparation.min_level for name in preparation.imputed]
        scales[len(scales) - len(rare) :][rare] = 1.0
        preparation = replace(
            preparation, notes=tuple(notes(self.rows, preparation, rows)), offsets=tuple(means.tolist()),
            scales=tuple(scales.tolist()), sampled=self._sampled(len(X)),
        )  # fmt: skip
        label = self._classes(values, rows) if values else None
        groups = np.array(self.rows.ids[GROUPS].labels)[rows[GROUPS]]
        joint = None if moments is None else _joint(moments, means, scales, roles.continuous)
        if joint is not None and not self._sample_rows:
            return Prepared(X[:0], groups[:0], None, None, None, joint, preparation, plan.table, {})
        if joint is not None:
            _check_sample(preparation, groups, label)
        X -= means
        X /= scales
        persons = None if roles.clusters is None else rows[roles.clusters]
        continuous = {name: rows[name] for name in roles.continuous}
        return Prepared(X, groups, label, persons, weights, joint, preparation, plan.table, continuous)

    def _classes(self, values: dict[str, Any], rows: Rows) -> np.ndarray:
        """The class of each row; texts that only occur in rows that are not used have none."""
        found, label = list(values), self.plan.roles.label
        position = [found.index(text) if text in values else 0 for text in self.rows.ids[label].labels]
        return np.array(list(values.values()))[np.array(position)[rows[label]]]

    def _sampled(self, count: int) -> str:
        if not self._streamed or not self._sample_rows:
            return ""
        return (
            f"read batch by batch; a random sample of {count:,} of {self.rows.group_rows.total():,} rows (seed "
            f"{self._seed}) is used where rows are needed"
        )


def _of_rows(X: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each feature."""
    means = X.mean(axis=0) if weights is None else weights @ X / weights.sum()
    deviations = X.std(axis=0) if weights is None else np.sqrt(weights @ (X - means) ** 2 / weights.sum())
    return means, deviations


def _of_moments(moments: GroupMoments, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    return moments.pooled_mean[:n_features], np.sqrt(moments.pooled_variances()[:n_features])


def _joint(
    moments: GroupMoments, means: np.ndarray, scales: np.ndarray, continuous: tuple[str, ...]
) -> GroupMoments | AttributeMoments:
    """The moments of the standardised features, with those of continuous sensitive columns if there are any."""
    others = np.zeros(len(continuous))
    moments = moments.standardised(np.r_[means, others], np.r_[scales, others + 1])
    return AttributeMoments(continuous, moments) if continuous else moments


def _median(column: np.ndarray, weights: np.ndarray | None) -> float:
    """The median of the non-missing numbers; weights count like repeated rows."""
    known = np.isfinite(column)
    values, factors = column[known], np.ones(int(known.sum())) if weights is None else weights[known]
    if not len(values):
        return 0.0
    order = np.argsort(values, kind="stable")
    shares = np.cumsum(factors[order])
    middle = [np.searchsorted(shares, shares[-1] / 2, side=side) for side in ("left", "right")]
    return float(np.mean(values[order][np.minimum(middle, len(values) - 1)]))


def _check_sample(preparation: Preparation, groups: np.ndarray, label: np.ndarray | None) -> None:
    for group in preparation.groups:
        count = int((groups == group).sum())
        if count < MIN_GROUP_ROWS:
            raise TableError(
                f"Group {group!r} has {count} rows in the random sample of {len(groups):,}",
                Remedy("draw more rows", "sample_rows"),
                Remedy("merge it with others", "merge_small"),
            )
    if label is not None and preparation.label is not None:
        found = np.unique(label, return_counts=True)[1].tolist()
        check_class_counts(preparation.label, dict(zip(preparation.classes, found, strict=False)))
