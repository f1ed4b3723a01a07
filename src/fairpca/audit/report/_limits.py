"""What an audit does not show."""

from __future__ import annotations

from fairpca.model_selection import Comparison

__all__ = ["limits"]


def limits(comparison: Comparison) -> list[str]:
    """The limits of the audit, one statement each."""
    settings = comparison.settings
    lines = [
        "The audit describes these rows, and further rows from the same source. If the rows were selected, or were "
        "recorded differently for different groups, it does not show that.",
        "It concerns PCA and what follows from its scores. It does not show whether a decision is lawful or justified, "
        "and no value here means that a method “is fair”.",
        "“No difference is shown” is not “there is no difference”: small groups and wide intervals can hide one.",
        f"Intervals have a confidence of {100 * settings['confidence']:g} % each, unless they are said to hold "
        "together. Of many intervals, some miss the true value.",
        "“Optimal” and “proven” are statements about a method's own objective on these rows (see above), not about new "
        "rows, another objective or another choice of features.",
        "Components, losses and errors depend on how columns were encoded and scaled, and on the numbers of components "
        "chosen.",
        "AUC, MMD², adversary and proxies use at most 2,000 training and 2,000 held-out rows, and the classifiers that "
        "were tried. Others might find more; an AUC below the level of random groups is not a proof.",
        "Proxies are judged one feature at a time and all together; what two features reveal only in combination is "
        "seen in the AUC of all together alone.",
        "MMDFairPCA is fitted to at most 700 rows and judged on one held-out part; its optimum is local.",
    ]
    if comparison.label is not None:
        lines.append(
            "Decisions are those of a logistic regression trained here on the scores, not of a system in use. Rates "
            "are shown with their rows; differences that would rest on fewer than 20 rows of a class are not given."
        )
    if settings.get("repeated_rows"):
        lines.append(
            "Rows repeat persons whose identities are not known: intervals are too short, and p-values left out."
        )
    elif not settings.get("clusters"):
        lines.append(
            "Rows are taken as independent. If persons have several rows, p-values and intervals are too small."
        )
    return lines
