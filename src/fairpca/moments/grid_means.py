"""Kernel means of many rows in one or two dimensions, in time linear in the rows: by a grid and its Fourier transform.

On a box wide enough that the kernel vanishes between its ends, the kernel is a Fourier series with the coefficients
``K_w`` of Gaussians, so that with ``f_a(w) = sum_{i in a} u_i exp(-i w . z_i)``

``M_ab = sum_w K_w conj(f_a(w)) f_b(w)``.

The f_a come from a non-uniform fast Fourier transform: rows are spread over the points around them with a smooth window
whose transform is divided out. The error of MMD^2 is below 1e-10.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from scipy import fft, sparse

from fairpca.moments._grouped_sample import GroupedSample
from fairpca.moments.bandwidths import Bandwidth, widths_of

#: Points of the window per dimension and the shape of it (Barnett, Magland and af Klinteberg 2019): an error of 1e-9 in
#: each f_a, most of which cancels in their differences.
_WINDOW, _SHAPE = 10, 2.3
#: Where the kernels and their transforms are taken to be zero, in standard deviations.
_VANISHED = 7.5
#: Points of a grid, at most: so many, or so many per row; and rows spread at once.
_LARGEST_GRID, _LARGEST_SHARE, _CHUNK = 6_000_000, 8, 200_000


class GridMeans:
    """The grid for the given scores; ``fits`` tells whether it is small enough to be of use.

    ``f_a`` is ``transforms[a]``, for the non-negative frequencies of the last dimension.
    """

    def __init__(self, scores: np.ndarray, bandwidth: Bandwidth) -> None:
        self.scores, self._widths = scores, np.array(widths_of(bandwidth))
        self._low = scores.min(axis=0)
        self._lengths = np.ptp(scores, axis=0) + _VANISHED * self._widths[0]
        largest = max(_LARGEST_GRID, _LARGEST_SHARE * len(scores))
        modes = np.ceil(self._lengths * _VANISHED / (2 * np.pi * self._widths[-1]))
        self.fits = scores.shape[1] <= 2 and bool(np.prod(4.0 * modes + 2 * _WINDOW) <= largest)
        if not self.fits:
            return
        self._shape = tuple(fft.next_fast_len(4 * int(m) + 2 * _WINDOW, real=True) for m in modes)
        last = len(modes) - 1
        counts = [fft.rfftfreq(n, 1 / n) if j == last else fft.fftfreq(n, 1 / n) for j, n in enumerate(self._shape)]
        keep = [np.abs(count) <= m for count, m in zip(counts, modes, strict=True)]
        windows = [_window_transform(2 * np.pi * count / n) for count, n in zip(counts, self._shape, strict=True)]
        kernels = [
            [_gaussian_coefficients(count, width / length) for width in self._widths]
            for count, length in zip(counts, self._lengths, strict=True)
        ]
        factors = [
            [kept * kernel / window**2 for kernel in own]
            for kept, own, window in zip(keep, kernels, windows, strict=True)
        ]
        outer = np.multiply.outer if len(modes) == 2 else lambda first: first
        #: Of the kernel, divided by the square of the window's transform.
        self._weights = sum(outer(*each) for each in zip(*factors, strict=True)) / len(self._widths)

    def spread(self, sample: GroupedSample) -> np.ndarray:
        """The transforms of the groups' spread weights, of shape (k, frequencies)."""
        grids = np.zeros((len(sample.starts) - 1, *self._shape))
        for a, rows in self._chunks(sample.starts):
            windows = self._windows(rows)
            left = windows[0].multiply(sample.weights[rows][:, None]).tocsr()
            right = windows[1] if len(windows) == 2 else None
            grids[a] += left.sum(axis=0).A1 if right is None else (left.T @ right).toarray()
        axes = tuple(range(1, grids.ndim))
        return np.asarray(fft.rfftn(grids, axes=axes, workers=-1))

    def values(self, transforms: np.ndarray) -> np.ndarray:
        """The kernel means, of shape (k, k)."""
        twice = np.full(transforms.shape[-1], 2.0)  # the negative frequencies of the last dimension are left out
        twice[0] = 1.0
        if self._shape[-1] % 2 == 0:
            twice[-1] = 1.0
        flat = transforms.reshape(len(transforms), -1)
        weighted = flat * (self._weights * twice).ravel()
        return np.asarray((weighted.conj() @ flat.T).real)

    def fields(self, transforms: np.ndarray, sample: GroupedSample) -> np.ndarray:
        """``sum_{i in a} u_i x_i g_b(z_i)^T`` with the gradient g_b of what group b adds, of shape (k, k, p, d)."""
        axes = tuple(range(1, transforms.ndim))
        potentials = fft.irfftn(transforms * self._weights, s=self._shape, axes=axes, workers=-1)
        potentials = potentials.reshape(len(transforms), -1) * np.prod(self._shape)
        d, k = self.scores.shape[1], len(transforms)
        total = np.zeros((k, k, sample.rows.shape[1], d))
        for a, rows in self._chunks(sample.starts, _CHUNK // 8):
            points, values, slopes = zip(*(self._around(rows, j) for j in range(d)), strict=True)
            weighted = sample.rows[rows] * sample.weights[rows][:, None]
            index = points[0] if d == 1 else points[0][:, :, None] * self._shape[1] + points[1][:, None, :]
            for b in range(k):
                here = potentials[b][index]
                if d == 1:
                    gradients = (here * slopes[0]).sum(axis=1)[:, None]
                else:
                    by_value = np.einsum("iab,ib->ia", here, values[1])
                    by_slope = np.einsum("iab,ib->ia", here, slopes[1])
                    parts = (by_value * slopes[0], by_slope * values[0])
                    gradients = np.column_stack([part.sum(axis=1) for part in parts])
                total[a, b] += weighted.T @ gradients
        return total

    def _chunks(self, starts: np.ndarray, size: int = _CHUNK) -> Iterator[tuple[int, slice]]:
        for a, (first, last) in enumerate(itertools.pairwise(starts)):
            yield from ((a, slice(top, min(top + size, last))) for top in range(first, last, size))

    def _around(self, rows: slice, j: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Grid points near the scores in one dimension, the window there, and its slope by the score."""
        per_unit = self._shape[j] / self._lengths[j]
        places = (self.scores[rows, j] - self._low[j]) * per_unit
        points = np.ceil(places - _WINDOW / 2).astype(np.int64)[:, None] + np.arange(_WINDOW)
        offsets = (points - places[:, None]) * (2.0 / _WINDOW)
        values = _window(offsets)
        roots = np.sqrt(np.maximum(1.0 - offsets**2, 1e-3))  # the window is 1e-10 where its slope has no end
        slopes = values * (_SHAPE * _WINDOW) * offsets / roots * (2.0 / _WINDOW * per_unit)
        return points % self._shape[j], values, slopes

    def _windows(self, rows: slice) -> list[sparse.csr_matrix]:
        found = []
        for j in range(self.scores.shape[1]):
            points, values, _ = self._around(rows, j)
            ends = np.arange(0, points.size + 1, _WINDOW)
            found.append(sparse.csr_matrix((values.ravel(), points.ravel(), ends), shape=(len(points), self._shape[j])))
        return found


def _gaussian_coefficients(counts: np.ndarray, width: float) -> np.ndarray:
    """Fourier coefficients of a Gaussian of this width, next to the length of its period."""
    return np.asarray(np.sqrt(2.0 * np.pi) * width * np.exp(-0.5 * (2.0 * np.pi * width * counts) ** 2))


def _window(offsets: np.ndarray) -> np.ndarray:
    """``exp(b (sqrt(1 - x^2) - 1))`` for x between -1 and 1."""
    return np.exp(_SHAPE * _WINDOW * (np.sqrt(np.maximum(1.0 - offsets**2, 0.0)) - 1.0))


def _window_transform(angles: np.ndarray) -> np.ndarray:
    """The Fourier transform of the window at these angles per grid point, by quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    return 0.5 * _WINDOW * (np.cos(0.5 * _WINDOW * np.outer(angles, nodes)) @ (weights * _window(nodes)))
