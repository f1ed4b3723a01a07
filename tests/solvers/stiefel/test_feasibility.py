"""The norm by which several constraints are lowered together."""

import numpy as np
import pytest

from fairpca.solvers.stiefel.feasibility import constraint_norm


@pytest.mark.parametrize("power", [8.0, 512.0])
def test_norm_is_near_the_largest_and_has_these_slopes(power):
    constraints = np.array([0.3, 0.29, 0.01])
    value, slopes = constraint_norm(constraints, power)
    assert constraints.max() <= value <= 3 ** (1 / power) * constraints.max()
    for j, step in enumerate(1e-7 * np.eye(3)):
        difference = constraint_norm(constraints + step, power)[0] - constraint_norm(constraints - step, power)[0]
        assert difference / 2e-7 == pytest.approx(slopes[j], abs=1e-6)


def test_a_single_constraint_is_its_own_norm():
    assert constraint_norm(np.array([0.2])) == (0.2, np.ones(1))
    assert constraint_norm(np.zeros(1)) == (0.0, np.ones(1))
