"""Second-order descent over d-dimensional subspaces, by sequential quadratic programming.

For a horizontal step D at V (V^T D = 0), ``c_a = <A_a, V V^T>`` changes by ``2 <A_a V, D>`` to first order, and for
weights w the Lagrangian has the Hessian ``H[D] = 2 (D V^T B V - B D)``, B = sum_a w_a A_a. In eigenbases of both blocks
H is diagonal, so each step is a concave maximisation over a few multipliers, at the cost of one eigendecomposition.
For ``F(z) = max_m J_m(z)`` of the errors z_a = tr A_a - c_a, the weights are ``w = sum_m mu_m dJ_m``, with multipliers
mu in the simplex, found by an active-set method.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairpca.joint_range import JointRange
from fairpca.linalg import orthonormalise, solve_or_nearest
from fairpca.protocols import ConcavePieces
from fairpca.solvers.range.fantope import compressed

_ATTEMPTS = 12
#: The damping with which a rejected step is retried, relative to the curvature, and how it grows and shrinks.
_LEAST_DAMPING = 1e-6
_GROWTH, _RELIEF = 10.0, 0.1
#: Number of steps that are always taken; after these, a descent is abandoned if this many more steps like the last one
#: would not reach the value to beat.
_FIRST_STEPS, _STEPS_AHEAD = 5, 20
#: Weights below this share of the largest count as zero at the start of an active-set method.
_NEGLIGIBLE = 1e-6
_NEWTON_STEPS = 50


class Descent(NamedTuple):
    """The end of a descent, with the multipliers there or those of the last step."""

    value: float
    basis: np.ndarray
    multipliers: np.ndarray
    n_iter: int


class _Trial(NamedTuple):
    """The end of a step, the multipliers that the step belongs to, and by how much each J_m exceeds the model there."""

    value: float
    basis: np.ndarray
    multipliers: np.ndarray
    missed: np.ndarray


def refine_subspace(
    problem: ConcavePieces,
    joint: JointRange,
    basis: np.ndarray,
    multipliers: np.ndarray,
    *,
    tol: float = 1e-14,
    max_iter: int = 60,
    to_beat: float = np.inf,
) -> Descent:
    """Minimise F locally from a subspace and matching multipliers, until a step gains no more than ``tol``.

    A descent that would need many more steps like its last to get below ``to_beat`` is abandoned.
    """
    value, damping = problem.value(joint.errors(basis)), 0.0
    for iteration in range(1, max_iter + 1):
        here = _Quadratic(problem, joint, basis, multipliers)
        for attempt in range(_ATTEMPTS):
            trials = here.trials(damping)
            # If no step is accepted, the least damped multipliers are returned.
            multipliers = multipliers if attempt else trials[0].multipliers
            best = min(trials, key=lambda trial: trial.value)
            if best.value < value:
                break
            damping = max(_GROWTH * damping, _LEAST_DAMPING * here.scale)
        else:
            break
        gained = value - best.value
        value, basis, multipliers, _ = best
        damping = _RELIEF * damping if damping > _LEAST_DAMPING * here.scale else 0.0
        hopeless = iteration > _FIRST_STEPS and value - _STEPS_AHEAD * gained > to_beat
        if gained <= tol or hopeless:
            break
    return Descent(value, basis, multipliers, iteration)


class _Quadratic:
    """The quadratic model at one subspace; changing the damping needs no new eigendecomposition."""

    def __init__(self, problem: ConcavePieces, joint: JointRange, basis: np.ndarray, multipliers: np.ndarray) -> None:
        self._problem, self._joint, self._basis, self._multipliers = problem, joint, basis, multipliers
        errors = joint.errors(basis)
        self._values, slopes = problem.pieces(errors), problem.gradients(problem.guarded(errors))
        d = basis.shape[1]
        combined = joint.combine(multipliers @ slopes)
        inner, rotation = np.linalg.eigh(basis.T @ combined @ basis)
        outside = np.linalg.qr(basis, mode="complete")[0][:, d:]
        outer, outer_rotation = np.linalg.eigh(outside.T @ combined @ outside)
        self._outside, self._rotation = outside @ outer_rotation, rotation
        forms = joint.forms(basis @ rotation, self._outside)
        self._slopes = 2.0 * slopes @ forms.reshape(joint.n_matrices, -1)
        self._curvature = 2.0 * (inner[:, None] - outer[None, :]).reshape(-1)
        size = max(np.abs(inner).max(initial=0.0), np.abs(outer).max(initial=0.0), np.finfo(float).tiny)
        self.scale = max(float(np.abs(self._curvature).max(initial=0.0)), 1e-3 * size)
        self._shape = (d, len(outer))

    def trials(self, damping: float) -> list[_Trial]:
        """The end of the best step of the model and, where F is a maximum, of Newton steps on the active J_m.

        Near the end, Newton steps converge faster than steps with absolute curvature. The model of each J_m is linear,
        so a second one allows for the error that the first one made.
        """
        factor, stiffness = self.factor(damping), self._stiffness(damping)
        if not self._problem.normalised:
            return [self._try(_maximise_on_orthant(-self._values, factor), stiffness)]
        multipliers = maximise_on_simplex(self._values, factor, start=self._multipliers)
        trials = [self._try(multipliers, stiffness)]
        if not damping:
            active, missed = np.flatnonzero(multipliers), np.zeros_like(self._values)
            for _ in range(2):
                newton = self._newton(self._values + missed, active)
                if newton.min() < 0:
                    break
                trials.append(self._try(newton, self._stiffness(None)))
                missed = trials[-1].missed
        return trials

    def factor(self, damping: float) -> np.ndarray:
        """G with a row for each J_m: the best step for multipliers mu gains ``mu^T G G^T mu / 2`` beyond the slopes."""
        return compressed(self._slopes / np.sqrt(self._stiffness(damping)))

    def step(self, multipliers: np.ndarray, stiffness: np.ndarray) -> np.ndarray:
        """The best horizontal step for these multipliers."""
        step = (multipliers @ self._slopes / stiffness).reshape(self._shape)
        return self._outside @ step.T @ self._rotation.T

    def _try(self, multipliers: np.ndarray, stiffness: np.ndarray) -> _Trial:
        basis = orthonormalise(self._basis + self.step(multipliers, stiffness))
        errors = self._joint.errors(basis)
        model = self._values - self._slopes @ (multipliers @ self._slopes / stiffness)
        return _Trial(self._problem.value(errors), basis, multipliers, self._problem.pieces(errors) - model)

    def _newton(self, values: np.ndarray, active: np.ndarray) -> np.ndarray:
        """Multipliers for which the active J_m are equal where the model is stationary; they may be negative."""
        slopes, multipliers = self._slopes[active], np.zeros(len(values))
        multipliers[active] = _on_face(values[active], (slopes / self._stiffness(None)) @ slopes.T).weights
        return multipliers

    def _stiffness(self, damping: float | None) -> np.ndarray:
        """Damped absolute curvature, so that directions of negative curvature are descent directions too.

        Without damping (None), the curvature itself.
        """
        size = np.maximum(np.abs(self._curvature), 1e-9 * self.scale)
        return np.where(self._curvature < 0, -size, size) if damping is None else size + damping


def _maximise_on_orthant(captured: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """``argmax sum log w - c . w - w^T G G^T w / 2`` over w > 0, by Newton's method."""
    weights = 1.0 / captured
    for _ in range(_NEWTON_STEPS):
        slopes = 1.0 / weights - captured - factor @ (weights @ factor)
        step = np.linalg.solve(np.diag(weights**-2) + factor @ factor.T, slopes)
        length = min(1.0, 0.5 / max(float((-step / weights).max()), 0.5))
        weights = weights + length * step
        if length == 1.0 and np.abs(step / weights).max() < 1e-12:
            break
    return weights


