"""In Adult by race, no component rests on a handful of people, and recoding countries does not change the verdict."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from tests.audit.files import write

from fairpca import FairPCA
from fairpca.audit import prepare, read_table
from fairpca.inference import loss_test

NAMES = [
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income"),
]


@pytest.fixture(scope="module")
def tables(shared_data, tmp_path_factory):
    """Adult with all countries, and with United States against the others."""
    folder = tmp_path_factory.mktemp("adult")
    lines = (shared_data / "uci" / "adult.data").read_text().splitlines()
    rows = [line.split(", ") for line in lines if line]
    found = {}
    for name in ("all", "two"):
        if name == "two":
            for row in rows:
                row[13] = {"United-States": "US", "?": "?"}.get(row[13], "other")
        text = "\n".join(", ".join(row) for row in [NAMES, *rows])
        found[name] = read_table(write(folder, text, f"{name}.csv"))
    return found


def prepared(table, **options):
    return prepare(table, ["race"], "income", drop=["fnlwgt"], **options)


def rarest_part(data):
    """Of all indicators of levels: the smallest share of the rows with or without the level."""
    first = len(data.preparation.numeric)
    shares = np.array(data.preparation.offsets[first:])
    return np.minimum(shares, 1 - shares)


def largest_rare_loading(data, estimator):
    """The largest part of a component that is the indicator of a level with under 1 % of the rows."""
    first = len(data.preparation.numeric)
    rare = first + np.flatnonzero(rarest_part(data) < 0.01)
    return float((estimator.components_[:, rare] ** 2).max(initial=0.0))


def test_no_component_is_dominated_by_a_rare_level(tables):
    data = prepared(tables["two"])
    assert rarest_part(data).min() >= 0.01
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pooled, kept = (
            largest_rare_loading(found, FairPCA(2, max_iter=60).fit(found.X, sensitive_features=found.groups))
            for found in (data, prepared(tables["two"], min_level=0))
        )
    assert pooled == 0.0
    assert kept > 0.5  # what nine people in the armed forces would do


def test_the_verdict_does_not_depend_on_how_countries_are_coded(tables):
    verdicts = {}
    for name, table in tables.items():
        data = prepared(table)
        test = loss_test(data.X, sensitive_features=data.groups, n_components=[2, 5], n_permutations=19, random_state=0)
        verdicts[name] = [
            (test[d].p_value, max(test[d].by_group, key=lambda label: test[d].by_group[label].loss)) for d in (2, 5)
        ]
    assert verdicts["all"] == verdicts["two"] == [(0.05, "Asian-Pac-Islander"), (0.05, "Other")]
