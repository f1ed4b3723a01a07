"""What a random division into groups would show, in closed form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fairpca._labels import label_text
from fairpca._validation import Groups, check_n_components, check_several_groups
from fairpca.inference._checks import as_source
from fairpca.inference._display import TableResult, number
from fairpca.linalg import top_eigenpairs
from fairpca.moments import FoldMoments, GroupMoments, MemorySource, RandomCells, RowSource, accumulate, row_counts
from fairpca.problems import best_captured, group_losses

__all__ = [
    "ChanceLoss",
    "ChanceLosses",
    "Influence",
    "Noise",
    "add_up",
    "chance_losses",
    "flow",
    "pca_losses_by_dimension",
]

#: Steps of the flow from no noise to that of a group; more change the result by less than 1 %.
_STEPS = 200
#: Below this effective number of rows in the smaller part, the closed form is not reliable.
FEW_ROWS_LIMIT = 15.0
#: Number of rows whose products are computed at a time.
_BLOCK_ROWS = 16_384
#: Number of random blocks if rows are not in memory: kappa is then off by 6 %.
_BLOCKS = 40
#: Number of noise matrices drawn to estimate overfitting; with more features than this, few are enough.
_DRAWS, _FEW_DRAWS, _MANY_FEATURES = 8, 2, 200
#: Rows of a chunk from which the influence of single rows is judged.
_INFLUENCE_ROWS = 5_000


@dataclass(frozen=True)
class ChanceLoss:
    """A group's loss in the sample, its expectation by chance alone, and whether that depends on few rows.

    Attributes
    ----------
    rows : float
        Number of rows, or their total weight.
    loss : float
        In the sample.
    expected : float
        Of random groups of this size.
    few_rows : bool
        Whether a few rows dominate ``expected``, so that it is not reliable.

    See Also
    --------
    chance_losses : Computes it for each group.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.inference import chance_losses
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> found = chance_losses(X, sensitive_features=sex, n_components=5)
    >>> round(found.by_group["female"].expected, 2)
    1.23
    """

    rows: float
    loss: float
    expected: float
    few_rows: bool


@dataclass(frozen=True, repr=False)
class ChanceLosses(TableResult):
    """Result of :func:`chance_losses`.

    Attributes
    ----------
    by_group : dict
        Label -> :class:`ChanceLoss` with ``rows``, ``loss``, ``expected`` and ``few_rows``.
    n_components : int

    See Also
    --------
    chance_losses : Computes them.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.inference import chance_losses
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> found = chance_losses(X, sensitive_features=sex, n_components=5)
    >>> sorted(found.by_group), found.n_components
    (['female', 'male'], 5)
    """

    by_group: dict[Any, ChanceLoss]
    n_components: int

    def _headings(self) -> list[str]:
        return ["group", "rows", "loss", "expected by chance"]

    def _rows(self) -> list[list[str]]:
        return [
            [
                label_text(label),
                f"{one.rows:,.0f}",
                number(one.loss),
                number(one.expected) + (" *" if one.few_rows else ""),
            ]
            for label, one in self.by_group.items()
        ]

    def _sentences(self) -> tuple[list[str], list[str]]:
        above = [
            f"Losses of ordinary PCA with {self.n_components} components, and those of random groups of these sizes"
        ]
        few = any(one.few_rows for one in self.by_group.values())
        return above, ["* rests on few rows; use loss_test, which permutes the labels"] if few else []

    def _records(self) -> list[dict[str, Any]]:
        return [{"group": label, **vars(one)} for label, one in self.by_group.items()]


def chance_losses(
    X: Any, *, sensitive_features: Any = None, n_components: int, sample_weight: Any = None
) -> ChanceLosses:
    """Expected losses of ordinary PCA if the groups were a random division of the rows, without resampling.

    The loss of a group compares the shared components with the group's own best ones, which are fitted to its own rows
    and overfit: the smaller the group, the larger a loss to expect from chance alone.

    Parameters
    ----------
    X : array-like, sparse matrix, or Dask array or data frame of shape (n_samples, n_features); or chunks
        Chunks as in :func:`loss_test`; kappa (see Notes) then comes from 40 random blocks of rows.
    sensitive_features : array-like
        The group of each row; left out when X is an iterable of chunks.
    n_components : int
    sample_weight : array-like of shape (n_samples,), optional
        Counts like repeated rows in the losses; a row with weight 2 is still a single observation.

    Returns
    -------
    ChanceLosses

    See Also
    --------
    loss_test : The exact test, which permutes the labels.

    Notes
    -----
    With pooled eigenpairs (lambda, u), scores ``y = U^T x`` and ``kappa_ij = mean of y_i^2 y_j^2``, the second moment
    of N_a rows drawn at random differs from the pooled one by noise of variance ``f kappa``,
    ``f = (N - N_a) / (N_a (N - 1))``, which drives the eigenvalues apart:
    ``d lambda_i / dt = sum_j kappa_ij / (lambda_i - lambda_j)`` for t from 0 to f. The expected loss is what the d
    leading eigenvalues gain. The flag ``few_rows`` is set if a handful of rows dominate that sum: then use
    :func:`loss_test` instead.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.inference import chance_losses
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> chance_losses(X, sensitive_features=sex, n_components=5)
    Losses of ordinary PCA with 5 components, and those of random groups of these sizes
    <BLANKLINE>
    group   rows   loss  expected by chance
    female   310   2.86                1.23
    male     690  0.327               0.273
    """
    source = as_source(X, sensitive_features, sample_weight)
    counts = row_counts(source)
    moments, noise = _noise(source, counts, n_components)
    losses = pca_losses(moments, noise.vectors[:, : noise.d])
    by_group = {}
    for label, count, loss in zip(moments.labels, moments.counts, losses, strict=True):
        size = counts[label]
        few = noise.rests_on_few_rows(source.map_reduce(Influence(noise, size), add_up), size)
        by_group[label] = ChanceLoss(float(count), float(loss), noise.expected_loss(size), few)
    return ChanceLosses(by_group, noise.d)


def _noise(source: RowSource, counts: dict[Any, int], n_components: int) -> tuple[GroupMoments, Noise]:
    """From the rows if they are in memory, otherwise from random blocks of rows."""
    d = check_n_components(n_components, source.n_features)
    if isinstance(source, MemorySource):
        moments = accumulate(source.X, source.groups, source.weights)
        return moments, Noise.from_rows(source.X, moments, d, source.weights)
    check_several_groups(counts, sum(counts.values()))
    cells = RandomCells(tuple(counts), (_BLOCKS,) * len(counts), 0)
    folds = FoldMoments.from_source(source, cells)
    return folds.whole, Noise.from_blocks(folds.by_fold, folds.whole, d)


def pca_losses(moments: GroupMoments, basis: np.ndarray) -> np.ndarray:
    """In-sample loss of each group under a basis."""
    matrices = moments.second_moments()
    return np.maximum(group_losses(matrices, basis, best_captured(matrices, basis.shape[1])), 0.0)


def pca_losses_by_dimension(moments: GroupMoments, dimensions: Sequence[int]) -> np.ndarray:
    """In-sample losses under ordinary PCA with several numbers of components: shape (n_dimensions, n_groups)."""
    matrices = moments.second_moments()
    basis = top_eigenpairs(moments.pooled_covariance(), max(dimensions))[1]
    own = np.array([np.linalg.eigvalsh(matrix)[::-1] for matrix in matrices])[:, : basis.shape[1]]
    shared = np.array([np.einsum("ij,ij->j", basis, matrix @ basis) for matrix in matrices])
    losses = np.cumsum(own - shared, axis=1).T[[d - 1 for d in dimensions]]
    return np.maximum(losses, 0.0)


@dataclass(frozen=True)
class Noise:
    """The noise in the second moments of random groups.

    Attributes
    ----------
    values, vectors : ndarray
        Pooled eigenvalues, descending, and eigenvectors.
    kappa : ndarray of shape (p, p)
        The variance, times the number of rows, of entry (i, j) of the second moment in the eigenbasis: the mean of
        ``y_i^2 y_j^2``, less the squared eigenvalue on the diagonal.
    mean : ndarray of shape (p,)
    n_rows : float
    d : int
        Number of components.
    """

    values: np.ndarray
    vectors: np.ndarray
    kappa: np.ndarray
    mean: np.ndarray
    n_rows: float
    d: int

    @classmethod
    def from_rows(cls, X: Any, moments: GroupMoments, d: int, weights: np.ndarray | None = None) -> Noise:
        """From fourth moments of the rows."""
        values, vectors = _pooled_eigenpairs(moments)
        n_rows = X.shape[0] if weights is None else int((weights > 0).sum())
        products = np.zeros((len(values), len(values)))
        for squares in _squared_scores(X, moments.pooled_mean, vectors, weights):
            products += squares.T @ squares
        kappa = products * (n_rows / moments.total_count**2)
        kappa.flat[:: len(values) + 1] -= values**2
        return cls(values, vectors, kappa, moments.pooled_mean, n_rows, d)

    @classmethod
    def from_blocks(cls, blocks: GroupMoments, moments: GroupMoments, d: int) -> Noise:
        """From random blocks of rows, each a group of ``blocks``."""
        values, vectors = _pooled_eigenpairs(moments)
        rotated = vectors.T @ blocks.second_moments(moments.pooled_mean) @ vectors - np.diag(values)
        kappa = np.tensordot(blocks.counts, rotated**2, axes=1) / (len(blocks.counts) - 1)
        return cls(values, vectors, kappa, moments.pooled_mean, moments.total_count, d)

    def expected_loss(self, size: float, n_rows: float | None = None) -> float:
        """Of a random group of ``size`` rows, of as many as this noise comes from or of ``n_rows``."""
        n_rows = self.n_rows if n_rows is None else n_rows
        return flow(self.values, self.kappa, max(n_rows - size, 0.0) / (size * (n_rows - 1.0)), self.d)

    def parts(self, X: Any, weights: np.ndarray | None, size: float) -> np.ndarray:
        """The contribution of each row to the expected loss of a random group of this size."""
        factors, d = saturated(self.values, self.kappa, self._factor(size), self.d), self.d
        found = [
            np.einsum("ri,ri->r", squares[:, :d] @ factors, squares[:, d:])
            for squares in _squared_scores(X, self.mean, self.vectors, weights)
        ]
        return np.concatenate(found)

    def rests_on_few_rows(self, sums: np.ndarray, size: float) -> bool:
        """Whether too few rows dominate; ``sums`` of the rows' parts and of their squares."""
        effective = sums[0] ** 2 / sums[1] if sums[1] > 0 else np.inf
        return bool(effective * min(size, self.n_rows - size) / self.n_rows < FEW_ROWS_LIMIT)

    def relative_variance(self, size: float, d: int) -> float:
        """Of what d components of ``size`` rows overfit: that of a sum of squares, ``2 sum q^2 / (sum q)^2``."""
        q = self.kappa[:d, d:] * saturated(self.values, self.kappa, 1.0 / size, d)
        return float(2.0 * (q**2).sum() / q.sum() ** 2) if q.sum() > 0 else 0.0

    def overfitting(self, size: float) -> tuple[np.ndarray, np.ndarray]:
        """By how much components of ``size`` rows overfit these rows, and by how much they fall short on others.

        For every number of components, of shape (p,). Both are equal to first order, but where eigenvalues are nearly
        equal the latter vanishes: any components are then as good as the best. So noise matrices are drawn and added to
        the eigenvalues, which are shrunk first, since their own noise has driven them apart (Ledoit and Wolf's share).
        """
        rng, values = np.random.default_rng(0), self._shrunk_values()
        deviations = np.sqrt(np.maximum(np.triu(self.kappa, 1), 0.0) / size)
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
        spread, noise = float(deviations @ deviations), float(self.kappa.sum()) / self.n_rows
        share = min(1.0, noise / spread) if spread > 0 else 1.0
        return self.values - share * deviations

    def _factor(self, size: float) -> float:
        return max(self.n_rows - size, 0.0) / (size * (self.n_rows - 1))


