"""LeaceEraser: the least change of the rows that removes every linear trace of the groups, and keeps a label."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, LeaceEraser, LeacePCA, load_model, save_model
from fairpca.metrics import readability
from fairpca.moments import attribute_moments, group_moments


def indicators(labels):
    labels = np.asarray(labels)
    return (labels[:, None] == np.unique(labels)).astype(float)


def covariance(X, z, weights=None):
    """cov(x, z), computed the plain way."""
    Z = indicators(z) if np.asarray(z).dtype.kind != "f" else np.asarray(z).reshape(len(X), -1)
    weights = np.full(len(X), 1 / len(X)) if weights is None else weights / weights.sum()
    X, Z = np.asarray(X, dtype=float), Z - weights @ Z
    return (X - weights @ X).T @ (Z * weights[:, None])


def left_over(X, erased, z, weights=None):
    return np.abs(covariance(erased, z, weights)).max() / np.abs(covariance(X, z, weights)).max()


def matrix(eraser):
    return np.eye(eraser.n_features_in_) - eraser.erased_directions_.T @ eraser.erased_coefficients_


@pytest.fixture
def scene(rng):
    """Rows, four sites, and a label that is related to the sites."""
    site = rng.choice(list("abcd"), 900, p=[0.4, 0.3, 0.2, 0.1])
    label = np.where(rng.random(900) < np.where(site == "a", 0.7, 0.4), "tumour", "normal")
    X = rng.normal(size=(900, 12)) @ rng.normal(size=(12, 12)) + 5.0
    X += indicators(site) @ rng.normal(size=(4, 12)) + (label == "tumour")[:, None] * rng.normal(size=12)
    return X, label, site


def test_no_linear_trace_is_left_and_nothing_smaller_does_it(scene):
    X, _, site = scene
    eraser = LeaceEraser().fit(X, sensitive_features=site)
    erased = eraser.transform(X)
    assert left_over(X, erased, site) < 1e-12
    np.testing.assert_allclose(erased.mean(axis=0), X.mean(axis=0))
    change = ((erased - X) ** 2).sum() / ((X - X.mean(axis=0)) ** 2).sum()
    assert np.isclose(eraser.distortion_, change)
    assert len(eraser.erased_directions_) == 3
    np.testing.assert_allclose(eraser.erased_directions_ @ eraser.erased_coefficients_.T, np.eye(3), atol=1e-12)
    assert np.isclose(eraser.map_norm_, np.linalg.norm(matrix(eraser), 2))
    scorer = LogisticRegression().fit(erased, site)
    shares = np.unique(site, return_counts=True)[1] / len(site)
    np.testing.assert_allclose(scorer.predict_proba(erased), np.tile(shares, (900, 1)), atol=1e-3)


def test_it_is_the_erasure_of_LeacePCA(scene):
    X, _, site = scene
    np.testing.assert_allclose(
        LeaceEraser().fit_transform(X, sensitive_features=site),
        LeacePCA(2).fit(X, sensitive_features=site).erase(X),
        atol=1e-10,
    )


def brute_force(S, removed, kept):
    """The P of least tr((P - I) S (P - I)^T) with P removed = 0 and P kept = kept, by the conditions on all entries."""
    p, limits = len(S), np.hstack([removed, kept])
    targets = np.hstack([np.zeros_like(removed), kept])
    size, rows = p * p, limits.shape[1] * p
    system = np.zeros((size + rows, size + rows))
    system[:size, :size] = np.kron(np.eye(p), S)  # vec(P) row by row
    system[size:, :size] = np.kron(np.eye(p), limits.T)
    system[:size, size:] = system[size:, :size].T
    right = np.concatenate([S.ravel(), targets.ravel()])
    return np.linalg.lstsq(system, right, rcond=1e-13)[0][:size].reshape(p, p)


@pytest.mark.parametrize("seed", range(6))
def test_preserving_equals_constrained_least_squares_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    n, p, k, c = 400, int(rng.integers(6, 10)), int(rng.integers(2, 4)), int(rng.integers(2, 4))
    groups, label = rng.integers(0, k, n), rng.integers(0, c, n)
    groups = np.where(rng.random(n) < 0.4, label % k, groups)
    X = rng.normal(size=(n, p)) @ rng.normal(size=(p, p)) + indicators(groups) @ rng.normal(size=(k, p))
    X += indicators(label) @ rng.normal(size=(c, p))
    eraser = LeaceEraser(preserve="label").fit(X, label, sensitive_features=groups)
    wanted = brute_force(np.cov(X.T, bias=True), covariance(X, groups), covariance(X, label))
    np.testing.assert_allclose(matrix(eraser), wanted, atol=1e-10 * np.abs(wanted).max())


@pytest.mark.parametrize("kind", ["classes", "number", "numbers"])
def test_the_covariance_with_the_label_stays(scene, rng, kind):
    X, label, site = scene
    y = {
        "classes": label,
        "number": X @ rng.normal(size=12) + rng.normal(size=900),
        "numbers": X @ rng.normal(size=(12, 2)) + rng.normal(size=(900, 2)),
    }[kind]
    eraser = LeaceEraser(preserve="label").fit(X, y, sensitive_features=site)
    erased = eraser.transform(X)
    assert left_over(X, erased, site) < 1e-12
    before = covariance(X, y)
    assert np.abs(covariance(erased, y) - before).max() < 1e-12 * np.abs(before).max()
    assert eraser.distortion_ >= LeaceEraser().fit(X, sensitive_features=site).distortion_
    assert len(eraser.preserved_) == {"classes": 2, "number": 1, "numbers": 2}[kind]


def test_labels_that_are_the_groups_are_refused_with_numbers(scene, rng):
    X, _, site = scene
    with pytest.raises(ValueError, match=r"canonical correlation is 1\.000000 .*no map does both.*preserve=None"):
        LeaceEraser(preserve="label").fit(X, site, sensitive_features=site)
    almost = (site == "a") ^ (np.arange(900) < 3)
    with pytest.raises(ValueError, match=r"correlation is 0\.9\d+ .*change rows by [1-9].* norm [1-9]"):
        LeaceEraser(preserve="label").fit(X, almost, sensitive_features=site)
    with pytest.raises(ValueError, match="single class, 'b'"):
        LeaceEraser(preserve="label").fit(X, np.full(900, "b"), sensitive_features=site)
    with pytest.raises(ValueError, match="3 dimensions to be erased and 9 to be kept of 11"):
        LeaceEraser(preserve="label").fit(X[:, :11], rng.integers(0, 10, 900), sensitive_features=site)


def test_many_features_use_the_same_map(rng):
    """From 500 features on, a factorisation takes the place of eigenvectors."""
    site, label = rng.integers(0, 3, 1500), rng.integers(0, 2, 1500)
    X = rng.normal(size=(1500, 510)) + rng.normal(size=(3, 510))[site] + label[:, None]
    eraser = LeaceEraser(preserve="label").fit(X, label, sensitive_features=site)
    erased = eraser.transform(X)
    assert left_over(X, erased, site) < 1e-12
    np.testing.assert_allclose(covariance(erased, label), covariance(X, label), atol=1e-12)
    with pytest.raises(ValueError, match="can hardly be told apart"):
        LeaceEraser(preserve="label").fit(X, site, sensitive_features=site)


def test_continuous_sensitive_features_and_several_columns(scene, rng):
    X, label, site = scene
    age = X @ rng.normal(size=12) + 20 * rng.normal(size=900)
    for groups in (site, pd.DataFrame({"site": site, "label": label})):
        eraser = LeaceEraser().fit(X, sensitive_features=groups, continuous=age)
        assert left_over(X, eraser.transform(X), age) < 1e-11
        assert left_over(X, eraser.transform(X), site) < 1e-11
    assert eraser.groups_[0] == ("a", "normal")
    assert left_over(X, eraser.transform(X), label) < 1e-11
    alone = LeaceEraser().fit(X, continuous=age)
    assert list(alone.groups_) == ["all"]
    assert left_over(X, alone.transform(X), age) < 1e-11
    both = pd.DataFrame({"site": site, "age": age})
    named = LeaceEraser().fit(X, sensitive_features=both, continuous="age")
    assert named.continuous_ == ["age"]
    np.testing.assert_allclose(
        named.transform(X), LeaceEraser().fit(X, sensitive_features=site, continuous=age).transform(X)
    )
    with pytest.raises(ValueError, match="'continuous0' has the same value in every row"):
        LeaceEraser().fit(X, sensitive_features=site, continuous=np.ones(900))


@pytest.mark.parametrize("preserve", [None, "label"])
def test_batches_of_any_shape_equal_all_rows(scene, preserve):
    """Groups that appear late, batches of one group, and [batch, tokens, p] with one group per batch or per token."""
    X, label, site = scene
    order = np.argsort(site, kind="stable")
    X, label, site = X[order], label[order], site[order]
    whole = LeaceEraser(preserve=preserve).fit(X, label, sensitive_features=site)
    parts = LeaceEraser(preserve=preserve)
    parts.partial_fit(X[:0], label[:0], sensitive_features=site[:0])
    for rows in (slice(600, 900), slice(0, 1), slice(1, 200), slice(200, 600)):
        parts.partial_fit(X[rows], label[rows], sensitive_features=site[rows])
    shaped = (X.reshape(30, 30, 12), label.reshape(30, 30))
    tokens = LeaceEraser(preserve=preserve).fit(*shaped, sensitive_features=site.reshape(30, 30))
    for one in (parts, tokens):
        np.testing.assert_allclose(one.transform(X), whole.transform(X), atol=1e-9)
        assert one.groups_.tolist() == whole.groups_.tolist()
        assert one.group_counts_.tolist() == whole.group_counts_.tolist()
        assert one.n_samples_seen_ == 900
    np.testing.assert_array_equal(tokens.transform(shaped[0]).reshape(900, 12), tokens.transform(X))


def test_one_group_per_batch_is_repeated_and_weights_leave_out_padding(rng):
    X, site = rng.normal(size=(40, 5, 6)), np.arange(40) % 3
    used = rng.random((40, 5)) < 0.7
    X[~used] = 1e3
    X += site[:, None, None]
    eraser = LeaceEraser().fit(X, sensitive_features=site, sample_weight=used.astype(float))
    rows = LeaceEraser().fit(X[used], sensitive_features=np.repeat(site, 5).reshape(40, 5)[used])
    np.testing.assert_allclose(eraser.transform(X), rows.transform(X), atol=1e-9)
    frame = pd.DataFrame({"site": site, "half": np.arange(40) % 2})
    assert len(LeaceEraser().fit(X, sensitive_features=frame).groups_) == 6
    with pytest.raises(ValueError, match=r"sensitive_features has shape \(5,\), but X has shape \(40, 5, 6\)"):
        LeaceEraser().fit(X, sensitive_features=np.arange(5))


def test_weights_count_like_repeated_rows(scene, rng):
    X, label, site = scene
    times = rng.integers(0, 4, 900)
    weighted = LeaceEraser(preserve="label").fit(X, label, sensitive_features=site, sample_weight=times)
    repeated = LeaceEraser(preserve="label").fit(
        np.repeat(X, times, axis=0), np.repeat(label, times), sensitive_features=np.repeat(site, times)
    )
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-9)
    assert weighted.n_samples_seen_ == times.sum()


def test_chunks_must_agree_on_what_is_beside_the_rows(scene):
    X, label, site = scene
    eraser = LeaceEraser().partial_fit(X, sensitive_features=site)
    with pytest.raises(ValueError, match="same continuous and y"):
        eraser.partial_fit(X, sensitive_features=site, continuous=X[:, 0])
    eraser = LeaceEraser(preserve="label").partial_fit(X, label, sensitive_features=site)
    with pytest.raises(ValueError, match="of the same types"):
        eraser.partial_fit(X, X[:, 0], sensitive_features=site)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_the_type_of_an_array_is_kept_and_sums_are_not_rounded_to_it(scene, dtype):
    X, _, site = scene
    narrow = X.astype(dtype)
    eraser = LeaceEraser().fit(narrow, sensitive_features=site)
    erased = eraser.transform(narrow)
    assert erased.dtype == dtype
    exact = eraser.transform(narrow.astype(np.float64))
    assert left_over(narrow, exact, site) < 1e-12
    np.testing.assert_allclose(erased, exact, atol=np.finfo(dtype).eps * 40)


def test_large_float32_and_float16_leave_little_in_float64(rng):
    """Products of a million numbers and more are formed in float32."""
    site = rng.integers(0, 3, 40_000)
    X = (rng.normal(size=(40_000, 32)) + 0.3 * rng.normal(size=(3, 32))[site] + 2.0).astype(np.float16)
    for rows in (X, X.astype(np.float32)):
        eraser = LeaceEraser().fit(rows, sensitive_features=site)
        assert left_over(X, eraser.transform(X.astype(float)), site) < 1e-5


def test_sparse_rows_come_out_dense(scene, rng):
    X, _, site = scene
    X = X * (rng.random(X.shape) < 0.2)
    eraser = LeaceEraser().fit(sparse.csr_array(X), sensitive_features=site)
    erased = eraser.transform(sparse.csr_array(X))
    np.testing.assert_allclose(erased, LeaceEraser().fit_transform(X, sensitive_features=site), atol=1e-9)


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_come_out_as_frames(scene, library):
    X, _, site = scene
    frame = library.DataFrame({**{f"f{j}": X[:, j] for j in range(12)}, "site": site})
    eraser = LeaceEraser().fit(frame, sensitive_features="site")
    erased = eraser.transform(frame)
    assert type(erased) is library.DataFrame
    assert list(erased.columns) == [f"f{j}" for j in range(12)] == list(eraser.get_feature_names_out())
    expected = LeaceEraser().fit_transform(X, sensitive_features=site)
    np.testing.assert_allclose(erased.to_numpy(), expected)
    for kind in ("pandas", "polars"):
        told = clone(eraser).set_output(transform=kind).fit(frame, sensitive_features="site").transform(frame)
        assert type(told).__module__.split(".")[0] == kind
        assert told.shape == (900, 12)
        np.testing.assert_allclose(told.to_numpy(), expected)


def test_rows_of_a_pandas_frame_keep_their_index(scene):
    X, _, site = scene
    frame = pd.DataFrame(X, index=np.arange(900) + 7)
    assert LeaceEraser().fit_transform(frame, sensitive_features=site).index.equals(frame.index)


def test_dask_is_lazy_and_the_same(scene):
    da = pytest.importorskip("dask.array")
    X, label, site = scene
    chunks = da.from_array(X, chunks=(250, 5))
    eraser = LeaceEraser(preserve="label").fit(chunks, label, sensitive_features=site)
    expected = LeaceEraser(preserve="label").fit(X, label, sensitive_features=site)
    np.testing.assert_allclose(matrix(eraser), matrix(expected), atol=1e-10)
    erased = eraser.transform(chunks)
    assert isinstance(erased, da.Array)
    np.testing.assert_allclose(erased.compute(), expected.transform(X), atol=1e-9)
    age = X[:, 0] + np.arange(900)
    named = LeaceEraser().fit(chunks, sensitive_features=site, continuous=age)
    np.testing.assert_allclose(
        matrix(named), matrix(LeaceEraser().fit(X, sensitive_features=site, continuous=age)), atol=1e-10
    )


def test_columns_of_a_dask_frame_may_be_the_groups(scene):
    dd = pytest.importorskip("dask.dataframe")
    X, _, site = scene
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(12)]).assign(site=site)
    chunks = dd.from_pandas(frame, npartitions=3)
    eraser = LeaceEraser().fit(chunks, sensitive_features="site")
    expected = LeaceEraser().fit_transform(X, sensitive_features=site)
    np.testing.assert_allclose(eraser.transform(chunks).compute(), expected, atol=1e-9)


def test_moments_from_elsewhere(scene, rng):
    X, _, site = scene
    expected = LeaceEraser().fit(X, sensitive_features=site)
    eraser = LeaceEraser().fit_moments(group_moments(X, sensitive_features=site))
    np.testing.assert_allclose(matrix(eraser), matrix(expected), atol=1e-10)
    assert eraser.group_counts_.tolist() == expected.group_counts_.tolist()
    assert np.isclose(eraser.distortion_, expected.distortion_)
    age = rng.normal(size=900)
    measured = LeaceEraser().fit_moments(attribute_moments(X, sensitive_features=site, continuous=age))
    assert left_over(X, measured.transform(X), age) < 1e-11
    with pytest.raises(ValueError, match="no sums to which rows could be added"):
        eraser.partial_fit(X, sensitive_features=site)
    with pytest.raises(ValueError, match="moments hold no label"):
        LeaceEraser(preserve="label").fit_moments(group_moments(X, sensitive_features=site))


def test_it_stands_before_any_estimator(scene):
    X, label, site = scene
    pipeline = make_pipeline(StandardScaler(), LeaceEraser(preserve="label"), LogisticRegression())
    pipeline.set_params(leaceeraser__preserve="label")
    erased = LeaceEraser(preserve="label").fit(X, label, sensitive_features=site).transform(X)
    scores = FairPCA(2).fit_transform(erased, sensitive_features=site)
    assert left_over(X[:, :2], scores, site) < 1e-10
    from sklearn import config_context

    with config_context(enable_metadata_routing=True):
        pipeline.fit(X, label, sensitive_features=site)
        both = make_pipeline(LeaceEraser(), FairPCA(2)).fit(X, sensitive_features=site)
    assert pipeline.score(X, label) > 0.6
    assert both.transform(X).shape == (900, 2)


def test_strong_readers_may_still_tell_the_groups_apart(rng):
    groups = np.repeat(["a", "b"], 400)
    X = rng.normal(size=(800, 3)) * np.where(groups == "a", 1.0, 3.0)[:, None] + (groups == "a")[:, None]
    erased = LeaceEraser().fit_transform(X, sensitive_features=groups)
    assert readability(erased, sensitive_features=groups, family="boosting").readable


def test_nothing_left_is_said(rng):
    groups = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 2)) + np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])[groups]
    with pytest.warns(UserWarning, match="All 2 dimensions of X differ between the groups"):
        eraser = LeaceEraser().fit(X, sensitive_features=groups)
    assert np.isclose(eraser.distortion_, 1.0)
    assert eraser.map_norm_ == 0
    np.testing.assert_allclose(eraser.transform(X), np.tile(X.mean(axis=0), (60, 1)), atol=1e-12)


def test_groups_without_any_difference_change_nothing(rng):
    X = np.vstack([rng.normal(size=(50, 4))] * 2)
    eraser = LeaceEraser().fit(X, sensitive_features=np.repeat(["a", "b"], 50))
    assert (eraser.distortion_, eraser.map_norm_, len(eraser.erased_directions_)) == (0, 1, 0)
    np.testing.assert_array_equal(eraser.transform(X), X)


def test_clear_errors(scene):
    X, label, site = scene
    with pytest.raises(ValueError, match="preserve='labels' is unknown"):
        LeaceEraser(preserve="labels").fit(X, label, sensitive_features=site)
    with pytest.raises(ValueError, match="preserve='label' needs y"):
        LeaceEraser(preserve="label").fit(X, sensitive_features=site)
    with pytest.raises(ValueError, match="y contains missing values"):
        LeaceEraser(preserve="label").fit(X, [None, *label[1:]], sensitive_features=site)
    with pytest.raises(ValueError, match=r"^y has 5 rows, but X has 900"):
        LeaceEraser(preserve="label").fit(X, label[:5], sensitive_features=site)
    with pytest.raises(ValueError, match=r"^y contains missing or infinite"):
        LeaceEraser(preserve="label").fit(X, np.append(X[1:, 0], np.nan), sensitive_features=site)
    with pytest.raises(ValueError, match="sensitive_features is required"):
        LeaceEraser().fit(X)
    with pytest.raises(ValueError, match="a single group, 'x'"):
        LeaceEraser().fit(X, sensitive_features=["x"] * 900)
    with pytest.raises(TypeError, match=r"LeaceEraser\.fit\(\) .* 'groups'; did you mean sensitive_features"):
        LeaceEraser().fit(X, groups=site)


def test_the_model_comes_back_and_goes_on_learning(scene, tmp_path):
    X, label, site = scene
    first, second = slice(0, 500), slice(500, 900)
    eraser = LeaceEraser(preserve="label").partial_fit(X[first], label[first], sensitive_features=site[first])
    loaded = load_model(save_model(eraser, tmp_path / "model.npz"))
    np.testing.assert_array_equal(loaded.transform(X), eraser.transform(X))
    for one in (loaded, eraser):
        one.partial_fit(X[second], label[second], sensitive_features=site[second])
    np.testing.assert_array_equal(loaded.transform(X), eraser.transform(X))
    assert loaded.preserved_ == ["normal", "tumour"]
