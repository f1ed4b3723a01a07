"""The results of a comparison of methods, and how they are displayed."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairpca._display import TableResult, percent
from fairpca._files import write_text
from fairpca._labels import group_sizes, label_texts
from fairpca.inference import Claim, GroupEvaluation, LossTest
from fairpca.inference._claims import components_text
from fairpca.metrics import Estimate, GroupValues
from fairpca.model_selection._features import FeatureStudy
from fairpca.model_selection._held_out import HeldOut
from fairpca.moments import GroupMoments

__all__ = ["SCHEMA_VERSION", "Comparison", "Label", "MethodResult"]

#: Of the JSON output: the first number changes if a reader of the earlier one would break.
SCHEMA_VERSION = "1.0"


@dataclass(frozen=True)
class MethodResult:
    """One method with one number of components.

    Attributes
    ----------
    method, family : str
    n_components : int
    estimator : fitted estimator
        Fitted on all rows.
    new_rows : GroupEvaluation
        Error on new rows, loss in the sample, corrected loss, and change of the error relative to ordinary PCA, by
        group. Also available as ``error``, ``loss``, ``corrected_loss`` and ``change``.
    explained_variance : float
        Share of the variance of all rows that is kept.
    objective, lower_bound : float or None
        The value of the criterion that the method minimises, and a lower bound that holds for every projection; None
        for methods without them.
    certificate : float or None
        Objective minus bound, relative to the total variance.
    converged : bool
    notes : tuple of str
        Warnings of the estimator.
    held_out : HeldOut
    gap_remark : str
        What a method that should balance the groups does to the difference of their losses in the sample, where it
        reverses or widens it; otherwise empty.

    See Also
    --------
    compare : Computes one for each method and number of components.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.model_selection import compare
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> groups = np.repeat(["a", "b"], 100)
    >>> found = compare(X, sensitive_features=groups, n_components=2, methods=["PCA"], n_permutations=19)
    >>> result = found["PCA", 2]
    >>> result.n_components, sorted(result.error.by_group)
    (2, ['a', 'b'])
    """

    method: str
    family: str
    n_components: int
    estimator: Any
    new_rows: GroupEvaluation
    explained_variance: float
    objective: float | None
    lower_bound: float | None
    certificate: float | None
    converged: bool
    notes: tuple[str, ...]
    held_out: HeldOut
    gap_remark: str = ""

    @property
    def nothing_to_compare(self) -> str:
        """Why the values of this result say nothing of the groups; empty if they do."""
        if self.new_rows.keeps_everything:
            return "keeps everything"
        kept = percent(self.explained_variance)
        return f"keeps {kept} of the variance" if kept == percent(0.0) else ""

    @property
    def error(self) -> GroupValues:
        """Mean squared reconstruction error on new rows."""
        return self.new_rows.error

    @property
    def loss(self) -> GroupValues:
        """Loss in the sample."""
        return self.new_rows.loss

    @property
    def corrected_loss(self) -> GroupValues:
        """Loss with both sides evaluated on new rows."""
        return self.new_rows.corrected_loss

    @property
    def change(self) -> GroupValues:
        """Error on new rows minus that of ordinary PCA."""
        return self.new_rows.change

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes, and what there is to say of the gap between the groups."""
        return (*self.notes, *([self.gap_remark] if self.gap_remark else []))

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        row = {
            name: getattr(self, name)
            for name in ("method", "family", "n_components", "explained_variance", "objective", "lower_bound")
        }
        found, labels = self.new_rows, label_texts(self.new_rows.counts)
        row["sample_error"] = dict(zip(labels, map(float, found.sample_error.values()), strict=True))
        row |= {name: _plain(getattr(self, name), joint=name == "change") for name in ("error", "loss", "change")}
        row["corrected_loss"] = _plain(self.corrected_loss)
        gap = self.corrected_loss.gap
        row["new_rows"] = {"gap": gap.value, "low": gap.joint_low, "high": gap.joint_high, "claimed": found.claimed}
        row |= {"n_folds": found.n_folds, "certificate": self.certificate, "converged": self.converged}
        row["notes"] = [*self.remarks, *found.remarks]
        row["held_out"] = self.held_out.as_dict(dict(zip(self.new_rows.counts, labels, strict=True)))
        return row


@dataclass(frozen=True)
class Label:
    """The label: its name, and how many rows each class has; of two classes, the last is the positive one."""

    name: str
    classes: dict[str, int]

    @property
    def positive(self) -> str | None:
        """The positive class, where there are two."""
        return list(self.classes)[-1] if len(self.classes) == 2 else None

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        return {"name": self.name, "classes": self.classes, "positive": self.positive}


