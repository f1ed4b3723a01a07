"""What a notebook shows of a fitted estimator besides scikit-learn's diagram: its groups and its certificate."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from fairpca._labels import label_texts

#: A notebook cell shows at most this many groups.
_MAX_GROUPS = 12
_COLUMNS = {
    "group_counts_": "rows",
    "group_errors_": "error",
    "worst_case_group_errors_": "worst-case error",
    "group_losses_": "loss",
    "group_weights_": "weight",
}


def fitted_html(estimator: Any) -> str:
    """A table of the groups and a sentence on the optimum, as HTML; empty if the estimator is not fitted.

    Labels may be any text: they are escaped.

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.estimators._html import fitted_html
    >>> pca = FairPCA(1).fit([[0, 1], [2, 0], [5, 1], [1, 4]], sensitive_features=["<b>", "<b>", "x", "x"])
    >>> "<td>&lt;b&gt;</td>" in fitted_html(pca), fitted_html(FairPCA())
    (True, '')
    """
    if "groups_" not in vars(estimator):  # also after partial_fit, until the components are asked for
        return ""
    shown = {text: vars(estimator)[name] for name, text in _COLUMNS.items() if name in vars(estimator)}
    labels = label_texts(estimator.groups_.tolist())
    lines = [_row("th", "group", *shown)]
    for label, *values in list(zip(labels, *shown.values(), strict=True))[:_MAX_GROUPS]:
        lines.append(_row("td", label, *(f"{value:,.6g}" for value in values)))
    if len(labels) > _MAX_GROUPS:
        lines.append(_row("td", f"and {len(labels) - _MAX_GROUPS} more groups"))
    table = f'<table style="margin: 0.3em 0; border-spacing: 0.8em 0; text-align: right">{"".join(lines)}</table>'
    sentence = escape(certificate(estimator))
    return f'<div class="fairpca-fit" style="font-size: 0.9em; margin-top: 0.5em">{table}<div>{sentence}</div></div>'


def certificate(estimator: Any) -> str:
    """How close to the optimum a fitted estimator is known to be, in a sentence."""
    if not hasattr(estimator, "objective_"):
        return ""
    gap = getattr(estimator, "duality_gap_", np.inf)
    known = f": no projection has an objective that is lower by more than {gap:.2g}."
    found = f"Objective {estimator.objective_:.6g}{known if np.isfinite(gap) else '; optimality is not certified.'}"
    return found if estimator.converged_ else f"{found} The search did not converge."


def _row(kind: str, *cells: str) -> str:
    return f"<tr>{''.join(f'<{kind}>{escape(cell)}</{kind}>' for cell in cells)}</tr>"
