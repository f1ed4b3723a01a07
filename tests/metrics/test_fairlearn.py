"""Metrics that fairlearn has, too: the same values for a classifier's decisions on German credit and Adult."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import fairpca.metrics
from fairpca import LeacePCA, ParityPCA
from fairpca.datasets import load_german_credit
from fairpca.metrics import demographic_parity_difference, group_rates

fairlearn = pytest.importorskip("fairlearn.metrics")

SHARED = ("demographic_parity_difference", "equal_opportunity_difference", "equalized_odds_difference")


@pytest.fixture(scope="module")
def german():
    data = load_german_credit()
    return data.data, data.target, pd.DataFrame({"sex": data.sensitive_features})


@pytest.fixture(scope="module")
def adult(shared_data):
    """All rows of both files: the numeric columns, whether income exceeds 50K, sex and race."""
    names = ["age", "1", "2", "3", "education", "5", "6", "7", "race", "sex", "gain", "loss", "hours", "13", "income"]
    parts = [
        pd.read_csv(shared_data / "uci" / file, names=names, skipinitialspace=True, comment="|")
        for file in ("adult.data", "adult.test")
    ]
    table = pd.concat(parts, ignore_index=True)
    assert len(table) == 48842
    features = table[["age", "education", "gain", "loss", "hours"]].to_numpy(dtype=float)
    return features, table["income"].str.startswith(">").to_numpy(dtype=int), table[["sex", "race"]]


@pytest.fixture(scope="module", params=["german", "adult"])
def decisions(request):
    """Labels, decisions and groups of every second row; scores and classifier have seen the others."""
    X, y, groups = request.getfixturevalue(request.param)
    train, test = slice(0, None, 2), slice(1, None, 2)
    X = StandardScaler().fit(X[train]).transform(X)
    pca = ParityPCA(3).fit(X[train], sensitive_features=groups["sex"][train])
    classifier = LogisticRegression(max_iter=1000).fit(pca.transform(X[train]), y[train])
    return y[test], classifier.predict(pca.transform(X[test])), groups[test].reset_index(drop=True)


def test_every_shared_metric_is_compared():
    shared = set(fairpca.metrics.__all__) & set(fairlearn.__all__)
    assert shared == set(SHARED)


@pytest.mark.parametrize("name", SHARED)
def test_values_are_those_of_fairlearn(decisions, name):
    y_true, y_pred, groups = decisions
    ours, theirs = getattr(fairpca.metrics, name), getattr(fairlearn, name)
    weights = 0.5 + np.arange(len(y_true)) % 3
    cases = [(groups["sex"], None), (groups["sex"], weights), (groups, None)]  # the last: sex and race of Adult
    for sensitive, sample_weight in cases:
        call = {"sensitive_features": sensitive, "sample_weight": sample_weight}
        expected = theirs(y_true, y_pred, **call)
        assert ours(y_true, y_pred, **call) == pytest.approx(expected, abs=1e-12)
        assert expected > 1e-4  # there is something to compare


def test_predictions_alone_are_enough(decisions):
    """The earlier form of the call, without true labels, which demographic parity does not use."""
    y_true, y_pred, groups = decisions
    expected = fairlearn.demographic_parity_difference(y_true, y_pred, sensitive_features=groups["sex"])
    assert demographic_parity_difference(y_pred, sensitive_features=groups["sex"]) == pytest.approx(expected, abs=1e-12)
    assert demographic_parity_difference(y_pred=y_pred, sensitive_features=groups["sex"]) == pytest.approx(expected)


def test_rates_by_group_are_those_of_a_metric_frame(decisions):
    y_true, y_pred, groups = decisions
    rates = group_rates(y_true, y_pred, sensitive_features=groups["sex"])
    metrics = {
        "selected": fairlearn.selection_rate,
        "true_positive": fairlearn.true_positive_rate,
        "false_positive": fairlearn.false_positive_rate,
    }
    frame = fairlearn.MetricFrame(metrics=metrics, y_true=y_true, y_pred=y_pred, sensitive_features=groups["sex"])
    for name in metrics:
        for label, rate in getattr(rates, name).items():
            assert rate.value == pytest.approx(frame.by_group.loc[label, name], abs=1e-12)


def test_row_errors_in_a_metric_frame(german):
    X, y, groups = german
    pca = LeacePCA(5).fit(X, sensitive_features=groups["sex"])
    frame = fairlearn.MetricFrame(
        metrics={"error": fairlearn.mean_prediction, "rows": fairlearn.count},
        y_true=y,
        y_pred=-pca.score_samples(X),
        sensitive_features=groups["sex"],
    )
    assert frame.by_group["error"].to_dict() == pytest.approx(dict(zip(pca.groups_, pca.group_errors_, strict=True)))
    assert frame.by_group["rows"].to_dict() == dict(zip(pca.groups_, pca.group_counts_, strict=True))
    assert frame.overall["error"] == pytest.approx(-pca.score(X))


def test_the_recipes_of_the_docs_run(capsys):
    page = Path(__file__).parents[2] / "docs" / "fairlearn.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    names: dict = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    assert len(blocks) == 3
    assert "error" in capsys.readouterr().out
    errors, pca = names["frame"].by_group, names["pca"]
    weighted = (errors["error"] * errors["rows"]).groupby("sex").sum() / errors["rows"].groupby("sex").sum()
    assert weighted.to_dict() == pytest.approx(dict(zip(pca.groups_, pca.group_errors_, strict=True)))
