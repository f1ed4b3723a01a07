"""How many components every group needs, in the sample and on new rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from fairpca import FairPCA, LeacePCA, ParityPCA
from fairpca._validation import seed_from
from fairpca.inference._checks import as_source
from fairpca.inference._study import Study
from fairpca.metrics import explained_variance_ratio
from fairpca.model_selection import components_needed
from fairpca.moments import group_moments


@pytest.fixture
def found(two_groups):
    X, groups = two_groups
    return components_needed(X, sensitive_features=groups, share=0.7)


@pytest.mark.parametrize("center", ["pooled", "group"])
def test_curves_are_the_shares_that_fits_keep(two_groups, center):
    X, groups = two_groups
    methods = {"PCA": PCA(), "FairPCA": FairPCA(center=center)}
    found = components_needed(X, sensitive_features=groups, share=0.7, methods=methods, n_components=7, center=center)
    assert found.dimensions.tolist() == list(range(1, 8))
    for d in (1, 3, 7):
        for name, fitted in (
            ("PCA", PCA(d).fit(X)), ("FairPCA", FairPCA(d, center=center).fit(X, sensitive_features=groups)),
        ):  # fmt: skip
            kept = explained_variance_ratio(X, fitted, sensitive_features=groups, center=center)
            assert np.allclose(found.kept[name][d - 1], [kept["a"], kept["b"]])
        for g, label in enumerate("ab"):
            rows = X[groups == label] - (X if center == "pooled" else X[groups == label]).mean(axis=0)
            values = np.linalg.eigvalsh(rows.T @ rows)[::-1]
            assert np.isclose(found.own[d - 1, g], values[:d].sum() / values.sum())


def test_needed_is_what_a_share_as_n_components_takes(two_groups, found):
    X, groups = two_groups
    assert found.needed["FairPCA"] == FairPCA(0.7).fit(X, sensitive_features=groups).n_components_
    first = found.needed["FairPCA"] - 1
    assert found.kept["FairPCA"][first].min() >= 0.7 > found.kept["FairPCA"][first - 1].min()
    assert len(found.dimensions) == max(found.needed.values())
    assert found.new_rows is None


def test_no_method_keeps_more_than_own_components(found):
    for curve in found.kept.values():
        assert (curve <= found.own + 1e-12).all()
    assert max(found.needed_alone.values()) <= min(found.needed.values())


def test_relative_errors_need_the_fewest_components(two_groups):
    X, groups = two_groups
    for share in (0.4, 0.6, 0.8):
        needed = components_needed(
            X, sensitive_features=groups, share=share,
            methods={"PCA": PCA(), "loss": FairPCA(), "best": FairPCA(criterion="error", relative=True)},
        ).needed  # fmt: skip
        assert needed["best"] == min(needed.values())


def test_a_method_that_cannot_keep_the_share(two_groups):
    X, groups = two_groups
    found = components_needed(X, sensitive_features=groups, share=0.9, methods=["PCA", "ParityPCA", "LeacePCA"])
    for name, method in (("ParityPCA", ParityPCA), ("LeacePCA", LeacePCA)):
        assert found.needed[name] is None
        assert np.isnan(found.kept[name][6:]).all()
        kept = explained_variance_ratio(X, method(6).fit(X, sensitive_features=groups), sensitive_features=groups)
        assert np.allclose(found.kept[name][5], [kept["a"], kept["b"]])
    assert "-" in repr(found)


def test_on_new_rows_components_are_judged_by_rows_they_do_not_know(two_groups):
    """Recomputed with the same folds, fold by fold."""
    X, groups = two_groups
    found = components_needed(X, sensitive_features=groups, share=0.7, n_components=3, cv=4)
    fold = Study(as_source(X, groups, None), 4, None, seed_from(None)).fold_of_rows()
    for g, label in enumerate("ab"):
        captured, own, total = 0.0, 0.0, 0.0
        for number in range(4):
            train, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            pca = PCA(3).fit(X[train])
            rows = X[test][groups[test] == label] - pca.mean_
            mine = X[train][groups[train] == label] - pca.mean_
            captured += np.square(rows @ pca.components_.T).sum()
            own += np.square(rows @ np.linalg.svd(mine)[2][:3].T).sum()
            total += np.square(rows).sum()
        assert np.isclose(found.new_rows.kept["PCA"][2, g], captured / total)
        assert np.isclose(found.new_rows.own[2, g], own / total)


def test_noise_needs_more_components_on_new_rows(rng):
    X, groups = rng.normal(size=(60, 12)), np.repeat(["small", "large"], [15, 45])
    found = components_needed(X, sensitive_features=groups, share=0.6, cv=5)
    assert found.new_rows.needed["PCA"] > found.needed["PCA"]
    assert found.needed_alone["small"] < found.needed_alone["large"]  # by size alone: both groups are the same noise
    assert "new rows" in repr(found)


def test_moments_weights_and_frames(two_groups, rng):
    X, groups = two_groups
    weights = rng.integers(1, 4, 300)
    repeated = components_needed(np.repeat(X, weights, axis=0), sensitive_features=np.repeat(groups, weights))
    weighted = components_needed(X, sensitive_features=groups, sample_weight=weights)
    moments = components_needed(group_moments(X, sensitive_features=groups, sample_weight=weights))
    frame = weighted.to_frame()
    assert list(frame.columns) == ["method", "n_components", "group", "kept"]
    assert len(frame) == 3 * 2 * len(weighted.dimensions)
    for other in (repeated, moments):
        assert np.allclose(other.to_frame()["kept"], frame["kept"])
    assert weighted.counts.sum() == weights.sum()


def test_dask(two_groups):
    da = pytest.importorskip("dask.array")
    X, groups = two_groups
    lazy = components_needed(
        da.from_array(X, chunks=(100, 7)), sensitive_features=da.from_array(groups, chunks=100), share=0.7
    )
    assert np.allclose(lazy.kept["FairPCA"], components_needed(X, sensitive_features=groups, share=0.7).kept["FairPCA"])


def test_errors(two_groups):
    X, groups = two_groups
    for options, words in (
        ({"share": 1.0}, "share=1.0 must lie between 0 and 1"),
        ({"center": "median"}, "center='median' is unknown"),
        ({"methods": ["Nothing"]}, "'Nothing' is unknown"),
        ({"methods": ["MMDFairPCA"]}, "MMDFairPCA cannot be fitted to moments"),
        ({"n_components": 8}, "n_components=8 must lie between 1"),
    ):
        with pytest.raises(ValueError, match=words):
            components_needed(X, sensitive_features=groups, **options)
    with pytest.raises(ValueError, match="sensitive_features is required"):
        components_needed(X)
    with pytest.raises(ValueError, match="cv needs the rows"):
        components_needed(group_moments(X, sensitive_features=groups), cv=5)
