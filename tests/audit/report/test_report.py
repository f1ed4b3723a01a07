"""The report as a file: complete, self-contained, and nothing in it taken for markup."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from fairpca._files import replace_file
from fairpca.audit import audit
from fairpca.audit.report import number
from fairpca.audit.report._data import report_data, script_json
from fairpca.audit.report._words import _parity, summary
from fairpca.model_selection import compare


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
    assert {group["label"] for group in data["groups"]} == set(map(str, hostile_audit.comparison.groups))


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
    data = report_data(hostile_audit)
    for result in hostile_audit.comparison.results:
        shown = data["results"][f"{result.method}|{result.n_components}"]
        values = [estimate.value for estimate in result.loss.by_group.values()]
        np.testing.assert_allclose([row[0] for row in shown["loss"]["groups"]], values, rtol=1e-5, atol=1e-12)
        assert sum(shown["communality"]) == pytest.approx(result.n_components, abs=1e-3)
    assert set(data["frontiers"]) == {"1", "2", "3"}


def test_frontier_lies_below_every_method(hostile_audit):
    """Methods with a gap within the curve's reach cannot have less total error than the curve."""
    data = report_data(hostile_audit)
    for key, shown in data["results"].items():
        curve = data["frontiers"][key.split("|")[1]]
        gap, total = shown["sample_error"]["gap"], shown["sample_error"]["overall"]
        least = np.interp(gap, curve["gap"][::-1], curve["total"][::-1])
        assert total >= least * (1 - 2e-3)


def test_summary_speaks_of_the_worst_group(hostile_audit):
    found = hostile_audit.comparison
    sentences = summary(found, 2)
    assert str(found["PCA", 2].loss.between[0]) in sentences[0]
    assert "A random division into groups of these sizes would" in sentences[1]
    assert sentences[2].startswith("On new rows")
    assert any("In the sample FairPCA lowers the largest loss" in sentence for sentence in sentences)
    assert any("On new rows, against ordinary PCA, RobustFairPCA" in sentence for sentence in sentences) == (
        "RobustFairPCA" in found.methods
    )
    assert any("gradient boosting" in sentence for sentence in sentences)
    assert not any("is fair" in sentence for sentence in sentences)


@pytest.mark.parametrize(
    ("auc", "words"),
    [
        (0.5, "brings that to 0.500, no more than"),
        (0.7, "brings that to 0.700, still"),
        (0.95, "does not lower it: 0.950"),
    ],
)
def test_a_parity_method_is_compared_with_ordinary_pca(hostile_audit, auc, words):
    """Ordinary PCA 0.9, random groups 0.6."""

    def with_auc(result, auc):
        held_out = dataclasses.replace(result.held_out, auc=auc, auc_random=0.6)
        return dataclasses.replace(result, family="parity", held_out=held_out)

    ordinary, other = hostile_audit.comparison.results[:2]
    assert words in _parity(with_auc(ordinary, 0.9), with_auc(other, auc))


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


def test_random_groups_get_no_claim():
    rng = np.random.default_rng(1)
    claims = []
    for seed in range(20):
        X = rng.normal(size=(150, 5)) * [2.0, 1.5, 1.0, 1.0, 0.5]
        groups = rng.permutation(np.repeat([0, 1], [50, 100]))
        found = compare(
            X, sensitive_features=groups, n_components=2, methods=["PCA"], n_permutations=39, random_state=seed
        )
        text = " ".join(summary(found, 2))
        claims.append(["would not show this" in text, "the loss of" in text and "is larger than" in text])
    assert np.sum(claims, axis=0).max() <= 4  # one of twenty expected


def test_real_differences_are_claimed(two_groups):
    X, groups = two_groups
    text = " ".join(summary(compare(X, sensitive_features=groups, n_components=2, methods=["PCA"]), 2))
    assert "would not show this (p <= 0.001)" in text
    assert "On new rows, under PCA with 2 components, the loss of “b” is larger than that of “a”, by " in text


def test_unknown_identities_are_said():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(90, 3)), np.arange(90) % 2
    found = compare(X, sensitive_features=groups, n_components=1, methods=["PCA"], repeated_rows=True)
    text = " ".join(summary(found, 1))
    assert "no p-value can be given" in text
    assert "is larger than" not in text
    assert "(p " not in text


def test_loss_in_the_sample_has_no_interval_on_the_page(hostile_audit):
    data = report_data(hostile_audit)
    shown = data["results"]["PCA|2"]
    assert [len(row) for row in shown["loss"]["groups"]] == [1, 1]
    assert [len(row) for row in shown["corrected_loss"]["groups"]] == [3, 3]
    assert len(data["chance"]["2"]["expected"]) == 2


def test_an_audit_shows_itself(hostile_audit):
    assert "<table>" in hostile_audit._repr_html_()
    assert "<img" not in hostile_audit._repr_html_()
    assert len(hostile_audit.to_frame()) == 2 * len(hostile_audit.comparison.results)
    assert json.loads(json.dumps(hostile_audit.comparison.as_dict()))["groups"]
