"""The experiment of Vu et al. (2022), section 5, as the authors' code runs it.

- Three tenths of each group train, the rest tests; all rows are standardised by the training rows.
- alpha and lambda minimise ABDiff + ARE, averaged over three folds of the training rows. The rows on which a
  fold fits and measures ARE are standardised again by the fold's training part; those on which it measures
  ABDiff are not.
- ARE: mean reconstruction error of the standardised rows. ABDiff: difference of the groups' mean errors, each
  group centred by its own training mean.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.svm import LinearSVC

from fairpca import FairPCA, RobustFairPCA
from fairpca.moments import GroupMoments, group_moments

__all__ = [
    "ALPHAS",
    "N_COMPONENTS",
    "PENALTIES",
    "Figures",
    "choose",
    "linear_separation",
    "measure",
    "split",
]

ALPHAS = (0.05, 0.1, 0.15)
PENALTIES = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)
N_COMPONENTS = 3
_TRAINING_SHARE = 0.3
_DROPPED = ("perimX", "perimY")  # of Steel, as the authors do


@dataclass(frozen=True)
class Figures:
    """ABDiff and ARE of one projection on some rows."""

    difference: float
    average: float

    @property
    def total(self) -> float:
        return self.difference + self.average


def features(table) -> np.ndarray:
    kept = [j for j, name in enumerate(table.feature_names) if name not in _DROPPED]
    return table.data[:, kept]


def split(groups: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The authors' training and test rows."""
    rng = np.random.default_rng(seed)
    train, test = [], []
    for label in (0, 1):
        rows = np.flatnonzero(groups == label)
        rng.shuffle(rows)
        count = int(_TRAINING_SHARE * len(rows))
        train.append(rows[:count])
        test.append(rows[count:])
    train, test = np.concatenate(train), np.concatenate(test)
    rng.shuffle(train)
    rng.shuffle(test)
    return train, test


def standardise(X: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """By mean and deviation of the reference rows; a column that is constant there keeps its scale."""
    mean = reference.mean(axis=0)
    deviation = (reference - mean).std(axis=0)
    constant = deviation <= 1e-12 * np.abs(reference).max(axis=0)
    return (X - mean) / np.where(constant, 1.0, deviation)


def measure(basis: np.ndarray, moments: GroupMoments, own: GroupMoments, means: np.ndarray) -> Figures:
    """Of the rows summarised by ``moments`` (ARE), and by ``own`` about the given group means (ABDiff)."""
    whole = moments.second_moments(np.zeros(moments.n_features))
    average = float(moments.shares @ _errors(whole, basis))
    centred = np.stack([own.second_moments(mean)[a] for a, mean in enumerate(means)])
    first, second = _errors(centred, basis)
    return Figures(abs(float(first - second)), average)


def _errors(matrices: np.ndarray, basis: np.ndarray) -> np.ndarray:
    return np.einsum("aii->a", matrices) - np.einsum("pi,api->a", basis, matrices @ basis)


def robust(moments: GroupMoments, alpha: float, penalty: float) -> np.ndarray:
    fitted = RobustFairPCA(N_COMPONENTS, radius=alpha, penalty=penalty).fit_moments(moments)
    return fitted.components_.T


def fair(moments: GroupMoments) -> np.ndarray:
    """FairPCA on group-centred rows, as in the authors' comparison."""
    return FairPCA(N_COMPONENTS, center="group").fit_moments(moments).components_.T


def choose(X: np.ndarray, groups: np.ndarray, seed: int) -> tuple[float, float]:
    """alpha and lambda by three-fold cross-validation on the training rows."""
    grid = list(itertools.product(ALPHAS, PENALTIES))
    totals = np.zeros(len(grid))
    for fitting, scaled, own, means in _folds(X, groups, seed):
        for i, (alpha, penalty) in enumerate(grid):
            totals[i] += measure(robust(fitting, alpha, penalty), scaled, own, means).total
    return grid[int(totals.argmin())]


def _folds(
    X: np.ndarray, groups: np.ndarray, seed: int
) -> Iterator[tuple[GroupMoments, GroupMoments, GroupMoments, np.ndarray]]:
    for inside, outside in KFold(3, shuffle=True, random_state=seed).split(X):
        fitting = group_moments(standardise(X[inside], X[inside]), groups[inside])
        scaled = group_moments(standardise(X[outside], X[inside]), groups[outside])
        own = group_moments(X[outside], groups[outside])
        yield fitting, scaled, own, group_moments(X[inside], groups[inside]).means


def linear_separation(X: np.ndarray, groups: np.ndarray, basis: np.ndarray) -> float:
    """The linear SVM's Delta_F: the largest difference between the groups' distributions of its score.

    As in the authors' code the SVM is fitted to the (standardised) projected test rows themselves, with the
    regularisation for which five-fold cross-validation finds the largest separation. Their solver is
    commercial; this one minimises the squared hinge loss.
    """
    scores = standardise(X @ basis, X @ basis)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(scores, groups))

    def held_out(strength: float) -> float:
        return float(
            np.mean([_separation(_svm(scores[a], groups[a], strength), scores[b], groups[b]) for a, b in folds])
        )

    best = max((1e-4, 1e-2, 1.0, 1e2), key=held_out)
    return _separation(_svm(scores, groups, best), scores, groups)


def _svm(X: np.ndarray, groups: np.ndarray, strength: float) -> LinearSVC:
    return LinearSVC(C=strength, dual=False).fit(X, groups)


def _separation(svm: LinearSVC, X: np.ndarray, groups: np.ndarray) -> float:
    order = np.argsort(svm.decision_function(X))
    ones = groups[order] == 1
    return float(np.abs(np.cumsum(ones) / ones.sum() - np.cumsum(~ones) / (~ones).sum()).max())
