"""The figure of components needed draws the curves and marks where every group keeps the share."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from fairpca import FairPCA
from fairpca.model_selection import components_needed
from fairpca.plotting import ComponentsNeededDisplay, ParallelAnalysisDisplay

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _no_windows():
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")


def test_curves_and_marks(two_groups):
    X, groups = two_groups
    found = components_needed(X, sensitive_features=groups, share=0.7)
    display = ComponentsNeededDisplay.from_result(found)
    labels = [line.get_label() for line in display.lines_]
    assert labels == [
        "a, PCA", "b, PCA", "a, FairPCA", "b, FairPCA",
        f"PCA: {found.needed['PCA']} components", f"FairPCA: {found.needed['FairPCA']} components",
    ]  # fmt: skip
    assert np.array_equal(display.lines_[2].get_ydata(), found.kept["FairPCA"][:, 0])
    assert display.lines_[5].get_xdata()[0] == found.needed["FairPCA"]
    assert "in the sample" in display.ax_.get_title()
    assert display.figure_ is display.ax_.figure


def test_it_draws_on_given_axes_and_shows_new_rows(two_groups):
    X, groups = two_groups
    ax = pyplot.subplots()[1]
    estimators = {"PCA": PCA(), "relative": FairPCA(relative=True)}
    given = {"sensitive_features": groups, "share": 0.7, "methods": estimators}
    found = components_needed(X, **given, n_components=4, cv=3)
    display = ComponentsNeededDisplay.from_result(found, new_rows=True, ax=ax)
    assert display.ax_ is ax
    assert display.new_rows
    assert np.array_equal(display.lines_[0].get_ydata(), display.result.new_rows.kept["PCA"][:, 0])
    assert display.plot().ax_ is not ax
    assert ComponentsNeededDisplay.from_result(found, methods=["relative"]).methods == ("relative",)


def test_parallel_analysis_draws_variances_and_levels(two_groups):
    X, groups = two_groups
    found = components_needed(X, sensitive_features=groups, method="parallel")
    display = ParallelAnalysisDisplay.from_result(found)
    assert len(display.lines_) == 6
    assert np.array_equal(display.lines_[1].get_ydata(), found.variances[:, 1])
    assert np.array_equal(display.lines_[5].get_ydata(), found.levels[:, 2])
    assert display.lines_[0].get_label() == f"all rows, in the sample: {found.needed} components"


def test_errors(two_groups):
    X, groups = two_groups
    found = components_needed(X, sensitive_features=groups, share=0.7)
    with pytest.raises(ValueError, match="methods='ParityPCA' is unknown"):
        ComponentsNeededDisplay.from_result(found, methods=["ParityPCA"])
    with pytest.raises(ValueError, match="pass cv=10"):
        ComponentsNeededDisplay.from_result(found, new_rows=True)
