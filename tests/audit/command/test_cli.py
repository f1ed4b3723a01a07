"""The command line as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import fairpca
from fairpca.audit.command import main


def test_demo_is_one_screen_and_a_report(capsys, tmp_path):
    report = tmp_path / "report.html"
    assert main(["demo", "--components", "1,2", "--out", str(report), "--jobs", "1"]) == 0
    text = capsys.readouterr().out
    assert len(text.splitlines()) <= 30
    assert max(map(len, text.replace(str(report), "").splitlines())) < 80
    assert "loses more of “female” than of “male”" in " ".join(text.split())
    assert "With FairPCA no difference of losses is shown. It lowers the error of “female”" in " ".join(text.split())
    assert str(report) in text.splitlines()[-1]
    page = report.read_text(encoding="utf-8")
    for method in ("PCA", "FairPCA", "RobustFairPCA", "ParityPCA", "MMDFairPCA"):
        assert f'"name":"{method}"' in page
    assert "loses more of “female” than of “male”" in page


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
