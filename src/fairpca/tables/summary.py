"""Reduce a file larger than memory in one pass: the moments of all rows, and a random sample for what needs rows.

Columns and rows are handled as :func:`fairpca.tables.prepare_table` does in memory. Which columns are constant or
reveal the group, and the scales for standardising, are determined during the pass.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fairpca._progress import Report
from fairpca.moments import GroupMoments, moments_from_blocks
from fairpca.tables.arrow import open_arrow
from fairpca.tables.checking import (
    MAX_LEVELS,
    MIN_GROUP_ROWS,
    check_any_feature,
    check_class_counts,
    check_classes,
    check_group_counts,
    check_options,
    exceeds_chance,
    no_complete_rows_error,
)
from fairpca.tables.encoding import Encoder
from fairpca.tables.errors import Remedy, TableError
from fairpca.tables.labels import decided_classes
from fairpca.tables.missing import MissingTokens
from fairpca.tables.preparation import Preparation
from fairpca.tables.preparing import TableData
from fairpca.tables.rare import POOLED_LEVEL, LevelPool, pool_levels, rows_of_min_level
from fairpca.tables.reasons import ALL_RARE, CONSTANT, REVEALS_GROUP
from fairpca.tables.sampling import RowSample
from fairpca.tables.streaming import STREAM_NUMBERS, TableStream
from fairpca.tables.table import Table

__all__ = ["StreamedTable", "stream_table"]


@dataclass(frozen=True)
class StreamedTable(TableData):
    """``X``, ``groups`` and ``label`` are a random sample of the rows; ``moments`` are those of all of them.

    Attributes
    ----------
    X, groups, label, clusters, weights : ndarray or None
        Of the sample, as in :class:`TableData`.
    encoder, table, preparation : object
        As in :class:`TableData`.
    moments : GroupMoments
        Of all rows.

    See Also
    --------
    stream_table : Returns it.

    Examples
    --------
    >>> import os, tempfile
    >>> import pyarrow as pa
    >>> import pyarrow.parquet as pq
    >>> from fairpca.tables import stream_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "people.parquet")
    ...     columns = {"age": [31.5, 43, 31.5, 43] * 20, "hours": [20.5, 41, 41, 20.5] * 20, "sex": list("ffmm") * 20}
    ...     pq.write_table(pa.table(columns), path)
    ...     found = stream_table(path, "sex", sample_rows=40)
    >>> found.moments.total_count, found.X.shape
    (80.0, (40, 2))
    """

    moments: GroupMoments = field(kw_only=True)


def stream_table(
    path: str | os.PathLike,
    sensitive: str | Sequence[str],
    label: str | None = None,
    *,
    drop: str | Sequence[str] = (),
    standardise: bool = True,
    max_levels: int = MAX_LEVELS,
    min_level: float | None = None,
    positive: str | None = None,
    merge_small: int = 0,
    missing: MissingTokens | None = None,
    sample_rows: int = 0,
    seed: int = 0,
    progress: Report | None = None,
) -> StreamedTable:
    """Read a Parquet or Feather file batch by batch, with bounded memory, and keep its moments.

    Parameters
    ----------
    path : path
        The file. Text columns are one-hot encoded, which takes one more pass over these columns.
    sensitive : str or list of str
        The column or columns that define the groups; with several, the groups are the combinations that occur.
    label : str, optional
        A column with the class of each row; it is not a feature.
    drop : str or list of str
        Columns to leave out.
    standardise : bool
        Whether to divide each feature by its standard deviation over all rows.
    max_levels : int
        The largest number of different values that a text column may have.
    min_level, positive, merge_small
        As in :func:`prepare_table`; merging groups takes one more pass.
    missing : MissingTokens, optional
        Texts and numbers that mean a missing value; only those that were added to the usual ones count.
    sample_rows : int
        How many rows to draw at random for ``X``, ``groups`` and ``label``; all rows are equally likely.
    seed : int
        Random seed of the sample; the same seed draws the same rows, however the file is divided into batches.
    progress : callable, optional
        Called as ``progress(rows_done, total_rows, step)``.

    Returns
    -------
    StreamedTable
        The moments of all rows, and a sample of the rows.

    See Also
    --------
    read_table, prepare_table : For files that fit into memory.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np, pyarrow, pyarrow.parquet
    >>> from fairpca import FairPCA
    >>> from fairpca.tables import stream_table
    >>> rng = np.random.default_rng(0)
    >>> columns = {"height": rng.normal(size=60), "weight": rng.normal(size=60), "sex": ["f", "m"] * 30}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = os.path.join(folder, "people.parquet")
    ...     pyarrow.parquet.write_table(pyarrow.table(columns), file)
    ...     people = stream_table(file, "sex")
    >>> people.feature_names, people.moments.counts.tolist()
    (['height', 'weight'], [30.0, 30.0])
    >>> FairPCA(1).fit_moments(people.moments).components_.shape
    (1, 2)
    """
    sensitive = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    drop = [drop] if isinstance(drop, str) else list(drop)
    check_options(sensitive, label, min_level, positive, merge_small, None)
    stream = TableStream(
        open_arrow(path), sensitive, label,
        drop=drop, max_levels=max_levels, merge_small=merge_small, missing=missing, progress=progress,
    )  # fmt: skip
    moments, sample = _reduce(stream, sample_rows, seed)
    check_group_counts(sensitive, moments.labels, moments.counts)
    classes = () if label is None else _classes(label, stream, positive)
    least = rows_of_min_level(min_level, round(moments.total_count))
    columns = _columns(stream, moments, least)
    encoder = columns.encoder()
    stream.check_magnitudes(encoder.numeric)
    moments, encoder = _standardise(moments.sum_columns(columns.parts), encoder, standardise)
    preparation = Preparation(
        file=stream.file.name, missing=stream.missing.all, rows=stream.file.n_rows,
        groups={label: round(count) for label, count in zip(moments.labels, moments.counts, strict=True)},
        numeric=encoder.numeric, levels=encoder.levels, standardised=standardise,
        not_features=stream.roles.not_features, left_out=stream.left_out, dropped=stream.dropped, min_level=least,
        pooled={name: pool for name, pool in columns.pools.items() if pool.rare}, merged=stream.merged,
        label=label, classes=classes,
    )  # fmt: skip
    if not sample_rows:
        nothing = np.zeros((0, len(encoder.offsets))), np.zeros(0, dtype=str), None
        return StreamedTable(*nothing, encoder, Table(stream.file.name, {}, ""), preparation, moments=moments)
    X, groups, target = _sampled(stream, sample, moments, positive)
    sampled = (
        f"read batch by batch; a random sample of {len(X):,} of {moments.total_count:,.0f} rows (seed {seed}) is "
        "used where rows are needed"
    )
    X = (columns.combine(X) - encoder.offsets) / encoder.scales
    table = Table(stream.file.name, {}, stream.file.sha256())
    return StreamedTable(X, groups, target, encoder, table, replace(preparation, sampled=sampled), moments=moments)


def _reduce(stream: TableStream, sample_rows: int, seed: int) -> tuple[GroupMoments, RowSample]:
    """Moments and a sample of the complete rows: those without a missing value in any column that may be a feature."""
    while True:
        names = stream.encoder.feature_names
        # No more rows than would be read into memory anyway.
        sample = RowSample(min(sample_rows, max(STREAM_NUMBERS // len(names), 1)), seed)
        stream.find_small_groups()
        moments = moments_from_blocks(sample.watch(stream.blocks()), names)
        if not stream.leave_out_unfit():
            break
    if not moments.labels:
        raise no_complete_rows_error(stream.file.name)
    return moments, sample


def _classes(label: str, stream: TableStream, positive: str | None) -> tuple[str, ...]:
    """The classes of all rows, in ascending order."""
    found = sorted(stream.class_counts)
    texts = np.array(found, dtype=object)
    codes, names = decided_classes(label, texts, found, positive)
    counts = [sum(stream.class_counts[text] for text in texts[codes == code]) for code in np.unique(codes)]
    check_class_counts(label, names, np.array(counts))
    return names


def _sampled(
    stream: TableStream, sample: RowSample, moments: GroupMoments, positive: str | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Features, groups and classes of the sampled rows."""
    X, groups, texts = sample.rows()
    label = stream.roles.label
    if texts is None or label is None:
        _check_sample(moments, groups, None, None)
        return X, groups, None
    classes, names = decided_classes(label, texts, sorted(stream.class_counts), positive)
    # All classes but the positive one count as one.
    _check_sample(moments, groups, label, texts if positive is None else np.where(classes == 1, names[-1], names[0]))
    return X, groups, classes


