"""What counts as missing, what happens then, and that it is recorded by column and by group."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.audit.files import streamed, write

from fairpca.audit import MissingTokens, prepare, read_table
from fairpca.audit.texts import MISSING_TOKENS


def table_of(folder, header, row, count=120, **options):
    body = "".join(",".join(map(str, row(i))) + "\n" for i in range(count))
    return read_table(write(folder, f"{header}\n{body}"), **options)


@pytest.mark.parametrize("token", ["None", "NA", "none", "N/A"])
@pytest.mark.parametrize("role", ["sensitive", "label"])
def test_none_and_na_are_groups_and_classes(tmp_path, token, role):
    table = table_of(tmp_path, "x,kind,other", lambda i: (i * i % 31, (token, "yes", "no")[i % 3], "ab"[i // 3 % 2]))
    roles = (["kind"], "other") if role == "sensitive" else (["other"], "kind")
    data = prepare(table, *roles)
    found = data.groups if role == "sensitive" else data.label
    assert sorted(set(found.tolist())) == sorted([token, "yes", "no"])
    assert len(data.X) == 120
    assert data.preparation.kept_tokens == {"kind": {token: 40}}
    assert any(f"{token!r} in 'kind' (40 rows) was kept" in remark for remark in data.remarks)
    asked = table_of(
        tmp_path, "x,kind,other", lambda i: (i * i % 31, (token, "yes", "no")[i % 3], "ab"[i // 3 % 2]),
        missing=MissingTokens(added=(token,)),
    )  # fmt: skip
    data = prepare(asked, *roles)
    assert len(data.X) == 80
    assert data.preparation.dropped.by_column == {"kind": 40}


@pytest.mark.parametrize("token", ["", "?", "nan", "NULL"])
def test_other_tokens_are_missing_groups(tmp_path, token):
    data = prepare(table_of(tmp_path, "x,sex", lambda i: (i * i % 31, (token, "f", "m")[i % 3])), ["sex"])
    assert sorted(set(data.groups)) == ["f", "m"]
    assert data.preparation.dropped.without_group == 40


@pytest.mark.parametrize("token", ["", *MISSING_TOKENS, "none", "n/A"])
def test_tokens_in_features(tmp_path, token):
    rows = [(token if i % 10 == 0 else i * i % 31, "fm"[i % 2]) for i in range(120)]
    data = prepare(table_of(tmp_path, "x,sex", rows.__getitem__), ["sex"])
    assert len(data.X) == 108
    kept = table_of(tmp_path, "x,sex", rows.__getitem__, missing=MissingTokens(usual=()))
    is_text = token not in ("", "NaN")  # an empty cell is always missing, and NaN is what it says
    assert ("x" in prepare(kept, ["sex"]).preparation.levels) == is_text


def test_added_tokens_are_numbers_or_texts_as_written(tmp_path):
    rows = [
        ((("-999", "-999.0")[i // 10 % 2] if i % 10 == 0 else i * i % 31), ("M", "m", "x")[i % 3], "ab"[i // 2 % 2])
        for i in range(120)
    ]
    tokens = MissingTokens(
        added=(
            "-999",
            "M",
        )
    )
    table = table_of(tmp_path, "x,kind,group", rows.__getitem__, missing=tokens)
    found = prepare(table, "group", impute="median").preparation
    assert found.imputed["x"] == 12
    assert found.levels == {"kind": ("(missing)", "m", "x")}


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
    tokens = MissingTokens(
        added=(
            "-999",
            "unknown",
            "?",
        )
    )
    whole = prepare(read_table(path, missing=tokens), ["sex"])
    batches = streamed(read_table(path, missing=tokens), "sex", sample_rows=1000)
    for data in (whole, batches):
        assert sorted(set(data.groups)) == ["None", "f", "m"]
        assert data.preparation.levels == {"kind": ("(missing)", "NA", "b")}  # the usual tokens are those of CSV files
        assert data.preparation.dropped.by_column == {"x": 60, "sex": 150}
    assert batches.preparation.dropped == whole.preparation.dropped
    assert batches.remarks[:-1] == whole.remarks
    np.testing.assert_allclose(batches.X, whole.X, atol=1e-9)


def test_dropped_rows_by_column_and_group(tmp_path):
    def row(i):
        age = "" if i % 10 == 0 else i * i % 31
        income = "" if i % 15 == 0 else i * i % 37
        sex = "" if i in (1, 31) else "fm"[i % 2]
        return age, income, sex

    data = prepare(table_of(tmp_path, "age,income,sex", row), ["sex"])
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
    data = prepare(table, ["sex"], impute="median", standardise=False)
    assert data.feature_names == ["age", "income", "age=(missing)"]
    known = [row[0] for row in rows if row[0] != ""]
    expected = [np.median(known) if row[0] == "" else row[0] for row in rows]
    np.testing.assert_array_equal(data.X[:, 0], expected)
    np.testing.assert_array_equal(data.X[:, 2], [row[0] == "" for row in rows])
    assert data.preparation.imputed["age"] == 30
    assert any("age (" in remark and "in 30 rows" in remark for remark in data.remarks)
    assert data.preparation.dropped.rows == 0
    new = read_table(write(tmp_path, "age,income\n,\n1,2\n", "new.csv"))
    np.testing.assert_array_equal(
        data.preparation.transform(new), [[np.median(known), np.median([row[1] for row in rows]), 1], [1, 2, 0]]
    )
    without = prepare(table, ["sex"], standardise=False).preparation
    np.testing.assert_array_equal(np.isnan(without.transform(new)).all(axis=1), [True, False])


def test_the_indicator_of_few_missing_values_does_not_dominate(tmp_path):
    rows = [("" if i in (5, 8) else i * i % 31, i * i % 37, "fm"[i % 2]) for i in range(400)]
    data = prepare(table_of(tmp_path, "age,income,sex", rows.__getitem__, 400), ["sex"], impute="median")
    np.testing.assert_allclose(data.X.std(axis=0)[:2], 1)
    assert data.X[:, 2].std() == pytest.approx(np.sqrt(2 / 400 * 398 / 400))
    with pytest.raises(ValueError, match="impute='mean' is unknown"):
        prepare(rows, ["sex"], impute="mean")


def test_the_median_is_that_of_repeated_rows(rng):
    for size in (1, 2, 5, 8, 31):
        values, weights = rng.normal(size=size), rng.integers(1, 4, size)
        columns = {
            "x": [*values, *[None] * 40], "y": np.arange(size + 40.0) ** 2, "w": [*weights, *[1] * 40],
            "sex": ["f", "m"] * (size // 2 + 20) + ["f"] * (size % 2),
        }  # fmt: skip
        columns["x"][-39:] = [values[0]] * 39  # a column that is mostly missing is not a feature
        data = prepare(columns, "sex", weights="w", impute="median")
        expected = np.median(np.repeat([*values, *[values[0]] * 39], [*weights, *[1] * 39]))
        if size > 1:
            assert data.preparation.fills["x"] == pytest.approx(expected)


def test_tokens_that_do_not_occur_are_remarked(tmp_path):
    rows = [(("-999.0" if i % 10 == 0 else i * i % 31), "fm"[i % 2]) for i in range(120)]
    table = table_of(tmp_path, "x,sex", rows.__getitem__, missing=["-999", "unknown"])
    assert [remark for remark in prepare(table, "sex").remarks if "does not occur" in remark] == [
        "'unknown', declared missing, does not occur in the columns that were read; check how it is written"
    ]
