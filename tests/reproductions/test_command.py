"""``python -m reproductions``: a wrong call prints one clear error message, and nothing is written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reproductions.__main__ import main


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAIRPCA_DATA", raising=False)
    return tmp_path


def one_message(capsys):
    error = capsys.readouterr().err
    assert error.startswith("reproductions: ")
    assert "Traceback" not in error
    assert len(error.strip().splitlines()) == 1
    return error


def test_bad_name_of_a_paper(capsys, tmp_path):
    with pytest.raises(SystemExit) as stop:
        main(["nobody1999"])
    assert stop.value.code == 2
    assert "vu2022" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_without_data_it_says_where_to_get_it(capsys, tmp_path):
    assert main(["vu2022"]) == 2
    error = one_message(capsys)
    assert "distributionally_robust_fair_pca" in error
    assert "--data" in error
    assert not list(tmp_path.iterdir())


def test_something_that_is_not_a_folder(capsys, tmp_path):
    assert main(["vu2022", "--data", "nowhere"]) == 2
    error = one_message(capsys)
    assert "'nowhere' is not a folder" in error
    assert "distributionally_robust_fair_pca" in error
    assert not list(tmp_path.iterdir())


def test_a_folder_without_tables(capsys, tmp_path):
    (tmp_path / "empty").mkdir()
    assert main(["vu2022", "--data", "empty"]) == 2
    error = one_message(capsys)
    assert "no .csv file" in error
    assert "distributionally_robust_fair_pca" in error
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_results_do_not_replace_a_file(capsys, tmp_path):
    (tmp_path / "results").write_text("mine", encoding="utf-8")
    assert main(["vu2022", "--data", str(tmp_path), "--out", "results"]) == 2
    assert "--out results is a file" in one_message(capsys)
    assert (tmp_path / "results").read_text(encoding="utf-8") == "mine"


def test_the_variable_names_the_data(capsys, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("FAIRPCA_DATA", "data")
    assert main(["vu2022"]) == 2
    assert "data holds no .csv file" in one_message(capsys)


def test_it_runs_as_a_module_from_the_checkout():
    checkout = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "reproductions", "--help"], cwd=checkout, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for word in ("--errata", "--quick", "--out", "--quiet", "samadi2018"):
        assert word in done.stdout
