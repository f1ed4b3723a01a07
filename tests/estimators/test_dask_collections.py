"""The moment-based estimators on Dask collections: the fit in memory to rounding, and lazy scores."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca import FairPCA, LeacePCA, ParityPCA, RobustFairPCA
from fairpca._validation import is_dask

da = pytest.importorskip("dask.array", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

ESTIMATORS = {
    "FairPCA": FairPCA(2, criterion="error"),
    "RobustFairPCA": RobustFairPCA(2, penalty=2.0),
    "LeacePCA": LeacePCA(2),
    "ParityPCA, means": ParityPCA(2),
    "ParityPCA, covariances": ParityPCA(2, covariance_penalty=0.5),
}
ATTRIBUTES = (
    "mean_",
    "explained_variance_",
    "group_counts_",
    "group_errors_",
    "group_losses_",
    "objective_",
    "lower_bound_",
)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(4)
    groups = np.where(np.arange(600) < 250, "a", "b")  # some chunks hold one group only
    X = rng.normal(size=(600, 6)) * [2.5, 2.0, 1.5, 1.0, 0.7, 0.4] + 5.0
    X[groups == "b"] = X[groups == "b"][:, [2, 0, 1, 3, 5, 4]] + [0.8, 0, 0.3, 0, 0, 0]
    return X, groups, rng.integers(1, 4, 600).astype(float)


@pytest.fixture(scope="module")
def in_memory(people):
    X, groups, _ = people
    return {name: fresh(name).fit(X, sensitive_features=groups) for name in ESTIMATORS}


def fresh(name):
    return type(ESTIMATORS[name])(**ESTIMATORS[name].get_params())


def assert_same(ours, theirs):
    assert ours.groups_.tolist() == theirs.groups_.tolist()
    for attribute in ATTRIBUTES:
        np.testing.assert_allclose(getattr(ours, attribute), getattr(theirs, attribute), rtol=1e-8, err_msg=attribute)
    np.testing.assert_allclose(ours.components_, theirs.components_, atol=1e-6)


def forms(X, groups):
    """Every way to give the group with, or in, a Dask collection, and the features alone."""
    array = da.from_array(X, chunks=(130, 4))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    features = dd.from_pandas(frame, npartitions=4)
    table = dd.from_pandas(frame.assign(sex=groups), npartitions=4)
    return {
        "array, array": (array, da.from_array(groups, chunks=90), array),
        "array, in memory": (array, groups, array),
        "frame, series": (features, table["sex"], features),
        "frame, frame": (features, table[["sex"]], features),
        "frame, categorical": (features, table["sex"].astype("category"), features),
        "frame, column": (table, "sex", features),
    }


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(
    "form",
    ["array, array", "array, in memory", "frame, series", "frame, frame", "frame, categorical", "frame, column"],
)
def test_fit_equals_memory_and_scores_are_lazy(people, in_memory, name, form):
    X, groups, _ = people
    given, sensitive, features = forms(X, groups)[form]
    fitted = fresh(name).fit(given, sensitive_features=sensitive)
    assert_same(fitted, in_memory[name])
    scores = fitted.transform(features)
    assert is_dask(scores)
    assert np.allclose(scores.compute(), in_memory[name].transform(X), atol=1e-5)
    if form.startswith("frame"):
        assert fitted.feature_names_in_.tolist() == [f"x{j}" for j in range(6)]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_weights_and_partial_fit(people, in_memory, name):
    X, groups, weights = people
    array, lazy_groups, lazy_weights = (da.from_array(values, chunks=100) for values in (X, groups, weights))
    ours = fresh(name).fit(array, sensitive_features=lazy_groups, sample_weight=lazy_weights)
    assert_same(ours, fresh(name).fit(X, sensitive_features=groups, sample_weight=weights))
    partial = fresh(name).partial_fit(array[:300], sensitive_features=lazy_groups[:300])
    assert_same(partial.partial_fit(array[300:], sensitive_features=lazy_groups[300:]), in_memory[name])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_values_in_memory_are_accepted_with_a_dask_array(people, name):
    X, groups, weights = people
    array = da.from_array(X, chunks=(130, 6))
    mixed = [1 if group == "a" else "1" for group in groups]
    for given, weight in (({"sex": groups}, weights.tolist()), (mixed, weights)):
        ours = fresh(name).fit(array, sensitive_features=given, sample_weight=weight)
        assert_same(ours, fresh(name).fit(X, sensitive_features=given, sample_weight=weight))


@pytest.mark.parametrize("name", ["RobustFairPCA", "ParityPCA, means"])
def test_errors(people, name):
    X, _, _ = people
    array = da.from_array(X, chunks=(100, 6))
    with pytest.raises(ValueError, match="required"):
        fresh(name).fit(array)
    with pytest.raises(ValueError, match="single group"):
        fresh(name).fit(array, sensitive_features=np.full(600, "a"))
