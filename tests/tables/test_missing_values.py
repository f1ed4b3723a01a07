"""What counts as missing, what happens then, and that it is recorded by column and by group."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.tables.files import write

from fairpca.tables import prepare_table, read_table, stream_table
from fairpca.tables.missing import MISSING_TOKENS, MissingTokens
from fairpca.tables.preparing import _median


def table_of(folder, header, row, count=120, **options):
    body = "".join(",".join(map(str, row(i))) + "\n" for i in range(count))
    return read_table(write(folder, f"{header}\n{body}"), **options)


@pytest.mark.parametrize("token", ["None", "NA", "none", "N/A"])
@pytest.mark.parametrize("role", ["sensitive", "label"])
def test_none_and_na_are_groups_and_classes(tmp_path, token, role):
    table = table_of(tmp_path, "x,kind,other", lambda i: (i * i % 31, (token, "yes", "no")[i % 3], "ab"[i // 3 % 2]))
    roles = (["kind"], "other") if role == "sensitive" else (["other"], "kind")
    data = prepare_table(table, *roles)
    found = data.groups if role == "sensitive" else data.label
    assert sorted(set(found.tolist())) == sorted([token, "yes", "no"])
    assert len(data.X) == 120
    assert data.preparation.kept_tokens == {"kind": {token: 40}}
    assert any(f"{token!r} in 'kind' (40 rows) was kept" in remark for remark in data.remarks)
    asked = table_of(
        tmp_path, "x,kind,other", lambda i: (i * i % 31, (token, "yes", "no")[i % 3], "ab"[i // 3 % 2]),
        missing=MissingTokens.of([token]),
    )  # fmt: skip
    data = prepare_table(asked, *roles)
    assert len(data.X) == 80
    assert data.preparation.dropped.by_column == {"kind": 40}


@pytest.mark.parametrize("token", ["", "?", "nan", "NULL"])
def test_other_tokens_are_missing_groups(tmp_path, token):
    data = prepare_table(table_of(tmp_path, "x,sex", lambda i: (i * i % 31, (token, "f", "m")[i % 3])), ["sex"])
    assert sorted(set(data.groups)) == ["f", "m"]
    assert data.preparation.dropped.without_group == 40


@pytest.mark.parametrize("token", ["", *MISSING_TOKENS, "none", "n/A"])
def test_tokens_in_features(tmp_path, token):
    rows = [(token if i % 10 == 0 else i * i % 31, "fm"[i % 2]) for i in range(120)]
    data = prepare_table(table_of(tmp_path, "x,sex", rows.__getitem__), ["sex"])
    assert len(data.X) == 108
    kept = table_of(tmp_path, "x,sex", rows.__getitem__, missing=MissingTokens.of(usual=False))
    is_text = token not in ("", "NaN")  # an empty cell is always missing, and NaN is what it says
    assert (kept.columns["x"].dtype == object) == is_text


def test_added_tokens_are_numbers_or_texts_as_written(tmp_path):
    rows = [((-999 if i % 10 == 0 else i * i % 31), ("M", "m", "x")[i % 3], "ab"[i // 2 % 2]) for i in range(120)]
    tokens = MissingTokens.of(["-999.0", "M"])
    table = table_of(tmp_path, "x,kind,group", rows.__getitem__, missing=tokens)
    assert np.isnan(table.columns["x"]).sum() == 12
    assert sorted(set(table.columns["kind"])) == ["", "m", "x"]


def test_added_tokens_of_arrow_files(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    columns = {
        "x": [-999 if i % 10 == 0 else i * i % 31 for i in range(600)],
        "kind": [("unknown", "NA", "b")[i % 3] for i in range(600)],
        "sex": [("?", "f", "m", "None")[i // 3 % 4] for i in range(600)],
    }
    path = tmp_path / "people.parquet"
    pyarrow.parquet.write_table(pa.table(columns), path, row_group_size=100)
    tokens = MissingTokens.of(["-999", "unknown", "?"])
    whole = prepare_table(read_table(path, missing=tokens), ["sex"])
    streamed = stream_table(path, "sex", missing=tokens, sample_rows=1000)
    for data in (whole, streamed):
        assert sorted(set(data.groups)) == ["None", "f", "m"]
        assert data.encoder.levels == {"kind": ("(missing)", "NA", "b")}  # the usual tokens are those of CSV files
        assert data.preparation.dropped.by_column == {"x": 60, "sex": 150}
    assert streamed.preparation.dropped == whole.preparation.dropped
    assert streamed.remarks[:-1] == whole.remarks
    np.testing.assert_allclose(streamed.X, whole.X, atol=1e-9)


def test_dropped_rows_by_column_and_group(tmp_path):
    def row(i):
        age = "" if i % 10 == 0 else i * i % 31
        income = "" if i % 15 == 0 else i * i % 37
        sex = "" if i in (1, 31) else "fm"[i % 2]
        return age, income, sex

    data = prepare_table(table_of(tmp_path, "age,income,sex", row), ["sex"])
    dropped = data.preparation.dropped
    assert dropped.by_column == {"sex": 2, "age": 12, "income": 8}
    assert dropped.rows == 12 + 4 + 2  # every second missing income lacks the age, too
    assert dropped.by_group == {"f": 12, "m": 4}
    assert dropped.without_group == 2
    said = data.remarks
    assert "dropped 18 of 120 rows with a missing group, label or number" in said
    assert "rows dropped by column: sex (2), age (12), income (8)" in said
    assert "rows dropped by group: f 12 of 60, m 4 of 58, group missing 2" in said
    assert json.loads(json.dumps(data.preparation.as_dict()))["dropped"]["by_group"] == {"f": 12, "m": 4}


def test_medians_replace_missing_numbers(tmp_path):
    rows = [("" if i % 4 == 0 else i * i % 31, i * i % 37, "fm"[i % 2]) for i in range(120)]
    table = table_of(tmp_path, "age,income,sex", rows.__getitem__)
    data = prepare_table(table, ["sex"], impute="median", standardise=False)
    assert data.feature_names == ["age", "income", "age=(missing)"]
    known = [row[0] for row in rows if row[0] != ""]
    expected = [np.median(known) if row[0] == "" else row[0] for row in rows]
    np.testing.assert_array_equal(data.X[:, 0], expected)
    np.testing.assert_array_equal(data.X[:, 2], [row[0] == "" for row in rows])
    assert data.preparation.imputed["age"].rows == 30
    assert any("age (" in remark and "in 30 rows" in remark for remark in data.remarks)
    assert data.preparation.dropped.rows == 0
    new = read_table(write(tmp_path, "age,income\n,\n1,2\n", "new.csv"))
    np.testing.assert_array_equal(
        data.encoder.encode(new), [[np.median(known), np.median([row[1] for row in rows]), 1], [1, 2, 0]]
    )
    without = prepare_table(table, ["sex"], standardise=False).encoder
    np.testing.assert_array_equal(np.isnan(without.encode(new)).all(axis=1), [True, False])


def test_the_indicator_of_few_missing_values_does_not_dominate(tmp_path):
    rows = [("" if i in (5, 8) else i * i % 31, i * i % 37, "fm"[i % 2]) for i in range(400)]
    data = prepare_table(table_of(tmp_path, "age,income,sex", rows.__getitem__, 400), ["sex"], impute="median")
    np.testing.assert_allclose(data.X.std(axis=0)[:2], 1)
    assert data.X[:, 2].std() == pytest.approx(np.sqrt(2 / 400 * 398 / 400))
    with pytest.raises(ValueError, match="impute='mean' is unknown"):
        prepare_table(data.table, ["sex"], impute="mean")


def test_the_median_is_that_of_repeated_rows(rng):
    for size in (1, 2, 5, 8, 31):
        values, weights = rng.normal(size=size), rng.integers(1, 4, size)
        assert _median(values, None) == pytest.approx(np.median(values))
        assert _median(np.r_[values, np.nan], np.r_[weights, 9.0]) == pytest.approx(
            np.median(np.repeat(values, weights))
        )
