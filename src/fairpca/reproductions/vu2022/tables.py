"""Tables 1, 3 and 4 of Vu et al. (2022), ours beside the published figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairpca.datasets import load_tables
from fairpca.moments import group_moments
from fairpca.reproductions.vu2022 import protocol
from fairpca.reproductions.vu2022.published import PUBLISHED, Published

__all__ = ["Row", "Tables", "reproduce_tables"]

_QUICK_SPLITS, _QUICK_ROWS = 2, 2000


@dataclass(frozen=True)
class Row:
    """Means over the splits; each pair is (ABDiff, ARE)."""

    published: Published
    robust_test: np.ndarray
    robust_train: np.ndarray
    robust_svm: float
    fair_test: np.ndarray
    fair_train: np.ndarray
    fair_svm: float
    n_splits: int

    @property
    def excess_test(self) -> float:
        """By how much our out-of-sample ABDiff + ARE exceeds the paper's, relative."""
        return float(self.robust_test.sum() / sum(self.published.robust_test) - 1)

    @property
    def excess_train(self) -> float:
        return float(self.robust_train.sum() / sum(self.published.robust_train) - 1)


@dataclass(frozen=True)
class Tables:
    rows: list[Row]

    def __str__(self) -> str:
        parts = [
            _pairs("Table 1, out of sample (ABDiff, ARE)", self.rows, "test"),
            _pairs("Table 3, in sample (ABDiff, ARE)", self.rows, "train"),
            _separations(self.rows),
        ]
        return "\n\n".join(parts)


def reproduce_tables(data: Any, *, quick: bool = False) -> Tables:
    """``data`` is the folder of tables, or a folder that has it as ``vu2022``."""
    folder = Path(data) / "vu2022" if (Path(data) / "vu2022").is_dir() else Path(data)
    tables = load_tables(folder)
    rows = []
    for name, published in PUBLISHED.items():
        if name in tables and not (quick and len(tables[name].data) > _QUICK_ROWS):
            rows.append(_row(tables[name], published, _QUICK_SPLITS if quick else 10))
    return Tables(rows)


def _row(table: Any, published: Published, n_splits: int, *, svm: bool = True) -> Row:
    X, groups = protocol.features(table), table.sensitive_features
    results = np.array([_one_split(X, groups, seed, svm) for seed in range(n_splits)]).mean(axis=0)
    return Row(published, results[0:2], results[2:4], results[4], results[5:7], results[7:9], results[9], n_splits)


def _one_split(X: np.ndarray, groups: np.ndarray, seed: int, svm: bool) -> list[float]:
    train, test = protocol.split(groups, seed)
    X = protocol.standardise(X, X[train])
    inside, outside = (group_moments(X[rows], groups[rows]) for rows in (train, test))
    alpha, penalty = protocol.choose(X[train], groups[train], seed)
    figures: list[float] = []
    for basis in (protocol.robust(inside, alpha, penalty), protocol.fair(inside)):
        for moments in (outside, inside):
            measured = protocol.measure(basis, moments, moments, inside.means)
            figures += [measured.difference, measured.average]
        figures.append(protocol.linear_separation(X[test], groups[test], basis) if svm else np.nan)
    return figures


def _pairs(title: str, rows: list[Row], part: str) -> str:
    head = f"{title}\n{'':16}{'RobustFairPCA':>20}{'paper':>20}{'sum / paper':>13}{'FairPCA':>20}{'paper':>20}"
    lines = [head]
    for row in rows:
        published = row.published
        ours, theirs = getattr(row, f"robust_{part}"), getattr(published, f"robust_{part}")
        fair, fair_theirs = getattr(row, f"fair_{part}"), getattr(published, f"fair_{part}")
        lines.append(
            f"{published.title:16}{_pair(ours)}{_pair(theirs)}{sum(ours) / sum(theirs):13.4f}"
            f"{_pair(fair)}{_pair(fair_theirs)}"
        )
    return "\n".join(lines)


def _pair(values: Any) -> str:
    return f"{values[0]:10.4f}{values[1]:10.4f}"


def _separations(rows: list[Row]) -> str:
    lines = ["Table 4, linear SVM", f"{'':16}{'RobustFairPCA':>14}{'paper':>10}{'FairPCA':>10}{'paper':>10}"]
    for row in rows:
        published = row.published
        lines.append(
            f"{published.title:16}{row.robust_svm:14.4f}{published.robust_svm:10.4f}"
            f"{row.fair_svm:10.4f}{published.fair_svm:10.4f}"
        )
    return "\n".join(lines)
