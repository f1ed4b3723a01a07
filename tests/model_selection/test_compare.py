"""Methods side by side: values agree with the metrics and with inference."""

from __future__ import annotations

import io
import json
import re
import sys
import types
from html import unescape

import numpy as np
import pytest
from sklearn.decomposition import PCA, TruncatedSVD

from fairpca import FairPCA, KernelParityPCA, RobustFairPCA
from fairpca._display import number
from fairpca._progress import Progress
from fairpca.inference import cross_validate_groups, loss_test
from fairpca.metrics import explained_variance_ratio, reconstruction_error, reconstruction_loss
from fairpca.model_selection import METHODS, compare
from fairpca.model_selection._study import Study
from fairpca.model_selection.methods import choose_methods
from fairpca.moments import group_moments

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
    return compare(X, sensitive_features=groups, y=label, n_components=[1, 3], methods=CHEAP)


def test_values_are_those_of_the_metrics_and_of_inference(found, rows):
    X, groups, _ = rows
    assert [(r.method, r.n_components) for r in found.results] == [(m, d) for d in (1, 3) for m in CHEAP]
    for result in found.results:
        errors = reconstruction_error(X, result.estimator, sensitive_features=groups)
        losses = reconstruction_loss(X, result.estimator, sensitive_features=groups)
        assert dict(result.new_rows.sample_error) == pytest.approx(dict(errors))
        for label in "ab":
            assert result.loss.by_group[label].value == pytest.approx(losses[label], abs=1e-10)
        assert result.loss.overall == pytest.approx(losses.overall, abs=1e-9)
        assert result.explained_variance == pytest.approx(explained_variance_ratio(X, result.estimator))
    own = cross_validate_groups(FairPCA(3), X, sensitive_features=groups, random_state=0)
    ours = found["FairPCA", 3].new_rows
    assert ours.corrected_loss.gap.low == pytest.approx(own.corrected_loss.gap.low)
    assert ours.change.by_group["a"].value == pytest.approx(own.change.by_group["a"].value)
    test = loss_test(X, sensitive_features=groups, n_components=[1, 3], random_state=0)
    assert found.test.by_group == test.by_group
    assert found.expected_losses[3]["a"] == test[3].by_group["a"].expected


def test_what_each_method_promises_shows(found):
    ordinary, balanced, robust, parity = (found[name, 3] for name in CHEAP)
    worst = lambda result: max(e.value for e in result.loss.by_group.values())  # noqa: E731
    assert worst(balanced) < worst(ordinary)
    assert balanced.loss.gap.value < 1e-9
    sample_gap = lambda result: np.ptp(list(result.new_rows.sample_error.values()))  # noqa: E731
    assert sample_gap(robust) < sample_gap(ordinary)
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
    for values in ordinary.held_out.decisions.rates.differences.values():
        assert np.isnan(values.gap) == (values.gap.rows < 20)
    assert balanced.certificate < 1e-9
    assert ordinary.certificate is None


def test_methods_that_need_rows_are_judged_on_the_held_out_part(rows):
    """One division instead of folds: the same values as by hand."""
    X, groups, _ = rows
    own = {"PCA": PCA(), "svd": TruncatedSVD()}
    study = Study(X, groups, None, clusters=None, n_folds=10, test_size=0.3, seed=0, moments=None)
    result = compare(X, sensitive_features=groups, n_components=2, methods=own)["svd", 2]
    train, test = study.held_out_rows.train, study.held_out_rows.test
    fitted = TruncatedSVD(2).fit(X[train])
    residual = X[test] - fitted.inverse_transform(fitted.transform(X[test]))
    errors = (residual**2).sum(axis=1)
    assert result.new_rows.n_folds == 1
    for label in "ab":
        assert result.error.by_group[label].value == pytest.approx(errors[groups[test] == label].mean(), rel=1e-4)
    ordinary = PCA(2).fit(X[train])
    rest = X[test] - ordinary.inverse_transform(ordinary.transform(X[test]))
    change = errors - (rest**2).sum(axis=1)
    assert result.change.by_group["a"].value == pytest.approx(change[groups[test] == "a"].mean(), rel=1e-3)


def test_random_groups_are_called_random(rows):
    X = np.random.default_rng(5).normal(size=(400, 4))
    found = compare(X, sensitive_features=np.arange(400) % 2, n_components=2, methods=["PCA"])
    result = found["PCA", 2]
    assert result.error.gap.low < 0 < result.error.gap.high
    assert not result.new_rows.claimed
    assert not found.claims
    assert not found.test.rejected
    assert found.as_dict()["results"][0]["chance"]["claimed"] is False
    assert result.held_out.adversary <= 2 * result.held_out.adversary_random


