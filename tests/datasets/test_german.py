"""The bundled German credit data."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fairpca.datasets import load_german_credit


def test_shape_and_standardisation():
    german = load_german_credit()
    assert german.data.shape == (1000, 57) == (len(german.target), len(german.feature_names))
    assert np.allclose(german.data.mean(axis=0), 0, atol=1e-12)
    assert np.allclose(german.data.std(axis=0), 1)
    assert german.target.sum() == 700
    assert (german.sensitive_features == "female").sum() == 310
    assert "CC BY 4.0" in german.DESCR


def test_sex_cannot_be_read_off_a_column():
    german = load_german_credit(scaled=False)
    female = german.sensitive_features == "female"
    for column in german.data.T:
        assert np.ptp(column[female]) > 0 or np.ptp(column[~female]) > 0
    assert not any("sex" in name for name in german.feature_names)


def test_raw_values_and_frame():
    raw = load_german_credit(scaled=False, as_frame=True)
    assert isinstance(raw.data, pd.DataFrame)
    assert raw.data["credit_amount"].iloc[0] == 1169
    assert raw.data["age"].iloc[0] == 67
    levels = [name for name in raw.feature_names if name.startswith("housing=")]
    assert (raw.data[levels].sum(axis=1) == 1).all()
    assert raw.sensitive_features.name == "sex"
    X, sex = load_german_credit(return_X_s=True, as_frame=True)
    assert len(X) == len(sex) == 1000


def test_same_file_as_the_public_original(shared_data):
    lines = (shared_data / "uci" / "german.data").read_text().splitlines()
    german = load_german_credit(scaled=False)
    amounts = [float(line.split()[4]) for line in lines]
    assert np.array_equal(german.data[:, german.feature_names.index("credit_amount")], amounts)
