"""Multiplicative weights (Samadi et al. 2018, Algorithms 2 and 3), for any number of matrices."""

from __future__ import annotations

import numpy as np

from fairpca.joint_range import Incumbent, JointRange
from fairpca.linalg import top_eigenpairs
from fairpca.protocols import RangeProblem, SolverResult, Status

_FASTER, _SLOWER = 1.1, 0.9


def multiplicative_weights(problem: RangeProblem, joint: JointRange, *, tol: float, max_iter: int) -> SolverResult:
    """Repeat ``w <- w exp(rate * terms)``, normalised, from equal weights.

    The paper takes the average of the projectors, which does not have rank d, or the last one. Here the best subspace
    of dimension d is returned: an iterate, or the leading eigenvectors of the average.

    The paper recommends tuning the rate aggressively. It starts at ``1 / (largest first term)``, grows while steps
    improve the subspace or the bound, and shrinks otherwise: with a constant rate the iterates either converge very
    slowly or cycle around the optimum.
    """
    if not problem.normalised:
        raise ValueError("Multiplicative weights minimise a largest term, and this objective is not of that form.")
    weights = np.full(joint.n_matrices, 1.0 / joint.n_matrices)
    average, rate = np.zeros((joint.size, joint.size)), 0.0
    found, start = Incumbent(problem, joint), None
    for step in found.steps(tol, max(max_iter, 1)):
        point = joint.point(weights, start=start)
        start = point.basis
        average += point.basis @ point.basis.T
        terms = problem.offsets - point.captured
        faster = found.try_point(point)
        if step == 1:
            rate = 1.0 / max(float(np.abs(terms).max()), np.finfo(float).tiny)
        else:
            rate *= _FASTER if faster else _SLOWER
        weights = weights * np.exp(rate * (terms - terms.max()))
        weights = weights / weights.sum()
    leading = top_eigenpairs(average, joint.dimension)[1]
    found.try_basis(problem.value(joint.captured(leading)), leading)
    return found.result(tol, Status.MAX_ITER)
