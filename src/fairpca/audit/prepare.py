"""From record batches to features, groups, label, weights and persons, with a record of how columns and rows were used.

Every pass over a table yields blocks of rows that lack nothing. A first look at the columns of text (the survey) says
what they hold. Then one pass gives what is needed of all rows: their moments, or the rows themselves if these are few,
and the counts from which it follows which columns are features. If rows were dropped because of a numeric column that
is then left out, the pass is repeated without it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fairpca._progress import Report
from fairpca._validation import check_choice, check_number
from fairpca.audit.checks import MAX_LEVELS, Roles, check_class_counts, check_group_counts, dropped_columns
from fairpca.audit.errors import Remedy, TableError
from fairpca.audit.features import candidates, chosen, decided_classes, notes, parts
from fairpca.audit.preparation import Preparation
from fairpca.audit.rare import check_min_level, rows_of_min_level
from fairpca.audit.read import read_table
from fairpca.audit.rows import GROUPS, Pass, Rows
from fairpca.audit.sample import RowSample
from fairpca.audit.table import Table, silent
from fairpca.moments import AttributeMoments, GroupMoments
from fairpca.moments._streams import moments_from_blocks

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
    sensitive = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
    if not sensitive:
        raise TableError("No sensitive column was given", Remedy("name at least one", "sensitive"))
    check_min_level(min_level)
    check_number("merge_small", merge_small, at_least=0, integer=True)
    if positive is not None and label is None:
        problem = f"The positive class {positive!r} was given without a label"
        raise TableError(problem, Remedy("name the column of classes", "label"))
    if impute is not None:
        check_choice("impute", impute, ("median",))
    table = data if isinstance(data, Table) else read_table(data)
    dropped = dropped_columns(table, [drop] if isinstance(drop, str) else drop)
    roles = Roles(sensitive, label, clusters, weights, dropped, tuple(continuous), merge or {})
    roles.check(table)
    columns, record = candidates(table, roles, max_levels, progress or silent)
    if table.n_rows == 0:
        raise TableError(f"{table.name} has no rows")
    if stream is None:
        stream = (table.n_rows or 0) * len(table.types) > STREAM_NUMBERS
    record = replace(record, standardised=standardise)
    passing = partial(Pass, table, roles, columns, progress=progress or silent, impute=impute is not None)
    rows, found, moments = _read(passing, record, impute is not None, stream, merge_small, sample_rows, seed)

    groups, n_rows = dict(sorted(rows.group_rows.items())), rows.group_rows.total()
    check_group_counts(roles, groups)
    values, classes = decided_classes(label, rows.class_rows, positive)
    record = replace(
        chosen(rows, rows_of_min_level(min_level, n_rows)), rows=rows.n_rows, groups=groups, classes=classes,
        dropped=rows.dropped, zero_weights=rows.zero_weights,
    )  # fmt: skip
    X = record.features(found, rows.levels(found))
    factors = None if weights is None else found[weights] / found[weights].mean()
    if moments is None:
        means = np.average(X, axis=0, weights=factors)
        variances = np.average((X - means) ** 2, axis=0, weights=factors)
    else:
        moments = moments.sum_columns(parts(record, rows.record, len(continuous)))
        if weights is not None:
            factor = n_rows / moments.total_count  # so that the average is 1
            moments = replace(moments, counts=moments.counts * factor, scatters=moments.scatters * factor)
        means, variances = moments.pooled_mean[: X.shape[1]], moments.pooled_variances()[: X.shape[1]]
    # The indicator of a few missing values keeps its own units, so that a handful of rows cannot dominate.
    few = [level is not None and record.imputed.get(name, n_rows) < record.min_level for name, level in record.keys]
    scales = np.where((variances > 0) & ~np.array(few), np.sqrt(variances), 1.0)
    if not standardise:
        means, scales = np.zeros_like(means), np.ones_like(scales)
    sampled = (
        f"read batch by batch; a random sample of {len(X):,} of {n_rows:,} rows (seed {seed}) is used where rows are "
        "needed"
    )
    record = replace(
        record, notes=tuple(notes(rows, record, found)), sampled=sampled if stream and sample_rows else "",
        offsets=tuple(means.tolist()), scales=tuple(scales.tolist()),
    )  # fmt: skip
    if moments is not None:
        others = np.zeros(len(continuous))
        moments = moments.standardised(np.r_[means, others], np.r_[scales, others + 1])
    if stream and not sample_rows:
        X, found = X[:0], {name: values[:0] for name, values in found.items()}
    X -= means
    X /= scales
    names = np.array(list(rows.ids[GROUPS].of))[found[GROUPS]]
    # Texts that only occur in rows that are not used have no value.
    y = None if label is None else np.array([values.get(text, classes[0]) for text in rows.ids[label].of])[found[label]]
    if record.sampled:
        check_group_counts(roles, {group: int((names == group).sum()) for group in groups}, len(X))
        if label is not None and y is not None:
            check_class_counts(label, Counter(y.tolist()))
    return Prepared(
        X, names, y, None if clusters is None else found[clusters], None if factors is None else factors[: len(X)],
        AttributeMoments(roles.continuous, moments) if moments is not None and continuous else moments,
        record, table, {name: found[name] for name in continuous},
    )  # fmt: skip


def _read(
    passing: Callable[[Preparation], Pass],
    record: Preparation,
    impute: bool,
    streamed: bool,
    merge_small: int,
    sample_rows: int,
    seed: int,
) -> tuple[Pass, dict[Any, np.ndarray], GroupMoments | None]:
    """The rows, or a sample of them and the moments of all features.

    If small groups are to be merged, or gaps to be filled in, a first pass says which, and by what.
    """
    moments = None
    for first in [True, False] if merge_small or impute else [False]:
        # No more rows than would be read into memory anyway.
        most = max(STREAM_NUMBERS // len(record.keys), 1)
        wanted = most if first and impute else min(sample_rows or _ROWS_FOR_NOTES, most)
        rows, sample = passing(record), RowSample(wanted if streamed else None, seed)
        blocks = map(sample.add, rows)
        if streamed and not first:
            moments = moments_from_blocks(map(rows.block, blocks), [*record.feature_names, *rows.roles.continuous])
        else:
            deque(blocks, maxlen=0)
        if not rows.group_rows:
            remedy = Remedy("drop the columns with the most", "drop")
            raise TableError(f"Every row of {record.file} has a missing value", "fill them in", remedy)
        if first:
            small = {label: count for label, count in sorted(rows.group_rows.items()) if count < merge_small}
            gaps = {name: count for name, count in rows.missing.items() if count}
            fills = _medians(sample.rows(), record.numeric, record.weights) if impute else {}
            record = replace(record, merged=small, fills=fills, imputed=gaps)
    return rows, sample.rows(), moments


def _medians(rows: Rows, names: Sequence[str], weights: str | None) -> dict[str, float]:
    """The medians of the non-missing numbers; weights count like repeated rows."""
    found = {}
    for name in names:
        order, known = np.argsort(rows[name]), np.isfinite(rows[name])
        shares = np.cumsum((known if weights is None else np.where(known, rows[weights], 0))[order])
        middle = [np.searchsorted(shares, shares[-1] / 2, side=side) for side in ("left", "right")]
        found[name] = float(np.nan_to_num(rows[name][order][np.minimum(middle, len(order) - 1)].mean()))
    return found
