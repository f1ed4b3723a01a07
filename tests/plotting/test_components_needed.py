"""The figure of components needed draws the curves and marks where every group keeps the share."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from fairpca import FairPCA
from fairpca.model_selection import components_needed
from fairpca.plotting import ComponentsNeededDisplay

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


def test_from_estimator_draws_on_given_axes_and_shows_new_rows(two_groups):
    X, groups = two_groups
    ax = pyplot.subplots()[1]
    estimators = {"PCA": PCA(), "relative": FairPCA(relative=True)}
    display = ComponentsNeededDisplay.from_estimator(
        estimators, X, sensitive_features=groups, share=0.7, n_components=4, cv=3, ax=ax
    )
    assert display.ax_ is ax
    assert display.new_rows
    assert np.array_equal(display.lines_[0].get_ydata(), display.result.new_rows.kept["PCA"][:, 0])
    assert display.plot().ax_ is not ax
    single = ComponentsNeededDisplay.from_estimator(FairPCA(), X, sensitive_features=groups, share=0.5)
    assert single.methods == ("FairPCA",)


def test_errors(two_groups):
    X, groups = two_groups
    found = components_needed(X, sensitive_features=groups, share=0.7)
    with pytest.raises(ValueError, match="methods='ParityPCA' is unknown"):
        ComponentsNeededDisplay.from_result(found, methods=["ParityPCA"])
    with pytest.raises(ValueError, match="pass cv=10"):
        ComponentsNeededDisplay.from_result(found, new_rows=True)
