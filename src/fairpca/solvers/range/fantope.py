"""Interior-point search over the weights: ``max_w a(w) - phi(w)`` with a smooth approximation of phi.

There are two such approximations. The barrier of the Fantope, ``-mu (log det P + log det (I - P))``, turns phi(w) into

    phi_mu(w) = min_t  d t + sum_i psi(lambda_i(B(w)) - t),   psi(b) = max_x  b x + mu log x + mu log(1 - x),

which is smooth in w even where eigenvalues tie. Its gradient and curvature come from one eigendecomposition, so the
semidefinite program reduces to a Newton iteration in k variables. The local refinement uses a quadratic instead.

The curvature is kept as a factor F of few columns, F F^T, to which the barrier adds a diagonal. With thousands of
matrices most weights are small and their diagonal entries large: these are eliminated, at a cost linear in k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fairpca.joint_range import JointRange
from fairpca.linalg import solve_or_nearest
from fairpca.protocols import RangeProblem


class Smooth(NamedTuple):
    """Value and gradient of a smooth function, and its second derivatives ``factor @ factor.T + diag(diagonal)``."""

    value: float
    gradient: np.ndarray
    factor: np.ndarray
    diagonal: np.ndarray | float = 0.0


#: The smooth approximation of phi at (w, mu).
Support = Callable[[np.ndarray, float], Smooth]

#: The central path begins here, and mu shrinks by this factor.
_FIRST_MU, _SHRINK = 0.1, 0.1
_NEWTON_STEPS = 12
_BACKTRACKS = 8
#: Changes below this share of the value are lost in rounding: such Newton steps are accepted unchecked.
_ROUNDING = 1e-13
#: The curvature leaves out pairs of eigenvectors that both contribute less than this to P.
_EMPTY = 1e-3


@dataclass(frozen=True)
class FantopeSolution:
    """Weights, and P = U diag(eigenvalues) U^T on the central path."""

    weights: np.ndarray
    vectors: np.ndarray
    eigenvalues: np.ndarray
    n_iter: int


def solve_fantope(problem: RangeProblem, joint: JointRange, *, tol: float) -> FantopeSolution:
    """The convex relaxation ``min F(c(P)), 0 <= P <= I, tr P = d``: weights whose bound is within ``tol`` of optimal.

    P itself is less accurate on a face of tied eigenvalues, where it depends only weakly on the weights; `reduce_rank`
    restores its accuracy.
    """
    support, k = _SmoothSupport(joint), joint.n_matrices
    weights = np.full(k, 1.0 / k)
    if not problem.normalised:
        level = float(np.linalg.eigvalsh(joint.combine(weights))[-joint.dimension :].sum())
        weights = problem.scaled_weights(weights, level)
    mu, steps, end = _FIRST_MU, 0, max(tol, 1e-13) / (2 * joint.size + k)
    while True:
        centre = maximise_weights(problem, support, weights, mu)
        steps += centre.n_iter
        if mu <= end:
            return FantopeSolution(centre.weights, support.vectors, support.occupation, steps)
        smaller = max(_SHRINK * mu, end)
        weights = _predict(problem, centre, support.drift(mu), mu, smaller)
        mu = smaller


class Centre(NamedTuple):
    """The maximiser for one mu, with the expansion of the maximised function (its curvature with the sign changed)."""

    weights: np.ndarray
    expansion: Smooth
    n_iter: int


def maximise_weights(problem: RangeProblem, support: Support, weights: np.ndarray, mu: float) -> Centre:
    """Newton's method for ``a(w) - support(w, mu) + mu sum log w``, to a small part of mu."""
    barrier = mu if problem.normalised else 0.0  # the Nash dual contains a logarithm itself

    def evaluate(w: np.ndarray) -> Smooth:
        dual, smooth = problem.dual(w), support(w, mu)
        return Smooth(
            dual.value - smooth.value + barrier * np.log(w).sum(),
            dual.gradient - smooth.gradient + barrier / w,
            smooth.factor,
            barrier / w**2 - dual.curvature,
        )

    here = evaluate(weights)
    for step in range(1, _NEWTON_STEPS + 1):
        direction = _newton_direction(here, problem.normalised)
        gain = float(here.gradient @ direction)
        if not gain > 1e-3 * mu:
            return Centre(weights, here, step)
        length = min(1.0, 0.95 * _length_to_zero(weights, direction))
        for _ in range(_BACKTRACKS):
            trial = weights + length * direction
            if problem.normalised:
                trial /= trial.sum()  # an ill-conditioned step must not leave the simplex by rounding
            there = evaluate(trial)
            if there.value >= here.value + 1e-4 * length * gain - _ROUNDING * abs(here.value):
                break
            length *= 0.3
        else:
            evaluate(weights)  # the support function remembers its last point, which must be the returned one
            return Centre(weights, here, step)
        weights, here = trial, there
    return Centre(weights, here, _NEWTON_STEPS)


