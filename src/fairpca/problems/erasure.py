"""Least-squares concept erasure (Belrose et al. 2023): rows changed as little as possible so that no linear function
of them predicts the group.

With S the pooled covariance, mu the pooled mean, Z the indicators of the groups (and continuous sensitive features),
W the pseudo-inverse of S^(1/2) and P the orthogonal projection on the column space of ``W cov(x, Z)``, the map

``r(x) = x - W^+ P W (x - mu)``

has the least ``E ||r(x) - x||^2`` among all affine maps with ``cov(r(x), Z) = 0``. The columns of cov(x, Z) span the
differences D between the group means, so that ``W^+ P W = D (D^T S^+ D)^-1 D^T S^+``: an oblique projection onto the
span of D, of which group means and the pooled covariance are all that is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairpca.linalg import orthonormalise
from fairpca.moments import Reduction
from fairpca.problems.parity import mean_differences

__all__ = ["Erasure", "captured_form", "captured_variances", "least_squares_erasure", "linear_errors"]

#: Operations between a row and a covariance whose rounding matters even for few rows.
_ROUNDED_OPERATIONS = 16
#: Roundings, next to the size of a feature, in the difference between two group means and in the rows behind them.
_ROUNDED_MEANS = 4


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

    def transpose(self, vectors: np.ndarray) -> np.ndarray:
        """``A^T V`` for the matrix ``A = I - D C^T`` of the map: ``V^T r(x) = (A^T V)^T x``.

        In exact arithmetic the result is orthogonal to D; the last step makes it so up to rounding.
        """
        mapped = vectors - self.coefficients @ (self.directions.T @ vectors)
        return mapped - self.directions @ (self.directions.T @ mapped)

    def covariance(self, covariance: np.ndarray) -> np.ndarray:
        """``A S A^T``: the covariance of the erased rows."""
        image = covariance @ self.coefficients
        mixed = self.directions @ image.T
        inner = self.coefficients.T @ image
        return covariance - mixed - mixed.T + self.directions @ inner @ self.directions.T


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


def linear_errors(matrices: np.ndarray, basis: np.ndarray, encoder: np.ndarray | None = None) -> np.ndarray:
    """The mean squared distance of each group's rows from their reconstruction ``V T^T x``."""
    return np.maximum(np.einsum("aii->a", matrices) - captured_variances(matrices, basis, encoder), 0.0)


def captured_form(basis: np.ndarray, encoder: np.ndarray | None = None) -> np.ndarray:
    """The matrix F with ``<M_a, F>`` = :func:`captured_variances`: ``V V^T`` for an orthogonal projection."""
    form = basis @ basis.T
    if encoder is None:
        return form
    oblique = basis - encoder
    return form - oblique @ oblique.T


def least_squares_erasure(reduction: Reduction) -> Erasure:
    """The erasure for these moments; without any difference between the groups, nothing is removed."""
    directions = mean_differences(reduction)
    if not directions.size:
        return Erasure(directions, directions)
    moments = reduction.moments
    steps = _ROUNDED_OPERATIONS + np.sqrt(moments.total_count)
    return Erasure(
        directions,
        _coefficients(
            moments.pooled_covariance(),
            directions,
            np.abs(moments.means).max(axis=0),
            np.finfo(float).eps * steps,
        ),
    )


def _coefficients(covariance: np.ndarray, directions: np.ndarray, sizes: np.ndarray, rounding: float) -> np.ndarray:
    """``S^+ D (D^T S^+ D)^-1``, from the eigenvectors of the correlation matrix.

    Features in different units make S badly scaled, and an eigenvalue of it that is small only because of its unit
    must not be taken for zero. Entries of the correlation matrix have rounding errors of ``rounding``, so its
    eigenvalues have errors of at most p times that. Rows and group means were rounded next to ``sizes``, which adds
    variance of its own to features that vary little far from zero. On the span of the rows any generalised inverse
    gives the same map; the last step restores the one that leaves directions in which the rows do not vary as they are.
    """
    spreads = np.sqrt(np.diag(covariance))
    varies = spreads > rounding * sizes
    scales = spreads[varies]
    values, vectors = np.linalg.eigh(covariance[np.ix_(varies, varies)] / np.outer(scales, scales))
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