def test_clusters_are_permuted_and_stay_together(rng):
    persons = np.repeat(np.arange(60), 4)
    X = rng.normal(size=(60, 4))[persons] + 0.05 * rng.normal(size=(240, 4))
    groups = (np.arange(60) % 3 == 0)[persons]
    found = compare(X, sensitive_features=groups, n_components=2, methods=["PCA"], clusters=persons, n_permutations=99)
    assert found.test.unit == "clusters"
    held_out = json.loads(json.dumps(found.as_dict(), allow_nan=False))["results"][0]["held_out"]
    assert held_out["mmd2_random"] is None  # shuffled rows say nothing about persons
    assert held_out["adversary_random"] > 0
    assert found.test.p_value > 0.05
    plain = compare(X, sensitive_features=groups, n_components=2, methods=["PCA"], n_permutations=99)
    assert plain.test.rejected  # rows of the same person, taken for independent
    study = Study(X, groups, None, clusters=persons, n_folds=10, test_size=0.3, seed=0, moments=None)
    assert not set(persons[study.held_out_rows.train]) & set(persons[study.held_out_rows.test])


def test_no_p_value_without_identities(rows):
    X, groups, _ = rows
    found = compare(X, sensitive_features=groups, n_components=2, methods=["PCA"], repeated_rows=True)
    assert found.test is None
    assert found.as_dict()["results"][0]["chance"] == {"p_value": None, "claimed": False, "groups": {}}
    assert found.expected_losses[2]["b"] > 0


def test_a_small_group_of_the_same_rows_is_not_claimed(rng):
    X = rng.normal(size=(200, 12))
    groups = np.where(np.arange(200) < 11, "few", "many")
    found = compare(X, sensitive_features=groups, n_components=2, methods=["PCA"], n_permutations=19)
    new_rows = found["PCA", 2].new_rows
    assert not new_rows.claimed
    assert "Fewer rows than the 12 features: “few” (11)" in new_rows.remarks[0]


def test_frame_and_html(found):
    frame = found.to_frame()
    assert len(frame) == 2 * len(found.results)
    assert {"method", "n_components", "group", "error", "corrected_loss_low", "change_high"} <= set(frame.columns)
    assert "<table>" in found._repr_html_()
    for claim in found.claims:
        assert claim.text in repr(found)


def test_jobs_change_nothing(rows):
    X, groups, label = rows
    one, two = (
        compare(X, sensitive_features=groups, y=label, n_components=[2], methods=["PCA"], n_jobs=jobs)
        for jobs in (1, 2)
    )
    assert one.as_dict() == two.as_dict()


def test_plain_numbers_for_machines(found):
    text = json.dumps(found.as_dict(), allow_nan=False)
    again = json.loads(text)
    assert again["groups"] == {"a": 200, "b": 100}
    assert set(again["results"][0]["error"]["groups"]) == {"a", "b"}
    assert [claim["text"] for claim in again["claims"]] == [claim.text for claim in found.claims]


def test_all_claims_of_a_kind_hold_together(found):
    """What several methods and numbers of components state together needs longer intervals than each alone."""
    for result in found.results:
        for name in ("error", "corrected_loss"):
            gap = getattr(result, name).gap
            assert gap.joint_low < gap.low or gap == 0
        for one in result.change.values():
            assert one.joint_low < one.low or one == 0
    kinds = {claim.kind for claim in found.claims}
    assert {"chance", "losses", "readable"} <= kinds
    for claim in found.of_kind("change"):
        change = found[claim.method, claim.n_components].change[claim.groups[0]]
        assert (claim.low, claim.high) == (change.joint_low, change.joint_high)
    assert found.claims == tuple(
        claim for kind in dict.fromkeys(c.kind for c in found.claims) for claim in found.of_kind(kind)
    )


def test_a_number_that_keeps_everything_is_not_judged(rng):
    X, groups = rng.normal(size=(200, 3)), np.arange(200) % 2
    by_default = compare(X, sensitive_features=groups, methods=["PCA", "FairPCA"], n_permutations=19)
    assert by_default.dimensions == [1, 2]
    named = compare(X, sensitive_features=groups, n_components=[2, 3], methods=["PCA", "FairPCA"], n_permutations=19)
    assert not [
        claim for claim in named.claims if claim.n_components == 3 and claim.kind in ("losses", "errors", "change")
    ]
    assert named["PCA", 3].new_rows.sentence == "PCA with 3 components keeps everything."


