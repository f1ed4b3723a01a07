"""A group is called the same everywhere: in tables, sentences, JSON, charts, the page, warnings and errors."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from sklearn.decomposition import PCA

from fairpca import FairPCA
from fairpca._labels import label_text, label_texts
from fairpca.audit import audit
from fairpca.inference import cross_validate_groups, loss_test
from fairpca.metrics import readability
from fairpca.model_selection import compare
from fairpca.plotting import ProjectionDisplay

#: How Python writes a tuple of texts: nothing that a reader sees.
TUPLE = re.compile(r"\('|\(np\.str_")


@pytest.fixture(scope="module")
def combinations():
    rng = np.random.default_rng(3)
    groups = np.column_stack([rng.choice(["female", "male"], 240), rng.choice(["hi", "lo"], 240)])
    return rng.normal(size=(240, 5)) * np.where(groups[:, :1] == "male", 1.0, np.arange(1.0, 6.0)), groups


def test_labels_of_several_columns_in_every_table(combinations):
    X, groups = combinations
    options = {"sensitive_features": groups, "n_components": 2}
    comparison = compare(X, sensitive_features=groups, n_components=2, methods=["PCA"], n_permutations=19)
    shown = {
        "chance": repr(loss_test(X, n_permutations=0, **options)),
        "test": repr(loss_test(X, n_permutations=19, **options)),
        "folds": repr(cross_validate_groups(FairPCA(2), X, sensitive_features=groups)),
        "readability": repr(readability(X, sensitive_features=groups)),
        "comparison": repr(comparison),
        "notebook": comparison._repr_html_(),
        "json": json.dumps(comparison.as_dict()),
        "page": audit(X, sensitive_features=groups, n_components=2, methods=["PCA"], n_permutations=19).html(),
    }
    for where, text in shown.items():
        assert "female, hi" in text or "male, hi" in text, where
        assert not TUPLE.search(text), where


def test_labels_of_several_columns_in_charts(combinations):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X, groups = combinations
    display = ProjectionDisplay.from_estimator(PCA(2).fit(X), X, sensitive_features=groups)
    texts = [text.get_text() for text in display.figure_.findobj(matplotlib.text.Text)]
    assert any("female, hi" in text for text in texts)
    assert not any(TUPLE.search(text) for text in texts)
    matplotlib.pyplot.close("all")


def test_labels_of_several_columns_in_warnings_and_errors(combinations):
    X, groups = combinations
    few = np.array(groups, dtype=object)
    few[:2] = ["other", "hi"]
    with pytest.warns(UserWarning, match=r"smaller than n_components=3: 'other, hi' \(2\)"):
        FairPCA(3).fit(X, sensitive_features=few)
    X = np.where((few[:, :1] == "other"), 0.0, X)
    with (
        pytest.warns(UserWarning, match="smaller than n_components"),
        pytest.raises(ValueError, match="the rows of 'other, hi' have none"),
    ):
        FairPCA(3, criterion="nash", center="group").fit(X, sensitive_features=few)
    with pytest.raises(ValueError, match="Group 'other, hi' has 2 rows"):
        cross_validate_groups(PCA(2), X, sensitive_features=few)


def test_texts_of_different_labels_differ():
    labels = [1, "1", ("a, b", "c"), ("a", "b, c"), ("a", "b", "c")]
    assert len(set(label_texts(labels))) == len(labels)
    assert label_text(np.str_("x")) == "x"
