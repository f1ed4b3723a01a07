"""``--fail-if``: end with an exit code of its own if a comparison makes a claim of some kind."""

from __future__ import annotations

import argparse
from typing import NamedTuple

from fairpca.inference._claims import KINDS
from fairpca.model_selection import METHODS, Comparison

__all__ = ["EXIT_CODE", "KINDS", "Condition", "check_conditions", "condition", "conditions_met", "known_method"]

#: Returned if a claim is made.
EXIT_CODE = 3


class Condition(NamedTuple):
    """A kind of claim, perhaps about one method only."""

    kind: str
    method: str | None

    def __str__(self) -> str:
        return ":".join(filter(None, self))


def condition(text: str) -> Condition:
    """Parse a condition.

    Examples
    --------
    >>> from fairpca.audit.command._fail_if import condition
    >>> condition("readable:fairpca")
    Condition(kind='readable', method='FairPCA')
    """
    kind, _, method = text.strip().partition(":")
    if kind not in KINDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not KIND or KIND:METHOD, with KIND one of {', '.join(KINDS)}")
    if method and kind == "feature":
        raise argparse.ArgumentTypeError(f"{text!r}: claims about features do not depend on the method")
    return Condition(kind, known_method(method) if method else None)


def known_method(text: str) -> str:
    """The name of a method, however its letters are written."""
    known = {name.lower(): name for name in METHODS}
    if text.strip().lower() not in known:
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(METHODS)}")
    return known[text.strip().lower()]


def check_conditions(arguments: argparse.Namespace) -> None:
    """Refuse, before the data is read, conditions that these options can never meet."""
    for one in arguments.fail_if:
        if arguments.repeated_rows:
            raise ValueError(f"--fail-if {one}: with --repeated-rows nothing is claimed.")
        if one.kind == "decisions" and arguments.label is None:
            raise ValueError(f"--fail-if {one} needs a label; name its column with --label.")
        if arguments.methods is not None and one.method is not None and one.method not in arguments.methods:
            raise ValueError(f"--fail-if {one} names {one.method}, which --methods leaves out.")


def conditions_met(comparison: Comparison, conditions: list[Condition]) -> list[str]:
    """One line per claim that meets a condition."""
    return [f"--fail-if {one}: {claim.text}" for one in conditions for claim in comparison.of_kind(*one)]
