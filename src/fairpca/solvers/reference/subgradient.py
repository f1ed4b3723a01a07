"""Riemannian subgradient descent with a constant step and many starts (Vu et al. 2022, Algorithm 1).

The frame U in St(p, p - d) spans what the projection leaves out, so z_a = <A_a, U U^T>, and with the
subgradient g of F at z the Riemannian subgradient is ``(I - U U^T) 2 sum_a g_a A_a U``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairpca.joint_range import JointRange
from fairpca.linalg import orthonormalise
from fairpca.protocols import ConcavePieces, SolverResult, Status
from fairpca.solvers.stiefel.geometry import random_frame


@dataclass(frozen=True)
class _Descent:
    """One start: the best frame on the way, and the objective after every step."""

    frame: np.ndarray
    value: float
    values: np.ndarray


def descend_subgradient(
    problem: ConcavePieces,
    joint: JointRange,
    weights: np.ndarray,
    *,
    step: float,
    n_starts: int,
    max_iter: int,
    rng: np.random.Generator,
) -> SolverResult:
    """Run from the complement of the leading eigenvectors of ``sum_a weights_a A_a``, and from random frames.

    The paper returns the last iterate; kept here is the best. ``history`` has one entry per start.
    """
    p, q = joint.size, joint.size - joint.dimension
    complement = joint.spectrum(weights)[1][:, joint.dimension :]
    starts = [np.ascontiguousarray(complement), *(random_frame(rng, p, q) for _ in range(n_starts))]
    runs = [_descend(problem, joint.matrices, start, step, max_iter) for start in starts]
    best = min(runs, key=lambda run: run.value)
    slopes = _value_and_slopes(problem, np.einsum("pi,api->a", best.frame, joint.matrices @ best.frame))[1]
    return SolverResult(
        basis=np.linalg.qr(best.frame, mode="complete")[0][:, q:],
        objective=best.value,
        lower_bound=-np.inf,
        weights=slopes / np.abs(slopes).sum(),
        status=Status.UNCERTIFIED,
        n_iter=max_iter,
        n_oracle_calls=joint.calls,
        history=[{"start": number, "objective": run.values} for number, run in enumerate(runs)],
    )


def _descend(
    problem: ConcavePieces,
    matrices: np.ndarray,
    frame: np.ndarray,
    step: float,
    max_iter: int,
) -> _Descent:
    values = np.empty(max_iter + 1)
    best_value, best_frame = np.inf, frame
    for t in range(max_iter + 1):
        images = (matrices @ frame).reshape(len(matrices), -1)
        values[t], slopes = _value_and_slopes(problem, images @ frame.ravel())
        if values[t] < best_value:
            best_value, best_frame = float(values[t]), frame
        if t == max_iter:
            break
        ambient = ((-2.0 * step) * slopes @ images).reshape(frame.shape)
        ambient -= frame @ (frame.T @ ambient)
        # F does not see a change of signs of the columns, so the Q factor needs no care for them.
        frame = orthonormalise(frame + ambient)
    return _Descent(best_frame, best_value, values)


def _value_and_slopes(problem: ConcavePieces, errors: np.ndarray) -> tuple[float, np.ndarray]:
    """F and one of its subgradients."""
    values = problem.pieces(errors)
    active = int(values.argmax())
    return float(values[active]), problem.gradients(problem.guarded(errors))[active]