@dataclass(frozen=True)
class _Columns:
    """Features made of the stream's columns: numeric ones, and levels, each the sum of one or more indicators."""

    numeric: list[str]
    pools: dict[str, LevelPool]
    parts: list[list[int]]

    def encoder(self) -> Encoder:
        levels = {name: pool.kept for name, pool in self.pools.items() if pool.kept}
        pooled = {name: tuple(self.pools[name].rare) for name in levels if self.pools[name].rare}
        return Encoder.plain(self.numeric, levels, pooled=pooled)

    def combine(self, X: np.ndarray) -> np.ndarray:
        """The features of rows of the stream."""
        combined = X[:, [part[0] for part in self.parts]]
        for j, part in enumerate(self.parts):
            if len(part) > 1:
                combined[:, j] = X[:, part].sum(axis=1)
        return combined


def _columns(stream: TableStream, moments: GroupMoments, least: int) -> _Columns:
    """Features that vary and do not reveal the group; why others are left out is added to the stream."""
    left_out = stream.left_out
    left_out |= stream.row_number_columns()
    found = _Columns([], {}, [])
    for j, name in enumerate(stream.encoder.numeric):
        values = stream.few_values.get(name)
        if name in left_out:
            continue
        if values is not None and len(values) == 1:
            left_out[name] = CONSTANT
        elif values is not None and exceeds_chance(len(values), moments.counts):
            left_out[name] = REVEALS_GROUP
        else:
            found.numeric.append(name)
            found.parts.append([j])
    start = len(stream.encoder.numeric)
    for name, levels in stream.encoder.levels.items():
        positions = np.arange(start, start + len(levels))
        start += len(levels)
        counts = np.rint(moments.means[:, positions] * moments.counts[:, None])  # levels are zeros and ones
        reason = _add_levels(found, name, levels, positions, counts, moments.counts, least)
        left_out |= {} if reason is None else {name: reason}
    check_any_feature(stream.file.name, found.parts, stream.roles.not_features, left_out)
    return found


