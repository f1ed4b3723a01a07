"""The first table of the README, and the output shown in docs/chance.md, are what the code gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from sklearn.decomposition import PCA

from fairpca import FairPCA
from fairpca.datasets import load_german_credit
from fairpca.inference import cross_validate_groups, loss_test
from fairpca.inference._display import number, p_text, with_interval

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def values():
    X, sex = load_german_credit(return_X_s=True)
    test = loss_test(X, sensitive_features=sex, n_components=5, random_state=0)
    figures = [
        cross_validate_groups(estimator, X, sensitive_features=sex, random_state=0)
        for estimator in (PCA(5), FairPCA(5))
    ]
    return test, *figures


def test_the_table_is_true(values):
    test, ordinary, balanced = values
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    names = {"female": "women", "male": "men"}
    for figures, method in ((ordinary, "ordinary PCA"), (balanced, "`FairPCA`")):
        for label, name in names.items():
            cells = [f"{name}, {method}", f"{figures.counts[label]:.0f}", with_interval(figures.error.by_group[label])]
            cells.append(number(figures.loss.by_group[label].value))
            p_value = p_text(test.by_group[label].p_value, test.n_permutations).removeprefix("= ")
            chance = (number(test.by_group[label].expected), p_value) if figures is ordinary else ("", "")
            cells += [chance[0], with_interval(figures.corrected_loss.by_group[label]), chance[1]]
            line = "| " + " | ".join(cells) + " |"
            assert line.replace("|  |", "| |") in text, line
    assert f"differ by {with_interval(ordinary.corrected_loss.gap)}" in text.replace("\n", " ")
    assert ordinary.claimed
    changes = balanced.change.by_group
    women = changes["female"]
    assert f"({number(women.value)}, {number(women.low)} to {number(women.high)})" in text.replace("\n", " ")
    assert women.low < 0 < women.high
    assert f"error of men rises by {with_interval(changes['male'])}" in text.replace("\n", " ")
    assert not ordinary.error.gap_excludes_zero


def test_the_outputs_of_the_page_on_chance_are_true(values):
    text = (ROOT / "docs" / "chance.md").read_text(encoding="utf-8")
    for result in values[:2]:
        assert repr(result) in text
