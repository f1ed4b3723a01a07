"""What every estimator promises: scikit-learn's contract, groups of any kind, clear errors."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from fairpca import AnchorPCA, FairPCA, KernelParityPCA, LeaceEraser, LeacePCA, MMDFairPCA, ParityPCA, RobustFairPCA
from fairpca.estimators import expected_failed_checks
from fairpca.metrics import explained_variance_ratio
from fairpca.moments import group_moments
from fairpca.persistence import load_model, save_model

#: Those that need moments only, those of them that search, and those that need rows.
SEARCHES = [FairPCA, RobustFairPCA, ParityPCA]
ESTIMATORS = [*SEARCHES, LeacePCA, AnchorPCA]
ROW_ESTIMATORS = [MMDFairPCA, KernelParityPCA]


def supplied_groups(X):
    """Two groups as a function of the row's content, so that they survive shuffling and repetition of rows."""
    try:
        array = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=object).astype(float)
        array = np.nan_to_num(array, posinf=0.0, neginf=0.0)
    except (TypeError, ValueError):
        return [0]  # the estimator must complain about X itself
    if array.ndim != 2 or not array.size:
        return [0]
    groups = (np.floor(1e3 * (array @ np.cos(np.arange(array.shape[1])))) % 2).astype(int)
    return groups if len(set(groups)) > 1 else np.arange(len(groups)) % 2


class WithGroups:
    """Mixin for scikit-learn's checks, which know nothing of groups."""

    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X, y, sensitive_features=supplied_groups(X), sample_weight=sample_weight)

    def partial_fit(self, X, y=None, sample_weight=None):
        return super().partial_fit(X, y, sensitive_features=supplied_groups(X), sample_weight=sample_weight)


class FairPCAWithGroups(WithGroups, FairPCA):
    pass


class RobustFairPCAWithGroups(WithGroups, RobustFairPCA):
    pass


class ParityPCAWithGroups(WithGroups, ParityPCA):
    pass


class LeacePCAWithGroups(WithGroups, LeacePCA):
    pass


class LeaceEraserWithGroups(WithGroups, LeaceEraser):
    pass


class AnchorPCAWithGroups(WithGroups, AnchorPCA):
    pass


class WithGroupsAndRows:
    """The same for estimators without partial_fit."""

    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X, None, sensitive_features=supplied_groups(X), sample_weight=sample_weight)


class MMDFairPCAWithGroups(WithGroupsAndRows, MMDFairPCA):
    pass


class KernelParityPCAWithGroups(WithGroupsAndRows, KernelParityPCA):
    pass