def test_rows_of_unknown_persons_support_no_claim(rows):
    X, groups, label = rows
    found = compare(
        X, sensitive_features=groups, y=label, n_components=2, methods=["PCA", "FairPCA"], repeated_rows=True
    )
    assert found.claims == ()


def test_own_estimators_and_several_groups(rows):
    X, _, _ = rows
    groups = np.array([("x", "y", "z")[i % 3] for i in range(300)])
    own = {"plain": PCA(), "errors": FairPCA(criterion="error"), "robust": RobustFairPCA(penalty=0.3)}
    result = compare(X, sensitive_features=groups, n_components=2, methods=own)
    assert result.methods == ["plain", "errors", "robust"]
    assert result["errors", 2].estimator.criterion == "error"
    assert result.groups == ("x", "y", "z")


def test_methods_that_do_not_fit_are_left_out_with_a_reason(rows):
    X, groups, _ = rows
    result = compare(X, sensitive_features=groups, n_components=7, methods=["PCA", "ParityPCA"])
    assert result.methods == ["PCA"]
    assert result.omitted[0].startswith("ParityPCA with 7 components")


def test_mmd_fair_pca_is_fitted_on_a_sample_and_says_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 4)) * [2.0, 1.5, 1.0, 0.5]
    groups = np.arange(240) % 2
    X[groups == 1, 0] += 1.0
    result = compare(X, sensitive_features=groups, n_components=2, methods=["PCA", "MMDFairPCA"])["MMDFairPCA", 2]
    assert any("Fitted on 168 of 240 rows" in note for note in result.notes)
    assert METHODS["MMDFairPCA"].max_rows == 700


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": ["Nonsense"]}, "'Nonsense' is unknown"),
        ({"methods": []}, "methods is empty"),
        ({"n_components": []}, "n_components is empty"),
        ({"n_components": [9]}, "must lie between 1 and"),
        ({"y": [1, 2]}, "one label per row"),
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
    compare(
        X,
        sensitive_features=groups,
        n_components=[1, 2],
        methods=["PCA", "FairPCA"],
        progress=lambda *step: seen.append(step),
    )
    assert [step[0] for step in seen] == [0, 1, 2, 3, 4, 5, 6]  # the test, the features, and four fits
    assert all(step[1] == 6 for step in seen)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "progress", "shown"),
    [(Terminal(), True, True), (Terminal(), None, True), (Terminal(), False, False), (io.StringIO(), None, False)],
    ids=["asked for", "by default", "not wanted", "no terminal"],
)
def test_a_bar_is_shown_on_a_terminal(rows, monkeypatch, stream, progress, shown):
    X, groups, _ = rows
    monkeypatch.setattr("sys.stderr", stream)
    compare(X, sensitive_features=groups, n_components=1, methods=["PCA"], n_permutations=19, progress=progress)
    assert ("3/3" in stream.getvalue()) == shown


def test_a_bar_is_shown_in_a_notebook(monkeypatch):
    kernel = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: kernel))
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    with Progress() as bar:
        bar(1, 2, "fits")
    assert "1/2" in stream.getvalue()
    assert "\033" not in stream.getvalue()  # not a terminal: no control sequences
    assert stream.getvalue().endswith("\r")


@pytest.mark.parametrize("n_features", [7, 30])
def test_a_fit_that_starts_from_fewer_components_finds_as_much_variance(n_features, rng):
    """The same tolerance holds, and no variance is lost against a fit by itself, but for local optima."""
    X, groups = rng.normal(size=(300, n_features)) * np.linspace(2, 1, n_features), np.repeat(["a", "b"], 150)
    X[groups == "a", :3] += 1.0
    several = compare(
        X, sensitive_features=groups, n_components=[1, 2], methods=["PCA", "MMDFairPCA"], n_permutations=19
    )
    alone = compare(X, sensitive_features=groups, n_components=[2], methods=["PCA", "MMDFairPCA"], n_permutations=19)
    started, found = (one["MMDFairPCA", 2].estimator for one in (several, alone))
    assert started.mmd2_ <= started.tolerance_
    assert started.explained_variance_ratio_.sum() >= 0.98 * found.explained_variance_ratio_.sum()


def test_moments_of_all_rows_replace_those_of_a_sample(rows):
    X, groups, _ = rows
    few = np.random.default_rng(0).permutation(300)[:150]
    moments = group_moments(X, sensitive_features=groups)
    found = compare(
        X[few], sensitive_features=groups[few], n_components=[2], methods=["PCA", "FairPCA"], moments=moments
    )
    whole = compare(X, sensitive_features=groups, n_components=[2], methods=["PCA", "FairPCA"])
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
        compare(X[few, :5], sensitive_features=groups[few], n_components=[2], moments=moments)


