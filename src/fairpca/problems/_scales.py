"""Gaussian kernels at one or several bandwidths: the mean of ``exp(-|z - z'|^2 / (2 sigma_s^2))`` over s.

A kernel as wide as the median distance hardly sees fine structure; narrower ones beside it do. The kernel of half the
width is the 4th power of the wider one, two squarings.
"""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np

__all__ = ["Bandwidth", "KernelScales", "check_bandwidth", "halved_bandwidths", "widths_of"]

#: The kernel's sigma, or several in descending order: then the kernel is the mean of theirs.
Bandwidth = float | tuple[float, ...]

_N_SCALES = 4


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
    return tuple(sorted(map(float, bandwidth), reverse=True)) if several else float(bandwidth)


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
            _raise(before, power, spare)
            before, factor = spare, factor * power
            yield factor, spare

    def mean(self, exponents: np.ndarray, spare: np.ndarray | None = None) -> np.ndarray:
        """The mean of the kernels, in the place of the exponents."""
        if self.count == 1:
            return np.exp(exponents, out=exponents)
        kernels = self.kernels(exponents, np.empty_like(exponents) if spare is None else spare)
        _, total = next(kernels)
        for _, kernel in kernels:
            total += kernel
        total /= self.count
        return total


def _raise(kernel: np.ndarray, power: float, out: np.ndarray) -> None:
    if power != 4.0:
        np.power(kernel, power, out=out)
        return
    np.square(kernel, out=out)
    np.square(out, out=out)
