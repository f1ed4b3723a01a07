"""Vu, Tran, Yue and Nguyen (2022), Distributionally Robust Fair Principal Components via Geodesic Descents.

``python -m fairpca.reproductions.vu2022 FOLDER`` prints Tables 1, 3 and 4 and the toy example of Figure 1, ours
beside the paper's. FOLDER is the ``data/`` folder of the authors' public repository, or a folder that holds
it as ``vu2022``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairpca.reproductions.vu2022.tables import Tables, reproduce_tables
from fairpca.reproductions.vu2022.toy import Toy, reproduce_toy

__all__ = ["TOLERANCE", "Reproduction", "run"]

#: By how much our mean of ABDiff + ARE may exceed the paper's, out of sample and in sample.
TOLERANCE = 0.03


@dataclass(frozen=True)
class Reproduction:
    """What was computed; its text is the report."""

    tables: Tables
    toy: Toy

    @property
    def worst_excess(self) -> float:
        """The largest relative excess of ABDiff + ARE over the paper's, in either table."""
        return max(max(row.excess_test, row.excess_train) for row in self.tables.rows)

    @property
    def succeeded(self) -> bool:
        return self.worst_excess <= TOLERANCE

    def __str__(self) -> str:
        verdict = f"Largest excess of ABDiff + ARE over the paper: {self.worst_excess:+.2%}"
        verdict += f" (tolerance {TOLERANCE:.0%})"
        return f"{self.tables}\n\n{self.toy}\n\n{verdict}"


def run(data: Any, quick: bool = False, out: Any = None) -> Reproduction:
    """Reproduce the paper's tables and its toy example.

    Parameters
    ----------
    data : path
        The folder of tables.
    quick : bool, default=False
        Two splits instead of ten, small tables only: minutes become seconds, and the means are not
        comparable.
    out : path, optional
        Where to write the report.
    """
    result = Reproduction(reproduce_tables(data, quick=quick), reproduce_toy())
    if out is not None:
        Path(out).write_text(f"{result}\n", encoding="utf-8")
    return result
