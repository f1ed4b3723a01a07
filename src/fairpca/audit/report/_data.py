"""The values of an audit as JSON for the page; labels and names are data and stay text."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fairpca._display import p_text
from fairpca._labels import label_text
from fairpca.audit.report._feature_words import few_rows_sentence, influence_sentences, proxy_rows, proxy_sentence
from fairpca.audit.report._verdict import verdict
from fairpca.audit.report._words import summary
from fairpca.model_selection import METHODS, Comparison, Frontier, MethodResult

if TYPE_CHECKING:
    from fairpca.audit.report.audit import Audit

__all__ = ["report_data", "script_json"]

#: The page shows no interval for the loss in the sample: this loss is large by chance alone, so that an interval around
#: it would be mistaken for evidence.
_WITH_INTERVALS = ("error", "corrected_loss", "change")


def script_json(data: Any) -> str:
    """JSON that is safe inside a ``<script>`` element, whatever the strings contain."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def report_data(audit: Audit) -> dict[str, Any]:
    """Everything the page draws."""
    comparison = audit.comparison
    groups = [
        {"label": label_text(label), "count": count, "held_out": held_out}
        for label, count, held_out in zip(comparison.groups, comparison.counts, comparison.held_out_counts, strict=True)
    ]
    return {
        "groups": groups,
        "features": audit.feature_names,
        "dimensions": comparison.dimensions,
        "start": _start(comparison),
        "methods": [_method(name) for name in comparison.methods],
        "results": {_key(result): _result(result) for result in comparison.results},
        "frontiers": {str(d): _frontier(curve) for d, curve in audit.frontiers.items()},
        "summaries": {str(d): summary(comparison, d) for d in comparison.dimensions},
        "points": {
            "groups": audit.point_groups.tolist(),
            "scores": {f"{name}|{d}": _rounded(scores.T, 3) for (name, d), scores in audit.scores.items()},
        },
        "chance": {str(d): _chance(comparison, d) for d in comparison.dimensions},
        "confidence": comparison.settings["confidence"],
        "influence": {str(d): influence_sentences(comparison, d) for d in comparison.dimensions},
        "proxies": {"sentence": proxy_sentence(comparison), "rows": proxy_rows(comparison)},
        "few_rows": few_rows_sentence(comparison),
        "label": None if comparison.label is None else comparison.label.as_dict(),
    }


def _start(comparison: Comparison) -> int:
    """The number of components that the page shows first: that of the verdict."""
    said = verdict(comparison)
    return comparison.dimensions[-1] if said is None else said.n_components


def _key(result: MethodResult) -> str:
    return f"{result.method}|{result.n_components}"


def _method(name: str) -> dict[str, str]:
    known = METHODS.get(name)
    if known is None:
        own = {"aim": "An estimator of your own.", "objective": "whatever its documentation states."}
        return {"name": name, "family": "your own", **own}
    return {"name": name, "family": known.family, "aim": known.aim, "objective": known.objective}


def _result(result: MethodResult) -> dict[str, Any]:
    components = np.asarray(result.estimator.components_)
    variances = np.asarray(result.estimator.explained_variance_)
    loadings = components[:2] * np.sqrt(np.maximum(variances[:2], 0.0))[:, None]
    plain = result.as_dict()
    kept = ("explained_variance", "objective", "lower_bound", "certificate", "converged")
    return {
        **{name: plain[name] for name in kept},
        "notes": list(result.remarks),  # what concerns the groups, whatever the method, is in the summary
        "held_out": plain["held_out"],
        "n_folds": result.new_rows.n_folds,
        "sample_error": {
            "overall": _finite(result.new_rows.sample_error.overall),
            "gap": _finite(result.new_rows.sample_error.gap),
        },
        **{name: plain[name] | {"groups": [*plain[name]["groups"].values()]} for name in _WITH_INTERVALS},
        "loss": {"groups": [[_finite(one)] for one in result.loss.values()], "gap": [_finite(result.loss.gap)]},
        "loadings": _rounded(loadings, 4),
        "communality": _rounded(np.sum(components**2, axis=0), 4),
        "parameters": _parameters(result.estimator),
    }


def _chance(comparison: Comparison, d: int) -> dict[str, Any]:
    """Average losses of random groups, and the p-value of each group as text (None if no test was made)."""
    expected = [_finite(value) for value in comparison.expected_losses[d].values()]
    if comparison.test is None:
        return {"expected": expected, "p": None}
    count = comparison.test.n_permutations
    groups = comparison.test[d].by_group.values()
    return {"expected": expected, "p": [p_text(one.p_value, count).removeprefix("= ") for one in groups]}


def _frontier(curve: Frontier) -> dict[str, Any]:
    return {
        "exact": len(curve.groups) == 2,
        "gap": [_finite(value) for value in curve.gap],
        "total": [_finite(value) for value in curve.total_error],
    }


def _parameters(estimator: Any) -> str:
    """The constructor call of the estimator, as scikit-learn shows it."""
    return " ".join(repr(estimator).split())


def _finite(value: float) -> float | None:
    """Unrounded: rounding here and again on the page could give digits that differ from the terminal's."""
    return float(value) if math.isfinite(value) else None


def _rounded(values: np.ndarray, decimals: int) -> list[Any]:
    return np.round(values, decimals).tolist()
