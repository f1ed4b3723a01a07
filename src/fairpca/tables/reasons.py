"""Why a column is not a feature, in the words of the remarks on a prepared table."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["ALL_RARE", "CONSTANT", "REVEALS_GROUP", "missing_reason", "unfit_reason", "without_row_index"]

CONSTANT = "it is constant"
REVEALS_GROUP = "it reveals the group"
ALL_RARE = "it does not have two levels that are not rare"
_INDEX = "it is the index of a pandas data frame"


def missing_reason(share: float) -> str:
    return f"{share:.0%} of it is missing"


def unfit_reason(n_known: int, n_rows: int, *, varies: bool) -> str | None:
    """Why a column cannot be a feature (mostly missing, or constant apart from missing values); None if it can."""
    if n_known < 0.5 * n_rows:
        return missing_reason(1 - n_known / n_rows)
    return None if varies else CONSTANT


def without_row_index(names: Sequence[str], index: Sequence[str], left_out: dict[str, str]) -> list[str]:
    """Leave out the index of a pandas frame, which only identifies the rows."""
    left_out.update({name: _INDEX for name in names if name in index})
    return [name for name in names if name not in index]
