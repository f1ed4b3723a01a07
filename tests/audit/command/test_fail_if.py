"""--fail-if: a kind of claim, perhaps of one method; met where the comparison makes such a claim."""

from __future__ import annotations

import argparse
import json

import numpy as np
import pytest

from fairpca.audit.command import main
from fairpca.audit.command._fail_if import KINDS, condition, conditions_met
from fairpca.model_selection import compare


@pytest.fixture(scope="module")
def comparison():
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b"], [200, 400])
    X = rng.normal(size=(600, 4)) * [3.0, 2.0, 1.0, 0.5]
    X[groups == "a"] = X[groups == "a"][:, ::-1]
    label = (X[:, 0] + rng.normal(size=600) > 0).astype(int)
    return compare(
        X,
        sensitive_features=groups,
        y=label,
        n_components=[1, 2],
        methods=["PCA", "FairPCA"],
        n_permutations=19,
        progress=False,
    )


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "loss_gap", "losses<1", "", "unknown", "losses:Other", "feature:PCA", "losses PCA", "Losses"],
)
def test_anything_else_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match=r"is not|do not depend"):
        condition(text)


def test_every_claim_meets_its_kind_and_nothing_else_does(comparison):
    made = {claim.kind for claim in comparison.claims}
    assert {"chance", "losses", "readable"} <= made
    for kind in KINDS:
        lines = conditions_met(comparison, [condition(kind)])
        assert len(lines) == len(comparison.of_kind(kind))
        assert bool(lines) == (kind in made)


def test_a_named_method_is_the_one_that_counts(comparison):
    lines = conditions_met(comparison, [condition("losses:pca")])
    assert lines
    assert all("under PCA" in line for line in lines)
    assert len(lines) < len(conditions_met(comparison, [condition("change"), condition("losses")]))
    assert not [line for line in conditions_met(comparison, [condition("change:FairPCA")]) if "under PCA" in line]


def run(folder, *options, rows=200, shuffled=False):
    rng, file = np.random.default_rng(0), folder / "data.csv"
    groups = np.repeat(["a", "b"], rows // 2)
    X = rng.normal(size=(rows, 3)) * np.where(groups == "a", 1.0, 3.0)[:, None] ** np.array([1, -1, 1])
    groups = rng.permutation(groups) if shuffled else groups
    lines = [",".join([*(f"{value:.6f}" for value in row), group]) for row, group in zip(X, groups, strict=True)]
    file.write_text("\n".join(["x,y,z,sex", *lines]) + "\n")
    values = folder / "values.json"
    code = main(
        ["audit", str(file), "--sensitive", "sex", "--components", "1", "--methods", "PCA", "--permutations", "19",
         "--out", str(folder / "report.html"), "--json", str(values), *options]
    )  # fmt: skip
    return code, json.loads(values.read_text()) if values.exists() else None


def test_the_exit_code_and_the_outputs(tmp_path, capsys):
    code, values = run(tmp_path, "--fail-if", "losses", "--fail-if", "decisions:PCA", "--label", "z")
    assert code == 2  # a label of numbers has no classes: nothing is written
    code, values = run(tmp_path, "--fail-if", "losses")
    assert code == 3
    assert values["fail_if"] == ["losses"]
    assert values["failed"]
    assert (tmp_path / "report.html").exists()
    assert "--fail-if losses: On new rows" in capsys.readouterr().err


def test_random_groups_and_rounding_meet_nothing(tmp_path):
    code, values = run(tmp_path, "--fail-if", "losses", "--fail-if", "errors", shuffled=True)
    assert code == 0
    assert values["failed"] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fail-if", "decisions"], "needs a label"),
        (["--fail-if", "losses:FairPCA"], "--methods leaves out"),
        (["--fail-if", "losses", "--repeated-rows"], "nothing is claimed"),
    ],
)
def test_conditions_that_can_never_be_met_are_refused(tmp_path, options, message, capsys):
    assert run(tmp_path, *options)[0] == 2
    assert message in capsys.readouterr().err
