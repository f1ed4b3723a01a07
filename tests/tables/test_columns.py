"""A CSV column becomes numeric if all of its texts are numbers."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca.tables.columns import read_column


@pytest.mark.parametrize(
    ("texts", "delimiter", "numbers", "commas"),
    [
        (["1,5", "2", "-,25", "3,1e2"], ";", [1.5, 2, -0.25, 310], "decimal points"),
        (["1.234,5", "12", "?"], "\t", [1234.5, 12, np.nan], "decimal points"),
        (["1,234", "2,000"], ";", [1.234, 2], "decimal points"),
        (["1,5", "2,25"], ",", [1.5, 2.25], "decimal points"),
        (["1,234,567", "12"], ",", [1234567, 12], "thousands separators"),
        (["1,234.5", "0.25"], ",", [1234.5, 0.25], "thousands separators"),
    ],
)
def test_numbers_with_commas(texts, delimiter, numbers, commas):
    column = read_column(texts, delimiter)
    np.testing.assert_array_equal(column.values, numbers)
    assert column.commas == commas


@pytest.mark.parametrize(
    "texts", [["1_0", "2"], ["1,2,3", "1"], ["1.5", "2,5"], ["a", "1"], ["1,", "2"], ["0x10", "1"]]
)
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_codes_are_text(texts, delimiter):
    assert read_column(texts, delimiter).values.tolist() == texts