def maximise_on_simplex(linear: np.ndarray, factor: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """``argmax f . w - w^T G G^T w / 2`` over the unit simplex, G being the ``factor``: an active-set method.

    If given, the search begins at the weights ``start``, whose positive entries are often already the right ones.

    >>> import numpy as np
    >>> maximise_on_simplex(np.array([1.0, 0.0, 0.9]), np.eye(3) * np.sqrt(0.2)).round(3)
    array([0.75, 0.  , 0.25])
    """
    size, squares = len(linear), np.einsum("ar,ar->a", factor, factor)
    if not squares.any():  # a linear function
        return np.eye(size)[int(linear.argmax())]
    ridge = 1e-13 * max(float(squares.sum()), 1e-300)
    slack = 1e-14 * max(float(np.abs(linear).max()), float(squares.max()))
    if start is None:
        start = np.zeros(size)
        start[int(linear.argmax())] = 1.0
    # Some solution has at most one positive weight more than the factor has columns.
    most = min(size, factor.shape[1] + 1)
    largest = np.argsort(start)[::-1][:most]
    active = sorted(largest[start[largest] > _NEGLIGIBLE * start.max()].tolist())
    weights = np.zeros(size)
    weights[active] = start[active] / start[active].sum()
    for _ in range(20 + 10 * most):
        rows = factor[active]
        quadratic = rows @ rows.T
        quadratic.flat[:: len(active) + 1] += ridge
        target, level = _on_face(linear[active], quadratic)
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
        excess = linear - factor @ (target @ rows) - level
        excess[active] = -np.inf
        if len(active) == size or excess.max() <= slack:
            break
        active.append(int(excess.argmax()))
    return weights / weights.sum()


class _FacePoint(NamedTuple):
    weights: np.ndarray
    level: float


def _on_face(linear: np.ndarray, quadratic: np.ndarray) -> _FacePoint:
    """The stationary point of ``f . w - w^T Q w / 2`` over weights summing to one, and the common slope."""
    system = np.ones((len(linear) + 1, len(linear) + 1))
    system[:-1, :-1] = quadratic
    system[-1, -1] = 0.0
    solution = solve_or_nearest(system, np.append(linear, 1.0))
    return _FacePoint(solution[:-1], float(solution[-1]))
