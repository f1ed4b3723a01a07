"""The same projection as a PCA of scikit-learn, and in ONNX."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, KernelParityPCA, MMDFairPCA, ParityPCA, RobustFairPCA

ESTIMATORS = [FairPCA(3), RobustFairPCA(2), ParityPCA(2), MMDFairPCA(2, tolerance=0.5, bandwidth=1.0)]


@pytest.fixture(params=ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def fitted(request, two_groups):
    X, groups = two_groups
    return clone(request.param).fit(pd.DataFrame(X, columns=list("pqrstuv")), sensitive_features=groups)


def test_it_is_a_pca_with_the_same_results(fitted, two_groups):
    X = pd.DataFrame(two_groups[0], columns=list("pqrstuv"))
    pca = fitted.to_sklearn()
    assert type(pca) is PCA
    assert np.allclose(pca.transform(X), fitted.transform(X), rtol=0, atol=1e-12)
    assert np.allclose(pca.inverse_transform(pca.transform(X)), fitted.inverse_transform(fitted.transform(X)))
    assert np.allclose(pca.get_covariance(), fitted.get_covariance())
    assert np.allclose(pca.get_precision(), fitted.get_precision())
    for name in ("singular_values_", "explained_variance_", "explained_variance_ratio_", "noise_variance_"):
        assert np.allclose(getattr(pca, name), getattr(fitted, name))
    assert list(pca.feature_names_in_) == list("pqrstuv")
    assert (pca.n_components_, pca.n_features_in_, pca.n_samples_) == (fitted.n_components_, 7, 300)
    with pytest.raises(ValueError, match="feature names"):
        pca.transform(X.rename(columns={"p": "q", "q": "p"}))


def test_its_likelihood_is_that_of_its_covariance(two_groups):
    """scikit-learn computes it from the variances, so that a wrong one among them would be noticed."""
    X, groups = two_groups
    pca = FairPCA(3).fit(X, sensitive_features=groups).to_sklearn()
    covariance, rows = pca.get_covariance(), X - pca.mean_
    distances = np.einsum("ij,ij->i", rows @ np.linalg.inv(covariance), rows)
    expected = -0.5 * (distances + np.linalg.slogdet(2 * np.pi * covariance)[1])
    assert np.allclose(pca.score_samples(X), expected)


def test_with_all_groups_alike_it_is_the_pca_of_the_rows(two_groups):
    X = two_groups[0]
    both = np.vstack([X, X])
    pca = FairPCA(3).fit(both, sensitive_features=np.repeat([0, 1], len(X))).to_sklearn()
    expected = PCA(3).fit(both)
    for name, value in vars(expected).items():
        if name.endswith("_") and name != "components_":
            assert np.allclose(getattr(pca, name), value), name
    assert np.allclose(np.abs(pca.components_ @ expected.components_.T), np.eye(3), atol=1e-7)


def test_it_shares_nothing_with_the_estimator(fitted, two_groups):
    before = fitted.components_.copy()
    pca = fitted.to_sklearn()
    pca.components_ *= 2
    pca.mean_ += 1
    assert np.array_equal(fitted.components_, before)
    assert np.allclose(pickle.loads(pickle.dumps(pca)).components_, pca.components_)
    assert clone(pca).get_params()["n_components"] == fitted.n_components_


def test_only_fitted_linear_estimators_have_it():
    with pytest.raises(NotFittedError):
        FairPCA().to_sklearn()
    assert not hasattr(KernelParityPCA(), "to_sklearn")


@pytest.mark.parametrize(("kind", "dtype"), [("Float", np.float32), ("Double", np.float64)])
def test_onnx_runtime_gives_the_same_scores(two_groups, kind, dtype):
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    from skl2onnx.common import data_types

    X, groups = two_groups
    X = 10 * X + 3
    scaler = StandardScaler().fit(X)
    pca = FairPCA(3).fit(scaler.transform(X), sensitive_features=groups)
    pipeline = make_pipeline(scaler, pca.to_sklearn())
    inputs = [("X", getattr(data_types, f"{kind}TensorType")([None, X.shape[1]]))]
    model = skl2onnx.to_onnx(pipeline, initial_types=inputs)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    scores = session.run(None, {"X": X.astype(dtype)})[0]
    expected = pca.transform(scaler.transform(X))
    assert scores.dtype == dtype
    assert np.abs(scores - expected).max() <= 8 * np.finfo(dtype).eps * np.abs(expected).max()
