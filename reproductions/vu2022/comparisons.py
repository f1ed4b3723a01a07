"""The groups of a table under ordinary PCA: chance, and new rows."""

from __future__ import annotations

import numpy as np

from reproductions._differences import Difference, Rows, judge
from reproductions._steps import Steps
from reproductions.vu2022 import protocol
from reproductions.vu2022.published import METHODS, PUBLISHED

__all__ = ["judge_groups"]

_DIVISIONS = 999


def judge_groups(name: str, title: str, X: np.ndarray, groups: np.ndarray, steps: Steps) -> list[Difference]:
    """All rows, standardised, at the paper's number of components."""
    labels = np.array([f"group {label}" for label in groups.tolist()])
    rows = Rows(title, protocol.standardise(X, X), labels)
    return judge(rows, "Table 1", _published(name), (protocol.N_COMPONENTS,), _DIVISIONS, steps)


def _published(name: str) -> str:
    """The paper's differences of errors; ordinary PCA is not among its columns."""
    if name not in PUBLISHED:
        return ""
    printed = PUBLISHED[name].methods
    shown = [f"{METHODS[method]} {printed[method].test[0]:g}" for method in ("RobustFairPCA", "FairPCA")]
    return f"ABDiff, a difference of errors: {', '.join(shown)}"
