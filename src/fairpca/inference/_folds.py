"""Cross-validation folds that are stratified by group and keep clusters together."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold

from fairpca._labels import quoted
from fairpca._validation import Groups, check_number, check_several_groups
from fairpca.inference._checks import CountedRows, check_clusters
from fairpca.moments import Cells, GivenCells, RandomCells, RowSource, row_counts, spread_evenly

__all__ = ["Folds", "held_out_part", "make_folds"]


@dataclass(frozen=True)
class Folds:
    """The fold of every row, as cells of group times fold.

    Attributes
    ----------
    cells : Cells
    fold : ndarray of shape (n,) or None
        The fold of each row, if rows are in memory.
    clusters : ndarray of shape (n,) or None
    smallest : int
        Number of rows of the smallest group.
    held_out : float or None
        For a single split into held-out rows (fold 0) and training rows (fold 1): the share of held-out rows.
    judged : tuple of int
        Folds used as test folds; for a single split, only the held-out part.
    n_effective : float
        The reciprocal of the share of rows in a test fold.
    """

    cells: Cells
    smallest: int
    fold: np.ndarray | None = None
    clusters: np.ndarray | None = None
    held_out: float | None = None

    @property
    def judged(self) -> tuple[int, ...]:
        return tuple(range(self.n_folds)) if self.judges_all else (0,)

    @property
    def judges_all(self) -> bool:
        return self.held_out is None

    @property
    def n_effective(self) -> float:
        return float(self.n_folds) if self.held_out is None else 1.0 / self.held_out

    def judged_cells(self, number: int, groups: Groups) -> np.ndarray:
        """The cell of group and test fold of each row of a chunk; -1 for rows in no test fold."""
        codes = self.cells.codes(number, groups)
        if self.judges_all:
            return codes
        return np.where(codes % self.n_folds == 0, codes // self.n_folds, -1)

    @property
    def n_folds(self) -> int:
        return self.cells.n_cells[0]

    @property
    def unit(self) -> str:
        """The independent unit: rows or clusters."""
        return "rows" if self.clusters is None else "clusters"


def make_folds(source: RowSource, cv: Any, clusters: Any, seed: int) -> Folds:
    """Divide the rows into folds; ``cv`` is a number of folds, or for rows in memory, any scikit-learn cv."""
    if not isinstance(source, CountedRows):
        return _folds_of_chunks(source, cv, clusters, seed)
    codes, groups = check_clusters(clusters, source), source.groups
    if not _is_number(cv):
        fold = _fold_of_splits(source, cv, codes)
    elif codes is None:
        fold = _random_folds(groups, _check_number_of_folds(cv), seed)
    else:
        fold = _folds_of_clusters(groups, codes, _check_number_of_folds(cv), seed)
    n_folds = int(fold.max()) + 1
    _check_every_group(groups, fold, n_folds)
    cells = GivenCells(groups.labels, (n_folds,) * len(groups), groups.codes * np.int64(n_folds) + fold)
    return Folds(cells, int(np.bincount(groups.codes).min()), fold, codes)


def held_out_part(groups: Groups, test: np.ndarray, clusters: np.ndarray | None) -> Folds:
    """A single split of rows in memory into the rows with indices ``test``, which are tested on, and the others."""
    fold = np.ones(len(groups.codes), dtype=np.int64)
    fold[test] = 0
    cells = GivenCells(groups.labels, (2,) * len(groups), groups.codes * np.int64(2) + fold)
    return Folds(cells, int(np.bincount(groups.codes[test]).min()), fold, clusters, len(test) / len(fold))


def _is_number(cv: Any) -> bool:
    return isinstance(cv, int | np.integer | float | np.floating | str) or cv is None


def _check_number_of_folds(cv: Any) -> int:
    return int(check_number("cv", cv, at_least=2, integer=True))


def _folds_of_chunks(source: RowSource, cv: Any, clusters: Any, seed: int) -> Folds:
    if clusters is not None:
        raise ValueError("clusters are supported for rows in memory only; pass a random sample of the clusters.")
    if not _is_number(cv):
        raise ValueError("cv must be a number of folds if rows are not in memory, for example cv=10.")
    n_folds, counts = _check_number_of_folds(cv), row_counts(source)
    check_several_groups(counts, sum(counts.values()))
    _check_sizes(counts, n_folds, "rows")
    return Folds(RandomCells(tuple(counts), (n_folds,) * len(counts), seed), min(counts.values()))


def _random_folds(groups: Groups, n_folds: int, seed: int) -> np.ndarray:
    members = [np.flatnonzero(groups.codes == code) for code in range(len(groups))]
    _check_sizes(dict(zip(groups.labels, map(len, members), strict=True)), n_folds, "rows")
    rng, fold = np.random.default_rng(seed), np.empty(len(groups.codes), dtype=np.int64)
    for rows in members:
        fold[rows] = spread_evenly(len(rows), n_folds, rng)
    return fold


def _folds_of_clusters(groups: Groups, clusters: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    sizes = [len(np.unique(clusters[groups.codes == code])) for code in range(len(groups))]
    _check_sizes(dict(zip(groups.labels, sizes, strict=True)), n_folds, "clusters")
    fold = np.empty(len(groups.codes), dtype=np.int64)
    # Clusters in random order and no shuffling: older versions of the splitter are not stratified when they shuffle.
    shuffled = np.random.default_rng(seed).permutation(int(clusters.max()) + 1)[clusters]
    for number, (_, test) in enumerate(StratifiedGroupKFold(n_folds).split(fold, groups.codes, shuffled)):
        fold[test] = number
    return fold


def _fold_of_splits(source: CountedRows, cv: Any, clusters: np.ndarray | None) -> np.ndarray:
    """From a scikit-learn splitter, which gets the groups as classes, or from pairs of row indices."""
    n_rows = source.X.shape[0]
    if hasattr(cv, "split"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that clusters are ignored; if they are, it is an error below
            splits, whole = list(cv.split(np.zeros((n_rows, 1)), source.groups.codes, clusters)), n_rows
    elif isinstance(cv, Iterable):
        splits, whole = list(cv), source.n_given
    else:
        raise ValueError(f"cv={cv!r} must be a number of folds, a splitter, or an iterable of (train, test).")
    fold = np.full(whole, -1, dtype=np.int64)
    times = np.zeros(whole, dtype=np.int64)
    for number, (train, test) in enumerate(splits):
        fold[test] = number
        times[test] += 1
        if len(np.union1d(train, test)) != whole:
            raise ValueError("cv must train on all rows that it does not test; this one leaves some out.")
    if (times != 1).any():
        raise ValueError("cv must test every row exactly once, as KFold and StratifiedKFold do; this one does not.")
    fold = fold if whole == n_rows else source.select(fold)
    if clusters is not None and len(np.unique(clusters * np.int64(len(splits)) + fold)) > clusters.max() + 1:
        raise ValueError("cv divides some clusters between folds; use a splitter that keeps them, such as GroupKFold.")
    return fold


def _check_sizes(sizes: Mapping[Any, int], n_folds: int, unit: str) -> None:
    label, size = min(sizes.items(), key=lambda item: item[1])
    if size < n_folds:
        raise ValueError(
            f"Group {quoted(label)} has {size} {unit}, fewer than the {n_folds} folds: use a smaller cv, or merge the "
            "group with another one."
        )


def _check_every_group(groups: Groups, fold: np.ndarray, n_folds: int) -> None:
    found = np.bincount(groups.codes * np.int64(n_folds) + fold, minlength=len(groups) * n_folds)
    missing = np.argwhere(found.reshape(len(groups), n_folds) == 0)
    if len(missing):
        code, number = missing[0]
        raise ValueError(
            f"Fold {number} of cv has no rows of group {quoted(groups.labels[code])}; use a stratified splitter, or "
            "cv=10 for folds stratified by group."
        )
