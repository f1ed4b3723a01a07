"""Local minimisation of F(c(V)) over d-dimensional subspaces, second order, for any convex F.

At V, with horizontal steps D (V^T D = 0), ``c_a`` changes by ``2 <A_a V, D>`` and the Lagrangian's curvature is
``H[D] = 2 (D V^T B V - B D)`` with B = sum_a w_a A_a. In eigenbases of both blocks H is diagonal, so the
subproblem is a concave maximisation in the k weights: the sequential quadratic programming step costs one
eigendecomposition.
"""

from __future__ import annotations

import numpy as np

from fairpca.joint_range import JointRange
from fairpca.linalg import orthonormalise
from fairpca.protocols import RangeProblem
from fairpca.solvers.range.fantope import maximise_weights

__all__ = ["refine_subspace"]

#: Steps that are taken anyway, and steps like the last one that may be left to a better value.
_FIRST_STEPS, _STEPS_AHEAD = 5, 100


def refine_subspace(
    problem: RangeProblem,
    joint: JointRange,
    basis: np.ndarray,
    weights: np.ndarray,
    *,
    tol: float = 1e-14,
    max_iter: int = 60,
    to_beat: float = np.inf,
) -> tuple[float, np.ndarray, np.ndarray]:
    """Descend from ``basis``; return value, basis and the multipliers of the last step.

    A descent that would need many more steps like its last to fall below ``to_beat`` is given up.
    """
    value = problem.value(joint.captured(basis))
    damping = 0.0
    for iteration in range(max_iter):
        step = _Step(problem, joint, basis, weights)
        for _ in range(12):
            new_weights, direction = step.solve(damping)
            candidate = orthonormalise(basis + direction)
            new_value = problem.value(joint.captured(candidate))
            if new_value < value:
                break
            damping = max(10 * damping, 1e-6 * step.scale)
        else:
            return value, basis, weights
        gained = value - new_value
        value, basis, weights = new_value, candidate, new_weights
        damping *= 0.1
        hopeless = iteration >= _FIRST_STEPS and value - _STEPS_AHEAD * gained > to_beat
        if gained <= tol or hopeless:
            return value, basis, weights
    return value, basis, weights


class _Step:
    """The quadratic model of one basis, solved for any damping without new eigenproblems."""

    def __init__(self, problem: RangeProblem, joint: JointRange, basis: np.ndarray, weights: np.ndarray) -> None:
        self._problem = problem
        d = basis.shape[1]
        combined = joint.combine(weights)
        inner_values, rotation = np.linalg.eigh(basis.T @ combined @ basis)
        outside = np.linalg.qr(basis, mode="complete")[0][:, d:]
        outer_values, outer_rotation = np.linalg.eigh(outside.T @ combined @ outside)
        self._outside = outside @ outer_rotation
        self._rotation = rotation
        images = joint.matrices @ (basis @ rotation)
        self._captured = np.einsum("pi,api->a", basis @ rotation, images)
        self._slopes = 2.0 * (self._outside.T @ images).reshape(joint.n_matrices, -1)
        self._curvature = 2.0 * (inner_values[None, :] - outer_values[:, None]).reshape(-1)
        size = max(np.abs(inner_values).max(initial=0.0), np.abs(outer_values).max(initial=0.0), np.finfo(float).tiny)
        self.scale = max(float(np.abs(self._curvature).max(initial=0.0)), 1e-3 * size)
        self._shape = (len(outer_values), d)
        self._start = np.full(joint.n_matrices, 1.0 / joint.n_matrices)

    def solve(self, damping: float) -> tuple[np.ndarray, np.ndarray]:
        """Weights and step of the damped model. Negative curvature is followed downhill by its size."""
        stiffness = np.maximum(np.abs(self._curvature), 1e-9 * self.scale) + damping
        quadratic = (self._slopes / stiffness) @ self._slopes.T

        def support(weights: np.ndarray, mu: float) -> tuple[float, np.ndarray, np.ndarray]:
            gradient = self._captured + quadratic @ weights
            return float(0.5 * weights @ (self._captured + gradient)), gradient, quadratic

        start = self._problem.scaled_weights(self._start, float(self._start @ self._captured))
        weights, _ = maximise_weights(self._problem, support, start, start=0.1 * self.scale, end=1e-18, shrink=0.02)
        if self._problem.normalised:
            weights = self._on_active_set(weights, quadratic)
        step = (weights @ self._slopes / stiffness).reshape(self._shape)
        return weights, self._outside @ step @ self._rotation.T

    def _on_active_set(self, weights: np.ndarray, quadratic: np.ndarray) -> np.ndarray:
        """Exact weights where the barrier's are near: the active terms of the model made equal."""
        active = np.flatnonzero(weights > 1e-6 * weights.max())
        terms = self._problem.dual(weights)[1] - self._captured
        system = np.ones((len(active) + 1, len(active) + 1))
        system[:-1, :-1] = quadratic[np.ix_(active, active)]
        system[-1, -1] = 0.0
        exact = np.linalg.lstsq(system, np.append(terms[active], 1.0), rcond=None)[0][:-1]
        if exact.min() < 0 or not np.isclose(exact.sum(), 1.0):
            return weights
        polished = np.zeros_like(weights)
        polished[active] = exact
        return polished
