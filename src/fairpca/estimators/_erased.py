"""The closed forms of mean parity: leading eigenvectors of the covariance of erased rows, and what groups keep."""

from __future__ import annotations

import numpy as np

from fairpca.linalg import eigenvalue_sum_bound, leading_sums, top_eigenpairs
from fairpca.moments._factors import GroupFactors
from fairpca.moments._group_moments import Reduction
from fairpca.problems.balanced import best_captured
from fairpca.problems.erasure import Erasure
from fairpca.protocols import SolverResult, Status
from fairpca.solvers.range.operator_dual import best_of_operators, leading_of_operator

#: Accuracy of sums of eigenvalues that are computed by products with the rows, relative to the total variance.
PRODUCT_TOL = 1e-5
#: Gap of a closed form, relative to the total variance, that counts as closed: far above rounding.
_CLOSED = 1e-9


def leading_of_covariance(covariance: np.ndarray, dimension: int, total: float | None = None) -> SolverResult:
    """Leading eigenvectors, with a proof that none was missed; minus the sum of their values is the objective.

    ``total`` is the variance before anything was removed, if anything was. Where only rounding errors of it are left,
    no eigenvalue stands out that could be proven to lead, and the bound is that of all eigenvalues and their rounding.
    """
    total = float(np.trace(covariance)) if total is None else total
    values, basis = top_eigenpairs(covariance, dimension)
    value, most = -float(values.sum()), eigenvalue_sum_bound(covariance, basis)
    if not np.isfinite(most):
        rounding = dimension * len(covariance) * np.finfo(float).eps * total
        most = float(leading_sums(covariance[None], dimension)[0, -1]) + rounding
    status = Status.OPTIMAL if value + most <= _CLOSED * total else Status.UNPROVEN
    return SolverResult(basis, value, -most, np.zeros(0), status, 1, 1)


def leading_of_erased_rows(
    reduction: Reduction, erasure: Erasure, dimension: int, rng: np.random.Generator
) -> SolverResult:
    """The same for the covariance ``A S A^T`` of the erased rows; by products with the rows if there are too many."""
    if not isinstance(reduction, GroupFactors):
        erased = erasure.covariance(reduction.moments.pooled_covariance())
        return leading_of_covariance(erased, dimension, reduction.pooled_variance())
    products, shares = reduction.second_moments(), reduction.shares

    def covariance(vectors: np.ndarray) -> np.ndarray:
        return erasure.apply(products.combined(shares, erasure.transpose(vectors)))

    tol = PRODUCT_TOL * max(reduction.pooled_variance(), np.finfo(float).tiny)
    return leading_of_operator(covariance, reduction.size, dimension, tol=tol, rng=rng)


def group_bests(reduction: Reduction, dimension: int, rng: np.random.Generator) -> np.ndarray:
    """The most that any projection of this rank can capture of each group alone."""
    moments = reduction.second_moments()
    if isinstance(moments, np.ndarray):
        return best_captured(moments, dimension)
    return best_of_operators(moments, dimension, tol=PRODUCT_TOL * reduction.pooled_variance(), rng=rng)