@pytest.mark.filterwarnings("ignore:Groups smaller than n_components")
@pytest.mark.filterwarnings("ignore:X contains the sensitive feature")
@pytest.mark.filterwarnings("ignore:All . dimensions of X differ")
@pytest.mark.filterwarnings("ignore:tolerance=0.05 is below")
@pytest.mark.filterwarnings("ignore:MMDFairPCA found no projection")
@parametrize_with_checks(
    # Some checks use two features, of which mean parity leaves one direction.
    [
        FairPCAWithGroups(),
        FairPCAWithGroups(relative=True, nested=True),
        RobustFairPCAWithGroups(),
        RobustFairPCAWithGroups(relative=True),
        ParityPCAWithGroups(n_components=1),
        LeacePCAWithGroups(n_components=1),
        LeaceEraserWithGroups(),
        AnchorPCAWithGroups(),
        FairPCAWithGroups(criterion="mean"),
        MMDFairPCAWithGroups(n_components=1, tolerance=0.05),
        KernelParityPCAWithGroups(n_components=1),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def reasons(problem):
    """The messages of an exception and of those that caused it."""
    while problem is not None:
        yield str(problem)
        problem = problem.__cause__ or problem.__context__


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("cls", [*ESTIMATORS, *ROW_ESTIMATORS, LeaceEraser], ids=lambda cls: cls.__name__)
def test_plain_classes_fail_only_for_lack_of_groups(cls):
    expected = expected_failed_checks(cls())
    found = check_estimator(cls(), expected_failed_checks=expected)  # would raise for any other failure
    passed = [one["check_name"] for one in found if one["status"] == "passed"]
    assert len(passed) >= 13
    assert "check_no_attributes_set_in_init" in passed
    for one in found:
        assert (one["status"] == "xfail") == (one["check_name"] in expected and one["check_name"] not in passed)
        if one["status"] == "xfail":
            assert one["expected_to_fail_reason"].startswith("fit requires sensitive_features")
            because = " ".join(reasons(one["exception"]))
            # Two checks do not chain the error that they caught.
            silent = {"check_sample_weights_pandas_series", "check_estimators_nan_inf"}
            assert "sensitive_features is required" in because or one["check_name"] in silent, one["check_name"]


@pytest.fixture(params=ESTIMATORS, ids=lambda cls: cls.__name__)
def estimator(request):
    return request.param(n_components=2)


@pytest.fixture(params=SEARCHES, ids=lambda cls: cls.__name__)
def search(request):
    return request.param(n_components=2)


@pytest.fixture(params=[*ESTIMATORS, MMDFairPCA], ids=lambda cls: cls.__name__)
def linear_estimator(request):
    return request.param(n_components=2)


@pytest.fixture(params=[*ESTIMATORS, *ROW_ESTIMATORS], ids=lambda cls: cls.__name__)
def any_estimator(request):
    return request.param(n_components=2)


def same_fit(first, second, tol=1e-9):
    assert np.allclose(first.components_, second.components_, atol=tol)
    assert np.allclose(first.group_errors_, second.group_errors_, atol=tol)
    return True


def test_sensitive_features_are_required(any_estimator, two_groups):
    X, _ = two_groups
    with pytest.raises(ValueError, match="sensitive_features is required"):
        any_estimator.fit(X)
    if hasattr(any_estimator, "partial_fit"):
        with pytest.raises(ValueError, match="sensitive_features is required"):
            any_estimator.partial_fit(X)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda X, s: (X, s[:-1]), ValueError, "sensitive_features has 299 rows, but X has 300"),
        (lambda X, s: (X, np.where(np.arange(300) == 3, None, s)), ValueError, "missing values"),
        (lambda X, s: (X, np.where(np.arange(300) < 9, np.nan, 1.0)), ValueError, "missing values"),
        (lambda X, s: (X, np.zeros(300)), ValueError, "single group"),
        (lambda X, s: (X, X[:, 0]), ValueError, "looks like a measurement"),
        (lambda X, s: (X, "sex"), TypeError, "array without names"),
        (lambda X, s: (X, sparse.csr_array(np.eye(300))), TypeError, "must be dense"),
        (lambda X, s: (X, np.zeros((300, 2, 2))), ValueError, "one or two dimensions"),
        (lambda X, s: (np.where(X > 3, np.nan, X), s), ValueError, "NaN"),
        (lambda X, s: (np.where(X > 3, np.inf, X), s), ValueError, "infinity"),
        (lambda X, s: (np.full(X.shape, "text"), s), ValueError, "X has text .*column 0 .*OneHotEncoder"),
        (lambda X, s: (X[:0], s[:0]), ValueError, "0 sample"),
        (lambda X, s: (X[:, :0], s), ValueError, "0 feature"),
    ],
)
def test_bad_data_gets_a_clear_error(any_estimator, two_groups, change, error, words):
    X, groups = change(*two_groups)
    with pytest.raises(error, match=words):
        any_estimator.fit(X, sensitive_features=groups)
    assert not hasattr(any_estimator, "components_")


def test_overflow_gets_a_clear_error(linear_estimator, two_groups):
    X, groups = two_groups
    with pytest.raises(ValueError, match="squares overflow"):
        linear_estimator.fit(X * 1e200, sensitive_features=groups)


@pytest.mark.parametrize("n_components", [0, -1, 8, 1.5, 1.0, 0.0, "two", True, np.nan])
def test_bad_number_of_components(linear_estimator, two_groups, n_components):
    X, groups = two_groups
    with pytest.raises((ValueError, TypeError), match="n_components"):
        linear_estimator.set_params(n_components=n_components).fit(X, sensitive_features=groups)


def kept_shares(X, fitted, groups):
    return explained_variance_ratio(X, fitted, sensitive_features=groups)


