"""Multiplicative weights (Samadi et al. 2018, Algorithms 2 and 3), for any number of matrices."""

from __future__ import annotations

import numpy as np

from fairpca.joint_range import JointRange
from fairpca.linalg import top_eigenpairs
from fairpca.protocols import RangeProblem, SolverResult, Status

__all__ = ["multiplicative_weights"]


_FASTER, _SLOWER = 1.1, 0.9


def multiplicative_weights(
    problem: RangeProblem, joint: JointRange, *, tol: float, max_iter: int, rate: float | None = None
) -> SolverResult:
    """Repeat ``w <- w exp(rate * terms)``, normalised, from equal weights.

    The paper averages the projectors, which is not of rank d, or takes the last one. Returned here is the best
    subspace of rank d met on the way: an iterate, or the leading part of the average.

    The paper advises to tune the rate aggressively. It starts at ``1 / (largest first term)`` unless given, grows while
    steps bring a better subspace or bound, and shrinks when one does not: with a constant rate the iterates either
    crawl or end in a cycle around the optimum.
    """
    if not problem.normalised:
        raise ValueError("solver='mw' minimises a largest term; use solver='dual' for criterion='nash'.")
    k = joint.n_matrices
    weights = np.full(k, 1.0 / k)
    average = np.zeros((joint.size, joint.size))
    best, bound, dual = np.inf, -np.inf, weights
    basis = start = None
    steps = 0
    while steps < max(max_iter, 1):
        steps += 1
        point = joint.point(weights, start=start)
        start = point.basis
        average += point.basis @ point.basis.T
        terms = problem.dual(weights)[1] - point.captured
        improved = False
        if terms.max() < best:
            best, basis, improved = float(terms.max()), point.basis, True
        if problem.bound(weights, point.support) > bound:
            bound, dual, improved = problem.bound(weights, point.support), weights, True
        if best - bound <= tol:
            break
        if rate is None:
            rate = 1.0 / max(float(np.abs(terms).max()), np.finfo(float).tiny)
        else:
            rate *= _FASTER if improved else _SLOWER
        weights = weights * np.exp(rate * (terms - terms.max()))
        weights = weights / weights.sum()
    leading = top_eigenpairs(average, joint.dimension)[1]
    if basis is None or problem.value(joint.captured(leading)) < best:
        best, basis = problem.value(joint.captured(leading)), leading
    status = Status.OPTIMAL if best - bound <= tol else Status.MAX_ITER
    return SolverResult(basis, best, bound, dual, status, steps, joint.calls)
