"""Published differences between groups: would a random division show them, and do they hold on new rows?

These verdicts are about the papers' statements; whether our values match the published ones is a separate question with
verdicts of its own (:class:`~reproductions.Claim`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from fairpca._display import number, p_text, with_interval
from fairpca.inference import GroupEvaluation, LossTest, cross_validate_groups, loss_test
from fairpca.metrics import GroupValues
from fairpca.moments import group_moments
from reproductions._outcome import Table
from reproductions._steps import Steps

__all__ = ["CENTERS", "Difference", "Rows", "count_steps", "difference_tables", "judge", "sentences"]

#: The convention of the library, and that of the papers' experiments.
CENTERS = ("common mean", "own means")

NOTE = (
    "Ordinary PCA. A random division: the labels are permuted; p-values are adjusted for all groups and all d of the "
    "same rows. New rows: ten folds; intervals hold for all d of the same rows together, with 95 % confidence. The "
    "corrected loss is the estimated shortfall of the shared components on new rows against the best components of the "
    "group's population. It is above zero for random groups too: interpret only differences between groups. A smaller "
    "group still has less weight in the shared components, so these differences still depend on sizes, and a ratio of "
    "two losses is largely one of sizes: do not divide them. Do not subtract what is expected by chance from a loss in "
    "the sample either. Common mean: rows as they are, about the mean of all. Own means: the mean of its group is "
    "subtracted from every row first, as in the papers' experiments, and PCA is that of these rows; random divisions "
    "then move rows without their groups' means, so that the test asks whether the groups differ in anything but these."
)


@dataclass(frozen=True)
class Rows:
    """Rows on which a paper compares groups.

    ``where`` says which rows of the data set these are; ``repeats`` says why they are not independent, if that is so
    and cannot be corrected for. Then only a difference that even independent rows would not establish gets a verdict.
    """

    data: str
    X: np.ndarray
    groups: np.ndarray
    where: str = "all rows"
    repeats: str = ""

    def about(self, center: str) -> np.ndarray:
        """The rows as they are or, for own means, with the mean of its group subtracted from every row."""
        if center == "common mean":
            return self.X
        moments = group_moments(self.X, sensitive_features=self.groups)
        codes = {label: code for code, label in enumerate(moments.labels)}
        return self.X - moments.means[[codes[label] for label in self.groups.tolist()]]


@dataclass(frozen=True)
class Difference:
    """A published difference between groups at one number of components, the test and the values on new rows."""

    source: str
    published: str
    data: str
    where: str
    center: str
    test: LossTest
    new_rows: GroupEvaluation
    repeats: str = ""

    @property
    def in_sample(self) -> str:
        """The difference of losses in the sample, and which group has the larger one."""
        losses = {label: one.loss for label, one in self.test.by_group.items()}
        high, low = max(losses, key=losses.__getitem__), min(losses, key=losses.__getitem__)
        return f"{high} above {low} by {number(self.test.gap)}"

    @property
    def by_chance(self) -> str:
        """What follows "a random division into groups of these sizes"."""
        text = p_text(self.test.p_value, self.test.n_permutations)
        if self.test.rejected:
            return f"not judged: {self.repeats}" if self.repeats else f"would not show this (p {text})"
        return f"could show this as well (p {text}{self._even_so})"

    @property
    def losses_on_new_rows(self) -> str:
        return self._on_new_rows("losses", self.new_rows.corrected_loss)

    @property
    def errors_on_new_rows(self) -> str:
        return self._on_new_rows("errors", self.new_rows.error)

    def _on_new_rows(self, what: str, values: GroupValues) -> str:
        shown = values.shown_pair
        high, low = values.between if shown is None else shown
        gap = values.pairs[high, low]
        if shown and self.repeats:
            return f"not judged: {self.repeats}; {high} above {low} by {number(gap)}"
        verb = f"no difference of {what} is shown" if shown is None else f"the {what} differ"
        interval = with_interval(gap.joint).removesuffix(")")
        return f"{verb}: {high} above {low} by {interval}{self._even_so})"

    @property
    def _even_so(self) -> str:
        return ", even if all rows were independent" if self.repeats else ""


def count_steps() -> int:
    """How many times :func:`judge` calls ``steps``."""
    return 2 * len(CENTERS)


def judge(
    rows: Rows, source: str, published: str, dimensions: Sequence[int], n_permutations: int, steps: Steps
) -> list[Difference]:
    """Test the losses of ordinary PCA, and cross-validate them, at all dimensions together."""
    name, found = f"{rows.data}, {rows.where}", []
    for center in CENTERS:
        X = rows.about(center)
        steps(f"{name}: random divisions")
        test = loss_test(
            X, sensitive_features=rows.groups, n_components=dimensions, n_permutations=n_permutations,
            progress=lambda done, total, what: steps.within(f"{name}: {done} of {total} {what}"),
        )  # fmt: skip
        steps(f"{name}: new rows")
        new_rows = cross_validate_groups(PCA(), X, sensitive_features=rows.groups, n_components=dimensions)
        for d in dimensions:
            about = (source, published, rows.data, rows.where, center)
            found.append(Difference(*about, test[d], new_rows[d], rows.repeats))
    return found


def difference_tables(differences: Sequence[Difference]) -> list[Table]:
    """The verdicts, and the values by group on which they are based."""
    if not differences:
        return []
    verdicts = [
        [*_where(one), one.source, one.published, one.in_sample, one.by_chance, one.losses_on_new_rows,
         one.errors_on_new_rows, " ".join(one.new_rows.remarks)]
        for one in differences
    ]  # fmt: skip
    values = [[*_where(one), *line] for one in differences for line in _group_lines(one)]
    return [
        Table(
            "differences", "Published differences between groups: what of them holds",
            [*_WHERE, "source", "published", "PCA's losses in sample", "a random division into groups of these sizes",
             "losses on new rows", "errors on new rows", "note"],
            verdicts, NOTE,
        ),
        Table("differences_by_group", "The same by group", [*_WHERE, *_VALUES], values),
    ]  # fmt: skip


_WHERE = ("data set", "rows", "about", "d")
_VALUES = (
    "group", "group's rows", "loss in sample", "expected by chance", "adjusted p", "corrected loss",
    "corrected loss, low", "corrected loss, high", "error on new rows", "error, low", "error, high",
)  # fmt: skip


def _where(one: Difference) -> list[Any]:
    return [one.data, one.where, one.center, one.test.n_components]


def _group_lines(one: Difference) -> list[list[Any]]:
    """Values by group, without p-values and intervals if these would count the same person several times."""
    lines: list[list[Any]] = []
    for label, chance in one.test.by_group.items():
        p_value = "" if one.repeats else p_text(chance.p_value, one.test.n_permutations).removeprefix("= ")
        line = [str(label), f"{chance.rows:g}", chance.loss, chance.expected, p_value]
        for estimates in (one.new_rows.corrected_loss, one.new_rows.error):
            found = estimates.by_group[label]
            line += [found.value, *(("", "") if one.repeats else (found.low, found.high))]
        lines.append(line)
    return lines


def sentences(differences: Sequence[Difference]) -> list[str]:
    """The number of comparisons with each answer to the two questions, then the answers one by one."""
    if not differences:
        return []
    first, second = (
        Counter(_kind(getattr(one, which)) for one in differences) for which in ("by_chance", "losses_on_new_rows")
    )
    summary = (
        f"Differences between groups, {len(differences)} comparisons of PCA's losses (a question of its own, whatever "
        f"the verdicts above). A random division into groups of these sizes: {_counted(first)}. On new rows: "
        f"{_counted(second)}. See differences.csv."
    )
    return [summary, *map(_sentence, differences)]


def _sentence(one: Difference) -> str:
    remarks = "".join(f" Note: {remark}" for remark in one.new_rows.remarks)
    return (
        f"{one.data}, {one.where}, {one.center}, d = {one.test.n_components}: in the sample {one.in_sample}. A random "
        f"division into groups of these sizes: {one.by_chance}. On new rows: {one.losses_on_new_rows}.{remarks}"
    )


def _kind(text: str) -> str:
    """A verdict without its numbers."""
    return text.split(":")[0].split(" (")[0]


def _counted(kinds: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items())
