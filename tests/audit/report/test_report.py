"""The report as a file: complete, self-contained, and nothing in it taken for markup."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from fairpca._display import number
from fairpca._files import replace_file
from fairpca.audit import audit
from fairpca.audit.report._data import report_data, script_json
from fairpca.audit.report._words import TERMS


class Tags(HTMLParser):
    """Every start tag, and every attribute that could load or run something."""

    def __init__(self, text):
        super().__init__()
        self.names, self.risky = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.risky += [
            (tag, name)
            for name, value in attrs
            if (name in {"src", "href", "srcset", "action"} and value != "#main") or name.startswith("on")
        ]


def data_of(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S).group(1))


def test_hostile_names_add_no_tag(hostile_audit):
    tags = Tags(hostile_audit.html())
    assert tags.risky == []
    assert tags.names.count("script") == 2
    assert "img" not in tags.names


def test_names_arrive_unchanged(hostile_audit):
    data = data_of(hostile_audit.html())
    assert data["features"] == hostile_audit.feature_names
    assert data["order"] == [*map(str, hostile_audit.comparison.groups)]


def test_page_loads_nothing_from_elsewhere(hostile_audit):
    text = hostile_audit.html()
    shown = data_of(text)
    outside = text.replace(json.dumps(shown), "")
    assert re.findall(r"https?://[^\s\"']+", outside) == ["http://www.w3.org/2000/svg"]  # a name, not an address
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text).group(1)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_json_in_a_script_is_inert():
    text = script_json({"a": "</script><!--\u2028\u2029&"})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"a": "</script><!--\u2028\u2029&"}


def test_figures_of_the_page_are_those_of_the_comparison(hostile_audit):
    data = data_of(hostile_audit.html())
    for result in hostile_audit.comparison.results:
        shown = data["results"][f"{result.method}|{result.n_components}"]
        for label, estimate in result.loss.items():
            assert shown["loss"]["groups"][str(label)] == pytest.approx([estimate.value], rel=1e-9, abs=1e-12)
        assert sum(shown["communality"]) == pytest.approx(result.n_components, abs=1e-3)
    assert set(data["frontiers"]) == set(data["verdicts"]) == {"1", "2", "3"}


def test_frontier_lies_below_every_method(hostile_audit):
    """Methods with a gap within the curve's reach cannot have less total error than the curve."""
    data = data_of(hostile_audit.html())
    for key, shown in data["results"].items():
        curve = data["frontiers"][key.split("|")[1]]
        gap, total = shown["spot"]
        least = np.interp(gap, curve["gap"][::-1], curve["total"][::-1])
        assert total >= least * (1 - 2e-3)


def test_nothing_is_said_to_be_fair(hostile_audit):
    outside = hostile_audit.html().replace("means that a method “is fair”", "")
    assert "is fair" not in outside


def test_every_definition_is_on_the_page_once(hostile_audit):
    text = hostile_audit.html()
    for word, meaning in TERMS.items():
        assert text.count(f"<dt>{word}</dt>") == 1
        assert text.count(meaning.replace("'", "&#x27;")) == 1


def test_points_can_be_left_out():
    rng = np.random.default_rng(0)
    found = audit(
        rng.normal(size=(60, 3)), sensitive_features=np.arange(60) % 2, n_components=1, methods=["PCA"], points=False
    )
    data = report_data(found)
    assert data["points"] == {"groups": [], "scores": {}}


def test_feature_names_must_match():
    with pytest.raises(ValueError, match="feature_names has 1 names, but X has 3"):
        audit(np.zeros((10, 3)), sensitive_features=np.arange(10) % 2, feature_names=["a"])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1e-12, "0"),
        (2.8582, "2.86"),
        (0.3266, "0.327"),
        (43.692, "43.7"),
        (12345.6, "12,346"),
        (2e-6, "2.0e-6"),
        (2.125, "2.13"),
        (-1.5, "-1.50"),
    ],
)
def test_numbers_read_well(value, text):
    assert number(value) == text


def test_files_appear_complete_or_not_at_all(tmp_path):
    target = tmp_path / "out.html"
    target.write_text("before")

    def fail(temporary):
        temporary.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_file(target, fail)
    assert target.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["out.html"]
    with pytest.raises(FileNotFoundError, match="does not exist"):
        replace_file(tmp_path / "no" / "out.html", fail)


def test_loss_in_the_sample_has_no_interval_on_the_page(hostile_audit):
    data = data_of(hostile_audit.html())
    shown = data["results"]["PCA|2"]
    assert [len(row) for row in shown["loss"]["groups"].values()] == [1, 1]
    assert [len(row) for row in shown["corrected_loss"]["groups"].values()] == [3, 3]
    assert len(data["expected_losses"]["2"]) == 2


def test_an_audit_shows_itself(hostile_audit):
    assert "<table>" in hostile_audit._repr_html_()
    assert "<img" not in hostile_audit._repr_html_()
    assert len(hostile_audit.comparison.to_frame()) == 2 * len(hostile_audit.comparison.results)
    assert json.loads(json.dumps(hostile_audit.comparison.as_dict()))["groups"]