@dataclass(frozen=True)
class Influence:
    """Applied to a chunk: the contributions of its rows to the noise of random groups, to check whether a few dominate.

    At most 5,000 rows of a chunk are used, drawn at random.
    """

    noise: Noise
    size: float

    def __call__(self, number: int, X: Any, groups: Groups, weights: np.ndarray | None) -> np.ndarray:
        """Their sum and the sum of their squares, scaled to all rows of the chunk."""
        n = X.shape[0]
        if n > _INFLUENCE_ROWS:
            rows = np.sort(np.random.default_rng(number).choice(n, _INFLUENCE_ROWS, replace=False))
            X, weights = X[rows], None if weights is None else weights[rows]
        parts = self.noise.parts(X, weights, self.size)
        return np.array([parts.sum(), parts @ parts]) * (n / len(parts))


def add_up(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The sum of arrays."""
    return np.add.reduce(list(parts))


def _pooled_eigenpairs(moments: GroupMoments) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh(moments.pooled_covariance())
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1]


def _squared_scores(X: Any, mean: np.ndarray, vectors: np.ndarray, weights: np.ndarray | None) -> Iterator[np.ndarray]:
    """Squared scores of the rows, times their weights, block by block."""
    for start in range(0, X.shape[0], _BLOCK_ROWS):
        rows = X[start : start + _BLOCK_ROWS]
        rows = (rows.toarray() if sparse.issparse(rows) else rows) - mean
        squares = (rows @ vectors) ** 2
        if weights is not None:
            squares *= weights[start : start + _BLOCK_ROWS, None]
        yield squares


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
