"""Conditions of --fail-if: parsed without evaluating anything, decided for every number of components."""

from __future__ import annotations

import argparse
import json

import numpy as np
import pytest

from fairpca.cli import main
from fairpca.cli._thresholds import NAMES, failed_thresholds, threshold
from fairpca.model_selection import compare


@pytest.fixture(scope="module")
def comparison():
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b"], [200, 400])
    X = rng.normal(size=(600, 4)) * np.where(groups == "a", 1.0, 2.0)[:, None] ** np.array([1, -1, 1, -1])
    label = (X[:, 0] + rng.normal(size=600) > 0).astype(int)
    return compare(X, groups, label, n_components=[1, 2], methods=["PCA", "FairPCA"], n_permutations=19, progress=False)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true') > 0", "loss_gap", "loss_gap < ", "loss_gap < nan", "loss_gap < 1 or 1 > 0",
        "1 < loss_gap", "loss_gap == 1", "loss_gap < 1e", "loss_gap@x < 1", "loss_gap < 1_0", "", "unknown < 1",
        "Other.auc < 1", "FairPCA.loss_gap_p < 0.01", "auc @5 > 0.1", "loss_gap > 0x10",
    ],
)  # fmt: skip
def test_anything_else_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match=r"is not|does not depend"):
        threshold(text)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_a_value(comparison, name):
    """Whatever is documented is decided: of 'at least' and 'below' the same value, exactly one is met somewhere."""
    assert failed_thresholds(comparison, [threshold(f"{name} >= -1e9")])
    assert not failed_thresholds(comparison, [threshold(f"{name} < -1e9")])


def test_a_condition_is_met_by_any_number_of_components(comparison):
    gaps = [comparison["PCA", d].corrected_loss.gap.value for d in (1, 2)]
    between = sum(gaps) / 2
    (line,) = failed_thresholds(comparison, [threshold(f"corrected_loss_gap > {between!r}")])
    assert f"d = {1 + int(np.argmax(gaps))}" in line
    assert not failed_thresholds(
        comparison, [threshold(f"corrected_loss_gap@{1 + int(np.argmin(gaps))} > {between!r}")]
    )


def test_a_named_method_is_the_one_that_counts(comparison):
    assert failed_thresholds(comparison, [threshold("loss_gap > 1e-6")])
    assert not failed_thresholds(comparison, [threshold("FairPCA.loss_gap > 1e-6")])


def test_what_cannot_be_decided_does_not_pass():
    rng = np.random.default_rng(1)
    groups = np.repeat(["a", "b"], [30, 170])
    label = np.where(np.arange(200) < 30, np.arange(200) < 4, np.arange(200) % 2).astype(int)
    found = compare(rng.normal(size=(200, 3)), groups, label, n_components=1, methods=["PCA"], n_permutations=19)
    (line,) = failed_thresholds(found, [threshold("equal_opportunity > 0.9")])
    assert "cannot be decided" in line


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(2)
    rows = [f"{'fm'[i % 3 > 0]},{a:.4f},{b:.4f},{c:.4f}" for i, (a, b, c) in enumerate(rng.normal(size=(120, 3)))]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["sex,a,b,c", *rows]))
    return path


def run(people, *options):
    folder = people.parent
    return main(
        [
            "audit", str(people), "--sensitive", "sex", "--methods", "PCA", "--components", "1,2", "--permutations",
            "19", "--jobs", "1", "--out", str(folder / "r.html"), "--json", str(folder / "r.json"), *options,
        ]
    )  # fmt: skip


def test_exit_code_three_comes_after_the_outputs(people, capsys):
    assert run(people, "--fail-if", "smallest_group < 30") == 0
    (people.parent / "r.html").unlink()
    assert run(people, "--fail-if", "smallest_group < 41", "--fail-if", "loss_gap < -1") == 3
    assert "smallest_group = 40" in capsys.readouterr().err
    values = json.loads((people.parent / "r.json").read_text())
    assert (people.parent / "r.html").is_file()
    assert values["fail_if"] == ["smallest_group < 41", "loss_gap < -1"]
    assert len(values["failed"]) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--fail-if", "accuracy < 0.5"), "needs a label"),
        (("--fail-if", "loss_gap_p < 0.01", "--repeated-rows"), "no p-value"),
        (("--fail-if", "FairPCA.auc > 0.6"), "which --methods leaves out"),
        (("--fail-if", "auc@7 > 0.6"), "which --components leaves out"),
    ],
)
def test_conditions_that_can_never_be_decided_are_refused_before_the_data_is_read(people, options, message, capsys):
    people.write_text("not a table")
    assert run(people, *options) == 2
    assert message in capsys.readouterr().err
