"""Branch and bound: its bound is below every subspace and above the relaxation."""

from __future__ import annotations

import numpy as np
import pytest
from tests.solvers.cases import gap, random_moments, solve

from fairpca.joint_range import JointRange
from fairpca.solvers.range.branch_and_bound import _Search, tighten_bound
from fairpca.solvers.stiefel.geometry import random_frame


def open_cases(k, size, dimension, seeds=range(60), limit=3):
    """Random problems whose relaxation needs extra rank."""
    found = 0
    for seed in seeds:
        matrices = random_moments(np.random.default_rng(seed), k=k, size=size)
        problem, result = solve(matrices, dimension)
        if gap(result) > 1e-4:
            found += 1
            yield problem, JointRange(matrices, dimension), result
        if found == limit:
            return
    assert found == limit


def sphere(n):
    """Directions in three dimensions, at most about 3 / n apart."""
    heights, angles = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 2 * np.pi, 4 * n), indexing="ij")
    radius = np.sqrt(1 - heights**2)
    return np.stack([radius * np.cos(angles), radius * np.sin(angles), heights], axis=-1).reshape(-1, 3)


@pytest.mark.parametrize("complement", [False, True])
def test_bound_is_below_all_lines_and_planes_of_three_dimensions(complement):
    directions = sphere(150)
    for problem, joint, result in open_cases(3, 3, 2 if complement else 1, limit=2):
        along = np.einsum("np,apq,nq->na", directions, joint.matrices, directions)
        captured = joint.traces - along if complement else along
        brute = (problem.offsets - captured).max(axis=1).min()
        tighter = tighten_bound(problem, joint, result, tol=0.25 * gap(result), max_parts=1000)
        assert result.lower_bound < tighter.lower_bound <= brute + 1e-12
        assert tighter.objective <= brute + 1e-12
        assert gap(tighter) < 0.3 * gap(result)


@pytest.mark.parametrize(("k", "size", "dimension"), [(3, 4, 2), (4, 5, 2), (6, 6, 3)])
def test_bound_is_below_every_subspace_that_descents_find(rng, k, size, dimension):
    for problem, joint, result in open_cases(k, size, dimension, limit=2):
        tighter = tighten_bound(problem, joint, result, tol=0.3 * gap(result), max_parts=1000)
        assert gap(tighter) <= 0.3 * gap(result)
        assert tighter.converged
        assert tighter.objective == pytest.approx(problem.value(joint.captured(tighter.basis)), abs=1e-12)
        for _ in range(2000):
            assert problem.value(joint.captured(random_frame(rng, size, dimension))) >= tighter.lower_bound


def test_every_projector_meets_the_conditions_of_its_part(rng):
    """The slack of the condition is known where the intervals are points, and wider intervals only add to it."""
    problem, joint, result = next(open_cases(4, 6, 2, limit=1))
    search = _Search(problem, joint, result, result.relaxed)
    mixed = result.relaxed.eigenvalues < 1 - 1e-6
    whole = result.relaxed.basis[:, ~mixed]
    rest = np.linalg.svd(result.relaxed.basis)[0][:, len(mixed) :]
    for _ in range(20):
        frame = random_frame(rng, 6, 2)
        projector = frame @ frame.T
        entries = np.tensordot(search._entries, projector, axes=2)
        condition, least = search.condition(entries, entries)
        blocks = whole.T @ (np.eye(6) - projector) @ whole, rest.T @ projector @ rest
        slack = sum((block**2).sum() for block in blocks) + 2 * ((whole.T @ projector @ rest) ** 2).sum()
        assert np.vdot(condition, projector) - least == pytest.approx(slack, abs=1e-12)
        wider = search.condition(entries - 0.2 * rng.random(len(entries)), entries + 0.2 * rng.random(len(entries)))
        assert np.vdot(wider[0], projector) - wider[1] > slack


def test_nothing_changes_where_the_gap_is_closed(rng):
    matrices = random_moments(rng, k=2)
    problem, result = solve(matrices, 2)
    assert tighten_bound(problem, JointRange(matrices, 2), result, tol=1e-9, max_parts=10) is result
