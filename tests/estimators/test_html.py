"""What a notebook shows of a fitted estimator."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn import config_context

from fairpca import FairPCA, KernelParityPCA, MMDFairPCA, ParityPCA, RobustFairPCA
from fairpca.estimators._html import certificate, fitted_html

ESTIMATORS = [
    FairPCA(2),
    RobustFairPCA(2),
    ParityPCA(2),
    MMDFairPCA(1, tolerance=0.5, bandwidth=1.0),
    KernelParityPCA(2),
]


class Reader(HTMLParser):
    """Tags that are opened, and the text of each cell."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.cells = [], [], []
        self.feed(text)
        assert not self.open, "every tag is closed"

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] in ("td", "th"):
            self.cells.append(data)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_groups_and_certificate_follow_the_diagram(estimator, two_groups):
    X, groups = two_groups
    diagram = estimator._repr_mimebundle_()["text/html"]
    assert "fairpca-fit" not in diagram
    estimator.fit(X, sensitive_features=groups)
    for shown in (estimator._repr_mimebundle_()["text/html"], estimator._repr_html_()):
        assert shown.endswith(fitted_html(estimator))
        assert "sk-container" in shown
    cells = Reader(fitted_html(estimator)).cells
    assert cells[:2] == ["group", "rows"]
    assert [cell for cell in cells if cell in ("a", "b")] == ["a", "b"]
    for name in ("group_errors_", "group_losses_"):
        for value in getattr(estimator, name, ()):
            assert f"{value:,.6g}" in cells
    with config_context(display="text"):
        assert "text/html" not in estimator._repr_mimebundle_()
        assert not hasattr(estimator, "_repr_html_")


def test_the_certificate_tells_the_gap_or_that_there_is_none(two_groups):
    X, groups = two_groups
    pca = FairPCA(2).fit(X, sensitive_features=groups)
    pca.duality_gap_ = 0.125
    assert certificate(pca).endswith("no projection has an objective that is lower by more than 0.12.")
    pca.duality_gap_, pca.converged_ = np.inf, False
    assert certificate(pca).endswith("optimality is not certified. The search did not converge.")
    assert certificate(KernelParityPCA(2).fit(X, sensitive_features=groups)) == ""


def test_no_label_can_add_markup(two_groups):
    X, groups = two_groups
    hostile = np.where(groups == "a", "</td><script>alert(1)</script>", "\"'&<img src=x onerror=alert(1)>")
    text = fitted_html(FairPCA(2).fit(X, sensitive_features=hostile))
    reader = Reader(text)
    assert set(reader.tags) == {"div", "table", "tr", "th", "td"}
    assert "</td><script>alert(1)</script>" in reader.cells


def test_many_groups_are_cut(two_groups):
    X, _ = two_groups
    shown = [fitted_html(FairPCA(1, criterion="mean").fit(X, sensitive_features=np.arange(300) % k)) for k in (12, 30)]
    assert "more groups" not in shown[0]
    assert "and 18 more groups" in shown[1]
