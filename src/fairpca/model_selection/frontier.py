"""The exact trade-off between the groups' errors, and where the methods lie on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import brentq

from fairpca._validation import check_choice, check_n_components, check_number, check_several_groups
from fairpca.estimators import FairPCA, RobustFairPCA
from fairpca.joint_range import JointRange
from fairpca.linalg import Geodesic, threads_for, top_eigenpairs
from fairpca.metrics._components import fitted_encoder
from fairpca.moments import GroupMoments, group_moments
from fairpca.problems.evaluation import Evaluation
from fairpca.solvers.range.sweep import BoundaryPoint, trace_boundary

__all__ = ["Frontier", "FrontierPoint", "frontier", "frontier_of"]

#: Differences between errors below this share of the total variance are rounding.
_CLOSED = 1e-12
_PENALTIES = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0)


@dataclass(frozen=True)
class FrontierPoint:
    """One projection: its components, the errors of the groups, the total error and the largest gap.

    Attributes
    ----------
    errors : ndarray of shape (n_groups,)
        Error of each group.
    total_error : float
        Error of all rows.
    gap : float
        Largest difference between two groups' errors.
    components : ndarray of shape (n_components, n_features)
        Orthonormal rows.
    weights : ndarray of shape (n_groups,) or None
        Weights of the groups for which weighted PCA gives the components.

    See Also
    --------
    frontier : Computes such points.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.model_selection import frontier
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> curve = frontier(X, sensitive_features=sex, n_components=2, n_points=5)
    >>> curve.methods["FairPCA"].components.shape
    (2, 57)
    """

    errors: np.ndarray
    total_error: float
    gap: float
    components: np.ndarray
    weights: np.ndarray | None = None


@dataclass(frozen=True)
class Frontier:
    """The trade-off between groups for one number of components.

    Attributes
    ----------
    groups : tuple
        Labels, in the order of the errors.
    errors : ndarray of shape (n_points, n_groups)
        Two groups: the lower boundary of all pairs of errors, from the best for the first group to the best
        for the second. No projection has both errors smaller, and the line segments between neighbouring points
        are attainable up to the curvature between them. More groups: empty.
    weights : ndarray of shape (n_points, n_groups)
        Weights of the groups for which weighted PCA gives the point.
    trade_off : list of FrontierPoint
        The least total error for each gap, from the least total error overall (ordinary PCA, if errors are
        measured about the pooled mean) to the smallest gap. Two groups: exact. More groups: RobustFairPCA with
        radius zero along ``penalties``.
    methods : dict of str to FrontierPoint
        "PCA", "FairPCA" and "RobustFairPCA"; in an audit, the methods of its comparison.
    penalties : ndarray of shape (len(trade_off),)
        The penalty for which each point of ``trade_off`` is optimal with radius zero; the last one is infinite
        if the gap cannot be closed.

    See Also
    --------
    frontier : Computes it.
    fairpca.plotting.FrontierDisplay : Draws it.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.model_selection import frontier
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> curve = frontier(X, sensitive_features=sex, n_components=2, n_points=5)
    >>> curve.groups, bool((curve.gap[1:] < curve.gap[:-1]).all())
    (('female', 'male'), True)
    """

    groups: tuple[Any, ...]
    errors: np.ndarray
    weights: np.ndarray
    trade_off: list[FrontierPoint]
    methods: dict[str, FrontierPoint]
    penalties: np.ndarray = field(repr=False)

    @property
    def total_error(self) -> np.ndarray:
        """Total error along ``trade_off``, ascending."""
        return np.array([point.total_error for point in self.trade_off])

    @property
    def gap(self) -> np.ndarray:
        """Largest difference between errors along ``trade_off``, descending."""
        return np.array([point.gap for point in self.trade_off])


def frontier(
    X: Any,
    *,
    sensitive_features: Any = None,
    n_components: int = 2,
    radius: Any = 0.1,
    penalty: float = 1.0,
    center: str = "pooled",
    n_points: int = 50,
    penalties: Sequence[float] | None = None,
    sample_weight: Any = None,
) -> Frontier:
    """The exact frontier of the groups' errors, the curve of total error against gap, and the methods on it.

    With z_a the mean squared reconstruction error of group a, the pairs (z_1, z_2) of all projections of one
    rank form a convex set when there are two groups. Its boundary is traced by weighted PCAs: every point is
    exact.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features), or GroupMoments
    sensitive_features : array-like
        The group of each row; not needed if X is a GroupMoments.
    n_components : int, default=2
    radius, penalty
        Parameters of the RobustFairPCA that is located on the frontier.
    center : {"pooled", "group"}, default="pooled"
        The mean about which the groups' errors are measured.
    n_points : int, default=50
        Number of points on each curve for two groups, placed where it bends most.
    penalties : sequence of float, optional
        The path for three or more groups.
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    Frontier
        The curves and the methods on them.

    See Also
    --------
    fairpca.plotting.FrontierDisplay : Draws it.
    fairpca.RobustFairPCA : Moves along it with its penalty.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.model_selection import frontier
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> curve = frontier(X, sensitive_features=sex, n_components=3)
    >>> bool((curve.total_error >= curve.methods["PCA"].total_error - 1e-9).all())
    True
    >>> bool(curve.gap[-1] < curve.gap[0])
    True
    """
    moments = (
        X
        if isinstance(X, GroupMoments)
        else group_moments(X, sensitive_features=sensitive_features, sample_weight=sample_weight)
    )
    check_several_groups(moments.labels, moments.total_count)
    n_components = check_n_components(n_components, moments.n_features)
    matrices = moments.second_moments(check_choice("center", center, ("pooled", "group")))
    check_number("n_points", n_points, at_least=2, integer=True)
    study = _Study(moments, matrices, n_components, center)
    with threads_for(n_points * moments.n_features**3):
        grid = np.asarray(_PENALTIES if penalties is None else penalties, dtype=float)
        return study.frontier(study.methods(radius, penalty), n_points, grid)


def frontier_of(moments: GroupMoments, n_components: int, fitted: Mapping[str, Any], *, n_points: int) -> Frontier:
    """The frontier about the pooled mean, with already fitted estimators located on it, by name.

    With two groups nothing is fitted; with three or more, the path is a sequence of RobustFairPCA fits.
    """
    study = _Study(moments, moments.second_moments(), n_components, "pooled")
    with threads_for(n_points * moments.n_features**3):
        methods = {name: study.located(estimator) for name, estimator in fitted.items()}
        return study.frontier(methods, n_points, np.array(_PENALTIES))


class _Study:
    """The joint range of one data set, in units of its total variance."""

    def __init__(self, moments: GroupMoments, matrices: np.ndarray, dimension: int, center: str) -> None:
        self._moments, self._matrices, self._center = moments, matrices, center
        scale = float(moments.shares @ np.einsum("aii->a", matrices))
        self._scale = scale if scale > 0 else 1.0
        self._joint = JointRange(matrices / self._scale, dimension)
        self._totals = np.einsum("aii->a", self._joint.matrices)

    def point(
        self, basis: np.ndarray, weights: np.ndarray | None = None, encoder: np.ndarray | None = None
    ) -> FrontierPoint:
        errors = Evaluation(self._matrices, basis, encoder).errors
        return FrontierPoint(
            errors, float(self._moments.shares @ errors), float(np.ptp(errors)), basis.T.copy(), weights
        )

    def located(self, estimator: Any) -> FrontierPoint:
        weights = getattr(estimator, "group_weights_", None)
        return self.point(estimator.components_.T, weights, fitted_encoder(estimator))

    def frontier(self, methods: dict[str, FrontierPoint], n_points: int, penalties: np.ndarray) -> Frontier:
        """The curves, with these methods on them."""
        labels = self._moments.labels
        if len(labels) > 2:
            none = np.zeros((0, len(labels)))
            return Frontier(labels, none, none, self.path(penalties), methods, penalties)
        lower = self.boundary(np.array([1.0, 0.0]), np.array([0.0, 1.0]), n_points)
        trade_off, implied = self.trade_off(n_points)
        errors, weights = (np.array([getattr(point, name) for point in lower]) for name in ("errors", "weights"))
        return Frontier(labels, errors, weights, trade_off, methods, implied)

    def methods(self, radius: Any, penalty: float) -> dict[str, FrontierPoint]:
        d = self._joint.dimension
        pooled = self._moments.pooled_covariance()
        fair = FairPCA(d, center=self._center).fit_moments(self._moments)
        robust = RobustFairPCA(d, radius=radius, penalty=penalty, center=self._center)
        robust.fit_moments(self._moments)
        return {
            "PCA": self.point(top_eigenpairs(pooled, d)[1], self._moments.shares),
            "FairPCA": self.located(fair),
            "RobustFairPCA": self.located(robust),
        }

    def path(self, penalties: np.ndarray) -> list[FrontierPoint]:
        points = []
        for penalty in penalties:
            fitted = RobustFairPCA(self._joint.dimension, radius=0.0, penalty=penalty, center=self._center)
            fitted.fit_moments(self._moments)
            points.append(self.point(fitted.components_.T, fitted.group_weights_))
        return points

    def boundary(self, first: np.ndarray, last: np.ndarray, n_points: int) -> list[FrontierPoint]:
        traced = trace_boundary(self._joint, first, last, n_points)
        return [self.point(point.basis, point.weights / np.abs(point.weights).sum()) for point in traced]

    def trade_off(self, n_points: int) -> tuple[list[FrontierPoint], np.ndarray]:
        """Two groups: rotate the weights from the shares towards a larger penalty until the gap is closed."""
        shares = self._moments.shares
        start = self._joint.point(shares)
        sign = self._sign(start.captured)
        if sign == 0:
            return [self.point(start.basis, shares)], np.zeros(1)
        penalty = np.array([sign, -sign])
        last, closing = self._closing(shares, penalty, sign)
        end = shares + last * penalty if np.isfinite(last) else penalty
        traced = trace_boundary(self._joint, shares, end, n_points)
        # Where the gap is closed, the last point traced is the closing one up to rounding: it is added once, below.
        least = 0.0 if closing is None else _CLOSED
        kept = [point for point in traced if sign * self._difference(point.errors) > least]
        points = [self.point(point.basis, point.weights / np.abs(point.weights).sum()) for point in kept]
        implied = [_implied_penalty(point.weights, shares, sign) for point in kept]
        if closing is not None:
            points.append(self.point(closing, end / np.abs(end).sum()))
            implied.append(last)
        return points, np.array(implied)

    def _closing(self, shares: np.ndarray, penalty: np.ndarray, sign: float) -> tuple[float, np.ndarray | None]:
        """The penalty and the subspace that close the gap; infinity and None if none does."""

        def at(angle: float) -> BoundaryPoint:
            weights = np.cos(angle) * shares + np.sin(angle) * penalty
            point = self._joint.point(weights)
            return BoundaryPoint(weights, self._totals - point.captured, point.basis)

        def difference(angle: float) -> float:
            return sign * self._difference(at(angle).errors)

        limit = 0.5 * np.pi
        if difference(limit) >= 0:
            return np.inf, None
        angle = brentq(difference, 0.0, limit, xtol=1e-13, rtol=1e-14, disp=False)
        before, after = at(max(angle - 1e-12, 0.0)), at(min(angle + 1e-12, limit))
        return float(np.tan(angle)), self._equal_between(before, after, sign)

    def _equal_between(self, before: BoundaryPoint, after: BoundaryPoint, sign: float) -> np.ndarray:
        """Where eigenvalues tie, the errors jump: follow the geodesic to the point where they are equal."""
        path = Geodesic(before.basis, after.basis)
        return path.balanced(self._joint.matrices, lambda captured: sign * self._difference(self._totals - captured))

    def _difference(self, errors: np.ndarray) -> float:
        return float(errors[0] - errors[1])

    def _sign(self, captured: np.ndarray) -> float:
        return float(np.sign(self._difference(self._totals - captured)))


def _implied_penalty(weights: np.ndarray, shares: np.ndarray, sign: float) -> float:
    """The lambda for which shares + lambda (sign, -sign) points in the direction of the weights."""
    total = float(weights.sum())
    if total <= 1e-12 * float(np.abs(weights).sum()):
        return np.inf
    return max(sign * (float(weights[0]) / total - float(shares[0])), 0.0)
