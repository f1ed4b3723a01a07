"""``--fail-if``: conditions on the values of an audit, for use in a pipeline. A tiny grammar; nothing is evaluated."""

from __future__ import annotations

import argparse
import math
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from fairpca.inference._display import number
from fairpca.model_selection import METHODS, Comparison, MethodResult

__all__ = ["EXIT_CODE", "NAMES", "Threshold", "check_thresholds", "failed_thresholds", "threshold"]

#: Returned if a condition is met.
EXIT_CODE = 3
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_PATTERN = re.compile(r"\s*(?:([A-Za-z]+)\.)?([a-z0-9_]+)(?:@(\d{1,6}))?\s*(<=|>=|<|>)\s*(\S+)\s*")
_DECISIONS = ("demographic_parity", "equal_opportunity", "equalized_odds")


def _gap(of: str, end: str) -> Callable[[MethodResult], float]:
    return lambda result: getattr(getattr(result, of).gap, end)


def _held_out(name: str) -> Callable[[MethodResult], float | None]:
    return lambda result: getattr(result.held_out, name)


#: Values of one method with one number of components.
_OF_RESULT: dict[str, Callable[[MethodResult], float | None]] = {
    **{f"{name}_gap": _gap(name, "value") for name in ("loss", "corrected_loss", "error")},
    **{f"{name}_gap_low": _gap(name, "low") for name in ("corrected_loss", "error")},
    "explained_variance": lambda result: result.explained_variance,
    **{name: _held_out(name) for name in ("auc", "auc_low", "mmd2", "adversary", "accuracy", *_DECISIONS)},
}
#: Values of ordinary PCA, of the features or of the rows, whatever the method.
_OF_DATA = ("loss_gap_p", "proxy_auc", "features_auc", "smallest_group")
NAMES = (*_OF_DATA, *_OF_RESULT)
_NEED_LABEL = ("accuracy", *_DECISIONS)


@dataclass(frozen=True)
class Threshold:
    """A condition such as ``FairPCA.corrected_loss_gap@5 > 1``; without a method, that of ordinary PCA."""

    text: str
    method: str
    name: str
    n_components: int | None
    sign: str
    bound: float

    def met(self, value: float) -> bool:
        """Whether the condition holds for this value."""
        return _OPERATORS[self.sign](value, self.bound)


def threshold(text: str) -> Threshold:
    """Parse a condition.

    Examples
    --------
    >>> from fairpca.cli._thresholds import threshold
    >>> found = threshold("fairpca.auc@5 >= 0.6")
    >>> found.method, found.name, found.n_components, found.sign, found.bound
    ('FairPCA', 'auc', 5, '>=', 0.6)
    """
    match = _PATTERN.fullmatch(text)
    bound = None if match is None else _number(match[5])
    if match is None or bound is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a condition such as 'loss_gap_p < 0.01' or 'FairPCA.auc@5 > 0.6': a name, one of "
            "< <= > >=, and a number"
        )
    method, name, dimension, sign, _ = match.groups()
    if name not in NAMES:
        raise argparse.ArgumentTypeError(f"{text!r}: {name!r} is not one of {', '.join(NAMES)}")
    known = {one.lower(): one for one in METHODS}
    if method is not None and method.lower() not in known:
        raise argparse.ArgumentTypeError(f"{text!r}: {method!r} is not one of {', '.join(METHODS)}")
    if method is not None and name in _OF_DATA:
        raise argparse.ArgumentTypeError(f"{text!r}: {name} does not depend on the method; leave {method!r} out")
    chosen = "PCA" if method is None else known[method.lower()]
    return Threshold(text, chosen, name, None if dimension is None else int(dimension), sign, bound)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None


def check_thresholds(arguments: argparse.Namespace, dimensions: list[int] | None) -> None:
    """Refuse, before the data is read, conditions that these options can never decide."""
    for one in arguments.fail_if:
        if one.name in _NEED_LABEL and arguments.label is None:
            raise ValueError(f"--fail-if {one.text!r} needs a label; name its column with --label.")
        if one.name == "loss_gap_p" and arguments.repeated_rows:
            raise ValueError(f"--fail-if {one.text!r}: with --repeated-rows there is no p-value.")
        if arguments.methods is not None and one.method not in arguments.methods:
            raise ValueError(f"--fail-if {one.text!r} names {one.method}, which --methods leaves out.")
        if one.n_components is not None and dimensions is not None and one.n_components not in dimensions:
            raise ValueError(
                f"--fail-if {one.text!r} names {one.n_components} components, which --components leaves out."
            )


def failed_thresholds(comparison: Comparison, conditions: list[Threshold]) -> list[str]:
    """One line per condition that is met, or that cannot be decided: a missing value must not pass unnoticed."""
    return [line for one in conditions if (line := _failure(comparison, one)) is not None]


def _failure(comparison: Comparison, one: Threshold) -> str | None:
    values = list(_values(comparison, one))
    met = [(where, value) for where, value in values if value is not None and one.met(value)]
    if met:
        where, value = (min if one.sign in ("<", "<=") else max)(met, key=lambda pair: pair[1])
        return f"--fail-if {one.text}: met, {one.name} = {_exact(value)}{where}"
    missing = [where for where, value in values if value is None]
    if missing or not values:
        return f"--fail-if {one.text}: cannot be decided, {one.name} is not available{(missing or [''])[0]}"
    return None


def _exact(value: float) -> str:
    return f"{value:g}" if abs(value) < 1 else number(value)


def _values(comparison: Comparison, one: Threshold) -> Iterator[tuple[str, float | None]]:
    """Where, and the value; for every number of components unless one is named."""
    if one.name == "smallest_group":
        yield "", float(min(comparison.counts))
    elif one.name in ("proxy_auc", "features_auc"):
        yield "", _of_features(comparison, one.name)
    else:
        for result in comparison.results:
            if result.method == one.method and one.n_components in (None, result.n_components):
                yield f" ({one.method}, d = {result.n_components})", _value(comparison, result, one.name)


def _of_features(comparison: Comparison, name: str) -> float | None:
    found = comparison.features
    if found is None:
        return None
    return found.together.auc if name == "features_auc" else found.proxies.features[0].auc


def _value(comparison: Comparison, result: MethodResult, name: str) -> float | None:
    if name == "loss_gap_p":
        return None if comparison.test is None else comparison.test[result.n_components].p_value
    value: Any = _OF_RESULT[name](result)
    return None if value is None or not math.isfinite(value) else float(value)
