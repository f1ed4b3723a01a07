"""ParityPCA and LeacePCA with continuous sensitive features: scores uncorrelated with each of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, LeacePCA, MMDFairPCA, ParityPCA, load_model, save_model
from fairpca.datasets import load_german_credit
from fairpca.moments import attribute_moments


@pytest.fixture(params=[ParityPCA, LeacePCA], ids=lambda cls: cls.__name__)
def estimator(request):
    return request.param(n_components=2)


@pytest.fixture
def people(rng):
    """Seven features, a group and two measurements that they depend on."""
    sex = rng.choice(["female", "male"], 300)
    age, income = rng.normal(40.0, 12.0, 300), rng.lognormal(3.0, 0.5, 300)
    X = rng.normal(size=(300, 7)) @ rng.normal(size=(7, 7))
    X += np.outer(age / 10, rng.normal(size=7)) + np.outer(income / 10, rng.normal(size=7))
    X += np.outer(sex == "male", rng.normal(size=7))
    return X, pd.DataFrame({"sex": sex, "age": age, "income": income})


def correlations(scores, values):
    return np.abs(np.corrcoef(scores.T, np.asarray(values, dtype=float))[-1, :-1]).max()


def test_scores_are_uncorrelated(estimator, people):
    X, table = people
    scores = estimator.fit_transform(X, sensitive_features=table, continuous=["age", "income"])
    for values in (table["age"], table["income"], table["sex"] == "male"):
        assert correlations(scores, values) < 1e-10
        assert correlations(PCA(2).fit_transform(X), values) > 0.01
    assert estimator.continuous_ == ["age", "income"]
    assert estimator.continuous_slopes_ == pytest.approx([0.0, 0.0], abs=1e-11)
    assert estimator.groups_.tolist() == ["female", "male"]


def test_age_in_german_credit(estimator):
    german = load_german_credit()
    sex, column = german.sensitive_features, list(german.feature_names).index("age")
    age, rest = german.data[:, column], np.delete(german.data, column, axis=1)
    scores = estimator.set_params(n_components=5).fit_transform(rest, sensitive_features=sex, continuous=age)
    assert correlations(scores, age) < 1e-10
    assert correlations(scores, sex == "male") < 1e-10


def test_names_and_values_say_the_same(estimator, people):
    X, table = people
    by_name = clone(estimator).fit(X, sensitive_features=table[["sex", "age"]], continuous="age")
    by_value = clone(estimator).fit(X, sensitive_features=table["sex"], continuous=table["age"].to_numpy())
    np.testing.assert_array_equal(by_name.components_, by_value.components_)
    assert (by_name.continuous_, by_value.continuous_) == (["age"], ["continuous0"])


@pytest.mark.parametrize("values", [(0.0, 1.0), (-3.0, 1e4)])
def test_an_attribute_of_two_values_is_a_group(estimator, people, values):
    X, table = people
    male = table["sex"] == "male"
    expected = clone(estimator).fit(X, sensitive_features=male)
    found = estimator.fit(X, continuous=np.where(male, values[1], values[0]))
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-10)
    np.testing.assert_allclose(found.transform(X), expected.transform(X), atol=1e-9)
    assert found.groups_.tolist() == ["all"]
    assert found.group_counts_.tolist() == [300]
    assert found.objective_ == pytest.approx(expected.objective_)


def test_several_indicators_are_groups(estimator, people):
    X, _ = people
    letters = np.array(list("abcd"))[np.arange(300) % 4]
    X = X + (letters[:, None] == np.array(list("abcd"))) @ np.arange(28.0).reshape(4, 7) ** 0.5
    expected = clone(estimator).fit(X, sensitive_features=letters)
    found = estimator.fit(X, continuous=pd.get_dummies(letters).astype(float))
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-9)


def test_parity_is_pca_orthogonal_to_the_covariance(people):
    X, table = people
    pca = ParityPCA(3).fit(X, continuous=table["age"])
    centred = X - X.mean(axis=0)
    direction = centred.T @ (table["age"] - table["age"].mean()).to_numpy()
    direction /= np.linalg.norm(direction)
    ordinary = PCA(3).fit(centred - np.outer(centred @ direction, direction))
    np.testing.assert_allclose(np.abs(np.diag(ordinary.components_ @ pca.components_.T)), 1.0, atol=1e-9)
    assert pca.duality_gap_ < 1e-9 * X.var(axis=0).sum()


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_tolerance_limits_the_change_per_standard_deviation(people, share):
    X, table = people
    unlimited = ParityPCA(2, mean_tolerance=1e6).fit(X, continuous=table["age"])
    np.testing.assert_allclose(np.abs(np.diag(PCA(2).fit(X).components_ @ unlimited.components_.T)), 1.0, atol=1e-9)
    limit = share * unlimited.continuous_slopes_[0]
    pca = ParityPCA(2, mean_tolerance=limit).fit(X, continuous=table["age"])
    scores, age = pca.transform(X), table["age"].to_numpy()
    slope = np.linalg.norm([np.cov(score, age, bias=True)[0, 1] / age.std() for score in scores.T])
    assert pca.continuous_slopes_[0] == pytest.approx(slope)
    assert slope == pytest.approx(limit, rel=1e-6)
    assert pca.duality_gap_ < 1e-6 * X.var(axis=0).sum()
    assert unlimited.objective_ < pca.objective_ < ParityPCA(2).fit(X, continuous=table["age"]).objective_


def test_tolerance_limits_groups_and_measurements(people):
    X, table = people
    pca = ParityPCA(2, mean_tolerance=0.3).fit(X, sensitive_features=table[["sex", "age"]], continuous="age")
    assert pca.mean_difference_ <= 0.3 * (1 + 1e-6)
    assert pca.continuous_slopes_[0] <= 0.3 * (1 + 1e-6)


def test_covariance_penalty_needs_groups(people):
    X, table = people
    pca = ParityPCA(2, covariance_penalty=1.0)
    fitted = clone(pca).fit(X, sensitive_features=table[["sex", "age"]], continuous="age")
    plain = ParityPCA(2).fit(X, sensitive_features=table[["sex", "age"]], continuous="age")
    assert fitted.covariance_difference_ < plain.covariance_difference_
    assert correlations(fitted.transform(X), table["age"]) < 1e-10
    with pytest.raises(ValueError, match="all sensitive features are continuous: leave it out, or add a column"):
        pca.fit(X, continuous=table["age"])


def test_chunks_and_moments_equal_the_batch(estimator, people):
    X, table = people
    given = {"sensitive_features": table[["sex", "age"]], "continuous": "age"}
    batch = clone(estimator).fit(X, **given)
    chunked = clone(estimator)
    for rows in (slice(0, 40), slice(40, 41), slice(41, 41), slice(41, 300)):
        chunked.partial_fit(X[rows], sensitive_features=table[["sex", "age"]][rows], continuous="age")
    np.testing.assert_allclose(chunked.components_, batch.components_, atol=1e-9)
    assert chunked.n_samples_seen_ == 300
    parts = [
        attribute_moments(X[rows], sensitive_features=table[["sex", "age"]][rows], continuous="age")
        for rows in (slice(0, 99), slice(99, 300))
    ]
    merged = clone(estimator).fit_moments(parts[0].merge(parts[1]))
    np.testing.assert_allclose(merged.components_, batch.components_, atol=1e-9)


def test_weights_count_like_repeated_rows(estimator, people, rng):
    X, table = people
    weights = rng.integers(0, 3, 300)
    weighted = clone(estimator).fit(X, sensitive_features=table, continuous=["age", "income"], sample_weight=weights)
    rows = np.repeat(np.arange(300), weights)
    repeated = clone(estimator).fit(X[rows], sensitive_features=table.iloc[rows], continuous=["age", "income"])
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-9)


def test_every_chunk_needs_the_same_columns(estimator, people):
    X, table = people
    first = clone(estimator).partial_fit(X, sensitive_features=table["sex"], continuous=table["age"])
    with pytest.raises(ValueError, match=r"the rows seen before had continuous=\['age'\]"):
        first.partial_fit(X, sensitive_features=table["sex"])
    with pytest.raises(ValueError, match=r"\['age'\] and \['income'\]"):
        first.partial_fit(X, sensitive_features=table["sex"], continuous=table["income"])
    plain = clone(estimator).partial_fit(X, sensitive_features=table["sex"])
    with pytest.raises(ValueError, match="the rows seen before had no continuous"):
        plain.partial_fit(X, sensitive_features=table["sex"], continuous=table["age"])
    plain.fit(X, continuous=table["age"]).fit(X, sensitive_features=table["sex"])  # a new fit forgets
    assert plain.continuous_ == []
    assert plain.continuous_slopes_.shape == (0,)
    plain.partial_fit(X, sensitive_features=table["sex"])


def test_saved_models_go_on_learning(estimator, people, tmp_path):
    X, table = people
    half = slice(0, 150)
    before = estimator.partial_fit(X[half], sensitive_features=table["sex"][half], continuous=table["age"][half])
    after = load_model(save_model(before, tmp_path / "model.npz"))
    np.testing.assert_array_equal(after.transform(X), before.transform(X))
    for one in (before, after):
        one.partial_fit(X[150:], sensitive_features=table["sex"][150:], continuous=table["age"][150:])
    np.testing.assert_array_equal(after.components_, before.components_)
    assert correlations(after.transform(X), table["age"]) < 1e-10


def test_bad_continuous_columns(estimator, people):
    X, table = people
    with pytest.raises(ValueError, match="'continuous0' has the same value in every row"):
        estimator.fit(X, continuous=np.ones(300))
    with pytest.raises(ValueError, match="sensitive_features is required"):
        estimator.fit(X)
    assert not hasattr(estimator, "components_")
    with pytest.raises(ValueError, match=r"only 4 directions of the 7 feature\(s\)"):
        clone(estimator).set_params(n_components=5).fit(X, sensitive_features=table, continuous=["age", "income"])


def test_a_copy_of_the_attribute_is_named(estimator, people):
    X, table = people
    frame = pd.DataFrame(X, columns=list("pqrstuv")).assign(months=12.0 * table["age"])
    with pytest.warns(UserWarning, match="copy of it: 'months'"):
        estimator.fit(frame, continuous=table["age"])


def test_a_column_uncorrelated_up_to_rounding_costs_no_direction(estimator, rng):
    """An attribute far from zero, such as a date in seconds: means of chunks round more than they vary."""
    X, days = rng.normal(size=(100, 4)) * [3.0, 2.0, 1.0, 0.5], rng.integers(-1024, 1024, 100) / 1024
    X, dates = np.vstack([X, X]), 2.0**40 + np.concatenate([days, -days])  # exactly uncorrelated
    for rows in np.split(np.arange(200), 20):
        estimator.set_params(n_components=3).partial_fit(X[rows], continuous=dates[rows])
    estimator.set_params(n_components=4).partial_fit(X, continuous=dates)
    assert estimator.explained_variance_ratio_.sum() == pytest.approx(1.0)


def test_the_other_estimators_name_the_alternative(people):
    X, table = people
    for other in (FairPCA(2), MMDFairPCA(2), ParityPCA(2)):
        with pytest.raises(ValueError, match="pass it to ParityPCA or LeacePCA as continuous"):
            other.fit(X, sensitive_features=table["age"])


def test_columns_of_the_frame_itself(estimator, people):
    X, table = people
    frame = pd.concat([pd.DataFrame(X, columns=list("pqrstuv")), table], axis=1)
    expected = clone(estimator).fit(X, sensitive_features=table, continuous=["age", "income"])
    fitted = estimator.fit(frame, sensitive_features=["sex", "age", "income"], continuous=["age", "income"])
    np.testing.assert_array_equal(fitted.components_, expected.components_)
    np.testing.assert_array_equal(fitted.transform(frame), expected.transform(X))
    assert clone(estimator).fit(frame, sensitive_features=["sex", "age"], continuous="age").n_features_in_ == 8


def test_routing_passes_the_columns_on(estimator, people):
    X, table = people
    y = (X[:, 0] > 0).astype(int)
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), clone(estimator), LogisticRegression())
        pipeline.fit(X, y, sensitive_features=table, continuous=["age", "income"])
        params = {"sensitive_features": table["sex"], "continuous": table["age"].to_numpy()}
        scores = cross_validate(pipeline, X, y, params=params, cv=3, return_estimator=True)
    assert correlations(pipeline[:-1].transform(X), table["age"]) < 1e-10
    assert scores["test_score"].shape == (3,)
    assert scores["estimator"][0][1].n_samples_seen_ == 200


def test_dask_collections(estimator, people):
    da, dd = (pytest.importorskip(f"dask.{name}", reason="dask is not installed") for name in ("array", "dataframe"))
    X, table = people
    expected = clone(estimator).fit(X, sensitive_features=table, continuous=["age", "income"])
    whole = pd.concat([pd.DataFrame(X, columns=list("pqrstuv")), table], axis=1)
    frame, array = dd.from_pandas(whole, npartitions=3), da.from_array(X, chunks=(70, 4))
    lazy = {name: frame[name] for name in ("sex", "age", "income")}
    chunked = da.from_array(table[["age", "income"]].to_numpy(), chunks=(110, 2))
    for given in (
        {"X": frame, "sensitive_features": ["sex", "age", "income"], "continuous": ["age", "income"]},
        {"X": frame[list("pqrstuv")], "sensitive_features": lazy, "continuous": ["age", "income"]},
        {"X": array, "sensitive_features": table["sex"].to_numpy(), "continuous": chunked},
        {"X": array, "sensitive_features": table, "continuous": ["age", "income"]},
    ):
        fitted = clone(estimator).fit(**given)
        np.testing.assert_allclose(fitted.components_, expected.components_, atol=1e-9)
        assert fitted.groups_.tolist() == expected.groups_.tolist()
    alone = clone(estimator).fit(array, continuous=da.from_array(table["age"].to_numpy(), chunks=50))
    assert correlations(alone.transform(array).compute(), table["age"]) < 1e-10
    with pytest.raises(ValueError, match="continuous must be a Dask collection with the same chunks as X"):
        estimator.fit(frame, sensitive_features="sex", continuous=table["age"].to_numpy())


def test_every_sensitive_feature_takes_one_of_all_components(estimator, people):
    X, table = people
    sensitive = {"sensitive_features": table, "continuous": ["age", "income"]}
    fitted = clone(estimator).set_params(n_components=None).fit(X, **sensitive)
    assert fitted.n_components_ == 4  # of seven; one for the difference of the means, one per measurement
    with pytest.raises(ValueError, match="only 4 directions"):
        clone(estimator).set_params(n_components=5).fit(X, **sensitive)


def test_chunks_with_measurements_need_a_number_of_components(estimator, people):
    X, table = people
    with pytest.raises(ValueError, match=r"n_components=0\.5 is a share"):
        clone(estimator).set_params(n_components=0.5).partial_fit(
            X, sensitive_features=table, continuous=["age", "income"]
        )
