"""The convex-concave procedure for three and more groups."""

import numpy as np
import pytest
from tests.solvers.cases import random_case

from fairpca.joint_range import JointRange
from fairpca.protocols import Status
from fairpca.solvers.range import convex_concave
from fairpca.solvers.range.convex_concave import descend_pieces
from fairpca.solvers.reference.subgradient import descend_subgradient


def solve(matrices, problem, d, **options):
    options = {"tol": 1e-9, "max_iter": 200} | options
    joint = JointRange(matrices, d)
    return descend_pieces(problem, joint, problem.shares, rng=np.random.default_rng(0), **options)


def sphere(n):
    """Evenly spread directions of the upper half of the unit sphere."""
    k = np.arange(n) + 0.5
    height, angle = 1 - k / n, np.pi * (1 + 5**0.5) * k
    flat = np.sqrt(1 - height**2)
    return np.column_stack([flat * np.cos(angle), flat * np.sin(angle), height])


@pytest.mark.parametrize("radius", [0.0, 0.05])
@pytest.mark.parametrize("seed", range(6))
def test_no_direction_of_the_sphere_is_better(seed, radius):
    matrices, problem = random_case(seed, 3, 3, radius)
    result = solve(matrices, problem, 1)
    vectors = sphere(4000)
    captured = np.einsum("np,apq,nq->na", vectors, matrices, vectors)
    errors = np.einsum("aii->a", matrices) - captured
    everywhere = min(problem.value(row) for row in errors)
    assert result.objective <= everywhere + 1e-12
    assert result.lower_bound <= result.objective
    assert result.status in (Status.OPTIMAL, Status.STATIONARY)


@pytest.mark.parametrize(("k", "p", "d"), [(3, 6, 2), (4, 7, 4), (5, 5, 1)])
def test_never_worse_than_subgradient_descent(k, p, d):
    matrices, problem = random_case(10 + k, k, p, 0.02)
    result = solve(matrices, problem, d)
    other = descend_subgradient(
        problem, JointRange(matrices, d), problem.shares, step=p / np.sqrt(501), n_starts=5, max_iter=500,
        rng=np.random.default_rng(1),
    )  # fmt: skip
    assert result.objective <= other.objective + 1e-9
    assert result.lower_bound <= other.objective
    errors = np.einsum("aii->a", matrices) - JointRange(matrices, d).captured(result.basis)
    assert problem.value(errors) == pytest.approx(result.objective, rel=1e-12)


def test_radius_zero_closes_the_gap_where_no_extra_rank_is_needed():
    closed = [solve(*random_case(seed, 3, 6, 0.0), 3).status is Status.OPTIMAL for seed in range(6)]
    assert sum(closed) >= 4


def test_history_descends_within_the_final_stage():
    matrices, problem = random_case(3, 3, 6, 0.05)
    result = solve(matrices, problem, 2)
    assert min(record["objective"] for record in result.history) == pytest.approx(result.objective, rel=1e-12)


def test_full_dimension_is_trivial():
    matrices, problem = random_case(3, 3, 4, 0.05)
    result = solve(matrices, problem, 4)
    assert result.objective == pytest.approx(problem.value(np.zeros(3)), rel=1e-9)


def test_full_steps_alone(monkeypatch):
    """Large matrices take no local steps; treated as large, small ones must come near the same optimum."""
    matrices, problem = random_case(5, 3, 6, 0.02)
    usual = solve(matrices, problem, 2)
    monkeypatch.setattr(convex_concave, "_LOCAL_SIZE", 3)
    alone = solve(matrices, problem, 2, tol=1e-7)
    assert usual.lower_bound <= alone.objective
    assert alone.objective == pytest.approx(usual.objective, rel=2e-3)
