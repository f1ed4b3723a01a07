"""Random matrices, and problems on them, for the tests of searches over a joint range."""

from __future__ import annotations

import numpy as np

from fairpca.joint_range import JointRange
from fairpca.problems.balanced import balanced_problem
from fairpca.problems.robust import RobustGap
from fairpca.solvers.range.dual import minimise_on_range


def random_moments(rng, k=3, size=7):
    factors = rng.normal(size=(k, size, size))
    return factors @ factors.transpose(0, 2, 1) / size


def wishart(rng, k, size, spread=1.0):
    """Random second moments of total variance one."""
    factors = rng.normal(size=(k, size, size)) * np.exp(-spread * rng.random((k, 1, size)))
    matrices = factors @ factors.transpose(0, 2, 1)
    return matrices / np.einsum("aii->a", matrices).mean()


def solve(matrices, dimension, criterion="loss", tol=1e-11):
    joint = JointRange(matrices, dimension)
    problem = balanced_problem(criterion, joint.traces, joint.best)
    rng = np.random.default_rng(0)
    return problem, minimise_on_range(problem, joint, tol=tol, max_iter=100, rng=rng)


def gap(result):
    return result.objective - result.lower_bound


def relaxed_capture(matrices, relaxed):
    """``<A_a, P>`` for the relaxed optimum."""
    return np.einsum("pi,apq,qi,i->a", relaxed.basis, matrices, relaxed.basis, relaxed.eigenvalues)


def random_case(seed, k, p, radius):
    """Matrices of total variance one, and a robust gap of their errors."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((k, p, 2 * p)) * np.exp(0.6 * rng.standard_normal((k, p, 1)))
    matrices = factors @ factors.transpose(0, 2, 1)
    shares = rng.dirichlet(np.full(k, 3.0))
    matrices /= shares @ np.einsum("aii->a", matrices)
    radii = radius * rng.uniform(0.5, 1, k)
    problem = RobustGap(shares, radii, rng.uniform(0.2, 2), np.einsum("aii->a", matrices))
    return matrices, problem
