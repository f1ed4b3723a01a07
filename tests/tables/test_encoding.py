"""New files are encoded like the one that the encoder was fitted on."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tables.files import rows, write

from fairpca.tables import Encoder, prepare_table, read_table


def test_encoder_survives_json_and_treats_new_rows_alike(tmp_path):
    table = read_table(write(tmp_path, rows()))
    data = prepare_table(table, ["sex"], "default")
    again = Encoder.from_dict(data.encoder.as_dict())
    np.testing.assert_array_equal(again.encode(table), data.X)
    new = read_table(write(tmp_path, "city,age\nParis,20\nBonn,21\n", "new.csv"))
    assert again.unknown_levels(new) == {"city": ["Paris"]}
    assert again.encode(new).shape == (2, 4)
    with pytest.raises(ValueError, match="damaged"):
        Encoder.from_dict({"numeric": ["a"], "levels": {}, "offsets": [], "scales": []})
    text = read_table(write(tmp_path, "city,age\nBonn,old\n", "text.csv"))
    with pytest.raises(ValueError, match="'age' must contain numbers, but contains 'old'"):
        again.encode(text)


def test_levels_are_matched_as_they_are_written(tmp_path):
    """In a file with only some of the levels, the column may look numeric."""
    body = "".join(f"{i * i % 23},{('01', '1', 'x', '1.0')[i % 4]},{i // 4 % 2}\n" for i in range(80))
    encoder = prepare_table(read_table(write(tmp_path, f"x,code,sex\n{body}")), ["sex"], standardise=False).encoder
    assert encoder.levels == {"code": ("01", "1", "1.0", "x")}
    new = read_table(write(tmp_path, "x,code\n1,01\n2,1\n3,1.0\n", "new.csv"))
    assert encoder.unknown_levels(new) == {}
    np.testing.assert_array_equal(encoder.encode(new)[:, 1:], np.eye(3, 4))
