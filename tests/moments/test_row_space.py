"""The space spanned by few rows: its coordinates describe the rows, and the moments agree."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fairpca._validation import check_groups
from fairpca.moments import group_moments
from fairpca.moments._row_space import RowSpace

N_ROWS, N_FEATURES = 40, 90


@pytest.fixture
def rows(rng):
    groups = np.arange(N_ROWS) % 2
    X = rng.normal(size=(N_ROWS, N_FEATURES)) * np.linspace(2, 0.2, N_FEATURES) + 4.0
    X[groups == 1] = X[groups == 1][:, ::-1] + np.linspace(0, 0.4, N_FEATURES)
    return X, groups


def test_coordinates_describe_the_rows(rows, rng):
    X, groups = rows
    space = RowSpace(X, check_groups(groups, N_ROWS), n_spare=2)
    assert space.moments.n_features == N_ROWS - 1 + 2  # centring removes one dimension
    basis = np.linalg.qr(rng.normal(size=(N_ROWS + 1, 4)))[0]
    lifted = space.lift(basis)
    moments = group_moments(X, sensitive_features=groups)
    for center in ("pooled", "group"):
        expected = basis.T @ space.moments.second_moments(center) @ basis
        assert np.allclose(lifted.T @ moments.second_moments(center) @ lifted, expected)
    spare = space.lift(np.eye(N_ROWS + 1)[:, -2:])
    assert np.abs((X - X.mean(axis=0)) @ spare).max() < 1e-12
    assert np.allclose(space.pooled_mean, X.mean(axis=0))
    X[:, 7] = groups
    assert RowSpace(X, check_groups(groups, N_ROWS)).columns_fixed_by_group().tolist() == [7]
    assert RowSpace(sparse.csr_array(X), check_groups(groups, N_ROWS)).columns_fixed_by_group().tolist() == [7]


@pytest.mark.parametrize("kind", ["dense", "sparse", "weighted"])
@pytest.mark.parametrize("center", ["pooled", "group"])
def test_statistics_independent_of_coordinates_equal_those_of_the_features(rows, rng, kind, center):
    X, groups = rows
    X = sparse.csr_array(X * (rng.random(X.shape) < 0.4)) if kind == "sparse" else X
    weight = rng.integers(0, 3, N_ROWS).astype(float) if kind == "weighted" else None
    space = RowSpace(X, check_groups(groups, N_ROWS), weight, n_spare=3)
    moments = group_moments(X, sensitive_features=groups, sample_weight=weight)
    assert np.allclose(space.traces(center), moments.traces(center))
    assert np.allclose(space.traces(center), np.einsum("aii->a", moments.second_moments(center)))
    assert np.isclose(space.pooled_variance(), moments.pooled_variance())
    assert np.allclose(space.means, moments.means)
    basis = np.linalg.qr(rng.normal(size=(space.size, 4)))[0]
    assert np.allclose(space.pooled_form(basis), moments.pooled_form(space.lift(basis)))
    assert space.n_features == N_FEATURES
    assert (space.counts == moments.counts).all()


def test_missing_values_raise(rows):
    X, groups = rows
    X[3, 5] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        RowSpace(X, check_groups(groups, N_ROWS))
