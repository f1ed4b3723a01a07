"""What a projection makes of each group: the one place where errors, losses and captured variances are computed."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping

import numpy as np

from fairpca.linalg import leading_sums, top_eigenpairs
from fairpca.problems.balanced import best_captured

#: Values below this share of the variance are rounding, and count as zero.
ROUNDING = 1e-12
#: Basis and, where scores are not those of an orthogonal projection, encoder: see :func:`captured_variances`.
Projection = tuple[np.ndarray, "np.ndarray | None"]


class Evaluation:
    """Errors and losses of groups with second moments ``matrices``, of shape (k, p, p), under a projection.

    Attributes
    ----------
    totals, captured : ndarray of shape (k,)
        The variance of each group, and what is captured of it.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.problems.evaluation import Evaluation
    >>> found = Evaluation(np.array([np.diag([4.0, 1.0]), np.diag([1.0, 3.0])]), np.array([[1.0], [0.0]]))
    >>> found.errors, found.losses
    (array([1., 3.]), array([0., 2.]))
    """

    def __init__(
        self,
        matrices: np.ndarray,
        basis: np.ndarray,
        encoder: np.ndarray | None = None,
        best: np.ndarray | None = None,
    ) -> None:
        """``best`` is what :func:`best_captured` found for these matrices, if it is known."""
        self._matrices, self._basis, self._best = matrices, basis, best
        self.totals = np.einsum("aii->a", matrices)
        self.captured = captured_variances(matrices, basis, encoder)

    @property
    def errors(self) -> np.ndarray:
        """The mean squared distance of each group's rows from their reconstruction."""
        return np.maximum(without_rounding(self.totals - self.captured, self.totals), 0.0)

    @functools.cached_property
    def losses(self) -> np.ndarray:
        """What sharing the projection costs each group, against the most that any projection of this rank captures."""
        best = best_captured(self._matrices, self._basis.shape[1]) if self._best is None else self._best
        return np.maximum(without_rounding(best - self.captured, self.totals), 0.0)


def losses_by_dimension(matrices: np.ndarray, projections: Mapping[int, Projection]) -> np.ndarray:
    """Losses under several projections, by their numbers of components: of shape (n_projections, k)."""
    best = leading_sums(matrices, max(projections))
    return np.stack(
        [Evaluation(matrices, *projection, best=best[:, d - 1]).losses for d, projection in projections.items()]
    )


def leading_projections(covariance: np.ndarray, dimensions: Collection[int]) -> dict[int, Projection]:
    """Those of ordinary PCA, by their numbers of components."""
    vectors = top_eigenpairs(covariance, max(dimensions))[1]
    return {d: (vectors[:, :d], None) for d in dimensions}


def without_rounding(values: np.ndarray, totals: np.ndarray | float) -> np.ndarray:
    """Zero where a value is only the rounding of numbers as large as ``totals``."""
    return np.where(np.abs(values) > ROUNDING * totals, values, 0.0)


def captured_variances(matrices: np.ndarray, basis: np.ndarray, encoder: np.ndarray | None = None) -> np.ndarray:
    """``tr M_a`` minus the error of group a, where centred rows x are reconstructed as ``V T^T x``.

    V is ``basis``, with orthonormal columns, and T is ``encoder``; without it, the projection is orthogonal, T = V. As
    ``x - V T^T x`` is the sum of the orthogonal parts ``x - V V^T x`` and ``V (V - T)^T x``, this is
    ``<M_a, V V^T> - <M_a, (V - T)(V - T)^T>``.
    """
    captured = np.einsum("pi,api->a", basis, matrices @ basis)
    if encoder is None:
        return captured
    oblique = basis - encoder
    return captured - np.einsum("pi,api->a", oblique, matrices @ oblique)
