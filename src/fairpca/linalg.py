"""Eigenpairs, orthonormal bases and one sign rule. No groups here."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh
from threadpoolctl import LibController, ThreadpoolController

__all__ = [
    "Geodesic",
    "PathForms",
    "blas_threads",
    "block_sum_bound",
    "canonical_basis",
    "eigenvalue_sum_bound",
    "extend_basis",
    "fix_signs",
    "orthonormalise",
    "scipy_threads_only",
    "single_blas_thread",
    "threads_for",
    "top_eigenpairs",
]

#: Below this size LAPACK's direct solver is the faster one (p = 500, d = 10: 12 ms against 20).
_DIRECT_SIZE = 500
#: Multiplications that one thread does in about a second.
_SHORT_WORK = 5e9
#: What is left of a vector beside a basis is a new direction if it is longer than this.
_NEW_DIRECTION = 1e-10


class _Library:
    """A BLAS library, whose number of threads belongs to the process: whoever limits it shares the limit."""

    def __init__(self, controller: LibController) -> None:
        self.path: str = controller.filepath
        self._controller, self._lock = controller, threading.Lock()
        self._holders, self._before = 0, 1

    @property
    def threads(self) -> int:
        """As many as there are without our limit."""
        with self._lock:
            return self._before if self._holders else self._controller.get_num_threads()

    def __enter__(self) -> None:
        with self._lock:
            if not self._holders:
                self._before = self._controller.get_num_threads()
                self._controller.set_num_threads(1)
            self._holders += 1

    def __exit__(self, *problem: object) -> None:
        """The last to leave restores what the first one found."""
        with self._lock:
            self._holders -= 1
            if not self._holders:
                self._controller.set_num_threads(self._before)


@functools.cache
def _libraries() -> list[_Library]:
    """Those of numpy and scipy, both loaded by now; looking for them takes milliseconds, so once is enough."""
    return [_Library(found) for found in ThreadpoolController().select(user_api="blas").lib_controllers]


def blas_threads() -> int:
    """How many threads the linear algebra may use, whoever of us holds it to one for now."""
    return max((library.threads for library in _libraries()), default=1)


@contextmanager
def single_blas_thread(*, only: str = "") -> Iterator[None]:
    """Where our own threads share out the rows, those of the linear algebra would only fight them.

    Safe for several threads at once: the limit holds until the last of them leaves.
    """
    with ExitStack() as stack:
        for library in _libraries():
            if only in library.path:
                stack.enter_context(library)
        yield


def scipy_threads_only() -> AbstractContextManager:
    """Keep numpy's BLAS to one thread: where scipy's does the heavy work, waiting threads of numpy's take a core."""
    return single_blas_thread(only="numpy")


def threads_for(multiplications: float) -> AbstractContextManager:
    """One BLAS thread for work that is short, else as many as there are.

    Two threads gain a third at best there, and lose much where another process has the second core: each of
    thousands of small products waits for it (FairPCA on 1000 x 57: 0.45 s against 0.02; 3000 x 500: 7 s against 0.3).
    """
    return single_blas_thread() if multiplications < _SHORT_WORK else nullcontext()


