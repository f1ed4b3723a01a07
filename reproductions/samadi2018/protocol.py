"""The experiments' data and measures, as the paper's text and its authors' scripts define them.

- Images: pixels / 255. Tables: every attribute scaled to mean 0 and standard deviation 1 (divisor N - 1).
- PCA is that of all rows about their common mean. Errors and losses of a group are measured about the group's own
  mean, as in the scripts; the text itself only speaks of the common mean.
- Of the credit table the scripts use the first 21 features, so PAY_AMT6 is left out: the "21 dimensions" of the text.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fairpca import FairPCA
from fairpca.linalg import top_eigenpairs
from fairpca.moments import GroupMoments, group_moments
from reproductions.datasets import load_credit, load_faces

__all__ = [
    "Curves",
    "Data",
    "FairCurves",
    "Source",
    "equal_rows",
    "equal_sample",
    "fair_curves",
    "find_sources",
    "pca_curves",
    "read",
    "standardise",
]

#: The column that the authors' script cuts off.
_LEFT_OUT = "PAY_AMT6"
#: Where the files are inside the authors' folder.
_SUBFOLDERS = (".", "images", "credit", "data", "data/images", "data/credit")


@dataclass(frozen=True)
class Source:
    """A file, or a folder of images."""

    name: str
    path: Path
    images: bool


@dataclass(frozen=True)
class Data:
    """Rows ready to be used. ``complete`` has the features, scaled too, that the authors' script leaves out."""

    name: str
    images: bool
    X: np.ndarray
    groups: np.ndarray
    complete: np.ndarray | None = None

    @cached_property
    def moments(self) -> GroupMoments:
        return group_moments(self.X, sensitive_features=self.groups)


def find_sources(folder: Path) -> list[Source]:
    """Every .npz and .csv file, and every folder of images, in the places where the authors keep them."""
    found = []
    for subfolder in (folder / name for name in _SUBFOLDERS):
        if not subfolder.is_dir():
            continue
        if (subfolder / "sex.txt").is_file() and (subfolder / "img0.txt").is_file():
            found.append(Source(subfolder.resolve().name, subfolder, True))
        found += [Source(path.stem, path, True) for path in sorted(subfolder.glob("*.npz"))]
        found += [Source(path.stem, path, False) for path in sorted(subfolder.glob("*.csv"))]
    return found


def read(source: Source) -> Data:
    """Load and scale; a ValueError says why a file is not of one of the known layouts."""
    if source.images:
        faces = load_faces(source.path)
        return Data(source.name, True, faces.data, faces.sensitive_features)
    table = load_credit(source.path)
    complete = standardise(table.data)
    used = [j for j, name in enumerate(table.feature_names) if name.upper() != _LEFT_OUT]
    shortened = len(used) < table.data.shape[1]
    X = standardise(table.data[:, used]) if shortened else complete
    return Data(source.name, False, X, table.sensitive_features, complete if shortened else None)


def standardise(X: np.ndarray) -> np.ndarray:
    """Mean 0 and standard deviation 1, with the divisor N - 1; columns that never vary are dropped."""
    X = X[:, np.ptp(X, axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)


@dataclass(frozen=True)
class Curves:
    """Errors and losses of each group (columns) for several numbers of dimensions (rows)."""

    dimensions: np.ndarray
    groups: tuple[Any, ...]
    shares: np.ndarray
    errors: np.ndarray
    losses: np.ndarray

    @property
    def average(self) -> np.ndarray:
        """Mean error of all rows."""
        return self.errors @ self.shares

    @property
    def largest(self) -> np.ndarray:
        return self.losses.max(axis=1)

    def row(self, dimension: int) -> int:
        """Where a number of dimensions stands."""
        return self.dimensions.tolist().index(dimension)


@dataclass(frozen=True)
class FairCurves(Curves):
    """With the certificates: gaps to the proven bound, relative to the total variance, and the dual weights."""

    gaps: np.ndarray
    calls: np.ndarray
    ranks: np.ndarray
    weights: np.ndarray
    seconds: np.ndarray
    total: float


def pca_curves(moments: GroupMoments, dimensions: Sequence[int], *, center: str = "group") -> Curves:
    """Ordinary PCA of all rows, for all dimensions from one eigenproblem: its subspaces are nested."""
    most = max(dimensions)
    matrices = moments.second_moments(center)
    basis = top_eigenpairs(moments.pooled_covariance(), most)[1]
    captured = np.cumsum([np.einsum("pi,pi->i", basis, matrix @ basis) for matrix in matrices], axis=1).T
    best = np.cumsum([top_eigenpairs(matrix, most)[0] for matrix in matrices], axis=1).T
    rows = np.array(dimensions) - 1
    errors = np.maximum(np.einsum("aii->a", matrices) - captured, 0.0)
    return Curves(np.array(dimensions), moments.labels, moments.shares, errors[rows], (best - captured)[rows])


def fair_curves(
    moments: GroupMoments, dimensions: Sequence[int], *, center: str = "group", step: Any = None
) -> FairCurves:
    """FairPCA for each number of dimensions; ``step(d)`` is called before each fit."""
    fits, seconds = [], []
    for d in dimensions:
        if step is not None:
            step(d)
        start = time.process_time()
        fits.append(FairPCA(d, center=center).fit_moments(moments))
        seconds.append(time.process_time() - start)
    total = float(moments.shares @ np.einsum("aii->a", moments.second_moments(center)))
    return FairCurves(
        np.array(dimensions),
        moments.labels,
        moments.shares,
        errors=np.array([fit.group_errors_ for fit in fits]),
        losses=np.array([fit.group_losses_ for fit in fits]),
        gaps=np.array([fit.duality_gap_ for fit in fits]) / total,
        calls=np.array([fit.n_oracle_calls_ for fit in fits]),
        ranks=np.array([fit.relaxed_.rank for fit in fits]),
        weights=np.array([fit.group_weights_ for fit in fits]),
        seconds=np.array(seconds),
        total=total,
    )


def equal_sample(data: Data, size: int, seed: int) -> GroupMoments:
    """Moments of ``size`` rows of each group, drawn without replacement."""
    rows = equal_rows(data, size, seed)
    return group_moments(data.X[rows], sensitive_features=data.groups[rows])


def equal_rows(data: Data, size: int, seed: int) -> np.ndarray:
    """Which rows these are."""
    rng = np.random.default_rng([2018, seed])
    labels = sorted(set(data.groups.tolist()), key=str)
    return np.concatenate([rng.choice(np.flatnonzero(data.groups == label), size, replace=False) for label in labels])