@pytest.mark.parametrize("share", [0.2, np.float64(0.5)])
def test_a_share_keeps_it_in_every_group_with_the_fewest_components(linear_estimator, two_groups, share):
    X, groups = two_groups
    if isinstance(linear_estimator, MMDFairPCA):
        linear_estimator.set_params(tolerance=1.0)  # has tests of its own with a tolerance that matters
    fitted = clone(linear_estimator).set_params(n_components=share).fit(X, sensitive_features=groups)
    d = fitted.n_components_
    assert fitted.components_.shape == (d, 7)
    assert kept_shares(X, fitted, groups).min >= share
    same_fit(fitted, clone(linear_estimator).set_params(n_components=d).fit(X, sensitive_features=groups))
    for fewer in range(1, d):
        one = clone(linear_estimator).set_params(n_components=fewer).fit(X, sensitive_features=groups)
        assert kept_shares(X, one, groups).min < share


@pytest.mark.filterwarnings("ignore:MMDFairPCA found no projection")
def test_none_keeps_all_components(any_estimator, two_groups):
    X, groups = two_groups
    fitted = any_estimator.set_params(n_components=None).fit(X[::5], sensitive_features=groups[::5])
    expected = {"ParityPCA": 6, "LeacePCA": 6, "KernelParityPCA": 58}.get(type(fitted).__name__, 7)
    assert fitted.n_components_ == expected  # parity leaves a direction out; 60 rows vary along 59
    assert fitted.transform(X).shape == (300, expected)


def test_none_keeps_as_many_components_as_rows(estimator, two_groups):
    X, groups = two_groups
    parity = isinstance(estimator, ParityPCA | LeacePCA)
    expected = 4 - parity  # as PCA does, without the direction between the means
    with pytest.warns(UserWarning, match=f"Groups smaller than n_components={expected}"):
        fitted = estimator.set_params(n_components=None).fit(X[198:202], sensitive_features=groups[198:202])
    assert fitted.n_components_ == expected


@pytest.mark.parametrize("n_components", [0.5, np.float64(0.5)])
def test_partial_fit_needs_a_number_of_components(estimator, two_groups, n_components):
    estimator.set_params(n_components=n_components)
    with pytest.raises(ValueError, match=r"n_components=.*0\.5.* is a share"):
        estimator.partial_fit(Unreadable(), sensitive_features=Unreadable())
    X, groups = two_groups
    everything = estimator.set_params(n_components=None).partial_fit(X, sensitive_features=groups)
    assert everything.n_components_ >= 6


def test_a_share_of_moments(estimator, two_groups):
    X, groups = two_groups
    estimator.set_params(n_components=0.5)
    same_fit(
        clone(estimator).fit_moments(group_moments(X, sensitive_features=groups)),
        clone(estimator).fit(X, sensitive_features=groups),
    )


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.ones(299), "sample_weight has shape"),
        (-np.ones(300), "not negative"),
        (np.full(300, np.nan), "finite"),
        (np.zeros(300), "zero for every row"),
        (np.full(300, 1 / 300), "sums to 1"),
    ],
)
def test_bad_sample_weight(any_estimator, two_groups, weights, words):
    X, groups = two_groups
    with pytest.raises(ValueError, match=words):
        any_estimator.fit(X, sensitive_features=groups, sample_weight=weights)


@pytest.mark.parametrize(("name", "value"), [("tol", -1.0), ("tol", "small"), ("max_iter", 0), ("max_iter", 2.5)])
def test_bad_numbers_name_the_argument(search, two_groups, name, value):
    X, groups = two_groups
    with pytest.raises((ValueError, TypeError), match=f"{name} must be"):
        search.set_params(**{name: value}).fit(X, sensitive_features=groups)


def test_bad_choice_names_the_argument(search, two_groups):
    X, groups = two_groups
    with pytest.raises(ValueError, match=r"solver='newton' is unknown; choose one of 'auto'"):
        search.set_params(solver="newton").fit(X, sensitive_features=groups)