def top_eigenpairs(matrix: np.ndarray, count: int, *, start: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The ``count`` largest eigenvalues of a symmetric matrix, descending, with orthonormal eigenvectors.

    ``start``, a basis near the wanted one, lets the iterative solver begin where an earlier call ended.
    """
    size = len(matrix)
    if size <= _DIRECT_SIZE or 4 * count > size:
        return _direct(matrix, count)
    rng = np.random.default_rng(0)
    first = rng.standard_normal(size)
    if start is not None:
        # A little of every direction stays in, so that no eigenvector is out of reach.
        first = start @ np.ones(start.shape[1]) + 1e-3 * first / np.sqrt(size)
    # numpy and scipy each bring a BLAS whose threads wait busily; alternating between them costs five times as much.
    columns = np.ascontiguousarray(matrix).T
    operator = LinearOperator(matrix.shape, matvec=lambda x: linalg.blas.dsymv(1.0, columns, x), dtype=np.float64)
    try:
        values, vectors = eigsh(operator, count, which="LA", v0=first, ncv=min(size, count + 35))
    except ArpackError:
        return _direct(matrix, count)
    order = np.argsort(values)[::-1]
    return values[order], vectors[:, order]


def _direct(matrix: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    size = len(matrix)
    if 4 * count > size:
        values, vectors = np.linalg.eigh(matrix)
        return values[::-1][:count], vectors[:, ::-1][:, :count]
    values, vectors = linalg.eigh(matrix, subset_by_index=(size - count, size - 1), check_finite=False)
    return values[::-1], vectors[:, ::-1]


def eigenvalue_sum_bound(matrix: np.ndarray, basis: np.ndarray) -> float:
    """A proven upper bound on the sum of the ``d`` largest eigenvalues, tight when ``basis`` spans them.

    In the basis (V, its complement) the matrix is [[T, R^T], [R, N]]; see :func:`block_sum_bound`. One Cholesky
    factorisation proves N <= tau I, and it overlooks no eigenvalue as an iterative solver may. Returns infinity when
    the proof fails: then ``basis`` misses a leading eigenvector.
    """
    image = matrix @ basis
    inner = basis.T @ image
    residual = image - basis @ inner
    values = np.linalg.eigvalsh(inner)
    scale = max(np.abs(values).max(), np.finfo(float).tiny)
    slack = max(float(np.linalg.norm(residual)), len(matrix) * np.finfo(float).eps * scale)
    tau = values[0] + slack
    # The complement block, with the span of V moved out of the way: positive definite iff N < tau I.
    lift = basis @ (inner + (scale - tau) * np.eye(len(inner))) + residual
    shifted = np.hstack([lift, basis]) @ np.hstack([basis, residual]).T
    shifted -= matrix
    shifted.flat[:: len(matrix) + 1] += tau
    _, failed = linalg.lapack.dpotrf(shifted.T, overwrite_a=1, clean=0)
    return np.inf if failed else block_sum_bound(inner, residual, tau, slack, len(inner))


def block_sum_bound(inner: np.ndarray, residual: np.ndarray, outside: float, slack: float, count: int) -> float:
    """The sum of the ``count`` largest eigenvalues of [[T, R^T], [R, N]] at most, where N <= outside I.

    For every s > 0 the matrix is at most diag(T + R^T R / s, N + s I), here with ``s = slack``. It exceeds the sum
    of the eigenvalues of T by the squares of the residuals only, where ``outside + slack`` is not above them.
    """
    lifted = np.linalg.eigvalsh(inner + residual.T @ residual / slack)[-count:]
    return float(np.maximum(lifted, outside + slack).sum())


def orthonormalise(vectors: np.ndarray) -> np.ndarray:
    """An orthonormal basis of full-rank columns (QR)."""
    return np.linalg.qr(vectors)[0]


def extend_basis(basis: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Add to an orthonormal ``basis`` the directions of ``vectors`` that it lacks."""
    new = vectors - basis @ (basis.T @ vectors)
    new -= basis @ (basis.T @ new)
    directions, sizes, _ = np.linalg.svd(new, full_matrices=False)
    new = directions[:, sizes > _NEW_DIRECTION]
    if not new.shape[1]:
        return basis
    return np.hstack([basis, orthonormalise(new - basis @ (basis.T @ new))])


def extend_by_leading(basis: np.ndarray, matrix: np.ndarray, count: int) -> np.ndarray:
    """Complete an orthonormal ``basis`` to ``count`` columns: the leading eigenvectors of ``matrix`` beside it."""
    outside = np.eye(len(basis)) - basis @ basis.T
    missing = count - basis.shape[1]
    # Lifted, so that what lies in the basis already comes last even where the matrix has nothing left.
    lift = max(float(np.trace(matrix)), 1.0) * outside
    _, vectors = np.linalg.eigh(outside @ matrix @ outside + lift)
    return orthonormalise(np.hstack([basis, vectors[:, ::-1][:, :missing]]))


def fix_signs(basis: np.ndarray) -> np.ndarray:
    """Flip each column so that its entry of largest magnitude is positive (the first of equals)."""
    size = np.abs(basis)
    leading = np.argmax(size > size.max(axis=0) * (1 - 1e-9), axis=0)
    signs = np.sign(basis[leading, np.arange(basis.shape[1])])
    signs[signs == 0] = 1.0
    return basis * signs


def canonical_basis(basis: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """The basis of the same subspace whose scores are uncorrelated, by descending variance, signs fixed."""
    _, rotation = np.linalg.eigh(basis.T @ covariance @ basis)
    return fix_signs(orthonormalise(basis @ rotation[:, ::-1]))


class PathForms(NamedTuple):
    """Quadratic forms of several matrices at the start of a path, ahead of it, and between the two."""

    start: np.ndarray
    mixed: np.ndarray
    ahead: np.ndarray


class Geodesic:
    """The shortest path between two d-dimensional subspaces, from V_0 at t = 0 to V_1 at t = 1.

    It stays inside the span of both and keeps what they share. So when both are leading eigenspaces of one
    matrix, every subspace on the path is one as well.
    """

    def __init__(self, first: np.ndarray, last: np.ndarray) -> None:
        left, cosines, right = np.linalg.svd(first.T @ last)
        self._start = first @ left
        ahead = last @ right.T - self._start * cosines
        sines = np.linalg.norm(ahead, axis=0)
        self._angles = np.arctan2(sines, cosines)
        self._direction = ahead / np.where(sines > 1e-14, sines, 1.0)

    def basis(self, t: float) -> np.ndarray:
        angles = t * self._angles
        return orthonormalise(self._start * np.cos(angles) + self._direction * np.sin(angles))

    def forms(self, matrices: np.ndarray) -> PathForms:
        """Quadratic forms along the path, from which :meth:`captured` is computed without further products."""
        image_start, image_ahead = matrices @ self._start, matrices @ self._direction
        return PathForms(
            np.einsum("pi,api->ai", self._start, image_start),
            np.einsum("pi,api->ai", self._direction, image_start),
            np.einsum("pi,api->ai", self._direction, image_ahead),
        )

    def captured(self, forms: PathForms, t: float) -> np.ndarray:
        """``<A_a, V(t) V(t)^T>`` for each matrix."""
        cosines, sines = np.cos(t * self._angles), np.sin(t * self._angles)
        return forms.start @ cosines**2 + 2 * forms.mixed @ (cosines * sines) + forms.ahead @ sines**2
