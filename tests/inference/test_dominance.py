"""A loss that rests on a rare value or a handful of rows is traced to it; ordinary losses are not."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from fairpca.inference import dominant_parts
from fairpca.metrics import reconstruction_loss


def plain_data(rng, n=600):
    return rng.normal(size=(n, 6)) * [3.0, 2.5, 2.0, 1.0, 1.0, 1.0], np.repeat(["a", "b"], n // 2)


def test_a_rare_level_is_named_with_the_loss_that_remains_without_it(rng):
    X, groups = plain_data(rng)
    country = np.zeros(600)
    country[:4] = 60.0
    both = np.column_stack([X, country])
    found = [one for one in dominant_parts(both, sensitive_features=groups, n_components=2) if one.feature is not None]
    assert {(one.feature, one.rows, one.of_rows) for one in found} == {("column 6", 4, 600)}
    for one in found:
        for rows, loss in ((both, one.loss), (X, one.loss_without)):
            expected = reconstruction_loss(rows, PCA(2).fit(rows), sensitive_features=groups)
            assert loss == pytest.approx(expected.by_group[one.group])


def test_a_single_row_is_found_with_the_loss_that_remains_without_it(rng):
    X, groups = plain_data(rng)
    X[7] = [0.0, 0.0, 0.0, 40.0, 30.0, 0.0]
    X[400] = [0.0, 0.0, 40.0, 0.0, 0.0, 0.0]
    found = {one.group: one for one in dominant_parts(X, sensitive_features=groups, n_components=2)}
    assert {(one.feature, one.rows, one.of_rows) for one in found.values()} == {(None, 1, 300)}
    kept = np.arange(600) != 7
    left = reconstruction_loss(X[kept], PCA(2).fit(X[kept]), sensitive_features=groups[kept])
    assert found["a"].loss_without == pytest.approx(left.by_group["a"])


@pytest.mark.parametrize("n_components", [1, 2, 5])
def test_nothing_is_said_of_ordinary_losses(rng, n_components):
    X, groups = plain_data(rng)
    X[groups == "a", 3] *= 4.0
    assert dominant_parts(X, sensitive_features=groups, n_components=n_components) == ()


def test_no_loss_no_statement(rng):
    X, groups = plain_data(rng)
    assert dominant_parts(X, sensitive_features=groups, n_components=6) == ()


def test_what_lowers_a_loss_by_less_than_half_does_not_dominate():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, groups = plain_data(rng)
        X[groups == "a", 3] *= 2.6
        X[:2] += 20.0 * rng.normal(size=(2, 6))
        for one in dominant_parts(X, sensitive_features=groups, n_components=2):
            assert one.loss_without < 0.5 * one.loss
