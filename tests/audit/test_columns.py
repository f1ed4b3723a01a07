"""A CSV column becomes numeric if all of its texts are numbers."""

from __future__ import annotations

import numpy as np
import pytest
from tests.audit.files import write

from fairpca.audit import prepare


def column_of(folder, texts, delimiter):
    """The record of a file in which these texts fill a column, and the values of the column in its first rows."""
    cells = [f'"{text}"' if delimiter in text else text for text in texts]
    lines = [delimiter.join([cells[i % len(cells)], str(i * i % 31), "fm"[i // len(cells) % 2]]) for i in range(120)]
    path = write(folder, "\n".join([delimiter.join(["x", "y", "sex"]), *lines]))
    data = prepare(path, "sex", standardise=False, impute="median")
    return data.preparation, data.X[: len(texts), 0]


@pytest.mark.parametrize(
    ("texts", "delimiter", "numbers", "commas"),
    [
        (["1,5", "2", "-,25", "3,1e2"], ";", [1.5, 2, -0.25, 310], "decimal points"),
        (["1.234,5", "12", "13"], "\t", [1234.5, 12, 13], "decimal points"),
        (["1,234", "2,000"], ";", [1.234, 2], "decimal points"),
        (["1,5", "2,25"], ",", [1.5, 2.25], "decimal points"),
        (["1,234,567", "12"], ",", [1234567, 12], "thousands separators"),
        (["1,234.5", "0.25"], ",", [1234.5, 0.25], "thousands separators"),
        (["+1.5", " 2", "3e1"], ",", [1.5, 2, 30], ""),
    ],
)
def test_numbers_with_commas(tmp_path, texts, delimiter, numbers, commas):
    preparation, values = column_of(tmp_path, texts, delimiter)
    assert preparation.numeric[0] == "x"
    np.testing.assert_array_equal(values, numbers)
    assert preparation.commas == ({"x": commas} if commas else {})


@pytest.mark.parametrize(
    "texts", [["1_0", "2"], ["1,2,3", "1"], ["1.5", "2,5"], ["a", "1"], ["1,", "2"], ["0x10", "1"]]
)
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_codes_are_text(tmp_path, texts, delimiter):
    preparation, _ = column_of(tmp_path, texts, delimiter)
    assert preparation.levels == {"x": tuple(sorted(texts))}


def test_a_text_late_in_the_file_decides(tmp_path, monkeypatch):
    """Numbers of earlier blocks are read again, as levels or with their commas."""
    monkeypatch.setattr("fairpca.audit.csv_table._BLOCK_BYTES", 256)
    for late, numeric in (("9,5", True), ("x", False)):
        body = "".join(f"{late if i == 590 else i % 7};{i * i % 31};{'fm'[i % 2]}\n" for i in range(600))
        preparation = prepare(write(tmp_path, f"x;y;sex\n{body}"), "sex", min_level=0).preparation
        assert ("x" in preparation.numeric) == numeric
        assert numeric or preparation.levels["x"] == (*map(str, range(7)), "x")
