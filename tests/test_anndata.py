"""``fairpca.anndata``: the same as the estimator on the matrix, where scanpy looks for it (``make test-anndata``)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fairpca import AnchorPCA, FairPCA, LeacePCA
from fairpca.anndata import pca

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
]
anndata = pytest.importorskip("anndata", reason="needs anndata: make test-anndata")
pandas = pytest.importorskip("pandas")

OPTIONS = {"n_comps": 4, "criterion": "mean", "center": "group"}


@pytest.fixture
def cells(rng):
    counts = rng.poisson(np.exp(rng.normal(size=(300, 3)) @ rng.normal(size=(3, 25)) * 0.5))
    X = np.log1p(counts).astype(np.float32)
    obs = pandas.DataFrame(
        {"batch": pandas.Categorical(np.repeat(["a", "b", "c"], [200, 60, 40])), "sex": rng.choice(["f", "m"], 300)},
        index=[f"cell{i}" for i in range(300)],
    )
    var = pandas.DataFrame({"some": np.arange(25) % 3 > 0}, index=[f"gene{i}" for i in range(25)])
    return anndata.AnnData(X, obs=obs, var=var)


def in_form(adata, form, folder):
    dask = pytest.importorskip("dask.array") if form.startswith("dask") else None
    if "csr" in form:
        adata.X = sparse.csr_matrix(adata.X)
    if dask is not None:
        adata.X = dask.from_array(adata.X, chunks=(70, 25))
    if form.startswith("backed"):
        adata.write_h5ad(folder / "cells.h5ad")
        adata = anndata.read_h5ad(folder / "cells.h5ad", backed="r")
    return adata


@pytest.mark.parametrize("form", ["dense", "csr", "dask", "dask csr", "backed", "backed csr"])
@pytest.mark.parametrize("mask_var", [None, "some"])
def test_the_same_as_the_estimator_on_the_matrix(cells, form, mask_var, tmp_path, monkeypatch):
    monkeypatch.setattr("fairpca.anndata._BLOCK_NUMBERS", 25 * 70)  # several blocks
    X, groups = np.array(cells.X), np.array(cells.obs["batch"])
    mask = np.ones(25, bool) if mask_var is None else np.array(cells.var["some"])
    expected = FairPCA(4, criterion="mean", center="group").fit(X[:, mask], sensitive_features=groups)
    adata = in_form(cells, form, tmp_path)
    found = pca(adata, "batch", mask_var=mask_var, **OPTIONS)
    scores = expected.transform(X[:, mask])
    np.testing.assert_allclose(adata.obsm["X_pca"], scores, atol=2e-5)
    assert adata.obsm["X_pca"].dtype == np.float32
    np.testing.assert_allclose(adata.varm["PCs"][mask], expected.components_.T, atol=1e-6)
    assert not adata.varm["PCs"][~mask].any()
    np.testing.assert_allclose(adata.uns["pca"]["variance"], expected.explained_variance_, rtol=1e-5)
    np.testing.assert_allclose(adata.uns["pca"]["variance_ratio"], expected.explained_variance_ratio_, rtol=1e-5)
    np.testing.assert_allclose(adata.uns["pca"]["groups"]["loss"], expected.group_losses_, atol=1e-5)
    assert list(adata.uns["pca"]["groups"]["label"]) == ["a", "b", "c"]
    assert adata.uns["pca"]["params"]["mask_var"] == mask_var
    assert found.get_params() == expected.set_params(n_components=4).get_params()


def test_highly_variable_genes_are_used_if_they_are_known(cells):
    cells.var["highly_variable"] = cells.var["some"]
    pca(cells, "batch", **OPTIONS)
    assert not cells.varm["PCs"][~cells.var["some"].to_numpy()].any()
    assert cells.uns["pca"]["params"]["use_highly_variable"]
    pca(cells, "batch", mask_var=np.ones(25, bool), **OPTIONS)
    assert cells.varm["PCs"].all()


def test_layers_keys_methods_and_several_columns(cells):
    cells.layers["double"] = 2 * cells.X
    found = pca(cells, ["batch", "sex"], n_comps=3, method="AnchorPCA", layer="double", key_added="anchor")
    assert isinstance(found, AnchorPCA)
    assert len(found.groups_) == 6
    assert {"anchor"} == set(cells.obsm) == set(cells.varm) == set(cells.uns)
    leace = pca(cells, "sex", n_comps=3, method="LeacePCA")
    assert isinstance(leace, LeacePCA)
    X = np.asarray(cells.X, dtype=float)
    np.testing.assert_allclose((X - X.mean(axis=0)) @ cells.varm["PCs"], cells.obsm["X_pca"], atol=1e-5)


def test_a_file_holds_everything(cells, tmp_path):
    pca(cells, ["batch", "sex"], **OPTIONS)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(again.obsm["X_pca"], cells.obsm["X_pca"])
    np.testing.assert_array_equal(again.uns["pca"]["groups"]["error"], cells.uns["pca"]["groups"]["error"])
    assert "FairPCA(center='group'" in again.uns["pca"]["params"]["estimator"]


def test_scanpy_works_on_the_result(cells):
    scanpy = pytest.importorskip("scanpy", reason="needs scanpy: make test-anndata")
    pytest.importorskip("matplotlib").use("Agg")
    pca(cells, "batch", **OPTIONS)
    scanpy.pp.neighbors(cells, n_neighbors=5)
    assert cells.obsp["connectivities"].shape == (300, 300)
    scanpy.pl.pca(cells, color="batch", show=False)
    scanpy.pl.pca_variance_ratio(cells, n_pcs=4, show=False)
    scanpy.pl.pca_loadings(cells, components="1,2", show=False)
    reference = cells.copy()
    scanpy.pp.pca(reference, n_comps=4, mask_var=None)
    assert reference.obsm["X_pca"].shape == cells.obsm["X_pca"].shape
    assert set(reference.uns["pca"]) <= set(cells.uns["pca"])
    assert set(reference.uns["pca"]["params"]) <= set(cells.uns["pca"]["params"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"groupby": "donor"}, "groupby: 'donor' is not a column of adata.obs; choose from"),
        ({"mask_var": "gene"}, "mask_var='gene' is not a column of adata.var"),
        ({"mask_var": np.ones(3, bool)}, "one True or False for each of the 25 variables"),
        ({"n_comps": 26}, "n_comps=26 is more than the number of variables used, 25"),
        ({"method": "KernelParityPCA"}, "method='KernelParityPCA' is unknown; choose one of 'AnchorPCA', 'FairPCA'"),
    ],
)
def test_errors_name_the_argument(cells, arguments, message):
    with pytest.raises(ValueError, match=message):
        pca(cells, **({"groupby": "batch", "n_comps": 2} | arguments))


def test_a_file_needs_a_method_of_moments(cells, tmp_path):
    with pytest.raises(ValueError, match=r"MMDFairPCA .* needs the rows in memory.*adata.to_memory\(\)"):
        pca(in_form(cells, "backed", tmp_path), "batch", method="MMDFairPCA", n_comps=2)


def test_an_estimator_points_to_the_function(cells):
    with pytest.raises(TypeError, match=r"use fairpca.anndata.pca\(adata, groupby=...\)"):
        FairPCA(2).fit(cells, sensitive_features="batch")
    with pytest.raises(TypeError, match="X is an AnnData"):
        FairPCA(2).fit(cells.X, sensitive_features=cells.obs["batch"]).transform(cells)
