"""FPCA as the authors solve it: their semidefinite program, and the leading eigenvectors of its solution.

In units where the objective is ``<S, P>``: ``max <S, P> - w (t_+ + t_-)`` over ``0 <= P <= I``, ``tr P = d``,
``<P, f f^T> <= delta^2`` and ``||P M_+-||^2 <= t_+-``, with ``M_+- M_+-^T = phi_+- I +- Q`` and the smallest possible
phi. It differs from problem (14) of the paper, and from ``ParityPCA(solver="sdp")``, by weighing the two covariance
limits one by one. P has a higher rank than d and often several equal leading eigenvalues: what is left of the solution
after its d leading eigenvectors is arbitrary then.
"""

from __future__ import annotations

import numpy as np

from fairpca._optional import require
from fairpca.linalg import top_eigenpairs
from fairpca.moments import group_moments
from fairpca.solvers.reference.parity_sdp import at_most

__all__ = ["relaxed_components"]

_ACCURACY, _ITERATIONS = 1e-6, 20_000


def relaxed_components(
    X: np.ndarray, groups: np.ndarray, n_components: int, *, tolerance: float, weight: float
) -> tuple[np.ndarray, bool]:
    """Components, and whether the conic solver reached its accuracy."""
    cvxpy = require("cvxpy", "The authors' relaxation")
    moments = group_moments(X, sensitive_features=groups)
    gap = moments.means[1] - moments.means[0]
    within = moments.second_moments("group")
    frame = _frame(gap, tolerance)
    size = frame.shape[1]
    projector = cvxpy.Variable((size, size), PSD=True)
    limits = [projector << np.eye(size), cvxpy.trace(projector) == n_components]
    if tolerance > 0:
        limits.append(cvxpy.sum(cvxpy.multiply(np.outer(gap, gap), projector)) <= tolerance**2)
    covariance = frame.T @ moments.pooled_covariance() @ frame
    gain = cvxpy.sum(cvxpy.multiply(covariance, projector))
    for root in _roots(within[1] - within[0]):
        level = cvxpy.Variable()
        limits.append(at_most(cvxpy, projector, frame.T @ root, level))
        gain -= weight * level
    program = cvxpy.Problem(cvxpy.Maximize(gain), limits)
    program.solve(solver=cvxpy.SCS, eps_abs=_ACCURACY, eps_rel=_ACCURACY, max_iters=_ITERATIONS)
    basis = frame @ top_eigenpairs(0.5 * (projector.value + projector.value.T), n_components)[1]
    return basis.T, program.status == cvxpy.OPTIMAL


def _frame(gap: np.ndarray, tolerance: float) -> np.ndarray:
    """All directions; with tolerance 0 those orthogonal to the difference of means, or there would be no interior."""
    if tolerance > 0:
        return np.eye(len(gap))
    return np.linalg.svd(gap[None])[2][1:].T


def _roots(difference: np.ndarray) -> list[np.ndarray]:
    """M with ``M M^T = phi I +- Q``, each with its own smallest phi."""
    values, vectors = np.linalg.eigh(difference)
    return [vectors * np.sqrt(sign * values + max(0.0, (-sign * values).max())) for sign in (1.0, -1.0)]
