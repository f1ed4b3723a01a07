"""Moment parity: equal means of the projected groups and, traded off against variance, equal covariances.

With S the pooled covariance, mu_a and Sigma_a the mean and covariance of group a (about its own mean) and V
an orthonormal basis with d columns, the FPCA of Olfat and Aswani (2019) at rank d is

``max <S, V V^T> - mu max_ab ||V^T (Sigma_a - Sigma_b) V||_2``  subject to  ``||V^T (mu_a - mu_b)|| <= delta``

for every pair of groups. Both the penalty and the limit apply to the *worst* pair; with two groups there is only
one pair, and this is the problem of the paper.

Without the penalty and with delta = 0 the solution is ordinary PCA in the null space of the mean differences
(Kleindessner et al. 2023). With delta > 0 it depends on V only through ``<S, V V^T>`` and the
``||V^T (mu_a - mu_b)||^2``, so it is a problem on a joint range, and for two groups it is solved exactly.

A continuous sensitive feature z adds the limit ``||V^T cov(x, z)|| / sd(z) <= delta``: with delta = 0 the scores are
uncorrelated with it. For an attribute of two values, cov(x, z) is proportional to the difference of the two means.
"""

from __future__ import annotations

import copy
from typing import Self

import numpy as np

from fairpca.joint_range import Minimax
from fairpca.linalg import add_outer, orthonormalise, top_eigenpairs
from fairpca.moments import AttributeMoments, GroupMoments
from fairpca.moments._group_moments import Reduction


def mean_differences(moments: Reduction, rounding: np.ndarray | float = 0.0) -> np.ndarray:
    """Orthonormal basis, of shape (p, r), of the span of all differences between group means.

    With continuous sensitive features, the span includes their covariances with the features. Differences within the
    rounding error of the means are ignored: removing such a direction would cost variance and gain nothing.
    ``rounding``, one value per feature, is the rounding error of features that were themselves computed; it is added
    to that of the sums.
    """
    coordinates = moments.coordinates
    differences = (coordinates.means - coordinates.means[:1])[1:]
    if isinstance(moments, AttributeMoments):
        differences = np.concatenate([differences, moments.slopes() / moments.slope_rounding()[:, None]])
    return _significant_span(differences.T, coordinates.mean_rounding() + rounding)


