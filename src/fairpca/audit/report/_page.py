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
from fairpca.audit.report._limits import limits
from fairpca.audit.report._verdict import DEFINITIONS, Verdict, verdict
from fairpca.audit.report._words import sample_sentence

if TYPE_CHECKING:
    from fairpca.audit.report.audit import Audit

__all__ = ["page"]


def page(audit: Audit) -> str:
    """HTML of the report.

    The content security policy in its head allows this script and this style sheet and nothing else: no other script,
    no attribute that runs code, no request to any host.
    """
    style, script = _asset("style.css"), _asset("report.js")
    said = verdict(audit.comparison)
    return Template(_asset("template.html")).substitute(
        policy=f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'",
        title=escape(audit.title),
        overview=escape(_overview(audit)),
        style=style,
        script=script,
        data=script_json(report_data(audit)),
        made=escape(_made(audit)),
        verdict="" if said is None else _verdict(said),
        definitions=escape(DEFINITIONS),
        limits=_items(limits(audit.comparison)),
        remarks=_items(audit.remarks),
        omitted=_items(audit.comparison.omitted),
        provenance=_terms(_repeat(audit)),
    )


def _asset(name: str) -> str:
    return (files("fairpca.audit.report") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _verdict(said: Verdict) -> str:
    """What was found, what can be done, three numbers, and what to do next."""
    numbers = "".join(
        f"<div><dt>{escape(name)}</dt><dd><b>{escape(value)}</b> <span>{escape(interval)}</span></dd></div>"
        for name, value, interval in said.numbers
    )
    # The number in the detail of a claimed difference is the first of the three.
    second = said.remedy if said.left else f"{said.detail} {said.remedy}"
    third = f"{said.readable} {said.advice}"
    return (
        f'<p class="finding">{escape(said.finding)}</p><p>{escape(second)}</p><dl class="numbers">{numbers}</dl>'
        f"<p>{escape(third)}</p>"
    )


def _overview(audit: Audit) -> str:
    found = audit.comparison
    overview = (
        f"{found.n_samples:,} rows, {found.n_features} features. Groups: {group_sizes(found.groups, found.counts)}."
    )
    return overview if found.n_sampled is None else f"{overview} {sample_sentence(found.n_sampled, found.n_samples)}"


def _made(audit: Audit) -> str:
    """When, from what, and how sure: what belongs on the first page."""
    label, settings = audit.comparison.label, audit.comparison.settings
    parts = [f"{name.capitalize()}: {audit.provenance[name]}." for name in ("date", "file") if name in audit.provenance]
    if label is not None:
        sizes = ", ".join(f"{name} ({count:,})" for name, count in label.classes.items())
        positive = "" if label.positive is None else f"; positive class: {label.positive}"
        parts.append(f"Label: {label.name}, classes {sizes}{positive}.")
    return " ".join([*parts, f"Intervals: {100 * settings['confidence']:g} % confidence."])


def _repeat(audit: Audit) -> dict[str, str]:
    """What a reader needs to repeat the audit."""
    settings = audit.comparison.settings
    chosen = {
        "confidence level": f"{100 * settings['confidence']:g} %",
        "random divisions": f"{settings['n_permutations']:,}",
        "folds": str(settings["n_folds"]),
        "held-out share": f"{100 * settings['test_size']:g} %",
    }
    return {**audit.provenance, **chosen}


def _items(lines: Iterable[str]) -> str:
    return "".join(f"<li>{escape(line)}</li>" for line in lines)


def _terms(pairs: Mapping[str, str]) -> str:
    return "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs.items())
