"""Parallel analysis finds the components above noise, in all rows and in each group."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca.model_selection import components_needed
from fairpca.moments import group_moments

SIZES = {"large": 300, "middle": 150, "small": 50}


def table(seed, variances=(6.0, 4.0, 3.0, 2.0), apart=0.0):
    """Components with these variances over noise 1 in 20 features; the groups' means may lie apart."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(20, 4)))[0]
    scores = rng.normal(size=(500, len(variances))) * np.sqrt(variances)
    groups = np.repeat(list(SIZES), list(SIZES.values()))
    means = dict(zip(SIZES, apart * rng.normal(size=(3, 20)), strict=True))
    X = scores @ axes.T[: len(variances)] + rng.normal(size=(500, 20))
    return X + np.stack([means[group] for group in groups]), groups


def analysed(X, groups, **options):
    return components_needed(X, sensitive_features=groups, method="parallel", **options)


def test_the_true_number_is_found():
    found = [analysed(*table(seed, apart=3.0)).needed for seed in range(20)]
    assert np.sum(np.array(found) == 4) >= 18


def test_noise_has_no_components_wherever_the_means_are():
    """By chance one in 20 has, in all rows and in each group."""
    found = [analysed(*table(seed, variances=(), apart=3.0)) for seed in range(20)]
    numbers = np.array([[one.needed, *one.needed_alone.values()] for one in found])
    assert (numbers > 0).mean() < 0.15


def test_a_component_that_one_group_has_alone_is_found_in_it():
    X, groups = table(0, variances=())
    X[groups == "small", :5] += 3.0 * np.random.default_rng(1).normal(size=(50, 1))
    found = analysed(X, groups)
    assert found.needed_alone["small"] == 1
    assert found.needed_alone["large"] == 0


def test_variances_are_those_about_the_group_means():
    X, groups = table(0, apart=3.0)
    found = analysed(X, groups)
    within = np.concatenate([X[groups == label] - X[groups == label].mean(axis=0) for label in found.groups])
    assert np.allclose(found.variances[:, 0], np.linalg.svd(within, compute_uv=False) ** 2 / 500)
    assert np.allclose(found.variances[:, 3], np.linalg.eigvalsh(np.cov(X[groups == "small"].T, ddof=0))[::-1])
    assert found.counts.tolist() == [300, 150, 50]


def test_the_table_and_the_frame():
    found = analysed(*table(0), random_state=1)
    assert [row["components"] for row in found._cells()] == [
        str(n) for n in (found.needed, *found.needed_alone.values())
    ]
    frame = found.to_frame()
    assert list(frame.columns) == ["n_components", "group", "variance", "level"]
    above = frame[frame.group == "all rows"].set_index("n_components")
    assert (above.variance > above.level)[: found.needed].all()


def test_errors():
    X, groups = table(0)
    with pytest.raises(ValueError, match="has no use for share, cv; leave out"):
        analysed(X, groups, share=0.8, cv=5)
    with pytest.raises(ValueError, match="has no use for sample_weight"):
        analysed(X, groups, sample_weight=np.ones(500))
    with pytest.raises(ValueError, match="must be in memory, but X is a GroupMoments"):
        analysed(group_moments(X, sensitive_features=groups), None)
    with pytest.raises(ValueError, match="sensitive_features is required"):
        analysed(X, None)
    with pytest.raises(ValueError, match="method='horn' is unknown"):
        components_needed(X, sensitive_features=groups, method="horn")
