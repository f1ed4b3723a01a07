"""The interface between problems and solvers.

A *problem* is a convex function F of the captured variances c_1..c_k, given together with its dual
``F(c) = max_w a(w) - w . c``. A *solver* minimises F(c(V)) over d-dimensional subspaces through the joint
range of the moment matrices, without knowing what the numbers mean.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np


class Status(enum.Enum):
    """How a search ended. The value is a message for the user; the estimator adds which parameters to change."""

    OPTIMAL = "Optimality is certified: no subspace of this dimension is better by more than the tolerance."
    MAX_ITER = (
        "The iteration limit was reached before the duality gap closed. The components are the best found, but "
        "optimality is not certified."
    )
    GAP = (
        "The lower bound comes from a convex relaxation, whose optimum may need extra dimensions. The components are "
        "the best found, but optimality is not certified."
    )
    UNPROVEN = (
        "The spectrum decays too slowly to prove a bound without forming p x p matrices. The components may well be "
        "optimal, but optimality is not certified, and the losses are estimates."
    )
    STATIONARY = (
        "The components are stationary: no step from the best of all starts lowers the objective. The lower bound "
        "comes from a convex relaxation, so a gap does not imply that a better subspace exists."
    )
    UNCERTIFIED = "All iterations were run. This method provides no optimality certificate."
    RELAXATION_SOLVED = (
        "The conic solver converged to its own accuracy. The components are the rounded optimum of the relaxation."
    )


@dataclass(frozen=True)
class RelaxedSolution:
    """An optimum of the convex relaxation, of rank d or a little more: P = sum_j eigenvalues_j u_j u_j^T."""

    basis: np.ndarray
    eigenvalues: np.ndarray


@dataclass(frozen=True)
class SolverResult:
    """The returned subspace and its optimality certificate."""

    basis: np.ndarray
    objective: float
    lower_bound: float
    weights: np.ndarray
    status: Status
    n_iter: int
    n_oracle_calls: int
    relaxed: RelaxedSolution | None = None
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def converged(self) -> bool:
        return self.status is Status.OPTIMAL


@dataclass(frozen=True)
class RangeSolution:
    """A result, the b_a or upper bounds on them, and what its basis and the relaxed optimum capture of each matrix."""

    result: SolverResult
    best: np.ndarray
    captured: np.ndarray
    relaxed_captured: np.ndarray


class Expansion(NamedTuple):
    """Value, gradient and second derivatives of a function of the weights."""

    value: float
    gradient: np.ndarray
    curvature: np.ndarray


class RangeProblem(Protocol):
    """F(c) = max over w of a(w) - w . c, with w in the simplex or, if not ``normalised``, the positive orthant."""

    normalised: bool
    offsets: np.ndarray

    def value(self, captured: np.ndarray) -> float:
        """F at the captured variances."""

    def bound(self, weights: np.ndarray, support: float) -> float:
        """``a(w) - phi(w)``, maximised over the ray of w: a lower bound on F, given ``phi(w) = support``."""

    def dual(self, weights: np.ndarray) -> Expansion:
        """Value and gradient of the function a at w, and the diagonal of its Hessian."""

    def scaled_weights(self, weights: np.ndarray, support: float) -> np.ndarray:
        """The multiple of w that attains :meth:`bound`."""

    def rescale(self, value: float, scale: float, n_groups: int) -> float:
        """Convert a value of F for matrices divided by ``scale`` to the units of the original matrices."""


#: Makes the problem from the b_a, the most that d dimensions can capture of each matrix alone.
MakeProblem = Callable[[np.ndarray], RangeProblem]


class MomentOperators(Protocol):
    """Symmetric positive semidefinite matrices, available only through their products with vectors."""

    @property
    def n_matrices(self) -> int: ...

    @property
    def size(self) -> int: ...

    def images(self, vectors: np.ndarray) -> np.ndarray:
        """``A_a V`` for every matrix, of shape (k, p, m)."""

    def combined(self, weights: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """``sum_a w_a A_a V``."""


class ConcavePieces(Protocol):
    """F(z) = max_m J_m(z) with every J_m concave, where z_a = tr A_a - <A_a, P> is what P leaves out of A_a.

    If not ``normalised``, F is no maximum, and the multipliers of the J_m are the positive weights of a RangeProblem.
    """

    normalised: bool

    def pieces(self, errors: np.ndarray) -> np.ndarray:
        """The values J_m(z)."""

    def value(self, errors: np.ndarray) -> float:
        """F at z."""

    def gradients(self, errors: np.ndarray) -> np.ndarray:
        """The gradient of each J_m, in rows."""

    def cone(self) -> tuple[np.ndarray, np.ndarray]:
        """For k = 2: two directions; counterclockwise, all combinations of gradients lie strictly between them."""

    def guarded(self, errors: np.ndarray) -> np.ndarray:
        """A point near z at which all gradients are finite."""


class SeparablePieces(ConcavePieces, Protocol):
    """The same with every J_m a sum of functions of one z_a each."""

    def minorants(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Constants and slopes of linear functions below each J_m on a box."""


class PenaltyPoint(Protocol):
    """Loss and constraints at one frame, with their gradients."""

    @property
    def loss(self) -> float: ...

    @property
    def loss_gradient(self) -> np.ndarray: ...

    @property
    def constraints(self) -> np.ndarray: ...

    def constraint_gradient(self, weights: np.ndarray) -> np.ndarray:
        """Gradient of ``sum_j weights_j h_j``."""


@dataclass(frozen=True)
class Curvature:
    """Eigenpairs of an approximate Hessian of ``sum_j h_j``; the vectors, of p d entries, are columns."""

    values: np.ndarray
    vectors: np.ndarray

    def preconditioner(self, penalty: float, loss_curvature: float) -> Callable[[np.ndarray], np.ndarray]:
        """Inverse of ``loss_curvature I + penalty H``."""
        shrink = 1.0 / (loss_curvature + penalty * self.values) - 1.0 / loss_curvature

        def apply(gradient: np.ndarray) -> np.ndarray:
            flat = gradient.reshape(-1)
            solved = flat / loss_curvature + self.vectors @ (shrink * (self.vectors.T @ flat))
            return solved.reshape(gradient.shape)

        return apply


class PenaltyProblem(Protocol):
    """Loss and constraints as smooth functions of a frame; ``noise`` is the error of a constraint's value."""

    invariant: bool
    noise: float
    n_evaluations: int

    def evaluate(self, basis: np.ndarray) -> PenaltyPoint: ...

    def curvature(self, basis: np.ndarray) -> Curvature | None:
        """An approximate Hessian of the constraints, or None if the problem has none to offer."""


class SmoothableProblem(Protocol):
    """A function of the subspace of V, the largest of several smooth pieces, with smooth limits."""

    def value(self, basis: np.ndarray) -> float:
        """The function itself."""

    def smoothed(self, basis: np.ndarray, temperature: float) -> tuple[float, np.ndarray]:
        """Value and gradient of the smooth approximation."""

    def smoothing_error(self, basis: np.ndarray) -> float:
        """What the approximation adds to the value at most, for a unit of temperature."""

    def spread(self, basis: np.ndarray) -> float:
        """The temperature from which all pieces at V count about alike."""

    def limits(self, basis: np.ndarray) -> np.ndarray:
        """The c_j(V), of the order of 1; may be empty."""

    def limits_gradient(self, basis: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Gradient of ``sum_j weights_j c_j(V)``."""