def test_labels_with_the_same_text_stay_apart(rows):
    X, groups, _ = rows
    labels = [1 if group == "a" else "1" for group in groups]
    found = compare(X, sensitive_features=labels, n_components=2, methods=["PCA"])
    plain = json.loads(json.dumps(found.as_dict()))
    assert plain["groups"] == {"1": 200, "'1'": 100}
    assert set(plain["results"][0]["loss"]["groups"]) == {"1", "'1'"}


def test_default_dimensions_stop_at_the_number_of_features(rows):
    X, groups, _ = rows
    assert compare(X, sensitive_features=groups, methods=["PCA"]).dimensions == [1, 2, 3, 5]


def test_a_method_without_components_is_left_out_with_a_reason(rows):
    X, groups, _ = rows
    with pytest.raises(ValueError, match="KernelParityPCA, which has no components_"):
        compare(X, sensitive_features=groups, n_components=2, methods={"kernel": KernelParityPCA()})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_permutations": 0}, "n_permutations must be an integer of at least 19"),
        ({"cv": 1}, "cv must be an integer of at least 2"),
        ({"n_components": 2.5}, r"n_components must be an integer, got 2\.5"),
    ],
)
def test_bad_numbers_are_named(rows, change, message):
    X, groups, _ = rows
    with pytest.raises((TypeError, ValueError), match=message):
        compare(X, sensitive_features=groups, **{"n_components": 2, "methods": ["PCA"], **change})


def test_rows_that_do_not_vary_are_kept_whole():
    found = compare(
        np.zeros((60, 4)), sensitive_features=np.arange(60) % 2, n_components=2, methods=["PCA"], n_permutations=19
    )
    assert found["PCA", 2].explained_variance == 1.0


def test_confidence_folds_and_held_out_share(two_groups):
    X, groups = two_groups
    options = {"n_components": 2, "methods": ["PCA"], "n_permutations": 19}
    narrow = compare(X, sensitive_features=groups, confidence=0.5, cv=4, test_size=0.2, **options)
    wide = compare(X, sensitive_features=groups, confidence=0.99, cv=4, test_size=0.5, **options)
    for found, size in ((narrow, 0.2), (wide, 0.5)):
        assert found.settings["test_size"] == size
        assert found["PCA", 2].new_rows.n_folds == 4
    first, second = (found["PCA", 2].error.by_group["a"] for found in (narrow, wide))
    assert first.value == second.value
    assert second.high - second.low > 2 * (first.high - first.low)


def test_relative_losses_are_balanced_on_request_and_certified_in_their_own_units(two_groups):
    X, groups = two_groups
    X = np.where(groups == "a", 20.0, 1.0)[:, None] * X
    assert "FairPCA-relative" in METHODS
    assert "FairPCA-relative" not in [method.name for method in choose_methods(None)]
    found = compare(
        X, sensitive_features=groups, n_components=2, methods=["PCA", "FairPCA-relative"], n_permutations=19
    )
    result = found["FairPCA-relative", 2]
    assert np.isclose(*(result.estimator.group_losses_ / result.estimator.group_variances_))
    assert np.isclose(result.certificate, result.objective - result.lower_bound, atol=0)


def test_weights_reach_fits_losses_variance_and_tests(rng):
    X, groups = rng.normal(size=(200, 4)) * [3, 2, 1, 1], np.repeat(["a", "b"], 100)
    X[groups == "b"] = X[groups == "b"] @ np.diag([1, 2, 2, 1])
    weights = rng.integers(1, 5, 200).astype(float)
    options = {"n_components": 2, "methods": ["PCA", "FairPCA"], "n_permutations": 19}
    found = compare(X, sensitive_features=groups, sample_weight=weights, **options)
    rows = np.repeat(np.arange(200), weights.astype(int))
    repeated = compare(X[rows], sensitive_features=groups[rows], **options)
    assert found.counts == (100, 100)
    assert found.settings["weights"]
    for method in ("PCA", "FairPCA"):
        ours, theirs = found[method, 2], repeated[method, 2]
        np.testing.assert_allclose(ours.estimator.components_, theirs.estimator.components_, atol=1e-6)
        assert ours.explained_variance == pytest.approx(theirs.explained_variance)
        for label in "ab":
            assert ours.loss.by_group[label].value == pytest.approx(theirs.loss.by_group[label].value, abs=1e-9)
    test = loss_test(
        X, sensitive_features=groups, n_components=[2], sample_weight=weights, n_permutations=19, random_state=0
    )
    assert found.test[2] == test[2]
    assert found.expected_losses[2] == {label: one.expected for label, one in test[2].by_group.items()}


