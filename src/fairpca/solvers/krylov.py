"""Very many features: the search happens in a growing subspace, and a bound accounts for what it leaves out.

Let Q be an orthonormal basis of the subspace, ``B = sum_a w_a A_a``, and write B in the basis (Q, its complement) as
``[[T, R^T], [R, N]]``. T and R are known from the products ``A_a Q``. For every s > 0

    B <= diag(T + R^T R / s,  N + s I),

so with ``nu >= lambda_max(N)`` and ``s = lambda_d(T) - nu > 0``

    phi(w) <= sum_{i <= d} max(lambda_i(T + R^T R / s), lambda_d(T)),

which exceeds the sum found in the subspace by the squares of the residuals only. The number nu comes from a power
iteration on Gaussian vectors drawn after Q and w are fixed: if u is the leading eigenvector of N, then
``||N^q g|| >= lambda_max(N)^q |u . g|``, and all of r vectors have ``|u . g| <= 1/10`` with probability at most
``(0.08)^r``. With r = 10 the bound fails with a probability below 1e-10 (after Halko, Martinsson and Tropp 2011,
Lemma 4.1).

The subspace grows by the residuals of the leading Ritz vectors of each A_a and of B(w): block Lanczos on all of them
together. No p x p matrix is ever formed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Protocol

import numpy as np

from fairpca.joint_range import JointRange
from fairpca.linalg import extend_basis, orthonormalise, top_eigenpairs
from fairpca.protocols import RangeProblem, RelaxedSolution, SolverResult, Status
from fairpca.solvers.dual import minimise_on_range

__all__ = ["MomentOperators", "OperatorSolution", "minimise_on_operators"]

#: Ritz vectors beyond the d wanted ones that are kept improving: they widen the gap that convergence lives on.
_EXTRA = 3
#: Gaussian vectors of the proof, and the smallest inner product with u that one of them must have.
_PROBES = 10
_LEAST_PRODUCT = 0.1
_PROOF_STEPS = 12
#: Inside the subspace accuracy is cheap, and the search for extreme points of the relaxation relies on it.
_INNER_TOL = 1e-10
#: The proof stops refining nu once it lies this far below the d-th eigenvalue.
_CLEAR = 0.6


class MomentOperators(Protocol):
    """Symmetric positive semidefinite matrices that are known by their products only."""

    @property
    def n_matrices(self) -> int: ...

    @property
    def size(self) -> int: ...

    def images(self, vectors: np.ndarray) -> np.ndarray:
        """``A_a V`` for every matrix, of shape (k, p, m)."""


@dataclasses.dataclass(frozen=True)
class OperatorSolution:
    """The result, bounds above the b_a, and what the basis and the relaxed optimum capture of each matrix."""

    result: SolverResult
    best: np.ndarray
    captured: np.ndarray
    relaxed: RelaxedSolution
    relaxed_captured: np.ndarray


def minimise_on_operators(
    make_problem: Callable[[np.ndarray], RangeProblem],
    operators: MomentOperators,
    dimension: int,
    *,
    scale: float,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
) -> OperatorSolution:
    """Minimise F(c(V)) for the matrices divided by ``scale``; ``make_problem`` takes the b_a.

    The search works with b_a that are sums of Ritz values and so never too large: its lower bound holds for the exact
    ones. The objective is stated with bounds above the b_a, so it is never too small, and the gap covers both.
    """
    span = _Span(operators, scale, min(operators.size, 2 * (dimension + _EXTRA)), rng)
    steps = 0
    while True:
        steps += 1
        joint = JointRange(span.forms, dimension)
        vertices = [joint.point(unit) for unit in np.eye(joint.n_matrices)]
        best = np.array([point.support for point in vertices])
        problem = make_problem(best)
        inner = minimise_on_range(problem, joint, vertices, tol=min(0.1 * tol, _INNER_TOL), max_iter=max_iter, rng=rng)
        residuals, missing = span.residuals([*np.eye(joint.n_matrices), inner.weights], dimension)
        bound = -np.inf
        complete = residuals.shape[1] == 0
        if missing <= 2 * tol or complete or steps >= max_iter:  # the estimate errs on the safe side
            bound = problem.bound(inner.weights, span.proven_support(inner.weights, dimension, rng))
        if inner.lower_bound - bound <= tol or complete or steps >= max_iter or not span.grow(residuals):
            break
    best = span.proven_best(inner.weights, dimension, rng)
    objective = make_problem(best).value(np.einsum("mi,ami->a", inner.basis, span.forms @ inner.basis))
    unproven = inner.status if not inner.converged else Status.MAX_ITER
    inner = dataclasses.replace(
        inner,
        objective=objective,
        lower_bound=bound,
        status=Status.OPTIMAL if objective - bound <= tol else unproven,
        n_iter=steps,
        n_oracle_calls=span.products,
    )
    return _lifted(inner, span, best)


def _lifted(inner: SolverResult, span: _Span, best: np.ndarray) -> OperatorSolution:
    """The result of the subspace, in the whole space."""
    relaxed = inner.relaxed or RelaxedSolution(inner.basis, np.ones(inner.basis.shape[1]))
    whole = RelaxedSolution(span.basis @ relaxed.basis, relaxed.eigenvalues)
    return OperatorSolution(
        result=dataclasses.replace(inner, basis=span.basis @ inner.basis, relaxed=whole),
        best=best,
        relaxed=whole,
        captured=np.einsum("mi,ami->a", inner.basis, span.forms @ inner.basis),
        relaxed_captured=np.einsum("mi,ami,i->a", relaxed.basis, span.forms @ relaxed.basis, relaxed.eigenvalues),
    )


class _Span:
    """An orthonormal basis Q, the products A_a Q and the forms Q^T A_a Q."""

    def __init__(self, operators: MomentOperators, scale: float, width: int, rng: np.random.Generator) -> None:
        self._operators, self._scale = operators, scale
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
        """Residuals of the leading Ritz vectors in each direction, scaled to unit length, and the loss they suggest."""
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

    def proven_support(self, weights: np.ndarray, dimension: int, rng: np.random.Generator) -> float:
        """The bound on phi(w) of the head of this file; infinite where the complement cannot be told to be small."""
        form = np.tensordot(weights, self.forms, axes=1)
        last = float(np.linalg.eigvalsh(form)[-dimension])
        self.outside = self._bound_outside(weights, last, rng)
        return self._support_bound(weights, dimension, self.outside)

    def proven_best(self, weights: np.ndarray, dimension: int, rng: np.random.Generator) -> np.ndarray:
        """Bounds above the b_a. Since w_a A_a <= B(w), the proof for B(w) often serves; else A_a gets its own."""
        best, level = [], self.outside
        for unit, weight in zip(np.eye(len(weights)), weights, strict=True):
            value = self._support_bound(unit, dimension, level / weight if weight > 0 else np.inf)
            best.append(value if np.isfinite(value) else self.proven_support(unit, dimension, rng))
        return np.array(best)

    def _support_bound(self, weights: np.ndarray, dimension: int, outside: float) -> float:
        """phi(w) at most, given that no eigenvalue of the complement exceeds ``outside``."""
        form = np.tensordot(weights, self.forms, axes=1)
        last = float(np.linalg.eigvalsh(form)[-dimension])
        if not last > outside:
            return np.inf
        residual = np.tensordot(weights, self._images, axes=1) - self.basis @ form
        values = np.linalg.eigvalsh(form + residual.T @ residual / (last - outside))[-dimension:]
        return float(np.maximum(values, last).sum())

    def _bound_outside(self, weights: np.ndarray, last: float, rng: np.random.Generator) -> float:
        """``nu >= lambda_max(N)``, up to a probability of 1e-10."""
        probes, bound = self._outside(rng.standard_normal((len(self.basis), _PROBES))), np.inf
        for power in range(1, _PROOF_STEPS + 1):
            probes = self._outside(np.tensordot(weights, self._apply(probes), axes=1))
            size = np.linalg.norm(probes, axis=0).max()
            bound = min(bound, float(size / _LEAST_PRODUCT) ** (1.0 / power))
            if bound < _CLEAR * last:
                break
        return bound

    def _outside(self, vectors: np.ndarray) -> np.ndarray:
        vectors = vectors - self.basis @ (self.basis.T @ vectors)
        return vectors - self.basis @ (self.basis.T @ vectors)


def _symmetric(forms: np.ndarray) -> np.ndarray:
    return 0.5 * (forms + forms.transpose(0, 2, 1))
