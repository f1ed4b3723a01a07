"""The page: template, style and script combined, with everything that comes from data escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from fairpca._labels import group_sizes
from fairpca.audit.report._data import report_data, script_json
from fairpca.audit.report._verdict import verdict
from fairpca.audit.report._words import TERMS, limits, sample_sentence

if TYPE_CHECKING:
    from fairpca.audit.report.audit import Audit

__all__ = ["asset", "page"]


def page(audit: Audit) -> str:
    """HTML of the report.

    The content security policy in its head allows this script and this style sheet and nothing else: no other script,
    no attribute that runs code, no request to any host.
    """
    style, script, found = asset("style.css"), asset("report.js"), audit.comparison
    said = verdict(found)
    return Template(asset("template.html")).substitute(
        policy=f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'",
        title=escape(audit.title),
        overview=escape(
            f"{found.n_samples:,} rows, {found.n_features} features; groups {group_sizes(found.groups, found.counts)}. "
            f"{sample_sentence(found)}"
        ),
        style=style,
        script=script,
        data=script_json(report_data(audit)),
        verdict="" if said is None else escape(f"{said.finding} {said.doubt} {said.remedy}"),
        terms=_terms(TERMS),
        limits=_items(limits(found)),
        remarks=_items(audit.remarks),
        omitted=_items(found.omitted),
        provenance=_terms(_repeat(audit)),
    )


def asset(name: str) -> str:
    """The text of a file in the folder of assets."""
    return (files("fairpca.audit.report") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _repeat(audit: Audit) -> dict[str, str]:
    """What a reader needs to repeat the audit."""
    settings, label, chosen = audit.comparison.settings, audit.comparison.label, dict(audit.provenance)
    if label is not None:
        sizes = ", ".join(f"{name} ({count:,})" for name, count in label.classes.items())
        chosen["label"] = f"{label.name}: {sizes}" + (f"; positive class: {label.positive}" if label.positive else "")
    return chosen | {
        "confidence level": f"{100 * settings['confidence']:g} %",
        "random divisions": f"{settings['n_permutations']:,}",
        "folds": str(settings["n_folds"]),
        "held-out share": f"{100 * settings['test_size']:g} %",
    }


def _items(lines: Iterable[str]) -> str:
    return "".join(f"<li>{escape(line)}</li>" for line in lines)


def _terms(pairs: Mapping[str, str]) -> str:
    return "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs.items())
