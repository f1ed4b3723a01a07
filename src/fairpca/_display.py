"""Results that print as a small table: as text, as HTML in a notebook, and as a data frame."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from html import escape
from typing import Any

from fairpca._optional import require

__all__ = ["TableResult", "fixed", "number", "p_text", "percent", "text_table", "with_interval"]


class TableResult:
    """Base class of results shown as a table: text cells with headings, sentences above and below, plain records."""

    def _cells(self) -> list[dict[str, str]]:
        """For each row of the table, heading -> cell."""
        raise NotImplementedError

    def _sentences(self) -> tuple[list[str], list[str]]:
        """The sentences above the table, and those below it."""
        raise NotImplementedError

    def _records(self) -> list[dict[str, Any]]:
        """One dictionary of plain values per row of the data frame."""
        raise NotImplementedError

    def to_frame(self) -> Any:
        """The values as a :class:`pandas.DataFrame`, one row per group (needs pandas)."""
        return require("pandas", "to_frame").DataFrame(self._records())

    def __repr__(self) -> str:
        above, below = self._sentences()
        cells = self._cells()
        return "\n".join([*above, "", *text_table(list(cells[0]), [list(row.values()) for row in cells]), *below])

    def _repr_html_(self) -> str:
        above, below = self._sentences()
        cells = self._cells()
        head = "".join(f"<th>{escape(heading)}</th>" for heading in cells[0])
        rows = ("".join(f"<td>{escape(cell)}</td>" for cell in row.values()) for row in cells)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        before, after = ("".join(f"<p>{escape(line)}</p>" for line in lines) for lines in (above, below))
        return f"<div>{before}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{after}</div>"


def text_table(headings: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Columns as wide as their contents: the first ``left`` of them aligned left, the others, numbers, right."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if position < left else cell.rjust(width)
            for position, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [headings, *rows]
    ]


def number(value: float) -> str:
    """Three significant digits, without an exponent unless very large or small; the HTML report rounds the same way.

    Examples
    --------
    >>> from fairpca._display import number
    >>> [number(value) for value in (43.692, 0.3266, 2.125, 12345.6, 2e-6, -1.5, 1e-12)]
    ['43.7', '0.327', '2.13', '12,346', '2.0e-6', '-1.50', '0']
    """
    if not math.isfinite(value):
        return "-"
    if abs(value) < 5e-10:
        return "0"
    if not 1e-4 <= abs(value) < 1e6:
        mantissa, _, exponent = f"{value:.1e}".partition("e")
        return f"{mantissa}e{int(exponent):+d}".replace("e+", "e")
    digits = max(0, 2 - int(f"{abs(value):e}".rpartition("e")[2]))
    # Round ties away from zero, as browsers do; Python's own formatting rounds them to even.
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):,}"


def fixed(value: float, digits: int) -> str:
    """So many decimals, ties away from zero, as the HTML report rounds.

    Examples
    --------
    >>> from fairpca._display import fixed
    >>> fixed(0.0625, 3), fixed(-0.0004, 3), fixed(2.5, 0)
    ('0.063', '0.000', '3')
    """
    if not math.isfinite(value):
        return "-"
    rounded = Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{abs(rounded) if rounded == 0 else rounded}"


def percent(share: float | None) -> str:
    """``12.5%``, rounded as on the page."""
    return "-" if share is None else f"{fixed(100 * share, 1)}%"


def p_text(p_value: float, n_permutations: int) -> str:
    """``= 0.04``, or ``<= 0.001`` if no random division reached the observed value."""
    smallest = 1.0 / (n_permutations + 1)
    sign = "<=" if p_value <= smallest * (1 + 1e-9) else "="
    return f"{sign} {p_value:.2g}"


def with_interval(estimate: Any) -> str:
    """``2.30 (1.26 to 3.34)``."""
    return f"{number(estimate.value)} ({number(estimate.low)} to {number(estimate.high)})"
