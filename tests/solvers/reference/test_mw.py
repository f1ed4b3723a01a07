"""Multiplicative weights against the exact search."""

from __future__ import annotations

import numpy as np
import pytest
from tests.solvers.cases import solve, wishart

from fairpca.joint_range import JointRange
from fairpca.solvers.reference.mw import multiplicative_weights


def test_the_bound_and_the_subspace_approach_the_exact_ones(rng):
    matrices = wishart(rng, 3, 7)
    problem, exact = solve(matrices, 2)
    slow = multiplicative_weights(problem, JointRange(matrices, 2), tol=1e-9, max_iter=3000)
    assert exact.lower_bound - 1e-9 <= slow.objective
    assert slow.lower_bound <= exact.objective + 1e-12
    assert np.isclose(slow.lower_bound, exact.lower_bound, atol=1e-4)


def test_multiplicative_weights_raises_for_other_objectives(rng):
    matrices = wishart(rng, 2, 5)
    problem, _ = solve(matrices, 2, "nash")
    with pytest.raises(ValueError, match="minimise a largest term"):
        multiplicative_weights(problem, JointRange(matrices, 2), tol=1e-9, max_iter=10)
