"""Rare levels of text columns, which are pooled: one-hot encoded, a handful of rows would make up whole components."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fairpca.audit.errors import Remedy, TableError

POOLED_LEVEL = "other (rare)"
_SHARE, _ROWS = 0.01, 30
#: In small files, a level is rare if it has fewer than this share of the rows rather than fewer than 30 rows.
_SHARE_OF_FEW = 0.1


def check_min_level(min_level: float | None) -> None:
    """Raise an error unless this is a number of rows, a share, or None for the default."""
    if min_level is None or 0 <= min_level < 1 or (min_level < math.inf and min_level == max(int(min_level), 1)):
        return
    raise TableError(
        f"min_level={min_level} is neither a number of rows nor a share of them",
        Remedy("give a whole number, or a share such as 0.01", "min_level"),
    )


def rows_of_min_level(min_level: float | None, n_rows: int) -> int:
    """The number of rows below which a level is rare.

    By default, 1 % of the rows or 30 rows, whichever is more; with fewer than 300 rows, a tenth of them.

    Examples
    --------
    >>> from fairpca.audit.rare import rows_of_min_level
    >>> [rows_of_min_level(None, n_rows) for n_rows in (100, 1000, 32_561)], rows_of_min_level(0.5, 100)
    ([10, 30, 326], 50)
    """
    if min_level is None:
        return math.ceil(max(_SHARE * n_rows, min(_ROWS, _SHARE_OF_FEW * n_rows)))
    return math.ceil(min_level * n_rows) if min_level < 1 else int(min_level)


def pool_levels(counts: Mapping[str, int], least: int) -> tuple[tuple[str, ...], dict[str, int]]:
    """The levels that get a column, and the rows of each level that is pooled: with fewer than ``least`` rows.

    If the pooled levels together have fewer rows than that, they get no column: their rows have zeros in the columns
    of the other levels. If fewer than two columns are left, there are none: the indicator of a single level is that
    of the few other rows, with the opposite sign.

    Examples
    --------
    >>> from fairpca.audit.rare import pool_levels
    >>> pool_levels({"a": 50, "b": 40, "c": 6, "d": 5}, 10)
    (('a', 'b', 'other (rare)'), {'c': 6, 'd': 5})
    >>> pool_levels({"a": 50, "b": 40, "c": 6}, 10)[0], pool_levels({"a": 90, "b": 6}, 10)[0]
    (('a', 'b'), ())
    """
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rare = {level: count for level, count in ordered if count < least}
    kept = sorted(counts.keys() - rare.keys())
    if rare and sum(rare.values()) >= least and POOLED_LEVEL not in kept:
        kept.append(POOLED_LEVEL)
    return tuple(kept) if len(kept) > 1 else (), rare
