"""How an estimator class declares what its fits set, so that fitted models can be saved, loaded and checked.

A class lists its own attributes in ``_saved_attributes``; those of its base classes count as well. An attribute that
only some fits set, or that earlier versions did not set yet, is :func:`optional`.
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = [
    "BOOL",
    "BOUNDED",
    "FITTED",
    "GROUPED",
    "INTEGER",
    "LINEAR",
    "LIST",
    "NUMBER",
    "NUMBERS",
    "PER_GROUP",
    "SCORED",
    "SEARCHED",
    "TEXT",
    "TUPLE",
    "Array",
    "Declared",
    "Plain",
    "Record",
    "optional",
    "saved_attributes",
]


@dataclasses.dataclass(frozen=True)
class Array:
    """Letters are sizes: d components, p features, g groups; any other letter must only have a single value."""

    shape: str
    kinds: str = "fiu"
    finite: bool = False
    optional: bool = False


@dataclasses.dataclass(frozen=True)
class Record:
    """An instance of the dataclass ``kind`` with these fields."""

    kind: type
    fields: Mapping[str, Declared]
    or_none: bool = False
    optional: bool = False


@dataclasses.dataclass(frozen=True)
class Plain:
    """An instance of one of ``kinds``; ``wanted`` is what an error calls it."""

    kinds: tuple[type, ...]
    wanted: str
    optional: bool = False


Declared = Array | Record | Plain

INTEGER = Plain((numbers.Integral,), "an integer")
"""Declares an attribute that is an integer."""
NUMBER = Plain((numbers.Real,), "a number")
"""Declares an attribute that is a number."""
NUMBERS = Plain((numbers.Real, tuple), "a number or a tuple of numbers")
BOOL = Plain((bool, np.bool_), "true or false")
"""Declares an attribute that is true or false."""
TEXT = Plain((str,), "text")
"""Declares an attribute that is text."""
LIST, TUPLE = Plain((list,), "a list"), Plain((tuple,), "a tuple")
PER_GROUP = Array("g")


def optional(declared: Any) -> Any:
    """The same declaration for an attribute that may be absent."""
    return dataclasses.replace(declared, optional=True)


#: What every transformer's fit sets, ...
FITTED: dict[str, Declared] = {
    "n_features_in_": INTEGER,
    "feature_names_in_": Array("p", "OU", optional=True),
    "sensitive_feature_names_in_": Array("c", "OU", optional=True),
}
#: ... what one with scores also sets, ...
SCORED: dict[str, Declared] = {
    "n_components_": INTEGER,
    "explained_variance_": Array("d", finite=True),
    "explained_variance_ratio_": Array("d"),
}
#: ... what a linear projection also sets, ...
LINEAR: dict[str, Declared] = {
    "components_": Array("dp", finite=True),
    "mean_": Array("p", finite=True),
    "noise_variance_": NUMBER,
}
#: ... what a method that uses groups also sets, ...
GROUPED: dict[str, Declared] = {
    "groups_": Array("g", "biufUO"),
    "group_counts_": PER_GROUP,
    "n_samples_seen_": NUMBER,
}
#: ... what an iterative search also sets, and one with a lower bound on the objective.
SEARCHED: dict[str, Declared] = {
    "objective_": NUMBER,
    "n_iter_": INTEGER,
    "n_oracle_calls_": INTEGER,
    "converged_": BOOL,
}
BOUNDED: dict[str, Declared] = {"lower_bound_": NUMBER, "duality_gap_": NUMBER}


def saved_attributes(estimator_class: type) -> dict[str, Declared]:
    """The declarations of a class and its base classes; empty if there are none."""
    found: dict[str, Declared] = {}
    for one in reversed(estimator_class.__mro__):
        found |= vars(one).get("_saved_attributes", {})
    return found
