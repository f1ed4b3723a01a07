"""Arrow tables of any types: read whole or batch by batch, both ways agree, and both refuse in one sentence."""

from __future__ import annotations

import datetime
import decimal
from dataclasses import replace

import numpy as np
import pytest

from fairpca.audit import MissingTokens, prepare, read_table

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


def test_any_division_into_batches_agrees(tmp_path, cases, monkeypatch):
    """In memory as one batch or as many, streamed, and as a data frame: the same rows and the same record."""
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
        tokens = MissingTokens(added=tuple(rng.choice(["a", "1", "0.5", "-"], rng.integers(0, 3)).tolist()))

        def prepared(data, roles=roles, tokens=tokens, **options):
            return outcome(lambda: prepare(read_table(data, missing=tokens), **roles, **options))

        whole, frame = prepared(path), prepared(made)
        with monkeypatch.context() as patch:
            patch.setattr("fairpca.audit.table._BATCH_NUMBERS", int(rng.integers(20, 200)))
            others = [frame, prepared(path), prepared(path, stream=True, sample_rows=N_ROWS)]
        for other in others:
            check_same(whole, other)


def check_same(whole, other):
    if isinstance(whole, str):
        assert isinstance(other, str), whole
        assert "\n" not in other
        return
    assert not isinstance(other, str), other
    assert other.moments is None or list(other.moments.labels) == sorted(set(whole.groups))
    assert other.feature_names == whole.feature_names
    np.testing.assert_array_equal(other.groups, whole.groups)
    np.testing.assert_allclose(other.X, whole.X, atol=1e-6)
    assert (other.label is None) == (whole.label is None)
    assert whole.label is None or other.label.tolist() == whole.label.tolist()
    names = ("file", "notes", "offsets", "scales", "sampled")
    assert replace(other.preparation, **{name: getattr(whole.preparation, name) for name in names}) == whole.preparation
