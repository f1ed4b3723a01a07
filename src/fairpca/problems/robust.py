"""Distributionally robust balance: total error plus a penalty on the largest gap (Vu et al. 2022).

With z_a = tr M_a - <M_a, P> the error of group a, shares p_a, a penalty lambda and radii eps_a (in squared units
of the data), the worst case over all distributions whose group moments lie within eps_a of the observed ones is

    F(z) = max_{a != a'} sum_b T_b(u_b),    u_b = p_b + lambda [b = a] - lambda [b = a'],

    T_b(u) = u (sqrt(z_b) + sqrt(eps_b))^2            if u >= 0,
    T_b(u) = u max(sqrt(z_b) - sqrt(eps_b), 0)^2      if u < 0.

This covers all three cases of Proposition 3.3, so no condition on lambda is needed. Every piece is concave in z.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

#: An error below this share of the group's total is rounding error: under a square root, 1e-16 would become 1e-8.
_ROUNDING = 1e-14
_CONE_MARGIN = 0.01
#: Slopes are evaluated at ``sqrt(z_a)`` of at least this share of ``sqrt(eps_a)``, where they are finite.
_LEAST_ROOT = 1e-5


class RobustGap:
    """The objective F(z) above.

    Parameters
    ----------
    shares, radii : ndarray of shape (k,)
        p_a and eps_a.
    penalty : float
        lambda >= 0.
    totals : ndarray of shape (k,), optional
        ``tr M_a``; errors within rounding of zero on this scale are taken as zero.
    """

    normalised = True

    def __init__(self, shares: np.ndarray, radii: np.ndarray, penalty: float, totals: np.ndarray | None = None) -> None:
        self.shares = np.asarray(shares, dtype=float)
        self.radii = np.asarray(radii, dtype=float)
        self.penalty = float(penalty)
        self._floor = np.zeros_like(self.shares) if totals is None else _ROUNDING * np.asarray(totals)
        self._roots = np.sqrt(self.radii)
        self.coefficients = _piece_coefficients(self.shares, self.penalty)
        self._up = np.maximum(self.coefficients, 0.0)
        self._down = np.minimum(self.coefficients, 0.0)

    def pieces(self, errors: np.ndarray) -> np.ndarray:
        """The value of each concave piece, one per ordered pair of groups."""
        raised, lowered = self._shifted(errors)
        return self._up @ raised + self._down @ lowered

    def value(self, errors: np.ndarray) -> float:
        return float(self.pieces(errors).max())

    def gradients(self, errors: np.ndarray) -> np.ndarray:
        """The gradients of the pieces, as rows; infinite where z_b = 0 < eps_b and the coefficient is positive."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(self._roots > 0, self._roots / self._root(errors), 0.0)
            raised = np.where(self._up > 0, self._up * (1.0 + ratios), 0.0)
        return raised + self._down * np.maximum(1.0 - ratios, 0.0)

    def cone(self) -> tuple[np.ndarray, np.ndarray]:
        """For two groups: all convex combinations of gradients lie strictly between these directions.

        The gradient of a piece has the entries u_b (1 + r_b) where u_b >= 0 and u_b max(1 - r_b, 0) where u_b < 0, with
        r_b >= 0. So its direction is at most as negative as that of (p_0 + lambda, p_1 - lambda) for one piece and of
        (p_0 - lambda, p_1 + lambda) for the other; together they span less than half a turn.
        """
        shares, penalty = self.shares, self.penalty
        first = np.array([shares[0] + penalty, shares[1] - penalty])
        last = np.array([shares[0] - penalty, shares[1] + penalty])
        # A gradient exactly on the edge may belong to a flat part of the boundary, which must lie inside the cone:
        # hence the margin.
        first[1] = first[1] - _CONE_MARGIN * first[0] if first[1] <= 0 else 0.0
        last[0] = last[0] - _CONE_MARGIN * last[1] if last[0] <= 0 else 0.0
        return first, last

    def minorants(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Linear functions ``constant_m + slope_m . z`` below each piece on the box low <= z <= high.

        A piece is a sum of concave functions of one z_b each, so the chords over the sides of the box lie below it.
        """
        low, high = np.maximum(low, 0.0), np.maximum(high, low)
        shifted = (self._shifted(bound) for bound in (low, high))
        ends = [self._up * raised + self._down * lowered for raised, lowered in shifted]
        width = high - low
        narrow = width <= self._floor
        slopes = np.where(narrow, 0.0, (ends[1] - ends[0]) / np.where(narrow, 1.0, width))
        base = np.where(narrow, np.minimum(ends[0], ends[1]), ends[0])
        return (base - slopes * low).sum(axis=1), slopes

    def worst_case_errors(self, errors: np.ndarray) -> np.ndarray:
        """``(sqrt(z_a) + sqrt(eps_a))^2``: the largest error of each group within its radius."""
        return self._shifted(errors)[0]

    def guarded(self, errors: np.ndarray) -> np.ndarray:
        """Errors moved away from zero, so that every slope is finite."""
        return np.maximum(errors, np.maximum(_LEAST_ROOT**2 * self.radii, 2.0 * self._floor))

    def _shifted(self, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The largest and the smallest error of each group within its radius."""
        roots = self._root(errors)
        return (roots + self._roots) ** 2, np.maximum(roots - self._roots, 0.0) ** 2

    def _root(self, errors: np.ndarray) -> np.ndarray:
        return np.sqrt(np.where(errors > self._floor, errors, 0.0))


def _piece_coefficients(shares: np.ndarray, penalty: float) -> np.ndarray:
    """The vector u of every ordered pair (a, a'), as rows; a single row if all are the same."""
    k = len(shares)
    if penalty == 0 or k == 1:
        return shares[None, :].copy()
    plus, minus = np.nonzero(~np.eye(k, dtype=bool))
    coefficients = np.tile(shares, (len(plus), 1))
    rows = np.arange(len(plus))
    coefficients[rows, plus] += penalty
    coefficients[rows, minus] -= penalty
    return coefficients


def check_radius(radius: Any) -> np.ndarray:
    """The values of ``radius`` as an array, checked as far as possible without knowing the groups."""
    given = list(radius.values()) if isinstance(radius, Mapping) else radius
    try:
        values = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"radius={radius!r} must be a number, one number per group, or a dict of these.") from None
    if not np.isfinite(values).all() or values.min(initial=0.0) < 0:
        raise ValueError(f"radius={radius!r} must be finite and not negative.")
    return values


def group_radii(radius: Any, labels: Sequence[Any], counts: np.ndarray) -> np.ndarray:
    """The eps_a: ``alpha / sqrt(N_a)`` for a single number alpha, or one given value per group.

    >>> import numpy as np
    >>> group_radii(0.3, ["a", "b"], np.array([4.0, 9.0]))
    array([0.15, 0.1 ])
    >>> group_radii({"b": 2.0, "a": 1.0}, ["a", "b"], np.array([4.0, 9.0]))
    array([1., 2.])
    """
    if isinstance(radius, Mapping):
        missing = [label for label in labels if label not in radius]
        if missing:
            raise ValueError(f"radius has no value for the groups {missing!r}; give one for every group.")
        radius = [radius[label] for label in labels]
    values = check_radius(radius)
    if values.ndim == 0:
        return values / np.sqrt(counts)
    if values.shape != counts.shape:
        raise ValueError(
            f"radius has shape {values.shape}, but there are {len(counts)} groups ({list(labels)!r}): "
            "give one number alpha (eps_a = alpha / sqrt(N_a)), or one radius per group."
        )
    return values
