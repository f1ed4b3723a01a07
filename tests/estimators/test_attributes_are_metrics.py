"""Every fitted value about the groups is the public metric on the training rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fairpca import AnchorPCA, FairPCA, LeacePCA, MMDFairPCA, ParityPCA, RobustFairPCA
from fairpca.metrics import explained_variance_ratio, mmd2, reconstruction_error, reconstruction_loss

CASES = {
    "FairPCA": FairPCA(2),
    "error": FairPCA(2, criterion="error", center="group"),
    "variance": FairPCA(2, criterion="variance"),
    "nash": FairPCA(2, criterion="nash"),
    "mean": FairPCA(3, criterion="mean"),
    "relative": FairPCA(2, relative=True),
    "nested": FairPCA(2, nested=True),
    "share": FairPCA(0.6),
    "RobustFairPCA": RobustFairPCA(2),
    "robust, relative, center": RobustFairPCA(2, relative=True, center="group"),
    "ParityPCA": ParityPCA(2),
    "parity with a penalty": ParityPCA(2, mean_tolerance=0.2, covariance_penalty=0.5),
    "AnchorPCA": AnchorPCA(2),
    "LeacePCA": LeacePCA(2),
    "MMDFairPCA": MMDFairPCA(2, tolerance=0.05),
    "one bandwidth": MMDFairPCA(2, tolerance=0.05, bandwidth="median"),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", ["plain", "weighted", "sparse", "three groups"])
@pytest.mark.parametrize("name", CASES)
def test_fitted_values_are_those_of_the_metrics(name, kind, two_groups, rng):
    X, groups = two_groups[0][::2], two_groups[1][::2]
    if kind == "three groups":
        groups = np.array(["x", "y", "z"])[np.arange(len(X)) % 3]
    weights = rng.integers(1, 4, len(X)) if kind == "weighted" else None
    rows = sparse.csr_array(X) if kind == "sparse" else X
    estimator = CASES[name]
    pca = estimator.fit(rows, sensitive_features=groups, sample_weight=weights)
    given = {"sensitive_features": groups, "sample_weight": weights}
    options = given | {"center": getattr(pca, "center", "pooled")}
    by_metric = {  # in squared units, whatever is balanced
        "group_errors_": reconstruction_error(rows, pca, **options),
        "group_losses_": reconstruction_loss(rows, pca, **options),
    }
    for attribute, expected in by_metric.items():
        if hasattr(pca, attribute):
            assert dict(zip(pca.groups_, getattr(pca, attribute), strict=True)) == pytest.approx(
                dict(expected), rel=1e-7, abs=1e-9
            )
    assert hasattr(pca, "group_errors_")
    ratio = explained_variance_ratio(rows, pca, sample_weight=weights)
    assert pca.explained_variance_ratio_.sum() == pytest.approx(ratio, rel=1e-9)
    if hasattr(pca, "mmd2_"):
        assert pca.mmd2_ == pytest.approx(mmd2(pca.transform(X), **given, bandwidth=pca), rel=1e-9)
