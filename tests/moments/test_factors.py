"""The operators have the same products, traces and quadratic forms as the moment matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fairpca._validation import check_groups
from fairpca.moments import group_moments
from fairpca.moments._factors import GroupFactors


@pytest.mark.parametrize("center", ["pooled", "group"])
@pytest.mark.parametrize("kind", ["dense", "sparse", "weighted", "sorted"])
def test_products_are_those_of_the_moments(rng, center, kind):
    X = rng.normal(size=(60, 9)) + 3
    groups = np.sort(rng.integers(0, 3, 60)) if kind == "sorted" else rng.integers(0, 3, 60)
    weight = rng.integers(0, 3, 60).astype(float) if kind == "weighted" else None
    X = sparse.csr_array(X * (rng.random(X.shape) < 0.3)) if kind == "sparse" else X
    factors = GroupFactors(X, check_groups(groups, 60), weight)
    moments = group_moments(X, sensitive_features=groups, sample_weight=weight)
    vectors = rng.normal(size=(9, 4))
    matrices = moments.second_moments(center)
    assert np.allclose(factors.second_moments(center).images(vectors), matrices @ vectors)
    assert np.allclose(factors.traces(center), np.einsum("aii->a", matrices))
    assert np.allclose(factors.pooled_form(vectors), vectors.T @ moments.pooled_covariance() @ vectors)
    assert np.isclose(factors.pooled_variance(), np.trace(moments.pooled_covariance()))
    assert np.allclose(factors.pooled_mean, moments.pooled_mean)
    assert np.allclose(factors.mean_rounding(), moments.mean_rounding())
    assert factors.labels == moments.labels
    assert (factors.counts == moments.counts).all()


def test_a_copy_of_the_groups_is_found_and_no_matrix_is_formed(rng):
    X, groups = rng.normal(size=(40, 6)), np.arange(40) % 2
    X[:, 4] = groups
    factors = GroupFactors(X, check_groups(groups, 40))
    assert factors.columns_fixed_by_group().tolist() == [4]
    assert factors.size == factors.n_features == 6
    with pytest.raises(TypeError, match="does not form matrices"):
        _ = factors.moments


@pytest.mark.parametrize("where", ["counted", "without weight"])
def test_missing_values_raise(rng, where):
    X, groups = rng.normal(size=(40, 6)), np.arange(40) % 2
    weight = np.ones(40)
    X[3, 2], weight[3] = np.nan, float(where == "counted")
    with pytest.raises(ValueError, match="NaN"):
        GroupFactors(X, check_groups(groups, 40), weight)
