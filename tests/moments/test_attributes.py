"""Moments of features and continuous sensitive features: mergeable, and equal to those of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fairpca.moments import AttributeMoments, GroupMoments, _attributes, attribute_moments, group_moments

#: Of numbers near 1e6, as the second attribute holds them.
ROUNDING = 1e6 * np.finfo(float).eps


@pytest.fixture
def rows(rng):
    groups = rng.choice(list("abc"), 200)
    X = rng.normal(size=(200, 4)) + 10.0
    z = np.column_stack([X[:, 0] + rng.normal(size=200), 1e6 + rng.normal(size=200)])
    return X, groups, z


def test_slopes_are_covariances_per_standard_deviation(rows):
    X, groups, z = rows
    moments = attribute_moments(X, sensitive_features=groups, continuous=z)
    expected = [[np.cov(x, one, bias=True)[0, 1] / one.std() for x in X.T] for one in z.T]
    np.testing.assert_allclose(moments.slopes(), expected, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(moments.attribute_spreads(), z.std(axis=0), rtol=1e-9)
    alone = group_moments(X, sensitive_features=groups)
    np.testing.assert_allclose(moments.moments.scatters, alone.scatters, rtol=1e-10)
    np.testing.assert_allclose(moments.pooled_mean, X.mean(axis=0))
    np.testing.assert_allclose(moments.traces("group"), alone.traces("group"))


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_parts_in_any_order_equal_the_whole(rows, order):
    X, groups, z = rows
    weights = 1.0 + np.arange(200) % 3
    whole = attribute_moments(X, sensitive_features=groups, continuous=z, sample_weight=weights)
    cuts = [slice(0, 2), slice(2, 90), slice(90, 200)]
    first, *others = (
        attribute_moments(X[cut], sensitive_features=groups[cut], continuous=z[cut], sample_weight=weights[cut])
        for cut in (cuts[i] for i in order)
    )
    merged = first.merge(*others)
    assert merged.labels == whole.labels
    np.testing.assert_allclose(merged.joint.scatters, whole.joint.scatters, rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(merged.slopes(), whole.slopes(), rtol=1e-8, atol=ROUNDING)
    repeated = np.repeat(np.arange(200), weights.astype(int))
    again = attribute_moments(X[repeated], sensitive_features=groups[repeated], continuous=z[repeated])
    np.testing.assert_allclose(again.slopes(), whole.slopes(), rtol=1e-8, atol=ROUNDING)


def test_blocks_and_sparse_rows_change_nothing(rows, monkeypatch):
    X, groups, z = rows
    X = X * (X > 10.0)
    whole = attribute_moments(X, sensitive_features=groups, continuous=z)
    np.testing.assert_allclose(
        attribute_moments(sparse.csr_array(X), sensitive_features=groups, continuous=z).slopes(),
        whole.slopes(),
        rtol=1e-8,
    )
    monkeypatch.setattr(_attributes, "_BLOCK_NUMBERS", 100)
    np.testing.assert_allclose(
        attribute_moments(X, sensitive_features=groups, continuous=z).slopes(), whole.slopes(), rtol=1e-8
    )


def test_constant_attributes_have_no_slope(rng):
    X = rng.normal(size=(30, 2))
    moments = attribute_moments(
        X, sensitive_features=None, continuous=np.column_stack([np.full(30, 1e8 + 0.1), X[:, 0]])
    )
    assert moments.labels == ("all",)
    assert moments.attribute_spreads()[0] == 0
    assert (moments.slopes()[0] == 0).all()
    assert moments.slopes()[1, 0] == pytest.approx(X[:, 0].std())


def test_linear_functions_of_an_attribute_are_copies(rows):
    X, groups, z = rows
    X = np.column_stack([X, 5.0 - 2.0 * z[:, 0], np.full(200, 3.0), groups == "a"])
    assert attribute_moments(X, sensitive_features=groups, continuous=z).columns_fixed_by_group().tolist() == [4, 6]
    assert attribute_moments(X, sensitive_features=None, continuous=z).columns_fixed_by_group().tolist() == [4]


def test_parts_need_the_same_attributes(rows):
    X, groups, z = rows
    one, other = (
        attribute_moments(X, sensitive_features=groups, continuous={name: z[:, 0]}) for name in ("age", "income")
    )
    with pytest.raises(ValueError, match=r"\['age'\] and \['income'\]: pass the same columns"):
        one.merge(other)
    with pytest.raises(ValueError, match="the features come first"):
        AttributeMoments(("age",), GroupMoments.empty(1))
