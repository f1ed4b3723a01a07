"""The values of an audit as JSON for the page; labels and names are data and stay text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from fairpca._labels import label_texts
from fairpca.audit.report._verdict import verdict
from fairpca.audit.report._words import (
    adjusted_p,
    few_rows_sentence,
    influence_sentences,
    outvoted_sentence,
    proxy_rows,
    proxy_sentence,
)
from fairpca.model_selection import METHODS, Comparison, MethodResult

if TYPE_CHECKING:
    from fairpca.audit.report.audit import Audit

__all__ = ["report_data", "script_json"]


def script_json(data: Any) -> str:
    """JSON that is safe inside a ``<script>`` element, whatever the strings contain."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def report_data(audit: Audit) -> dict[str, Any]:
    """Everything the page draws: the values as in the JSON output, and what only the page shows."""
    found, plain = audit.comparison, audit.comparison.as_dict()
    said = verdict(found)
    results = {
        f"{result.method}|{result.n_components}": values | _drawn(found, result)
        for result, values in zip(found.results, plain["results"], strict=True)
    }
    return {
        **{name: plain[name] for name in ("groups", "held_out_rows", "expected_losses", "label")},
        "order": label_texts(found.groups),  # a script would put labels that are numbers first
        "features": audit.feature_names,
        "dimensions": found.dimensions,
        "start": found.dimensions[-1] if said is None else said.n_components,
        "methods": [_method(name) for name in found.methods],
        "results": results,
        "frontiers": {
            d: {"exact": len(curve.groups) == 2, "gap": list(curve.gap), "total": list(curve.total_error)}
            for d, curve in audit.frontiers.items()
        },
        "verdicts": {d: vars(one) for d in found.dimensions if (one := verdict(found, d)) is not None},
        "points": {
            "groups": audit.point_groups.tolist(),
            "scores": {f"{name}|{d}": np.round(scores.T, 3).tolist() for (name, d), scores in audit.scores.items()},
        },
        "p": {d: adjusted_p(found, d) for d in found.dimensions},
        "rests": {d: _rests(found, d) for d in found.dimensions},
        "outvoted": outvoted_sentence(found),
        "proxies": {"sentence": proxy_sentence(found), "rows": proxy_rows(found)},
        "few_rows": few_rows_sentence(found),
    }


def _method(name: str) -> dict[str, str]:
    if name in METHODS:
        return {one: getattr(METHODS[name], one) for one in ("name", "family", "aim", "objective")}
    own = {"aim": "An estimator of your own.", "objective": "whatever its documentation states."}
    return {"name": name, "family": "your own", **own}


def _drawn(found: Comparison, result: MethodResult) -> dict[str, Any]:
    """What the page adds to the values of one method."""
    components = np.asarray(result.estimator.components_)
    variances = np.asarray(result.estimator.explained_variance_)
    loadings = components[:2] * np.sqrt(np.maximum(variances[:2], 0.0))[:, None]
    # No interval: a loss in the sample is large by chance alone, so that one would be mistaken for evidence.
    losses = {label: [one.value] for label, one in zip(label_texts(found.groups), result.loss.values(), strict=True)}
    return {
        "notes": result.remarks,  # what concerns the groups, whatever the method, is said once
        "loss": {"groups": losses, "gap": [result.loss.gap.value]},
        "spot": [result.new_rows.sample_error.gap.value, result.new_rows.sample_error.overall],
        "loadings": np.round(loadings, 4).tolist(),
        "communality": np.round(np.sum(components**2, axis=0), 4).tolist(),
        "parameters": " ".join(repr(result.estimator).split()),
    }


def _rests(found: Comparison, d: int) -> list[str]:
    remarks = next(result.new_rows.remarks for result in found.results if result.n_components == d)
    return [*remarks, *influence_sentences(found, d)]