@pytest.mark.parametrize(
    "convert",
    [
        list,
        pd.Series,
        lambda s: s == "b",
        lambda s: (s == "b").astype(float),
        lambda s: np.where(s == "a", -3, 10**9),
        lambda s: pd.Series(s, dtype="category").cat.add_categories("never"),
        lambda s: pd.Categorical(s, categories=["b", "a"], ordered=True),
        lambda s: s[:, None],
        lambda s: pd.DataFrame({"group": s}),
        lambda s: pd.Series(s, dtype="string"),
        lambda s: s.astype(object),
        lambda s: [b"x" if label == "a" else b"y" for label in s],
    ],
)
def test_groups_of_any_kind(estimator, two_groups, convert):
    X, groups = two_groups
    expected = clone(estimator).fit(X, sensitive_features=groups)
    fitted = estimator.fit(X, sensitive_features=convert(groups))
    assert len(fitted.groups_) == 2
    order = np.argsort(fitted.group_counts_)[::-1]  # the order of labels may differ, the values may not
    assert np.allclose(fitted.group_errors_[order], expected.group_errors_)


def test_several_columns_make_intersections(estimator, two_groups):
    X, groups = two_groups
    other = np.arange(300) % 3
    table = pd.DataFrame({"letter": groups, "number": other})
    fitted = estimator.fit(X, sensitive_features=table)
    assert fitted.groups_.tolist() == [(letter, number) for letter in "ab" for number in range(3)]
    joined = [f"{letter}{number}" for letter, number in zip(groups, other, strict=True)]
    same_fit(fitted, clone(estimator).fit(X, sensitive_features=joined))


def test_row_order_and_group_names_do_not_matter(estimator, two_groups, rng):
    X, groups = two_groups
    order = rng.permutation(len(X))
    first = clone(estimator).fit(X, sensitive_features=groups)
    same_fit(first, clone(estimator).fit(X[order], sensitive_features=groups[order]))
    renamed = clone(estimator).fit(X, sensitive_features=np.where(groups == "a", "z", "b"))
    assert np.allclose(renamed.group_errors_, first.group_errors_[::-1])
    assert np.allclose(renamed.components_, first.components_)


def test_weights_count_like_repeated_rows(estimator, two_groups, rng):
    X, groups = two_groups
    weights = rng.integers(0, 4, len(X))
    weighted = clone(estimator).fit(X, sensitive_features=groups, sample_weight=weights)
    repeated = clone(estimator).fit(np.repeat(X, weights, axis=0), sensitive_features=np.repeat(groups, weights))
    same_fit(weighted, repeated)
    assert weighted.n_samples_seen_ == repeated.n_samples_seen_
    assert np.allclose(weighted.explained_variance_, repeated.explained_variance_)
    assert np.array_equal(weighted.group_counts_, repeated.group_counts_)


def test_chunks_in_any_order_equal_the_batch(estimator, two_groups):
    X, groups = two_groups
    batch = clone(estimator).fit(X, sensitive_features=groups)
    cuts = [slice(0, 150), slice(150, 180), slice(180, 300)]  # the first chunk holds a single group
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        chunked = clone(estimator)
        for i in order:
            chunked.partial_fit(X[cuts[i]], sensitive_features=groups[cuts[i]])
        same_fit(chunked, batch)
        assert chunked.n_samples_seen_ == 300


def test_chunks_are_only_added_until_the_components_are_asked_for(estimator, two_groups):
    X, groups = two_groups

    class Counting(type(estimator)):
        searches = 0

        def _solve(self, *arguments):
            Counting.searches += 1
            return super()._solve(*arguments)

    chunked = Counting(2)
    for start in range(0, 300, 20):
        chunked.partial_fit(X[start : start + 20], sensitive_features=groups[start : start + 20])
    assert Counting.searches == 0
    same_fit(chunked, clone(estimator).fit(X, sensitive_features=groups))
    chunked.transform(X)
    assert Counting.searches == 1
    chunked.partial_fit(X, sensitive_features=groups)
    assert chunked.n_samples_seen_ == 600
    assert Counting.searches == 2


def test_what_follows_from_chunks_is_said_where_it_is_asked_for(estimator, two_groups):
    X, _ = two_groups
    groups = np.where(np.arange(300) == 5, "lonely", "many")
    estimator.partial_fit(X, sensitive_features=groups)
    with pytest.warns(UserWarning, match="smaller than n_components=2: 'lonely'") as said:
        estimator.transform(X)
    assert said[0].filename == __file__
    with pytest.raises(ValueError, match="n_components=8 must lie between"):
        clone(estimator).set_params(n_components=8).partial_fit(X, sensitive_features=groups)
    with pytest.raises(ValueError, match=r"different types in different chunks: 0 and '0'.*astype"):
        clone(estimator).partial_fit(X, sensitive_features=np.arange(300) % 2).partial_fit(
            X, sensitive_features=(np.arange(300) % 2).astype(str)
        )


