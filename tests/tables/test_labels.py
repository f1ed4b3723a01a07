"""Different values have different labels."""

from __future__ import annotations

import numpy as np

from fairpca.tables.labels import class_values


def test_texts_that_are_the_same_number_stay_apart():
    assert class_values(np.array(["01", "1"], dtype=object)).tolist() == ["01", "1"]
    assert class_values(np.array(["inf", "1"], dtype=object)).tolist() == ["inf", "1"]
