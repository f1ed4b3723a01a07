"""Features that give the group away are named, and random groups name none."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from fairpca._validation import Groups
from fairpca.datasets import load_german_credit
from fairpca.metrics import proxies
from fairpca.metrics.readability import _odds


def test_auc_of_an_indicator_is_that_of_its_shares(rng):
    groups = np.repeat([0, 1], [300, 200])
    husband = np.where(groups == 1, rng.random(500) < 0.7, rng.random(500) < 0.1).astype(float)
    other = rng.random(500)
    train = (np.column_stack([other, husband]), groups)
    found = proxies(
        np.column_stack([other, husband]), sensitive_features=groups, train=train, feature_names=["other", "husband"]
    )
    strongest = found.readings[0]
    assert strongest.by == "husband"
    assert strongest.auc == pytest.approx(roc_auc_score(groups, husband))
    assert strongest.low < strongest.auc < strongest.high


def test_what_is_not_monotone_is_read_too(rng):
    groups = np.arange(2000) % 2
    X = np.where(groups == 1, rng.normal(size=2000) * 3, rng.normal(size=2000))[:, None]
    assert abs(roc_auc_score(groups, X[:, 0]) - 0.5) < 0.05
    assert proxies(X, sensitive_features=groups).readings[0].auc > 0.7


def test_random_groups_name_a_feature_in_one_of_twenty_cases(rng):
    X, sex = load_german_credit(return_X_s=True)
    named = sum(
        bool(proxies(X, sensitive_features=rng.permutation(sex), random_state=seed).found) for seed in range(100)
    )
    assert named <= 12  # 5 are expected; 13 or more of 100 happen once in a thousand times


def test_many_groups_are_read_against_the_rest(rng):
    groups = rng.integers(0, 6, 1200)
    X = np.column_stack([rng.normal(size=1200), (groups == 3) + 0.3 * rng.normal(size=1200)])
    strongest = proxies(X, sensitive_features=groups).readings[0]
    assert strongest.by == "x1"
    assert strongest.groups == (3, "rest")


def test_names_of_a_frame_and_wrong_names(rng):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(rng.normal(size=(60, 2)), columns=["age", "height"])
    groups = np.arange(60) % 2
    assert {one.by for one in proxies(X, sensitive_features=groups).readings} == {"age", "height"}
    with pytest.raises(ValueError, match="feature_names has 1 names, but X has 2 features"):
        proxies(X, sensitive_features=groups, feature_names=["age"])


def test_rows_of_a_person_stay_on_one_side(rng):
    """A code per person is no proxy: it cannot be counted on other persons."""
    people = np.repeat(np.arange(80), 5)
    groups = np.repeat(rng.integers(0, 2, 80), 5)
    code = rng.normal(size=80)[people][:, None]
    assert not proxies(code, sensitive_features=groups, clusters=people).found
    assert proxies(code, sensitive_features=groups).found


def test_a_value_that_neither_group_has_says_nothing_whatever_their_sizes():
    groups = Groups(("few", "many", "others"), np.repeat([0, 1, 2], [30, 300, 20]))
    contrast, odds = next(_odds(np.repeat([0.0, 9.0], [330, 20]), groups, np.array([0.0, 9.0])))
    assert contrast == (0, 1)
    assert odds == pytest.approx([1.0, 1.0])


def test_the_group_may_be_a_column_and_names_may_repeat(rng):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": rng.normal(size=80), "sex": np.arange(80) % 2, "height": rng.normal(size=80)})
    assert {one.by for one in proxies(frame, sensitive_features="sex").readings} == {"age", "height"}
    same = proxies(frame[["age", "height"]], sensitive_features=frame["sex"], feature_names=["x", "x"])
    assert [one.by for one in same.readings] == ["x", "x"]
    assert same.readings[0].auc > same.readings[1].auc
