"""Eigenpairs, orthonormal bases and one sign rule. No groups here."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext

import numpy as np
from scipy import linalg
from scipy.optimize import brentq
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh
from threadpoolctl import LibController, ThreadpoolController

#: Up to this size LAPACK's direct solver is faster than the iterative one (p = 500, d = 10: 12 ms against 20 ms).
_DIRECT_SIZE = 500
#: Up to this size, all eigenvalues of many matrices in one call are faster than a few of each in a call of its own.
_BATCH_SIZE = 200
#: Number of multiplications that one thread performs in about a second.
_SHORT_WORK = 5e9
#: The part of a vector orthogonal to a basis counts as a new direction if it is longer than this.
_NEW_DIRECTION = 1e-10


class _Library:
    """A BLAS library. Its number of threads is global to the process, so all callers that limit it share one limit."""

    def __init__(self, controller: LibController) -> None:
        self.path: str = controller.filepath
        self._controller, self._lock = controller, threading.Lock()
        self._holders, self._before = 0, 1

    @property
    def threads(self) -> int:
        """The number of threads without our limit."""
        with self._lock:
            return self._before if self._holders else self._controller.get_num_threads()

    def __enter__(self) -> None:
        with self._lock:
            if not self._holders:
                self._before = self._controller.get_num_threads()
                self._controller.set_num_threads(1)
            self._holders += 1

    def __exit__(self, *problem: object) -> None:
        """The last holder to leave restores the number that the first one found."""
        with self._lock:
            self._holders -= 1
            if not self._holders:
                self._controller.set_num_threads(self._before)


@functools.cache
def _libraries() -> list[_Library]:
    """The BLAS libraries of numpy and scipy, which are loaded by now. The search takes milliseconds: cached."""
    return [_Library(found) for found in ThreadpoolController().select(user_api="blas").lib_controllers]


def blas_threads() -> int:
    """How many threads the linear algebra may use, even while :func:`single_blas_thread` limits it to one."""
    return max((library.threads for library in _libraries()), default=1)


@contextmanager
def single_blas_thread(*, only: str = "") -> Iterator[None]:
    """Limit BLAS to one thread, for code that divides the rows among its own threads.

    Otherwise both sets of threads would compete for the cores. May be entered by several threads at once: the limit
    holds until the last of them leaves. ``only`` restricts it to libraries whose path contains this text.
    """
    with ExitStack() as stack:
        for library in _libraries():
            if only in library.path:
                stack.enter_context(library)
        yield


def scipy_threads_only() -> AbstractContextManager:
    """Limit numpy's BLAS to one thread where scipy's does the heavy work: numpy's waiting threads would use a core."""
    return single_blas_thread(only="numpy")


def threads_for(multiplications: float) -> AbstractContextManager:
    """Use one BLAS thread for short work, and all threads otherwise.

    For short work a second thread saves a third of the time at best, and costs a lot if another process occupies the
    second core, because each of thousands of small products waits for it (FairPCA on 1000 x 57: 0.45 s against
    0.02 s; on 3000 x 500: 7 s against 0.3 s).
    """
    return single_blas_thread() if multiplications < _SHORT_WORK else nullcontext()


