"""The semidefinite relaxation of moment parity: ordinary PCA, a limit on means, and a penalty on covariances."""

from __future__ import annotations

import numpy as np
from tests.solvers.cases import wishart

from fairpca.solvers.reference.parity_sdp import solve_parity_sdp

NONE = np.zeros((0, 5))


def test_without_limit_and_penalty_it_is_ordinary_pca(rng):
    covariance, other = wishart(rng, 2, 5)
    found = solve_parity_sdp(covariance, (covariance - other)[None], NONE, 2, penalty=0.0, tolerance=0.0)
    assert found.finished
    assert found.n_iter > 0
    captured = np.trace(found.basis.T @ covariance @ found.basis)
    assert np.isclose(captured, np.linalg.eigvalsh(covariance)[-2:].sum(), atol=1e-5)


def test_a_limit_is_kept_and_a_penalty_lowers_the_difference(rng):
    covariance, other = wishart(rng, 2, 5)
    difference, direction = (covariance - other)[None], np.linalg.eigh(covariance)[1][:, -1:].T
    free = solve_parity_sdp(covariance, difference, NONE, 1, penalty=0.0, tolerance=0.0)
    limited = solve_parity_sdp(covariance, difference, direction, 1, penalty=0.0, tolerance=0.1)
    assert np.linalg.norm(direction @ free.basis) > 0.99
    assert np.linalg.norm(direction @ limited.basis) < 0.2  # the limit is on the relaxation, the basis is its rounding
    priced = solve_parity_sdp(covariance, difference, NONE, 1, penalty=5.0, tolerance=0.0)
    sizes = [abs(float((basis.T @ difference[0] @ basis).item())) for basis in (free.basis, priced.basis)]
    assert sizes[1] < 0.5 * sizes[0]
