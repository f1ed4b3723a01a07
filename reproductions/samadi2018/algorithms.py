"""The paper's own algorithms, for comparison with ours: multiplicative weights with a fixed rate, and Algorithm 1."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fairpca import FairPCA
from fairpca.joint_range import JointRange
from fairpca.linalg import top_eigenpairs
from fairpca.moments import GroupMoments, group_moments
from fairpca.problems.balanced import best_captured
from reproductions.samadi2018.protocol import Data

__all__ = [
    "RATES",
    "Rounded",
    "Trace",
    "adaptive_weights",
    "algorithm_one",
    "eigengap",
    "erratum_oracle",
    "multiplicative_weights",
    "stopped_early",
    "true_oracle",
]

#: Rates tried, since the paper says that one parameter of multiplicative weights needs tuning.
RATES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)

#: Two groups: the search begins with so many eigenproblems, whatever the limit.
_FIRST_CALLS = 3

#: From the groups' weights to their losses.
Oracle = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Trace:
    """Losses of each group at the iterates of multiplicative weights."""

    losses: np.ndarray

    @property
    def values(self) -> np.ndarray:
        """After 1, 2, ... steps: the largest loss of the average or of the last iterate, whichever is smaller.

        That is the authors' choice. Losses are linear in the projector, so those of the average are averages.
        """
        average = np.cumsum(self.losses, axis=0) / np.arange(1, len(self.losses) + 1)[:, None]
        return np.minimum(average.max(axis=1), self.losses.max(axis=1))


def multiplicative_weights(oracle: Oracle, n_groups: int, rate: float, steps: int) -> Trace:
    """Algorithm 3 with a constant rate, from equal weights (kept as logarithms: none of them vanishes)."""
    logarithms = np.zeros(n_groups)
    losses = []
    for _ in range(steps):
        weights = np.exp(logarithms - logarithms.max())
        losses.append(oracle(weights / weights.sum()))
        logarithms = logarithms + rate * losses[-1]
    return Trace(np.array(losses))


def true_oracle(moments: GroupMoments, dimension: int) -> Oracle:
    """Algorithm 2: losses at the leading eigenvectors of the weighted sum, each group about its own mean."""
    matrices = moments.second_moments("group")
    best = best_captured(matrices, dimension)
    joint = JointRange(matrices, dimension)
    start = None

    def losses(weights: np.ndarray) -> np.ndarray:
        nonlocal start
        point = joint.point(weights, start=start)
        start = point.basis
        return best - point.captured

    return losses


def erratum_oracle(data: Data, dimension: int) -> tuple[Oracle, Callable[[np.ndarray], np.ndarray]]:
    """As the authors' creditProcess.m and mw.m compute it: the oracle, and the losses of a given basis.

    The script subtracts a group's mean from as many of its rows as there are features, not from all. What is
    projected is then not centred, while the function that yields a group's best projection, and the weighted one,
    centres whatever it is given: the "best" is not the best of the rows that it is compared on.
    """
    moments = group_moments(_rows_with_erratum(data), sensitive_features=data.groups)
    raw = moments.second_moments(np.zeros(moments.n_features))
    own = [top_eigenpairs(matrix, dimension)[1] for matrix in moments.second_moments("group")]
    best = np.array([_captured(matrix, basis) for matrix, basis in zip(raw, own, strict=True)])

    def of_basis(basis: np.ndarray) -> np.ndarray:
        return best - np.array([_captured(matrix, basis) for matrix in raw])

    def losses(weights: np.ndarray) -> np.ndarray:
        total = (np.sqrt(weights / moments.counts) * moments.counts) @ moments.means
        stacked = np.tensordot(weights, raw, axes=1) - np.outer(total, total) / moments.total_count
        return of_basis(top_eigenpairs(stacked, dimension)[1])

    return losses, of_basis


def _rows_with_erratum(data: Data) -> np.ndarray:
    rows = data.X.copy()
    means = dict(zip(data.moments.labels, data.moments.means, strict=True))
    for label, mean in means.items():
        first = np.flatnonzero(data.groups == label)[: rows.shape[1]]
        rows[first] -= mean
    return rows


def _captured(matrix: np.ndarray, basis: np.ndarray) -> float:
    return float(np.einsum("pi,pi->", basis, matrix @ basis))


def eigengap(moments: GroupMoments, dimension: int, weights: np.ndarray) -> float:
    """``1 - lambda_(d+1) / lambda_d`` of the weighted sum; 0 where the best subspace is not unique."""
    combined = JointRange(moments.second_moments("group"), dimension).combine(weights)
    values = top_eigenpairs(combined, dimension + 1)[0]
    return float(1 - values[dimension] / values[dimension - 1]) if values[dimension - 1] > 0 else 0.0


def stopped_early(moments: GroupMoments, dimension: int) -> np.ndarray:
    """What our search would return if it stopped earlier: eigenproblems solved and largest loss, in columns."""
    found: list[tuple[int, float]] = []
    for limit in range(1, 50):
        fit = _quiet_fit(FairPCA(dimension, center="group", max_iter=limit), moments)
        step = fit.n_oracle_calls_, float(fit.group_losses_.max())
        if step not in found:
            found.append(step)
        elif limit > _FIRST_CALLS:  # with three groups or more the limit changes nothing
            break
        if fit.converged_:
            break
    return np.array(found)


@dataclass(frozen=True)
class Rounded:
    """Algorithm 1: the semidefinite program, then an extreme point with few fractional eigenvalues."""

    dimension: int
    rank: int
    objective: float


def algorithm_one(moments: GroupMoments, dimension: int) -> Rounded:
    """Needs the extra ``fairpca[sdp]``; ImportError without it."""
    fit = _quiet_fit(FairPCA(dimension, center="group", solver="sdp"), moments)
    return Rounded(dimension, fit.relaxed_.rank, float(fit.relaxed_.objective))


def adaptive_weights(moments: GroupMoments, dimension: int, steps: int) -> float:
    """Our multiplicative weights with an adaptive rate: the largest loss after the given number of steps."""
    fit = _quiet_fit(FairPCA(dimension, center="group", solver="mw", max_iter=steps), moments)
    return float(fit.group_losses_.max())


def _quiet_fit(pca: FairPCA, moments: GroupMoments) -> FairPCA:
    """Ignore convergence warnings: stopping before the gap closes is intended here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return pca.fit_moments(moments)
