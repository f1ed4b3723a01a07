"""Balanced quality: no group is represented worse than necessary.

Let c_a = <M_a, P> be the variance of group a that a projection P captures, b_a the largest possible c_a, and
t_a = tr M_a:

==========  ======================================  ===============================================
criterion   minimised                               dual bound, any w in the simplex
==========  ======================================  ===============================================
loss        max_a b_a - c_a  (Samadi et al. 2018)   sum_a w_a b_a - phi(w)
error       max_a t_a - c_a                         sum_a w_a t_a - phi(w)
variance    max_a -c_a                              -phi(w)
nash        -sum_a log c_a                          sum_a log w_a - k log(phi(w) / k),  any w > 0
mean        mean_a t_a - c_a                        the same as for error, at w_a = 1 / k: equal
==========  ======================================  ===============================================

phi(w) is the sum of the d largest eigenvalues of sum_a w_a M_a. The criteria "variance" and "nash" are due to
Tantipongpipat et al. (2019). In relative terms every M_a is divided by t_a first, so that captured variances, errors
and losses are shares of each group's own variance (:func:`group_scales`).
"""

from __future__ import annotations

import numpy as np

from fairpca.joint_range import Minimax
from fairpca.linalg import leading_sums
from fairpca.protocols import Expansion, RangeProblem

CRITERIA = ("loss", "error", "variance", "nash")
"""What FairPCA can balance by a search."""


class NashWelfare:
    """F(c) = -sum_a log c_a. At the optimum w_a = 1 / c_a."""

    normalised = False
    offsets = np.zeros(1)

    def value(self, captured: np.ndarray) -> float:
        return float(-np.log(captured).sum()) if (captured > 0).all() else np.inf

    def bound(self, weights: np.ndarray, support: float) -> float:
        if support <= 0 or (weights <= 0).any():
            return -np.inf
        return float(np.log(weights).sum() - len(weights) * np.log(support / len(weights)))

    def dual(self, weights: np.ndarray) -> Expansion:
        return Expansion(float(np.log(weights).sum() + len(weights)), 1.0 / weights, -1.0 / weights**2)

    def scaled_weights(self, weights: np.ndarray, support: float) -> np.ndarray:
        return weights * (len(weights) / support)

    def rescale(self, value: float, scale: float, n_groups: int) -> float:
        return value - n_groups * float(np.log(scale))


class MeanError(Minimax):
    """F(c) = mean_a (offset_a - c_a): a closed form, of which only values and bounds at equal weights are needed."""

    def value(self, captured: np.ndarray) -> float:
        return float((self.offsets - captured).mean())


def balanced_problem(criterion: str, totals: np.ndarray, best: np.ndarray) -> RangeProblem:
    """The problem for a criterion, given the t_a and the b_a."""
    if criterion == "nash":
        return NashWelfare()
    if criterion == "mean":
        return MeanError(totals)
    offsets = {"loss": best, "error": totals, "variance": np.zeros_like(totals)}
    return Minimax(offsets[criterion])


def group_scales(totals: np.ndarray, shares: np.ndarray, *, relative: bool) -> tuple[np.ndarray, float]:
    """What each M_a is divided by before a search, given the t_a, and the unit of the values that the search returns.

    In relative terms, M_a is divided by t_a, and values are shares. Otherwise all are divided by the total variance,
    since tolerances and thresholds in solvers are relative to it, and values are in its units.
    """
    if relative:
        return totals.copy(), 1.0
    scale = float(shares @ totals)
    scale = scale if scale > 0 else 1.0
    return np.full_like(totals, scale), scale


def best_captured(matrices: np.ndarray, dimension: int) -> np.ndarray:
    """``b_a``: the most that any projection of this rank can capture of each group alone."""
    return leading_sums(matrices, dimension)[:, -1]
