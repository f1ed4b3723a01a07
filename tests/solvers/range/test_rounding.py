"""Rank reduction keeps the captured variances and the trace."""

from __future__ import annotations

import numpy as np
from tests.solvers.cases import random_moments, relaxed_capture

from fairpca.solvers.range.rounding import reduce_rank


def test_rank_reduction_keeps_captured_variances_and_trace(rng):
    matrices = random_moments(rng, k=2, size=8)
    vectors = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    eigenvalues = np.array([1.0, 0.9, 0.7, 0.5, 0.4, 0.3, 0.2, 0.0])
    reduced = reduce_rank(matrices, vectors, eigenvalues)
    before = np.einsum("pi,apq,qi,i->a", vectors, matrices, vectors, eigenvalues)
    after = relaxed_capture(matrices, reduced)
    assert np.allclose(after, before, atol=1e-10)
    assert np.isclose(reduced.eigenvalues.sum(), 4.0)
    assert (reduced.eigenvalues <= 1 + 1e-12).all()
    assert (reduced.eigenvalues >= 0).all()
    fractional = ((reduced.eigenvalues > 1e-6) & (reduced.eigenvalues < 1 - 1e-6)).sum()
    assert fractional * (fractional + 1) // 2 <= 3
    assert np.allclose(reduced.basis.T @ reduced.basis, np.eye(len(reduced.eigenvalues)), atol=1e-10)
