"""The permutation test: exact under random labels, equal to a plain recomputation, and clear about its input."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.decomposition import PCA

from fairpca import FairPCA, MMDFairPCA
from fairpca.inference import loss_test
from fairpca.metrics import reconstruction_loss


def losses_of(X: np.ndarray, groups: np.ndarray, d: int) -> dict:
    return dict(reconstruction_loss(X, PCA(d, svd_solver="full").fit(X), sensitive_features=groups))


def test_losses_are_those_of_the_metric(two_groups):
    X, groups = two_groups
    test = loss_test(X, sensitive_features=groups, n_components=[1, 3], n_permutations=19)
    for d in (1, 3):
        expected = losses_of(X, groups, d)
        assert {label: one.loss for label, one in test[d].by_group.items()} == pytest.approx(expected)
        assert test[d].gap == pytest.approx(max(expected.values()) - min(expected.values()))
    assert {label: one.rows for label, one in test.by_group.items()} == {"a": 200, "b": 100}


def test_expected_losses_are_means_over_all_divisions(rng):
    """Seven rows have 35 divisions into 3 and 4: many draws come close to the mean over all of them."""
    X = rng.normal(size=(7, 3))
    every = []
    for chosen in combinations(range(7), 3):
        groups = np.ones(7, dtype=int)
        groups[list(chosen)] = 0
        every.append(list(losses_of(X, groups, 1).values()))
    every = np.array(every)
    test = loss_test(X, sensitive_features=[0, 0, 0, 1, 1, 1, 1], n_components=1, n_permutations=4000)
    error = 4 * every.std(axis=0) / np.sqrt(4000)
    assert (np.abs([one.expected for one in test.by_group.values()] - every.mean(axis=0)) < error).all()
    # The p-value is the share of divisions with at least this statistic.
    statistics = (every / every.mean(axis=0)).max(axis=1)
    assert test.p_value == pytest.approx(np.mean(statistics >= statistics[0] - 1e-9), abs=0.03)


def test_p_values_of_random_labels_are_uniform(rng):
    X = rng.standard_t(4, size=(90, 6)) * np.linspace(2, 1, 6)
    groups = np.repeat(["x", "y", "z"], [10, 30, 50])
    p_values = np.array(
        [
            loss_test(
                X, sensitive_features=rng.permutation(groups), n_components=(1, 3), n_permutations=39, random_state=i
            ).p_value
            for i in range(300)
        ]
    )
    assert stats.kstest(p_values - rng.uniform(0, 1 / 40, 300), "uniform").pvalue > 0.001
    assert np.mean(p_values <= 0.05) <= 0.10


def test_rows_of_the_same_person_are_not_independent(rng):
    """Random labels of persons: permuting rows calls chance a finding, permuting persons does not."""
    persons = np.repeat(np.arange(60), 5)
    X = rng.normal(size=(60, 5))[persons] + 0.05 * rng.normal(size=(300, 5))
    by_person, by_row = [], []
    for i in range(60):
        groups = rng.permutation(np.repeat([0, 1], [20, 40]))[persons]
        options = {"sensitive_features": groups, "n_components": 2, "n_permutations": 39, "random_state": i}
        by_person.append(loss_test(X, clusters=persons, **options).rejected)
        by_row.append(loss_test(X, **options).rejected)
    assert np.mean(by_person) <= 0.15
    assert np.mean(by_row) >= 0.8


def test_clusters_of_one_row_are_rows(two_groups):
    X, groups = two_groups
    options = {"sensitive_features": groups, "n_components": 2, "n_permutations": 199, "random_state": 3}
    names = np.array([f"person {i}" for i in range(len(X))])
    by_row, by_cluster = loss_test(X, **options), loss_test(X, clusters=names, **options)
    # Clusters are numbered by name, so the draws differ; the distribution does not.
    assert by_cluster.by_group["a"].expected == pytest.approx(by_row.by_group["a"].expected, rel=0.2)
    assert by_cluster.by_group["a"].loss == pytest.approx(by_row.by_group["a"].loss)
    assert "of the clusters" in by_cluster.sentence
    assert "of the clusters" not in by_row.sentence


def test_a_moderate_effect_in_a_large_group_is_found(rng):
    groups = np.repeat([0, 1, 2], [60, 800, 800])
    X = rng.normal(size=(1660, 10)) * np.linspace(2, 1, 10)
    X[groups == 2] *= np.linspace(0.7, 1.4, 10)
    test = loss_test(X, sensitive_features=groups, n_components=3, n_permutations=99)
    assert test.rejected
    assert test.by_group[2].p_value <= 0.05
    assert test.sentence == "A random division into groups of these sizes would not show this (p <= 0.01)."


def test_an_estimator_that_uses_the_groups_is_fitted_again(two_groups):
    X, groups = two_groups
    test = loss_test(X, sensitive_features=groups, estimator=FairPCA(2), n_permutations=29, random_state=0)
    fitted = FairPCA(2).fit(X, sensitive_features=groups)
    assert [one.loss for one in test.by_group.values()] == pytest.approx(fitted.group_losses_.tolist())
    # Both losses are equal at the optimum of every division, so both groups have the same p-value.
    first, second = test.by_group.values()
    assert first.p_value == second.p_value
    assert test.gap == test.level == 0.0
    several = loss_test(X, sensitive_features=groups, estimator=FairPCA(), n_components=[1, 2], n_permutations=9)
    assert several[2].by_group["a"].loss == pytest.approx(fitted.group_losses_[0])


def test_an_estimator_that_needs_rows_is_fitted_again(rng):
    X, groups = rng.normal(size=(60, 3)), np.repeat([0, 1], 30)
    estimator = MMDFairPCA(1, tolerance=0.5, max_iter=3)
    test = loss_test(X, sensitive_features=groups, estimator=estimator, n_permutations=3)
    fitted = clone(estimator).fit(X, sensitive_features=groups)
    assert test.by_group[0].loss == pytest.approx(fitted.group_losses_[0], abs=1e-6)


@pytest.mark.parametrize("as_matrix", [False, True])
def test_components_from_elsewhere_are_taken_as_they_are(two_groups, as_matrix):
    X, groups = two_groups
    other = PCA(2).fit(X[::2])
    test = loss_test(
        X, sensitive_features=groups, estimator=other.components_ if as_matrix else other, n_permutations=9
    )
    expected = reconstruction_loss(X, other.components_, sensitive_features=groups)
    assert test.by_group["b"].loss == pytest.approx(expected["b"])
    unfitted = loss_test(X, sensitive_features=groups, estimator=PCA(2), n_permutations=9)
    assert unfitted.by_group["b"].loss == pytest.approx(losses_of(X, groups, 2)["b"])


def test_results_do_not_depend_on_order_names_rotation_or_jobs(two_groups, rng):
    X, groups = two_groups
    options = {"n_components": 2, "n_permutations": 60, "random_state": 5}
    test = loss_test(X, sensitive_features=groups, **options)
    same = loss_test(X, sensitive_features=groups, n_jobs=2, **options)
    assert same.by_group == test.by_group
    assert same.level == test.level
    rotation = np.linalg.qr(rng.normal(size=(7, 7)))[0]
    turned = loss_test(X @ rotation + 5.0, sensitive_features=groups == "b", **options)
    assert (turned.level, turned.expected_gap) == pytest.approx((test.level, test.expected_gap), rel=1e-6)
    assert turned.p_value == test.p_value


def test_weights_are_those_of_the_losses(two_groups, rng):
    X, groups = two_groups
    weights = rng.integers(0, 4, len(X)).astype(float)
    test = loss_test(X, sensitive_features=groups, n_components=2, n_permutations=9, sample_weight=weights)
    repeated = np.repeat(np.arange(len(X)), weights.astype(int))
    expected = losses_of(X[repeated], groups[repeated], 2)
    assert {label: one.loss for label, one in test.by_group.items()} == pytest.approx(expected)


def test_all_components_lose_nothing(two_groups):
    X, groups = two_groups
    test = loss_test(X, sensitive_features=groups, n_components=7, n_permutations=9)
    assert test.p_value == 1.0
    assert test.gap == test.expected_gap == 0.0


def test_prints_as_a_table(two_groups):
    X, groups = two_groups
    test = loss_test(X, sensitive_features=groups, n_components=[1, 2], n_permutations=19)
    text = repr(test)
    assert "expected by chance" in text
    assert "adjusted p" in text
    assert "95 % stay under" in text
    frame = test.to_frame()
    assert {"n_components", "group", "rows", "weight", "loss", "expected", "p_value"} <= set(frame.columns)
    assert len(frame) == 4
    hostile = loss_test(X, sensitive_features=np.where(groups == "a", "<b>", "c"), n_components=1, n_permutations=9)
    assert "<b>" not in hostile._repr_html_()
    assert "&lt;b&gt;" in hostile._repr_html_()


def test_progress_is_told(two_groups):
    X, groups = two_groups
    calls: list[tuple] = []
    loss_test(
        X, sensitive_features=groups, n_components=1, n_permutations=60, progress=lambda *call: calls.append(call)
    )
    assert calls[-1] == (60, 60, "random divisions")
    assert len(calls) == 3


def test_errors_name_the_argument_and_the_remedy(two_groups):
    X, groups = two_groups
    with pytest.raises(ValueError, match="n_components is required"):
        loss_test(X, sensitive_features=groups)
    with pytest.raises(ValueError, match="sensitive_features is required"):
        loss_test(X, n_components=2)
    with pytest.raises(ValueError, match="n_permutations"):
        loss_test(X, sensitive_features=groups, n_components=2, n_permutations=-1)
    with pytest.raises(ValueError, match=r"clusters: .* more than one group"):
        loss_test(X, sensitive_features=groups, n_components=2, clusters=np.arange(300) % 7)
    with pytest.raises(ValueError, match="clusters has 3 rows"):
        loss_test(X, sensitive_features=groups, n_components=2, clusters=[1, 2, 3])
    with pytest.raises(ValueError, match="clone"):
        loss_test(X, sensitive_features=groups, estimator=FairPCA(2).fit(X, sensitive_features=groups))
    with pytest.raises(ValueError, match="leave n_components out"):
        loss_test(X, sensitive_features=groups, estimator=PCA(2).fit(X), n_components=3)
