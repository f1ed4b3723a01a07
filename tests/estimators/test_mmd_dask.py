"""MMDFairPCA on Dask collections: all rows in memory, or a random sample of too many."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca import MMDFairPCA
from fairpca._validation import is_dask
from fairpca.moments import dask as lazy_moments
from fairpca.moments.dask import gather_rows

da = pytest.importorskip("dask.array", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

pytestmark = pytest.mark.filterwarnings("ignore:tolerance=.* is below:UserWarning")
N_ROWS, CHUNK = 350, 60


@pytest.fixture
def people(rng):
    """Two groups that differ in the mean of one feature and the spread of another; the last chunk holds one group."""
    groups = np.where(rng.random(N_ROWS) < 0.4, "a", "b")
    groups[-CHUNK:] = "b"
    X = rng.normal(size=(N_ROWS, 5)) * [1.5, 1.3, 1.2, 1.0, 0.5] + 3.0
    X[groups == "a", 0] += 1.0
    X[groups == "a", 1] *= 1.6
    return X, groups


def cut(values):
    return da.from_array(values, chunks=(CHUNK, *values.shape[1:]))


def test_a_large_collection_is_sampled_and_the_fit_is_that_of_the_sample(people, rng, monkeypatch):
    X, groups = people
    monkeypatch.setattr(lazy_moments, "GATHERED_ROWS", 130)
    weights = rng.integers(0, 3, N_ROWS).astype(float)
    lazy = (cut(X), cut(groups), cut(weights))
    with pytest.warns(UserWarning, match="collection of 350 rows.*random sample of .*in memory to use all"):
        rows, found, kept, y = gather_rows(*lazy, None, seed=0)
    assert 60 < len(rows) < 130  # of the rows with weight, the share 130 / 350
    assert y is None
    index = {row.tobytes(): number for number, row in enumerate(X)}
    drawn = [index[row.tobytes()] for row in rows]
    assert drawn == sorted(set(drawn))
    assert (np.array(found.labels)[found.codes] == groups[drawn]).all()
    assert (kept == weights[drawn]).all()
    assert kept.min() > 0
    assert abs((found.codes == 0).mean() - (groups == "a").mean()) < 0.15
    with pytest.warns(UserWarning, match="a random sample of"):
        fitted = MMDFairPCA(1, tolerance=0.05).fit(lazy[0], sensitive_features=lazy[1], sample_weight=lazy[2])
    names = np.array(found.labels)[found.codes]
    expected = MMDFairPCA(1, tolerance=0.05).fit(rows, sensitive_features=names, sample_weight=kept)
    assert fitted.mmd2_ == expected.mmd2_
    assert fitted.n_samples_seen_ == kept.sum()
    scores = fitted.transform(lazy[0])
    assert is_dask(scores)
    assert np.allclose(scores.compute(), fitted.transform(X))


def test_a_group_of_which_no_row_is_drawn_is_named(people, monkeypatch):
    X, groups = people
    groups = np.where(np.arange(N_ROWS) == 7, "rare", groups)
    monkeypatch.setattr(lazy_moments, "GATHERED_NUMBERS", 5 * 10)
    with pytest.raises(ValueError, match=r"Group 'rare' has so few of the 350 rows .* merge small groups"):
        MMDFairPCA(1).fit(cut(X), sensitive_features=cut(groups))


@pytest.mark.parametrize("form", ["array", "frame", "column name"])
def test_small_collections_give_the_fit_in_memory(people, form):
    X, groups = people
    pca = MMDFairPCA(1, tolerance=0.02)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(sex=groups)
    lazy = dd.from_pandas(frame, npartitions=3)
    if form == "array":
        pca.fit(cut(X), sensitive_features=cut(groups))
    elif form == "frame":
        pca.fit(lazy.drop(columns="sex"), sensitive_features=lazy["sex"])
    else:
        pca.fit(lazy, sensitive_features="sex")
        assert pca.feature_names_in_.tolist() == list("abcde")
    expected = MMDFairPCA(1, tolerance=0.02).fit(X, sensitive_features=groups)
    assert np.allclose(pca.bandwidth_, expected.bandwidth_, rtol=1e-10)
    assert np.allclose(pca.components_, expected.components_, atol=1e-4)
    assert np.isclose(pca.mmd2_, expected.mmd2_, rtol=1e-4)


@pytest.mark.parametrize("notion", ["equal_opportunity", "equalized_odds"])
def test_notions_that_need_a_label(people, rng, notion):
    X, groups = people
    y = np.r_[np.zeros(70, int), rng.integers(0, 2, N_ROWS - 70)]  # the first chunk has one value only
    options = {"tolerance": 0.05, "notion": notion}
    ours = MMDFairPCA(1, **options).fit(cut(X), cut(y), sensitive_features=cut(groups))
    theirs = MMDFairPCA(1, **options).fit(X, y, sensitive_features=groups)
    assert ours.pairs_ == theirs.pairs_
    assert np.allclose(ours.bandwidth_, theirs.bandwidth_, rtol=1e-10)
    assert np.allclose(ours.pair_mmd2_, theirs.pair_mmd2_, rtol=1e-3, atol=1e-5)
    with pytest.raises(ValueError, match="give a binary y"):
        MMDFairPCA(2, notion=notion).fit(cut(X), sensitive_features=cut(groups))


def test_groups_weights_and_label_in_memory_beside_chunks(people, rng):
    X, groups = people
    y = rng.integers(0, 2, N_ROWS)
    options = {"tolerance": 0.05, "notion": "equal_opportunity", "max_iter": 10}
    given = {"sensitive_features": {"sex": groups.tolist()}, "sample_weight": [1.0, 2.0] * (N_ROWS // 2)}
    ours = MMDFairPCA(1, **options).fit(cut(X), y.tolist(), **given)
    theirs = MMDFairPCA(1, **options).fit(X, y, **given)
    assert ours.pairs_ == theirs.pairs_
    assert ours.group_counts_.tolist() == theirs.group_counts_.tolist()
    assert np.allclose(ours.bandwidth_, theirs.bandwidth_, rtol=1e-10)
    assert np.allclose(ours.pair_mmd2_, theirs.pair_mmd2_, rtol=1e-3, atol=1e-5)


def test_errors(people):
    X, groups = people
    with pytest.raises(ValueError, match="required"):
        MMDFairPCA(2).fit(cut(X))
    with pytest.raises(TypeError, match=r"y='label' is a single string.*give the column itself"):
        MMDFairPCA(2, notion="equalized_odds").fit(cut(X), "label", sensitive_features=groups)
