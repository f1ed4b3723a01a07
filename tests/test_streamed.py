"""A file read batch by batch is prepared as the same file in memory is."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca.datasets.table import prepare_table, read_table
from fairpca.moments import group_moments
from fairpca.streamed import stream_table

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


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
