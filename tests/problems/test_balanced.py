"""The criteria: values, dual bounds and derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca.problems.balanced import CRITERIA, balanced_problem, best_captured
from fairpca.problems.evaluation import Evaluation


@pytest.fixture
def case(rng):
    factors = rng.normal(size=(2, 6, 6))
    matrices = factors @ factors.transpose(0, 2, 1)
    return matrices, np.linalg.qr(rng.normal(size=(6, 2)))[0]


def problem_of(criterion, matrices):
    return balanced_problem(criterion, np.einsum("aii->a", matrices), best_captured(matrices, 2))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_weak_duality(rng, case, criterion):
    matrices, basis = case
    problem = problem_of(criterion, matrices)
    value = problem.value(np.einsum("pi,apq,qi->a", basis, matrices, basis))
    for _ in range(20):
        weights = rng.dirichlet([1, 1])
        support = np.linalg.eigvalsh(np.tensordot(weights, matrices, axes=1))[-2:].sum()
        assert problem.bound(weights, support) <= value + 1e-12
        scaled = problem.scaled_weights(weights, support)
        scaled_support = support * scaled[0] / weights[0]
        assert np.isclose(problem.dual(scaled).value - scaled_support, problem.bound(weights, support))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_rescaling(case, criterion):
    matrices, basis = case
    captured = np.einsum("pi,apq,qi->a", basis, matrices, basis)
    plain = problem_of(criterion, matrices)
    scaled = problem_of(criterion, matrices / 7)
    assert np.isclose(scaled.rescale(scaled.value(captured / 7), 7.0, 2), plain.value(captured))


def test_errors_and_losses_by_definition(case, rng):
    _, basis = case
    X = rng.normal(size=(80, 6))
    matrices = np.stack([X.T @ X / 80])
    residual = X - X @ basis @ basis.T
    found = Evaluation(matrices, basis)
    assert np.isclose(found.errors[0], np.square(residual).sum(axis=1).mean())
    singular = np.linalg.svd(X, compute_uv=False)
    best_error = (singular[2:] ** 2).sum() / 80
    assert np.isclose(found.losses[0], np.square(residual).sum(axis=1).mean() - best_error)
