"""The semidefinite program and its rounding against the exact search."""

from __future__ import annotations

import numpy as np
from tests.solvers.cases import relaxed_capture, solve, wishart

from fairpca.joint_range import JointRange
from fairpca.solvers.reference.sdp import solve_sdp


def test_three_groups_agree_with_the_exact_solution(rng):
    matrices = wishart(rng, 3, 7)
    problem, exact = solve(matrices, 2)
    conic = solve_sdp(problem, JointRange(matrices, 2), tol=1e-6)
    assert np.isclose(conic.lower_bound, exact.lower_bound, atol=1e-6)
    assert len(conic.relaxed.eigenvalues) <= 2 + 3 - 1
    fractional = (conic.relaxed.eigenvalues > 1e-6) & (conic.relaxed.eigenvalues < 1 - 1e-6)
    assert fractional.sum() <= 2  # no more than a vertex of the paper's linear program has
    assert np.isclose(problem.value(relaxed_capture(matrices, conic.relaxed)), exact.lower_bound, atol=1e-6)


def test_sdp_agrees_for_the_nash_criterion(rng):
    matrices = wishart(rng, 2, 5)
    problem, exact = solve(matrices, 2, "nash")
    conic = solve_sdp(problem, JointRange(matrices, 2), tol=1e-6)
    assert np.isclose(conic.objective, exact.objective, atol=1e-5)
    assert exact.objective <= conic.objective + 1e-10
