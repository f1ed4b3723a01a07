"""New files are encoded like the one that the encoder was fitted on."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.audit.files import rows, write

from fairpca.audit import Preparation, prepare, read_table


def test_encoder_survives_json_and_treats_new_rows_alike(tmp_path):
    table = read_table(write(tmp_path, rows()))
    data = prepare(table, ["sex"], "default")
    again = Preparation.from_dict(json.loads(json.dumps(data.preparation.as_dict())))
    assert again == data.preparation
    np.testing.assert_array_equal(again.transform(table), data.X)
    new = read_table(write(tmp_path, "city,age\nParis,20\nBonn,21\n", "new.csv"))
    with pytest.warns(UserWarning, match=r"'city' has values the model has not seen \('Paris'\)"):
        assert again.transform(new).shape == (2, 4)
    with pytest.raises(ValueError, match="damaged"):
        Preparation.from_dict(data.preparation.as_dict() | {"numeric": ["a", "b"]})
    text = read_table(write(tmp_path, "city,age\nBonn,old\n", "text.csv"))
    with pytest.raises(ValueError, match="'age' must contain numbers, but contains 'old'"):
        again.transform(text)


def test_levels_are_matched_as_they_are_written(tmp_path):
    """In a file with only some of the levels, the column may look numeric."""
    body = "".join(f"{i * i % 23},{('01', '1', 'x', '1.0')[i % 4]},{i // 4 % 2}\n" for i in range(80))
    preparation = prepare(read_table(write(tmp_path, f"x,code,sex\n{body}")), ["sex"], standardise=False).preparation
    assert preparation.levels == {"code": ("01", "1", "1.0", "x")}
    new = read_table(write(tmp_path, "x,code\n1,01\n2,1\n3,1.0\n", "new.csv"))
    np.testing.assert_array_equal(preparation.transform(new)[:, 1:], np.eye(3, 4))
