"""Decisions about held-out rows: all of them count, and nothing rests on a handful of rows without saying so."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca._validation import Groups
from fairpca.metrics import (
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
)
from fairpca.model_selection import compare
from fairpca.model_selection._held_out import HeldOutRows
from fairpca.moments._sources import MemorySource


def divided(X, codes, y, weights=None):
    return HeldOutRows(MemorySource(X, Groups((0, 1), codes), weights), y, None, test_size=0.3, seed=0)


def held_out(fitted, rows):
    """One method alone."""
    return rows.together([rows.measure(fitted)], 0.95, 1)[0]


@pytest.fixture
def labelled(rng):
    X, codes = rng.normal(size=(9000, 4)) * [3, 2, 1, 1], np.arange(9000) % 2
    return X, codes, (X[:, 0] + rng.normal(size=9000) > 1.0).astype(int)


def test_every_held_out_row_counts(labelled):
    X, codes, y = labelled
    split = divided(X, codes, y)
    found = held_out(PCA(2).fit(X[split.train]), split)
    rates = found.decisions.rates
    assert sum(rate.rows for rate in rates.selected.values()) == len(split.test) == 2700
    assert sum(rate.rows for rate in rates.true_positive.values()) == y[split.test].sum()
    assert found.baseline == pytest.approx(np.mean(y[split.test] == 0))
    assert found.accuracy > found.baseline


def test_measured_decisions_are_those_of_the_classifier(labelled):
    X, codes, y = labelled
    split = divided(X, codes, y)
    estimator = PCA(2).fit(X[split.train])
    found, scores = held_out(estimator, split), estimator.transform(X)
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    classifier.fit(scores[split.train], y[split.train])
    decided = classifier.predict(scores[split.test])
    assert found.accuracy == accuracy_score(y[split.test], decided)
    given, rates = {"sensitive_features": codes[split.test]}, found.decisions.rates
    assert rates.selected.gap == demographic_parity_difference(decided, **given)
    assert rates.true_positive.gap == equal_opportunity_difference(y[split.test], decided, **given)
    assert rates.equalized_odds.gap == equalized_odds_difference(y[split.test], decided, **given)


def test_too_few_rows_of_a_class_are_told_in_values_and_json(rng):
    X, groups = rng.normal(size=(400, 4)), np.repeat(["a", "b"], 200)
    y = np.r_[np.repeat(["no", "yes"], [192, 8]), np.tile(["no", "yes"], 100)]
    found = compare(X, sensitive_features=groups, y=y, methods=["PCA"], n_components=[2], n_permutations=19)
    held_out = found["PCA", 2].held_out
    assert not np.isnan(held_out.decisions.rates.selected.gap)
    assert np.isnan(held_out.decisions.rates.true_positive.gap)
    plain = json.loads(json.dumps(found.as_dict()))["results"][0]["held_out"]
    assert plain["decisions"]["positive"] == "yes"
    assert plain["decisions"]["differences"]["equal_opportunity"]["rows"] < 20
    assert plain["decisions"]["rates"]["true_positive"]["a"]["rows"] < 20
    assert plain["equal_opportunity"] is None


def test_weights_train_and_judge_the_classifier(labelled, rng):
    X, codes, y = labelled
    weights = rng.uniform(0.1, 3, len(X))
    split = divided(X, codes, y, weights)
    estimator = PCA(2).fit(X[split.train])
    found = held_out(estimator, split)
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
