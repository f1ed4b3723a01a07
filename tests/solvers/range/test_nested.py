"""One direction at a time: every step is optimal given the earlier ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import null_space

from fairpca.protocols import Status
from fairpca.solvers.range.dual import minimise_on_range
from fairpca.solvers.range.nested import minimise_nested


def random_matrices(rng, k, p):
    factors = rng.normal(size=(k, p, p)) * np.exp(rng.normal(size=(k, 1, p)))
    return factors @ factors.transpose(0, 2, 1)


def solve_step(problem, joint):
    rng = np.random.default_rng(0)
    return minimise_on_range(problem, joint, tol=1e-11, max_iter=500, rng=rng)


def own_sums(matrices, d):
    return np.cumsum(np.linalg.eigvalsh(matrices)[:, ::-1], axis=1)[:, :d].T


def step_value(matrices, offsets, basis):
    return float((offsets - np.einsum("pi,api->a", basis, matrices @ basis)).max())


@pytest.mark.parametrize("p", [2, 3, 4, 7])
@pytest.mark.parametrize("k", [2, 4])
def test_basis_objectives_and_captures_belong_together(rng, k, p):
    matrices = random_matrices(rng, k, p)
    offsets = own_sums(matrices, p)
    found = minimise_nested(offsets, matrices, solve_step)
    assert np.allclose(found.basis.T @ found.basis, np.eye(p), atol=1e-12)
    for j in range(p):
        value = step_value(matrices, offsets[j], found.basis[:, : j + 1])
        assert np.isclose(found.objectives[j], value, atol=1e-9 * offsets.max())
    assert np.allclose(found.captured, np.einsum("aii->a", matrices))
    assert np.isclose(found.objectives[-1], 0.0, atol=1e-9 * offsets.max())


@pytest.mark.parametrize(("k", "seed"), [*((2, seed) for seed in range(10)), (3, 0), (4, 1), (5, 2)])
def test_no_other_direction_is_better(k, seed):
    """Brute force: directions of the complement on a grid (dimension 2), or at random with a local search (3)."""
    rng = np.random.default_rng(seed)
    matrices = random_matrices(rng, k, 4)
    offsets = own_sums(matrices, 4)
    found = minimise_nested(offsets, matrices, solve_step)
    assert found.status is Status.OPTIMAL or k > 2  # a single direction cannot always serve more than two
    for j in range(1, 4):
        rest = null_space(found.basis[:, :j].T)
        if rest.shape[1] == 2:
            angles = np.linspace(0, np.pi, 20001)
            tried = rest @ np.stack([np.cos(angles), np.sin(angles)])
        else:
            tried = rest @ rng.normal(size=(rest.shape[1], 200_000))
            tried /= np.linalg.norm(tried, axis=0)
        base = np.einsum("pi,api->a", found.basis[:, :j], matrices @ found.basis[:, :j])
        gains = np.einsum("pi,api->ai", tried, matrices @ tried)
        best = ((offsets[j] - base)[:, None] - gains).max(axis=0).min()
        assert found.objectives[j] <= best + 1e-9 * offsets.max()
        assert best <= found.objectives[j] + 0.02 * offsets.max()  # the brute force looks in the right place


def test_symmetric_groups_tie_and_every_step_is_still_optimal():
    """Rows of an identity matrix: whole families of directions are equally good, and local searches end elsewhere."""
    rows, groups = np.eye(6) - 1 / 6, np.arange(6) % 4
    matrices = np.stack([rows[groups == a].T @ rows[groups == a] / (groups == a).sum() for a in range(4)])
    offsets = own_sums(matrices, 5)
    found = minimise_nested(offsets, matrices, solve_step)
    rng = np.random.default_rng(0)
    for j in range(5):
        rest = null_space(found.basis[:, :j].T) if j else np.eye(6)
        base = np.einsum("pi,api->a", found.basis[:, :j], matrices @ found.basis[:, :j])
        tried = rng.normal(size=(rest.shape[1], 30_000))
        for radius in 0.5 ** np.arange(12):  # random search, around the best 30 so far
            tried /= np.linalg.norm(tried, axis=0)
            gains = np.einsum("ip,api->ai", (rest @ tried).T, matrices @ (rest @ tried))
            values = ((offsets[j] - base)[:, None] - gains).max(axis=0)
            near = tried[:, values.argsort()[:30]]
            tried = np.repeat(near, 300, axis=1)
            tried[:, 30:] += radius * rng.normal(size=(rest.shape[1], tried.shape[1] - 30))
        assert found.objectives[j] <= values.min() + 1e-9
        assert values.min() <= found.objectives[j] + 2e-3  # the random search looks in the right place


@pytest.mark.parametrize("p", [2, 3, 5])
def test_every_step_has_a_certificate_of_its_own(rng, p):
    """Weights w >= 0 of sum 1: w . offsets - lambda_max(sum_a w_a A_a on the complement) bounds the step from below."""
    matrices = random_matrices(rng, 2, p)
    offsets = own_sums(matrices, p)
    found = minimise_nested(offsets, matrices, solve_step)
    for j, step in enumerate(found.steps):
        earlier = found.basis[:, :j]
        rest = null_space(earlier.T) if j else np.eye(p)
        base = np.einsum("pi,api->a", earlier, matrices @ earlier)
        assert (step.weights >= 0).all()
        assert np.isclose(step.weights.sum(), 1.0)
        largest = np.linalg.eigvalsh(rest.T @ np.tensordot(step.weights, matrices, axes=1) @ rest)[-1]
        bound = step.weights @ (offsets[j] - base) - largest
        assert step.objective - bound <= 1e-9 * offsets.max()


def test_offsets_can_put_the_optimum_at_a_vertex():
    """If one matrix lags behind by more than any direction can give it, it alone decides, and terms are not equal."""
    matrices = np.stack([np.diag([3.0, 2.0, 0.0]), np.diag([3.0, 0.0, 0.1])])
    found = minimise_nested(np.array([[3.0, 3.0], [9.0, 3.1]]), matrices, solve_step)
    assert np.allclose(np.abs(found.basis), np.eye(3)[:, :2], atol=1e-6)
    assert np.allclose(found.steps[1].weights, [1.0, 0.0])
    assert np.isclose(found.objectives[1], 9.0 - 5.0)
    assert np.allclose(found.captured, [5.0, 3.0])


def test_a_step_that_did_not_converge_is_reported(rng):
    matrices = random_matrices(rng, 2, 5)

    def stops_early(problem, joint):
        return minimise_on_range(problem, joint, tol=0.0 if joint.size == 4 else 1e-9, max_iter=1, rng=rng)

    statuses = minimise_nested(own_sums(matrices, 3), matrices, stops_early)
    assert statuses.status is Status.MAX_ITER