def _predict(problem: RangeProblem, centre: Centre, drift: np.ndarray, mu: float, smaller: float) -> np.ndarray:
    """The maximiser for a smaller mu, along the tangent of the central path, which is straight as mu vanishes."""
    change = (1.0 / centre.weights if problem.normalised else 0.0) - drift
    tangent = _newton_direction(centre.expansion._replace(gradient=change), problem.normalised)
    direction = (smaller - mu) * tangent
    return centre.weights + min(1.0, 0.95 * _length_to_zero(centre.weights, direction)) * direction


def _length_to_zero(weights: np.ndarray, direction: np.ndarray) -> float:
    shrinking = direction < 0
    return float(np.min(-weights[shrinking] / direction[shrinking], initial=np.inf))


def _newton_direction(here: Smooth, normalised: bool) -> np.ndarray:
    """Solve curvature @ direction = gradient, with directions summing to zero on the simplex."""
    if not normalised:
        return _solve(here, here.gradient[:, None])[:, 0]
    plain, ones = _solve(here, np.column_stack([here.gradient, np.ones_like(here.gradient)])).T
    return plain - ones * (plain.sum() / ones.sum())


def _solve(here: Smooth, right: np.ndarray) -> np.ndarray:
    """``(F F^T + D)^-1 right``. Entries with a large D are eliminated first, if F has fewer columns than rows."""
    factor, diagonal = here.factor, np.broadcast_to(here.diagonal, len(right))
    narrow = factor.shape[1] < len(factor)
    stiff = narrow & (diagonal > np.einsum("ar,ar->a", factor, factor))
    free, eliminated = factor[~stiff], factor[stiff]
    divided = eliminated.T / diagonal[stiff]
    inner = divided @ eliminated + np.eye(factor.shape[1])

    def eliminate(vectors: np.ndarray) -> np.ndarray:
        return np.linalg.solve(inner, divided @ vectors)

    reduced = free @ (np.linalg.solve(inner, free.T) if stiff.any() else free.T)
    solution = np.empty_like(right)
    solution[~stiff] = _scaled_solve(reduced, diagonal[~stiff], right[~stiff] - free @ eliminate(right[stiff]))
    rest = right[stiff] - eliminated @ (free.T @ solution[~stiff])
    solution[stiff] = (rest - eliminated @ eliminate(rest)) / diagonal[stiff][:, None]
    return solution


