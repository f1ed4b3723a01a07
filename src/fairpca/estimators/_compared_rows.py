"""Which rows MMDFairPCA compares: all, or those with the same label."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairpca._frames import check_not_lazy
from fairpca._labels import is_missing
from fairpca._validation import Groups
from fairpca.problems.mmd import all_pairs

__all__ = ["compared_cells", "compared_pairs"]


def compared_cells(groups: Groups, y: Any, notion: str) -> tuple[Groups, np.ndarray]:
    """The sets of rows that are compared, and which rows take part (1.0) or not (0.0)."""
    n = len(groups.codes)
    if notion == "demographic_parity":
        return groups, np.ones(n)
    check_not_lazy("y", y)
    if y is None:
        raise ValueError(f"notion={notion!r} compares rows with the same label: give a binary y to fit.")
    if np.shape(y) != (n,):
        raise ValueError(f"y has shape {np.shape(y)}, but X has {n} rows: give one label per row.")
    values, codes = _distinct_labels(y)
    if len(values) != 2:
        raise ValueError(
            f"notion={notion!r} needs a binary y; it has {len(values)} different values. Compare one against the rest."
        )
    labels = tuple((value, label) for value in values.tolist() for label in groups.labels)
    taking_part = codes == 1 if notion == "equal_opportunity" else np.ones(n)
    return Groups(labels, codes * len(groups) + groups.codes), taking_part.astype(float)


def _distinct_labels(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """The different labels in their order, and the position of each row's label among them."""
    labels = np.asarray(y)
    missing = labels.dtype.kind == "f" and np.isnan(labels).any()
    if missing or (labels.dtype.kind == "O" and any(map(is_missing, labels.tolist()))):
        raise ValueError("y contains missing values (NaN or None); drop those rows or give them a label.")
    try:
        return np.unique(labels, return_inverse=True)
    except TypeError:
        raise TypeError("y mixes labels that have no order, such as numbers and text; use one type.") from None


def compared_pairs(cells: tuple, groups: tuple, notion: str) -> np.ndarray:
    """Pairs of cells to be compared: all groups, within each value of y that takes part."""
    if notion == "demographic_parity":
        return all_pairs(len(cells))
    values = sorted({value for value, _ in cells})
    missing = [(value, label) for value in values for label in groups if (value, label) not in cells]
    if missing:
        raise ValueError(
            f"notion={notion!r}: no row with (y, group) = {missing[0]!r}. Merge small groups or use "
            "notion='demographic_parity'."
        )
    pairs = all_pairs(len(cells))
    return np.array([(a, b) for a, b in pairs if cells[a][0] == cells[b][0]])
