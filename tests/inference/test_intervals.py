"""Intervals that hold for one value, and for all values that are stated together."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fairpca.inference._intervals import Spread, critical_value, influence_by_group


def rows_alone(values, codes, weights=None, units=None, share=None):
    k = codes.max() + 1
    units = np.arange(len(values)) if units is None else units
    return influence_by_group(values, codes, units, weights, np.ones(k) if share is None else share)


def test_one_value_of_two_groups_has_the_normal_quantile(rng):
    influences = [rng.normal(size=(50, 1)), 3 * rng.normal(size=(80, 1))]
    assert critical_value(influences, 0.95, pairs=True) == pytest.approx(1.96, abs=0.06)


@pytest.mark.parametrize("k", [3, 5, 10])
def test_pairs_of_equal_groups_give_the_studentised_range(k):
    expected = stats.studentized_range.ppf(0.95, k, 1e6) / np.sqrt(2)
    assert critical_value([np.ones((1, 1))] * k, 0.95, pairs=True) == pytest.approx(expected, rel=0.02)


def test_values_that_vary_together_cost_nothing_and_independent_ones_what_sidak_says():
    same, apart = [np.ones((1, 6))], [np.eye(6)]
    assert critical_value(same, 0.95, pairs=False) == pytest.approx(1.96, abs=0.04)
    assert critical_value(apart, 0.95, pairs=False) == pytest.approx(
        stats.norm.ppf(0.5 + 0.95 ** (1 / 6) / 2), rel=0.02
    )


def test_values_without_variation_do_not_count():
    assert critical_value([np.zeros((5, 3))] * 2, 0.95, pairs=True) == pytest.approx(1.959964)


def test_spreads_add_up_as_welchs(rng):
    first, second = rng.normal(size=12), 3 * rng.normal(size=20)
    errors = [np.array([one.std(ddof=1) / np.sqrt(len(one))]) for one in (first, second)]
    both = Spread(errors[0], np.array([11.0])).plus(Spread(errors[1], np.array([19.0])))
    theirs = stats.ttest_ind(first, second, equal_var=False).confidence_interval()
    assert both.half_width(stats.norm.ppf(0.975))[0] == pytest.approx((theirs.high - theirs.low) / 2)


def test_influences_give_standard_errors_and_covariances(rng):
    values, codes, weights = rng.normal(size=(40, 2)), np.arange(40) % 2, rng.integers(1, 4, 40).astype(float)
    influences, spread = rows_alone(values, codes, weights)
    for a in (0, 1):
        w, v = weights[codes == a], values[codes == a]
        mean = w @ v / w.sum()
        expected = np.sqrt(((w[:, None] * (v - mean)) ** 2).sum(axis=0) * 20 / 19) / w.sum()
        np.testing.assert_allclose(spread.error[a], expected)
        np.testing.assert_allclose((influences[a] ** 2).sum(axis=0), expected**2)
    plain = rows_alone(values, codes)[0]
    np.testing.assert_allclose(plain[0].T @ plain[0], np.cov(values[codes == 0].T) / 20)


def test_identical_rows_of_a_person_add_no_evidence(rng):
    values, codes = rng.normal(size=(40, 2)), np.arange(40) % 2
    once = rows_alone(values, codes)[1].error
    twice = rows_alone(np.vstack([values, values]), np.r_[codes, codes], units=np.tile(np.arange(40), 2))[1].error
    np.testing.assert_allclose(twice, once)


def test_a_sample_of_the_rows_stands_for_all(rng):
    values, codes = rng.normal(size=(40, 1)), np.zeros(40, dtype=int)
    all_rows, quarter = (rows_alone(values, codes, share=share)[1].error for share in (None, np.array([0.25])))
    np.testing.assert_allclose(quarter, all_rows / 2)


def test_few_dominating_rows_leave_few_degrees_of_freedom(rng):
    values = rng.normal(size=(500, 1))
    codes = np.zeros(500, dtype=int)
    assert 300 < rows_alone(values, codes)[1].freedom[0, 0] <= 499
    values[:2] = 100.0
    found, kurtosis = rows_alone(values, codes)[1].freedom[0, 0], stats.kurtosis(values[:, 0], fisher=False)
    assert found == pytest.approx(1000 / (kurtosis - 1), rel=1e-6)
    assert found < 5


def test_a_single_unit_has_no_interval():
    assert np.isinf(rows_alone(np.ones((3, 1)), np.array([0, 1, 1]))[1].error[0, 0])


def test_rows_that_were_not_tested_do_not_count(rng):
    values, codes = rng.normal(size=(30, 1)), np.zeros(30, dtype=int)
    some = np.where(np.arange(30)[:, None] < 10, values, np.nan)
    np.testing.assert_allclose(rows_alone(some, codes)[1].error, rows_alone(values[:10], codes[:10])[1].error)
