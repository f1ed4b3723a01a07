"""Differences between groups in predictions, counted by hand."""

import numpy as np
import pytest

from fairpca.metrics import (
    communality,
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
)

GROUPS = ["a"] * 4 + ["b"] * 5
TRUE = [1, 1, 0, 0, 1, 1, 1, 0, 0]
PRED = [1, 0, 1, 0, 1, 1, 0, 0, 0]


def test_by_hand():
    assert demographic_parity_difference(PRED, sensitive_features=GROUPS) == pytest.approx(2 / 4 - 2 / 5)
    assert equal_opportunity_difference(TRUE, PRED, sensitive_features=GROUPS) == pytest.approx(2 / 3 - 1 / 2)
    assert equalized_odds_difference(TRUE, PRED, sensitive_features=GROUPS) == pytest.approx(1 / 2)


def test_largest_over_several_groups_and_weights():
    groups = [0, 0, 1, 1, 2, 2]
    predictions = [1, 1, 1, 0, 0, 0]
    assert demographic_parity_difference(predictions, sensitive_features=groups) == 1.0
    weights = [1, 1, 3, 1, 1, 1]
    two = demographic_parity_difference(predictions[:4], sensitive_features=groups[:4], sample_weight=weights[:4])
    assert two == pytest.approx(1 - 3 / 4)


def test_probabilities_and_booleans():
    assert demographic_parity_difference([0.2, 0.4, 0.9], sensitive_features=[0, 0, 1]) == pytest.approx(0.6)
    assert demographic_parity_difference(np.array([True, False]), sensitive_features=[0, 1]) == 1.0


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match=r"y_pred must lie in \[0, 1\]"):
        demographic_parity_difference([1, 2], sensitive_features=[0, 1])
    with pytest.raises(ValueError, match="y_true must consist of 0 and 1"):
        equal_opportunity_difference([0.5, 1], [1, 1], sensitive_features=[0, 1])
    with pytest.raises(ValueError, match="Group 'b' has no row"):
        equal_opportunity_difference([1, 0], [1, 1], sensitive_features=["a", "b"])
    with pytest.raises(ValueError, match="y_true has 3 rows and y_pred 2"):
        equalized_odds_difference([1, 0, 1], [1, 1], sensitive_features=["a", "b"])
    with pytest.raises(ValueError, match="sensitive_features is required"):
        demographic_parity_difference([1, 0], sensitive_features=None)


def test_communality_is_the_diagonal_of_the_projector():
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 3)))[0]
    values = communality(basis.T)
    assert values == pytest.approx(np.diag(basis @ basis.T))
    assert values.sum() == pytest.approx(3)

    class Fitted:
        components_ = basis.T

    assert (communality(Fitted()) == values).all()
    with pytest.raises(ValueError, match="projector has 1 dimensions"):
        communality(basis[:, 0])


def test_groups_of_zero_weight_are_ignored():
    y, predictions, groups = [1, 0, 1, 0, 1], [1, 0, 0, 0, 1], ["a", "a", "b", "b", "c"]
    weights = [1, 1, 1, 1, 0]
    few = {"sensitive_features": groups[:4]}
    all_rows = {"sensitive_features": groups, "sample_weight": weights}
    assert demographic_parity_difference(predictions, **all_rows) == demographic_parity_difference(
        predictions[:4], **few
    )
    for measure in (equal_opportunity_difference, equalized_odds_difference):
        assert measure(y, predictions, **all_rows) == measure(y[:4], predictions[:4], **few)
    with pytest.raises(ValueError, match="single group"):
        demographic_parity_difference(predictions, sensitive_features=groups, sample_weight=[1, 1, 0, 0, 0])


def test_fairlearn_has_the_same_values(rng):
    fairlearn = pytest.importorskip("fairlearn.metrics")
    groups, truth, weights = rng.integers(0, 3, 500), rng.integers(0, 2, 500), rng.random(500) + 0.5
    decision = (rng.random(500) < 0.2 + 0.1 * groups + 0.3 * truth).astype(int)
    for ours in (demographic_parity_difference, equal_opportunity_difference, equalized_odds_difference):
        for sample_weight in (None, weights):
            call = {"sensitive_features": groups, "sample_weight": sample_weight}
            theirs = getattr(fairlearn, ours.__name__)(truth, decision, **call)
            assert ours(truth, decision, **call) == pytest.approx(theirs, abs=1e-12)
            assert ours(y_true=truth, y_pred=decision, **call) == pytest.approx(theirs, abs=1e-12)
    both = demographic_parity_difference(truth, decision, sensitive_features=groups)
    assert demographic_parity_difference(decision, sensitive_features=groups) == both
    assert demographic_parity_difference(y_pred=decision, sensitive_features=groups) == both


def test_missing_predictions():
    with pytest.raises(ValueError, match="y_pred must be one-dimensional"):
        demographic_parity_difference(sensitive_features=GROUPS)
    with pytest.raises(ValueError, match="y_true has 2 rows and y_pred 9"):
        demographic_parity_difference([0, 1], PRED, sensitive_features=GROUPS)


@pytest.mark.parametrize("metric", [equal_opportunity_difference, equalized_odds_difference])
def test_weights_count_like_repeated_rows(metric):
    counts = [1, 3, 2, 1, 2, 1, 4, 1, 2]
    weighted = metric(TRUE, PRED, sensitive_features=GROUPS, sample_weight=counts)
    repeated = metric(np.repeat(TRUE, counts), np.repeat(PRED, counts), sensitive_features=np.repeat(GROUPS, counts))
    assert weighted == pytest.approx(repeated)
    assert weighted != pytest.approx(metric(TRUE, PRED, sensitive_features=GROUPS))
