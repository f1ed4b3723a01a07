"""Geometry of orthonormal frames, St(p, d) = {V : V^T V = I}, with the Euclidean metric."""

from __future__ import annotations

import numpy as np


def horizontal(basis: np.ndarray, ambient: np.ndarray) -> np.ndarray:
    """The part that changes the subspace: ``(I - V V^T) G``. Enough where the objective is the same for V and V R."""
    return ambient - basis @ (basis.T @ ambient)


def retract_qr(basis: np.ndarray, step: np.ndarray) -> np.ndarray:
    """The Q factor of V + D, with the signs that make the step 0 the identity."""
    frame, triangle = np.linalg.qr(basis + step)
    signs = np.where(np.diagonal(triangle) < 0, -1.0, 1.0)
    return frame * signs


def retract_polar(basis: np.ndarray, step: np.ndarray) -> np.ndarray:
    """The frame nearest to V + D."""
    left, _, right = np.linalg.svd(basis + step, full_matrices=False)
    return left @ right


def transport(basis: np.ndarray, vectors: np.ndarray, *, invariant: bool = False) -> np.ndarray:
    """Orthogonal projection on the tangent space at V, ``G - V sym(V^T G)``, of one matrix (p, d) or a stack (m, p, d).

    With ``invariant`` only the horizontal part is kept.
    """
    inner = basis.T @ vectors
    if not invariant:
        inner = 0.5 * (inner + np.swapaxes(inner, -1, -2))
    return vectors - basis @ inner


def random_frame(rng: np.random.Generator, size: int, dimension: int) -> np.ndarray:
    """A uniformly distributed frame."""
    return retract_qr(np.zeros((size, dimension)), rng.standard_normal((size, dimension)))
