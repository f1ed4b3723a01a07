"""Verdicts, and what is written."""

from __future__ import annotations

import builtins
import csv

import pytest

from reproductions import PAPERS, Claim, Drawing, Outcome, Table, reproduce


def claim(**changes):
    return Claim(**{"source": "Table 1", "what": "error", "ours": 1.0, "theirs": 1.0, "tolerance": 0.1, **changes})


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"ours": 1.09}, "matched"),
        ({"ours": 1.2}, "differs"),
        ({"ours": 1.2, "explanation": "known"}, "explained"),
        ({"ours": 0.5, "relation": "at most"}, "better"),
        ({"ours": 0.5, "relation": "at least"}, "differs"),
        ({"ours": 1.5, "relation": "at least"}, "better"),
        ({"ours": 0.05, "theirs": 0.0, "absolute": True}, "matched"),
        ({"ours": 0.05, "theirs": 0.0}, "differs"),
        ({"ours": float("nan")}, "differs"),
    ],
)
def test_verdict(changes, verdict):
    assert claim(**changes).verdict == verdict


def test_an_outcome_succeeds_unless_a_value_differs_without_explanation():
    assert Outcome("p", "t", [claim(), claim(ours=2.0, explanation="known")]).succeeded
    failed = Outcome("p", "t", [claim(), claim(ours=2.0)])
    assert not failed.succeeded
    assert failed.counts == {"matched": 1, "differs": 1}


def test_a_quick_run_judges_nothing_and_says_what_it_left_out(tmp_path):
    outcome = Outcome("p", "t", [claim(), claim(ours=2.0, explanation="known")], quick=True, unexamined=7)
    assert outcome.counts == {"not judged": 2}
    assert not outcome.succeeded
    report = outcome.write(tmp_path).read_text(encoding="utf-8")
    for text in (str(outcome), report):
        assert "2 published values stand next to ours" in text
        assert "7 were not examined" in text
        assert "matched" not in text
        assert "explained" not in text


def test_many_claims_are_summed_up_on_the_terminal():
    outcome = Outcome("p", "t", [*(claim(what=f"figure {i}") for i in range(100)), claim(what="odd one", ours=2.0)])
    assert outcome.counts == {"matched": 100, "differs": 1}
    assert "odd one" in str(outcome)
    assert "figure 7" not in str(outcome)


def test_names_do_not_become_formulas(tmp_path):
    Outcome("p", "t", [], [Table("t", "t", ["name"], [["=1+1"], [" @x"], ["-3 %"]])]).write(tmp_path)
    assert (tmp_path / "t.csv").read_text().splitlines() == ["name", "'=1+1", "' @x", "-3 %"]


HOSTILE = "a|b](http://x) <img src=x>\n# head *x* `y` \x1b[31m"


def test_hostile_names_stay_text(tmp_path):
    outcome = Outcome(
        "p", HOSTILE, [claim(what=HOSTILE)], [Table("t", HOSTILE, ["name", "value"], [[HOSTILE, 1.0]])],
        [Drawing("d", HOSTILE, lambda figure: figure.add_subplot())], [HOSTILE],
    )  # fmt: skip
    text = outcome.write(tmp_path / "out").read_text(encoding="utf-8")
    assert "<img" not in text
    assert "\x1b" not in text + str(outcome)
    assert "](http" not in text.replace("\\](http", "")
    assert not any(line.startswith("# head") for line in text.splitlines())
    for line in text.splitlines():
        if line.startswith("|"):
            cells = line.replace("\\|", "").count("|") - 1
            assert cells in (2, 8)
    with (tmp_path / "out" / "t.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file))[1] == [HOSTILE, "1.0"]


def test_everything_is_written_and_the_report_names_it(tmp_path):
    outcome = Outcome(
        "p", "Title", [claim(ours=1.05)], [Table("rows", "Rows", ["x"], [[1]], "A note.")],
        [Drawing("picture", "Picture", lambda figure: figure.add_subplot().plot([1, 2]))], ["A remark."], quick=True,
    )  # fmt: skip
    report = outcome.write(tmp_path / "new" / "folder")
    assert sorted(path.name for path in report.parent.iterdir()) == [
        "claims.csv",
        "picture.png",
        "report.md",
        "rows.csv",
    ]
    text = report.read_text(encoding="utf-8")
    for part in (
        "quick run",
        "![Picture](picture.png)",
        "[rows.csv](rows.csv)",
        "A note.",
        "- A remark.",
        "not judged",
    ):
        assert part in text
    assert (report.parent / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_report_without_matplotlib(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    drawing = Drawing("picture", "Picture", lambda figure: figure.add_subplot())
    text = Outcome("p", "Title", [claim()], drawings=[drawing]).write(tmp_path).read_text(encoding="utf-8")
    assert "fairpca[plot]" in text
    assert "picture.png" not in text
    assert not (tmp_path / "picture.png").exists()


def test_unknown_paper():
    with pytest.raises(ValueError, match="samadi2018"):
        reproduce("nobody1999", "anywhere")
    assert set(PAPERS) == {"samadi2018", "lee2022", "vu2022"}
