"""Encoding of groups: every kind of label, always in the same order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fairpca._validation import check_groups, ordered_labels


def decoded(groups):
    return [groups.labels[code] for code in groups.codes]


@pytest.mark.parametrize(
    "values",
    [
        ["b", "a", "b"],
        [3, -1, 3],
        [True, False, True],
        [10**12, -5, 10**12],
        [2.5, 1.5, 2.5],
        ["1", 1, "1"],
        [("x", 1), ("y", 2), ("x", 1)],
    ],
)
def test_codes_give_the_labels_back(values):
    if isinstance(values[0], tuple):
        groups = check_groups([list(value) for value in values], 3)
        assert decoded(groups) == values
    else:
        groups = check_groups(values, 3)
        assert decoded(groups) == values
    assert len(groups) == 2


def test_mixed_columns_of_a_frame_keep_their_types():
    groups = check_groups(pd.DataFrame({"a": ["x", "y", "x"], "b": [1, 2, 1]}), 3)
    assert decoded(groups) == [("x", 1), ("y", 2), ("x", 1)]


def test_integers_and_integral_floats_are_the_same_labels():
    assert check_groups(np.array([0.0, 1.0, 0.0]), 3).labels == check_groups([0, 1, 0], 3).labels == (0, 1)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_missing_labels_are_refused(missing):
    with pytest.raises(ValueError, match="missing values"):
        check_groups(pd.Series(["a", missing, "b", "a"], dtype=object), 4)


def test_missing_category_is_refused():
    with pytest.raises(ValueError, match="missing values"):
        check_groups(pd.Categorical(["a", None, "b", "a"]), 4)


def test_unhashable_labels_are_refused():
    values = np.empty(3, dtype=object)
    values[:] = [["a"], ["b"], ["a"]]
    with pytest.raises(TypeError, match="cannot be labels"):
        check_groups(values, 3)


def test_order_of_mixed_labels_is_fixed():
    assert ordered_labels({"b", 2, "a", 1}) == ordered_labels([1, "a", 2, "b"])
