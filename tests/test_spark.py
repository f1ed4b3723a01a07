"""The recipe for Spark is the fit in memory: partitions become bytes, which are merged (``make test-spark``)."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from fairpca import FairPCA
from fairpca.moments import group_moments

pytest.importorskip("pyspark", reason="needs pyspark and Java 17: make test-spark")
pandas = pytest.importorskip("pandas")

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{name}")
    for name in ("FutureWarning", "DeprecationWarning", "ResourceWarning", "UserWarning")
]
RECIPE = Path(__file__).parents[1] / "docs" / "howto" / "spark_moments.py"


@pytest.fixture(scope="module")
def recipe():
    """Run as a script: workers get its functions by value."""
    names = runpy.run_path(str(RECIPE), run_name="__main__")
    yield names
    names["spark"].stop()


def test_the_fit_of_the_recipe_is_that_in_memory(recipe):
    people, features = recipe["people"], recipe["features"]
    given = {"sensitive_features": people["sex"], "sample_weight": people["weight"]}
    expected = FairPCA(5).fit(people[features].to_numpy(), **given)
    assert np.allclose(recipe["pca"].components_, expected.components_, atol=1e-9)
    assert np.allclose(recipe["pca"].group_losses_, expected.group_losses_)
    assert np.allclose(recipe["pca"].group_counts_, expected.group_counts_)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("partitions", [1, 3, 40])
def test_any_partitions(recipe, rng, weighted, partitions):
    """With 40 partitions of 60 rows, many lack a group, and some have no rows or none of positive weight."""
    X, groups = rng.normal(size=(60, 4)) + 100.0, rng.choice(["a", "b", "c"], 60)
    weights = rng.integers(0, 3, 60).astype(float) if weighted else None
    people = pandas.DataFrame(X, columns=list("pqrs")).assign(group=groups, weight=1.0 if weights is None else weights)
    table = recipe["spark"].createDataFrame(people).repartition(partitions)
    found = recipe["moments_of"](table, list("pqrs"), "group", "weight" if weighted else None)
    expected = group_moments(X, sensitive_features=groups, sample_weight=weights)
    assert found.labels == expected.labels
    for name in ("counts", "means", "scatters"):
        assert np.allclose(getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-10)


def test_bad_values_are_named(recipe):
    people = pandas.DataFrame({"p": [1.0, None, 2.0], "q": [1.0, 2.0, 3.0], "group": ["a", "b", "a"]})
    with pytest.raises(Exception, match=r"'p' contains nulls|NaN|not finite"):
        recipe["moments_of"](recipe["spark"].createDataFrame(people), ["p", "q"], "group")
