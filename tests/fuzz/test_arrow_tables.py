"""Arrow tables of any types: read whole or batch by batch, both ways agree, and both refuse in one sentence."""

from __future__ import annotations

import datetime
import decimal
from dataclasses import replace

import numpy as np
import pytest

from fairpca.tables import MissingTokens, prepare_table, read_table, stream_table

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
pq = pytest.importorskip("pyarrow.parquet")

N_ROWS = 48


def integers(rng, kind):
    few = rng.integers(0, 3, N_ROWS) + (2**60 if kind.bit_width == 64 and rng.random() < 0.5 else 0)
    return pa.array(few.tolist(), kind)


MAKERS = {
    "int8": lambda rng: integers(rng, pa.int8()),
    "int64": lambda rng: integers(rng, pa.int64()),
    "uint64": lambda rng: integers(rng, pa.uint64()),
    "float16": lambda rng: pa.array(rng.integers(0, 3, N_ROWS).astype(np.float16)),
    "float64": lambda rng: pa.array(rng.choice([0.0, -0.0, 1.0, np.nan, np.inf, 0.5], N_ROWS)),
    "normal": lambda rng: pa.array(rng.normal(size=N_ROWS)),
    "bool": lambda rng: pa.array(rng.random(N_ROWS) < 0.5),
    "text": lambda rng: pa.array(rng.choice(["a", "b", "01", "1", "é", "a, b"], N_ROWS).tolist()),
    "large_text": lambda rng: pa.array(rng.choice(["a", "b"], N_ROWS).tolist(), pa.large_string()),
    "view": lambda rng: pa.array(rng.choice(["a", "b"], N_ROWS).tolist(), pa.string_view()),
    "binary": lambda rng: pa.array(rng.choice([b"a", b"\xff"], N_ROWS).tolist(), pa.binary()),
    "dictionary": lambda rng: pa.array(rng.choice(["a", "b", None], N_ROWS).tolist()).dictionary_encode(),
    "codes": lambda rng: pa.array(rng.integers(0, 2, N_ROWS)).dictionary_encode(),
    "decimal": lambda rng: pa.array(
        [decimal.Decimal(int(v)) / 4 for v in rng.integers(0, 3, N_ROWS)], pa.decimal128(25, 2)
    ),
    "date": lambda rng: pa.array([datetime.date(2020, 1, 1 + int(v)) for v in rng.integers(0, 2, N_ROWS)]),
    "timestamp": lambda rng: pa.array(rng.integers(0, 2, N_ROWS), pa.timestamp("ns", "UTC")),
    "time": lambda rng: pa.array(rng.integers(0, 2, N_ROWS), pa.time64("ns")),
    "duration": lambda rng: pa.array(rng.integers(0, 2, N_ROWS), pa.duration("ns")),
    "interval": lambda rng: pa.array([pa.MonthDayNano([int(v), 0, 0]) for v in rng.integers(0, 2, N_ROWS)]),
    "null": lambda rng: pa.nulls(N_ROWS),
    "list": lambda rng: pa.array([[1]] * N_ROWS),
    "struct": lambda rng: pa.array([{"a": 1}] * N_ROWS),
}


def table(rng):
    """Three to five columns of random types, some with missing values."""
    names = list(MAKERS)
    kinds = [names[rng.integers(len(names))] for _ in range(rng.integers(1, 4))]
    columns = {f"{kind}{j}": MAKERS[kind](rng) for j, kind in enumerate(["normal", *kinds])}
    for name, column in columns.items():
        if rng.random() < 0.3 and not pa.types.is_dictionary(column.type):
            missing = rng.random(N_ROWS) < rng.choice([0.05, 0.6])
            values = [None if gone else value for gone, value in zip(missing, column.to_pylist(), strict=True)]
            columns[name] = pa.array(values, column.type)
    return pa.table(columns)


def outcome(read):
    """What was read, or the sentence that refuses it."""
    try:
        return read()
    except ValueError as problem:
        return str(problem)


def chosen_options(rng, label):
    """Random options of a preparation."""
    options = {"min_level": rng.choice([None, 0, 5, 0.3]), "merge_small": int(rng.choice([0, 12, 25]))}
    positive = rng.choice([None, "a", "1", "0"]) if label is not None else None
    return options | {"positive": positive, "standardise": bool(rng.random() < 0.7)}


def test_whole_and_streamed_tables_agree(tmp_path, cases, monkeypatch):
    monkeypatch.setattr("fairpca.tables.streaming._BATCH_NUMBERS", 60)
    for rng in cases(60):
        made = table(rng)
        path = tmp_path / ("data.parquet" if rng.random() < 0.5 else "data.feather")
        try:
            (pq.write_table if path.suffix == ".parquet" else feather.write_feather)(made, str(path))
        except pa.ArrowException:  # Parquet does not know every type
            continue
        sensitive = made.column_names[rng.integers(1, made.num_columns)]
        label = rng.choice([None, *made.column_names])
        roles = {"sensitive": [sensitive], "label": label} | chosen_options(rng, label)
        tokens = MissingTokens.of(rng.choice(["a", "1", "0.5", "-"], rng.integers(0, 3)).tolist())
        whole = outcome(lambda path=path, roles=roles, t=tokens: prepare_table(read_table(path, missing=t), **roles))
        streamed = outcome(
            lambda path=path, roles=roles, t=tokens: stream_table(path, **roles, missing=t, sample_rows=N_ROWS)
        )
        if isinstance(streamed, str):
            assert "\n" not in streamed
            assert isinstance(whole, str), streamed
            continue
        assert not isinstance(whole, str), whole
        assert sorted(set(whole.groups)) == list(streamed.moments.labels)
        assert streamed.feature_names == whole.feature_names
        np.testing.assert_array_equal(streamed.groups, whole.groups)
        np.testing.assert_allclose(streamed.X, whole.X, atol=1e-6)
        assert (streamed.label is None) == (whole.label is None)
        assert whole.label is None or streamed.label.tolist() == whole.label.tolist()
        assert streamed.preparation.left_out.keys() == whole.preparation.left_out.keys()
        # The share that is missing may be that of nulls alone, which the file's statistics tell before a pass.
        same = {"sampled": "", "left_out": whole.preparation.left_out}
        assert replace(streamed.preparation, **same) == whole.preparation
