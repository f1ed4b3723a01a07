"""Minimisation over frames, against problems whose minimum is known."""

import numpy as np
import pytest

from fairpca.solvers.stiefel.geometry import horizontal, random_frame
from fairpca.solvers.stiefel.quasi_newton import descend_on_stiefel, minimise_on_stiefel


def captured(matrix):
    return lambda V: (-np.vdot(V, matrix @ V), -2 * matrix @ V)


def spectrum(rng, values):
    vectors = random_frame(rng, len(values), len(values))
    return (vectors * values) @ vectors.T


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dimension", [1, 3, 8])
def test_finds_the_leading_eigenspace(seed, dimension):
    rng = np.random.default_rng(seed)
    matrix = spectrum(rng, np.linspace(0.1, 2, 20) ** 2)
    start = random_frame(rng, 20, dimension)
    result = minimise_on_stiefel(captured(matrix), start, tol=1e-8, max_iter=300)
    assert result.converged
    assert result.gradient_norm <= 1e-8
    assert result.value == pytest.approx(-np.linalg.eigvalsh(matrix)[-dimension:].sum(), rel=1e-12)
    assert np.abs(result.basis.T @ result.basis - np.eye(dimension)).max() < 1e-12


def test_reported_value_and_gradient_belong_to_the_returned_frame():
    rng = np.random.default_rng(1)
    matrix = spectrum(rng, np.linspace(0.1, 2, 15))
    objective = captured(matrix)
    result = minimise_on_stiefel(objective, random_frame(rng, 15, 3), tol=1e-12, max_iter=7)
    value, gradient = objective(result.basis)
    assert not result.converged
    assert result.n_iter == 7
    assert result.value == value
    assert result.gradient_norm == pytest.approx(np.linalg.norm(horizontal(result.basis, gradient)), rel=1e-10)


def test_superlinear_where_the_gradient_method_is_not():
    rng = np.random.default_rng(2)
    matrix = spectrum(rng, np.r_[np.linspace(0, 1, 30), 1.05, 3, 5])
    start = random_frame(rng, 33, 3)
    newton = minimise_on_stiefel(captured(matrix), start, tol=1e-9, max_iter=2000)
    descent = descend_on_stiefel(captured(matrix), start, tol=1e-9, max_iter=2000)
    assert newton.converged
    assert descent.converged
    assert newton.value == pytest.approx(descent.value, abs=1e-12)
    assert newton.n_evaluations < 0.7 * descent.n_evaluations


def test_objective_that_depends_on_the_frame_needs_the_full_tangent_space():
    """Nearest frame to a matrix, max <A, V>: the polar factor; and it is not invariant under rotation."""
    rng = np.random.default_rng(4)
    matrix = rng.standard_normal((9, 4))
    left, sizes, right = np.linalg.svd(matrix, full_matrices=False)
    start = random_frame(rng, 9, 4)
    objective = lambda V: (-np.vdot(V, matrix), -matrix)  # noqa: E731
    result = minimise_on_stiefel(objective, start, tol=1e-9, max_iter=500, invariant=False)
    assert result.converged
    assert result.value == pytest.approx(-sizes.sum(), rel=1e-12)
    assert np.abs(result.basis - left @ right).max() < 1e-7


@pytest.mark.parametrize("minimise", [minimise_on_stiefel, descend_on_stiefel])
def test_values_never_rise(minimise):
    rng = np.random.default_rng(5)
    cubes = rng.standard_normal((12, 12, 12))
    values = []

    def objective(V):  # a smooth, nonconvex function of the subspace
        P = V @ V.T
        form = np.einsum("ijk,ij->k", cubes, P)
        return np.sin(form).sum(), 2 * np.einsum("ijk,k->ij", cubes + cubes.swapaxes(0, 1), np.cos(form)) / 2 @ V

    start = random_frame(rng, 12, 2)
    minimise(objective, start, tol=1e-6, max_iter=200, callback=lambda r: values.append(r.value))
    assert len(values) > 5
    assert (np.diff(values) <= 1e-12).all()


def test_infinite_values_shorten_the_step():
    matrix = np.diag([4.0, 3.0, 2.0, 1.0])

    def objective(V):
        value = -np.vdot(V, matrix @ V)
        return (value, -2 * matrix @ V) if value > -3.9 else (np.inf, np.full_like(V, np.nan))

    start = np.array([[0.1], [0.2], [0.3], [0.9]])
    result = minimise_on_stiefel(objective, start / np.linalg.norm(start), tol=1e-9, max_iter=50)
    assert -3.9 < result.value < -3.8
    assert not result.converged


def test_callback_can_stop_the_search_and_a_bad_start_is_refused():
    matrix = np.diag([4.0, 3.0, 2.0, 1.0])
    start = random_frame(np.random.default_rng(0), 4, 2)
    result = minimise_on_stiefel(captured(matrix), start, tol=0.0, max_iter=50, callback=lambda r: r.n_iter == 2)
    assert result.n_iter == 2
    with pytest.raises(ValueError, match="not finite at start"):
        minimise_on_stiefel(lambda V: (np.nan, V), start, tol=1e-9, max_iter=5)
