"""Olfat and Aswani's semidefinite relaxation of moment parity, with a free conic solver: a reference.

``max <S, P> - mu t`` over ``0 <= P <= I``, ``tr P <= d``, ``<f_j f_j^T, P> <= delta^2`` and
``[[t I, P M], [M^T P, I]] >= 0`` for every M with ``M M^T = phi I +- Q_ab`` (their problem (14)), which says
``t >= ||P M||^2``. For a projector of rank d the smallest t is phi plus the largest ``||V^T Q_ab V||_2``. The
basis is that of the d leading eigenvectors of P. It needs the extra ``fairpca[sdp]`` and grows steeply with p.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fairpca._optional import require
from fairpca.linalg import top_eigenpairs


class ConicSolution(NamedTuple):
    """The basis from the relaxed optimum, the number of iterations, and whether the solver reached its own accuracy."""

    basis: np.ndarray
    n_iter: int
    finished: bool


def solve_parity_sdp(
    covariance: np.ndarray,
    differences: np.ndarray,
    directions: np.ndarray,
    dimension: int,
    *,
    penalty: float,
    tolerance: float,
) -> ConicSolution:
    """Solve the semidefinite program with SCS, and round.

    If ``tolerance`` is 0, pass the matrices restricted to the null space of the directions, and no directions: as an
    inequality the limit would leave the feasible set without an interior, which makes conic solvers fail.
    """
    cvxpy = require("cvxpy", "The semidefinite relaxation", otherwise="The default solver needs neither.")
    size = len(covariance)
    projector = cvxpy.Variable((size, size), PSD=True)
    limits = [projector << np.eye(size), cvxpy.trace(projector) <= dimension]
    limits += [cvxpy.sum(cvxpy.multiply(np.outer(f, f), projector)) <= tolerance**2 for f in directions]
    gain = cvxpy.sum(cvxpy.multiply(covariance, projector))
    if penalty > 0:
        level = cvxpy.Variable()
        limits += [at_most(cvxpy, projector, root, level) for root in _roots(differences)]
        gain -= penalty * level
    program = cvxpy.Problem(cvxpy.Maximize(gain), limits)
    program.solve(solver=cvxpy.SCS, eps_abs=1e-6, eps_rel=1e-6, max_iters=10_000)
    relaxed = 0.5 * (projector.value + projector.value.T)
    finished = program.status == cvxpy.OPTIMAL
    basis = top_eigenpairs(relaxed, dimension)[1]
    return ConicSolution(basis, int(program.solver_stats.num_iters or 0), finished)


def _roots(differences: np.ndarray) -> list[np.ndarray]:
    """Symmetric M with ``M M^T = phi I +- Q``, for one phi large enough for all of them."""
    values, vectors = np.linalg.eigh(differences)
    shift = np.abs(values).max()
    return [
        (vector * np.sqrt(np.maximum(shift + sign * value, 0.0))) @ vector.T
        for value, vector in zip(values, vectors, strict=True)
        for sign in (1.0, -1.0)
    ]


def at_most(cvxpy: Any, projector: Any, root: np.ndarray, level: Any) -> Any:
    """``||P M||^2 <= t`` as a linear matrix inequality."""
    product = projector @ root
    rows, columns = root.shape
    return cvxpy.bmat([[level * np.eye(rows), product], [product.T, np.eye(columns)]]) >> 0
