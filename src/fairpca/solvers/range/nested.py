"""One direction at a time: every prefix of the basis is the best extension of the shorter ones.

Given V of dimension j - 1, the next v minimises ``max_a offset_ja - <A_a, V V^T> - v^T A_a v`` over unit vectors
orthogonal to V: a problem of dimension one on the joint range of the matrices restricted to the complement. For two
matrices that range is convex (in a complement of dimension two an ellipse, whose boundary contains the optimum), so
every step is exact. With offsets the optimum may be at a vertex, where the terms are not equal.

Each step is the best, not the sequence: where directions tie, all losses may be the same along the whole
family, so nothing in a step tells them apart, and what later steps attain depends on the one that was found first (rows
of an identity matrix, four groups: at the fifth step 0.144 to 0.160 of the variance). A choice that looks ahead would
depend on how many components are wanted, and their prefixes would no longer be solutions of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairpca.joint_range import JointRange, Minimax
from fairpca.protocols import RangeProblem, SolverResult, Status

#: Solves one step: a problem on the joint range of the complement, with subspaces of dimension one.
SolveStep = Callable[[RangeProblem, JointRange], SolverResult]


@dataclass(frozen=True)
class NestedResult:
    """The basis, column by column, what it captures of each matrix, and the result of every step.

    Objective and lower bound of a step are those of the prefix that it completes, given the shorter prefixes.
    """

    basis: np.ndarray
    captured: np.ndarray
    steps: list[SolverResult]

    @property
    def objectives(self) -> np.ndarray:
        return np.array([step.objective for step in self.steps])

    @property
    def status(self) -> Status:
        """OPTIMAL if every step is, else the status of the first that is not."""
        return next((step.status for step in self.steps if not step.converged), Status.OPTIMAL)


def minimise_nested(offsets: np.ndarray, matrices: np.ndarray, solve_step: SolveStep) -> NestedResult:
    """Minimise the largest of ``offsets[j] - c(V)`` over V of dimension j + 1 that contain the previous one.

    ``offsets`` has shape (d, k), ``matrices`` (k, p, p).
    """
    complement, captured = np.eye(matrices.shape[1]), np.zeros(len(matrices))
    columns, steps = [], []
    for row in offsets:
        joint, problem = JointRange(matrices, 1), Minimax(row - captured)
        step = solve_step(problem, joint)
        direction = step.basis[:, 0]
        columns.append(complement @ direction)
        captured = captured + joint.captured(step.basis)
        steps.append(step)
        complement, matrices = _without(direction, complement, matrices)
    return NestedResult(np.stack(columns, axis=1), captured, steps)


def _without(direction: np.ndarray, complement: np.ndarray, matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Leave a direction out: by a reflection that makes it the first axis, which is then dropped."""
    mirror = direction.copy()
    mirror[0] += 1.0 if direction[0] >= 0 else -1.0
    mirror /= np.linalg.norm(mirror)
    images = matrices @ mirror
    inner = images @ mirror
    shift = 2.0 * (images - inner[:, None] * mirror)
    cross = shift[:, :, None] * mirror
    reflected = matrices - cross - cross.transpose(0, 2, 1)
    remaining = complement - 2.0 * np.outer(complement @ mirror, mirror)
    return remaining[:, 1:], np.ascontiguousarray(reflected[:, 1:, 1:])
