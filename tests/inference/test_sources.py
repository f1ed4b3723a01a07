"""Chunks, Parquet files and Dask collections: the same values as rows in memory, where these can be the same."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.decomposition import PCA

from fairpca import FairPCA, MMDFairPCA
from fairpca.inference import cross_validate_groups, loss_test
from fairpca.inference._blocks import make_blocks
from fairpca.moments import group_moments
from fairpca.moments._sources import ChunkSource
from fairpca.moments.arrow import ParquetChunks


@pytest.fixture
def people(rng):
    X = rng.normal(size=(3000, 6)) * np.linspace(2, 1, 6)
    groups = np.repeat(["f", "m"], [1000, 2000])[rng.permutation(3000)]
    X[groups == "f"] *= np.linspace(0.6, 1.6, 6)
    return X, groups


@pytest.fixture
def chunks(people):
    X, groups = people
    bounds = [0, 700, 700, 1900, 3000]  # one of them has no rows
    return [(X[low:high], groups[low:high]) for low, high in itertools.pairwise(bounds)]


@pytest.fixture
def parquet(people, tmp_path, monkeypatch):
    monkeypatch.setattr("fairpca.moments.arrow._BATCH_NUMBERS", 900 * 6)
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    X, groups = people
    file = tmp_path / "people.parquet"
    columns = {f"x{j}": X[:, j] for j in range(6)} | {"sex": groups}
    parquet.write_table(pyarrow.table(columns), file, row_group_size=800)
    return ParquetChunks(file, "sex")


@pytest.fixture
def collection(people):
    dask_array = pytest.importorskip("dask.array")
    X, groups = people
    return dask_array.from_array(X, chunks=(800, 6)), dask_array.from_array(groups, chunks=800)


@pytest.mark.parametrize("enough_memory", [True, False])
def test_folds_of_chunks_merge_to_all_rows(people, chunks, enough_memory):
    """From cells that were kept, or by another pass over the rows: the same folds."""
    source, whole = ChunkSource(chunks), group_moments(people[0], sensitive_features=people[1])
    blocks = make_blocks(source, 4, None, 0)
    folds = blocks.fold_moments(source, blocks.moments(source) if enough_memory else None, 4, 0)
    np.testing.assert_allclose(folds.whole.scatters, whole.scatters)
    assert max(part.total_count for part in folds.parts) - min(part.total_count for part in folds.parts) <= 40
    merged = folds.training(0).merge(folds.parts[0])
    np.testing.assert_allclose(merged.scatters, whole.scatters)
    again = blocks.fold_moments(source, blocks.moments(source), 4, 0)
    np.testing.assert_allclose(again.parts[2].scatters, folds.parts[2].scatters, rtol=1e-9, atol=1e-9)


def test_cross_validation_of_chunks_files_and_dask(people, chunks, parquet, collection):
    X, groups = people
    memory = cross_validate_groups(FairPCA(2), X, sensitive_features=groups)
    results = [
        cross_validate_groups(FairPCA(2), chunks),
        cross_validate_groups(FairPCA(2), parquet),
        cross_validate_groups(FairPCA(2), collection[0], sensitive_features=collection[1]),
    ]
    for figures in results:
        assert figures.counts == {"f": 1000.0, "m": 2000.0}
        for label in "fm":
            # In the sample nothing depends on the folds, so the values are the same; else the folds differ.
            assert figures.loss.by_group[label].value == pytest.approx(memory.loss.by_group[label].value)
            exact, found = memory.error.by_group[label], figures.error.by_group[label]
            assert found.value == pytest.approx(exact.value, abs=(exact.high - exact.low) / 4)
            # Five divisions show how much a fit varies with four degrees of freedom only.
            assert found.high - found.low == pytest.approx(exact.high - exact.low, rel=0.4)


def test_permuting_blocks_of_chunks_files_and_dask(people, chunks, parquet, collection):
    X, groups = people
    memory = loss_test(X, sensitive_features=groups, n_components=2, n_permutations=199)
    results = [
        loss_test(chunks, n_components=2, n_permutations=199),
        loss_test(parquet, n_components=2, n_permutations=199),
        loss_test(collection[0], sensitive_features=collection[1], n_components=2, n_permutations=199),
    ]
    assert memory.rejected
    for test in results:
        assert test.unit == "blocks"
        assert test.rejected
        assert test.gap == pytest.approx(memory.gap)
        assert test.by_group["f"].loss == pytest.approx(memory.by_group["f"].loss)
        assert test.by_group["f"].expected == pytest.approx(memory.by_group["f"].expected, rel=0.35)


def test_blocks_of_random_labels_are_rarely_rejected(rng):
    X = rng.standard_t(5, size=(600, 5))
    rejected = []
    for i in range(60):
        groups = rng.permutation(np.repeat([0, 1], [150, 450]))
        chunks = [(X[:300], groups[:300]), (X[300:], groups[300:])]
        rejected.append(loss_test(chunks, n_components=2, n_permutations=39, random_state=i).rejected)
    assert np.mean(rejected) <= 0.15


def test_large_arrays_are_permuted_by_blocks(people, monkeypatch):
    from fairpca.inference import _movable

    X, groups = people
    monkeypatch.setattr(_movable, "MANY_NUMBERS", 1000)
    assert loss_test(X, sensitive_features=groups, n_components=2, n_permutations=19).unit == "blocks"


@pytest.mark.filterwarnings("ignore")
def test_large_arrays_are_permuted_by_rows_for_estimators_that_need_them(people, monkeypatch):
    X, groups = (column[:60] for column in people)
    monkeypatch.setattr("fairpca.inference._movable.MANY_NUMBERS", 100)
    test = loss_test(X, sensitive_features=groups, estimator=MMDFairPCA(1, max_iter=2), n_permutations=2)
    assert test.unit == "rows"


def test_large_arrays_of_many_features_are_permuted_by_rows(people, monkeypatch):
    """The moments of a hundred blocks would fill the memory."""
    X, groups = people[:2]
    plain = loss_test(X, sensitive_features=groups, n_components=[1, 2], n_permutations=30)
    monkeypatch.setattr("fairpca.inference._movable.MANY_NUMBERS", 1000)
    monkeypatch.setattr("fairpca.inference._movable._BLOCK_BYTES", 100 * X.shape[1] ** 2 * 8 - 1)
    monkeypatch.setattr("fairpca.linalg._BATCH_SIZE", 1)  # large matrices, one division after the other
    test = loss_test(X, sensitive_features=groups, n_components=[1, 2], n_permutations=30)
    assert test.unit == "rows"
    for d in (1, 2):
        assert (test[d].p_value, test[d].level) == pytest.approx((plain[d].p_value, plain[d].level))


def test_weighted_chunks(people, rng):
    X, groups = people
    weights = rng.integers(0, 3, 3000).astype(float)
    chunks = [(X[part], groups[part], weights[part]) for part in np.array_split(np.arange(3000), 3)]
    figures = cross_validate_groups(PCA(2), chunks)
    memory = cross_validate_groups(PCA(2), X, sensitive_features=groups, sample_weight=weights)
    assert figures.counts == memory.counts
    assert figures.weights == memory.weights
    assert figures.loss.by_group["f"].value == pytest.approx(memory.loss.by_group["f"].value)
    exact, found = memory.error.by_group["f"], figures.error.by_group["f"]
    assert found.high - found.low == pytest.approx(exact.high - exact.low, rel=0.4)


def test_what_chunks_cannot_do_is_said(people, chunks):
    with pytest.raises(TypeError, match="can be read only once"):
        cross_validate_groups(FairPCA(2), iter(chunks))
    with pytest.raises(ValueError, match="needs rows in memory"):
        cross_validate_groups(MMDFairPCA(2), chunks)
    with pytest.raises(ValueError, match="clusters are supported for rows in memory only"):
        cross_validate_groups(FairPCA(2), chunks, clusters=np.arange(3000))
    with pytest.raises(ValueError, match=r"\(X, sensitive_features\)"):
        cross_validate_groups(FairPCA(2), [*chunks, (people[0],)])
    with pytest.raises(ValueError, match="needs rows in memory"):
        loss_test(chunks, estimator=MMDFairPCA(1), n_permutations=3)
    with pytest.raises(ValueError, match="single group"):
        loss_test([(people[0], np.zeros(3000, int))], n_components=2)


def test_thousands_of_features_are_refused_with_a_way_out(rng):
    with pytest.raises(ValueError, match="fit_transform"):
        cross_validate_groups(PCA(2), rng.normal(size=(20, 3001)), sensitive_features=np.arange(20) % 2)


def test_a_group_of_rows_without_weight_is_not_there(chunks):
    weighted = [(rows, np.where(groups == "f", groups, "absent"), (groups == "f") * 1.0) for rows, groups in chunks]
    found = cross_validate_groups(PCA(2), [*chunks, *weighted])
    assert list(found.error.by_group) == ["f", "m"]
    assert set(loss_test([*chunks, *weighted], n_components=2, n_permutations=19).by_group) == {"f", "m"}
