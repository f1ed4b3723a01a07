"""Gaussian kernels at one or several bandwidths: the mean of ``exp(-|z - z'|^2 / (2 sigma_s^2))`` over s.

A kernel as wide as the median distance hardly sees fine structure; narrower ones beside it do. The kernel of half the
width is the 4th power of the wider one, two squarings. The widest comes from the median distance between rows.
"""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

#: The kernel's sigma, or several in descending order: then the kernel is the mean of theirs.
Bandwidth = float | tuple[float, ...]

_N_SCALES = 4
#: Between two widths; beyond it the square of the ratio would drown distances in rounding.
_LARGEST_RATIO = 1e6
#: Pairs of rows from which the median distance is computed, at most.
_MOST_PAIRS = 2_000_000


def bandwidth_by_rule(
    bandwidth: str | Bandwidth, scores: np.ndarray, rng: np.random.Generator, weights: np.ndarray | None = None
) -> Bandwidth:
    """The widths themselves, or those that "median" or "multiscale" takes from the distances between rows."""
    if not isinstance(bandwidth, str):
        return bandwidth
    sigma = float(np.sqrt(0.5 * squared_distance_median(scores, rng, weights)))
    return halved_bandwidths(sigma) if bandwidth == "multiscale" else sigma


def halved_bandwidths(sigma: float) -> tuple[float, ...]:
    """The widths of the multiscale kernel: sigma, sigma / 2, sigma / 4, sigma / 8."""
    return tuple(sigma / 2.0**scale for scale in range(_N_SCALES))


def widths_of(bandwidth: Bandwidth) -> tuple[float, ...]:
    """The same as a tuple, also of a single one."""
    return bandwidth if isinstance(bandwidth, tuple) else (float(bandwidth),)


def check_bandwidth(bandwidth: Any) -> str | Bandwidth:
    """The name of a rule, a width, or a tuple of widths in descending order."""
    if isinstance(bandwidth, str) and bandwidth in ("median", "multiscale"):
        return bandwidth
    several = isinstance(bandwidth, tuple | list) and len(bandwidth) > 0
    for width in bandwidth if several else (bandwidth,):
        if isinstance(width, bool) or not isinstance(width, numbers.Real) or not 0 < float(width) < np.inf:
            raise ValueError(
                f"bandwidth={bandwidth!r} must be a positive number or 'median', 'multiscale', or a tuple of positive "
                "numbers."
            )
    widths = sorted(map(float, bandwidth if several else (bandwidth,)), reverse=True)
    if widths[0] > _LARGEST_RATIO * widths[-1]:
        raise ValueError(
            f"bandwidth={bandwidth!r}: the widest is more than {_LARGEST_RATIO:g} times as wide as the narrowest; "
            "leave one of them out."
        )
    return tuple(widths) if several else widths[0]


class KernelScales:
    """From exponents ``-|z - z'|^2 / 2``, distances in units of the widest bandwidth, to the kernels.

    Attributes
    ----------
    widest : float
    count : int
    largest_factor : float
        ``(sigma_1 / sigma_s)^2`` of the narrowest, by which its kernel magnifies the rounding of an exponent.
    """

    def __init__(self, bandwidth: Bandwidth) -> None:
        widths = widths_of(bandwidth)
        self.widest, self.count = widths[0], len(widths)
        self.largest_factor = (widths[0] / widths[-1]) ** 2
        self._powers = [(wide / narrow) ** 2 for wide, narrow in itertools.pairwise(widths)]

    def kernels(self, exponents: np.ndarray, spare: np.ndarray) -> Iterator[tuple[float, np.ndarray]]:
        """``(sigma_1 / sigma_s)^2`` and the kernel of each scale s, the widest first.

        It takes the place of the exponents and may be added to once the second is there; the others take that of
        ``spare``, one after the other.
        """
        np.exp(exponents, out=exponents)
        yield 1.0, exponents
        before, factor = exponents, 1.0
        for power in self._powers:
            if power == 4.0:
                np.square(before, out=spare)
                np.square(spare, out=spare)
            else:
                np.power(before, power, out=spare)
            before, factor = spare, factor * power
            yield factor, spare


def squared_distance_median(scores: np.ndarray, rng: np.random.Generator, weights: np.ndarray | None = None) -> float:
    """Median of squared distances between different rows: all pairs, or a random choice if there are more.

    Weights count like repeated rows, whose distance is 0. Where more than half of the distances are 0 the
    median of the positive ones is taken instead, and 1 if all rows coincide.
    """
    if weights is not None:
        scores, weights = scores[weights > 0], weights[weights > 0]
    squares, multiplicity = _squared_distances(scores, rng, weights)
    # Identical rows may differ by rounding after a projection.
    smallest = 1e-20 * float(np.einsum("ij,ij->", scores, scores)) / max(len(scores), 1)
    positive = squares > smallest
    for kept in (slice(None), positive):
        chosen = None if multiplicity is None else multiplicity[kept]
        median = _median(squares[kept], chosen)
        if median > smallest:
            return median
    return 1.0


def _squared_distances(
    scores: np.ndarray, rng: np.random.Generator, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Of pairs of rows, and how often each counts (None: once): a row of weight w is w (w - 1) / 2 pairs by itself."""
    n = len(scores)
    if n * (n - 1) // 2 <= _MOST_PAIRS:
        squares = pdist(scores, "sqeuclidean")
        if weights is None:
            return squares, None
        first, second = np.triu_indices(n, 1)
        repeats = np.maximum(0.5 * weights * (weights - 1.0), 0.0)
        return np.r_[squares, np.zeros(n)], np.r_[weights[first] * weights[second], repeats]
    if weights is None:
        first = rng.integers(0, n, _MOST_PAIRS)
        second = (first + rng.integers(1, n, _MOST_PAIRS)) % n
    else:
        first, second = rng.choice(n, (2, _MOST_PAIRS), p=weights / weights.sum())
        genuine = (first != second) | (rng.random(_MOST_PAIRS) < 1.0 - 1.0 / weights[first])
        first, second = first[genuine], second[genuine]
    return sum(((column[first] - column[second]) ** 2 for column in scores.T), np.zeros(len(first))), None


def _median(values: np.ndarray, multiplicity: np.ndarray | None) -> float:
    """The median of values, each counted so often; the mean of the middle two, as numpy has it."""
    if not values.size:
        return 0.0
    if multiplicity is None:
        return float(np.median(values))
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(multiplicity[order])
    total = ends[-1]
    ranks = np.array([np.ceil(0.5 * total), np.floor(0.5 * total) + 1.0]) - 0.5
    middle = np.searchsorted(ends, np.minimum(ranks, total), side="left")
    return float(values[order][np.minimum(middle, len(values) - 1)].mean())
