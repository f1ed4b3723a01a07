"""Frames: what defines a projection, a retraction and a transport."""

import numpy as np
import pytest

from fairpca.solvers.stiefel.geometry import horizontal, random_frame, retract_polar, retract_qr, transport


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.mark.parametrize("shape", [(5, 1), (7, 3), (4, 4), (30, 10)])
@pytest.mark.parametrize("retract", [retract_qr, retract_polar])
def test_retraction_stays_on_the_manifold_and_agrees_with_the_step_to_first_order(rng, shape, retract):
    basis = random_frame(rng, *shape)
    step = transport(basis, rng.standard_normal(shape))
    assert np.abs(retract(basis, np.zeros(shape)) - basis).max() < 1e-13
    errors = []
    for size in (1e-2, 1e-3):
        frame = retract(basis, size * step)
        assert np.abs(frame.T @ frame - np.eye(shape[1])).max() < 1e-13
        errors.append(np.linalg.norm(frame - basis - size * step))
    assert errors[1] < 0.02 * errors[0]  # second order: a tenth of the step, a hundredth of the error


@pytest.mark.parametrize("project", [transport, horizontal])
def test_projections_are_idempotent_and_self_adjoint(rng, project):
    basis = random_frame(rng, 8, 3)
    first, second = rng.standard_normal((2, 8, 3))
    once = project(basis, first)
    assert np.abs(project(basis, once) - once).max() < 1e-13
    assert np.vdot(project(basis, first), second) == pytest.approx(np.vdot(first, project(basis, second)))
    inner = basis.T @ once
    assert np.abs(inner + inner.T).max() < 1e-13


@pytest.mark.parametrize(("invariant", "project"), [(False, transport), (True, horizontal)])
def test_transport_of_a_stack_projects_each_vector_and_keeps_tangent_ones(rng, invariant, project):
    old, new = random_frame(rng, 9, 4), random_frame(rng, 9, 4)
    vectors = rng.standard_normal((5, 9, 4))
    moved = transport(new, vectors, invariant=invariant)
    for vector, result in zip(vectors, moved, strict=True):
        assert np.abs(result - project(new, vector)).max() < 1e-13
        assert np.linalg.norm(result) <= np.linalg.norm(vector)
    here = project(old, vectors[0])
    assert np.abs(transport(old, here, invariant=invariant) - here).max() < 1e-13


def test_transport_keeps_turns_within_the_subspace_unless_they_do_not_matter(rng):
    basis, square = random_frame(rng, 9, 4), rng.standard_normal((4, 4))
    turn = basis @ (square - square.T)
    assert np.abs(transport(basis, turn) - turn).max() < 1e-13
    assert np.abs(transport(basis, turn, invariant=True)).max() < 1e-13


def test_random_frames_are_orthonormal_and_follow_the_seed():
    first = random_frame(np.random.default_rng(0), 12, 5)
    assert np.abs(first.T @ first - np.eye(5)).max() < 1e-13
    assert (first == random_frame(np.random.default_rng(0), 12, 5)).all()
