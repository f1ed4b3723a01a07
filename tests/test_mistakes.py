"""Typical mistakes: each ends in an error that names the argument and says what to do instead."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import (
    AnchorPCA,
    FairPCA,
    KernelParityPCA,
    LeacePCA,
    MMDFairPCA,
    ParityPCA,
    RobustFairPCA,
    load_model,
    save_model,
)
from fairpca.inference import cross_validate_groups, loss_test
from fairpca.metrics import mmd2, readability
from fairpca.model_selection import compare, components_needed
from fairpca.moments import group_moments

ROWS = np.random.default_rng(0).normal(size=(60, 5))
SEX = np.array(["f", "m", "m"] * 20)
LABEL = np.arange(60) % 2


def frame(**more):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(ROWS, columns=list("abcde")).assign(**more)


def fitted(**options):
    return FairPCA(2, **options).fit(ROWS, sensitive_features=SEX)


def routed(step, *data, **options):
    with sklearn.config_context(enable_metadata_routing=True):
        return make_pipeline(StandardScaler(), step).fit(*data, **options)


MISTAKES = {
    "no groups": (lambda: FairPCA(2).fit(ROWS), "sensitive_features is required", "pass the group of each row"),
    "groups as y": (lambda: FairPCA(2).fit(ROWS, SEX), "sensitive_features is required", "fit(X, sensitive_features="),
    "groups by position": (lambda: FairPCA(2).fit(ROWS, LABEL, SEX), "FairPCA.fit()", "sensitive_features=..."),
    "keyword groups": (lambda: FairPCA(2).fit(ROWS, groups=SEX), "FairPCA.fit()", "did you mean sensitive_features?"),
    "keyword misspelt": (lambda: MMDFairPCA(2).fit(ROWS, sensitive=SEX), "MMDFairPCA.fit()", "did you mean sens"),
    "fit_transform": (lambda: LeacePCA(2).fit_transform(ROWS), "sensitive_features is required", "pass the group"),
    "one group": (lambda: ParityPCA(2).fit(ROWS, sensitive_features=["a"] * 60), "single group", "at least two"),
    "too few labels": (lambda: FairPCA(2).fit(ROWS, sensitive_features=SEX[1:]), "59 rows, but X has 60", "same rows"),
    "missing label": (
        lambda: FairPCA(2).fit(ROWS, sensitive_features=[None, *SEX[1:]]), "sensitive_features contains missing",
        "drop those rows or give them a label",
    ),
    "a measurement": (lambda: FairPCA(2).fit(ROWS, sensitive_features=ROWS[:, 0]), "60 different values", "Bin it"),
    "column of an array": (
        lambda: FairPCA(2).fit(ROWS, sensitive_features="sex"), "sensitive_features='sex'", "pass the column itself",
    ),
    "column after an array": (
        lambda: routed(FairPCA(2), frame(g=LABEL), sensitive_features="g"), "the previous step returned",
        "set_output(transform='pandas')",
    ),
    "column misspelt": (
        lambda: FairPCA(2).fit(frame(sex=SEX), sensitive_features="Sex"), "'Sex' is not a column", "name of a column",
    ),
    "text feature": (lambda: FairPCA(2).fit(frame(city="Ulm"), sensitive_features=SEX), "'city' ('Ulm')", "Encode it"),
    "groups among features": (
        lambda: FairPCA(2).fit(frame(sex=SEX), sensitive_features=SEX), "'sex' ('f')", "name a column of groups in",
    ),
    "text in moments": (lambda: group_moments(frame(city="Ulm"), sensitive_features=SEX), "'city'", "OneHotEncoder"),
    "missing value": (
        lambda: FairPCA(2).fit(np.where(ROWS > 2, np.nan, ROWS), sensitive_features=SEX), "Input X contains NaN",
        "SimpleImputer",
    ),
    "infinite value": (
        lambda: MMDFairPCA(2).fit(np.where(ROWS > 2, np.inf, ROWS), sensitive_features=SEX), "X contains infinity",
        "Drop these rows",
    ),
    "one dimension": (lambda: FairPCA(2).fit(ROWS[:, 0], sensitive_features=SEX), "Expected 2D array", "Reshape"),
    "negative weights": (
        lambda: FairPCA(2).fit(ROWS, sensitive_features=SEX, sample_weight=-np.ones(60)), "sample_weight", "drop or",
    ),
    "normalised weights": (
        lambda: FairPCA(2).fit(ROWS, sensitive_features=SEX, sample_weight=np.full(60, 1 / 60)), "sums to",
        "scale them",
    ),
    "too few weights": (
        lambda: FairPCA(2).fit(ROWS, sensitive_features=SEX, sample_weight=np.ones(3)), "sample_weight has shape",
        "one per row",
    ),
    "too many components": (lambda: FairPCA(9).fit(ROWS, sensitive_features=SEX), "n_components=9", "between 1 and"),
    "components as text": (lambda: FairPCA("mle").fit(ROWS, sensitive_features=SEX), "n_components", "or None for all"),
    "parity in all directions": (
        lambda: ParityPCA(5).fit(ROWS, sensitive_features=SEX), "n_components=5", "lower n_components",
    ),
    "criterion": (lambda: fitted(criterion="losses"), "criterion='losses'", "choose one of 'loss'"),
    "solver": (lambda: fitted(solver="full"), "solver='full'", "choose one of 'auto'"),
    "centre": (lambda: fitted(center=True), "center=True", "choose one of 'pooled', 'group'"),
    "seed": (lambda: fitted(random_state="seed"), "random_state='seed'", "None for a fixed seed"),
    "radius": (lambda: RobustFairPCA(2, radius=-1).fit(ROWS, sensitive_features=SEX), "radius=-1", "not negative"),
    "penalty": (
        lambda: RobustFairPCA(2, penalty="l2").fit(ROWS, sensitive_features=SEX), "penalty must be", "at least 0",
    ),
    "anchor penalty": (lambda: AnchorPCA(2, penalty=-1).fit(ROWS, sensitive_features=SEX), "penalty", "at least 0"),
    "kernel": (lambda: KernelParityPCA(kernel="gauss").fit(ROWS, sensitive_features=SEX), "kernel='gauss'", "'rbf'"),
    "tolerance": (lambda: MMDFairPCA(tolerance=0).fit(ROWS, sensitive_features=SEX), "tolerance=0", "or 'auto'"),
    "notion": (
        lambda: MMDFairPCA(notion="equal_odds").fit(ROWS, sensitive_features=SEX), "notion='equal_odds'",
        "'equalized_odds'",
    ),
    "notion without labels": (
        lambda: MMDFairPCA(notion="equalized_odds").fit(ROWS, sensitive_features=SEX), "notion=", "give a binary y",
    ),
    "bandwidth": (
        lambda: MMDFairPCA(bandwidth="scale").fit(ROWS, sensitive_features=SEX), "bandwidth='scale'", "'multiscale'",
    ),
    "labels of two types": (
        lambda: FairPCA(2).partial_fit(ROWS, sensitive_features=LABEL).partial_fit(
            ROWS, sensitive_features=LABEL.astype(str)
        ),
        "sensitive_features have different types", "astype(str)",
    ),
    "not fitted": (lambda: FairPCA(2).transform(ROWS), "not fitted", "Call 'fit'"),
    "other columns": (lambda: fitted().transform(ROWS[:, :3]), "X has 3 features", "expecting 5"),
    "rows as scores": (lambda: fitted().inverse_transform(ROWS), "X has 5 columns", "give scores"),
    "groups by position, compared": (lambda: compare(ROWS, SEX, n_components=2), "compare()", "sensitive_features"),
    "components of a comparison": (
        lambda: compare(ROWS, sensitive_features=SEX, n_components="2"), "n_components must be an integer", "got '2'",
    ),
    "method": (
        lambda: compare(ROWS, sensitive_features=SEX, n_components=2, methods=["UMAP"]), "UMAP", "FairPCA",
    ),
    "too many folds": (
        lambda: cross_validate_groups(FairPCA(2), ROWS, sensitive_features=SEX, cv=100), "100 folds", "smaller cv",
    ),
    "class for an instance": (
        lambda: cross_validate_groups(FairPCA, ROWS, sensitive_features=SEX), "estimator", "instance",
    ),
    "permutations": (
        lambda: loss_test(ROWS, sensitive_features=SEX, n_components=2, n_permutations=-1), "n_perm", "at least",
    ),
    "groups of a metric": (lambda: mmd2(ROWS), "mmd2()", "sensitive_features"),
    "groups of readers": (lambda: readability(ROWS), "readability()", "sensitive_features"),
    "share": (
        lambda: components_needed(ROWS, sensitive_features=SEX, share=90), "share=90", "between 0 and 1",
    ),
    "not a model": (lambda: load_model(__file__), "not a fairpca model", "or it is damaged"),
    "no such model": (lambda: load_model("nowhere.npz"), "nowhere.npz", "does not exist"),
    "unfitted model": (lambda: save_model(FairPCA(2), "never.npz"), "not fitted", "Call 'fit'"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "named", "remedy"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_explained(call, named, remedy):
    with pytest.raises((ValueError, TypeError, OSError)) as caught:
        call()
    message = str(caught.value)
    assert named in message
    assert remedy in message
