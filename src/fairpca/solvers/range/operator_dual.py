"""For very many features: a search in a growing subspace, with a bound that accounts for what the subspace leaves out.

Let Q be an orthonormal basis of the subspace and ``B = sum_a w_a A_a``, and write B in the basis (Q, its complement) as
``[[T, R^T], [R, N]]``. T and R are known from the products ``A_a Q``. With ``nu >= lambda_max(N)`` and
``s = lambda_d(T) - nu > 0`` (see :func:`fairpca.linalg.block_sum_bound`)

    phi(w) <= sum_{i <= d} max(lambda_i(T + R^T R / s), lambda_d(T)),

which exceeds the sum found in the subspace only by a term quadratic in the residuals. The number nu comes from a power
iteration on Gaussian vectors drawn after Q and w are fixed: if u is the leading eigenvector of N, then
``||N^q g|| >= lambda_max(N)^q |u . g|``, and the probability that all of r vectors have ``|u . g| <= 1/10`` is at most
``(0.08)^r``. With r = 10 the bound fails with a probability below 1e-10 (after Halko, Martinsson and Tropp 2011,
Lemma 4.1). The same argument holds for any polynomial in N; Chebyshev polynomials are used where powers are too slow.

The subspace grows by the residuals of the leading Ritz vectors of each A_a and of B(w), which is a block Lanczos method
on all of them together. No p x p matrix is ever formed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fairpca.joint_range import JointRange
from fairpca.linalg import block_sum_bound, extend_basis, orthonormalise, top_eigenpairs
from fairpca.protocols import (
    MakeProblem,
    MomentOperators,
    RangeProblem,
    RangeSolution,
    RelaxedSolution,
    SolverResult,
    Status,
)
from fairpca.solvers.range.dual import minimise_on_range

__all__ = ["minimise_on_operators"]

#: Number of Ritz vectors refined beyond the d wanted ones: they widen the spectral gap that governs convergence.
_EXTRA = 3
#: Number of Gaussian vectors in the proof, and the inner product with u that at least one of them must exceed.
_PROBES = 10
_LEAST_PRODUCT = 0.1
#: Largest power that is tried first, and the largest degree of the polynomials tried after that.
_POWERS = 4
_PROOF_STEPS = 60
#: Accuracy inside the subspace is cheap, and the search for extreme points of the relaxation relies on it.
_INNER_TOL = 1e-10
#: The proof stops refining nu once it is below this share of the d-th eigenvalue.
_CLEAR = 0.6


def minimise_on_operators(
    make_problem: MakeProblem,
    operators: MomentOperators,
    dimension: int,
    *,
    scale: float | np.ndarray,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
) -> RangeSolution:
    """Minimise F(c(V)) for the matrices divided by ``scale``, one or one each; ``make_problem`` takes the b_a.

    The search uses sums of Ritz values for the b_a. These are never too large, so its lower bound holds for the exact
    b_a. The objective is computed with upper bounds on the b_a, so it is never too small, and the gap covers both.
    """
    span = _Span(operators, scale, min(operators.size, 2 * (dimension + _EXTRA)), rng)
    steps, worth_proving = 0, 2 * tol  # the estimate of the missing variance errs on the safe side
    while True:
        steps += 1
        inside = _search_inside(make_problem, JointRange(span.forms, dimension), tol=tol, max_iter=max_iter, rng=rng)
        residuals, missing = span.residuals([*np.eye(span.n_matrices), inside.result.weights], dimension)
        last = residuals.shape[1] == 0 or steps >= max_iter
        if missing > worth_proving and not last:
            span.grow(residuals)
            continue
        worth_proving = 0.1 * missing
        proof = _prove(make_problem, inside, span, tol=tol, rng=rng, anyway=last)
        if last or proof.objective - proof.bound <= tol or not span.grow(residuals):
            break
    return _lifted(inside, span, proof.or_estimates(make_problem, inside), tol=tol, n_iter=steps)


class _Inside(NamedTuple):
    """The search in the subspace: its joint range, sums of Ritz values in place of the b_a, and the result."""

    joint: JointRange
    best: np.ndarray
    problem: RangeProblem
    result: SolverResult


class _Proof(NamedTuple):
    """Upper bounds on the b_a, the objective computed with them, and a lower bound; infinite where there is none."""

    best: np.ndarray
    objective: float
    bound: float

    def or_estimates(self, make_problem: MakeProblem, inside: _Inside) -> _Proof:
        """Use Ritz values for each b_a without an upper bound; optimality is then not certified."""
        if np.isfinite(self.objective):
            return self
        best = np.where(np.isfinite(self.best), self.best, inside.best)
        return _Proof(best, make_problem(best).value(inside.joint.captured(inside.result.basis)), -np.inf)


def _search_inside(
    make_problem: MakeProblem, joint: JointRange, *, tol: float, max_iter: int, rng: np.random.Generator
) -> _Inside:
    vertices = joint.vertices()
    best = np.array([point.support for point in vertices])
    problem, tol = make_problem(best), min(0.1 * tol, _INNER_TOL)
    return _Inside(
        joint, best, problem, minimise_on_range(problem, joint, vertices, tol=tol, max_iter=max_iter, rng=rng)
    )


def _prove(
    make_problem: MakeProblem, inside: _Inside, span: _Span, *, tol: float, rng: np.random.Generator, anyway: bool
) -> _Proof:
    """A lower bound for the full space and, if it is close enough or ``anyway``, upper bounds on the b_a."""
    result, dimension = inside.result, inside.joint.dimension
    bound = inside.problem.bound(result.weights, span.proven_support(result.weights, dimension, 0.5 * tol, rng))
    best, objective = inside.best, np.inf
    for accepted in (tol, 0.1 * tol) if anyway or result.lower_bound - bound <= tol else ():
        if objective - bound > tol:  # the first is usually enough
            best = span.proven_best(result.weights, dimension, accepted, rng)
            objective = make_problem(best).value(inside.joint.captured(result.basis))
    return _Proof(best, objective, bound)


def _lifted(inside: _Inside, span: _Span, proof: _Proof, *, tol: float, n_iter: int) -> RangeSolution:
    """The result found in the subspace, expressed in the full space, with the certificate valid there."""
    inner, joint = inside.result, inside.joint
    relaxed = inner.relaxed or RelaxedSolution(inner.basis, np.ones(inner.basis.shape[1]))
    unproven = Status.UNPROVEN if inner.converged else inner.status
    result = SolverResult(
        basis=span.basis @ inner.basis,
        objective=proof.objective,
        lower_bound=proof.bound,
        weights=inner.weights,
        status=Status.OPTIMAL if proof.objective - proof.bound <= tol else unproven,
        n_iter=n_iter,
        n_oracle_calls=span.products,
        relaxed=RelaxedSolution(span.basis @ relaxed.basis, relaxed.eigenvalues),
    )
    relaxed_captured = joint.captured(relaxed.basis * np.sqrt(relaxed.eigenvalues))
    return RangeSolution(result, proof.best, joint.captured(inner.basis), relaxed_captured)


class _Span:
    """An orthonormal basis Q, the products A_a Q and the forms Q^T A_a Q."""

    def __init__(
        self, operators: MomentOperators, scale: float | np.ndarray, width: int, rng: np.random.Generator
    ) -> None:
        self._operators, self._scale = operators, np.reshape(scale, (-1, 1, 1))
        self.n_matrices = operators.n_matrices
        self.products = 0
        self.outside = np.inf
        self.basis = orthonormalise(rng.standard_normal((operators.size, width)))
        self._images = self._apply(self.basis)
        self.forms = _symmetric(self.basis.T @ self._images)

    def _apply(self, vectors: np.ndarray) -> np.ndarray:
        self.products += 1
        return self._operators.images(vectors) / self._scale

    def grow(self, vectors: np.ndarray) -> bool:
        """Add directions; False if there is nothing to add."""
        before = self.basis.shape[1]
        self.basis = extend_basis(self.basis, vectors)
        new = self.basis[:, before:]
        if not new.shape[1]:
            return False
        images = self._apply(new)
        cross = self.basis.T @ images
        corner, self._images = cross[:, before:], np.concatenate([self._images, images], axis=2)
        upper = np.concatenate([self.forms, cross[:, :before]], axis=2)
        lower = np.concatenate([cross[:, :before].transpose(0, 2, 1), corner], axis=2)
        self.forms = _symmetric(np.concatenate([upper, lower], axis=1))
        return True

    def residuals(self, directions: list[np.ndarray], dimension: int) -> tuple[np.ndarray, float]:
        """Residuals of the leading Ritz vectors in each direction, of unit length, and the variance they may miss."""
        blocks, missing = [], 0.0
        for weights in directions:
            form = np.tensordot(weights, self.forms, axes=1)
            count = min(len(form), dimension + _EXTRA)
            values, vectors = top_eigenpairs(form, count)
            residual = np.tensordot(weights, self._images @ vectors, axes=1) - self.basis @ (vectors * values)
            sizes = np.linalg.norm(residual, axis=0)
            gap = max(values[dimension - 1] - values[-1], 1e-3 * values[0], np.finfo(float).tiny)
            missing = max(missing, float((sizes[:dimension] ** 2).sum()) / gap)
            large = sizes > 1e-9 * max(values[0], np.finfo(float).tiny)
            blocks.append(residual[:, large] / sizes[large])
        return np.hstack(blocks), missing

    def proven_support(self, weights: np.ndarray, dimension: int, tol: float, rng: np.random.Generator) -> float:
        """The bound on phi(w) from the module docstring; infinite if the complement cannot be shown to be small.

        The whole subspace leaves little outside, but its last Ritz vectors have large residuals. The leading Ritz
        vectors alone leave more outside, but their residuals are negligible. For a flat spectrum, only the latter may
        succeed.
        """
        whole = _Part(self.basis, np.tensordot(weights, self._images, axes=1))
        self.outside = self._bound_outside(whole, weights, whole.value(dimension), rng)
        bound = whole.support_bound(dimension, self.outside)
        if bound - whole.support(dimension) > tol:
            leading = whole.leading(dimension + _EXTRA)
            outside = self._bound_outside(leading, weights, whole.value(dimension), rng)
            bound = min(bound, leading.support_bound(dimension, outside))
        return bound

    def proven_best(self, weights: np.ndarray, dimension: int, tol: float, rng: np.random.Generator) -> np.ndarray:
        """Upper bounds on the b_a. Since w_a A_a <= B(w), the proof for B(w) often suffices; else A_a gets its own."""
        best, level = [], self.outside
        for unit, weight in zip(np.eye(len(weights)), weights, strict=True):
            part = _Part(self.basis, np.tensordot(unit, self._images, axes=1))
            value = part.support_bound(dimension, level / weight if weight > 0 else np.inf)
            if value - part.support(dimension) > tol:
                value = min(value, self.proven_support(unit, dimension, tol, rng))
            best.append(value)
        return np.array(best)

    def _bound_outside(self, part: _Part, weights: np.ndarray, last: float, rng: np.random.Generator) -> float:
        """``nu >= lambda_max(N)``, except with a probability below 1e-10."""

        def complement(vectors: np.ndarray) -> np.ndarray:
            return part.outside(np.tensordot(weights, self._apply(vectors), axes=1))

        start = part.outside(rng.standard_normal((len(self.basis), _PROBES)))
        probes, sizes, bound = start, [1.0], np.inf
        for power in range(1, _POWERS + 1):
            probes = complement(probes)
            sizes.append(float(np.linalg.norm(probes, axis=0).max()))
            bound = min(bound, (sizes[-1] / _LEAST_PRODUCT) ** (1.0 / power))
            if bound < _CLEAR * last or not sizes[-1]:
                return bound
        edge = sizes[-1] / sizes[-2]  # near lambda_max(N), from below
        return min(bound, _chebyshev_bound(complement, start, edge, last)) if edge < last else bound


class _Part:
    """The weighted sum B relative to an orthonormal basis Q: T = Q^T B Q and the residual R = B Q - Q T."""

    def __init__(self, basis: np.ndarray, images: np.ndarray) -> None:
        self._basis, self._images = basis, images
        form = basis.T @ images
        self._form = 0.5 * (form + form.T)
        self._values, self._vectors = np.linalg.eigh(self._form)

    def value(self, dimension: int) -> float:
        """The d-th Ritz value."""
        return float(self._values[-dimension])

    def support(self, dimension: int) -> float:
        """The sum of the d largest Ritz values."""
        return float(self._values[-dimension:].sum())

    def leading(self, count: int) -> _Part:
        """The same for the leading Ritz vectors alone."""
        vectors = self._vectors[:, -count:]
        return _Part(self._basis @ vectors, self._images @ vectors)

    def support_bound(self, dimension: int, outside: float) -> float:
        """An upper bound on phi(w), given that no eigenvalue of the complement exceeds ``outside``."""
        slack = self.value(dimension) - outside
        if not slack > 0:
            return np.inf
        residual = self._images - self._basis @ self._form
        return block_sum_bound(self._form, residual, outside, slack, dimension)

    def outside(self, vectors: np.ndarray) -> np.ndarray:
        """Project on the complement, twice to remove rounding errors."""
        vectors = vectors - self._basis @ (self._basis.T @ vectors)
        return vectors - self._basis @ (self._basis.T @ vectors)


def _chebyshev_bound(
    complement: Callable[[np.ndarray], np.ndarray], start: np.ndarray, edge: float, last: float
) -> float:
    """The proof with Chebyshev polynomials on [0, edge] instead of powers: beyond ``edge`` they grow faster."""
    before, probes, bound = start, 2.0 / edge * complement(start) - start, np.inf
    for degree in range(1, _PROOF_STEPS + 1):
        growth = max(float(np.linalg.norm(probes, axis=0).max()) / _LEAST_PRODUCT, 1.0)
        bound = min(bound, 0.5 * edge * (1.0 + np.cosh(np.arccosh(growth) / degree)))
        if bound < 0.5 * (edge + last):
            break
        before, probes = probes, 2.0 * (2.0 / edge * complement(probes) - probes) - before
    return bound


def _symmetric(forms: np.ndarray) -> np.ndarray:
    return 0.5 * (forms + forms.transpose(0, 2, 1))
