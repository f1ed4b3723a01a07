"""For fewer rows than features: the same moments in coordinates of the space spanned by the centred rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import linalg, sparse

from fairpca._validation import Groups
from fairpca.linalg import orthonormalise, threads_for
from fairpca.moments._accumulate import accumulate
from fairpca.moments._factors import GroupFactors
from fairpca.moments._group_moments import GroupMoments, Reduction

#: How many numbers are centred at a time.
_BLOCK_SIZE = 4_000_000
#: Squared singular values below this share of the largest are rounding errors of the Gram matrix.
_RANK_TOLERANCE = 1e-13


class RowSpace(Reduction):
    """Coordinates ``Y`` with ``X - mean = Y Q^T``, Q orthonormal, from the n x n Gram matrix of the centred rows.

    With ``X_c X_c^T = U s^2 U^T``, ``Y = U s`` and ``Q = X_c^T U / s``. Every second moment about a mean lies in the
    span of Q, so a problem on subspaces can be solved there. ``n_spare`` directions orthogonal to the span, along which
    the rows do not vary, are added: a projection of that many dimensions never needs more. Neither a p x p matrix nor
    Q is formed, and a sparse X stays sparse.

    Attributes
    ----------
    moments : GroupMoments
        The moments of the coordinates, with the spare directions last.
    labels, counts, pooled_mean
        As in :class:`~fairpca.moments.GroupMoments`, for the features.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca._validation import check_groups
    >>> from fairpca.moments import group_moments
    >>> from fairpca.moments._row_space import RowSpace
    >>> rng = np.random.default_rng(0)
    >>> X, groups = rng.normal(size=(6, 50)), np.arange(6) % 2
    >>> space = RowSpace(X, check_groups(groups, 6), n_spare=1)
    >>> space.moments.n_features
    6
    >>> basis = space.lift(np.eye(6)[:, :2])
    >>> within = space.moments.second_moments()[:, :2, :2]
    >>> np.allclose(basis.T @ group_moments(X, sensitive_features=groups).second_moments() @ basis, within)
    True
    """

    def __init__(self, X: Any, groups: Groups, sample_weight: np.ndarray | None = None, *, n_spare: int = 0) -> None:
        # The statistics of the features do not depend on the coordinates.
        self._factors = factors = GroupFactors(X, groups, sample_weight)
        self.labels, self.counts = factors.labels, factors.counts
        self.means, self.pooled_mean = factors.means, factors.pooled_mean
        self._X, self._centre = factors.rows, factors.centre
        n_rows, n_features = self._X.shape
        with threads_for(n_rows**2 * (n_rows + n_features)):
            squares, vectors = linalg.eigh(self._gram())
        rank = int((squares > _RANK_TOLERANCE * max(squares[-1], 0.0)).sum())
        self._roots = np.sqrt(squares[::-1][:rank])
        self._vectors = np.ascontiguousarray(vectors[:, ::-1][:, :rank])
        self._spare = self._orthogonal_directions(min(n_spare, n_features - rank))
        coordinates = np.hstack([self._vectors * self._roots, np.zeros((n_rows, self._spare.shape[1]))])
        self._moments = accumulate(coordinates, Groups(self.labels, factors.codes), factors.weights)

    @property
    def moments(self) -> GroupMoments:
        return self._moments

    @property
    def size(self) -> int:
        return self.moments.n_features

    def lift(self, basis: np.ndarray) -> np.ndarray:
        """Map an orthonormal basis in coordinates to one in the feature space, column by column up to rounding."""
        rank = len(self._roots)
        lifted = self._spread(self._vectors @ (basis[:rank] / self._roots[:, None])) + self._spare @ basis[rank:]
        basis = orthonormalise(lifted)
        return basis * np.sign(np.einsum("ij,ij->j", basis, lifted))

    def columns_fixed_by_group(self) -> np.ndarray:
        return self._factors.columns_fixed_by_group()

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield a few columns of a dense X at a time, in double precision."""
        step = max(_BLOCK_SIZE // self._X.shape[0], 1)
        for start in range(0, self.n_features, step):
            columns = slice(start, start + step)
            yield columns, self._X[:, columns].astype(np.float64)

    def _gram(self) -> np.ndarray:
        """``X_c X_c^T``; dense rows are centred first, which preserves precision far from the origin."""
        if sparse.issparse(self._X):
            X = self._X.astype(np.float64)
            towards_mean = X @ self._centre
            gram = (X @ X.T).toarray() - towards_mean[:, None] - towards_mean
            return gram + self._centre @ self._centre
        gram = np.zeros((self._X.shape[0],) * 2)
        for columns, block in self._blocks():
            block -= self._centre[columns]
            gram += block @ block.T
        return gram

    def _spread(self, coefficients: np.ndarray) -> np.ndarray:
        """``X_c^T C``, of shape (p, n_columns of C)."""
        spread = np.empty((self.n_features, coefficients.shape[1]))
        if sparse.issparse(self._X):
            spread[:] = self._X.T @ coefficients
        else:
            for columns, block in self._blocks():
                spread[columns] = block.T @ coefficients
        return spread - np.outer(self._centre, coefficients.sum(axis=0))

    def _scores(self, vectors: np.ndarray) -> np.ndarray:
        """``X_c V``."""
        if sparse.issparse(self._X):
            scores = np.asarray(self._X @ vectors)
        else:
            scores = sum(block @ vectors[columns] for columns, block in self._blocks())
        return scores - self._centre @ vectors

    def _orthogonal_directions(self, count: int) -> np.ndarray:
        """Random directions projected on the complement of the row space, twice to remove rounding errors."""
        directions = np.random.default_rng(0).standard_normal((self.n_features, count))
        for _ in range(2 if count else 0):
            inside = (self._vectors.T @ self._scores(directions)) / self._roots[:, None] ** 2
            directions = orthonormalise(directions - self._spread(self._vectors @ inside))
        return directions
