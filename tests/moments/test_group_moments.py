"""Group statistics agree with their definitions."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from scipy import sparse

from fairpca import FairPCA, save_model
from fairpca.moments import GroupMoments, group_moments


def by_definition(X, groups, label):
    rows = X[groups == label].astype(np.longdouble)
    mean = rows.mean(axis=0)
    return len(rows), mean, (rows - mean).T @ (rows - mean)


def assert_same(first, second, rtol=1e-10):
    assert first.labels == second.labels
    assert np.allclose(first.counts, second.counts, rtol=rtol)
    assert np.allclose(first.means, second.means, rtol=rtol)
    scale = np.abs(second.scatters).max()
    assert np.allclose(first.scatters, second.scatters, atol=rtol * scale)


@pytest.fixture
def sample(rng):
    X = rng.normal(size=(1000, 5)) @ rng.normal(size=(5, 5))
    return X, rng.integers(0, 3, 1000)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e8])
@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e140])
def test_definition_near_and_far_from_the_origin(sample, offset, scale):
    X, groups = sample
    X = (X + offset * (1 + groups[:, None])) * scale
    moments = group_moments(X, sensitive_features=groups)
    for a, label in enumerate(moments.labels):
        count, mean, scatter = by_definition(X, groups, label)
        assert moments.counts[a] == count
        assert np.allclose(moments.means[a], mean.astype(float), rtol=1e-14)
        assert np.allclose(moments.scatters[a], scatter.astype(float), atol=1e-8 * np.abs(scatter).max())


def test_an_outlier_in_the_first_row_costs_no_precision(rng):
    X = rng.normal(size=(5000, 2)) + 1e8
    X[0] = 0.0
    groups = np.arange(5000) % 2
    moments = group_moments(X, sensitive_features=groups)
    _, _, scatter = by_definition(X, groups, 1)
    assert np.allclose(moments.scatters[1], scatter.astype(float), rtol=1e-6)


@pytest.mark.parametrize("offset", [0.0, 0.3, 0.5, 3.0, 1e3])
def test_blocks_with_small_means_are_as_exact_as_centred_ones(monkeypatch, rng, offset):
    """Small means are subtracted from the products instead of from the rows, which must not cost precision."""
    monkeypatch.setattr("fairpca.moments._accumulate._BLOCK_BYTES", 8 * 3 * 50)
    X = np.ldexp(rng.integers(-(2**20), 2**20, size=(3000, 3)), -20) + offset
    groups = rng.integers(0, 2, 3000)
    X[groups == 1] -= 0.2
    X[1500:] += 0.1  # a drift
    moments = group_moments(X, sensitive_features=groups)
    for label, scatter in enumerate(moments.scatters):
        rows = X[groups == label].astype(np.longdouble)
        rows -= rows.mean(axis=0)
        expected = (rows.T @ rows).astype(float)
        tolerance = 1e-13 * np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
        assert (np.abs(scatter - expected) <= tolerance).all()


def test_merging_in_any_order_equals_the_batch(sample):
    X, groups = sample
    batch = group_moments(X, sensitive_features=groups)
    cuts = [slice(0, 10), slice(10, 400), slice(400, 1000)]
    parts = [group_moments(X[cut], sensitive_features=groups[cut]) for cut in cuts]
    for order in itertools.permutations(parts):
        assert_same(order[0].merge(order[1]).merge(order[2]), batch)
        assert_same(order[0].merge(order[1].merge(order[2])), batch)
        assert_same(order[0].merge(*order[1:]), batch)
    empty = GroupMoments.empty(5)
    assert_same(empty.merge(batch), batch, rtol=0)
    assert_same(batch.merge(empty), batch, rtol=0)


def test_chunks_whose_groups_differ(sample):
    X, groups = sample
    chunks = ((X[groups == label], groups[groups == label]) for label in (2, 0, 1))
    assert_same(group_moments(chunks), group_moments(X, sensitive_features=groups))


def test_weights_count_like_repeated_rows(sample, rng):
    X, groups = sample
    weights = rng.integers(0, 3, len(X))
    weighted = group_moments(X, sensitive_features=groups, sample_weight=weights)
    assert_same(weighted, group_moments(np.repeat(X, weights, axis=0), sensitive_features=np.repeat(groups, weights)))
    sparse_weighted = group_moments(sparse.csr_array(X), sensitive_features=groups, sample_weight=weights)
    assert_same(sparse_weighted, weighted)


def test_a_group_of_weight_zero_is_absent(sample):
    X, groups = sample
    moments = group_moments(X, sensitive_features=groups, sample_weight=(groups != 1).astype(float))
    assert moments.labels == (0, 2)


@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_sparse_equals_dense_even_far_from_the_origin(rng, offset):
    X = rng.normal(size=(400, 6)) * (rng.random((400, 6)) < [1.0, 0.05, 0.3, 0.6, 0.0, 0.9])
    X[:, 0] += offset
    groups = rng.integers(0, 2, 400)
    dense, thin = (
        group_moments(X, sensitive_features=groups),
        group_moments(sparse.csr_array(X), sensitive_features=groups),
    )
    assert np.allclose(thin.means, dense.means)
    assert np.allclose(thin.scatters, dense.scatters, atol=1e-6)


def test_float32_is_accumulated_in_float64(rng):
    X = (rng.normal(size=(3000, 4)) + 100).astype(np.float32)
    groups = np.arange(3000) % 2
    assert_same(
        group_moments(X, sensitive_features=groups),
        group_moments(X.astype(np.float64), sensitive_features=groups),
        rtol=1e-13,
    )


def large_single_precision(rng, offset=0.0, scale=1.0):
    """Just above the size from which float32 is multiplied in float32; several blocks, groups of different sizes."""
    X = rng.standard_normal((60_000, 20), dtype=np.float32) * np.linspace(2, 0.5, 20, dtype=np.float32)
    X += X[:, ::-1] + np.float32(offset) * np.linspace(-1, 1, 20, dtype=np.float32)
    return X * np.float32(scale), np.minimum(rng.integers(0, 12, 60_000), 2)


@pytest.mark.parametrize("offset", [0.0, 3.0, 1e4])
@pytest.mark.parametrize("scale", [1.0, 1e-25, 1e20])
@pytest.mark.parametrize("weighted", [False, True])
def test_large_float32_is_within_single_rounding_of_float64(rng, offset, scale, weighted):
    X, groups = large_single_precision(rng, offset, scale)
    assert X.size >= 1_000_000
    weight = rng.integers(1, 4, len(X)) if weighted else None  # rows of weight 0 are dropped, which could make X small
    narrow = group_moments(X, sensitive_features=groups, sample_weight=weight)
    wide = group_moments(X.astype(np.float64), sensitive_features=groups, sample_weight=weight)
    deviation = np.sqrt(np.einsum("ajj->aj", wide.scatters) / wide.counts[:, None])
    size = wide.counts[:, None, None] * deviation[:, :, None] * deviation[:, None, :]
    assert narrow.labels == wide.labels
    # Products are float32: a few units of roundoff (6e-8), more far from zero, where the data itself is less precise.
    assert np.abs((narrow.scatters - wide.scatters) / size).max() < (1e-6 if offset == 1e4 else 5e-7)
    assert np.abs((narrow.means - wide.means) / (deviation + 1e-7 * np.abs(wide.means))).max() < 2e-7


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("weighted", [False, True])
def test_large_float32_indicators_next_to_a_column_far_from_zero(rng, share, weighted):
    """Equal numbers have equal rounding errors, which would add up; centres that keep them round prevent that."""
    X = (rng.random((60_000, 20)) < share).astype(np.float32)
    X[:, 0] = rng.normal(5.0, 1.0, 60_000)
    groups = rng.integers(0, 2, 60_000)
    weight = rng.uniform(0.5, 2.0, 60_000) if weighted else None
    narrow = group_moments(X, sensitive_features=groups, sample_weight=weight)
    wide = group_moments(X.astype(np.float64), sensitive_features=groups, sample_weight=weight)
    variances = np.einsum("ajj->aj", wide.scatters)
    size = np.sqrt(variances[:, :, None] * variances[:, None, :])
    assert np.abs((narrow.scatters - wide.scatters) / size).max() < 5e-7


def test_large_float32_with_a_drift_and_an_outlier_in_the_first_row(rng):
    X, groups = large_single_precision(rng)
    X += np.linspace(0, 1e4, len(X), dtype=np.float32)[:, None]
    X[0] = -1e6
    narrow, wide = (
        group_moments(X, sensitive_features=groups),
        group_moments(X.astype(np.float64), sensitive_features=groups),
    )
    assert np.allclose(narrow.scatters, wide.scatters, rtol=1e-6)


def test_large_float32_with_tiny_groups(rng):
    X, groups = large_single_precision(rng)
    groups[:] = 0
    groups[[5, 30_000, 59_999]] = [1, 1, 2]
    narrow, wide = (
        group_moments(X, sensitive_features=groups),
        group_moments(X.astype(np.float64), sensitive_features=groups),
    )
    assert_same(narrow, wide, rtol=1e-6)
    assert np.allclose(narrow.scatters[1:], wide.scatters[1:], atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_memory_layout_does_not_matter(rng, dtype, weighted):
    X, groups = large_single_precision(rng)
    X = X.astype(dtype)
    weight = rng.integers(1, 4, len(X)) if weighted else None
    layouts = {
        "column by column": np.asfortranarray(X),
        "every second row of columns": np.asfortranarray(np.repeat(X, 2, axis=0))[::2],
        "part of wider rows": np.hstack([X, X])[:, : X.shape[1]],
        "backwards": np.ascontiguousarray(X[:, ::-1])[:, ::-1],
    }
    expected = group_moments(X, sensitive_features=groups, sample_weight=weight)
    size = np.abs(expected.scatters).max(axis=(1, 2), keepdims=True)
    rounding = 5e-7 if dtype == np.float32 else 1e-13
    for name, layout in layouts.items():
        before = layout.copy()
        moments = group_moments(layout, sensitive_features=groups, sample_weight=weight)
        assert (np.abs(moments.scatters - expected.scatters) <= rounding * size).all(), name
        assert np.allclose(moments.means, expected.means, rtol=0, atol=rounding), name
        assert np.array_equal(layout, before), f"{name}: the caller's rows were changed"


def test_many_groups_give_the_same_blocks_as_few(rng):
    X = rng.normal(size=(500, 3))
    groups = rng.choice(np.delete(np.arange(30), [0, 7, 29]), size=500)
    moments = group_moments(X, sensitive_features=groups)
    assert moments.labels == tuple(np.unique(groups).tolist())
    for label, count, mean, scatter in zip(
        moments.labels, moments.counts, moments.means, moments.scatters, strict=True
    ):
        rows = X[groups == label]
        assert count == len(rows)
        assert np.allclose(mean, rows.mean(axis=0))
        assert np.allclose(scatter, np.cov(rows.T, bias=True) * count)


def test_large_float32_constant_columns_are_still_found(rng):
    X, groups = large_single_precision(rng)
    X[:, 3] = 0.3
    X[:, 7] = np.array([0.1, 0.7, 1e-3], dtype=np.float32)[groups]
    moments = group_moments(X, sensitive_features=groups)
    assert not moments.scatters[:, 3].any()
    assert moments.columns_fixed_by_group().tolist() == [7]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_values_in_large_data(rng, dtype, bad):
    X, groups = large_single_precision(rng)
    X = np.tile(X.astype(dtype), (4, 1))  # enough for several threads, whose warnings must not reach the user
    X[12_345, 6] = bad
    with pytest.raises(ValueError, match="X contains"):
        group_moments(X, sensitive_features=np.tile(groups, 4))


def test_a_row_of_weight_zero_must_still_be_finite(sample):
    X, groups = sample
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        group_moments(X, sensitive_features=groups, sample_weight=(np.arange(len(X)) != 3).astype(float))


def test_fortran_order_and_views(sample):
    X, groups = sample
    expected = group_moments(X, sensitive_features=groups)
    assert_same(group_moments(np.asfortranarray(X), sensitive_features=groups), expected, rtol=1e-14)
    assert_same(group_moments(np.repeat(X, 2, axis=0)[::2], sensitive_features=groups), expected, rtol=1e-14)


def test_input_is_not_changed(sample):
    X, groups = sample
    before = X.copy()
    group_moments(X, sensitive_features=np.sort(groups))  # sorted groups need no gathering
    assert np.array_equal(X, before)


def test_second_moments_and_pooled_covariance(sample):
    X, groups = sample
    moments = group_moments(X, sensitive_features=groups)
    centred = X - X.mean(axis=0)
    for a, label in enumerate(moments.labels):
        rows = centred[groups == label]
        assert np.allclose(moments.second_moments("pooled")[a], rows.T @ rows / len(rows))
        assert np.allclose(moments.second_moments("group")[a], np.cov(rows.T, ddof=0))
        raw = X[groups == label]
        assert np.allclose(moments.second_moments(np.zeros(5))[a], raw.T @ raw / len(raw))
    assert np.allclose(moments.pooled_covariance(), np.cov(X.T, ddof=0))
    pooled = np.tensordot(moments.shares, moments.second_moments("pooled"), axes=1)
    assert np.allclose(pooled, moments.pooled_covariance())


def test_it_is_frozen(sample):
    moments = group_moments(sample[0], sensitive_features=sample[1])
    with pytest.raises(AttributeError):
        moments.counts = np.ones(3)
    with pytest.raises(ValueError, match="read-only"):
        moments.means[0] = 0.0


def test_errors():
    with pytest.raises(ValueError, match="4 and 3 features"):
        group_moments(np.ones((4, 4)), sensitive_features=[0, 1, 0, 1]).merge(
            group_moments(np.ones((4, 3)), sensitive_features=[0, 1, 0, 1])
        )
    with pytest.raises(ValueError, match="empty iterable"):
        group_moments(iter([]))
    with pytest.raises(ValueError, match="iterable of"):
        group_moments([np.ones((3, 2))])
    with pytest.raises(ValueError, match="do not describe the same"):
        GroupMoments(("a",), np.ones(2), np.ones((2, 3)), np.ones((2, 3, 3)))


@pytest.mark.parametrize("far", [0.0, 1e6])
def test_columns_fixed_by_group(rng, far):
    groups = rng.integers(0, 3, 500)
    X = rng.normal(size=(500, 5)) + far
    X[:, 1] = far + (groups == 2)  # one level of the group
    X[:, 3] = far  # constant: not a copy
    assert group_moments(X, sensitive_features=groups).columns_fixed_by_group().tolist() == [1]


def test_threads_change_nothing(monkeypatch, rng):
    X, groups = rng.normal(size=(4001, 3)) + 1e5, np.sort(rng.integers(0, 3, 4001))
    weights = rng.random(4001) + 1
    alone = group_moments(X, sensitive_features=groups, sample_weight=weights)
    monkeypatch.setattr("fairpca.moments._accumulate._PARALLEL_SIZE", 0)  # sorted: parts without some of the groups
    assert_same(group_moments(X, sensitive_features=groups, sample_weight=weights), alone)


@pytest.mark.parametrize("rows_per_block", [1, 7, 100])
def test_many_blocks_equal_one(monkeypatch, sample, rows_per_block):
    X, groups = sample
    X = X + np.arange(1000)[:, None]  # a drift: block means differ
    monkeypatch.setattr("fairpca.moments._accumulate._MAX_ROWS_OF_WIDE", 1)
    monkeypatch.setattr("fairpca.moments._accumulate._BLOCK_BYTES", rows_per_block * 8 * 5)
    moments = group_moments(X, sensitive_features=groups)
    for a, label in enumerate(moments.labels):
        _, mean, scatter = by_definition(X, groups, label)
        assert np.allclose(moments.means[a], mean.astype(float))
        assert np.allclose(moments.scatters[a], scatter.astype(float), rtol=1e-10)


def test_selected_and_standardised_moments_equal_those_of_transformed_rows(rng):
    X, groups = rng.normal(3, 2, size=(50, 4)) * [1, 10, 0.1, 5], np.arange(50) % 3
    moments = group_moments(X, sensitive_features=groups)
    offsets, scales = moments.pooled_mean[[2, 0]], np.sqrt(moments.pooled_variances()[[2, 0]])
    assert np.allclose(moments.pooled_variances(), X.var(axis=0))
    ours = moments.select([2, 0]).standardised(offsets, scales)
    expected = group_moments(
        (X[:, [2, 0]] - X[:, [2, 0]].mean(axis=0)) / X[:, [2, 0]].std(axis=0), sensitive_features=groups
    )
    assert ours.labels == expected.labels
    for name in ("counts", "means", "scatters"):
        assert np.allclose(getattr(ours, name), getattr(expected, name), atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"counts": [3.0, 0.0]}, "counts of the groups 'b'"),
        ({"counts": [-3.0, 2.0]}, "counts of the groups 'a'"),
        ({"counts": [np.nan, 2.0]}, "counts of the groups 'a'"),
        ({"means": [[0.0, np.nan], [1.0, 1.0]]}, "means contain missing"),
        ({"scatters": [np.eye(2), np.full((2, 2), np.nan)]}, "scatters contain missing"),
        ({"scatters": [np.eye(2), np.diag([1.0, -1.0])]}, "scatters of the group 'b'"),
        ({"scatters": [np.array([[1.0, 0.5], [0.0, 1.0]]), np.eye(2)]}, "scatters of the group 'a'"),
        ({"labels": ("a", "a")}, "repeat a group"),
    ],
)
def test_invalid_moments_raise(changes, message):
    sound = {"counts": [3.0, 2.0], "means": [[0.0, 1.0], [1.0, 1.0]], "scatters": [np.eye(2), 2 * np.eye(2)]}
    given = {"labels": ("a", "b"), **sound, **changes}
    arrays = {name: np.array(given[name], dtype=float) for name in sound}
    with pytest.raises(ValueError, match=message):
        FairPCA(1).fit_moments(GroupMoments(given["labels"], **arrays))
    FairPCA(1).fit_moments(GroupMoments(("a", "b"), **{name: np.array(sound[name], dtype=float) for name in sound}))


def test_moments_of_single_precision_pass_the_check(rng):
    X = rng.normal(size=(2000, 600)).astype(np.float32) * np.float32(1e-3) + np.float32(5.0)
    X[:, 300:] = X[:, :300]  # half of the eigenvalues are zero up to rounding
    group_moments(X, sensitive_features=rng.integers(0, 2, 2000)).check()


@pytest.mark.parametrize("ddof", [0, 1])
def test_from_covariances_is_the_summary_of_the_rows(rng, ddof):
    X, groups = rng.normal(size=(90, 4)) * [1, 2, 3, 4], np.repeat(["c", "a", "b"], [20, 30, 40])
    X[groups == "b"] += 1.0
    parts = {label: X[groups == label] for label in ("b", "c", "a")}
    covariances = {label: np.cov(rows.T, ddof=ddof) for label, rows in parts.items()}
    counts = {label: len(rows) for label, rows in parts.items()}
    means = {label: rows.mean(axis=0) for label, rows in parts.items()}
    found = GroupMoments.from_covariances(covariances, counts, means, ddof=ddof)
    expected = group_moments(X, sensitive_features=groups)
    assert found.labels == expected.labels
    for name in ("counts", "means", "scatters"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"covariances": np.eye(2)}, "one square matrix per group"),
        ({"counts": [5]}, "counts has 1 entries, but there are 2 groups"),
        ({"counts": [5, 1], "ddof": 1}, "each larger than ddof=1"),
        ({"means": {"x": [0, 0], "y": [0, 0]}}, r"means has the groups \['x', 'y'\]"),
        ({"covariances": [np.diag([1.0, -1.0]), np.eye(2)]}, "without negative eigenvalues"),
    ],
)
def test_invalid_covariances_raise(arguments, message):
    good = {"covariances": [np.eye(2), np.eye(2)], "counts": [5, 6]}
    with pytest.raises(ValueError, match=message):
        GroupMoments.from_covariances(**(good | arguments))


def test_moments_of_sums_of_columns(rng):
    X, groups = rng.normal(size=(60, 5)), rng.choice(["a", "b"], 60)
    parts = [[3], [0, 1, 4], [2]]
    expected = group_moments(np.column_stack([X[:, part].sum(axis=1) for part in parts]), sensitive_features=groups)
    found = group_moments(X, sensitive_features=groups).sum_columns(parts)
    assert found.labels == expected.labels
    np.testing.assert_allclose(found.means, expected.means)
    np.testing.assert_allclose(found.scatters, expected.scatters)


@pytest.mark.parametrize("labels", [("a", "b"), (0, 7), (1.5, 2.5), (True, False), (("f", 1), ("m", 2)), ("ä", "b\n")])
def test_bytes_hold_everything(rng, labels):
    X, codes = rng.normal(size=(40, 3)) * 1e-7 + 5.0, np.arange(40) % 2
    plain = group_moments(X, sensitive_features=codes, sample_weight=rng.random(40) + 0.5)
    moments = GroupMoments(labels, plain.counts, plain.means, plain.scatters)
    again = GroupMoments.from_bytes(moments.to_bytes())
    assert again.labels == labels
    assert list(map(type, again.labels)) == list(map(type, labels))
    for name in ("counts", "means", "scatters"):
        np.testing.assert_array_equal(getattr(again, name), getattr(moments, name))


def test_bytes_of_no_rows_are_neutral(rng):
    moments = group_moments(rng.normal(size=(20, 3)), sensitive_features=np.arange(20) % 2)
    empty = GroupMoments.from_bytes(GroupMoments.empty(3).to_bytes())
    np.testing.assert_array_equal(empty.merge(moments).scatters, moments.scatters)


def test_bytes_that_are_not_moments(tmp_path):
    moments = GroupMoments(("a", "b"), np.ones(2), np.zeros((2, 2)), np.array([np.eye(2)] * 2))
    negative = GroupMoments(("a", "b"), np.ones(2), np.zeros((2, 2)), np.array([np.eye(2), -np.eye(2)]))
    model = FairPCA(1).fit_moments(moments)
    content = moments.to_bytes()
    later = content.replace(b'"version": 1', b'"version": 2')
    for wrong, message in [
        (b"", "not what GroupMoments.to_bytes writes"),
        (pickle.dumps(moments), "not what GroupMoments.to_bytes writes"),
        (content[:-10], "not what GroupMoments.to_bytes writes"),
        (save_model(model, tmp_path / "model.npz").read_bytes(), "header"),
        (negative.to_bytes(), "without negative eigenvalues"),
        (later, "damaged"),  # the checksum notices the change
    ]:
        with pytest.raises(ValueError, match=message):
            GroupMoments.from_bytes(wrong)
    with pytest.raises(TypeError, match="cannot be saved"):
        GroupMoments((object(), 1), np.ones(2), np.zeros((2, 2)), np.array([np.eye(2)] * 2)).to_bytes()


def test_bytes_of_a_later_version(monkeypatch):
    moments = GroupMoments(("a", "b"), np.ones(2), np.zeros((2, 2)), np.array([np.eye(2)] * 2))
    with monkeypatch.context() as patch:
        patch.setattr("fairpca.moments._group_moments._VERSION", 2)
        content = moments.to_bytes()
    with pytest.raises(ValueError, match=r"format version 2.*Update fairpca"):
        GroupMoments.from_bytes(content)


def test_a_group_of_equal_rows_has_valid_moments(rng):
    """Its scatter is zero up to rounding, which may be negative."""
    for n_rows in range(4, 40):
        X = rng.normal(size=(n_rows + 20, 3))
        X[:n_rows] = X[0]
        moments = group_moments(X, sensitive_features=np.repeat(["m", "f"], [n_rows, 20]))
        assert FairPCA(2).fit_moments(moments).converged_
