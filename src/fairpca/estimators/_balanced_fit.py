"""What a fit of FairPCA returns: the solution itself, that of the relaxation, and those of all prefixes."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from fairpca._saved import NUMBER, PER_GROUP, Array, Record
from fairpca.estimators._base import Fit
from fairpca.protocols import RelaxedSolution

__all__ = ["RELAXED", "BalancedFit", "RelaxedProjection"]


@dataclasses.dataclass(frozen=True)
class RelaxedProjection:
    """The solution of the 2018 paper: an optimum of the relaxation, of rank d or slightly more.

    Attributes
    ----------
    components : ndarray of shape (rank, n_features)
    eigenvalues : ndarray of shape (rank,)
        Eigenvalues of P, in (0, 1]; they sum to n_components.
    shrinkage : ndarray of shape (rank,)
        ``1 - sqrt(1 - eigenvalue)``, the factors of Algorithm 1.
    group_losses : ndarray of shape (n_groups,)
    objective : float
    """

    components: np.ndarray
    eigenvalues: np.ndarray
    shrinkage: np.ndarray
    group_losses: np.ndarray
    objective: float
    mean: np.ndarray

    @property
    def rank(self) -> int:
        return len(self.eigenvalues)

    def transform(self, X: Any) -> np.ndarray:
        """The paper's embedding, with ``rank`` coordinates."""
        return (np.asarray(X) - self.mean) @ self.components.T * self.shrinkage

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Rows reconstructed from the embedding; their errors are those of the relaxation."""
        return np.asarray(X) @ self.components + self.mean


RELAXED = Record(
    RelaxedProjection,
    {
        "components": Array("rp", finite=True),
        "eigenvalues": Array("r"),
        "shrinkage": Array("r", finite=True),
        "group_losses": PER_GROUP,
        "objective": NUMBER,
        "mean": Array("p", finite=True),
    },
)


@dataclasses.dataclass(frozen=True)
class BalancedFit(Fit):
    """A fit with the optimum of the relaxation, in coordinates, what it captures of each group, and its objective.

    For nested components also the largest loss of every prefix and its lower bound.
    """

    relaxed: RelaxedSolution
    relaxed_captured: np.ndarray
    relaxed_objective: float
    prefix_objectives: np.ndarray | None = None
    prefix_lower_bounds: np.ndarray | None = None
