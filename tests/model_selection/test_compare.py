"""Methods side by side: figures agree with the metrics, intervals with a plain bootstrap."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.decomposition import PCA

from fairpca import FairPCA, KernelParityPCA, RobustFairPCA
from fairpca._validation import Groups
from fairpca.metrics import explained_variance_ratio, reconstruction_error, reconstruction_loss
from fairpca.model_selection import METHODS, compare
from fairpca.model_selection._intervals import RowFigures
from fairpca.moments import GroupMoments, group_moments

CHEAP = ["PCA", "FairPCA", "RobustFairPCA", "ParityPCA"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    groups = np.repeat(["a", "b"], [200, 100])
    X = rng.normal(size=(300, 7)) * np.linspace(2.0, 0.5, 7)
    X[200:] = X[200:, ::-1] + np.linspace(0.0, 1.0, 7)
    label = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    return X, groups, label


@pytest.fixture(scope="module")
def found(rows):
    X, groups, label = rows
    return compare(X, groups, label, n_components=[1, 3], methods=CHEAP)


def test_figures_are_those_of_the_metrics(found, rows):
    X, groups, _ = rows
    assert [(r.method, r.n_components) for r in found.results] == [(m, d) for d in (1, 3) for m in CHEAP]
    for result in found.results:
        errors = reconstruction_error(X, result.estimator, sensitive_features=groups)
        losses = reconstruction_loss(X, result.estimator, sensitive_features=groups)
        for label in "ab":
            assert result.error.by_group[label].value == pytest.approx(errors[label])
            assert result.loss.by_group[label].value == pytest.approx(losses[label], abs=1e-10)
        assert result.error.overall == pytest.approx(errors.overall)
        assert result.loss.overall == pytest.approx(losses.overall, abs=1e-9)
        assert result.error.gap.value == pytest.approx(errors.gap)
        assert result.explained_variance == pytest.approx(explained_variance_ratio(X, result.estimator))


def test_what_each_method_promises_shows(found):
    ordinary, balanced, robust, parity = (found[name, 3] for name in CHEAP)
    worst = lambda result: max(e.value for e in result.loss.by_group.values())  # noqa: E731
    assert worst(balanced) < worst(ordinary)
    assert balanced.loss.gap.value < 1e-9
    assert robust.error.gap.value < ordinary.error.gap.value
    assert ordinary.explained_variance >= max(balanced.explained_variance, parity.explained_variance)
    # Equal means leave a half-space less to see, and boosting less to read, though not nothing.
    assert parity.held_out.adversary < ordinary.held_out.adversary
    assert parity.held_out.auc < ordinary.held_out.auc
    for result in (ordinary, parity):
        assert result.held_out.auc_low <= result.held_out.auc <= result.held_out.auc_high
    assert ordinary.held_out.auc > ordinary.held_out.auc_random > 0.5
    assert 0 < ordinary.held_out.adversary_random < 0.5
    assert ordinary.held_out.mmd2 > ordinary.held_out.mmd2_random
    assert 0.5 < ordinary.held_out.accuracy <= 1
    for name in ("demographic_parity", "equal_opportunity", "equalized_odds"):
        assert 0 <= getattr(ordinary.held_out, name) <= 1
    assert balanced.certificate < 1e-9
    assert ordinary.certificate is None


def test_intervals_agree_with_refitting_nothing_but_rows(found, rows):
    """A plain bootstrap of the metric itself, with new moments in every resample."""
    X, groups, _ = rows
    rng = np.random.default_rng(0)
    result = found["PCA", 3]
    parts = [np.flatnonzero(groups == label) for label in "ab"]
    draws = []
    for _ in range(300):
        chosen = np.concatenate([rng.choice(part, len(part)) for part in parts])
        losses = reconstruction_loss(X[chosen], result.estimator, sensitive_features=groups[chosen])
        draws.append(losses[result.loss.worst])
    low, high = np.quantile(draws, [0.025, 0.975])
    ours = result.loss.by_group[result.loss.worst]
    assert ours.low == pytest.approx(low, rel=0.15)
    assert ours.high == pytest.approx(high, rel=0.15)


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    """Error of a fixed direction in a known population: 1 + 0.25."""
    axis, hits = np.eye(3)[:, :1], 0
    moments = GroupMoments((0, 1), np.array([60.0, 60.0]), np.zeros((2, 3)), 60 * np.stack([np.eye(3)] * 2))
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(120, 3)) * [3.0, 1.0, 0.5]
        groups = Groups((0, 1), np.repeat([0, 1], 60))
        figures = RowFigures(X, groups, moments, 1)
        own = figures.estimates([axis], 100, 0.95, seed)[0][0].by_group[0]
        hits += own.low <= 1.25 <= own.high
    assert 176 <= hits <= 198  # 190 expected; the bootstrap of 60 rows covers a little less


def test_gap_interval_reaches_below_zero_for_random_groups(rows):
    X = np.random.default_rng(5).normal(size=(400, 4))
    result = compare(X, np.arange(400) % 2, n_components=2, methods=["PCA"])["PCA", 2]
    assert result.error.gap.low < 0 < result.error.gap.high
    assert result.held_out.adversary <= 2 * result.held_out.adversary_random


def test_jobs_change_nothing(rows):
    X, groups, label = rows
    one, two = (compare(X, groups, label, n_components=[2], methods=["PCA"], n_jobs=jobs) for jobs in (1, 2))
    drop = lambda found: [{k: v for k, v in row.items() if k != "seconds"} for row in found.as_dict()["results"]]  # noqa: E731
    assert drop(one) == drop(two)


def test_plain_numbers_for_machines(found):
    text = json.dumps(found.as_dict(), allow_nan=False)
    again = json.loads(text)
    assert again["groups"] == {"a": 200, "b": 100}
    assert set(again["results"][0]["error"]["groups"]) == {"a", "b"}


def test_own_estimators_and_several_groups(rows):
    X, _, _ = rows
    groups = np.array([("x", "y", "z")[i % 3] for i in range(300)])
    own = {"plain": PCA(), "errors": FairPCA(criterion="error"), "robust": RobustFairPCA(penalty=0.3)}
    result = compare(X, groups, n_components=2, methods=own)
    assert result.methods == ["plain", "errors", "robust"]
    assert result["errors", 2].estimator.criterion == "error"
    assert result.groups == ("x", "y", "z")


def test_methods_that_do_not_fit_are_left_out_with_a_reason(rows):
    X, groups, _ = rows
    result = compare(X, groups, n_components=7, methods=["PCA", "ParityPCA"])
    assert result.methods == ["PCA"]
    assert result.omitted[0].startswith("ParityPCA with 7 components")


def test_mmd_fair_pca_is_fitted_on_a_sample_and_says_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 4)) * [2.0, 1.5, 1.0, 0.5]
    groups = np.arange(240) % 2
    X[groups == 1, 0] += 1.0
    result = compare(X, groups, n_components=2, methods=["PCA", "MMDFairPCA"])["MMDFairPCA", 2]
    assert any("Fitted on 168 of 240 rows" in note for note in result.notes)
    assert METHODS["MMDFairPCA"].max_rows == 700


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": ["Nonsense"]}, "'Nonsense' is unknown"),
        ({"methods": []}, "methods is empty"),
        ({"n_components": []}, "n_components is empty"),
        ({"n_components": [9]}, "must lie between 1 and"),
        ({"y": [1, 2]}, "one label a row"),
        ({"sensitive_features": ["a"] * 300}, "single group"),
    ],
)
def test_bad_calls(rows, change, message):
    X, groups, _ = rows
    arguments = {"sensitive_features": groups, "n_components": [1], "methods": ["PCA"]} | change
    with pytest.raises(ValueError, match=message):
        compare(X, **arguments)


def test_progress_counts_every_fit(rows):
    X, groups, _ = rows
    seen = []
    compare(X, groups, n_components=[1, 2], methods=["PCA", "FairPCA"], progress=lambda *step: seen.append(step))
    assert [step[0] for step in seen] == [0, 1, 2, 3, 4]
    assert all(step[1] == 4 for step in seen)


def test_moments_of_all_rows_replace_those_of_a_sample(rows):
    X, groups, _ = rows
    few = np.random.default_rng(0).permutation(300)[:150]
    moments = group_moments(X, groups)
    found = compare(X[few], groups[few], n_components=[2], methods=["PCA", "FairPCA"], moments=moments)
    whole = compare(X, groups, n_components=[2], methods=["PCA", "FairPCA"])
    assert (found.n_samples, found.n_sampled, found.counts) == (300, 150, (200, 100))
    for method in ("PCA", "FairPCA"):
        ours, theirs = found[method, 2], whole[method, 2]
        assert np.isclose(ours.explained_variance, theirs.explained_variance, rtol=1e-10)
        np.testing.assert_allclose(abs(ours.estimator.components_), abs(theirs.estimator.components_), atol=1e-7)
        for label in "ab":
            assert np.isclose(ours.loss.by_group[label].value, theirs.loss.by_group[label].value, atol=1e-9)
    for name, value in vars(whole["PCA", 2].estimator).items():
        if name.endswith("_") and isinstance(value, float | int | np.ndarray):
            np.testing.assert_allclose(
                np.abs(getattr(found["PCA", 2].estimator, name)), np.abs(value), rtol=1e-8, err_msg=name
            )
    with pytest.raises(ValueError, match="sample of the same rows"):
        compare(X[few, :5], groups[few], n_components=[2], moments=moments)


def test_labels_with_the_same_text_stay_apart(rows):
    X, groups, _ = rows
    labels = [1 if group == "a" else "1" for group in groups]
    found = compare(X, labels, n_components=2, methods=["PCA"], n_bootstrap=5)
    plain = json.loads(json.dumps(found.as_dict()))
    assert plain["groups"] == {"1": 200, "'1'": 100}
    assert set(plain["results"][0]["loss"]["groups"]) == {"1", "'1'"}


def test_default_dimensions_stop_at_the_number_of_features(rows):
    X, groups, _ = rows
    assert compare(X, groups, methods=["PCA"], n_bootstrap=5).dimensions == [1, 2, 3, 5]


def test_a_method_without_components_is_left_out_with_a_reason(rows):
    X, groups, _ = rows
    with pytest.raises(ValueError, match="KernelParityPCA, which has no components_"):
        compare(X, groups, n_components=2, methods={"kernel": KernelParityPCA()})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_bootstrap": 0}, "n_bootstrap must be an integer of at least 1"),
        ({"n_bootstrap": -1}, "n_bootstrap must be an integer of at least 1"),
        ({"n_components": 2.5}, r"n_components must be an integer, got 2\.5"),
    ],
)
def test_bad_numbers_are_named(rows, change, message):
    X, groups, _ = rows
    with pytest.raises((TypeError, ValueError), match=message):
        compare(X, groups, **{"n_components": 2, "methods": ["PCA"], **change})
