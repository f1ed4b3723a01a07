"""The noise in the second moments of random groups: what it does to a loss, in closed form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._validation import rng_for
from fairpca.moments import GroupMoments
from fairpca.moments._row_squares import row_squares

__all__ = ["Noise", "flow"]

#: Steps of the flow from no noise to that of a group; more change the result by less than 1 %.
_STEPS = 200
#: Below this effective number of rows in the smaller part, the closed form is not reliable.
_FEW_ROWS = 15.0
#: Number of rows whose products are computed at a time.
_BLOCK_ROWS = 16_384
#: Number of noise matrices drawn to estimate overfitting; with more features than this, few are enough.
_DRAWS, _FEW_DRAWS, _MANY_FEATURES = 8, 2, 200


@dataclass(frozen=True)
class Noise:
    """The noise in the second moments of random groups.

    Attributes
    ----------
    values, vectors : ndarray
        Pooled eigenvalues, descending, and eigenvectors.
    kappa : ndarray of shape (p, p)
        The variance, times the weight of a random group, of entry (i, j) of its second moment in the eigenbasis: the
        mean of ``y_i^2 y_j^2``, less the squared eigenvalue on the diagonal.
    mean : ndarray of shape (p,)
    total : float
        The weight of all rows; where rows have no weights, their number.
    """

    values: np.ndarray
    vectors: np.ndarray
    kappa: np.ndarray
    mean: np.ndarray
    total: float

    @classmethod
    def from_rows(cls, X: Any, moments: GroupMoments, weights: np.ndarray | None = None) -> Noise:
        """From fourth moments of the rows."""
        values, vectors = _pooled_eigenpairs(moments)
        n_rows = X.shape[0] if weights is None else int((weights > 0).sum())
        squares = _squared_scores(X, moments.pooled_mean, vectors, weights)
        kappa = sum(part.T @ part for part in squares) / moments.total_count
        kappa.flat[:: len(values) + 1] -= values**2
        return cls(values, vectors, kappa * n_rows / (n_rows - 1.0), moments.pooled_mean, moments.total_count)

    @classmethod
    def from_blocks(cls, blocks: Sequence[GroupMoments], moments: GroupMoments) -> Noise:
        """From random blocks of the rows."""
        values, vectors = _pooled_eigenpairs(moments)
        kappa = np.zeros_like(vectors)
        for block in blocks:
            matrix = np.tensordot(block.shares, block.second_moments(moments.pooled_mean), axes=1)
            kappa += block.total_count * (vectors.T @ matrix @ vectors - np.diag(values)) ** 2 / (len(blocks) - 1)
        return cls(values, vectors, kappa, moments.pooled_mean, moments.total_count)

    def expected_loss(self, weight: float, d: int, total: float | None = None) -> float:
        """Of a random group with this weight, drawn from the rows that this noise comes from, or from more."""
        return flow(self.values, self.kappa, 1.0 / weight - 1.0 / (total or self.total), d)

    def rests_on_few_rows(
        self, X: Any, weights: np.ndarray | None, weight: float, d: int, copies: np.ndarray | float = 1.0
    ) -> bool:
        """Whether too few rows dominate the expected loss of a random group; each row stands for so many copies."""
        factors = saturated(self.values, self.kappa, max(1.0 / weight - 1.0 / self.total, 0.0), d)
        found = [
            np.einsum("ri,ri->r", squares[:, :d] @ factors, squares[:, d:])
            for squares in _squared_scores(X, self.mean, self.vectors, weights)
        ]
        parts = np.concatenate(found)
        total, squares = (copies * parts).sum(), (copies * parts**2).sum()
        effective = total**2 / squares if squares > 0 else np.inf
        return bool(effective * min(weight, self.total - weight) / self.total < _FEW_ROWS)

    def relative_variance(self, weight: float, d: int) -> float:
        """Of what d components of rows of this weight overfit: that of a sum of squares, ``2 sum q^2 / (sum q)^2``."""
        q = self.kappa[:d, d:] * saturated(self.values, self.kappa, 1.0 / weight, d)
        return float(2.0 * (q**2).sum() / q.sum() ** 2) if q.sum() > 0 else 0.0

    def overfitting(self, weight: float) -> tuple[np.ndarray, np.ndarray]:
        """By how much components of rows of this weight overfit them, and by how much they fall short on others.

        For every number of components, of shape (p,). Both are equal to first order, but where eigenvalues are nearly
        equal the latter vanishes: any components are then as good as the best. So noise matrices are drawn and added to
        the eigenvalues, which are shrunk first, since their own noise has driven them apart (Ledoit and Wolf's share).
        """
        rng, values = rng_for(0, "overfitting"), self._shrunk_values()
        deviations = np.sqrt(np.maximum(np.triu(self.kappa, 1), 0.0) / weight)
        draws = _DRAWS if len(values) <= _MANY_FEATURES else _FEW_DRAWS
        gained, missed = np.zeros(len(values)), np.zeros(len(values))
        for _ in range(draws):
            upper = deviations * rng.standard_normal(deviations.shape)
            found, vectors = np.linalg.eigh(np.diag(values) + upper + upper.T)
            gained += np.cumsum(found[::-1] - values)
            missed += np.cumsum(values - values @ vectors[:, ::-1] ** 2)
        return np.maximum(gained / draws, 0.0), np.maximum(missed / draws, 0.0)

    def _shrunk_values(self) -> np.ndarray:
        deviations = self.values - self.values.mean()
        spread, noise = float(deviations @ deviations), float(self.kappa.sum()) / self.total
        share = min(1.0, noise / spread) if spread > 0 else 1.0
        return self.values - share * deviations


def _pooled_eigenpairs(moments: GroupMoments) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh(moments.pooled_covariance())
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1]


def _squared_scores(X: Any, mean: np.ndarray, vectors: np.ndarray, weights: np.ndarray | None) -> Iterator[np.ndarray]:
    """Squared scores of the rows, times their weights, block by block."""
    for start in range(0, X.shape[0], _BLOCK_ROWS):
        rows = np.arange(start, min(start + _BLOCK_ROWS, X.shape[0]))
        squares = row_squares(X, rows, mean, vectors)[:, 1:]
        yield squares if weights is None else squares * weights[rows, None]


def saturated(values: np.ndarray, kappa: np.ndarray, factor: float, d: int) -> np.ndarray:
    """``1 / ((D + sqrt(D^2 + 4 f kappa)) / 2)`` with D the difference of eigenvalues, of shape (d, p - d)."""
    difference = values[:d, None] - values[None, d:]
    denominator = (difference + np.sqrt(difference**2 + 4.0 * factor * kappa[:d, d:])) / 2.0
    return np.divide(1.0, denominator, out=np.zeros_like(denominator), where=denominator > 0)


def flow(values: np.ndarray, kappa: np.ndarray, time: float, d: int) -> float:
    """What the d leading eigenvalues gain while noise drives them apart; ``values`` descending.

    Each step treats every pair as if it were alone, exactly: its difference D grows to ``sqrt(D^2 + 4 kappa h)``. Ties
    therefore cost no accuracy, and no step is unstable.
    """
    if d >= len(values) or not time > 0:
        return 0.0
    current = values.astype(float).copy()
    kappa = kappa - np.diag(np.diag(kappa))
    # Small steps first: where eigenvalues are tied, differences grow with the root of time.
    times = time * np.linspace(0.0, 1.0, _STEPS + 1) ** 2
    order = np.sign(np.arange(len(values))[None, :] - np.arange(len(values))[:, None])
    for step in np.diff(times):
        difference = np.abs(current[:, None] - current[None, :])
        grown = np.sqrt(difference**2 + 4.0 * kappa * step)
        current = current + (order * (grown - difference)).sum(axis=1) / 2.0
        current = np.sort(current)[::-1]
    return float(current[:d].sum() - values[:d].sum())
