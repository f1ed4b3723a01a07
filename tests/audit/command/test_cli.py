"""The command line as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import fairpca
from fairpca.audit.command import main


def test_demo_shows_equal_losses_and_ends_with_the_report(capsys, tmp_path):
    report = tmp_path / "report.html"
    assert main(["demo", "--components", "1,2", "--out", str(report), "--jobs", "1"]) == 0
    text = capsys.readouterr().out
    assert text.rstrip().endswith(str(report))
    page = report.read_text(encoding="utf-8")
    for method in ("PCA", "FairPCA", "RobustFairPCA", "ParityPCA", "MMDFairPCA"):
        assert f'"name":"{method}"' in page
    assert "female" in text
    assert "expected by chance" in text
    assert "A random division into groups of these sizes would not show this" in text
    assert "For these rows no projection can lower the larger loss by more than the duality gap" in text
    start = text.index("duality gap\n")
    rows = [line.split() for line in text[start:].splitlines()[1:3]]
    assert [row[0] for row in rows] == ["1", "2"]
    for row in rows:
        assert row[3] == row[4]  # both losses of FairPCA
        assert float(row[5]) < 1e-10


def test_demo_as_json(capsys):
    assert main(["demo", "--components", "2", "--json"]) == 0
    ordinary, balanced, *_ = json.loads(capsys.readouterr().out)["results"]
    assert (ordinary["method"], balanced["method"]) == ("PCA", "FairPCA")
    assert balanced["loss"]["gap"][0] < 1e-9 < ordinary["loss"]["gap"][0]
    assert balanced["certificate"] < 1e-10
    assert balanced["explained_variance"] < ordinary["explained_variance"]


@pytest.mark.parametrize("text", ["x", "0", "3-1", ""])
def test_bad_lists_of_components(text, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["demo", "--components", text])
    assert stop.value.code == 2
    assert "--components" in capsys.readouterr().err


def test_too_many_components_end_in_one_sentence(capsys):
    assert main(["demo", "--components", "99"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("fairpca: n_components=99 must lie between 1")
    assert "Traceback" not in error


def test_info_and_version(capsys):
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    assert fairpca.__version__ in text
    assert "scikit-learn" in text
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0


def test_installed_command_runs():
    done = subprocess.run(
        [sys.executable, "-m", "fairpca.audit.command", "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "demo" in done.stdout