def _scaled_solve(matrix: np.ndarray, diagonal: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Scaling by the diagonal keeps the system solvable when weights differ by many orders of magnitude."""
    matrix = matrix.copy()
    matrix.flat[:: len(matrix) + 1] += diagonal
    scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
    matrix *= scale[:, None] * scale
    matrix.flat[:: len(matrix) + 1] += 1e-14
    return scale[:, None] * solve_or_nearest(matrix, scale[:, None] * right)


def compressed(factor: np.ndarray) -> np.ndarray:
    """A factor of F F^T with at most as many columns as rows."""
    if factor.shape[1] <= len(factor):
        return factor
    squares, vectors = np.linalg.eigh(factor @ factor.T)
    return vectors * np.sqrt(np.maximum(squares, 0.0))


def _fermi_level(values: np.ndarray, dimension: int, mu: float) -> tuple[float, np.ndarray]:
    """phi_mu and the eigenvalues x_i of P; the level t is chosen such that they sum to d."""
    if dimension == len(values):
        return float(values.sum()), np.full(len(values), 1.0 - 1e-16)
    spread = 4 * mu * len(values)
    low, high = values[-1] - spread, values[0] + spread
    t = 0.5 * (values[dimension - 1] + values[dimension])
    for _ in range(200):
        occupation = _occupation(values - t, mu)
        excess = occupation.sum() - dimension
        low, high = (t, high) if excess > 0 else (low, t)
        step = t + excess / _susceptibility(occupation, mu).sum()
        new = step if low < step < high else 0.5 * (low + high)
        if abs(excess) < 1e-14 * dimension or new == t:
            break
        t = new
    entropy = np.log(occupation).sum() + np.log(_occupation(t - values, mu)).sum()
    return float(dimension * t + (values - t) @ occupation + mu * entropy), occupation


def _occupation(energy: np.ndarray, mu: float) -> np.ndarray:
    """argmax_x of energy x + mu log x + mu log(1 - x), without cancellation at either end."""
    root = np.hypot(energy, 2 * mu)
    size = np.abs(energy)
    small = (mu + 2 * mu * mu / (root + size)) / (root + 2 * mu)  # x at -|energy|
    return np.where(energy <= 0, small, 1.0 - small)


def _susceptibility(occupation: np.ndarray, mu: float) -> np.ndarray:
    rest = np.maximum(1.0 - occupation, 1e-17)
    return 1.0 / (mu / occupation**2 + mu / rest**2)


class _SmoothSupport:
    """phi_mu with its derivatives; remembers the last point."""

    def __init__(self, joint: JointRange) -> None:
        self._joint = joint

    def __call__(self, weights: np.ndarray, mu: float) -> Smooth:
        values, self.vectors = self._joint.spectrum(weights)
        value, self.occupation = _fermi_level(values, self._joint.dimension, mu)
        return Smooth(value, self._captured(self.occupation), self._factor(mu))

    def drift(self, mu: float) -> np.ndarray:
        """Derivative of the gradient with respect to mu, at the last point."""
        own = _susceptibility(self.occupation, mu)
        push = 1.0 / self.occupation - 1.0 / np.maximum(1.0 - self.occupation, 1e-17)
        return self._captured(own * (push - own @ push / max(own.sum(), np.finfo(float).tiny)))

    def _captured(self, eigenvalues: np.ndarray) -> np.ndarray:
        """``<A_a, U diag(eigenvalues) U^T>``."""
        return self._joint.inner((self.vectors * eigenvalues) @ self.vectors.T)

    def _factor(self, mu: float) -> np.ndarray:
        """Divided differences of x(lambda) in closed form; negligible between two nearly empty eigenvectors."""
        x, rest = self.occupation, np.maximum(1.0 - self.occupation, 1e-17)
        used = max(int((x > _EMPTY).sum()), self._joint.dimension)
        response = 1.0 / (mu * (1.0 / np.outer(rest[:used], rest) + 1.0 / np.outer(x[:used], x)))
        own = np.sqrt(np.diag(response))
        response[:, used:] *= 2.0  # these pairs stand for both orders
        factor = self._joint.base.forms(self.vectors[:, :used], self.vectors) * np.sqrt(response)
        # The level t moves as well, such that the eigenvalues still sum to d.
        diagonal = np.einsum("aii->ai", factor[:, :, :used])  # a view
        diagonal -= np.outer(diagonal @ own, own) / max(own @ own, np.finfo(float).tiny)
        return self._joint.mixed(compressed(factor.reshape(len(factor), -1)))
