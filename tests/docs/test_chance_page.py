"""What docs/chance.md shows of German credit is what the code gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairpca import FairPCA
from fairpca._display import number, with_interval
from fairpca.datasets import load_german_credit
from fairpca.inference import cross_validate_groups, loss_test
from fairpca.model_selection import compare

ROOT = Path(__file__).parents[2]
DIMENSIONS = [1, 2, 3, 5, 10]  # as in `fairpca demo`


def page(*parts: str) -> str:
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


def in_sentence(estimate) -> str:
    """A value with its joint interval, in one pair of brackets."""
    one = estimate.joint
    return f"({number(one)}, {number(one.low)} to {number(one.high)})"


@pytest.fixture(scope="module")
def found():
    X, sex = load_german_credit(return_X_s=True)
    return compare(X, sensitive_features=sex, n_components=DIMENSIONS, methods=["PCA", "FairPCA"], progress=False)


def test_the_sentences_are_true(found):
    text = " ".join(page("docs", "chance.md").split())
    ordinary, balanced = found["PCA", 5], found["FairPCA", 5]
    women, men = balanced.change["female"], balanced.change["male"]
    for estimate in (ordinary.corrected_loss.gap, ordinary.error.gap, women):
        assert in_sentence(estimate) in text
        assert not estimate.excludes_zero
    assert with_interval(men.joint) in text
    assert [claim.groups for claim in found.of_kind("change", "FairPCA", 5)] == [("male",)]
    assert found.of_kind("losses") == found.of_kind("errors") == []
    assert found.test[5].rejected


def test_the_outputs_of_the_page_on_chance_are_true():
    X, sex = load_german_credit(return_X_s=True)
    text = page("docs", "chance.md")
    assert repr(loss_test(X, sensitive_features=sex, n_components=DIMENSIONS, random_state=0)) in text
    found = cross_validate_groups(FairPCA(5), X, sensitive_features=sex, random_state=0)
    assert repr(found) in text
    assert with_interval(found.change["male"].joint) in text
