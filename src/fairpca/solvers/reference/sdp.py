"""The relaxation as a semidefinite program with a free conic solver, and an extreme point of its solutions.

Algorithm 1 of Samadi et al. (2018): solve ``min F(c(P)), 0 <= P <= I, tr P <= d``, and move to an extreme point. The
paper keeps the eigenvectors of P and recomputes its eigenvalues with a linear program, whose vertices have at most
k - 1 fractional ones; :func:`~fairpca.solvers.range.rounding.reduce_rank` leaves no more of them. A reference for tests
and benchmarks: it needs the extra ``fairpca[sdp]``, and its cost grows steeply with the number of features.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from fairpca._optional import require
from fairpca.joint_range import Incumbent, JointRange
from fairpca.protocols import RangeProblem, SolverResult, Status
from fairpca.solvers.range.rounding import reduce_rank

_CONIC_ACCURACY = 1e-5


def solve_sdp(problem: RangeProblem, joint: JointRange, *, tol: float) -> SolverResult:
    """Solve the semidefinite program with SCS, then round as Algorithm 1 does."""
    cvxpy = require("cvxpy", "The semidefinite relaxation", otherwise="The default solver needs neither.")
    size = joint.size
    projector = cvxpy.Variable((size, size), PSD=True)
    captured = [cvxpy.sum(cvxpy.multiply(matrix, projector)) for matrix in joint.matrices]
    limits = [projector << np.eye(size), cvxpy.trace(projector) <= joint.dimension]
    if problem.normalised:
        level = cvxpy.Variable()
        terms = [level >= offset - value for offset, value in zip(problem.offsets, captured, strict=True)]
        program = cvxpy.Problem(cvxpy.Minimize(level), [*terms, *limits])
    else:
        terms = []
        program = cvxpy.Problem(cvxpy.Maximize(sum(cvxpy.log(value) for value in captured)), limits)
    program.solve(solver=cvxpy.SCS, eps_abs=1e-8, eps_rel=1e-8, max_iters=20_000)
    values, vectors = np.linalg.eigh(0.5 * (projector.value + projector.value.T))
    values = np.clip(values, 0.0, 1.0)
    relaxed = reduce_rank(joint.matrices, vectors, values)
    weights = _dual_weights(problem, joint, terms, vectors, values)
    found = Incumbent(problem, joint)  # the better of the rounded optimum and the subspace at the dual weights
    basis = relaxed.basis[:, : joint.dimension]
    found.try_basis(problem.value(joint.captured(basis)), basis)
    found.try_point(joint.point(weights))
    found.n_iter = int(program.solver_stats.num_iters or 0)
    # A first-order conic solver is at best as accurate as its own tolerance.
    return dataclasses.replace(found.result(max(tol, _CONIC_ACCURACY), Status.GAP), relaxed=relaxed)


def _dual_weights(
    problem: RangeProblem, joint: JointRange, terms: list, vectors: np.ndarray, values: np.ndarray
) -> np.ndarray:
    if terms:
        weights = np.array([max(float(term.dual_value), 0.0) for term in terms])
        return weights / weights.sum()
    return 1.0 / np.einsum("pi,api,i->a", vectors, joint.matrices @ vectors, values)
