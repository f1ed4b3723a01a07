"""The closed form against permutations, and where it says that it is not to be trusted."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca import FairPCA
from fairpca.datasets import load_german_credit
from fairpca.inference import loss_test
from fairpca.inference._noise import flow


def chance_losses(X, **options):
    return loss_test(X, n_permutations=0, **options)


@pytest.mark.parametrize("d", [2, 5])
def test_close_to_the_mean_over_random_divisions(d):
    X, sex = load_german_credit(return_X_s=True)
    closed = chance_losses(X, sensitive_features=sex, n_components=d)
    permuted = loss_test(X, sensitive_features=sex, n_components=d, n_permutations=199)
    for label, one in closed.by_group.items():
        assert one.expected == pytest.approx(permuted.by_group[label].expected, rel=0.15)
        assert one.loss == pytest.approx(permuted.by_group[label].loss)
        assert not one.few_rows


def test_ties_do_not_spoil_it(rng):
    """All eigenvalues of noise are nearly equal, where first-order theory is off by a factor of three to five."""
    X, groups = rng.normal(size=(2000, 12)), np.repeat([0, 1], [60, 1940])
    closed = chance_losses(X, sensitive_features=groups, n_components=3)
    permuted = loss_test(X, sensitive_features=groups, n_components=3, n_permutations=99)
    assert closed.by_group[0].expected == pytest.approx(permuted.by_group[0].expected, rel=0.3)


def test_a_pair_of_eigenvalues_moves_apart_exactly():
    """Two eigenvalues: the difference grows to sqrt(D^2 + 4 kappa t), each takes half of that."""
    kappa = np.array([[9.0, 2.0], [2.0, 1.0]])
    gained = flow(np.array([3.0, 2.5]), kappa, 0.3, 1)
    assert gained == pytest.approx((np.sqrt(0.25 + 4 * 2.0 * 0.3) - 0.5) / 2)
    assert flow(np.array([2.0, 2.0]), kappa, 0.3, 1) == pytest.approx(np.sqrt(4 * 2.0 * 0.3) / 2)
    assert flow(np.array([3.0, 2.5]), kappa, 0.3, 2) == 0.0


def test_small_time_is_first_order_theory(rng):
    values, kappa = np.array([5.0, 3.0, 1.5, 0.5]), rng.uniform(1, 2, size=(4, 4))
    kappa = kappa + kappa.T
    first_order = sum(kappa[i, j] / (values[i] - values[j]) for i in range(2) for j in range(2, 4))
    assert flow(values, kappa, 1e-6, 2) / 1e-6 == pytest.approx(first_order, rel=1e-4)


def test_few_dominating_rows_are_flagged(rng):
    X, groups = rng.normal(size=(400, 6)), np.repeat([0, 1], 200)
    assert not any(
        one.few_rows for one in chance_losses(X, sensitive_features=groups, n_components=2).by_group.values()
    )
    X[:3] *= 60
    found = chance_losses(X, sensitive_features=groups, n_components=2)
    assert all(one.few_rows for one in found.by_group.values())
    assert "use permutations" in repr(found)


def test_weights_of_zero_and_one_select_rows(two_groups, rng):
    X, groups = two_groups
    weights = (rng.random(len(X)) < 0.7).astype(float)
    chosen = weights > 0
    weighted = chance_losses(X, sensitive_features=groups, n_components=2, sample_weight=weights)
    selected = chance_losses(X[chosen], sensitive_features=groups[chosen], n_components=2)
    for label, one in selected.by_group.items():
        assert weighted.by_group[label].expected == pytest.approx(one.expected)
        assert weighted.by_group[label].rows == one.rows


def test_rows_must_be_in_memory(two_groups):
    with pytest.raises(ValueError, match=r"rows in memory: .* or permute"):
        chance_losses([two_groups], n_components=2)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 30.0])
def test_the_unit_of_weights_changes_nothing(rng, unit):
    X = rng.normal(size=(4000, 6)) * np.linspace(2, 1, 6)
    groups = np.repeat(["a", "b"], [1000, 3000])[rng.permutation(4000)]
    weights = rng.uniform(0.2, 3.0, 4000)
    plain = chance_losses(X, sensitive_features=groups, n_components=2, sample_weight=weights)
    scaled = chance_losses(X, sensitive_features=groups, n_components=2, sample_weight=unit * weights)
    for label, one in plain.by_group.items():
        assert scaled.by_group[label].expected == pytest.approx(one.expected)


def test_frame_html_and_several_numbers(two_groups):
    X, groups = two_groups
    found = chance_losses(X, sensitive_features=groups, n_components=[1, 2])
    assert {"n_components", "group", "rows", "weight", "loss", "expected", "few_rows"} <= set(found.to_frame().columns)
    assert "<table>" in found._repr_html_()
    alone = chance_losses(X, sensitive_features=groups, n_components=2)
    assert repr(found[2].by_group["a"]) == repr(alone.by_group["a"])  # there is no p-value: NaN
    assert not found.claims
    with pytest.raises(ValueError, match="leave estimator out"):
        chance_losses(X, sensitive_features=groups, estimator=FairPCA(2), n_components=2)
