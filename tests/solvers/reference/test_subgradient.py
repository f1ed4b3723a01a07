"""Algorithm 1 of the paper."""

import numpy as np
import pytest

from fairpca.joint_range import JointRange
from fairpca.problems.robust import RobustGap
from fairpca.protocols import Status
from fairpca.solvers.range.sweep import sweep_range
from fairpca.solvers.reference.subgradient import _descend, _value_and_slopes, descend_subgradient


@pytest.fixture
def case():
    rng = np.random.default_rng(2)
    factors = rng.standard_normal((2, 6, 12)) * np.exp(-0.4 * np.arange(6))[:, None]
    matrices = factors @ factors.transpose(0, 2, 1)
    shares = np.array([0.7, 0.3])
    matrices *= 6 / (shares @ np.einsum("aii->a", matrices))
    return matrices, RobustGap(shares, np.array([0.02, 0.05]), 0.6)


def run(case, **changes):
    matrices, problem = case
    options = {"step": 0.03, "n_starts": 6, "max_iter": 600} | changes
    joint = JointRange(matrices, 2)
    return descend_subgradient(problem, joint, problem.shares, rng=np.random.default_rng(0), **options)


def test_reaches_the_global_optimum_of_an_easy_case(case):
    matrices, problem = case
    exact = sweep_range(problem, JointRange(matrices, 2), tol=1e-9, max_iter=500)
    result = run(case)
    assert exact.lower_bound - 1e-9 <= result.objective <= exact.objective * (1 + 1e-3)
    assert result.status is Status.UNCERTIFIED
    assert result.lower_bound == -np.inf


def test_value_describes_the_returned_basis(case):
    matrices, problem = case
    result = run(case)
    errors = np.einsum("aii->a", matrices) - JointRange(matrices, 2).captured(result.basis)
    assert problem.value(errors) == pytest.approx(result.objective, rel=1e-12)
    np.testing.assert_allclose(result.basis.T @ result.basis, np.eye(2), atol=1e-12)


def test_best_iterate_is_kept(case):
    """A step far too long never settles: the last iterate is worse than the best on the way."""
    result = run(case, step=0.5, n_starts=2)
    curves = [record["objective"] for record in result.history]
    assert result.objective == pytest.approx(min(curve.min() for curve in curves), rel=1e-12)
    assert result.objective < min(curve[-1] for curve in curves)


def test_history_has_one_curve_a_start(case):
    result = run(case, n_starts=3, max_iter=50)
    assert [len(record["objective"]) for record in result.history] == [51] * 4


def test_first_step_is_the_riemannian_subgradient(case):
    """The slope of F along the step equals minus the squared norm of the projected gradient."""
    matrices, problem = case
    frame = np.linalg.qr(np.random.default_rng(5).standard_normal((6, 4)))[0]
    errors = np.einsum("pi,apq,qi->a", frame, matrices, frame)
    euclidean = 2 * np.tensordot(_value_and_slopes(problem, errors)[1], matrices, axes=1) @ frame
    riemannian = euclidean - frame @ (frame.T @ euclidean)
    step = 1e-7
    curve = _descend(problem, matrices, frame, step, 1).values
    assert (curve[1] - curve[0]) / step == pytest.approx(-((riemannian**2).sum()), rel=1e-4)
