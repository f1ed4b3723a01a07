"""Rare levels of text columns are pooled, in memory and batch by batch alike."""

from __future__ import annotations

import numpy as np
import pytest
from tests.audit.files import streamed, write

from fairpca.audit import prepare, read_table
from fairpca.audit.rare import POOLED_LEVEL, pool_levels, rows_of_min_level

#: Levels of a column and how many of 1000 rows have each, and the levels that get a column.
CASES = {
    "none rare": ({"a": 600, "b": 400}, ("a", "b")),
    "pooled": ({"a": 600, "b": 360, "c": 20, "d": 20}, ("a", "b", POOLED_LEVEL)),
    "one rare level": ({"a": 600, "b": 371, "c": 29}, ("a", "b")),
    "limit": ({"a": 600, "b": 370, "c": 30}, ("a", "b", "c")),
    "rest still rare": ({"a": 600, "b": 380, "c": 10, "d": 10}, ("a", "b")),
    "one common level": ({"a": 950, "b": 25, "c": 25}, ("a", POOLED_LEVEL)),
    "all but a handful": ({"a": 990, "b": 5, "c": 5}, ()),
    "all rare": ({f"l{i}": 20 for i in range(50)}, ()),
    "named like the pool": ({"a": 600, POOLED_LEVEL: 360, "c": 40 - 15, "d": 15}, ("a", POOLED_LEVEL)),
    "missing": ({"a": 600, "b": 380, "": 20}, ("a", "b")),
}


def people(rng, counts):
    size = sum(counts.values())
    city = rng.permutation(np.repeat(list(counts), list(counts.values()))).astype(object)
    return {"x": rng.normal(size=size), "city": city, "sex": rng.choice(["f", "m"], size)}


@pytest.mark.parametrize("case", CASES)
def test_levels_with_a_column(tmp_path, rng, case):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    counts, expected = CASES[case]
    path = tmp_path / "people.parquet"
    pyarrow.parquet.write_table(pa.table(people(rng, counts)), path, row_group_size=170)
    whole, batches = prepare(read_table(path), ["sex"]), streamed(path, "sex", sample_rows=2000)
    assert whole.preparation.levels.get("city", ()) == expected
    assert batches.preparation.levels == whole.preparation.levels
    assert batches.preparation.pooled == whole.preparation.pooled
    assert batches.preparation.left_out == whole.preparation.left_out
    np.testing.assert_allclose(batches.X, whole.X, atol=1e-9)
    rare = {level: count for level, count in counts.items() if count < 30 and level}
    assert {level: count for level, count in whole.preparation.pooled.get("city", pool_levels({}, 30)[1]).items()
            if level != "(missing)"} == rare  # fmt: skip
    if not expected:
        assert whole.preparation.left_out == {"city": "it does not have two levels that are not rare"}


def test_moments_of_pooled_levels_are_those_of_the_rows(tmp_path, rng):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    from fairpca.moments import group_moments

    path = tmp_path / "people.parquet"
    counts = {"a": 300, "b": 250, **{f"c{i}": 9 for i in range(50)}}
    pyarrow.parquet.write_table(pa.table(people(rng, counts)), path, row_group_size=170)
    whole, batches = prepare(read_table(path), ["sex"]), streamed(path, "sex")
    expected = group_moments(whole.X, sensitive_features=whole.groups)
    assert whole.feature_names == ["x", "city=a", "city=b", f"city={POOLED_LEVEL}"]
    np.testing.assert_allclose(batches.moments.means, expected.means, atol=1e-9)
    np.testing.assert_allclose(batches.moments.scatters, expected.scatters, atol=1e-6)


def test_every_feature_rests_on_enough_rows(rng):
    """Whatever the counts: every level with a column, and the rows without it, are at least the limit."""
    for _ in range(300):
        counts = {f"l{i}": int(count) for i, count in enumerate(rng.geometric(0.02, rng.integers(2, 12)))}
        least = int(rng.integers(1, 60))
        kept, rare = pool_levels(counts, least)
        pooled = sum(rare.values())
        rows = {level: counts.get(level, 0) for level in kept} | (
            {POOLED_LEVEL: pooled} if POOLED_LEVEL in kept else {}
        )
        assert all(count >= least and sum(counts.values()) - count >= least for count in rows.values())
        assert set(kept) - {POOLED_LEVEL} <= {level for level, count in counts.items() if count >= least}
        assert sum(count for level, count in counts.items() if level not in rare) + pooled == sum(counts.values())


@pytest.mark.parametrize(
    ("min_level", "n_rows", "least"),
    [(None, 40, 4), (None, 299, 30), (None, 3000, 30), (None, 3001, 31), (0, 9, 0), (50, 9, 50), (0.02, 1000, 20)],
)
def test_the_limit(min_level, n_rows, least):
    assert rows_of_min_level(min_level, n_rows) == least


def test_the_limit_can_be_set(tmp_path, rng):
    columns = people(rng, {"a": 600, "b": 370, "c": 30})
    body = "".join(f"{x},{city},{sex}\n" for x, city, sex in zip(*columns.values(), strict=True))
    table = read_table(write(tmp_path, f"x,city,sex\n{body}"))
    assert prepare(table, ["sex"], min_level=0).preparation.levels["city"] == ("a", "b", "c")
    assert prepare(table, ["sex"], min_level=0.05).preparation.levels["city"] == ("a", "b")
    assert prepare(table, ["sex"], min_level=400).preparation.levels["city"] == ("a", POOLED_LEVEL)
    assert prepare(table, ["sex"], min_level=500).preparation.left_out.keys() == {"city"}
    for wrong in (-1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="min_level"):
            prepare(table, ["sex"], min_level=wrong)


def test_rare_and_new_levels_are_encoded_alike(tmp_path, rng):
    columns = people(rng, {"a": 600, "b": 350, "c": 25, "d": 25})
    body = "".join(f"{x},{city},{sex}\n" for x, city, sex in zip(*columns.values(), strict=True))
    preparation = prepare(read_table(write(tmp_path, f"x,city,sex\n{body}")), ["sex"], standardise=False).preparation
    new = read_table(write(tmp_path, "x,city\n0,a\n0,c\n0,Oslo\n0,\n", "new.csv"))
    with pytest.warns(UserWarning, match=r"not seen \('\(missing\)', 'Oslo'\); they are encoded as a rare level"):
        np.testing.assert_array_equal(preparation.transform(new)[:, 1:], [[1, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]])
