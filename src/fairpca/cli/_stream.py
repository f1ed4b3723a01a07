"""Files larger than memory: one pass of group statistics, and a random sample for what needs rows."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairpca.cli._progress import Progress
from fairpca.datasets.arrow import ArrowFile, is_arrow
from fairpca.datasets.stream import STREAM_NUMBERS, RowSample, TableStream, is_large
from fairpca.datasets.table import (
    MIN_GROUP_ROWS,
    Encoder,
    Table,
    TableData,
    check_classes,
    check_group_counts,
    say_columns,
)
from fairpca.moments import GroupMoments
from fairpca.moments.arrow import moments_from_batches

__all__ = ["StreamedData", "add_stream_options", "is_streamed", "load_streamed"]


@dataclass(frozen=True)
class StreamedData(TableData):
    """``X``, ``groups`` and ``label`` are a random sample of the rows; ``moments`` are those of all of them."""

    moments: GroupMoments = field(kw_only=True)


def add_stream_options(parser: argparse.ArgumentParser) -> None:
    """How a file is read."""
    parser.add_argument(
        "--stream",
        action="store_true",
        help="read a .parquet or .feather file batch by batch, with bounded memory; by default only beyond "
        f"{STREAM_NUMBERS:,} numbers (rows x columns)",
    )


def is_streamed(arguments: argparse.Namespace) -> bool:
    """Whether it was asked for, or the file's metadata say that it is large."""
    if arguments.stream and not is_arrow(arguments.data):
        raise ValueError(
            f"--stream reads .parquet and .feather files, not {arguments.data}; convert it first, for example with "
            "pyarrow.csv.open_csv and pyarrow.parquet.ParquetWriter."
        )
    return arguments.stream or is_large(arguments.data)


def load_streamed(arguments: argparse.Namespace, sample_rows: int = 0) -> StreamedData:
    """Read the file once; ``sample_rows`` says how many of its rows are kept."""
    file = ArrowFile(arguments.data)
    with Progress(quiet=arguments.quiet or arguments.json) as progress:
        stream = TableStream(
            file, arguments.sensitive, getattr(arguments, "label", None),
            drop=arguments.drop, max_levels=arguments.max_levels, progress=progress,
        )  # fmt: skip
        sample = _sample(stream, sample_rows, getattr(arguments, "seed", 0))
        moments = moments_from_batches(sample.watch(stream.batches()), stream.group_column, columns=stream.columns)
        dropped = stream.n_dropped
        check_group_counts(arguments.sensitive, moments.labels, moments.counts)
        kept = _usable_columns(stream, moments)
    moments, encoder = _standardise(moments.select(kept), _chosen(stream.encoder, kept), arguments.standardise)
    remarks = _remarks(stream, encoder, arguments, dropped)
    X, texts = sample.rows() if sample_rows else (np.zeros((0, stream.encoder.scales.size)), {})
    X = (X[:, kept] - encoder.offsets) / encoder.scales
    groups, label = texts.get(stream.group_column, np.zeros(0)).astype(str), texts.get(stream.label_column)
    if sample_rows:
        _check_sample(arguments, moments, groups, label)
        remarks.append(
            f"read batch by batch; a random sample of {len(X):,} of {moments.total_count:,.0f} rows (seed "
            f"{arguments.seed}) serves where rows are needed"
        )
    table = Table(file.name, {}, file.sha256() if sample_rows else "")
    return StreamedData(X, groups, label, encoder, table, remarks, moments=moments)


def _sample(stream: TableStream, size: int, seed: int) -> RowSample:
    """No more rows than would be read into memory anyway."""
    texts = [stream.group_column, *([stream.label_column] if stream.label else [])]
    return RowSample(min(size, max(STREAM_NUMBERS // len(stream.columns), 1)), seed, stream.columns, texts)


def _usable_columns(stream: TableStream, moments: GroupMoments) -> np.ndarray:
    """Features that vary and are no copy of the group; what is left out is told in the stream's remarks."""
    doubtful = moments.columns_nearly_fixed()
    constant, fixed = stream.fixed_columns(doubtful.tolist()) if len(doubtful) else (set(), set())
    kept, start = [], 0
    for name, count in _widths(stream.encoder):
        columns = range(start, start + count)
        start += count
        if count == 1 and columns[0] in constant:
            stream.remarks.append(f"left out {name!r}: it is constant")
        elif fixed.issuperset(columns):
            stream.remarks.append(f"left out {name!r}: the group can be read off it")
        else:
            kept += [j for j in columns if count == 1 or moments.means[:, j].any()]  # levels of complete rows
    if not kept:
        raise ValueError(f"{stream.file.name} has no feature left that varies within the groups.")
    return np.array(kept)


def _widths(encoder: Encoder) -> list[tuple[str, int]]:
    """Columns of the file and how many features each makes, in the encoder's order."""
    return [*((name, 1) for name in encoder.numeric), *((name, len(found)) for name, found in encoder.levels.items())]


def _chosen(encoder: Encoder, kept: np.ndarray) -> Encoder:
    names = [encoder.feature_names[j] for j in kept]
    numeric = tuple(name for name, j in zip(names, kept, strict=True) if j < len(encoder.numeric))
    chosen = set(names[len(numeric) :])
    levels = {
        name: tuple(level for level in found if f"{name}={level}" in chosen) for name, found in encoder.levels.items()
    }
    levels = {name: found for name, found in levels.items() if found}
    return Encoder(numeric, levels, np.zeros(len(kept)), np.ones(len(kept)))


def _standardise(moments: GroupMoments, encoder: Encoder, standardise: bool) -> tuple[GroupMoments, Encoder]:
    if not standardise:
        return moments, encoder
    deviations = np.sqrt(moments.pooled_variances())
    scales = np.where(deviations > 0, deviations, 1.0)
    offsets = moments.pooled_mean
    return moments.standardised(offsets, scales), Encoder(encoder.numeric, encoder.levels, offsets, scales)


def _remarks(stream: TableStream, encoder: Encoder, arguments: argparse.Namespace, dropped: int) -> list[str]:
    remarks = list(stream.remarks)
    if dropped:
        remarks.append(f"dropped {dropped} of {stream.file.n_rows} rows with a missing group, label or number")
    left_out = [*arguments.sensitive, *([stream.label] if stream.label else []), *arguments.drop]
    say_columns(encoder, left_out, arguments.standardise, remarks)
    return remarks


def _check_sample(arguments: Any, moments: GroupMoments, groups: np.ndarray, label: np.ndarray | None) -> None:
    for group in moments.labels:
        count = int((groups == group).sum())
        if count < MIN_GROUP_ROWS:
            raise ValueError(
                f"Group {group!r} has {count} rows in the random sample of {len(groups):,}; raise --sample-rows, or "
                "merge it with another group."
            )
    if label is not None:
        check_classes(arguments.label, label)
