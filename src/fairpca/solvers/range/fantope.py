"""Interior-point search over the weights: ``max_w a(w) - phi(w)`` with a smooth approximation of phi.

There are two such approximations. The barrier of the Fantope, ``-mu (log det P + log det (I - P))``, turns phi(w) into

    phi_mu(w) = min_t  d t + sum_i psi(lambda_i(B(w)) - t),   psi(b) = max_x  b x + mu log x + mu log(1 - x),

which is smooth in w even where eigenvalues tie. Its gradient and curvature come from one eigendecomposition, so the
semidefinite program reduces to a Newton iteration in k variables. The local refinement uses a quadratic instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairpca.joint_range import JointRange, Spectrum
from fairpca.protocols import Expansion, RangeProblem

__all__ = ["FantopeSolution", "maximise_weights", "solve_fantope"]

#: The smooth approximation of phi at (w, mu).
Support = Callable[[np.ndarray, float], Expansion]

_NEWTON_STEPS = 12
_BACKTRACKS = 8
#: Changes below this share of the value are lost in rounding: such Newton steps are accepted unchecked.
_ROUNDING = 1e-13


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
    last: list[tuple[Spectrum, np.ndarray]] = []

    def support(weights: np.ndarray, mu: float) -> Expansion:
        spectrum = joint.spectrum(weights)
        value, occupation = _fermi_level(spectrum.values, joint.dimension, mu)
        last[:] = [(spectrum, occupation)]
        return Expansion(value, *_fantope_derivatives(spectrum.rotated, occupation, mu))

    k = joint.n_matrices
    weights = np.full(k, 1.0 / k)
    if not problem.normalised:
        level = float(np.linalg.eigvalsh(joint.combine(weights))[-joint.dimension :].sum())
        weights = problem.scaled_weights(weights, level)
    end = max(tol, 1e-13) / (2 * joint.size + k)
    weights, steps = maximise_weights(problem, support, weights, start=0.1, end=end)
    spectrum, occupation = last[0]
    return FantopeSolution(weights, spectrum.vectors, occupation, steps)


def maximise_weights(
    problem: RangeProblem,
    support: Support,
    weights: np.ndarray,
    *,
    start: float,
    end: float,
    shrink: float = 0.1,
) -> tuple[np.ndarray, int]:
    """Follow the central path ``a(w) - support(w) + mu sum log w`` from mu = start to end."""
    mu, steps = start, 0
    while True:
        weights, taken = _centre(problem, support, weights, mu)
        steps += taken
        if mu <= end:
            return weights, steps
        mu = max(mu * shrink, end)


def _centre(problem: RangeProblem, support: Support, weights: np.ndarray, mu: float) -> tuple[np.ndarray, int]:
    barrier = mu if problem.normalised else 0.0  # the Nash dual contains a logarithm itself

    def evaluate(w: np.ndarray) -> Expansion:
        """The maximised function, its gradient, and minus its Hessian."""
        dual, smooth = problem.dual(w), support(w, mu)
        return Expansion(
            dual.value - smooth.value + barrier * np.log(w).sum(),
            dual.gradient - smooth.gradient + barrier / w,
            smooth.curvature + np.diag(barrier / w**2 - dual.curvature),
        )

    here = evaluate(weights)
    for step in range(1, _NEWTON_STEPS + 1):
        direction = _newton_direction(here, problem.normalised)
        gain = float(here.gradient @ direction)
        if not gain > 1e-3 * mu:
            return weights, step
        shrinking = direction < 0
        length = min(1.0, 0.95 * float(np.min(-weights[shrinking] / direction[shrinking], initial=np.inf)))
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
            return weights, step
        weights, here = trial, there
    return weights, _NEWTON_STEPS


def _newton_direction(here: Expansion, normalised: bool) -> np.ndarray:
    """Solve curvature @ direction = gradient, with directions summing to zero on the simplex."""
    gradient, curvature = here.gradient, here.curvature
    # Scaling by the diagonal keeps the system solvable when weights differ by many orders of magnitude.
    scale = 1.0 / np.sqrt(np.maximum(np.diag(curvature), np.finfo(float).tiny))
    matrix = curvature * scale[:, None] * scale
    matrix.flat[:: len(scale) + 1] += 1e-14
    if not normalised:
        return scale * np.linalg.solve(matrix, scale * gradient)
    plain = scale * np.linalg.solve(matrix, scale * gradient)
    ones = scale * np.linalg.solve(matrix, scale)
    return plain - ones * (plain.sum() / ones.sum())


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


def _fantope_derivatives(rotated: np.ndarray, occupation: np.ndarray, mu: float) -> tuple[np.ndarray, np.ndarray]:
    """Gradient <A_a, P> and curvature of phi_mu; divided differences of x(lambda) in closed form."""
    rest = np.maximum(1.0 - occupation, 1e-17)
    response = 1.0 / (mu * (1.0 / np.outer(rest, rest) + 1.0 / np.outer(occupation, occupation)))
    diagonal = np.einsum("aii->ai", rotated)
    curvature = np.einsum("aij,bij,ij->ab", rotated, rotated, response, optimize=True)
    own = np.diag(response)
    total = own.sum()
    if total > 0:
        shift = diagonal @ own
        curvature = curvature - np.outer(shift, shift) / total
    return diagonal @ occupation, curvature