def test_a_model_that_only_added_rows_is_saved_solved(estimator, two_groups, tmp_path):
    X, groups = two_groups
    chunked = clone(estimator).partial_fit(X, sensitive_features=groups)
    copied = pickle.loads(pickle.dumps(chunked))
    loaded = load_model(save_model(chunked, tmp_path / "model.npz"))
    for one in (copied, loaded):
        assert np.array_equal(one.transform(X), chunked.transform(X))


def test_an_unknown_keyword_names_the_class_and_what_was_meant(any_estimator, two_groups):
    X, groups = two_groups
    name = type(any_estimator).__name__
    with pytest.raises(TypeError, match=rf"^{name}\.fit\(\) .* 'groups'; did you mean sensitive_features\?"):
        any_estimator.fit(X, groups=groups)
    with pytest.raises(TypeError, match=rf"^{name}\.fit\(\) .* 'weights'; did you mean sample_weight\?"):
        any_estimator.fit_transform(X, sensitive_features=groups, weights=np.ones(300))


def test_single_rows_and_tiny_chunks(estimator, two_groups):
    X, groups = two_groups
    groups = groups[::-1]  # the smaller group first
    chunked = clone(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # groups are small at first
        for rows in (slice(0, 1), slice(1, 3), slice(3, 300)):
            chunked.partial_fit(X[rows], sensitive_features=groups[rows])
    same_fit(chunked, clone(estimator).fit(X, sensitive_features=groups))


def test_chunks_must_have_the_same_columns(estimator, two_groups):
    X, groups = two_groups
    estimator.partial_fit(X, sensitive_features=groups)
    with pytest.raises(ValueError, match="features"):
        estimator.partial_fit(X[:, :5], sensitive_features=groups)


def test_sparse_equals_dense(estimator, rng):
    dense = rng.normal(size=(200, 6)) * (rng.random((200, 6)) < [0.9, 0.2, 0.3, 0.1, 1.0, 0.4])
    groups = rng.integers(0, 2, 200)
    expected = clone(estimator).fit(dense, sensitive_features=groups)
    for form in (sparse.csr_array, sparse.csc_matrix):
        fitted = clone(estimator).fit(form(dense), sensitive_features=groups)
        same_fit(fitted, expected)
        assert np.allclose(fitted.transform(form(dense)), expected.transform(dense))
        assert np.isclose(fitted.score(form(dense)), expected.score(dense))


def test_sensitive_column_left_in_X_is_named(estimator, two_groups):
    X, groups = two_groups
    frame = pd.DataFrame(X, columns=list("pqrstuv"))
    frame["sex_code"] = np.where(groups == "a", 10.0, -1.0)
    with pytest.warns(UserWarning, match="copy of it: 'sex_code'"):
        estimator.fit(frame, sensitive_features=groups)
    with pytest.warns(UserWarning, match="column 7"):
        clone(estimator).fit(frame.to_numpy(), sensitive_features=groups)


def test_constant_column_is_no_copy(estimator, two_groups):
    X, groups = two_groups
    estimator.fit(np.column_stack([X, np.full(300, 1e7)]), sensitive_features=groups)


def test_small_group_is_named(estimator, two_groups):
    X, _ = two_groups
    groups = np.where(np.arange(300) == 5, "lonely", "many")
    with pytest.warns(UserWarning, match=r"smaller than n_components=2: 'lonely' \(1\)"):
        estimator.fit(X, sensitive_features=groups)


def test_routing_through_pipeline_and_search(estimator, two_groups, rng):
    X, groups = two_groups
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), clone(estimator), LogisticRegression())
        pipeline.fit(X, y, sensitive_features=groups)
        scores = cross_validate(pipeline, X, y, params={"sensitive_features": groups}, cv=3)
        assert scores["test_score"].shape == (3,)
        search = GridSearchCV(clone(estimator), {"n_components": [1, 2, 3]}, cv=KFold(3, shuffle=True, random_state=0))
        search.fit(X, sensitive_features=groups)
        assert search.best_params_ == {"n_components": 3}
    scaled = StandardScaler().fit_transform(X)
    same_fit(pipeline[1], clone(estimator).fit(scaled, sensitive_features=groups))


