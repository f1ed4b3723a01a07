"""Remarks on a prepared table: which columns were left out, and why."""

from __future__ import annotations

from collections.abc import Sequence

from fairpca.tables.encoding import Encoder

__all__ = [
    "constant_remark",
    "copy_remark",
    "describe_columns",
    "dropped_remark",
    "missing_remark",
    "unfit_remark",
    "without_row_index",
]


def constant_remark(name: str) -> str:
    return f"left out {name!r}: it is constant"


def copy_remark(name: str) -> str:
    return f"left out {name!r}: it reveals the group"


def missing_remark(name: str, share: float) -> str:
    return f"left out {name!r}: {share:.0%} of it is missing"


def unfit_remark(name: str, n_known: int, n_rows: int, *, varies: bool) -> str | None:
    """Why a column cannot be a feature (mostly missing, or constant apart from missing values); None if it can."""
    if n_known < 0.5 * n_rows:
        return missing_remark(name, 1 - n_known / n_rows)
    return None if varies else constant_remark(name)


def dropped_remark(n_dropped: int, n_rows: int) -> str:
    return f"dropped {n_dropped} of {n_rows} rows with a missing group, label or number"


def without_row_index(names: Sequence[str], index: Sequence[str], remarks: list[str]) -> list[str]:
    """Leave out the index of a pandas frame, which only identifies the rows."""
    remarks += [f"left out {name!r}: it is the index of a pandas data frame" for name in names if name in index]
    return [name for name in names if name not in index]


def describe_columns(encoder: Encoder, left_out: Sequence[str], standardise: bool, remarks: list[str]) -> None:
    """Insert remarks on how the features were obtained before all others."""
    said = []
    if encoder.numeric:
        said.append(f"{len(encoder.numeric)} numeric columns: {_some(encoder.numeric)}")
    if encoder.levels:
        sizes = [f"{name} ({len(levels)} levels)" for name, levels in encoder.levels.items()]
        said.append(f"{len(sizes)} text columns, one-hot encoded: {_some(sizes)}")
    said.append(f"not among the features: {_some(left_out)}")
    count = len(encoder.feature_names)
    said.append(f"{count} features, standardised" if standardise else f"{count} features, not standardised")
    remarks[:0] = said


def _some(names: Sequence[str], limit: int = 8) -> str:
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown}, ... ({len(names) - limit} more)"
