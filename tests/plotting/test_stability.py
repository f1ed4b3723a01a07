"""The figure of stability shows every angle with its interval."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca import FairPCA
from fairpca.inference import component_stability
from fairpca.plotting import ComponentStabilityDisplay

pyplot = pytest.importorskip("matplotlib.pyplot")


def test_angles_with_intervals(two_groups):
    pyplot.switch_backend("Agg")
    X, groups = two_groups
    ax = pyplot.subplots()[1]
    found = component_stability(FairPCA(2, criterion="mean"), X, sensitive_features=groups)
    display = ComponentStabilityDisplay.from_result(found, ax=ax)
    assert display.ax_ is ax
    assert np.allclose(display.bars_.lines[0].get_ydata(), [*found.components, found.subspace])
    lengths = [one[:, 1] for one in display.bars_.lines[2][0].get_segments()]
    assert np.allclose(lengths, [(one.low, one.high) for one in (*found.components, found.subspace)])
    assert len(display.dots_[0].get_ydata()) == found.without_block.size
    pyplot.close("all")