def test_pandas_output_and_names(estimator, two_groups):
    X, groups = two_groups
    frame = pd.DataFrame(X, columns=list("pqrstuv"), index=np.arange(300) + 5)
    scores = estimator.set_output(transform="pandas").fit_transform(frame, sensitive_features=groups)
    names = [f"{type(estimator).__name__.lower()}{i}" for i in range(2)]
    assert list(scores.columns) == names == list(estimator.get_feature_names_out())
    assert scores.index.equals(frame.index)
    assert list(estimator.feature_names_in_) == list("pqrstuv")


def test_clone_and_pickle(estimator, two_groups):
    X, groups = two_groups
    fitted = estimator.fit(X, sensitive_features=groups)
    assert clone(fitted).get_params() == fitted.get_params()
    restored = pickle.loads(pickle.dumps(fitted))
    same_fit(restored, fitted, tol=0)
    restored.partial_fit(X, sensitive_features=groups)
    assert restored.n_samples_seen_ == 600


def test_projection_attributes(estimator, two_groups):
    X, groups = two_groups
    fitted = estimator.fit(X, sensitive_features=groups)
    scores = fitted.transform(X)
    assert np.allclose(fitted.components_ @ fitted.components_.T, np.eye(2), atol=1e-12)
    covariance = np.cov(scores.T)
    assert abs(covariance[0, 1]) < 1e-10
    assert np.allclose(np.diag(covariance), fitted.explained_variance_)
    assert fitted.explained_variance_[0] >= fitted.explained_variance_[1]
    assert np.allclose(fitted.explained_variance_ratio_, np.diag(covariance) / np.cov(X.T).trace())
    assert (np.abs(fitted.components_).max(axis=1) == fitted.components_.max(axis=1)).all()
    errors = np.square(X - fitted.inverse_transform(scores)).sum(axis=1)
    assert np.isclose(fitted.score(X), -errors.mean())
    assert np.allclose(fitted.group_errors_, [errors[groups == label].mean() for label in "ab"])
    assert np.isclose(np.trace(fitted.get_covariance()), np.cov(X.T).trace())
    assert fitted.get_feature_names_out().shape == (2,)


def test_what_pca_has_and_means(linear_estimator, two_groups):
    """On the same components, scikit-learn's PCA would set and return the same."""
    X, groups = two_groups
    fitted = linear_estimator.fit(X, sensitive_features=groups)
    scores = fitted.transform(X)
    assert np.allclose(fitted.singular_values_, np.sqrt((scores**2).sum(axis=0)))
    assert np.allclose(fitted.get_precision() @ fitted.get_covariance(), np.eye(7), atol=1e-9)
    errors = ((X - fitted.inverse_transform(scores)) ** 2).sum(axis=1)
    assert np.allclose(fitted.score_samples(X), -errors, rtol=1e-10)
    assert fitted.score(X) == fitted.score_samples(X).mean()
    for label, error in zip(fitted.groups_, fitted.group_errors_, strict=True):
        assert np.isclose(-fitted.score_samples(X[groups == label]).mean(), error)
    assert np.allclose(fitted.score_samples(sparse.csr_array(X)), -errors)
    assert not hasattr(type(linear_estimator)(), "singular_values_")
    assert "whiten" not in fitted.get_params()


def test_row_errors_keep_their_precision_far_from_the_origin(estimator, two_groups):
    X, groups = two_groups
    near = clone(estimator).fit(X, sensitive_features=groups)
    far = clone(estimator).fit(X + 1e6, sensitive_features=groups)
    assert np.allclose(far.score_samples(X + 1e6), near.score_samples(X), rtol=1e-6)


def test_float32_is_kept_in_the_output_and_accumulated_in_float64(estimator, two_groups):
    X, groups = two_groups
    narrow = X.astype(np.float32)
    fitted = clone(estimator).fit(narrow, sensitive_features=groups)
    same_fit(fitted, clone(estimator).fit(narrow.astype(np.float64), sensitive_features=groups), tol=1e-12)
    assert fitted.transform(narrow).dtype == np.float32


