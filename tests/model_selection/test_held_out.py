"""Decisions about held-out rows: all of them count, and nothing rests on a handful of rows without saying so."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import StandardScaler

from fairpca.metrics import demographic_parity_difference
from fairpca.model_selection import compare
from fairpca.model_selection._held_out import measure, split_rows, together


def held_out(fitted, X, codes, y, split, weights=None):
    """One method alone."""
    measured = measure(fitted, X, codes, y, split, seed=0, weights=weights)
    options = {"weights": weights, "clusters": None, "confidence": 0.95, "positive": 1}
    return together([measured], codes, y, split, **options)[0]


@pytest.fixture
def labelled(rng):
    X, codes = rng.normal(size=(9000, 4)) * [3, 2, 1, 1], np.arange(9000) % 2
    return X, codes, (X[:, 0] + rng.normal(size=9000) > 1.0).astype(int)


def test_every_held_out_row_counts(labelled):
    X, codes, y = labelled
    split = split_rows(codes, y, 0.3, seed=0)
    fitted = PCA(2).fit(X[split.train])
    found = held_out(fitted, X, codes, y, split)
    rates = found.decisions.rates
    assert sum(rate.rows for rate in rates.selected.values()) == len(split.test) == 2700
    assert sum(rate.rows for rate in rates.true_positive.values()) == y[split.test].sum()
    assert found.baseline == pytest.approx(np.mean(y[split.test] == 0))
    assert found.accuracy > found.baseline
    assert found.demographic_parity == rates.demographic_parity.value


def test_measured_decisions_are_those_of_the_classifier(labelled, monkeypatch):
    X, codes, y = labelled
    split, seen = split_rows(codes, y, 0.3, seed=0), {}

    def noted(truth, decision, *, sensitive_features, **options):
        seen.update(truth=truth, decision=decision, groups=sensitive_features)
        return original(truth, decision, sensitive_features=sensitive_features, **options)

    from fairpca.model_selection import _held_out

    original = _held_out.group_rates
    monkeypatch.setattr(_held_out, "group_rates", noted)
    found = held_out(PCA(2).fit(X[split.train]), X, codes, y, split)
    assert found.accuracy == accuracy_score(seen["truth"], seen["decision"])
    assert found.demographic_parity == demographic_parity_difference(
        seen["decision"], sensitive_features=seen["groups"]
    )


def test_too_few_rows_of_a_class_are_told_in_values_and_json(rng):
    X, groups = rng.normal(size=(400, 4)), np.repeat(["a", "b"], 200)
    y = np.r_[np.repeat(["no", "yes"], [192, 8]), np.tile(["no", "yes"], 100)]
    found = compare(X, sensitive_features=groups, y=y, methods=["PCA"], n_components=[2], n_permutations=19)
    held_out = found["PCA", 2].held_out
    assert held_out.demographic_parity is not None
    assert held_out.equal_opportunity is None
    plain = json.loads(json.dumps(found.as_dict()))["results"][0]["held_out"]
    assert plain["decisions"]["positive"] == "yes"
    assert plain["decisions"]["differences"]["equal_opportunity"]["rows"] < 20
    assert plain["decisions"]["rates"]["true_positive"]["a"]["rows"] < 20
    assert plain["equal_opportunity"] is None


def test_weights_train_and_judge_the_classifier(labelled, rng):
    X, codes, y = labelled
    split, weights = split_rows(codes, y, 0.3, seed=0), rng.uniform(0.1, 3, len(X))
    estimator = PCA(2).fit(X[split.train])
    found = held_out(estimator, X, codes, y, split, weights)
    scores, trained = estimator.transform(X), weights[split.train]
    scaler = StandardScaler().fit(scores[split.train], sample_weight=trained)
    classifier = LogisticRegression(max_iter=1000)
    classifier.fit(scaler.transform(scores[split.train]), y[split.train], sample_weight=trained)
    decided = classifier.predict_proba(scaler.transform(scores[split.test]))
    predicted = classifier.classes_[decided.argmax(axis=1)]
    assert found.accuracy == pytest.approx(
        accuracy_score(y[split.test], predicted, sample_weight=weights[split.test]), abs=1e-12
    )
    rates = found.decisions.rates.selected
    positive = predicted == classifier.classes_[-1]
    for code, rate in rates.items():
        rows = codes[split.test] == code
        assert rate.value == pytest.approx(np.average(positive[rows], weights=weights[split.test][rows]))