@dataclass(frozen=True, repr=False)
class Comparison(TableResult):
    """The result of :func:`compare`.

    Attributes
    ----------
    results : list of MethodResult
        Ordered by number of components, then by method.
    groups : tuple
        Labels.
    counts : tuple of int
        Rows of each group.
    n_samples, n_features : int
    n_sampled : int or None
        If ``moments`` of more rows were given: the number of rows in X, from which intervals and held-out values are
        computed.
    omitted : list of str
        Methods that could not be fitted with some number of components, and why.
    settings : dict
    test : LossTest or None
        Whether a random division would show the losses of ordinary PCA; None with ``repeated_rows``.
    expected_losses : dict
        Number of components -> label -> average loss of random groups of these sizes.
    moments : GroupMoments
        Moments of all rows, from which losses in the sample and explained variance are computed.
    features : FeatureStudy or None
        Which features reveal the group, and whether a loss depends on a rare value or a handful of rows.
    held_out_counts : tuple of int
        Rows of each group among those held out for decisions and for methods that need rows.
    label : Label or None
        Name and classes of ``y``.
    claims : tuple of Claim
        Everything that is stated of groups. Claims of one kind hold together.

    See Also
    --------
    compare : Computes it.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.model_selection import compare
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> groups = np.repeat(["a", "b"], 100)
    >>> found = compare(X, sensitive_features=groups, n_components=2, methods=["PCA"], n_permutations=19)
    >>> found.groups, found.counts, [result.method for result in found.results]
    (('a', 'b'), (100, 100), ['PCA'])
    """

    results: list[MethodResult]
    groups: tuple[Any, ...]
    counts: tuple[int, ...]
    n_samples: int
    n_features: int
    omitted: list[str]
    settings: dict[str, Any]
    test: LossTest | None
    expected_losses: dict[int, dict[Any, float]]
    moments: GroupMoments = field(repr=False)
    n_sampled: int | None = None
    features: FeatureStudy | None = None
    held_out_counts: tuple[int, ...] = ()
    label: Label | None = None
    claims: tuple[Claim, ...] = ()

    def __getitem__(self, key: tuple[str, int]) -> MethodResult:
        for result in self.results:
            if (result.method, result.n_components) == key:
                return result
        raise KeyError(key)

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(result.method for result in self.results))

    @property
    def dimensions(self) -> list[int]:
        return sorted({result.n_components for result in self.results})

    @property
    def shown(self) -> list[MethodResult]:
        """The results that say something of the groups."""
        return [result for result in self.results if not result.nothing_to_compare]

    @property
    def remarks(self) -> list[str]:
        """Which results tables leave out, and which methods reverse or widen the gap that they should narrow."""
        said = []
        for result in self.results:
            about = f"{result.method} with {components_text(result.n_components)}"
            if result.nothing_to_compare:
                said.append(f"{about} {result.nothing_to_compare}, so nothing is compared.")
            elif result.gap_remark:
                said.append(f"{about}: {result.gap_remark}")
        return said

    def of_kind(self, kind: str, method: str | None = None, n_components: int | None = None) -> list[Claim]:
        """The claims of one kind, perhaps only those about one method and number of components."""
        return [
            claim
            for claim in self.claims
            if claim.kind == kind and method in (None, claim.method) and n_components in (None, claim.n_components)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON, as described by :func:`fairpca.audit.schema`.

        Labels with the same text, such as 1 and "1", are written as in Python.
        """
        labels = label_texts(self.groups)
        return {
            "schema_version": SCHEMA_VERSION,
            "groups": dict(zip(labels, self.counts, strict=True)),
            "held_out_rows": dict(zip(labels, self.held_out_counts, strict=False)),
            "n_samples": self.n_samples,
            "n_sampled": self.n_sampled,
            "n_features": self.n_features,
            "label": None if self.label is None else self.label.as_dict(),
            "settings": self.settings,
            "omitted": self.omitted,
            "expected_losses": {
                str(d): dict(zip(label_texts(values), values.values(), strict=True))
                for d, values in self.expected_losses.items()
            },
            "proxies": None if self.features is None else self.features.as_dict(),
            "influence": {} if self.features is None else self.features.influence_as_dict(),
            "claims": [claim.as_dict() for claim in self.claims],
            "results": [result.as_dict() | {"chance": self.chance(result.n_components)} for result in self.results],
        }

    def save(self, path: Any) -> Path:
        """Write all values as JSON, atomically: the file appears complete or not at all."""
        return write_text(path, json.dumps(self.as_dict(), indent=2, allow_nan=False) + "\n")

    def chance(self, n_components: int) -> dict[str, Any]:
        """For ordinary PCA: p-values, overall and by group, and whether a random division would not show its losses."""
        if self.test is None:
            return {"p_value": None, "claimed": False, "groups": {}}
        found = self.test[n_components]
        groups = dict(zip(label_texts(found.by_group), (one.p_value for one in found.by_group.values()), strict=True))
        return {"p_value": found.p_value, "claimed": found.rejected, "groups": groups}

    def _records(self) -> list[dict[str, Any]]:
        records = []
        for result in self.results:
            for record in result.new_rows._records():
                expected = self.expected_losses[result.n_components][record["group"]]
                head = {"method": result.method, "n_components": result.n_components}
                chance = {"expected_by_chance": expected if result.method == "PCA" else None}
                records.append(head | record | chance | {"explained_variance": result.explained_variance})
        return records

    def _cells(self) -> list[dict[str, str]]:
        return [
            {"method": result.method, "components": str(result.n_components)} | row
            for result in self.shown
            for row in result.new_rows._cells()
        ]

    def _sentences(self) -> tuple[list[str], list[str]]:
        above = [f"{self.n_samples:,} rows, {self.n_features} features; groups {group_sizes(self.groups, self.counts)}"]
        above += [claim.text for claim in self.claims] or ["Nothing is shown of the groups."]
        return above, [*self.remarks, *(f"Left out: {reason}" for reason in self.omitted)]


def _plain(values: GroupValues, *, joint: bool = False) -> dict[str, Any]:
    """Values and intervals, for JSON: of groups alone (or joint), of the gap joint where there is such an interval."""
    gap = values.gap

    def plain(one: Estimate) -> list[float | None]:
        return [None if math.isnan(number) else number for number in (one.value, one.low, one.high)]

    return {
        "groups": dict(
            zip(label_texts(values), (plain(one.joint if joint else one) for one in values.values()), strict=True)
        ),
        "overall": values.overall,
        "gap": plain(gap if math.isnan(gap.joint_low) else gap.joint),
    }
