"""Kernel means of many rows in one or two dimensions, in time linear in the rows: by a grid and its Fourier transform.

On a box wide enough that the kernel vanishes between its ends, the kernel is a Fourier series with the coefficients
``K_w`` of Gaussians, so that with ``f_a(w) = sum_{i in a} u_i exp(-i w . z_i)``

``M_ab = sum_w K_w conj(f_a(w)) f_b(w)``.

The f_a come from a non-uniform fast Fourier transform: rows are spread over the points around them with a smooth window
whose transform is divided out. The error of MMD^2 is below 1e-10.
"""

from __future__ import annotations

import numpy as np
from scipy import fft

from fairpca.moments._grouped_sample import GroupedSample, KernelMeans
from fairpca.moments.bandwidths import Bandwidth, widths_of

#: Points of the window per dimension and the shape of it (Barnett, Magland and af Klinteberg 2019): an error of 1e-9 in
#: each f_a, most of which cancels in their differences.
_WINDOW, _SHAPE = 10, 2.3
#: Where the kernels and their transforms are taken to be zero, in standard deviations.
_VANISHED = 7.5
#: Points of a grid, at most: so many, or so many per row.
_LARGEST_GRID, _LARGEST_SHARE = 6_000_000, 8
#: Rows whose windows are computed together (20,000 take twice as long).
_CHUNK = 4000


class GridMeans:
    """The grid for the given scores; ``fits`` tells whether it is small enough to be of use."""

    def __init__(self, scores: np.ndarray, bandwidth: Bandwidth) -> None:
        widths = np.array(widths_of(bandwidth))
        self._scores, self._low = scores, scores.min(axis=0)
        self._lengths = np.ptp(scores, axis=0) + _VANISHED * widths[0]
        largest = max(_LARGEST_GRID, _LARGEST_SHARE * len(scores))
        modes = np.ceil(self._lengths * _VANISHED / (2 * np.pi * widths[-1]))
        self.fits = scores.shape[1] <= 2 and bool(np.prod(4.0 * modes + 2 * _WINDOW) <= largest)
        if not self.fits:
            return
        self._shape = tuple(fft.next_fast_len(4 * int(m) + 2 * _WINDOW, real=True) for m in modes)
        weights = np.ones((len(widths), *(1,) * len(modes)))
        for j, (n, length, m) in enumerate(zip(self._shape, self._lengths, modes, strict=True)):
            counts = fft.rfftfreq(n, 1 / n) if j == len(modes) - 1 else fft.fftfreq(n, 1 / n)
            kernels = (np.abs(counts) <= m) * _gaussian_coefficients(counts, widths[:, None] / length)
            kernels /= _window_transform(2 * np.pi * counts / n) ** 2
            weights = weights * kernels.reshape(len(widths), *(-1 if i == j else 1 for i in range(len(modes))))
        #: Of the kernel, divided by the square of the window's transform.
        self._weights = weights.mean(axis=0)

    def means(self, sample: GroupedSample, gradient: bool) -> KernelMeans:
        """What :func:`~fairpca.moments.kernel_means.kernel_means` finds, of the same rows."""
        transforms = self._spread(sample)
        return KernelMeans(self._values(transforms), self._fields(transforms, sample) if gradient else None)

    def _spread(self, sample: GroupedSample) -> np.ndarray:
        """``f_a`` for every group and the frequencies, of the last dimension those that are not negative."""
        size = int(np.prod(self._shape))

        def chunk_grid(rows: slice) -> np.ndarray:
            points, window, _ = self._around(rows)
            return np.bincount(points.ravel(), (window * sample.weights[rows][:, None]).ravel(), minlength=size)

        # Each chunk has a grid of its own, which should not have more points than all of its windows.
        grids = sample.sum_chunks(chunk_grid, max(_CHUNK, size // _WINDOW**2)).reshape(-1, *self._shape)
        return np.asarray(fft.rfftn(grids, axes=range(1, grids.ndim), workers=-1))

    def _values(self, transforms: np.ndarray) -> np.ndarray:
        """The kernel means, of shape (k, k)."""
        twice = np.full(transforms.shape[-1], 2.0)  # the negative frequencies of the last dimension are left out
        twice[0] = 1.0
        if self._shape[-1] % 2 == 0:
            twice[-1] = 1.0
        flat = transforms.reshape(len(transforms), -1)
        weighted = flat * (self._weights * twice).ravel()
        return np.asarray((weighted.conj() @ flat.T).real)

    def _fields(self, transforms: np.ndarray, sample: GroupedSample) -> np.ndarray:
        """``sum_{i in a} u_i x_i g_b(z_i)^T`` with the gradient g_b of what group b adds, of shape (k, k, p, d)."""
        axes, (k, d) = range(1, transforms.ndim), (len(transforms), len(self._shape))
        potentials = fft.irfftn(transforms * self._weights, s=self._shape, axes=axes, workers=-1)
        potentials = potentials.reshape(k, -1) * np.prod(self._shape)

        def chunk_fields(rows: slice) -> np.ndarray:
            points, _, slopes = self._around(rows)
            weighted = sample.rows[rows] * sample.weights[rows][:, None]
            gradients = [
                np.einsum("iw,iw->i", potential[points], slope) for potential in potentials for slope in slopes
            ]
            return weighted.T @ np.column_stack(gradients)

        return np.moveaxis(sample.sum_chunks(chunk_fields, _CHUNK).reshape(k, -1, k, d), 2, 1)

    def _around(self, rows: slice) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """Grid points near the scores, the window there, and its slopes by the scores; all of shape (rows, points)."""
        index, window = np.zeros((1, 1), dtype=np.int64), np.ones((1, 1))
        slopes: list[np.ndarray] = []
        for j, n in enumerate(self._shape):
            per_unit = n / self._lengths[j]
            places = (self._scores[rows, j] - self._low[j]) * per_unit
            points = np.ceil(places - _WINDOW / 2).astype(np.int64)[:, None] + np.arange(_WINDOW)
            offsets = (points - places[:, None]) * (2.0 / _WINDOW)
            index = _combined(np.add, index * n, points % n)
            values = _window(offsets)
            roots = np.sqrt(np.maximum(1.0 - offsets**2, 1e-3))  # the window is 1e-10 where its slope has no end
            slope = values * (_SHAPE * _WINDOW) * offsets / roots * (2.0 / _WINDOW * per_unit)
            slopes = [_combined(np.multiply, before, values) for before in slopes]
            slopes.append(_combined(np.multiply, window, slope))
            window = _combined(np.multiply, window, values)
        return index, window, slopes


def _combined(operation: np.ufunc, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Each entry of a row of the first with each entry of that row of the second."""
    return np.asarray(operation(first[:, :, None], second[:, None, :])).reshape(len(second), -1)


def _gaussian_coefficients(counts: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Fourier coefficients of a Gaussian of this width, next to the length of its period."""
    return np.asarray(np.sqrt(2.0 * np.pi) * width * np.exp(-0.5 * (2.0 * np.pi * width * counts) ** 2))


def _window(offsets: np.ndarray) -> np.ndarray:
    """``exp(b (sqrt(1 - x^2) - 1))`` for x between -1 and 1."""
    return np.exp(_SHAPE * _WINDOW * (np.sqrt(np.maximum(1.0 - offsets**2, 0.0)) - 1.0))


def _window_transform(angles: np.ndarray) -> np.ndarray:
    """The Fourier transform of the window at these angles per grid point, by quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    return 0.5 * _WINDOW * (np.cos(0.5 * _WINDOW * np.outer(angles, nodes)) @ (weights * _window(nodes)))
