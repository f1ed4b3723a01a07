"""Blocks of arrays give the moments of the rows they contain."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca._validation import Groups, check_groups
from fairpca.moments import group_moments
from fairpca.moments._streams import RowBlock, moments_from_blocks


def blocks_of(X, groups, weights, rows):
    for start in range(0, len(X), rows):
        part = slice(start, start + rows)
        columns = [np.ascontiguousarray(column) for column in X[part].T]
        yield RowBlock(columns, check_groups(groups[part], len(X[part])), None if weights is None else weights[part])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 70, 1000])
def test_blocks_equal_memory(rng, rows, n_jobs, weighted):
    X, groups = rng.normal(size=(500, 4)) + 3, rng.choice(["f", "m", "x"], 500, p=[0.5, 0.48, 0.02])
    weights = rng.random(500) + 0.1 if weighted else None
    moments = moments_from_blocks(blocks_of(X, groups, weights, rows), list("abcd"), n_jobs=n_jobs)
    expected = group_moments(X, sensitive_features=groups, sample_weight=weights)
    assert moments.labels == expected.labels
    np.testing.assert_allclose(moments.counts, expected.counts)
    np.testing.assert_allclose(moments.means, expected.means)
    np.testing.assert_allclose(moments.scatters, expected.scatters, rtol=1e-9, atol=1e-9)


def test_blocks_without_rows():
    empty = RowBlock([np.zeros(0)], Groups((), np.zeros(0, dtype=int)))
    assert moments_from_blocks([empty, empty], ["a"]).labels == ()
    full = RowBlock([np.array([1.0, 3.0])], check_groups([0, 0], 2))
    assert moments_from_blocks([empty, full, empty], ["a"]).means.tolist() == [[2.0]]


def test_errors_name_the_column():
    for values, message in (([1.0, np.nan], "'b' contains NaN"), ([1.0, 1e200], "squares overflow")):
        block = RowBlock([np.zeros(2), np.array(values)], check_groups([0, 0], 2))
        with pytest.raises(ValueError, match=message):
            moments_from_blocks([block], ["a", "b"])
