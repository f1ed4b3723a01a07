"""The verdict states what the claims state, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairpca.audit.command._tables import details_text
from fairpca.audit.report._data import report_data
from fairpca.audit.report._verdict import verdict
from fairpca.audit.report.audit import Audit
from fairpca.inference import Claim
from fairpca.metrics import Estimate, GroupValues
from fairpca.model_selection import compare

OPTIONS = {"n_components": [1, 2], "methods": ["PCA", "FairPCA"], "n_permutations": 99, "progress": False}


def found(X, groups, **options):
    return compare(X, sensitive_features=groups, **OPTIONS | options)


def turned():
    """600 rows of which one group has its variances in reverse order."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 6)) * [3, 2.5, 2, 1, 0.7, 0.5]
    X[:300] = X[:300, ::-1]
    return X, np.repeat(["few", "many"], [300, 600])


@pytest.fixture(scope="module")
def different():
    return found(*turned())


def test_a_difference_is_named_with_its_joint_interval_and_what_remedies_it(different):
    said = verdict(different)
    claim = different.of_kind("losses", "PCA", said.n_components)[0]
    assert said.finding.endswith(f"loses more of “{claim.groups[0]}” than of “{claim.groups[1]}”.")
    _, number, meaning = said.numbers[0]
    assert number == f"{claim.value:.1f} ({claim.low:.1f} to {claim.high:.1f})"
    assert meaning == f"“{claim.groups[0]}” more than “{claim.groups[1]}”"
    assert said.remedy.startswith("With FairPCA no difference of losses is shown. It lowers the error of “few”")
    assert "use FairPCA" in said.advice
    assert [row[0] for row in said.rows] == ["few", "many", "all rows"]
    before, after = (different[method, said.n_components].error.overall for method in ("PCA", "FairPCA"))
    assert float(said.rows[-1][-1]) == pytest.approx(after - before, rel=0.01)  # shown with three digits
    assert said.numbers[-1][-1] == f"of all rows {said.rows[-1][-1]}"
    # No other number of components has a difference that is larger for certain.
    assert claim.low == max(one.low for one in different.of_kind("losses", "PCA"))


def test_each_number_of_components_has_a_verdict_from_its_own_claims(different):
    for d in different.dimensions:
        said = verdict(different, d)
        assert said.n_components == d
        assert ("loses more" in said.finding) == bool(different.of_kind("losses", "PCA", d))


@pytest.mark.parametrize(
    ("pair", "interval", "words"),
    [
        (("few", "many"), (0.1, 0.2), "FairPCA narrows that difference: it lowers"),
        (("few", "many"), (-0.1, 0.2), "FairPCA narrows that difference: it lowers"),
        (("few", "many"), (90.0, 99.0), "FairPCA widens that difference: it lowers"),
        (("many", "few"), (0.1, 0.2), "FairPCA reverses that difference: it lowers"),
        (("many", "few"), (-99.0, 99.2), "FairPCA is not shown to change that difference: it lowers"),
    ],
)
def test_what_a_method_does_to_the_difference_is_said_from_intervals(different, pair, interval, words):
    """As far as its interval, which holds together with that of ordinary PCA, shows it."""
    low, high = interval
    middle = Estimate((low + high) / 2, joint_low=low, joint_high=high)
    losses = GroupValues({pair[0]: middle, pair[1]: 0.0}, 0.0, {pair: middle})
    results = [
        replace(one, new_rows=replace(one.new_rows, corrected_loss=losses)) if one.method == "FairPCA" else one
        for one in different.results
    ]
    claims = [one for one in different.claims if (one.kind, one.method) != ("losses", "FairPCA")]
    if low > 0:
        claims.append(Claim("losses", "FairPCA", 2, pair, float(middle), low, high, "a difference"))
    said = verdict(replace(different, results=results, claims=tuple(claims)), 2).remedy
    nothing = "With FairPCA no difference of losses is shown. It lowers"
    assert said.startswith(nothing if interval == (-0.1, 0.2) else words)


def test_random_groups_are_not_said_to_differ():
    rng = np.random.default_rng(2)
    said = verdict(found(rng.normal(size=(400, 5)), np.repeat(["a", "b"], 200)))
    assert said.finding.endswith("no difference between the groups is shown on new rows.")
    assert said.doubt.startswith("Random groups of these sizes could")
    assert said.remedy == "FairPCA is not shown to change the error of any group."
    assert said.advice.startswith("No reason to leave ordinary PCA is shown")
    assert [row[2] for row in said.numbers[:2]] == ["none is shown"] * 2


def test_random_groups_get_no_claim():
    rng = np.random.default_rng(1)
    claims = []
    for seed in range(20):
        X = rng.normal(size=(150, 5)) * [2.0, 1.5, 1.0, 1.0, 0.5]
        groups = rng.permutation(np.repeat([0, 1], [50, 100]))
        said = verdict(found(X, groups, n_components=2, methods=["PCA"], n_permutations=39, random_state=seed))
        claims.append(["In these rows losses differ more" in said.doubt, "loses more" in said.finding])
    assert np.sum(claims, axis=0).max() <= 4  # one of twenty expected


def test_of_many_groups_those_that_change_most_are_shown_and_the_rest_counted():
    rng = np.random.default_rng(3)
    comparison = found(rng.normal(size=(900, 5)), np.arange(900) % 9, n_components=2)
    *shown, more, together = [row[0] for row in verdict(comparison).rows]
    assert more == f"({9 - len(shown)} more)"
    assert together == "all rows"
    changes = comparison["FairPCA", 2].change.by_group
    assert min(abs(changes[int(one)]) for one in shown) >= max(
        abs(change) for one, change in changes.items() if str(one) not in shown
    )


def test_a_method_that_keeps_nothing_is_not_advised():
    """The group is in the only directions that vary, so parity leaves directions that hold nothing."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 4)) * [1.0, 1.0, 1e-3, 1e-3]
    groups = np.repeat(["a", "b"], 200)
    X[:200, :2] += rng.normal(size=(200, 2)) * 3.0
    X[:200, 0] += 4.0
    comparison = found(X, groups, n_components=1, methods=["PCA", "ParityPCA"])
    emptied = replace(comparison["ParityPCA", 1], explained_variance=1e-6)
    said = verdict(replace(comparison, results=[comparison["PCA", 1], emptied]))
    assert comparison.of_kind("readable", "PCA", 1)
    assert "ParityPCA" not in said.readable
    assert "consider ParityPCA" not in said.advice


def test_nothing_is_claimed_of_repeated_rows_and_of_components_that_keep_everything():
    rng = np.random.default_rng(4)
    X, groups = rng.normal(size=(200, 3)), np.arange(200) % 2
    unknown = found(X, groups, repeated_rows=True)
    assert verdict(unknown).finding.startswith("Nothing is claimed: rows repeat persons")
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
    page = report_data(Audit(compared, {}, list("uvwxyz"), {}, np.zeros(0), "title"))
    assert remark in page["results"]["RobustFairPCA|1"]["notes"]
    assert "PCA with 6 components keeps everything, so nothing is compared." in details
