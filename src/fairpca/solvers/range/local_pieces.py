"""Local minimisation of F(z(V)) = max_m J_m(z(V)) over d-dimensional subspaces, second order.

For a horizontal step D at V the errors z_a = tr A_a - <A_a, V V^T> change by ``-2 <A_a V, D>``, and the
Lagrangian with multipliers mu of the pieces has the curvature ``2 (D V^T B V - B D)``, B = sum_a w_a A_a, w =
sum_m mu_m dJ_m. In eigenbases of both blocks it is diagonal, so each step is a quadratic program in the
multipliers alone.
"""

from __future__ import annotations

import numpy as np

from fairpca.joint_range import JointRange
from fairpca.linalg import orthonormalise
from fairpca.protocols import ConcavePieces

__all__ = ["descend_locally", "maximise_on_simplex"]

_ATTEMPTS = 12
#: The damping below which steps are undamped, relative to the curvature.
_LEAST_DAMPING = 1e-6


def descend_locally(
    problem: ConcavePieces, joint: JointRange, basis: np.ndarray, *, tol: float, max_iter: int
) -> tuple[float, np.ndarray, np.ndarray, int]:
    """Descend until a step gains no more than ``tol``; return value, basis, multipliers, number of steps."""
    totals = np.einsum("aii->a", joint.matrices)

    def value_at(frame: np.ndarray) -> float:
        return problem.value(np.maximum(totals - joint.captured(frame), 0.0))

    value, damping, multipliers = value_at(basis), 0.0, None
    for iteration in range(1, max_iter + 1):
        model = _Model(problem, joint, basis, multipliers)
        for _ in range(_ATTEMPTS):
            new_multipliers, step = model.solve(damping)
            candidate = orthonormalise(basis + step)
            new_value = value_at(candidate)
            if new_value < value:
                break
            damping = max(8 * damping, _LEAST_DAMPING * model.scale)
        else:
            return value, basis, new_multipliers, iteration
        gained, value, basis, multipliers = value - new_value, new_value, candidate, new_multipliers
        damping = 0.1 * damping if damping > _LEAST_DAMPING * model.scale else 0.0
        if gained <= tol:
            return value, basis, multipliers, iteration
    return value, basis, multipliers if multipliers is not None else model.first, max_iter


class _Model:
    """The quadratic model at one subspace, solved for any damping without new eigenproblems."""

    def __init__(
        self, problem: ConcavePieces, joint: JointRange, basis: np.ndarray, multipliers: np.ndarray | None
    ) -> None:
        d = basis.shape[1]
        images = joint.matrices @ basis
        errors = np.einsum("aii->a", joint.matrices) - np.einsum("pi,api->a", basis, images)
        self._values = problem.pieces(errors)
        self._slopes = problem.gradients(problem.guarded(errors))
        self.first = np.eye(len(self._values))[int(self._values.argmax())]
        combined = joint.combine((self.first if multipliers is None else multipliers) @ self._slopes)
        inner, rotation = np.linalg.eigh(basis.T @ combined @ basis)
        outside = np.linalg.qr(basis, mode="complete")[0][:, d:]
        outer, outer_rotation = np.linalg.eigh(outside.T @ combined @ outside)
        self._outside, self._rotation = outside @ outer_rotation, rotation
        self._turns = 2.0 * (self._outside.T @ images @ rotation).reshape(joint.n_matrices, -1)
        self._curvature = 2.0 * (inner[None, :] - outer[:, None]).reshape(-1)
        self.scale = float(np.abs(self._curvature).max(initial=np.finfo(float).tiny))
        self._shape = (len(outer), d)

    def solve(self, damping: float) -> tuple[np.ndarray, np.ndarray]:
        """Multipliers and step of the damped model. Negative curvature is followed downhill by its size."""
        stiffness = np.maximum(np.abs(self._curvature), 1e-9 * self.scale) + damping
        quadratic = self._slopes @ ((self._turns / stiffness) @ self._turns.T) @ self._slopes.T
        multipliers = maximise_on_simplex(self._values, quadratic)
        step = ((multipliers @ self._slopes) @ self._turns / stiffness).reshape(self._shape)
        return multipliers, self._outside @ step @ self._rotation.T


def maximise_on_simplex(linear: np.ndarray, quadratic: np.ndarray) -> np.ndarray:
    """``argmax f . w - w^T Q w / 2`` over the unit simplex, Q positive semidefinite: an active-set method.

    >>> import numpy as np
    >>> maximise_on_simplex(np.array([1.0, 0.0, 0.9]), np.eye(3) * 0.2).round(3)
    array([0.75, 0.  , 0.25])
    """
    size = len(linear)
    quadratic = quadratic + 1e-13 * max(float(np.trace(quadratic)), 1e-300) * np.eye(size)
    slack = 1e-14 * max(float(np.abs(linear).max()), float(np.abs(quadratic).max()))
    weights = np.zeros(size)
    active = [int(linear.argmax())]
    weights[active] = 1.0
    for _ in range(20 + 5 * size):
        target, level = _on_face(linear, quadratic, active)
        if target.min() < 0:
            current = weights[active]
            shrinking = target < 0
            ratios = current[shrinking] / (current[shrinking] - target[shrinking])
            weights[active] = current + ratios.min() * (target - current)
            leaving = int(np.flatnonzero(shrinking)[ratios.argmin()])
            weights[active[leaving]] = 0.0
            del active[leaving]
            continue
        weights[active] = target
        excess = linear - quadratic @ weights - level
        excess[active] = -np.inf
        if len(active) == size or excess.max() <= slack:
            break
        active.append(int(excess.argmax()))
    return weights / weights.sum()


def _on_face(linear: np.ndarray, quadratic: np.ndarray, active: list[int]) -> tuple[np.ndarray, float]:
    """The stationary point with only these entries, summing to one, and the common slope there."""
    system = np.ones((len(active) + 1, len(active) + 1))
    system[:-1, :-1] = quadratic[np.ix_(active, active)]
    system[-1, -1] = 0.0
    right = np.append(linear[active], 1.0)
    try:
        solution = np.linalg.solve(system, right)
    except np.linalg.LinAlgError:
        solution = np.linalg.lstsq(system, right, rcond=None)[0]
    return solution[:-1], float(solution[-1])
