"""Which sensitive features are continuous: names or values, alone or beside groups, and clear errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fairpca._continuous import check_continuous

SEX, AGE, INCOME = ["f", "m", "f"], [30.0, 40.5, 50.0], [1.0, 3.0, 2.0]
FRAME = pd.DataFrame({"sex": SEX, "age": AGE, "income": INCOME})


@pytest.mark.parametrize(
    ("sensitive", "continuous", "labels", "names"),
    [
        (SEX, AGE, ("f", "m"), ("continuous0",)),
        (SEX, pd.Series(AGE, name="age"), ("f", "m"), ("age",)),
        (SEX, FRAME[["age", "income"]], ("f", "m"), ("age", "income")),
        (SEX, np.column_stack([AGE, INCOME]), ("f", "m"), ("continuous0", "continuous1")),
        (SEX, {"age": AGE}, ("f", "m"), ("age",)),
        (None, AGE, ("all",), ("continuous0",)),
        (FRAME[["sex", "age"]], "age", ("f", "m"), ("age",)),
        (FRAME, ["income", "age"], ("f", "m"), ("income", "age")),
        (FRAME, ("age",), (("f", 1.0), ("f", 2.0), ("m", 3.0)), ("age",)),
        (FRAME[["age"]], "age", ("all",), ("age",)),
        (FRAME["age"], "age", ("all",), ("age",)),
        ({"sex": SEX, "age": AGE}, "age", ("f", "m"), ("age",)),
    ],
)
def test_names_or_values(sensitive, continuous, labels, names):
    groups, measured = check_continuous(sensitive, continuous, 3)
    assert groups.labels == labels
    assert measured.names == names
    columns = dict(zip(names, measured.values.T, strict=True))
    assert columns.get("income", np.array(INCOME)).tolist() == INCOME
    assert columns.get("age", columns.get("continuous0")).tolist() == AGE


def test_polars_frames():
    polars = pytest.importorskip("polars")
    groups, measured = check_continuous(polars.DataFrame({"sex": SEX, "age": AGE}), "age", 3)
    assert groups.labels == ("f", "m")
    assert measured.values[:, 0].tolist() == AGE


@pytest.mark.parametrize(
    ("sensitive", "continuous", "error", "words"),
    [
        (
            FRAME,
            "years",
            ValueError,
            "'years' is not a column of sensitive_features, which has 'sex', 'age'",
        ),
        (SEX, "age", TypeError, "continuous='age' names columns, but sensitive_features is a list"),
        (None, "age", TypeError, "names columns, but sensitive_features is a NoneType"),
        (FRAME, "sex", TypeError, "continuous column 'sex' does not hold numbers"),
        (SEX, pd.to_datetime(["2001", "2002", "2003"]), TypeError, "to days"),
        (SEX, [1.0, np.nan, 2.0], ValueError, "'continuous0' contains missing or infinite values"),
        (SEX, [1.0, 2.0], ValueError, r"has shape \(2,\), but X has 3 rows"),
        (SEX, np.zeros((3, 1, 1)), ValueError, "one or two dimensions, got 3"),
        (SEX, np.zeros((3, 0)), ValueError, "continuous has no columns"),
        (SEX[:2], AGE, ValueError, "sensitive_features has 2 rows, but X has 3"),
    ],
)
def test_clear_errors(sensitive, continuous, error, words):
    with pytest.raises(error, match=words):
        check_continuous(sensitive, continuous, 3)
