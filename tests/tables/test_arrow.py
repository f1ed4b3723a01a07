"""Parquet and Feather files are told by their ending, and named where the ending is wrong."""

from __future__ import annotations

import pytest

from fairpca.tables import read_table

pyarrow = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize("name", ["people.csv", "people"])
@pytest.mark.parametrize("kind", ["Parquet", "Feather"])
def test_a_wrong_ending_is_told_with_the_right_one(tmp_path, name, kind):
    table = pyarrow.table({"x": [0.1, 0.2], "sex": ["f", "m"]})
    path = tmp_path / name
    parquet.write_table(table, path) if kind == "Parquet" else feather.write_feather(table, str(path))
    with pytest.raises(ValueError, match=rf"{name} is not a text file but {kind}: .* ends in \.{kind.lower()}\.$"):
        read_table(path)


def test_other_binary_files_are_no_text_and_utf_16_is_another_encoding(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(b"PK\x03\x04\xff\0\0\0")
    with pytest.raises(ValueError, match=r"people\.csv is not a text file: give CSV"):
        read_table(path)
    path.write_bytes("age,sex\n1,f\n".encode("utf-16"))
    with pytest.raises(ValueError, match="is text in UTF-16, not UTF-8"):
        read_table(path)