def test_rows_of_weight_zero_do_not_count(rng):
    X, groups, y = rng.normal(size=(200, 4)), np.repeat(["a", "b"], 100), rng.integers(0, 2, 200)
    weights = np.where(np.arange(200) % 5 == 0, 0.0, 1.0)
    kept = weights > 0
    options = {"n_components": 2, "methods": ["PCA"], "n_permutations": 19}
    weighted, plain = (
        compare(X, sensitive_features=groups, y=y, sample_weight=weights, **options),
        compare(X[kept], sensitive_features=groups[kept], y=y[kept], **options),
    )
    assert weighted.counts == plain.counts
    for name in ("loss", "corrected_loss", "error"):
        ours, theirs = (getattr(one["PCA", 2], name).by_group["a"].value for one in (weighted, plain))
        assert ours == pytest.approx(theirs)


def test_methods_that_compare_rows_take_weights(rng):
    X, groups = rng.normal(size=(80, 3)), np.repeat(["a", "b"], 40)
    weights = rng.uniform(0.5, 2, 80)
    options = {"n_components": 1, "methods": ["MMDFairPCA"], "n_permutations": 19}
    weighted, plain = (
        compare(X, sensitive_features=groups, sample_weight=weights, **options),
        compare(X, sensitive_features=groups, **options),
    )
    assert weighted.omitted == []
    mean = weighted["MMDFairPCA", 1].estimator.mean_
    assert np.abs(mean - plain["MMDFairPCA", 1].estimator.mean_).max() > 1e-3


def test_weights_and_moments_exclude_each_other(rng):
    X, groups = rng.normal(size=(60, 3)), np.repeat(["a", "b"], 30)
    with pytest.raises(ValueError, match="sample_weight cannot be combined with moments"):
        compare(
            X, sensitive_features=groups, sample_weight=np.ones(60), moments=group_moments(X, sensitive_features=groups)
        )


@pytest.fixture(scope="module")
def served_otherwise():
    """Group a has larger errors whatever is kept; the direction that lowers them is not the one of all rows."""
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b"], 300)
    spread = np.where(groups[:, None] == "a", [2.0, 0.0, *[1.0] * 6], [0.0, 2.24, *[0.0] * 6])
    return rng.normal(size=(600, 8)) * spread, groups


def test_a_gap_of_losses_that_is_reversed_or_widened_is_told_with_its_numbers(served_otherwise):
    """RobustFairPCA penalises the difference of errors; that of losses may grow or change its sign."""
    X, groups = served_otherwise
    names = ["RobustFairPCA", "FairPCA", "ParityPCA"]  # ordinary PCA need not be among them
    compared = compare(X, sensitive_features=groups, n_components=1, methods=names, n_permutations=19)
    robust, ordinary = compared["RobustFairPCA", 1], PCA(1).fit(X)
    before = reconstruction_loss(X, ordinary, sensitive_features=groups)
    assert before["a"] > before["b"]
    assert robust.loss["b"] > robust.loss["a"]
    assert robust.loss.gap > before.gap
    remark = robust.gap_remark
    assert remark.startswith("It reverses and widens the gap of losses in the sample")
    for label in "ab":
        assert f"“{label}” {number(robust.loss[label])}, by ordinary PCA {number(before[label])}" in remark
    for surface in (repr(compared), compared._repr_html_(), json.dumps(compared.as_dict(), ensure_ascii=False)):
        assert remark in unescape(surface)
    for name in ("FairPCA", "ParityPCA"):
        assert not compared[name, 1].gap_remark


def test_results_that_say_nothing_are_left_out_of_the_table_with_a_remark():
    rng, groups = np.random.default_rng(0), np.arange(200) % 2
    X = np.outer(groups, [1e3, 1e3, 1e3, 0.0]) + rng.normal(size=(200, 4))
    compared = compare(X, sensitive_features=groups, n_components=[1, 4], methods=["PCA", "ParityPCA"],
                       n_permutations=19)  # fmt: skip
    assert [(one.method, one.n_components) for one in compared.shown] == [("PCA", 1)]
    table = [line for line in repr(compared).splitlines() if re.match(r"(PCA|ParityPCA) +\d", line)]
    assert len(table) == 2  # two groups of one result
    assert "ParityPCA with 1 component keeps 0.0% of the variance, so nothing is compared." in repr(compared)
    assert "PCA with 4 components keeps everything, so nothing is compared." in compared._repr_html_()
    assert len(compared.results) == 3
