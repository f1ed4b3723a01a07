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


@pytest.mark.parametrize("n_labels", [1, 2, 4, 5, 40])
def test_few_and_many_texts_are_encoded_alike(rng, n_labels):
    texts = np.array([f"label {i}" for i in range(n_labels)])[::-1]
    values = rng.permutation(np.resize(texts, 200))
    groups = check_groups(values, 200)
    assert decoded(groups) == values.tolist()
    assert groups.labels == tuple(sorted(texts.tolist()))
    assert all(type(label) is str for label in groups.labels)


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


@pytest.mark.parametrize(
    "values",
    [
        np.array([-128, 127, -128, 0], dtype=np.int8),
        np.array([-32768, 32767, -32768, 5], dtype=np.int16),
        np.array([200, 255, 200, 201], dtype=np.uint8),
        np.array([2**64 - 1, 2**64 - 3, 2**64 - 1, 2**64 - 3], dtype=np.uint64),
        np.array([-(2**63), -(2**63) + 2, -(2**63), -(2**63) + 2]),
    ],
)
def test_integers_of_any_width_and_span(values):
    assert decoded(check_groups(values, 4)) == values.tolist()


@pytest.mark.parametrize("unit", ["D", "s", "us", "ns"])
def test_dates_and_times_are_labels(unit):
    days = np.array(["2024-01-02", "2023-05-06", "2024-01-02"], dtype=f"datetime64[{unit}]")
    for values in (days, pd.Series(days), pd.Categorical(days)):
        groups = check_groups(values, 3)
        assert [str(label)[:10] for label in decoded(groups)] == ["2024-01-02", "2023-05-06", "2024-01-02"]
    with pytest.raises(ValueError, match="missing values"):
        check_groups(np.append(days, np.datetime64("NaT", unit)), 4)


def test_times_finer_than_microseconds_stay_different():
    times = np.array([1, 2, 1], dtype="datetime64[ns]")
    groups = check_groups(times, 3)
    assert groups.codes.tolist() == [0, 1, 0]
    assert groups.labels == ("1970-01-01T00:00:00.000000001", "1970-01-01T00:00:00.000000002")


def test_durations_are_labels():
    days = np.array([3, 1, 3], dtype="timedelta64[D]").astype("timedelta64[ns]")
    assert [label.days for label in decoded(check_groups(days, 3))] == [3, 1, 3]


def test_columns_of_polars():
    polars = pytest.importorskip("polars")
    values = ["b", "a", "b", "c"]
    for kind in (polars.Categorical, polars.Enum(["c", "b", "a"]), polars.String):
        assert decoded(check_groups(polars.Series("s", values, dtype=kind), 4)) == values
    frame = polars.DataFrame({"x": values, "y": [1, 2, 1, 1]}).with_columns(polars.col("x").cast(polars.Categorical))
    assert decoded(check_groups(frame, 4)) == list(zip(values, [1, 2, 1, 1], strict=True))
    with pytest.raises(ValueError, match="missing values"):
        check_groups(polars.Series("s", ["a", None, "b"], dtype=polars.Categorical), 3)