def top_eigenpairs(matrix: np.ndarray, count: int, *, start: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The ``count`` largest eigenvalues of a symmetric matrix, descending, with orthonormal eigenvectors.

    ``start`` is an optional basis near the wanted one, from which the iterative solver starts.
    """
    size = len(matrix)
    if size <= _DIRECT_SIZE or 4 * count > size:
        return _direct(matrix, count)
    rng = np.random.default_rng(0)
    first = rng.standard_normal(size)
    if start is not None:
        # A small random part keeps every eigenvector within reach.
        first = start @ np.ones(start.shape[1]) + 1e-3 * first / np.sqrt(size)
    # numpy and scipy each ship a BLAS whose idle threads spin; alternating between the two takes five times as long.
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


def add_outer(matrix: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Add ``left @ right.T`` to a matrix in place, if it is C-contiguous without a temporary matrix of its size."""
    if matrix.flags.c_contiguous:  # of any other layout, BLAS would change a copy
        return linalg.blas.dgemm(1.0, right, left, 1.0, matrix.T, trans_b=1, overwrite_c=1).T
    matrix += left @ right.T
    return matrix


def leading_sums(matrices: np.ndarray, count: int) -> np.ndarray:
    """The sums of the 1, 2, ..., ``count`` largest eigenvalues of each matrix, of shape (n_matrices, count)."""
    if matrices.shape[1] <= _BATCH_SIZE:
        values = np.linalg.eigvalsh(matrices)[:, ::-1][:, :count]
    else:
        values = np.array([top_eigenpairs(matrix, count)[0] for matrix in matrices])
    return np.cumsum(values, axis=1)


def eigenvalue_sum_bound(matrix: np.ndarray, basis: np.ndarray) -> float:
    """A proven upper bound on the sum of the ``d`` largest eigenvalues, tight when ``basis`` spans them.

    In the basis (V, its complement) the matrix is [[T, R^T], [R, N]]; see :func:`block_sum_bound`. One Cholesky
    factorisation proves N <= tau I; unlike an iterative solver, it cannot miss an eigenvalue. Returns infinity if
    the proof fails, which means that ``basis`` misses a leading eigenvector.
    """
    image = matrix @ basis
    inner = basis.T @ image
    residual = image - basis @ inner
    values = np.linalg.eigvalsh(inner)
    # All entries are rounded next to the largest: an excluded direction may have a value far below those wanted.
    scale = max(np.abs(values).max(), np.abs(np.diag(matrix)).max(), np.finfo(float).tiny)
    slack = max(float(np.linalg.norm(residual)), len(matrix) * np.finfo(float).eps * scale)
    tau = values[0] + slack
    # tau I - N on the complement and a positive definite block on span(V): positive definite iff N < tau I.
    lift = basis @ (inner + (scale - tau) * np.eye(len(inner))) + residual
    shifted = np.hstack([lift, basis]) @ np.hstack([basis, residual]).T
    shifted -= matrix
    shifted.flat[:: len(matrix) + 1] += tau
    _, failed = linalg.lapack.dpotrf(shifted.T, overwrite_a=1, clean=0)
    return np.inf if failed else block_sum_bound(inner, residual, tau, slack, len(inner))


def block_sum_bound(inner: np.ndarray, residual: np.ndarray, outside: float, slack: float, count: int) -> float:
    """An upper bound on the sum of the ``count`` largest eigenvalues of [[T, R^T], [R, N]], where N <= outside I.

    For every s > 0 the matrix is at most diag(T + R^T R / s, N + s I), here with ``s = slack``. If
    ``outside + slack`` does not exceed the eigenvalues of T, the bound exceeds their sum only by a term quadratic in
    the residuals R.
    """
    lifted = np.linalg.eigvalsh(inner + residual.T @ residual / slack)[-count:]
    return float(np.maximum(lifted, outside + slack).sum())


def orthonormalise(vectors: np.ndarray) -> np.ndarray:
    """Orthonormal basis of the span of linearly independent columns, by QR."""
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
    """Complete an orthonormal ``basis`` to ``count`` columns by the leading directions of ``matrix`` orthogonal to it.

    ``matrix`` is positive semidefinite.
    """
    outside = np.eye(len(basis)) - basis @ basis.T
    missing = count - basis.shape[1]
    # The shift puts the directions already in the basis last, even if the matrix vanishes on the complement.
    lift = max(float(np.trace(matrix)), 1.0) * outside
    _, vectors = np.linalg.eigh(outside @ matrix @ outside + lift)
    return orthonormalise(np.hstack([basis, vectors[:, ::-1][:, :missing]]))


def solve_or_nearest(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution of a square system or, where rounding makes it singular, the shortest that comes nearest."""
    try:
        return np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(matrix, right, rcond=None)[0]


def fix_signs(basis: np.ndarray) -> np.ndarray:
    """Flip the sign of each column so that its entry of largest magnitude (the first in a tie) is positive."""
    size = np.abs(basis)
    leading = np.argmax(size > size.max(axis=0) * (1 - 1e-9), axis=0)
    signs = np.sign(basis[leading, np.arange(basis.shape[1])])
    signs[signs == 0] = 1.0
    return basis * signs


def canonical_basis(basis: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """The basis of the same subspace with uncorrelated scores, in descending order of variance, with fixed signs."""
    _, rotation = np.linalg.eigh(basis.T @ covariance @ basis)
    return fix_signs(orthonormalise(basis @ rotation[:, ::-1]))


class Geodesic:
    """The shortest path between two d-dimensional subspaces, from V_0 at t = 0 to V_1 at t = 1.

    It stays inside the span of both and contains their intersection. So if both are leading eigenspaces of the same
    matrix, then so is every subspace on the path.
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

    def balanced(self, matrices: np.ndarray, difference: Callable[[np.ndarray], float]) -> np.ndarray:
        """The basis at which a function of the ``<A_a, V V^T>`` changes its sign, or the end where it is smaller."""
        captured = self.captured(matrices)

        def along(t: float) -> float:
            return difference(captured(t))

        first, last = along(0.0), along(1.0)
        t = float(abs(last) < abs(first))
        if first * last < 0:  # if both differ only by rounding, either end is fine
            t = brentq(along, 0.0, 1.0, xtol=1e-16, rtol=1e-15, disp=False)
        return self.basis(t)

    def captured(self, matrices: np.ndarray) -> Callable[[float], np.ndarray]:
        """``<A_a, V(t) V(t)^T>`` for each matrix, from cosines and sines of twice the angles of the path."""
        image_start, image_ahead = matrices @ self._start, matrices @ self._direction
        start = np.einsum("pi,api->ai", self._start, image_start)
        mixed = np.einsum("pi,api->ai", self._direction, image_start)
        ahead = np.einsum("pi,api->ai", self._direction, image_ahead)
        constant, waves = 0.5 * (start + ahead).sum(axis=1), np.hstack([0.5 * (start - ahead), mixed])

        def at(t: float) -> np.ndarray:
            angles = (2.0 * t) * self._angles
            return constant + waves @ np.concatenate([np.cos(angles), np.sin(angles)])

        return at
