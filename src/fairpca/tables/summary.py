"""Reduce a file larger than memory in one pass: the moments of all rows, and a random sample for what needs rows.

Columns and rows are handled as :func:`fairpca.tables.prepare_table` does in memory. Which columns are constant or
reveal the group, and the scales for standardising, are determined during the pass.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fairpca._progress import Report
from fairpca.moments import GroupMoments, moments_from_blocks
from fairpca.tables.arrow import open_arrow
from fairpca.tables.checking import (
    MAX_LEVELS,
    MIN_GROUP_ROWS,
    check_class_counts,
    check_classes,
    check_group_counts,
    exceeds_chance,
    no_complete_rows_error,
)
from fairpca.tables.encoding import Encoder
from fairpca.tables.errors import Remedy, TableError
from fairpca.tables.labels import class_values
from fairpca.tables.preparing import TableData
from fairpca.tables.remarks import constant_remark, copy_remark, describe_columns, dropped_remark
from fairpca.tables.sampling import RowSample
from fairpca.tables.streaming import STREAM_NUMBERS, TableStream
from fairpca.tables.table import Table

__all__ = ["StreamedTable", "stream_table"]


@dataclass(frozen=True)
class StreamedTable(TableData):
    """``X``, ``groups`` and ``label`` are a random sample of the rows; ``moments`` are those of all of them.

    See Also
    --------
    stream_table : Returns it.
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
    stream = TableStream(open_arrow(path), sensitive, label, drop=drop, max_levels=max_levels, progress=progress)
    moments, sample = _reduce(stream, sample_rows, seed)
    check_group_counts(sensitive, moments.labels, moments.counts)
    if label is not None:
        names, counts = zip(*sorted(stream.class_counts.items()), strict=True)
        check_class_counts(label, np.array(names), np.array(counts))
    kept = _usable_columns(stream, moments)
    encoder = _chosen(stream.encoder, kept)
    stream.check_magnitudes(encoder.numeric)
    moments, encoder = _standardise(moments.select(kept), encoder, standardise)
    remarks = _remarks(stream)
    describe_columns(encoder, [*sensitive, *([label] if label else []), *drop], standardise, remarks)
    if not sample_rows:
        nothing = np.zeros((0, len(kept))), np.zeros(0, dtype=str), None
        return StreamedTable(*nothing, encoder, Table(stream.file.name, {}, ""), remarks, moments=moments)
    X, groups, classes = sample.rows()
    _check_sample(moments, groups, label, classes)
    classes = classes if classes is None else class_values(classes)
    remarks.append(
        f"read batch by batch; a random sample of {len(X):,} of {moments.total_count:,.0f} rows (seed {seed}) is "
        "used where rows are needed"
    )
    X = (X[:, kept] - encoder.offsets) / encoder.scales
    table = Table(stream.file.name, {}, stream.file.sha256())
    return StreamedTable(X, groups, classes, encoder, table, remarks, moments=moments)


def _reduce(stream: TableStream, sample_rows: int, seed: int) -> tuple[GroupMoments, RowSample]:
    """Moments and a sample of the complete rows: those without a missing value in any column that may be a feature."""
    while True:
        names = stream.encoder.feature_names
        # No more rows than would be read into memory anyway.
        sample = RowSample(min(sample_rows, max(STREAM_NUMBERS // len(names), 1)), seed)
        moments = moments_from_blocks(sample.watch(stream.blocks()), names)
        if not stream.leave_out_unfit():
            break
    if not moments.labels:
        raise no_complete_rows_error(stream.file.name)
    return moments, sample


def _usable_columns(stream: TableStream, moments: GroupMoments) -> np.ndarray:
    """Features that vary and do not reveal the group; remarks on the others are added to the stream."""
    kept: list[int] = []
    start = 0
    for name, count in _widths(stream.encoder):
        columns = np.arange(start, start + count)
        start += count
        if name in stream.encoder.levels:
            in_groups = np.rint(moments.means[:, columns] * moments.counts[:, None]) > 0  # levels are zeros and ones
            columns = columns[in_groups.any(axis=0)]  # others occur in incomplete rows only
            n_values, tells_group = len(columns), bool((in_groups.sum(axis=0) <= 1).all())
        else:
            found = stream.few_values.get(name)
            n_values, tells_group = (2, False) if found is None else (len(found), True)
        if n_values == 1:
            stream.remarks.append(constant_remark(name))
        elif tells_group and exceeds_chance(n_values, moments.counts):
            stream.remarks.append(copy_remark(name))
        else:
            kept += columns.tolist()
    if not kept:
        raise TableError(
            f"{stream.file.name} has no feature left that varies within the groups",
            "add such columns",
            Remedy("leave fewer out", "drop"),
        )
    return np.array(kept)


def _widths(encoder: Encoder) -> list[tuple[str, int]]:
    """Columns of the file and the number of features per column, in the encoder's order."""
    return [*((name, 1) for name in encoder.numeric), *((name, len(found)) for name, found in encoder.levels.items())]


def _chosen(encoder: Encoder, kept: np.ndarray) -> Encoder:
    """Select features by position, because a name such as 'a=b=c' may be a level of more than one column."""
    positions = set(kept.tolist())
    numeric = tuple(name for j, name in enumerate(encoder.numeric) if j in positions)
    levels, start = {}, len(encoder.numeric)
    for name, found in encoder.levels.items():
        levels[name] = tuple(level for j, level in enumerate(found, start) if j in positions)
        start += len(found)
    levels = {name: found for name, found in levels.items() if found}
    return Encoder(numeric, levels, np.zeros(len(kept)), np.ones(len(kept)))


def _standardise(moments: GroupMoments, encoder: Encoder, standardise: bool) -> tuple[GroupMoments, Encoder]:
    if not standardise:
        return moments, encoder
    deviations = np.sqrt(moments.pooled_variances())
    scales = np.where(deviations > 0, deviations, 1.0)
    offsets = moments.pooled_mean
    return moments.standardised(offsets, scales), Encoder(encoder.numeric, encoder.levels, offsets, scales)


def _remarks(stream: TableStream) -> list[str]:
    dropped = [dropped_remark(stream.n_dropped, stream.file.n_rows)] if stream.n_dropped else []
    return [*stream.remarks, *dropped]


def _check_sample(moments: GroupMoments, groups: np.ndarray, label: str | None, classes: np.ndarray | None) -> None:
    for group in moments.labels:
        count = int((groups == group).sum())
        if count < MIN_GROUP_ROWS:
            raise TableError(
                f"Group {group!r} has {count} rows in the random sample of {len(groups):,}",
                Remedy("draw more rows", "sample_rows"),
                "merge it with another group",
            )
    if label is not None and classes is not None:
        check_classes(label, classes)
