"""The verdict states what the claims state, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from fairpca.audit.command._tables import details_text
from fairpca.audit.report._data import report_data
from fairpca.audit.report._verdict import verdict
from fairpca.audit.report._words import summary
from fairpca.audit.report.audit import Audit
from fairpca.model_selection import compare

OPTIONS = {"n_components": [1, 2], "methods": ["PCA", "FairPCA"], "n_permutations": 99, "progress": False}


def found(X, groups, **options):
    return compare(X, sensitive_features=groups, **OPTIONS | options)


@pytest.fixture(scope="module")
def different():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 6)) * [3, 2.5, 2, 1, 0.7, 0.5]
    groups = np.repeat(["few", "many"], [300, 600])
    X[:300] = X[:300, ::-1]
    return found(X, groups)


def test_a_difference_is_named_with_its_joint_interval_and_what_remedies_it(different):
    said = verdict(different)
    claim = different.of_kind("losses", "PCA", said.n_components)[0]
    assert said.finding.endswith(f"represents “{claim.groups[0]}” worse than “{claim.groups[1]}”.")
    assert f"{claim.value:.1f} ({claim.low:.1f} to {claim.high:.1f})" in said.detail
    assert said.remedy.startswith("FairPCA lowers the error of “few” by")
    assert "use FairPCA" in said.advice
    assert [row[0] for row in said.rows] == ["few", "many", "all rows"]
    # No other number of components has a difference that is larger for certain.
    assert claim.low == max(one.low for one in different.of_kind("losses", "PCA"))


def test_random_groups_are_not_said_to_differ():
    rng = np.random.default_rng(2)
    said = verdict(found(rng.normal(size=(400, 5)), np.repeat(["a", "b"], 200)))
    assert said.finding == "No difference between the groups is shown."
    assert said.remedy == "That FairPCA changes the error of any group is not shown."
    assert said.advice.startswith("No reason to leave ordinary PCA is shown")
    assert said.left == ""


def test_of_many_groups_those_that_change_most_are_shown_and_the_rest_counted():
    rng = np.random.default_rng(3)
    comparison = found(rng.normal(size=(900, 5)), np.arange(900) % 9, n_components=2)
    said = verdict(comparison)
    assert len(said.rows) == 6 + 1
    assert said.left_out.startswith("3 more groups")
    changes = comparison["FairPCA", 2].change.by_group
    shown = {row[0] for row in said.rows[:-1]}
    assert min(abs(changes[int(one)]) for one in shown) >= max(
        abs(change) for one, change in changes.items() if str(one) not in shown
    )


def test_nothing_is_claimed_of_repeated_rows_and_of_components_that_keep_everything():
    rng = np.random.default_rng(4)
    X, groups = rng.normal(size=(200, 3)), np.arange(200) % 2
    assert verdict(found(X, groups, repeated_rows=True)).finding.startswith("Nothing is claimed")
    assert "keeps everything" in verdict(found(X, groups, n_components=3)).finding
    assert verdict(found(X, groups, methods=["FairPCA"])) is None


def test_a_gap_that_is_widened_is_told_on_every_surface_and_rows_that_say_nothing_are_left_out():
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b"], 150)
    spread = np.where(groups[:, None] == "a", [2.0, 0.0, *[1.0] * 4], [0.0, 2.24, *[0.0] * 4])
    X = rng.normal(size=(300, 6)) * spread
    compared = found(X, groups, methods=["PCA", "RobustFairPCA"], n_components=[1, 6], n_permutations=19)
    remark = compared["RobustFairPCA", 1].gap_remark
    assert "the gap of losses" in remark
    details = " ".join(details_text(compared).split())
    assert remark in details
    assert any(remark in sentence for sentence in summary(compared, 1))
    page = report_data(Audit(compared, {}, list("uvwxyz"), {}, np.zeros(0), "title"))
    assert remark in page["results"]["RobustFairPCA|1"]["notes"]
    assert "PCA with 6 components keeps everything, so nothing is compared." in details
