"""Published differences: the two questions, their words, and what is withheld where rows are not independent."""

from __future__ import annotations

import numpy as np
import pytest

from reproductions import Outcome
from reproductions._differences import CENTERS, Rows, count_steps, difference_tables, judge, sentences
from reproductions._steps import Steps

WHY = "rows repeat persons"


def rows_of(*, real: bool, repeats: str = "", n=(300, 150), p=5) -> Rows:
    """Groups whose leading directions are opposite, or the same rows with labels at random."""
    rng = np.random.default_rng(2)
    groups = np.repeat(["a", "b"], n)
    X = rng.normal(size=(sum(n), p)) * np.linspace(2.0, 0.5, p)
    X[groups == "b"] = X[groups == "b"][:, ::-1]
    return Rows("table", X, groups if real else rng.permutation(groups), repeats=repeats)


def judged(rows: Rows, dimensions=(2,), steps=None):
    return judge(rows, "Table 1", "b is worse", dimensions, 99, steps or Steps(lambda *news: None, 9))


def test_a_real_difference_is_told_from_random_groups():
    for one in judged(rows_of(real=True)):
        assert one.in_sample.startswith("b above a by ")
        assert one.by_chance == "would not show this (p <= 0.01)"
        assert one.losses_on_new_rows.startswith("the losses differ: b above a by ")
        assert one.new_rows.corrected_loss.gap.joint_low > 0
    for one in judged(rows_of(real=False)):
        assert one.by_chance.startswith("could show this as well (p = ")
        assert one.losses_on_new_rows.startswith("no difference of losses is shown: ")


def test_rows_that_are_not_independent_get_no_verdict_that_rests_on_it():
    differences = judged(rows_of(real=True, repeats=WHY))
    for one in differences:
        assert one.by_chance == f"not judged: {WHY}"
        assert one.losses_on_new_rows.startswith(f"not judged: {WHY}; b above a by ")
        assert "(" not in one.losses_on_new_rows  # no interval either
    verdicts, by_group = difference_tables(differences)
    assert not any("p <=" in str(cell) or "p =" in str(cell) for row in verdicts.rows for cell in row)
    lines = [dict(zip(by_group.columns, row, strict=True)) for row in by_group.rows]
    assert {line["adjusted p"] for line in lines} == {""}
    assert {line["corrected loss, low"] for line in lines} == {""}
    assert all(line["corrected loss"] != "" for line in lines)
    # What even independent rows would not establish is not established.
    for one in judged(rows_of(real=False, repeats=WHY)):
        assert one.by_chance.startswith("could show this as well (p = ")
        assert "even if all rows were independent" in one.by_chance
        assert "even if all rows were independent" in one.losses_on_new_rows


def test_means_are_left_out_or_not():
    """Groups that differ in their means only: about the common mean these are a difference, about their own none."""
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b"], [400, 100])
    X = rng.normal(size=(500, 4)) * [2.0, 1.5, 1.0, 0.5]
    X[groups == "b", 3] += 4.0
    rows = Rows("table", X, groups)
    own = rows.about("own means")
    for label in "ab":
        np.testing.assert_allclose(own[groups == label].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.cov(own[groups == "b"].T), np.cov(X[groups == "b"].T))
    verdicts = {one.center: one.by_chance for one in judged(rows, (1,))}
    assert verdicts["common mean"] == "would not show this (p <= 0.01)"
    assert verdicts["own means"].startswith("could show this as well")


def test_several_dimensions_share_their_level():
    together = judged(rows_of(real=True), (1, 2))
    alone = judged(rows_of(real=True), (2,))
    assert [(one.center, one.test.n_components) for one in together] == [(c, d) for c in CENTERS for d in (1, 2)]
    wide, narrow = together[1].new_rows.corrected_loss.gap, alone[0].new_rows.corrected_loss.gap
    assert wide.value == pytest.approx(narrow.value)
    assert wide.joint_low < narrow.joint_low


def test_steps_are_as_many_as_promised():
    news = []
    judged(rows_of(real=False), (1, 2), Steps(lambda *step: news.append(step), count_steps()))
    done = [step[0] for step in news]
    assert done == sorted(done)
    assert done[-1] == count_steps() - 1
    assert any("99 of 99 random divisions" in what for _, _, what in news)


def test_sentences_begin_with_a_summary_and_stay_out_of_the_claims(tmp_path):
    differences = judged(rows_of(real=True))
    outcome = Outcome("p", "t", [], difference_tables(differences), differences=sentences(differences))
    assert outcome.counts == {}
    summary = outcome.differences[0]
    assert "2 would not show this" in summary
    assert "2 the losses differ" in summary
    assert len(outcome.differences) == 3
    report = outcome.write(tmp_path).read_text(encoding="utf-8")
    assert "what of them holds" in report
    assert (tmp_path / "differences.csv").exists()
    assert sentences([]) == []
    assert difference_tables([]) == []
