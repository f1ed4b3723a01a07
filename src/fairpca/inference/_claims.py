"""Claims: what is stated of groups. Every one of them holds together with all others of its kind from the same call."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fairpca._display import with_interval
from fairpca._labels import label_text

if TYPE_CHECKING:
    from fairpca.inference.cross_validation import GroupEvaluation

__all__ = ["KINDS", "Claim", "claims_on_new_rows", "components_text"]

KINDS = ("chance", "losses", "errors", "change", "readable", "feature", "decisions")


@dataclass(frozen=True)
class Claim:
    """One statement about groups.

    Attributes
    ----------
    kind : {"chance", "losses", "errors", "change", "readable", "feature", "decisions"}
        A random division would not show this; losses or errors of two groups differ on new rows; a method changes the
        error of a group; the group can be read off the scores, or off a feature; decisions differ.
    method : str
        The method that it is about; empty for a feature.
    n_components : int or None
    groups : tuple
        The groups that it is about, the one with the larger value first.
    value, low, high : float
        What it rests on: a difference with its joint interval, an AUC with its own interval, or a p-value.
    text : str
        The statement as a sentence.

    See Also
    --------
    cross_validate_groups, fairpca.model_selection.compare : Return claims.

    Examples
    --------
    >>> from fairpca.inference import Claim
    >>> Claim("losses", "PCA", 5, ("female", "male"), 1.1, 0.2, 2.0, "...").kind
    'losses'
    """

    kind: str
    method: str
    n_components: int | None
    groups: tuple[Any, ...]
    value: float
    low: float
    high: float
    text: str

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        numbers = {name: None if math.isnan(one) else one for name, one in vars(self).items() if isinstance(one, float)}
        return asdict(self) | {"groups": [label_text(label) for label in self.groups]} | numbers


def components_text(n_components: int) -> str:
    return "1 component" if n_components == 1 else f"{n_components} components"


def claims_on_new_rows(found: Iterable[GroupEvaluation]) -> Iterator[Claim]:
    """Differences of losses and errors, and changes against ordinary PCA, whose joint intervals exclude zero."""
    for one in found:
        if not one.independent:
            continue
        start = f"On new rows, under {one.method} with {components_text(one.n_components)}, "
        about = (one.method, one.n_components)
        for kind, values, word in (("losses", one.corrected_loss, "loss"), ("errors", one.error, "error")):
            if (pair := values.shown_pair) is not None:
                gap, (high, low) = values.pairs[pair].joint, map(label_text, pair)
                text = f"{start}the {word} of “{high}” is larger than that of “{low}”, by {with_interval(gap)}."
                yield Claim(kind, *about, pair, gap.value, gap.low, gap.high, text)
        for label, change in one.change.by_group.items():
            if change.excludes_zero:
                gap, verb = change.joint, "raised" if change > 0 else "lowered"
                size = with_interval(gap if change > 0 else -gap)
                text = f"{start}the error of “{label_text(label)}” is {verb} against ordinary PCA, by {size}."
                yield Claim("change", *about, (label,), gap.value, gap.low, gap.high, text)
