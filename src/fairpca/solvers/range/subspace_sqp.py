"""Second-order descent over d-dimensional subspaces, by sequential quadratic programming.

For a horizontal step D at V (V^T D = 0), ``c_a = <A_a, V V^T>`` changes by ``2 <A_a V, D>`` to first order, and for
weights w the Lagrangian has the Hessian ``H[D] = 2 (D V^T B V - B D)``, B = sum_a w_a A_a. In eigenbases of both blocks
H is diagonal, so each step is a concave maximisation over a few multipliers, at the cost of one eigendecomposition. The
multipliers give the weights in one of two ways:

- convex ``F(c) = max_w a(w) - w . c``: they are the weights w, found by an interior-point search;
- ``F(z) = max_m J_m(z)`` with concave J_m of the errors z_a = tr A_a - c_a: ``w = sum_m mu_m dJ_m``, with mu in the
  simplex, found by an active-set method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from fairpca.joint_range import JointRange
from fairpca.linalg import orthonormalise, solve_or_nearest
from fairpca.protocols import ConcavePieces, RangeProblem
from fairpca.solvers.range.fantope import Smooth, compressed, maximise_weights

_ATTEMPTS = 12
#: The damping with which a rejected step is retried, relative to the curvature, and how it grows and shrinks.
_LEAST_DAMPING = 1e-6
_GROWTH, _RELIEF = 10.0, 0.1
#: A step is corrected if it gains less than this share of what the model predicts.
_AS_PREDICTED = 0.7
#: Number of steps that are always taken; after these, a descent is abandoned if this many more steps like the last one
#: would not reach the value to beat.
_FIRST_STEPS, _STEPS_AHEAD = 5, 20


#: Weights below this share of the largest count as zero at the start of an active-set method.
_NEGLIGIBLE = 1e-6


class Descent(NamedTuple):
    """The end of a descent, with the multipliers there or those of the last step."""

    value: float
    basis: np.ndarray
    multipliers: np.ndarray
    n_iter: int


class _Trial(NamedTuple):
    """The end of a step, and the multipliers that the step belongs to."""

    value: float
    basis: np.ndarray
    multipliers: np.ndarray


class _Subproblem(Protocol):
    """The choice of multipliers and step at one subspace."""

    scale: float

    def trials(self, damping: float) -> list[_Trial]:
        """Ends to choose from."""


def refine_subspace(
    problem: RangeProblem,
    joint: JointRange,
    basis: np.ndarray,
    weights: np.ndarray,
    *,
    tol: float = 1e-14,
    max_iter: int = 60,
    to_beat: float = np.inf,
) -> Descent:
    """Minimise a convex F(c(V)) locally, starting from a subspace and matching weights.

    A descent that would need many more steps like its last to get below ``to_beat`` is abandoned.
    """
    return _descend(
        lambda frame, multipliers: _ConvexStep(problem, joint, frame, multipliers),
        problem.value(joint.captured(basis)),
        basis,
        weights,
        tol=tol,
        max_iter=max_iter,
        to_beat=to_beat,
    )


def descend_pieces_locally(
    problem: ConcavePieces,
    joint: JointRange,
    basis: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    to_beat: float = np.inf,
) -> Descent:
    """Minimise the largest of concave pieces locally, until a step gains no more than ``tol``."""

    errors = joint.traces - joint.captured(basis)
    pieces = problem.pieces(errors)
    return _descend(
        lambda frame, multipliers: _PiecesStep(problem, joint, frame, multipliers),
        problem.value(np.maximum(errors, 0.0)),
        basis,
        np.eye(len(pieces))[int(pieces.argmax())],
        tol=tol,
        max_iter=max_iter,
        to_beat=to_beat,
    )


def _descend(
    subproblem_at: Callable[[np.ndarray, np.ndarray], _Subproblem],
    value: float,
    basis: np.ndarray,
    multipliers: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    to_beat: float = np.inf,
) -> Descent:
    damping = 0.0
    for iteration in range(1, max_iter + 1):
        subproblem = subproblem_at(basis, multipliers)
        for attempt in range(_ATTEMPTS):
            trials = subproblem.trials(damping)
            # If no step is accepted, the least damped multipliers are returned.
            multipliers = multipliers if attempt else trials[0].multipliers
            best = min(trials, key=lambda trial: trial.value)
            if best.value < value:
                break
            damping = max(_GROWTH * damping, _LEAST_DAMPING * subproblem.scale)
        else:
            break
        gained = value - best.value
        value, basis, multipliers = best
        damping = _RELIEF * damping if damping > _LEAST_DAMPING * subproblem.scale else 0.0
        hopeless = iteration > _FIRST_STEPS and value - _STEPS_AHEAD * gained > to_beat
        if gained <= tol or hopeless:
            break
    return Descent(value, basis, multipliers, iteration)


class _Model:
    """The quadratic model at one subspace; changing the damping needs no new eigendecomposition."""

    def __init__(self, joint: JointRange, basis: np.ndarray, weights: np.ndarray) -> None:
        d = basis.shape[1]
        combined = joint.combine(weights)
        inner, rotation = np.linalg.eigh(basis.T @ combined @ basis)
        outside = np.linalg.qr(basis, mode="complete")[0][:, d:]
        outer, outer_rotation = np.linalg.eigh(outside.T @ combined @ outside)
        self._outside, self._rotation = outside @ outer_rotation, rotation
        forms = joint.forms(basis @ rotation, np.hstack([basis @ rotation, self._outside]))
        self.captured = np.einsum("aii->a", forms[:, :, :d])
        self._slopes = 2.0 * forms[:, :, d:].reshape(joint.n_matrices, -1)
        self._curvature = 2.0 * (inner[:, None] - outer[None, :]).reshape(-1)
        size = max(np.abs(inner).max(initial=0.0), np.abs(outer).max(initial=0.0), np.finfo(float).tiny)
        self.scale = max(float(np.abs(self._curvature).max(initial=0.0)), 1e-3 * size)
        self._shape = (d, len(outer))

    def newton(self, terms: np.ndarray, active: np.ndarray) -> np.ndarray:
        """Weights for which the active terms of the model are equal where it is stationary; they may be negative."""
        slopes = self._slopes[active]
        weights = np.zeros(len(terms))
        quadratic = (slopes / self._stiffness(None)) @ slopes.T
        weights[active] = _on_face(terms[active], quadratic).weights
        return weights

    def factor(self, damping: float) -> np.ndarray:
        """G with k rows: the best step for weights w gains ``w^T G G^T w / 2`` beyond the first order."""
        return compressed(self._slopes / np.sqrt(self._stiffness(damping)))

    def step(self, weights: np.ndarray, damping: float | None) -> np.ndarray:
        """The best horizontal step for these weights."""
        step = (weights @ self._slopes / self._stiffness(damping)).reshape(self._shape)
        return self._outside @ step.T @ self._rotation.T

    def change(self, weights: np.ndarray, damping: float | None) -> np.ndarray:
        """What the step adds to each c_a to first order."""
        return self._slopes @ (weights @ self._slopes / self._stiffness(damping))

    def _stiffness(self, damping: float | None) -> np.ndarray:
        """Damped absolute curvature, so that directions of negative curvature are descent directions too.

        Without damping (None), the curvature itself.
        """
        size = np.maximum(np.abs(self._curvature), 1e-9 * self.scale)
        return np.where(self._curvature < 0, -size, size) if damping is None else size + damping


class _ConvexStep:
    """The step for a convex F of the captured variances; the multipliers are the weights."""

    def __init__(self, problem: RangeProblem, joint: JointRange, basis: np.ndarray, weights: np.ndarray) -> None:
        self._problem, self._joint, self._basis, self._weights = problem, joint, basis, weights
        self._model = _Model(joint, basis, weights)
        self.scale = self._model.scale

    def trials(self, damping: float) -> list[_Trial]:
        """The best step of the model; where a(w) is linear, also steps that allow for what the model leaves out.

        The model of each term is linear. Where that predicts too much, the step is repeated with the error that it
        made. Near the end, Newton steps on the active terms converge faster than steps with absolute curvature.
        """
        factor = self._model.factor(damping)
        if not self._problem.normalised:
            return [self._try(self._on_orthant(factor), damping)[0]]
        offsets = self._problem.dual(self._weights).gradient
        terms = offsets - self._model.captured
        weights = maximise_on_simplex(terms, factor, start=self._weights)
        trial, errors = self._try(weights, damping)
        trials, predicted = [trial], terms - self._model.change(weights, damping)
        if terms.max() - trial.value < _AS_PREDICTED * (terms.max() - predicted.max()):
            trials.append(self._try(maximise_on_simplex(terms - errors, factor, start=weights), damping)[0])
        return trials if damping else trials + self._newton(terms, np.flatnonzero(weights))

    def _try(self, weights: np.ndarray, damping: float | None) -> tuple[_Trial, np.ndarray]:
        """The end of the step for these weights, and by how much each c_a exceeds its linear model there."""
        basis = orthonormalise(self._basis + self._model.step(weights, damping))
        captured = self._joint.captured(basis)
        errors = captured - self._model.captured - self._model.change(weights, damping)
        return _Trial(self._problem.value(captured), basis, weights), errors

    def _newton(self, terms: np.ndarray, active: np.ndarray) -> list[_Trial]:
        """Newton's step, and the same corrected for the curvature of each term: without it, few are accepted."""
        weights = self._model.newton(terms, active)
        if weights.min() < 0:
            return []
        trial, errors = self._try(weights, None)
        corrected = self._model.newton(terms - errors, active)
        return [trial] if corrected.min() < 0 else [trial, self._try(corrected, None)[0]]

    def _on_orthant(self, factor: np.ndarray) -> np.ndarray:
        captured = self._model.captured

        def support(weights: np.ndarray, mu: float) -> Smooth:
            gradient = captured + factor @ (weights @ factor)
            return Smooth(float(0.5 * weights @ (captured + gradient)), gradient, factor)

        equal = np.full(len(captured), 1.0 / len(captured))
        start = self._problem.scaled_weights(equal, float(equal @ captured))
        return maximise_weights(self._problem, support, start, 1e-18).weights


