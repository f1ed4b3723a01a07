"""Least-squares concept erasure (Belrose et al. 2023): rows changed as little as possible so that no linear function
of them predicts the group.

With S the pooled covariance, mu the pooled mean, Z the indicators of the groups (and continuous sensitive features),
W the pseudo-inverse of S^(1/2) and P the orthogonal projection on the column space of ``W cov(x, Z)``, the map

``r(x) = x - W^+ P W (x - mu)``

has the least ``E ||r(x) - x||^2`` among all affine maps with ``cov(r(x), Z) = 0``. The columns of cov(x, Z) span the
differences D between the group means, so that ``W^+ P W = D (D^T S^+ D)^-1 D^T S^+``: an oblique projection onto the
span of D, of which group means and the pooled covariance are all that is needed.

To keep the covariance with a label y as well (SPLINCE, Holstege et al. 2025), let the columns of K span cov(x, y) and
N = [D, K]. The least change with ``cov(r(x), Z) = 0`` and ``cov(r(x), y) = cov(x, y)`` subtracts ``D C^T (x - mu)``
where C holds the first columns of ``S^+ N (N^T S^+ N)^-1``, so that ``C^T D = I`` and ``C^T K = 0``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse

from fairpca.linalg import add_outer, orthonormalise
from fairpca.moments._factors import GroupFactors
from fairpca.moments._group_moments import Reduction
from fairpca.problems.parity import mean_differences

#: Operations between a row and a covariance whose rounding matters even for few rows.
_ROUNDED_OPERATIONS = 16
#: Roundings, next to the size of a feature, in the difference between two group means and in the rows behind them.
_ROUNDED_MEANS = 4
#: From this many features on, a factorisation is tried before the eigenvectors, which take twenty times as long; it is
#: used if no eigenvalue is below this multiple of its rounding error.
_FACTORISED_SIZE, _CLEAR_OF_ROUNDING = 500, 1e3
#: How many numbers of the rows are erased at a time.
_BLOCK_NUMBERS = 100_000
#: Accuracy and largest number of steps of conjugate gradients.
_SOLVED, _MOST_STEPS = 1e-8, 1000


@dataclass(frozen=True)
class Erasure:
    """The map ``r(x) = x - D C^T (x - mu)``.

    Attributes
    ----------
    directions : ndarray of shape (p, r)
        D: an orthonormal basis of what is subtracted, the span of the differences between the groups.
    coefficients : ndarray of shape (p, r)
        C, with ``C^T D = I``: how much of each direction a row is predicted to owe to its group.
    """

    directions: np.ndarray
    coefficients: np.ndarray

    @property
    def norm(self) -> float:
        """The largest factor by which the map lengthens a difference of rows: ``||I - D C^T||_2``."""
        p, r = self.directions.shape
        return float(np.linalg.norm(self.coefficients, 2)) if 0 < r < p else float(r == 0)

    def distortion(self, covariance: np.ndarray) -> float:
        """The mean squared change of the rows as a share of their variance: ``tr(C^T S C) / tr(S)``."""
        change = np.einsum("pi,pi->", self.coefficients, covariance @ self.coefficients)
        return float(change / max(np.trace(covariance), np.finfo(float).tiny))

    def of_rows(self, rows: Any, mean: np.ndarray) -> np.ndarray:
        """``r(x)`` as dense rows, in the precision of the given ones."""
        directions, coefficients, mean = (
            part.astype(rows.dtype, copy=False) for part in (self.directions, self.coefficients, mean)
        )
        erased = np.empty(rows.shape, rows.dtype)
        step = max(_BLOCK_NUMBERS // rows.shape[1], 1)
        for start in range(0, len(erased), step):  # parts that stay in the cache
            part, out = rows[start : start + step], erased[start : start + step]
            part = part.toarray() if sparse.issparse(part) else part
            amounts = np.subtract(part, mean, out=out) @ coefficients
            np.subtract(part, np.matmul(amounts, directions.T, out=out), out=out)
        return erased

    def transpose(self, vectors: np.ndarray) -> np.ndarray:
        """``A^T V`` for the matrix ``A = I - D C^T`` of the map: ``V^T r(x) = (A^T V)^T x``.

        In exact arithmetic the result is orthogonal to D; the last step makes it so up to rounding.
        """
        mapped = vectors - self.coefficients @ (self.directions.T @ vectors)
        return mapped - self.directions @ (self.directions.T @ mapped)

    def apply(self, vectors: np.ndarray) -> np.ndarray:
        """``A V``."""
        return vectors - self.directions @ (self.coefficients.T @ vectors)

    def covariance(self, covariance: np.ndarray) -> np.ndarray:
        """``A S A^T``: the covariance of the erased rows, which overwrites S."""
        image = covariance @ self.coefficients
        inner = self.coefficients.T @ image
        left = np.hstack([self.directions, image - self.directions @ inner])
        return add_outer(covariance, -left, np.hstack([image, self.directions]))


def least_squares_erasure(reduction: Reduction, kept: Reduction | None = None) -> Erasure:
    """The erasure for these moments; without any difference between the groups, nothing is removed.

    With ``kept``, moments of the same features, it leaves their covariances with the groups or attributes of ``kept``
    as they are.
    """
    directions = mean_differences(reduction)
    if not directions.size:
        return Erasure(directions, directions)
    if isinstance(reduction, GroupFactors):
        return Erasure(directions, _coefficients_by_products(reduction, directions))
    moments = reduction.moments
    steps = _ROUNDED_OPERATIONS + np.sqrt(moments.total_count)
    covariance, sizes = moments.pooled_covariance(), np.abs(moments.means).max(axis=0)
    rounding = np.finfo(float).eps * steps
    if kept is None:
        return Erasure(directions, _coefficients(covariance, directions, sizes, rounding))
    spanned = np.hstack([directions, mean_differences(kept)])
    try:
        coefficients = _coefficients(covariance, spanned, sizes, rounding)
    except np.linalg.LinAlgError:  # of two directions that are the same
        coefficients = np.zeros_like(spanned)
    erasure = Erasure(directions, coefficients[:, : directions.shape[1]])
    wrong = np.abs(coefficients.T @ spanned - np.eye(spanned.shape[1])).max()
    # To replace every row by the mean would be a smaller change, and erase as well.
    if not (wrong < _SOLVED and erasure.distortion(covariance) < 1):
        _refuse(erasure, covariance, coefficients, wrong < _SOLVED)
    return erasure


def _refuse(erasure: Erasure, covariance: np.ndarray, coefficients: np.ndarray, exists: bool) -> None:
    """Raise an error that says how close to each other the directions to be erased and those to be kept are."""
    values, vectors = np.linalg.eigh(coefficients.T @ covariance @ coefficients)
    root = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
    r = erasure.directions.shape[1]
    closest = np.cos(linalg.subspace_angles(root[:, :r], root[:, r:]).min()) if root.any() else 1.0
    price = "no map does both"
    if exists:
        price = (
            f"it would change rows by {erasure.distortion(covariance):.3g} of their variance; norm {erasure.norm:.3g}"
        )
    raise ValueError(
        "preserve: what predicts the groups and what predicts y can hardly be told apart. Their largest canonical "
        f"correlation is {closest:.6f} (1: the same), with {r} dimensions to be erased and {root.shape[1] - r} to be "
        f"kept of {len(covariance)} ({price}). Use preserve=None, fewer classes, or a label less tied to the groups."
    )


def _coefficients_by_products(reduction: GroupFactors, directions: np.ndarray) -> np.ndarray:
    """The same by block conjugate gradients on the correlation matrix (Dubrulle 2001).

    The map's error enters the distance between rows and erased rows by its square only.
    """
    spreads = np.sqrt(reduction.pooled_variances())
    scales = np.where(spreads > 0, spreads, 1.0)[:, None]
    products, shares = reduction.second_moments(), reduction.shares
    solution, (frame, sizes) = np.zeros_like(directions), np.linalg.qr(directions / scales)
    ahead, wanted = frame, _SOLVED * np.linalg.norm(sizes, axis=0)
    for _ in range(_MOST_STEPS):
        image = products.combined(shares, ahead / scales) / scales
        step = np.linalg.pinv(ahead.T @ image, hermitian=True)
        solution += ahead @ (step @ sizes)
        frame, turn = np.linalg.qr(frame - image @ step)
        ahead, sizes = frame + ahead @ turn.T, turn @ sizes
        if (np.linalg.norm(sizes, axis=0) <= wanted).all():
            break
    solution /= scales
    return solution @ np.linalg.inv(directions.T @ solution)


def _coefficients(covariance: np.ndarray, directions: np.ndarray, sizes: np.ndarray, rounding: float) -> np.ndarray:
    """``S^+ D (D^T S^+ D)^-1``, from the eigenvectors of the correlation matrix.

    Features in different units make S badly scaled, and an eigenvalue of it that is small only because of its unit
    must not be taken for zero. Entries of the correlation matrix have rounding errors of ``rounding``, so its
    eigenvalues have errors of at most p times that. Rows and group means were rounded next to ``sizes``, which adds
    variance of its own to features that vary little far from zero. On the span of the rows any generalised inverse
    gives the same map; the last step restores the one that leaves directions in which the rows do not vary as they are.
    """
    spreads = np.sqrt(np.maximum(np.diag(covariance), 0.0))  # rounding may make a variance negative
    varies = spreads > rounding * sizes
    scales = spreads[varies]
    correlation = covariance[np.ix_(varies, varies)] / np.outer(scales, scales)
    if (solved := _well_conditioned_solution(correlation, directions[varies] / scales[:, None], rounding)) is not None:
        coefficients = np.zeros_like(directions)
        coefficients[varies] = solved / scales[:, None]
        return coefficients @ np.linalg.inv(directions.T @ coefficients)
    values, vectors = np.linalg.eigh(correlation)
    rounded = (_ROUNDED_MEANS * np.finfo(float).eps * sizes[varies] / scales) ** 2
    kept = values > len(values) * rounding + rounded @ vectors**2
    whitening = vectors[:, kept] / np.sqrt(values[kept])
    whitened = whitening.T @ (directions[varies] / scales[:, None])
    varying = (whitening @ np.linalg.pinv(whitened).T) / scales[:, None]
    if not kept.all():
        still = orthonormalise(vectors[:, ~kept] / scales[:, None])
        varying -= still @ (still.T @ varying)
    coefficients = np.zeros_like(directions)
    coefficients[varies] = varying
    return coefficients


def _well_conditioned_solution(correlation: np.ndarray, right: np.ndarray, rounding: float) -> np.ndarray | None:
    """``correlation^-1 right`` by a factorisation, or None if some eigenvalue may be near its rounding error."""
    if len(correlation) < _FACTORISED_SIZE:
        return None
    norm = float(np.abs(correlation).sum(axis=0).max())
    factor, failed = linalg.lapack.dpotrf(correlation, lower=1, clean=0)
    if failed:
        return None
    least = linalg.lapack.dpocon(factor, norm, uplo="L")[0] * norm  # no eigenvalue is much smaller
    if least <= _CLEAR_OF_ROUNDING * len(correlation) * rounding:
        return None
    return linalg.lapack.dpotrs(factor, right, lower=1)[0]
