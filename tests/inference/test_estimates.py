"""Intervals of differences that hold for all pairs together."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fairpca.inference._estimates import critical_value, estimates_by_group
from fairpca.inference._row_values import ValueSums


def test_two_groups_have_the_normal_quantile():
    assert critical_value(np.array([1.0, 3.0]), np.full(2, 1e9), 0.95) == pytest.approx(1.959964, abs=1e-6)


def test_two_groups_have_welchs_degrees_of_freedom(rng):
    first, second = rng.normal(size=12), 3 * rng.normal(size=20)
    errors = np.array([values.std(ddof=1) / np.sqrt(len(values)) for values in (first, second)])
    found = estimates_by_group("ab", np.array([first.mean(), second.mean()]), errors, np.array([11.0, 19.0]), 0.0, 0.95)
    theirs = stats.ttest_ind(first, second, equal_var=False).confidence_interval()
    ends = sorted(np.abs([found.gap.low, found.gap.high]))
    assert ends == pytest.approx(sorted(np.abs([theirs.low, theirs.high])))


@pytest.mark.parametrize("k", [3, 5, 10])
def test_equal_errors_give_the_studentised_range(k):
    expected = stats.studentized_range.ppf(0.95, k, 1e6) / np.sqrt(2)
    assert critical_value(np.ones(k), np.full(k, 1e6), 0.95) == pytest.approx(expected, rel=0.015)


def test_the_gap_of_equal_groups_is_covered(rng):
    errors, alarms = np.array([1.0, 2.0, 0.5, 1.0]), 0
    for _ in range(2000):
        values = rng.normal(size=4) * errors
        alarms += estimates_by_group("abcd", values, errors, np.full(4, 1e6), 0.0, 0.95).gap.low > 0
    assert alarms / 2000 <= 0.06


def test_sums_of_rows_and_of_clusters(rng):
    values, codes, weights = rng.normal(size=(40, 2)), np.arange(40) % 2, rng.integers(1, 4, 40).astype(float)
    sums = ValueSums.of(values, codes, 2, weights)
    for a in (0, 1):
        w, v = weights[codes == a], values[codes == a]
        mean = w @ v / w.sum()
        error = np.sqrt(((w[:, None] * (v - mean)) ** 2).sum(axis=0) * 20 / 19) / w.sum()
        np.testing.assert_allclose(sums.means[a], mean)
        np.testing.assert_allclose(sums.errors[a], error)
    added = ValueSums.zeros(2, 2)
    for a in (0, 1):
        added.add(a, values[codes == a], weights[codes == a])
    np.testing.assert_allclose(added.errors, sums.errors)
    np.testing.assert_allclose(added.freedom, sums.freedom)
    halves = ValueSums.merge([ValueSums.of(values[part], codes[part], 2) for part in (slice(0, 15), slice(15, 40))])
    np.testing.assert_allclose(halves.errors, ValueSums.of(values, codes, 2).errors)
    # Identical rows of a person add no evidence.
    twice = ValueSums.of(np.vstack([values, values]), np.r_[codes, codes], 2, clusters=np.tile(np.arange(40), 2))
    np.testing.assert_allclose(twice.errors, ValueSums.of(values, codes, 2).errors)


def test_few_dominating_rows_leave_few_degrees_of_freedom(rng):
    values = rng.normal(size=(500, 1))
    plain = ValueSums.of(values, np.zeros(500, int), 1).freedom[0, 0]
    assert 300 < plain <= 499
    values[:2] = 100.0
    assert ValueSums.of(values, np.zeros(500, int), 1).freedom[0, 0] < 5
    kurtosis = stats.kurtosis(values[:, 0], fisher=False)
    assert ValueSums.of(values, np.zeros(500, int), 1).freedom[0, 0] == pytest.approx(1000 / (kurtosis - 1), rel=1e-6)


def test_a_single_unit_has_no_interval():
    assert np.isinf(ValueSums.of(np.ones((3, 1)), np.array([0, 1, 1]), 2).errors[0, 0])
