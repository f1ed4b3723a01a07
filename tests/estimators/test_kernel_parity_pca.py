"""KernelParityPCA against explicit feature maps, scikit-learn's KernelPCA and its own defining property."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import null_space
from sklearn import config_context
from sklearn.decomposition import KernelPCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from fairpca import KernelParityPCA, ParityPCA
from fairpca.metrics import adversary_gap

KERNELS = [
    {"kernel": "rbf", "gamma": 0.1},
    {"kernel": "rbf"},
    {"kernel": "poly", "degree": 2, "gamma": 0.5},
    {"kernel": "poly"},
    {"kernel": "linear"},
]


def up_to_signs(first, second, tol=1e-8):
    signs = np.sign(np.einsum("ij,ij->j", first, second))
    return np.allclose(first, second * signs, atol=tol * np.abs(first).max())


def group_means(scores, groups):
    return np.array([scores[groups == label].mean(axis=0) for label in np.unique(groups)])


def quadratic_features(X, gamma):
    """Explicit map of (gamma x.y + 1)^2."""
    first, second = np.triu_indices(X.shape[1], 1)
    return np.hstack(
        [gamma * X**2, np.sqrt(2) * gamma * X[:, first] * X[:, second], np.sqrt(2 * gamma) * X, np.ones((len(X), 1))]
    )


@pytest.fixture
def three_groups(rng):
    groups = np.repeat(["a", "b", "c"], [60, 50, 40])
    X = rng.normal(size=(150, 4))
    X[groups == "b"] *= 2.0
    X[groups == "c"] += 1.0
    return X, groups


@pytest.mark.parametrize("parameters", KERNELS, ids=str)
@pytest.mark.parametrize("n_landmarks", [None, 30])
def test_group_means_are_equal(three_groups, parameters, n_landmarks):
    X, groups = three_groups
    pca = KernelParityPCA(2, n_landmarks=n_landmarks, **parameters).fit(X, sensitive_features=groups)
    scores = pca.transform(X)
    means = group_means(scores, groups)
    assert np.ptp(means, axis=0).max() < 1e-10 * scores.std(axis=0).max()
    assert pca.mean_difference_ < 1e-10 * scores.std(axis=0).max()
    assert np.abs(scores.mean(axis=0)).max() < 1e-10 * scores.std(axis=0).max()
    covariance = np.cov(scores.T)
    assert np.allclose(covariance, np.diag(pca.explained_variance_), atol=1e-8 * covariance.max())
    assert (np.diff(pca.explained_variance_) <= 0).all()


def test_linear_kernel_is_the_linear_method(three_groups):
    X, groups = three_groups
    linear = ParityPCA(2).fit(X, sensitive_features=groups)
    kernel = KernelParityPCA(2, kernel="linear").fit(X, sensitive_features=groups)
    new = X[:20] + 1.0
    assert up_to_signs(linear.transform(new), kernel.transform(new))
    assert kernel.explained_variance_ == pytest.approx(linear.explained_variance_, rel=1e-8)
    assert kernel.explained_variance_ratio_ == pytest.approx(linear.explained_variance_ratio_, rel=1e-8)


def test_polynomial_kernel_is_the_linear_method_on_its_features(three_groups):
    X, groups = three_groups
    linear = ParityPCA(3).fit(quadratic_features(X, 0.5), sensitive_features=groups)
    kernel = KernelParityPCA(3, kernel="poly", degree=2, gamma=0.5).fit(X, sensitive_features=groups)
    new = 0.5 * X[:20] - 0.3
    assert up_to_signs(linear.transform(quadratic_features(new, 0.5)), kernel.transform(new))


def test_equal_groups_give_ordinary_kernel_pca(rng):
    half = rng.normal(size=(60, 3))
    X, groups = np.vstack([half, half]), np.repeat([0, 1], 60)
    ours = KernelParityPCA(3, gamma=0.3).fit(X, sensitive_features=groups)
    ordinary = KernelPCA(3, kernel="rbf", gamma=0.3).fit(X)
    new = rng.normal(size=(10, 3))
    assert up_to_signs(ordinary.transform(new), ours.transform(new), tol=1e-6)


def test_landmarks_cost_variance_and_not_parity(three_groups):
    X, groups = three_groups
    variances = [
        KernelParityPCA(2, gamma=0.3, n_landmarks=count).fit(X, sensitive_features=groups).explained_variance_.sum()
        for count in (10, 60, 150)
    ]
    assert variances[0] < variances[1] < variances[2]
    exact = KernelParityPCA(2, gamma=0.3).fit(X, sensitive_features=groups)
    assert variances[2] == pytest.approx(exact.explained_variance_.sum(), rel=1e-12)


def test_many_rows_take_the_landmark_path(rng):
    groups = rng.integers(0, 2, 9000)
    X = rng.normal(size=(9000, 3)) * (1 + groups[:, None])
    pca = KernelParityPCA(2, gamma=0.2).fit(X, sensitive_features=groups)
    assert pca.landmarks_.shape == (500, 3)
    scores = pca.transform(X)
    assert np.ptp(group_means(scores, groups), axis=0).max() < 1e-10


def test_equal_means_leave_a_linear_machine_nothing_and_any_rule_less(rng):
    groups = np.repeat([0, 1], 300)
    X = rng.normal(size=(600, 2))
    X[groups == 1] *= 3.0  # the same mean, another spread
    parameters = {"kernel": "rbf", "gamma": 0.5}
    ordinary = KernelPCA(3, **parameters).fit_transform(X)
    ours = KernelParityPCA(3, **parameters).fit_transform(X, sensitive_features=groups)
    assert adversary_gap(ordinary, sensitive_features=groups) > 0.5
    machine = make_pipeline(StandardScaler(), LinearSVC(class_weight="balanced", dual=False))
    assert adversary_gap(ours, sensitive_features=groups, family=machine, train=(ours, groups)) == 0
    assert adversary_gap(ours, sensitive_features=groups) < adversary_gap(ordinary, sensitive_features=groups)


def test_weights_count_like_repeated_rows(three_groups, rng):
    X, groups = three_groups
    counts = rng.integers(0, 4, len(X))
    weighted = KernelParityPCA(2, gamma=0.3).fit(X, sensitive_features=groups, sample_weight=counts)
    repeated = KernelParityPCA(2, gamma=0.3)
    repeated.fit(np.repeat(X, counts, axis=0), sensitive_features=np.repeat(groups, counts))
    assert up_to_signs(weighted.transform(X), repeated.transform(X), tol=1e-6)


def test_order_of_rows_does_not_matter(three_groups, rng):
    X, groups = three_groups
    order = rng.permutation(len(X))
    first = KernelParityPCA(2, gamma=0.3).fit(X, sensitive_features=groups)
    second = KernelParityPCA(2, gamma=0.3).fit(X[order], sensitive_features=groups[order])
    assert np.allclose(first.transform(X), second.transform(X), atol=1e-8)  # signs included


def test_sparse_rows(three_groups):
    X, groups = three_groups
    dense = KernelParityPCA(2, gamma=0.3).fit(X, sensitive_features=groups)
    thin = KernelParityPCA(2, gamma=0.3).fit(sparse.csr_matrix(X), sensitive_features=groups)
    assert np.allclose(dense.transform(X), thin.transform(sparse.csr_matrix(X)), atol=1e-8)


def test_groups_travel_through_a_pipeline(three_groups):
    X, groups = three_groups
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), KernelParityPCA(2)).fit(X, sensitive_features=groups)
    assert np.ptp(group_means(pipeline.transform(X), groups), axis=0).max() < 1e-10
    assert list(pipeline[-1].get_feature_names_out()) == ["kernelparitypca0", "kernelparitypca1"]


def test_features_far_from_the_origin(rng):
    """Against the explicit map, centred before anything is rounded: a large mean hides no direction."""
    for offset in (10.0, 40.0, 100.0):
        X, groups = rng.normal(size=(40, 2)) + offset, np.arange(40) % 2
        X[:, 0] += 0.5 * groups
        features = quadratic_features(X.astype(np.longdouble), np.longdouble(0.5))
        features = (features - features.mean(axis=0)).astype(np.float64)
        difference = features[groups == 0].mean(axis=0) - features[groups == 1].mean(axis=0)
        allowed = null_space(difference[None])
        best = np.linalg.eigvalsh(allowed.T @ np.cov(features.T) @ allowed)[::-1]
        pca = KernelParityPCA(3, kernel="poly", degree=2, gamma=0.5).fit(X, sensitive_features=groups)
        assert pca.explained_variance_.sum() == pytest.approx(best[:3].sum(), rel=1e-11)


def test_no_variance_is_negative(rng):
    groups = np.arange(60) % 2
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 3)) + 1e3
    for kernel in KERNELS:
        pca = KernelParityPCA(None, **kernel).fit(X, sensitive_features=groups)
        assert (pca.explained_variance_ >= 0).all()
        assert pca.explained_variance_ratio_.sum() <= 1 + 1e-12


def test_bad_input(three_groups):
    X, groups = three_groups
    with pytest.raises(ValueError, match="sensitive_features is required"):
        KernelParityPCA().fit(X)
    with pytest.raises(ValueError, match="single group"):
        KernelParityPCA().fit(X, sensitive_features=np.zeros(len(X)))
    with pytest.raises(ValueError, match="sensitive_features has 149 rows"):
        KernelParityPCA().fit(X, sensitive_features=groups[:-1])
    with pytest.raises(ValueError, match="kernel='sigmoid' is unknown"):
        KernelParityPCA(kernel="sigmoid").fit(X, sensitive_features=groups)
    with pytest.raises(ValueError, match="n_landmarks must be an integer of at least 2"):
        KernelParityPCA(n_landmarks=0).fit(X, sensitive_features=groups)
    with pytest.raises(ValueError, match="have only 2 directions with equal group means"):
        KernelParityPCA(3, kernel="linear").fit(X, sensitive_features=groups)


def test_linear_kernel_does_not_depend_on_the_origin(three_groups):
    X, groups = three_groups
    near = KernelParityPCA(2, kernel="linear").fit(X, sensitive_features=groups)
    far = KernelParityPCA(2, kernel="linear").fit(X + 1e6, sensitive_features=groups)
    np.testing.assert_allclose(far.explained_variance_, near.explained_variance_, rtol=1e-7)
    np.testing.assert_allclose(far.transform(X + 1e6), near.transform(X), atol=1e-7)
    assert far.mean_difference_ < 1e-7


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        *[({"gamma": gamma}, f"gamma={gamma!r} must be a positive number") for gamma in ("scale", np.nan, -1, 0, True)],
        *[({"degree": degree}, "degree must be an integer of at least 1") for degree in (2.5, 0, "3")],
        *[({"coef0": coef0}, "coef0 must be a number of at least 0") for coef0 in (np.nan, -1, "1")],
    ],
)
def test_bad_kernel_parameters(three_groups, parameters, message):
    X, groups = three_groups
    with pytest.raises((TypeError, ValueError), match=message):
        KernelParityPCA(2, kernel="poly", **parameters).fit(X, sensitive_features=groups)


@pytest.mark.parametrize("options", KERNELS)
def test_rounding_of_equal_means_is_not_a_direction(rng, options):
    half = rng.normal(size=(100, 4)) * [4, 3, 2, 1]
    X, groups = np.vstack([half, half[rng.permutation(100)]]), np.repeat([0, 1], 100)
    parity = KernelParityPCA(2, **options).fit(X, sensitive_features=groups)
    plain = KernelPCA(2, **options).fit(X)
    assert parity.explained_variance_.sum() == pytest.approx(plain.eigenvalues_.sum() / 199, rel=1e-8)


@pytest.mark.parametrize(("coef0", "even"), [(0.0, True), (5.0, False)])
def test_the_constant_of_the_polynomial_brings_in_the_odd_features(three_groups, coef0, even):
    """``(gamma x.y)^2`` knows x up to its sign; with a constant, x itself is among the features."""
    X, groups = three_groups
    pca = KernelParityPCA(2, kernel="poly", degree=2, coef0=coef0).fit(X, sensitive_features=groups)
    assert np.allclose(pca.transform(X), pca.transform(-X)) == even
