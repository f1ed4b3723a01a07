"""A file read batch by batch is prepared as the same file in memory is."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca.datasets.table import prepare_table, read_table
from fairpca.moments import group_moments
from fairpca.streamed import stream_table

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")


@pytest.fixture
def people(tmp_path, rng):
    """Numbers, texts, a constant, a copy of the group, and rows that lack something."""
    size = 900
    sex = rng.choice(["f", "m"], size)
    income = rng.normal(1e4, 10.0, size)
    income[[3, 500]] = np.nan
    columns = {
        "income": income,
        "age": rng.integers(18, 80, size),
        "city": rng.choice(["a", "b", "c"], size),
        "species": ["human"] * size,
        "is_male": (sex == "m").astype(float),
        "sex": [None if i == 7 else value for i, value in enumerate(sex)],
        "default": rng.choice(["yes", "no"], size),
    }
    path = tmp_path / "people.parquet"
    parquet.write_table(pyarrow.table(columns), path, row_group_size=250)
    return path


@pytest.mark.parametrize("standardise", [True, False])
def test_prepared_as_in_memory(people, standardise):
    whole = prepare_table(read_table(str(people)), ["sex"], "default", standardise=standardise)
    streamed = stream_table(people, "sex", "default", standardise=standardise, sample_rows=5000)
    assert streamed.feature_names == whole.feature_names == ["income", "age", "city=a", "city=b", "city=c"]
    assert np.allclose(streamed.encoder.scales, whole.encoder.scales, rtol=1e-10)
    expected = group_moments(whole.X, whole.groups)
    assert streamed.moments.labels == expected.labels == ("f", "m")
    assert np.array_equal(streamed.moments.counts, expected.counts)
    assert np.allclose(streamed.moments.means, expected.means, rtol=1e-9, atol=1e-9)
    assert np.allclose(streamed.moments.scatters, expected.scatters, rtol=1e-8, atol=1e-6)
    # The sample is larger than the file, so it holds every complete row, in the order of the file.
    assert np.allclose(streamed.X, whole.X, atol=1e-9)
    assert np.array_equal(streamed.groups, whole.groups)
    assert np.array_equal(streamed.label, whole.label)
    assert any("dropped 3 of 900 rows" in remark for remark in streamed.remarks)


def test_without_a_sample_no_row_is_kept(people):
    streamed = stream_table(people, ["sex"], drop="default")
    assert streamed.X.shape == (0, 5)
    assert streamed.moments.total_count == 897
    assert "default" not in " ".join(streamed.feature_names)


def test_the_seed_decides_which_rows_are_drawn(people):
    first, again, other = (stream_table(people, "sex", sample_rows=100, seed=seed).X for seed in (0, 0, 1))
    assert first.shape[0] == 100
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_progress_is_told(people):
    seen = []
    stream_table(people, "sex", progress=lambda done, total, what: seen.append((done, total, what)))
    assert seen[-1] == (900, 900, "rows read")
    assert {what for *_, what in seen} == {"looking for levels", "rows read"}


def both_ways(folder, columns, sensitive="sex", *, kind="parquet", **options):
    """The table prepared in memory and streamed, checked to have the same features and groups."""
    path = folder / f"people.{kind}"
    table = columns if isinstance(columns, pyarrow.Table) else pyarrow.table(columns)
    if kind == "parquet":
        parquet.write_table(table, path, row_group_size=200)
    else:
        feather.write_feather(table, str(path), chunksize=200)
    names = [sensitive] if isinstance(sensitive, str) else sensitive
    whole = prepare_table(read_table(path), names, options.get("label"))
    streamed = stream_table(path, names, options.get("label"), sample_rows=5000)
    assert streamed.feature_names == whole.feature_names
    assert streamed.encoder.levels == whole.encoder.levels
    assert np.array_equal(streamed.groups, whole.groups)
    assert np.allclose(streamed.X, whole.X, atol=1e-9)
    return whole, streamed


def test_one_hot_columns_are_told_apart_by_position(tmp_path, rng):
    """Level 'b=c' of column 'a' and level 'c' of column 'a=b' make features of the same name."""
    columns = {"x": rng.normal(size=600), "a": rng.choice(["b=c", "d"], 600), "sex": rng.choice(["f", "m"], 600)}
    columns["a=b"] = np.where(columns["sex"] == "f", "c", "e")  # a copy of the group: left out
    _, streamed = both_ways(tmp_path, columns)
    assert streamed.encoder.levels == {"a": ("b=c", "d")}
    assert len(streamed.encoder.offsets) == 3


def test_an_empty_row_group_does_not_hide_how_much_is_missing(tmp_path, rng):
    empty = [None if i % 5 < 3 else 1.0 * i for i in range(600)]
    table = pyarrow.table({"x": rng.normal(size=600), "empty": empty, "sex": rng.choice(["f", "m"], 600)})
    path = tmp_path / "people.parquet"
    with parquet.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table.slice(0, 0))
        writer.write_table(table)
    streamed = stream_table(path, "sex")
    assert streamed.feature_names == ["x"]
    assert "left out 'empty': 60% of it is missing" in streamed.remarks
