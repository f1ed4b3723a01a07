"""Scorers by group in scikit-learn's model selection."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, RobustFairPCA
from fairpca.metrics import explained_variance_ratio, mmd2, reconstruction_error
from fairpca.model_selection import scorers

ALL = {name: getattr(scorers, name) for name in scorers.__all__ if name != "GroupScorer"}


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def test_they_are_the_metrics_on_the_scored_rows(two_groups):
    X, groups = two_groups
    train, test = np.arange(0, 300, 2), np.arange(1, 300, 2)
    pca = FairPCA(2).fit(X[train], sensitive_features=groups[train])
    new = {"sensitive_features": groups[test]}
    rows = X[test]
    assert scorers.worst_group_error(pca, rows, **new) == -reconstruction_error(rows, pca, **new).max
    assert scorers.error_gap(pca, rows, **new) == -reconstruction_error(rows, pca, **new).gap
    assert scorers.worst_group_share(pca, rows, **new) == explained_variance_ratio(rows, pca, **new).min
    assert scorers.group_mmd2(pca, rows, **new) == -mmd2(pca.transform(rows), **new)
    frame = pd.DataFrame(rows, columns=list("pqrstuv")).assign(sex=groups[test])
    named = FairPCA(2).fit(frame, sensitive_features="sex")
    for scorer in ALL.values():
        assert scorer(named, frame, sensitive_features="sex") == scorer(
            named, frame.drop(columns="sex"), sensitive_features=groups[test]
        )


def test_weights_count_like_repeated_rows(two_groups, rng):
    X, groups = two_groups
    pca, weights = FairPCA(2).fit(X, sensitive_features=groups), rng.integers(1, 4, len(X))
    for name in ("worst_group_error", "error_gap", "worst_group_share", "group_mmd2"):
        weighted = ALL[name](pca, X, sensitive_features=groups, sample_weight=weights)
        options = {"sensitive_features": np.repeat(groups, weights)}
        assert np.isclose(weighted, ALL[name](pca, np.repeat(X, weights, axis=0), **options), rtol=1e-6), name


def test_cross_validation_with_routing(routing, two_groups):
    X, groups = two_groups
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    folds = list(cv.split(X, groups))
    found = cross_validate(FairPCA(2), X, scoring=ALL, params={"sensitive_features": groups}, cv=folds)
    for i, (train, test) in enumerate(folds):
        pca = FairPCA(2).fit(X[train], sensitive_features=groups[train])
        for name, scorer in ALL.items():
            assert found[f"test_{name}"][i] == scorer(pca, X[test], sensitive_features=groups[test])
    alone = cross_validate(
        PCA(2), X, scoring=scorers.worst_group_error, params={"sensitive_features": groups}, cv=folds, n_jobs=1
    )
    assert (alone["test_score"] < 0).all()


def test_projections_inside_pipelines(routing, two_groups, rng):
    X, groups = two_groups
    y = (X[:, 0] > 0).astype(int)
    fitted = make_pipeline(StandardScaler(), FairPCA(2), LogisticRegression()).fit(X, y, sensitive_features=groups)
    scaled = StandardScaler().fit_transform(X)
    expected = -reconstruction_error(scaled, fitted[1], sensitive_features=groups).max
    assert np.isclose(scorers.worst_group_error(fitted, X, sensitive_features=groups), expected)
    only = make_pipeline(FairPCA(2)).fit(X, sensitive_features=groups)
    assert scorers.error_gap(only, X, sensitive_features=groups) == scorers.error_gap(
        only[0], X, sensitive_features=groups
    )
    with pytest.raises(ValueError, match="no fitted projection"):
        scorers.error_gap(make_pipeline(StandardScaler()).fit(X), X, sensitive_features=groups)


def test_search_over_components_and_penalty(routing, two_groups):
    X, groups = two_groups
    search = GridSearchCV(
        RobustFairPCA(radius=0.0),
        {"n_components": [1, 3], "penalty": [0.0, 1.0]},
        scoring={"share": scorers.worst_group_share, "gap": scorers.error_gap},
        refit="gap",
        cv=KFold(3, shuffle=True, random_state=0),
    ).fit(X, sensitive_features=groups)
    results = search.cv_results_
    best = np.argmax(results["mean_test_gap"])
    assert search.best_params_ == results["params"][best]
    assert search.score(X, sensitive_features=groups) == scorers.error_gap(
        search.best_estimator_, X, sensitive_features=groups
    )
    assert clone(search).scoring["gap"] is not None
    assert "error_gap" in repr(search)


def test_requests_are_those_of_a_copy(routing, two_groups, rng):
    X, groups = two_groups
    weighted = scorers.worst_group_error.set_score_request(sample_weight=True)
    assert weighted is not scorers.worst_group_error
    weights = rng.integers(1, 4, len(X))
    params = {"sensitive_features": groups, "sample_weight": weights}
    estimator = FairPCA(2).set_fit_request(sample_weight=True)
    found = cross_validate(estimator, X, scoring=weighted, params=params, cv=KFold(3, shuffle=True, random_state=0))
    assert np.isfinite(found["test_score"]).all()
    renamed = scorers.worst_group_error.set_score_request(sensitive_features="region")
    params = {"sensitive_features": groups, "region": np.arange(300) % 2}
    other = cross_validate(FairPCA(2), X, scoring=renamed, params=params, cv=KFold(3, shuffle=True, random_state=0))
    plain = cross_validate(
        FairPCA(2),
        X,
        scoring=scorers.worst_group_error,
        params={"sensitive_features": groups},
        cv=KFold(3, shuffle=True, random_state=0),
    )
    assert (other["test_score"] != plain["test_score"]).all()
    with pytest.raises(TypeError, match="'groups' is not metadata"):
        weighted.set_score_request(groups=True)


def test_clear_errors(two_groups):
    X, groups = two_groups
    pca = FairPCA(2).fit(X, sensitive_features=groups)
    for name, scorer in ALL.items():
        with pytest.raises(ValueError, match=rf"{name} needs sensitive_features.*enable_metadata_routing"):
            scorer(pca, X)
        assert scorer.__doc__
        assert repr(pickle.loads(pickle.dumps(scorer))) == name
