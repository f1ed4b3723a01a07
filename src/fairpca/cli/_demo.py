"""The table of ``fairpca demo``."""

from __future__ import annotations

from typing import Any

from sklearn.decomposition import PCA

from fairpca import FairPCA
from fairpca.datasets import load_german_credit
from fairpca.metrics import GroupValues, reconstruction_error, reconstruction_loss

__all__ = ["demo_rows", "demo_text"]


def demo_rows(dimensions: list[int]) -> list[dict[str, Any]]:
    """One row a number of components and method: error and loss of each group, and the certificate."""
    X, sex = load_german_credit(return_X_s=True)
    rows = []
    for d in dimensions:
        balanced = FairPCA(d).fit(X, sensitive_features=sex)
        ordinary = PCA(d, svd_solver="full").fit(X)
        for name, projector in (("PCA", ordinary), ("FairPCA", balanced)):
            errors = reconstruction_error(X, projector, sensitive_features=sex)
            losses = reconstruction_loss(X, projector, sensitive_features=sex)
            assert isinstance(errors, GroupValues)
            assert isinstance(losses, GroupValues)
            rows.append(
                {
                    "components": d,
                    "method": name,
                    "error": dict(errors),
                    "loss": dict(losses),
                    "loss_gap": losses.gap,
                    "explained_variance": float(projector.explained_variance_ratio_.sum()),
                    "relative_duality_gap": balanced.duality_gap_ / X.shape[1] if projector is balanced else None,
                }
            )
    return rows


def demo_text(rows: list[dict[str, Any]]) -> str:
    """The rows as a table, with the two sentences a reader needs."""
    groups = list(rows[0]["error"])
    width = 9 * len(groups) - 1
    lines = [
        "German credit: 1000 applicants, 57 standardised features, groups by sex",
        "",
        f"{'':>3}  {'':<7}  {'error of':>{width}}   {'loss of':>{width}}   {'gap of':>8}  {'explained':>9}",
        f"{'d':>3}  {'method':<7}  {_heads(groups)}   {_heads(groups)}   {'losses':>8}  {'variance':>9}",
    ]
    for row in rows:
        first = row["method"] == "PCA"
        lines.append(
            f"{row['components'] if first else '':>3}  {row['method']:<7}  {_cells(row['error'])}   "
            f"{_cells(row['loss'])}   {row['loss_gap']:>8.4f}  {row['explained_variance']:>9.1%}"
        )
    proof = max(row["relative_duality_gap"] for row in rows if row["method"] == "FairPCA")
    lines += [
        "",
        "error: mean squared distance between a group's rows and their reconstruction.",
        "loss:  how much of that error the group has only because it shares the components with the other one.",
        "FairPCA makes the larger loss as small as possible. Certificate: no projection has a larger loss smaller",
        f"than these by more than {proof:.0e} of the total variance (the largest duality gap above).",
    ]
    return "\n".join(lines)


def _heads(groups: list[str]) -> str:
    return " ".join(f"{group:>8.8}" for group in groups)


def _cells(values: dict[str, float]) -> str:
    return " ".join(f"{value:>8.4f}" for value in values.values())
