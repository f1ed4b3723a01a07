"""Smooth minimisation over orthonormal frames: limited-memory Riemannian quasi-Newton, and a gradient method.

``minimise_on_stiefel`` follows the cautious Riemannian BFGS of Huang, Absil and Gallivan (2018), in its
limited-memory form: the direction comes from the last few steps and gradient changes, carried along by
projection; a pair is kept only if its curvature is safely positive; the step satisfies the weak Wolfe
conditions up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairpca.solvers.stiefel.geometry import retract_polar, transport

#: Value and Euclidean gradient at a frame.
Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]

_SUFFICIENT_DECREASE = 1e-4
_CURVATURE = 0.9
_MAX_TRIALS = 30
#: A pair is kept if <s, y> is at least this share of |s|^2 times min(1, gradient norm).
_CAUTION = 1e-10
#: No step is longer than this (Frobenius norm): beyond it a frame turns by more than the model can know.
_LONGEST_STEP = 2.0
#: Length of the very first step, for which no curvature is known.
_FIRST_STEP = 0.1
#: Differences of the objective below this share of its size are rounding.
_ROUNDING = 1e-14


@dataclass(frozen=True)
class StiefelResult:
    """Where a search ended. ``converged`` means that ``gradient_norm`` is at most ``tol``."""

    basis: np.ndarray
    value: float
    gradient_norm: float
    n_iter: int
    n_evaluations: int
    converged: bool


@dataclass(frozen=True)
class _Point:
    basis: np.ndarray
    value: float
    gradient: np.ndarray

    @property
    def norm(self) -> float:
        return float(np.linalg.norm(self.gradient))

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.value) and np.isfinite(self.gradient).all())


def minimise_on_stiefel(
    objective: Objective,
    start: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    callback: Callable[[StiefelResult], bool | None] | None = None,
    invariant: bool = True,
    memory: int = 20,
    precondition: Callable[[np.ndarray], np.ndarray] | None = None,
    noise: float = 0.0,
) -> StiefelResult:
    """Minimise a smooth function over ``{V : V^T V = I}`` from ``start``.

    Parameters
    ----------
    objective : callable
        ``objective(V)`` returns the value and the Euclidean gradient, of the shape of V. Where it is not
        finite the step is shortened.
    start : ndarray of shape (p, d)
        A frame.
    tol : float
        The search ends when the norm of the Riemannian gradient is at most this.
    max_iter : int
    callback : callable, optional
        Called with a :class:`StiefelResult` after each iteration; the search ends if it returns True.
    invariant : bool, default=True
        Whether ``f(V R) = f(V)`` for every rotation R, that is, f is a function of the subspace. Then
        gradients and transported vectors are horizontal, ``(I - V V^T) G``.
    memory : int, default=20
        Pairs remembered; 0 is the gradient method of :func:`descend_on_stiefel`.
    precondition : callable, optional
        Applies a positive definite estimate of the inverse Hessian to a gradient. The remembered pairs then
        correct it, instead of a multiple of the identity.
    noise : float, default=0.0
        Absolute error of the objective's value beyond rounding; smaller increases do not refuse a step.

    Returns
    -------
    StiefelResult

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.solvers.stiefel.quasi_newton import minimise_on_stiefel
    >>> A = np.diag([3.0, 2.0, 1.0, 0.5])
    >>> def minus_captured(V):
    ...     return -np.trace(V.T @ A @ V), -2 * A @ V
    >>> start = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 2)))[0]
    >>> result = minimise_on_stiefel(minus_captured, start, tol=1e-9, max_iter=100)
    >>> round(result.value, 12), result.converged
    (-5.0, True)
    """
    counted = _Counted(objective, invariant, noise)
    point = counted(np.asarray(start, dtype=float))
    if not point.finite:
        raise ValueError("The objective is not finite at start; begin from another frame.")
    history = _History(memory, invariant, precondition)
    n_iter = 0
    while point.norm > tol and n_iter < max_iter:
        following = _advance(counted, point, history)
        if following is None:
            break
        history.update(point, following)
        point = following
        n_iter += 1
        if callback is not None and callback(counted.report(point, n_iter, tol)):
            break
    return counted.report(point, n_iter, tol)


def descend_on_stiefel(
    objective: Objective,
    start: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    callback: Callable[[StiefelResult], bool | None] | None = None,
) -> StiefelResult:
    """Riemannian gradient method with the first trial step of Barzilai and Borwein."""
    return minimise_on_stiefel(objective, start, tol=tol, max_iter=max_iter, callback=callback, memory=0)


class _Counted:
    """The objective with its Riemannian gradient, counting evaluations."""

    def __init__(self, objective: Objective, invariant: bool, noise: float) -> None:
        self._objective, self.invariant, self.noise = objective, invariant, noise
        self.n_evaluations = 0

    def __call__(self, basis: np.ndarray) -> _Point:
        self.n_evaluations += 1
        value, gradient = self._objective(basis)
        return _Point(basis, float(value), transport(basis, gradient, invariant=self.invariant))

    def report(self, point: _Point, n_iter: int, tol: float) -> StiefelResult:
        norm = point.norm
        return StiefelResult(point.basis, point.value, norm, n_iter, self.n_evaluations, norm <= tol)


class _History:
    """The last pairs (step, change of gradient), all living in the tangent space of the current frame."""

    def __init__(
        self, memory: int, invariant: bool, precondition: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> None:
        self._memory, self._invariant = memory, invariant
        self._precondition = precondition
        self.clear()

    def clear(self) -> None:
        self._steps: list[np.ndarray] = []
        self._changes: list[np.ndarray] = []
        self._scale: float | None = None

    def forget(self) -> None:
        """Nothing is trusted any more, neither the pairs nor the preconditioner."""
        self.clear()
        self._precondition = None

    def __bool__(self) -> bool:
        return self._scale is not None or self._precondition is not None

    def direction(self, point: _Point) -> np.ndarray:
        """Minus the inverse of the approximate Hessian times the gradient, by the two-loop recursion."""
        gradient = point.gradient
        if self._scale is None and self._precondition is None:
            return gradient * (-_FIRST_STEP / max(float(np.linalg.norm(gradient)), np.finfo(float).tiny))
        remaining, shares = -gradient, []
        for step, change in zip(reversed(self._steps), reversed(self._changes), strict=True):
            share = np.vdot(step, remaining) / np.vdot(step, change)
            remaining = remaining - share * change
            shares.append(share)
        remaining = self._scaled(remaining, point.basis)
        for step, change, share in zip(self._steps, self._changes, reversed(shares), strict=True):
            remaining = remaining + (share - np.vdot(change, remaining) / np.vdot(step, change)) * step
        return remaining

    def _scaled(self, vector: np.ndarray, basis: np.ndarray) -> np.ndarray:
        if self._precondition is None:
            return vector * self._scale
        solved = transport(basis, self._precondition(vector), invariant=self._invariant)
        return solved * self._correction(basis)

    def _correction(self, basis: np.ndarray) -> float:
        """Scale of the preconditioner along the newest change of gradient."""
        if not self._steps or self._precondition is None:
            return 1.0
        change = self._changes[-1]
        modelled = np.vdot(change, transport(basis, self._precondition(change), invariant=self._invariant))
        return float(np.vdot(self._steps[-1], change) / modelled) if modelled > 0 else 1.0

    def update(self, old: _Point, new: _Point) -> None:
        """Carry all pairs to the new frame and add the newest if its curvature allows (cautious update)."""
        moved = self._carry([new.basis - old.basis, old.gradient, *self._steps, *self._changes], new.basis)
        count = len(self._steps)
        step, change = moved[0], new.gradient - moved[1]
        self._steps, self._changes = list(moved[2 : 2 + count]), list(moved[2 + count :])
        self._drop_bad_pairs()
        curvature = np.vdot(step, change)
        if curvature >= _CAUTION * min(1.0, old.norm) * np.vdot(step, step) and curvature > 0:
            self._steps.append(step)
            self._changes.append(change)
            self._scale = float(curvature / np.vdot(change, change))
        excess = len(self._steps) - self._memory
        if excess > 0:
            del self._steps[:excess], self._changes[:excess]

    def _carry(self, vectors: list[np.ndarray], basis: np.ndarray) -> np.ndarray:
        return transport(basis, np.stack(vectors), invariant=self._invariant)

    def _drop_bad_pairs(self) -> None:
        """Projection may turn a pair until its curvature is no longer positive."""
        kept = [
            (step, change)
            for step, change in zip(self._steps, self._changes, strict=True)
            if np.vdot(step, change) > _CAUTION * np.vdot(step, step)
        ]
        self._steps, self._changes = [step for step, _ in kept], [change for _, change in kept]


def _advance(objective: _Counted, point: _Point, history: _History) -> _Point | None:
    """One step; a failed search forgets the past and tries steepest descent, and None means that failed
    too.
    """
    while True:
        direction = history.direction(point)
        slope = float(np.vdot(point.gradient, direction))
        length = float(np.linalg.norm(direction))
        if slope < -1e-12 * point.norm * length:
            found = _line_search(objective, point, direction, slope, min(1.0, _LONGEST_STEP / length))
            if found is not None:
                return found
        if not history or objective.noise > 0:
            return None
        history.forget()


def _line_search(
    objective: _Counted, point: _Point, direction: np.ndarray, slope: float, trial: float
) -> _Point | None:
    """A step with sufficient decrease and a flatter slope, bracketed and interpolated (weak Wolfe
    conditions).
    """
    low, high, kept = 0.0, np.inf, None
    low_value, low_slope = point.value, slope
    for _ in range(_MAX_TRIALS):
        if kept is None and trial * abs(slope) < 0.1 * objective.noise:
            break  # what could be gained is less than what can be seen
        candidate = objective(retract_polar(point.basis, trial * direction))
        # Near the optimum the decrease drowns in rounding; there the slope alone decides.
        slack = _ROUNDING * abs(point.value) + objective.noise
        ceiling = point.value + _SUFFICIENT_DECREASE * trial * slope + slack
        if not candidate.finite or candidate.value > ceiling:
            high = trial
            trial = _interpolate(low, high, low_value, low_slope, candidate.value)
            continue
        kept = candidate
        carried = transport(candidate.basis, direction, invariant=objective.invariant)
        new_slope = float(np.vdot(candidate.gradient, carried))
        if new_slope >= _CURVATURE * slope:
            return candidate
        low, low_value, low_slope = trial, candidate.value, new_slope
        longest = _LONGEST_STEP / float(np.linalg.norm(direction))
        if np.isinf(high) and trial >= longest:
            return candidate
        trial = min(4.0 * trial, longest) if np.isinf(high) else 0.5 * (low + high)
    return kept


def _interpolate(low: float, high: float, value: float, slope: float, high_value: float) -> float:
    """Minimiser of the parabola through the low end, kept away from both ends."""
    width = high - low
    if not np.isfinite(high_value):
        return low + 0.1 * width
    excess = high_value - value - slope * width
    share = -0.5 * slope * width / excess if excess > 0 else 0.5
    return low + width * float(np.clip(share, 0.1, 0.9))