class _PiecesStep:
    """The step for the largest of concave pieces of the errors; one multiplier per piece."""

    def __init__(self, problem: ConcavePieces, joint: JointRange, basis: np.ndarray, multipliers: np.ndarray) -> None:
        self._problem, self._joint, self._basis, self._multipliers = problem, joint, basis, multipliers
        errors = joint.traces - joint.captured(basis)
        self._values = problem.pieces(errors)
        self._slopes = problem.gradients(problem.guarded(errors))
        self._model = _Model(joint, basis, multipliers @ self._slopes)
        self.scale = self._model.scale

    def trials(self, damping: float) -> list[_Trial]:
        multipliers = maximise_on_simplex(
            self._values, self._slopes @ self._model.factor(damping), start=self._multipliers
        )
        basis = orthonormalise(self._basis + self._model.step(multipliers @ self._slopes, damping))
        errors = np.maximum(self._joint.traces - self._joint.captured(basis), 0.0)
        return [_Trial(self._problem.value(errors), basis, multipliers)]


def maximise_on_simplex(linear: np.ndarray, factor: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """``argmax f . w - w^T G G^T w / 2`` over the unit simplex, G being the ``factor``: an active-set method.

    If given, the search begins at the weights ``start``, whose positive entries are often already the right ones.

    >>> import numpy as np
    >>> maximise_on_simplex(np.array([1.0, 0.0, 0.9]), np.eye(3) * np.sqrt(0.2)).round(3)
    array([0.75, 0.  , 0.25])
    """
    size, squares = len(linear), np.einsum("ar,ar->a", factor, factor)
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
