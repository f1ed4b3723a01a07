"""The closed forms of mean parity: leading eigenvectors of the covariance of erased rows, and what groups keep."""

from __future__ import annotations

import numpy as np

from fairpca.linalg import eigenvalue_sum_bound, top_eigenpairs
from fairpca.moments._factors import GroupFactors
from fairpca.moments._group_moments import Reduction
from fairpca.problems.balanced import best_captured
from fairpca.problems.erasure import Erasure
from fairpca.protocols import SolverResult, Status
from fairpca.solvers.range.operator_dual import best_of_operators, leading_of_operator

__all__ = ["group_bests", "leading_of_covariance", "leading_of_erased_rows"]

#: Accuracy of sums of eigenvalues that are computed by products with the rows, relative to the total variance.
PRODUCT_TOL = 1e-5


def leading_of_covariance(covariance: np.ndarray, dimension: int) -> SolverResult:
    """Leading eigenvectors, with a proof that none was missed; minus the sum of their values is the objective."""
    values, basis = top_eigenpairs(covariance, dimension)
    bound = -eigenvalue_sum_bound(covariance, basis)
    return SolverResult(basis, -float(values.sum()), bound, np.zeros(0), Status.OPTIMAL, 1, 1)


def leading_of_erased_rows(
    reduction: GroupFactors, erasure: Erasure, dimension: int, rng: np.random.Generator
) -> SolverResult:
    """The same for the covariance ``A S A^T`` of the erased rows, by products with the rows."""
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
