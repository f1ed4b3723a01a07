"""Rates of decisions: counted by hand, with intervals that cover and differences that random groups rarely show."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca.metrics import (
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
    group_rates,
)


def test_counts_by_hand():
    groups, truth, decision = ["a"] * 4 + ["b"] * 5, [1, 1, 0, 0, 1, 1, 1, 0, 0], [1, 0, 1, 0, 1, 1, 0, 0, 0]
    rates = group_rates(truth, decision, sensitive_features=groups, min_rows=2)
    assert [(rate.count, rate.rows) for rate in rates.selected.values()] == [(2, 4), (2, 5)]
    assert [(rate.count, rate.rows) for rate in rates.true_positive.values()] == [(1, 2), (2, 3)]
    assert [(rate.count, rate.rows) for rate in rates.false_positive.values()] == [(1, 2), (0, 2)]
    assert rates.true_positive.between == ("b", "a")


def test_differences_are_those_of_the_metrics(rng):
    groups, truth = rng.integers(0, 3, 400), rng.integers(0, 2, 400)
    decision = (rng.random(400) < 0.3 + 0.1 * groups + 0.2 * truth).astype(int)
    rates = group_rates(truth, decision, sensitive_features=groups)
    known = {
        "demographic_parity": demographic_parity_difference(decision, sensitive_features=groups),
        "equal_opportunity": equal_opportunity_difference(truth, decision, sensitive_features=groups),
        "equalized_odds": equalized_odds_difference(truth, decision, sensitive_features=groups),
    }
    for name, value in known.items():
        found = rates.differences[name].gap
        assert found == pytest.approx(value)
        assert found.joint_low <= found.low <= found <= found.high <= found.joint_high


def test_too_few_rows_are_told_and_not_compared():
    truth = np.array([1] * 2 + [0] * 48 + [1] * 25 + [0] * 25)
    rates = group_rates(truth, truth, sensitive_features=np.repeat(["a", "b"], 50))
    assert rates.selected.gap > 0
    for values in (rates.true_positive, rates.equalized_odds):
        assert np.isnan(values.gap)
        assert values.gap.rows == 2
    nobody = group_rates(np.repeat([0, 1], 50), truth, sensitive_features=np.repeat(["a", "b"], 50))
    assert nobody.true_positive["a"].rows == 0
    assert nobody.true_positive.gap.rows == 0


def test_wilson_covers_and_equal_groups_rarely_differ(rng):
    covered, claimed, n = 0, 0, 1000
    groups = np.repeat(["a", "b", "c"], [40, 120, 240])
    for _ in range(n):
        decision = rng.random(400) < 0.15
        rates = group_rates(np.ones(400, dtype=int), decision, sensitive_features=groups)
        covered += rates.selected["a"].low <= 0.15 <= rates.selected["a"].high
        claimed += rates.selected.gap.joint_low > 0
    assert covered / n > 0.93
    assert claimed / n < 0.07


def test_the_larger_of_two_differences_is_rarely_claimed_of_random_groups(rng):
    """Among rows of either label the larger difference is reported, so its interval must allow for both."""
    groups, claimed, n = np.repeat(["a", "b"], [120, 280]), 0, 1000
    for _ in range(n):
        truth, decision = rng.random(400) < 0.5, rng.random(400) < 0.4
        claimed += group_rates(truth, decision, sensitive_features=groups).equalized_odds.gap.joint_low > 0
    assert claimed / n < 0.07


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y_true": [0, 2]}, "y_true must consist of 0 and 1"),
        ({"y_pred": [1]}, "y_true has 2 rows and y_pred 1"),
        ({"confidence": 1.0}, "confidence=1.0 must lie between 0 and 1"),
        ({"min_rows": 0}, "min_rows must be an integer of at least 1"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    good = {"y_true": [0, 1], "y_pred": [1, 1], "sensitive_features": ["a", "b"]}
    with pytest.raises(ValueError, match=message):
        group_rates(**(good | arguments))


def test_weights_count_like_repeated_rows_in_rates_but_not_in_intervals(rng):
    truth, decision, groups = rng.integers(0, 2, 300), rng.integers(0, 2, 300), rng.choice(["a", "b"], 300)
    weights = rng.integers(0, 4, 300)
    found = group_rates(truth, decision, sensitive_features=groups, sample_weight=weights)
    repeated = [np.repeat(values, weights) for values in (truth, decision, groups)]
    expected = group_rates(*repeated[:2], sensitive_features=repeated[2])
    plain = group_rates(truth, decision, sensitive_features=groups)
    for name in ("selected", "true_positive", "false_positive"):
        for label, rate in getattr(found, name).items():
            other = getattr(expected, name)[label]
            assert rate.value == pytest.approx(other.value)
            assert rate.rows < other.rows
            assert rate.high - rate.low > other.high - other.low  # repeated rows would be taken for new ones
    assert found.selected.gap == pytest.approx(expected.selected.gap)
    scaled = group_rates(truth, decision, sensitive_features=groups, sample_weight=np.full(300, 2.5))
    assert scaled.selected["a"].low == pytest.approx(plain.selected["a"].low)
