"""What all linear estimators share: projecting back, scoring, and learning from parts of the rows."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca import FairPCA, LeacePCA, ParityPCA, RobustFairPCA
from fairpca.moments import group_moments

ESTIMATORS = [FairPCA, RobustFairPCA, ParityPCA, LeacePCA]


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
def test_score_is_minus_the_mean_squared_error_far_from_the_origin_too(two_groups, offset):
    X, groups = two_groups
    X = X + offset
    pca = FairPCA(2).fit(X, sensitive_features=groups)
    error = ((X - pca.inverse_transform(pca.transform(X))) ** 2).sum() / len(X)
    assert np.isclose(pca.score(X), -error, rtol=1e-6)
    assert np.isclose(pca.score(X), -pca.group_counts_ @ pca.group_errors_ / len(X), rtol=1e-6)


def test_score_of_more_rows_than_are_centred_at_a_time(two_groups, monkeypatch):
    X, groups = two_groups
    pca = FairPCA(2).fit(X, sensitive_features=groups)
    whole = pca.score(X)
    monkeypatch.setattr("fairpca.estimators._row_errors._BLOCK_NUMBERS", 50)
    assert np.isclose(pca.score(X), whole, rtol=1e-13)


def test_inverse_transform_refuses_what_are_no_scores(two_groups):
    X, groups = two_groups
    pca = FairPCA(2).fit(X, sensitive_features=groups)
    with pytest.raises(ValueError, match="X has 7 columns, but there are 2 components"):
        pca.inverse_transform(X)


@pytest.mark.filterwarnings("ignore:Groups smaller than")
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_parts_without_rows_or_weight_change_nothing(two_groups, rng, estimator):
    X, groups = two_groups
    weights = rng.uniform(0.1, 2.0, len(X))
    weights[:3] = [0.4, 0.0, 0.3]
    batch = estimator(2).fit(X, sensitive_features=groups, sample_weight=weights)
    parts = estimator(2)
    for rows in (slice(0, 0), slice(1, 2), slice(0, 1), slice(2, 3), slice(3, None)):
        parts.partial_fit(X[rows], sensitive_features=groups[rows], sample_weight=weights[rows])
    assert np.allclose(parts.components_, batch.components_, atol=1e-8)
    assert np.allclose(parts.group_errors_, batch.group_errors_, rtol=1e-9)
    chunks = [
        (X[rows], groups[rows], weights[rows]) for rows in (slice(0, 0), slice(1, 2), slice(0, 1), slice(2, None))
    ]
    assert np.allclose(
        group_moments(chunks).scatters, group_moments(X, sensitive_features=groups, sample_weight=weights).scatters
    )


def test_chunks_without_any_weight_raise(two_groups):
    X, groups = two_groups
    with pytest.raises(ValueError, match="row of positive weight"):
        group_moments([(X[:5], groups[:5], np.zeros(5))])


def test_moments_have_no_feature_names(two_groups):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    X, groups = two_groups
    frame = pandas.DataFrame(X, columns=list("abcdefg"))
    pca = FairPCA(2).fit(frame, sensitive_features=groups)
    pca.fit_moments(group_moments(X[:, :3], sensitive_features=groups))
    assert pca.transform(X[:, :3]).shape == (len(X), 2)
    assert not hasattr(pca, "feature_names_in_")
    pca.fit(frame.assign(sex=groups), sensitive_features="sex").fit_moments(group_moments(X, sensitive_features=groups))
    assert not hasattr(pca, "sensitive_feature_names_in_")


@pytest.mark.parametrize("wrong", [None, "gender"])
def test_groups_are_asked_for_before_texts_in_x_are_complained_about(two_groups, wrong):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(two_groups[0]).assign(sex=two_groups[1])
    with pytest.raises((TypeError, ValueError), match="sensitive_features"):
        FairPCA(2).fit(frame, sensitive_features=wrong)


def test_lazy_scores_of_a_frame_that_holds_the_groups(two_groups):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    dask = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    X, groups = two_groups
    frame = pandas.DataFrame(X, columns=list("abcdefg"))
    lazy = dask.from_pandas(frame.assign(sex=groups), npartitions=3)
    scores = FairPCA(2).fit_transform(lazy, sensitive_features="sex")
    pca = FairPCA(2).fit(frame, sensitive_features=groups)
    assert np.allclose(scores.compute(), pca.transform(frame), atol=1e-9)
    assert np.allclose(pca.inverse_transform(scores).compute(), pca.inverse_transform(pca.transform(frame)), atol=1e-8)


def test_labels_of_tuples_keep_their_types(two_groups):
    X, _ = two_groups
    labels = [("a", 1) if i % 2 else ("a", "1") for i in range(len(X))]
    assert set(FairPCA(2).fit(X, sensitive_features=labels).groups_.tolist()) == {("a", 1), ("a", "1")}
