"""The exact trade-off between the groups' errors, and where the methods lie on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import brentq
from sklearn.decomposition import PCA

from fairpca._validation import check_choice, check_n_components, check_number, check_several_groups
from fairpca.estimators import FairPCA, RobustFairPCA
from fairpca.inference._fitting import fit_to_moments
from fairpca.joint_range import JointRange, RangePoint
from fairpca.linalg import Geodesic, threads_for
from fairpca.metrics._components import fitted_encoder
from fairpca.moments import GroupMoments, group_moments
from fairpca.problems.balanced import best_captured
from fairpca.problems.evaluation import Evaluation
from fairpca.solvers.range.sweep import BoundaryPoint, trace_boundary

__all__ = ["Frontier", "FrontierPoint", "frontier"]

#: Differences between errors below this share of the total variance are rounding.
_CLOSED = 1e-12
#: The path for more than two groups.
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
        Largest difference between two groups' errors, or losses.
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
    >>> curve.methods["PCA"].components.shape
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
        radius zero along ``penalties``; empty for losses, which it does not compare.
    methods : dict of str to FrontierPoint
        PCA and the methods that balance what is compared, or those given.
    penalties : ndarray of shape (len(trade_off),)
        The penalty for which each point of ``trade_off`` is optimal with radius zero; the last one is infinite
        if the gap cannot be closed.
    own_errors : ndarray of shape (n_groups,)
        The error of each group with components of its own: what the losses leave out.
    of : {"error", "loss"}
        What ``gap`` compares.

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
    own_errors: np.ndarray = field(repr=False)
    of: str = "error"

    @property
    def total_error(self) -> np.ndarray:
        """Total error along ``trade_off``, ascending."""
        return np.array([point.total_error for point in self.trade_off])

    @property
    def gap(self) -> np.ndarray:
        """Largest difference between groups along ``trade_off``, descending."""
        return np.array([point.gap for point in self.trade_off])


def frontier(
    X: Any,
    *,
    sensitive_features: Any = None,
    n_components: int = 2,
    of: str = "error",
    methods: Mapping[str, Any] | None = None,
    center: str = "pooled",
    n_points: int = 50,
    penalties: Sequence[float] = _PENALTIES,
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
    of : {"error", "loss"}, default="error"
        What is compared between groups: errors, whose difference RobustFairPCA penalises, or losses, which FairPCA
        balances.
    methods : mapping from name to fitted estimator, optional
        Those to locate; default: PCA and the methods that balance what is compared, fitted to these rows: FairPCA for
        losses, FairPCA(criterion='error') and RobustFairPCA for errors.
    center : {"pooled", "group"}, default="pooled"
        The mean about which the groups' errors are measured.
    n_points : int, default=50
        Number of points on each curve for two groups, placed where it bends most.
    penalties : sequence of float, optional
        The path for three or more groups, of errors.
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
    check_choice("center", center, ("pooled", "group"))
    check_number("n_points", n_points, at_least=2, integer=True)
    study = _Study(moments, n_components, check_choice("of", of, ("error", "loss")), center)
    with threads_for(n_points * moments.n_features**3):
        if methods is None:
            name = "FairPCA" if of == "loss" else "FairPCA(criterion='error')"
            methods = {"PCA": PCA(n_components), name: FairPCA(n_components, criterion=of, center=center)}
            if of == "error":
                methods["RobustFairPCA"] = RobustFairPCA(n_components, center=center)
            methods = {name: fit_to_moments(one, moments) for name, one in methods.items()}
        located = {name: study.located(fitted) for name, fitted in methods.items()}
        return study.frontier(located, n_points, penalties)


class _Study:
    """The joint range of one data set, in units of its total variance."""

    def __init__(self, moments: GroupMoments, dimension: int, of: str, center: str = "pooled") -> None:
        self._moments, self._of, self._center = moments, of, center
        self._matrices = moments.second_moments(center)
        totals = np.einsum("aii->a", self._matrices)
        self._own = totals - best_captured(self._matrices, dimension)
        self._scale = float(moments.shares @ totals) or 1.0
        self._joint = JointRange(self._matrices / self._scale, dimension)
        self._reachable = self._joint.traces - (self._own / self._scale if of == "loss" else 0.0)

    def point(
        self, basis: np.ndarray, weights: np.ndarray | None = None, encoder: np.ndarray | None = None
    ) -> FrontierPoint:
        errors = Evaluation(self._matrices, basis, encoder).errors
        compared = errors - self._own if self._of == "loss" else errors
        total = float(self._moments.shares @ errors)
        return FrontierPoint(errors, total, float(np.ptp(compared)), basis.T.copy(), weights)

    def located(self, estimator: Any) -> FrontierPoint:
        weights = getattr(estimator, "group_weights_", None)
        return self.point(estimator.components_.T, weights, fitted_encoder(estimator))

    def frontier(self, methods: dict[str, FrontierPoint], n_points: int, penalties: Sequence[float]) -> Frontier:
        """The curves, with these methods on them."""
        labels = self._moments.labels
        if len(labels) > 2:
            none, known = np.zeros((0, len(labels))), np.array(penalties if self._of == "error" else (), dtype=float)
            fits = [RobustFairPCA(self._joint.dimension, radius=0.0, penalty=one, center=self._center) for one in known]
            path = [self.located(one.fit_moments(self._moments)) for one in fits]
            return Frontier(labels, none, none, path, methods, known, self._own, self._of)
        first, second = np.eye(2)
        lower = [self._traced(point) for point in trace_boundary(self._joint, first, second, n_points)]
        trade_off, implied = self._trade_off(n_points)
        errors, weights = (np.array([getattr(point, name) for point in lower]) for name in ("errors", "weights"))
        return Frontier(labels, errors, weights, trade_off, methods, implied, self._own, self._of)

    def _traced(self, point: BoundaryPoint) -> FrontierPoint:
        return self.point(point.basis, point.weights / np.abs(point.weights).sum())

    def _trade_off(self, n_points: int) -> tuple[list[FrontierPoint], np.ndarray]:
        """Two groups: rotate the weights from the shares towards a larger penalty until the gap is closed."""
        shares = self._moments.shares
        start = self._joint.point(shares)
        sign = float(np.sign(self._difference(start.captured)))
        if sign == 0:
            return [self.point(start.basis, shares)], np.zeros(1)
        penalty = np.array([sign, -sign])
        last, closing = self._closing(shares, penalty, sign)
        end = shares + last * penalty if np.isfinite(last) else penalty
        # Where the gap is closed, the last point traced is the closing one up to rounding: it is added once, below.
        least = 0.0 if closing is None else _CLOSED
        kept = [
            point
            for point in trace_boundary(self._joint, shares, end, n_points)
            if sign * self._difference(self._joint.traces - point.errors) > least
        ]
        points = [self._traced(point) for point in kept]
        implied = [_implied_penalty(point.weights, shares, sign) for point in kept]
        if closing is not None:
            points.append(self.point(closing, end / np.abs(end).sum()))
            implied.append(last)
        return points, np.array(implied)

    def _closing(self, shares: np.ndarray, penalty: np.ndarray, sign: float) -> tuple[float, np.ndarray | None]:
        """The penalty and the subspace that close the gap; infinity and None if none does."""

        def at(angle: float) -> RangePoint:
            return self._joint.point(np.cos(angle) * shares + np.sin(angle) * penalty)

        def difference(angle: float) -> float:
            return sign * self._difference(at(angle).captured)

        limit = 0.5 * np.pi
        if difference(limit) >= 0:
            return np.inf, None
        angle = brentq(difference, 0.0, limit, xtol=1e-13, rtol=1e-14, disp=False)
        # Where eigenvalues tie, the errors jump: follow the geodesic to the point where they are equal.
        path = Geodesic(at(max(angle - 1e-12, 0.0)).basis, at(min(angle + 1e-12, limit)).basis)
        return float(np.tan(angle)), path.balanced(self._joint.matrices, self._difference)

    def _difference(self, captured: np.ndarray) -> float:
        """How much more error (or loss) the first group has than the second, in units of the total variance."""
        return float(np.subtract(*(self._reachable - captured)))


def _implied_penalty(weights: np.ndarray, shares: np.ndarray, sign: float) -> float:
    """The lambda for which shares + lambda (sign, -sign) points in the direction of the weights."""
    total = float(weights.sum())
    if total <= 1e-12 * float(np.abs(weights).sum()):
        return np.inf
    return max(sign * (float(weights[0]) / total - float(shares[0])), 0.0)
