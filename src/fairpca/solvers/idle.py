"""Directions that decide nothing: where the matrices that decide are of low rank, the rest of a subspace is free."""

from __future__ import annotations

import dataclasses

import numpy as np

from fairpca.joint_range import JointRange
from fairpca.linalg import extend_by_leading
from fairpca.protocols import RangeProblem, SolverResult

__all__ = ["spend_idle_directions"]

#: A share of the largest weighted capture below which a direction captures nothing.
_NOTHING = 1e-12


def spend_idle_directions(problem: RangeProblem, joint: JointRange, result: SolverResult) -> SolverResult:
    """Use directions of which the weighted matrices have nothing for all matrices together.

    None of the weighted matrices loses by it, since they are positive semidefinite; should another one come to decide
    and the value rise, everything stays as it is. A basis of fewer than d columns is completed in the same way.
    """
    basis = result.basis
    values, vectors = np.linalg.eigh(basis.T @ joint.combine(result.weights) @ basis)
    used = values > _NOTHING * max(values.max(initial=0.0), np.finfo(float).tiny)
    if used.all() and len(used) == joint.dimension:
        return result
    candidate = extend_by_leading(basis @ vectors[:, used], joint.matrices.sum(axis=0), joint.dimension)
    value = problem.value(joint.captured(candidate))
    if value > result.objective and len(used) == joint.dimension:
        return result
    return dataclasses.replace(result, basis=candidate, objective=value)