def _add_levels(
    found: _Columns,
    name: str,
    levels: Sequence[str],
    positions: np.ndarray,
    counts: np.ndarray,
    sizes: np.ndarray,
    least: int,
) -> str | None:
    """Add the levels of a column, or return the reason to leave it out; ``counts`` has the rows per group and level."""
    totals = counts.sum(axis=0).astype(int)
    present = {level: int(total) for level, total in zip(levels, totals, strict=True) if total}
    if len(present) == 1:
        return CONSTANT
    if (np.count_nonzero(counts, axis=0) <= 1).all() and exceeds_chance(len(present), sizes):
        return REVEALS_GROUP
    pool = found.pools[name] = pool_levels(present, least)
    position = dict(zip(levels, positions.tolist(), strict=True))
    for level in pool.kept:
        pooled = [*([level] if level in present and level not in pool.rare else []), *pool.rare]
        found.parts.append([position[text] for text in (pooled if level == POOLED_LEVEL else [level])])
    return None if pool.kept else ALL_RARE


def _standardise(moments: GroupMoments, encoder: Encoder, standardise: bool) -> tuple[GroupMoments, Encoder]:
    if not standardise:
        return moments, encoder
    deviations = np.sqrt(moments.pooled_variances())
    scales = np.where(deviations > 0, deviations, 1.0)
    offsets = moments.pooled_mean
    return moments.standardised(offsets, scales), replace(encoder, offsets=offsets, scales=scales)


def _check_sample(moments: GroupMoments, groups: np.ndarray, label: str | None, classes: np.ndarray | None) -> None:
    for group in moments.labels:
        count = int((groups == group).sum())
        if count < MIN_GROUP_ROWS:
            raise TableError(
                f"Group {group!r} has {count} rows in the random sample of {len(groups):,}",
                Remedy("draw more rows", "sample_rows"),
                Remedy("merge it with others", "merge_small"),
            )
    if label is not None and classes is not None:
        check_classes(label, classes)
