"""Frames of pandas and polars are the same data as arrays, and their columns may name the groups."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairpca import FairPCA, KernelParityPCA, MMDFairPCA, ParityPCA, RobustFairPCA
from fairpca.inference import cross_validate_groups, dominant_parts, loss_test
from fairpca.metrics import mmd2, readability, reconstruction_error, reconstruction_loss
from fairpca.model_selection import compare, frontier
from fairpca.moments import group_moments
from fairpca.persistence import load_model, save_model

ESTIMATORS = [FairPCA, RobustFairPCA, ParityPCA, MMDFairPCA, KernelParityPCA]
NAMES = list("pqrstuv")
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


@pytest.fixture(params=FRAMES.values(), ids=FRAMES)
def make(request):
    return request.param


@pytest.fixture
def people(two_groups):
    """Features, a column of groups in the middle of them, and another at the end."""
    X, sex = two_groups
    columns = {name: X[:, j] for j, name in enumerate(NAMES)}
    columns = {"p": columns.pop("p"), "sex": sex, **columns, "region": np.arange(len(X)) % 2}
    return X, sex, columns


def few(cls):
    return cls(1, tolerance=0.5, bandwidth=1.0) if cls is MMDFairPCA else cls(2)


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_frames_of_any_kind_give_the_same_numbers_bit_for_bit(cls, people, rng):
    X, sex, _ = people
    weights = rng.integers(1, 4, len(X)).astype(float)
    kinds = {
        "numpy": (X, sex, weights),
        "pandas": (pd.DataFrame(X, columns=NAMES), pd.Series(sex), pd.Series(weights)),
        "polars": (pl.DataFrame(dict(zip(NAMES, X.T, strict=True))), pl.Series(sex), pl.Series(weights)),
    }
    fits = {
        kind: few(cls).fit(rows, sensitive_features=groups, sample_weight=weight)
        for kind, (rows, groups, weight) in kinds.items()
    }
    scores = {kind: fits[kind].transform(rows) for kind, (rows, _, _) in kinds.items()}
    for kind in ("pandas", "polars"):
        assert list(fits[kind].feature_names_in_) == NAMES
        assert fits[kind].groups_.tolist() == fits["numpy"].groups_.tolist()
        assert np.array_equal(fits[kind].explained_variance_, fits["numpy"].explained_variance_)
        if hasattr(fits[kind], "components_"):
            assert np.array_equal(fits[kind].components_, fits["numpy"].components_)
            assert np.array_equal(fits[kind].group_losses_, fits["numpy"].group_losses_)
        assert np.allclose(scores[kind], scores["numpy"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_rows", [1_000, 30_000])
def test_moments_do_not_depend_on_how_the_frame_is_stored(rng, n_rows):
    X = rng.normal(size=(n_rows, 7)) + np.arange(7)
    groups = rng.integers(0, 3, n_rows)
    expected = group_moments(X, sensitive_features=groups)
    for rows in (np.asfortranarray(X), pd.DataFrame(X), pl.DataFrame(X)):
        assert np.array_equal(group_moments(rows, sensitive_features=groups).scatters, expected.scatters)
        assert np.array_equal(group_moments(rows, sensitive_features=groups).means, expected.means)


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_a_named_column_is_the_group_and_not_a_feature(cls, people, make):
    X, sex, columns = people
    del columns["region"]
    expected, named = few(cls).fit(X, sensitive_features=sex), few(cls)
    scores = named.fit_transform(make(columns), sensitive_features="sex")
    assert list(named.feature_names_in_) == NAMES
    assert list(named.sensitive_feature_names_in_) == ["sex"]
    assert np.allclose(scores, expected.transform(X))
    without = make({name: columns[name] for name in NAMES})
    assert np.array_equal(named.transform(make(columns)), named.transform(without))  # with the column or without
    if hasattr(named, "score_samples"):
        assert np.array_equal(named.score_samples(make(columns)), named.score_samples(without))
    again = named.fit(X, sensitive_features=sex)
    assert not hasattr(again, "sensitive_feature_names_in_")


def test_several_names_give_intersections(people, make):
    X, sex, columns = people
    named = FairPCA(2).fit(make(columns), sensitive_features=["sex", "region"])
    expected = FairPCA(2).fit(X, sensitive_features=pd.DataFrame({"sex": sex, "region": columns["region"]}))
    assert named.groups_.tolist() == expected.groups_.tolist() == [(a, b) for a in "ab" for b in (0, 1)]
    assert np.array_equal(named.components_, expected.components_)
    one = FairPCA(2).fit(
        make(columns).drop(columns="region") if make is pd.DataFrame else make(columns).drop("region"),
        sensitive_features=["sex"],
    )
    assert np.allclose(one.components_, FairPCA(2).fit(X, sensitive_features=sex).components_)
    chunked = FairPCA(2)
    for rows in (slice(0, 100), slice(100, 300)):
        chunked.partial_fit(make({k: v[rows] for k, v in columns.items()}), sensitive_features=("sex", "region"))
    assert np.allclose(chunked.components_, expected.components_)


def test_names_that_are_not_columns_are_refused(people, make):
    X, _, columns = people
    with pytest.raises(ValueError, match=r"sensitive_features='gender' is not a column of X"):
        FairPCA(2).fit(make(columns), sensitive_features="gender")
    with pytest.raises(ValueError, match=r"sensitive_features='age' is not a column of X"):
        FairPCA(2).fit(make(columns), sensitive_features=["sex", "age"])
    features = make({name: columns[name] for name in NAMES})
    with pytest.raises(ValueError, match="has 2 rows, but X has 300"):
        FairPCA(2).fit(features, sensitive_features=["woman", "man"])
    with pytest.raises(TypeError, match="X is an array without names"):
        FairPCA(2).fit(X, sensitive_features="sex")


def test_a_list_that_could_be_both_is_refused(make):
    frame = make({"a": [1.0, 2.0], "b": [3.0, 5.0], "c": [1.0, 0.0]})
    with pytest.raises(ValueError, match="could be the names of 2 columns of X, or one label for each of its 2 rows"):
        group_moments(frame, sensitive_features=["a", "b"])
    assert group_moments(frame, sensitive_features=np.array(["a", "b"])).labels == ("a", "b")
    assert group_moments(frame, sensitive_features=["a", "z"]).labels == ("a", "z")  # one is not a column: labels
    longer = make({"a": [1.0, 2.0, 4.0], "b": [3.0, 5.0, 1.0], "c": [1.0, 0.0, 0.0]})
    assert group_moments(longer, sensitive_features=["a", "b"]).n_features == 1
    assert group_moments(longer, sensitive_features=["a", "b", "z"]).labels == ("a", "b", "z")


def test_a_lazy_frame_gets_a_clear_error(people):
    X, sex, columns = people
    lazy = pl.DataFrame(columns).lazy()
    with pytest.raises(TypeError, match=r"X is a LazyFrame, which has no rows yet: pass X.collect\(\)"):
        FairPCA(2).fit(lazy, sensitive_features=sex)
    with pytest.raises(TypeError, match="X is a LazyFrame"):
        FairPCA(2).fit(lazy, sensitive_features="sex")
    with pytest.raises(TypeError, match=r"sensitive_features is a LazyFrame"):
        FairPCA(2).fit(X, sensitive_features=lazy.select("sex"))
    with pytest.raises(TypeError, match=r"sample_weight is a LazyFrame"):
        FairPCA(2).fit(X, sensitive_features=sex, sample_weight=lazy.select("region"))
    fitted = FairPCA(2).fit(X, sensitive_features=sex)
    with pytest.raises(TypeError, match="X is a LazyFrame"):
        fitted.transform(lazy)
    with pytest.raises(TypeError, match="X is a LazyFrame"):
        reconstruction_error(lazy, fitted)
    with pytest.raises(TypeError, match="y is a LazyFrame"):
        MMDFairPCA(2, notion="equalized_odds").fit(X, lazy.select("region"), sensitive_features=sex)


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_set_output(people, make, output):
    _, _, columns = people
    del columns["region"]
    pca = FairPCA(2).set_output(transform=output)
    scores = pca.fit_transform(make(columns), sensitive_features="sex")
    assert type(scores) is FRAMES[output]
    assert list(scores.columns) == ["fairpca0", "fairpca1"]
    assert np.array_equal(scores.to_numpy(), pca.set_output(transform="default").transform(make(columns)))


def test_labels_of_a_frame(people, make):
    X, sex, columns = people
    y = (X[:, 0] > 0).astype(int)
    series = pl.Series(y) if make is pl.DataFrame else pd.Series(y, index=np.arange(len(y)) + 7)
    estimator = MMDFairPCA(2, tolerance=0.5, bandwidth=1.0, notion="equal_opportunity")
    expected = MMDFairPCA(2, tolerance=0.5, bandwidth=1.0, notion="equal_opportunity").fit(X, y, sensitive_features=sex)
    del columns["region"]
    estimator.fit(make(columns), series, sensitive_features="sex")
    assert np.array_equal(estimator.components_, expected.components_)


def test_metrics_inference_and_comparisons_take_names(people, make):
    X, sex, columns = people
    del columns["region"]
    frame = make(columns)
    pca = FairPCA(2).fit(frame, sensitive_features="sex")
    for metric in (reconstruction_error, reconstruction_loss):
        assert metric(frame, pca, sensitive_features="sex") == metric(X, pca, sensitive_features=sex)
    assert reconstruction_error(frame, pca) == reconstruction_error(X, pca)
    with_reference = reconstruction_loss(frame, pca, sensitive_features="sex", reference=(frame, "sex"))
    assert with_reference == reconstruction_loss(X, pca, sensitive_features=sex, reference=(X, sex))
    assert mmd2(frame, sensitive_features="sex") == mmd2(X, sensitive_features=sex)
    assert readability(frame, sensitive_features="sex").auc == readability(X, sensitive_features=sex).auc
    figures = cross_validate_groups(FairPCA(2), frame, sensitive_features="sex", cv=3)
    assert figures.counts == {"a": 200.0, "b": 100.0}
    test = loss_test(frame, sensitive_features="sex", n_components=1, n_permutations=19)
    assert test.p_value == loss_test(X, sensitive_features=sex, n_components=1, n_permutations=19).p_value
    assert dominant_parts(frame, sensitive_features="sex", n_components=2) == dominant_parts(
        X, sensitive_features=sex, n_components=2
    )
    curve = frontier(frame, sensitive_features="sex", n_components=2)
    assert np.array_equal(curve.errors, frontier(X, sensitive_features=sex, n_components=2).errors)
    found = compare(frame, sensitive_features="sex", n_components=[1], methods=["PCA", "FairPCA"])
    assert (
        found["FairPCA", 1].error.overall
        == compare(X, sensitive_features=sex, n_components=[1], methods=["PCA", "FairPCA"])["FairPCA", 1].error.overall
    )


def test_saved_models_keep_the_names(people, make, tmp_path):
    _, _, columns = people
    pca = FairPCA(2).fit(make(columns), sensitive_features=["sex", "region"])
    save_model(pca, tmp_path / "model")
    restored = load_model(tmp_path / "model")
    assert list(restored.sensitive_feature_names_in_) == ["sex", "region"]
    assert np.array_equal(restored.transform(make(columns)), pca.transform(make(columns)))


def test_polars_columns_keep_their_types(make):
    frame = make({"a": ["x", "y", "x"], "b": [1, 2, 1], "c": [True, False, True]})
    labels = group_moments(np.eye(3), sensitive_features=frame).labels
    assert labels == (("x", 1, True), ("y", 2, False))
    assert [type(part) for part in labels[0]] == [str, int, bool]
