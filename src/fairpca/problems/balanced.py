"""Balanced quality: no group represented worse than need be.

With c_a = <M_a, P> the variance of group a that a projection P captures, b_a the largest possible c_a and
t_a = tr M_a:

==========  ======================================  ===============================================
criterion   minimised                               dual bound, any w in the simplex
==========  ======================================  ===============================================
loss        max_a b_a - c_a  (Samadi et al. 2018)   sum_a w_a b_a - phi(w)
error       max_a t_a - c_a                         sum_a w_a t_a - phi(w)
variance    max_a -c_a                              -phi(w)
nash        -sum_a log c_a                          sum_a log w_a - k log(phi(w) / k),  any w > 0
==========  ======================================  ===============================================

phi(w) is the sum of the d largest eigenvalues of sum_a w_a M_a. "variance" and "nash" are those of
Tantipongpipat et al. (2019).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairpca.linalg import top_eigenpairs
from fairpca.protocols import RangeProblem

__all__ = [
    "CRITERIA",
    "Minimax",
    "NashWelfare",
    "balanced_problem",
    "best_captured",
    "group_errors",
    "group_losses",
]

CRITERIA = ("loss", "error", "variance", "nash")


class Minimax:
    """F(c) = max_a (offset_a - c_a)."""

    normalised = True

    def __init__(self, offsets: np.ndarray) -> None:
        self.offsets = np.asarray(offsets, dtype=float)

    def value(self, captured: np.ndarray) -> float:
        return float((self.offsets - captured).max())

    def bound(self, weights: np.ndarray, support: float) -> float:
        return float(weights @ self.offsets - support)

    def dual(self, weights: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        return float(weights @ self.offsets), self.offsets, np.zeros_like(weights)

    def scaled_weights(self, weights: np.ndarray, support: float) -> np.ndarray:
        return weights

    def along(self, s: float, support: float, slope: float, curvature: float) -> tuple[float, float, float]:
        first, second = self.offsets
        return (1 - s) * first + s * second - support, second - first - slope, -curvature

    def imbalance(self, captured: np.ndarray, weights: np.ndarray) -> float:
        first, second = self.offsets - captured
        return float(second - first)

    def rescale(self, value: float, scale: float, n_groups: int) -> float:
        return value * scale


class NashWelfare:
    """F(c) = -sum_a log c_a. At the optimum w_a = 1 / c_a."""

    normalised = False

    def value(self, captured: np.ndarray) -> float:
        return float(-np.log(captured).sum()) if (captured > 0).all() else np.inf

    def bound(self, weights: np.ndarray, support: float) -> float:
        if support <= 0 or (weights <= 0).any():
            return -np.inf
        return float(np.log(weights).sum() - len(weights) * np.log(support / len(weights)))

    def dual(self, weights: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        return float(np.log(weights).sum() + len(weights)), 1.0 / weights, -1.0 / weights**2

    def scaled_weights(self, weights: np.ndarray, support: float) -> np.ndarray:
        return weights * (len(weights) / support)

    def along(self, s: float, support: float, slope: float, curvature: float) -> tuple[float, float, float]:
        if not 0 < s < 1 or support <= 0:
            return -np.inf, np.inf if s <= 0 else -np.inf, -np.inf
        relative = slope / support
        value = np.log(s) + np.log1p(-s) - 2 * np.log(support / 2)
        return (
            float(value),
            1 / s - 1 / (1 - s) - 2 * relative,
            -1 / s**2 - 1 / (1 - s) ** 2 - 2 * curvature / support + 2 * relative**2,
        )

    def imbalance(self, captured: np.ndarray, weights: np.ndarray) -> float:
        return float(weights[0] * captured[0] - weights[1] * captured[1])

    def rescale(self, value: float, scale: float, n_groups: int) -> float:
        return value - n_groups * float(np.log(scale))


def balanced_problem(criterion: str, matrices: np.ndarray, best: Sequence[float] | np.ndarray) -> RangeProblem:
    """The problem of a criterion; ``best`` are the b_a, used by ``loss`` only."""
    if criterion == "nash":
        return NashWelfare()
    if criterion == "loss":
        return Minimax(np.asarray(best))
    totals = np.einsum("aii->a", matrices)
    return Minimax(totals if criterion == "error" else np.zeros_like(totals))


def best_captured(matrices: np.ndarray, dimension: int) -> np.ndarray:
    """``b_a``: the most that any projection of this rank captures of each group alone."""
    return np.array([top_eigenpairs(matrix, dimension)[0].sum() for matrix in matrices])


def group_errors(matrices: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """``z_a = tr M_a - <M_a, V V^T>``."""
    captured = np.einsum("pi,api->a", basis, matrices @ basis)
    return np.maximum(np.einsum("aii->a", matrices) - captured, 0.0)


def group_losses(matrices: np.ndarray, basis: np.ndarray, best: np.ndarray) -> np.ndarray:
    """``l_a = b_a - <M_a, V V^T>``: what sharing the projection costs each group."""
    return best - np.einsum("pi,api->a", basis, matrices @ basis)