@pytest.mark.parametrize("cls", [FairPCA, RobustFairPCA])  # mean parity leaves fewer dimensions than features
def test_all_dimensions_are_a_rotation(cls, two_groups):
    X, groups = two_groups
    fitted = cls(n_components=7).fit(X, sensitive_features=groups)
    assert np.allclose(fitted.group_errors_, 0, atol=1e-12)
    assert np.allclose(fitted.inverse_transform(fitted.transform(X)), X)


class Unreadable:
    """A collection that refuses to be looked at."""

    def __getattribute__(self, name):
        raise AssertionError(f"X was asked for {name!r} before the parameters were checked")


ALL_ESTIMATORS = (*ESTIMATORS, MMDFairPCA, KernelParityPCA)
WRONG_PARAMETERS = [
    *[(cls, {"n_components": value}) for cls in ALL_ESTIMATORS for value in (0, 1.5, 1.0, "two")],
    *[(cls, {"random_state": "seed"}) for cls in (*SEARCHES, *ROW_ESTIMATORS)],
    *[(cls, {name: -1}) for cls in SEARCHES for name in ("tol", "max_iter")],
    *[(cls, {"solver": "newton"}) for cls in (*SEARCHES, MMDFairPCA)],
    *[(cls, {"center": "median"}) for cls in (FairPCA, RobustFairPCA)],
    *[(cls, {"relative": "yes"}) for cls in (FairPCA, RobustFairPCA)],
    (FairPCA, {"nested": 1}),
    (FairPCA, {"nested": True, "criterion": "error"}),
    (FairPCA, {"nested": True, "solver": "mw"}),
    (FairPCA, {"nested": True, "solver": "sdp"}),
    (FairPCA, {"criterion": "fairness"}),
    (FairPCA, {"criterion": "nash", "solver": "mw"}),
    (RobustFairPCA, {"penalty": -1.0}),
    (RobustFairPCA, {"radius": -1.0}),
    (RobustFairPCA, {"radius": [0.1, np.nan]}),
    (RobustFairPCA, {"radius": {"a": 0.1, "b": "wide"}}),
    (RobustFairPCA, {"n_init": 2.5}),
    (ParityPCA, {"mean_tolerance": -0.1}),
    (ParityPCA, {"covariance_penalty": "high"}),
    (MMDFairPCA, {"notion": "fairness"}),
    (MMDFairPCA, {"approximation": "rough"}),
    (MMDFairPCA, {"tolerance": -1.0}),
    (MMDFairPCA, {"bandwidth": -1.0}),
    (MMDFairPCA, {"max_iter": 0}),
    (MMDFairPCA, {"callback": 3}),
    (KernelParityPCA, {"kernel": "sigmoid"}),
    (KernelParityPCA, {"gamma": -1.0}),
    (KernelParityPCA, {"degree": 0}),
    (KernelParityPCA, {"coef0": -1.0}),
    (KernelParityPCA, {"n_landmarks": 0}),
]


@pytest.mark.parametrize(
    ("cls", "wrong"), WRONG_PARAMETERS, ids=lambda value: value.__name__ if isinstance(value, type) else str(value)
)
def test_wrong_parameters_raise_before_the_data_is_read(cls, wrong):
    words = "|".join([*wrong, "seed"])  # scikit-learn's own message about a random_state shows its value
    for method in ("fit", "partial_fit", "fit_moments"):
        if hasattr(cls, method):
            groups = {} if method == "fit_moments" else {"sensitive_features": Unreadable()}
            with pytest.raises((TypeError, ValueError), match=words):
                getattr(cls(**wrong), method)(Unreadable(), **groups)


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_a_failed_fit_sets_nothing_but_what_describes_the_columns(cls, two_groups, monkeypatch):
    X, groups = two_groups
    pca = cls()

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(cls, "_solve", fail)
    with pytest.raises(MemoryError):
        pca.fit(X, sensitive_features=groups)
    assert {name for name in vars(pca) if name.endswith("_") or name.startswith("_")} == {"n_features_in_"}