def _significant_span(differences: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Orthonormal basis of the columns, without combinations of them that are below ``level`` in every feature."""
    n_features = len(differences)
    level = np.broadcast_to(np.where(level > 0, level, 1.0), n_features)
    # In units of the rounding error, a difference that is only noise has entries below 1.
    _, sizes, combinations = np.linalg.svd(differences / level[:, None], full_matrices=False)
    kept = differences @ combinations[sizes > np.sqrt(n_features)].T
    return orthonormalise(kept / np.maximum(np.linalg.norm(kept, axis=0), np.finfo(float).tiny))


def null_space(moments: Reduction, dimension: int) -> np.ndarray:
    """Orthonormal basis of the directions along which all group means are equal, at least ``dimension`` of them.

    With continuous sensitive features, the directions are uncorrelated with them, too.
    """
    differences = mean_differences(moments)
    check_available(differences, dimension)
    return np.linalg.qr(differences, mode="complete")[0][:, differences.shape[1] :]


def mean_parity_basis(moments: GroupMoments, dimension: int, rounding: np.ndarray | float = 0.0) -> np.ndarray:
    """The d directions of largest pooled variance along which all group means are equal.

    Ordinary PCA inside the null space of the mean differences (Kleindessner et al. 2023, in closed form).
    """
    differences = mean_differences(moments, rounding)
    check_available(differences, dimension)
    basis = top_eigenpairs(without_directions(moments.pooled_covariance(), differences), dimension)[1]
    return orthonormalise(basis - differences @ (differences.T @ basis))


def without_directions(covariance: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """The covariance, overwritten, with negative eigenvalues for the ``directions`` and none of their variance."""
    image = covariance @ directions
    # The eigenvalues of a covariance are not negative; those of the excluded directions are made negative.
    shift = np.trace(covariance) * np.eye(directions.shape[1]) - directions.T @ image
    left = np.hstack([directions, image, directions @ shift])
    return add_outer(covariance, -left, np.hstack([image, directions, directions]))


def check_available(
    differences: np.ndarray, dimension: int, remedy: str = "lower n_components or allow a positive mean_tolerance"
) -> None:
    """Raise if fewer than ``dimension`` directions are orthogonal to all differences."""
    n_features, rank = differences.shape
    if dimension > n_features - rank:
        raise ValueError(
            f"n_components={dimension}, but only {n_features - rank} directions of the {n_features} feature(s) have "
            f"equal group means (and are uncorrelated with continuous sensitive features, if any); {remedy}."
        )


def pair_differences(values: np.ndarray) -> np.ndarray:
    """``values_a - values_b`` for all pairs a < b, along the first axis."""
    first, second = np.triu_indices(len(values), 1)
    return values[first] - values[second]


def mean_gaps(moments: Reduction, basis: np.ndarray) -> np.ndarray:
    """``||V^T (mu_a - mu_b)||`` for each pair of groups."""
    return np.linalg.norm(pair_differences(moments.means) @ basis, axis=1)


def covariance_gaps(moments: Reduction, basis: np.ndarray) -> np.ndarray:
    """``||V^T (Sigma_a - Sigma_b) V||_2`` for each pair of groups."""
    return np.abs(np.linalg.eigvalsh(pair_differences(moments.forms(basis, "group")))).max(axis=1)


def mean_penalty(
    covariance: np.ndarray, directions: np.ndarray, tolerance: float, penalty: float
) -> tuple[np.ndarray, Minimax]:
    """Mean parity up to a tolerance as a minimax problem on a joint range.

    ``-<S, P> + K max(0, max_j <f_j f_j^T, P> - delta^2)`` is the largest of ``-<S, P>`` and of
    ``-<S - K f_j f_j^T, P> - K delta^2`` over j. The penalty is exact once K exceeds the sum of the multipliers. The
    multipliers are K times the dual weights of the terms j, so K is large enough if the first term has positive weight.
    """
    terms = covariance - penalty * np.einsum("ja,jb->jab", directions, directions)
    offsets = np.full(len(directions), -penalty * tolerance**2)
    return np.concatenate([covariance[None], terms]), Minimax(np.append(0.0, offsets))


def covariance_bound(
    covariance: np.ndarray, differences: np.ndarray, penalty: float, dimension: int
) -> tuple[np.ndarray, Minimax]:
    """A problem on a joint range whose optimum is a lower bound for the penalised problem; equal to it for d = 1.

    The largest of d absolute eigenvalues is at least the absolute value of their mean, ``|<Q, P>| / d``, so
    ``-<S, P> + mu ||V^T Q V||_2`` is at least the larger of ``-<S -+ (mu / d) Q, P>``.
    """
    shifts = (penalty / dimension) * differences
    matrices = np.concatenate([covariance - shifts, covariance + shifts])
    return matrices, Minimax(np.zeros(len(matrices)))


def parity_problem(
    reduction: Reduction, dimension: int, *, penalty: float, tolerance: float
) -> tuple[MomentParity, np.ndarray]:
    """The problem for these moments, and the frame in whose coordinates it is stated.

    With tolerance 0 the frame spans the null space of the mean differences, where no limits are needed.
    """
    moments = reduction.moments
    several = len(moments.labels) > 1
    span = mean_differences(reduction)
    limited = pair_differences(moments.means)
    if isinstance(reduction, AttributeMoments):
        limited = np.concatenate([limited, reduction.slopes()])
    problem = MomentParity(
        moments.pooled_covariance(),
        moments.second_moments("group"),
        limited @ span @ span.T if span.size else np.zeros((0, moments.n_features)),
        penalty=penalty if several else 0.0,
        tolerance=tolerance,
    )
    if tolerance > 0 or not span.size:
        return problem, np.eye(moments.n_features)
    frame = null_space(reduction, dimension)
    problem = problem.restrict(frame)
    problem.directions = problem.directions[:0]
    return problem, frame


class MomentParity:
    """The objective ``-<S, V V^T> + mu max_ab ||V^T (Sigma_a - Sigma_b) V||_2`` and its smooth approximations.

    Parameters
    ----------
    covariance : ndarray of shape (p, p)
        S.
    group_covariances : ndarray of shape (k, p, p)
        The Sigma_a.
    directions : ndarray of shape (n_limits, p)
        The mean differences (and slopes on attributes) f_j subject to ``||V^T f_j|| <= tolerance``; none where that
        holds anyway.
    penalty : float
        mu, without units: the variance given up per unit of covariance difference.
    tolerance : float
        delta, in the units of the data.
    """

    def __init__(
        self,
        covariance: np.ndarray,
        group_covariances: np.ndarray,
        directions: np.ndarray,
        *,
        penalty: float,
        tolerance: float,
    ) -> None:
        self.covariance, self.group_covariances = covariance, group_covariances
        self.directions = directions
        self.penalty = penalty
        self.tolerance = tolerance
        self._first, self._second = np.triu_indices(len(group_covariances), 1)

    def rescale(self, factor: float) -> Self:
        """The problem for data divided by ``sqrt(factor)``; values and covariance gaps are divided by ``factor``."""
        scaled = copy.copy(self)
        scaled.covariance = self.covariance / factor
        scaled.group_covariances = self.group_covariances / factor
        scaled.directions = self.directions / np.sqrt(factor)
        scaled.tolerance = self.tolerance / np.sqrt(factor)
        return scaled

    def restrict(self, columns: np.ndarray) -> Self:
        """The same problem for subspaces of span(columns), in the coordinates of those orthonormal columns."""
        restricted = copy.copy(self)
        restricted.covariance = columns.T @ self.covariance @ columns
        restricted.group_covariances = columns.T @ (self.group_covariances @ columns)
        restricted.directions = self.directions @ columns
        return restricted

    def differences(self) -> np.ndarray:
        """``Sigma_a - Sigma_b`` for all pairs, of shape (n_pairs, p, p)."""
        return pair_differences(self.group_covariances)

    def largest_difference(self, basis: np.ndarray) -> np.ndarray:
        """``Sigma_a - Sigma_b`` of the pair whose projected covariances differ most, of shape (p, p)."""
        gaps = np.abs(np.linalg.eigvalsh(pair_differences(self._project(basis)[0]))).max(axis=1)
        pair = int(np.argmax(gaps))
        return self.group_covariances[self._first[pair]] - self.group_covariances[self._second[pair]]

    def smoothing_error(self, basis: np.ndarray) -> float:
        """The smooth approximation exceeds the value by at most this times the temperature."""
        return float(self.penalty * np.log(2 * basis.shape[1] * len(self._first)))

    def spread(self, basis: np.ndarray) -> float:
        return self._gap(self._project(basis)[0])

    def value(self, basis: np.ndarray) -> float:
        captured = np.einsum("pi,pi->", basis, self.covariance @ basis)
        return float(-captured + self.penalty * self._gap(self._project(basis)[0]))

    def smoothed(self, basis: np.ndarray, temperature: float) -> tuple[float, np.ndarray]:
        """Value and gradient with the largest eigenvalue replaced by ``T log sum exp(eigenvalues / T)``."""
        projected, images = self._project(basis)
        values, vectors = np.linalg.eigh(pair_differences(projected))
        exponents = np.stack([values, -values]) / temperature
        top = exponents.max()
        weights = np.exp(exponents - top)
        total = weights.sum()
        signed = (weights[0] - weights[1]) / total
        pairs = (vectors * signed[:, None, :]) @ vectors.transpose(0, 2, 1)
        groups = np.zeros_like(projected)
        np.add.at(groups, self._first, pairs)
        np.subtract.at(groups, self._second, pairs)
        image = self.covariance @ basis
        gradient = -2 * image + 2 * self.penalty * (images @ groups).sum(axis=0)
        gap = temperature * (top + np.log(total))
        return float(-np.einsum("pi,pi->", basis, image) + self.penalty * gap), gradient

    @property
    def limit_unit(self) -> float:
        """``2 delta max ||f||``, which scales the gradients of the limits to about 1 where the limits are active."""
        return 2 * self.tolerance * float(np.linalg.norm(self.directions, axis=1).max(initial=self.tolerance))

    def limits(self, basis: np.ndarray) -> np.ndarray:
        """Not positive iff ``||V^T f_j|| <= delta``; near that limit about ``(||V^T f_j|| - delta) / max ||f||``."""
        squares = ((self.directions @ basis) ** 2).sum(axis=1)
        return (squares - self.tolerance**2) / self.limit_unit

    def limits_gradient(self, basis: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Gradient of ``sum_j weights_j limits_j``."""
        weights = 2 * weights / self.limit_unit
        return self.directions.T @ (weights[:, None] * (self.directions @ basis))

    @staticmethod
    def _gap(projected: np.ndarray) -> float:
        return float(np.abs(np.linalg.eigvalsh(pair_differences(projected))).max(initial=0.0))

    def _project(self, basis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``V^T Sigma_a V`` for all groups, and the images ``Sigma_a V``."""
        images = self.group_covariances @ basis
        return basis.T @ images, images
