"""The bundled Adult data."""

from __future__ import annotations

import bz2
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from fairpca.datasets import load_adult


@pytest.fixture(scope="module")
def adult():
    return load_adult()


@pytest.fixture(scope="module")
def raw():
    return load_adult(scaled=False, as_frame=True)


def test_shape_standardisation_and_licence(adult):
    assert adult.data.shape == (32_561, 43) == (len(adult.target), len(adult.feature_names))
    assert np.allclose(adult.data.mean(axis=0), 0, atol=1e-12)
    assert np.allclose(adult.data.std(axis=0), 1)
    assert (adult.sensitive_features == "male").sum() == 21_790
    assert adult.target.sum() == 7841
    assert "CC BY 4.0" in adult.DESCR


def test_bundled_file_is_small():
    assert (files("fairpca.datasets") / "data" / "adult.data.bz2").stat().st_size <= 400_000


def test_groups_label_and_weights_are_no_features(adult):
    told = " ".join(adult.feature_names).lower()
    assert not any(word in told for word in ("sex=", "fnlwgt", "income", "education="))


def test_weights_are_those_of_the_file(adult):
    assert adult.sample_weight[:2].tolist() == [77_516.0, 83_311.0]
    assert adult.sample_weight.min() > 0


def test_missing_values_are_a_level_and_rare_levels_have_no_column(raw):
    assert raw.data["workclass=unknown"].sum() == 1836
    assert raw.data["occupation=unknown"].sum() == 1843
    assert raw.data["native-country=unknown"].sum() == 583
    indicators = [name for name in raw.feature_names if "=" in name]
    assert len(indicators) == 38
    assert raw.data[indicators].mean().min() >= 0.01
    assert (raw.data[[name for name in indicators if name.startswith("relationship=")]].sum(axis=1) == 1).all()
    without = [
        (raw.data[[name for name in indicators if name.startswith(column)]].sum(axis=1) == 0).sum()
        for column in ("workclass", "marital-status", "occupation", "race", "native-country")
    ]
    assert without == [7 + 14, 23, 9 + 149, 311 + 271, 2165]


def test_values_and_frames(raw):
    assert isinstance(raw.data, pd.DataFrame)
    assert raw.data.loc[0, ["age", "education-num", "capital-gain", "hours-per-week"]].tolist() == [39, 13, 2174, 40]
    assert raw.sensitive_features.name == "sex"
    assert raw.sample_weight.name == "fnlwgt"
    X, sex = load_adult(return_X_s=True)
    assert len(X) == len(sex) == len(raw.race)


def test_same_file_as_the_public_original(shared_data):
    bundled = (files("fairpca.datasets") / "data" / "adult.data.bz2").read_bytes()
    assert bz2.decompress(bundled) == (shared_data / "uci" / "adult.data").read_bytes()
