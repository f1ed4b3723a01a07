"""The smallest errors that any components could have on given rows: computed once, as they hold for every method."""

from __future__ import annotations

import numpy as np

from fairpca.linalg import top_eigenpairs
from fairpca.moments import GroupMoments

__all__ = ["LeastErrors"]


class LeastErrors:
    """The smallest error of each group with its own components, and of all rows, for every number of components.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.inference._least_errors import LeastErrors
    >>> from fairpca.moments import group_moments
    >>> X = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> least = LeastErrors(group_moments(X, ["a", "a", "b", "b"]))
    >>> least.of_groups(1).tolist(), least.of_all(1)
    ([0.0, 0.0], 0.5)
    """

    def __init__(self, moments: GroupMoments) -> None:
        self.moments = moments
        self._groups, self._all = np.zeros((len(moments.labels), 0)), np.zeros(0)

    def prepare(self, n_components: int) -> None:
        """Compute the errors for up to ``n_components`` components, from one decomposition of each matrix."""
        if n_components > len(self._all):
            self._groups = np.array([_least(matrix, n_components) for matrix in self.moments.second_moments()])
            self._all = _least(self.moments.pooled_covariance(), n_components)

    def of_groups(self, d: int) -> np.ndarray:
        """Of each group about the pooled mean, of shape (k,)."""
        self.prepare(d)
        return self._groups[:, d - 1]

    def of_all(self, d: int) -> float:
        """Of all rows together: that of ordinary PCA."""
        self.prepare(d)
        return float(self._all[d - 1])


def _least(matrix: np.ndarray, n_components: int) -> np.ndarray:
    return float(np.trace(matrix)) - np.cumsum(top_eigenpairs(matrix, n_components)[0])
