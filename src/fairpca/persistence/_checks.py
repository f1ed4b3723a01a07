"""Which classes and attributes a model file may hold, and checks that a model is complete and consistent."""

from __future__ import annotations

import numbers
import types
import typing
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from fairpca._saved import (
    BOOL,
    FITTED,
    INTEGER,
    LINEAR,
    SCORED,
    TEXT,
    Array,
    Declared,
    Record,
    optional,
    saved_attributes,
)
from fairpca._validation import check_number, check_wanted_components
from fairpca._values import NOT_SAVED
from fairpca.estimators import ESTIMATORS

#: Attributes of scikit-learn's PCA, which does not declare any itself.
_PCA: dict[str, Declared] = FITTED | SCORED | LINEAR | {
    "singular_values_": Array("d"),
    "n_samples_": INTEGER,
    "_fit_svd_solver": optional(TEXT),  # set by some versions of scikit-learn only
}  # fmt: skip
_OWN: dict[str, Any] = {**ESTIMATORS, "PCA": PCA}


def declared_attributes(estimator_class: Any) -> dict[str, Declared]:
    """The attributes of a class that a file holds, and no others."""
    return _PCA if estimator_class is PCA else saved_attributes(estimator_class)


def record_types(estimator_class: Any) -> dict[str, type]:
    """Dataclasses among the attributes of a class, by name."""
    kinds = [what.kind for what in declared_attributes(estimator_class).values() if isinstance(what, Record)]
    return {kind.__name__: kind for kind in kinds}


def known_classes(classes: Iterable[Any]) -> dict[str, Any]:
    """fairpca's estimators, scikit-learn's PCA and the caller's classes, by name."""
    found = dict(_OWN)
    for one in classes:
        check_savable(one)
        if found.setdefault(one.__name__, one) is not one:
            raise ValueError(f"classes holds two classes named {one.__name__}; rename one of them.")
    return found


def check_savable(estimator_class: Any) -> None:
    """Reject classes that do not declare their fitted attributes, and names that would be loaded as another class."""
    if not isinstance(estimator_class, type) or not declared_attributes(estimator_class):
        name = getattr(estimator_class, "__name__", repr(estimator_class))
        raise TypeError(
            f"{name} cannot be saved; save one of {', '.join(sorted(_OWN))}, or a subclass of "
            "fairpca.estimators.MomentEstimator or LinearProjection."
        )
    name = estimator_class.__name__
    if _OWN.get(name, estimator_class) is not estimator_class:
        raise TypeError(f"{name} cannot be saved: fairpca already has a class of this name; rename yours.")


def fitted_attributes(estimator: Any) -> dict[str, Any]:
    """The attributes that ``fit`` set, private ones included."""
    getattr(estimator, "groups_", None)  # after partial_fit, asking is what computes them
    declared, found = declared_attributes(type(estimator)), vars(estimator)
    undeclared = sorted(name for name in found.keys() - declared.keys() if name.endswith("_"))
    if undeclared and not isinstance(estimator, PCA):
        name = type(estimator).__name__
        raise TypeError(
            f"{name} cannot be saved: it sets {undeclared[0]}, which it does not declare; add it to "
            f"{name}._saved_attributes, with a kind from fairpca.persistence."
        )
    return {name: value for name, value in found.items() if name in declared}


def check_model(estimator: Any) -> None:
    """Check what the methods rely on: parameter types, every attribute that ``fit`` sets, and consistent shapes."""
    _check_parameters(estimator)
    expected, found = declared_attributes(type(estimator)), vars(estimator)
    missing = {name for name, declared in expected.items() if not declared.optional} - found.keys()
    if missing:
        raise ValueError(f"it lacks {min(missing)}, which fit always sets")
    check_is_fitted(estimator)
    sizes = {}
    for letter, name in (("d", "n_components_"), ("p", "n_features_in_")):
        if name in expected:
            sizes[letter] = int(check_number(name, found[name], at_least=1, integer=True))
    for name, what in expected.items():
        if name in found:
            _check_value(name, found[name], what, sizes)


def _check_parameters(estimator: Any) -> None:
    if isinstance(estimator, PCA):
        estimator._validate_params()
        return
    hints = _parameter_types(type(estimator))
    for name, value in estimator.get_params(deep=False).items():
        if name not in NOT_SAVED and not _is_of_type(value, hints.get(name, Any)):
            raise TypeError(f"the parameter {name} is {value!r}, which fit does not accept")
    check_wanted_components(getattr(estimator, "n_components", None))
    estimator._check_transform_parameters()


def _parameter_types(estimator_class: Any) -> dict[str, Any]:
    """The annotated types; none, so that nothing is checked, where annotations use names local to a function."""
    try:
        return typing.get_type_hints(estimator_class.__init__)
    except NameError:
        return {}


def _is_of_type(value: Any, hint: Any) -> bool:
    """Whether a value has the annotated type; numpy numbers count as Python numbers, booleans not as numbers."""
    if hint is Any:
        return True
    if isinstance(hint, types.UnionType):
        return any(_is_of_type(value, part) for part in typing.get_args(hint))
    kind = {int: numbers.Integral, float: numbers.Real}.get(hint, hint)
    return isinstance(value, kind) and (hint is bool or not isinstance(value, bool))


def _check_value(name: str, value: Any, expected: Declared, sizes: dict[str, int]) -> None:
    """Check one attribute; ``sizes`` holds the dimensions seen so far, to which new ones are added."""
    if isinstance(expected, Record):
        if value is None and expected.or_none:
            return
        if not isinstance(value, expected.kind):
            raise TypeError(f"{name} is not a {expected.kind.__name__}")
        for field, what in expected.fields.items():
            _check_value(f"{name}.{field}", getattr(value, field), what, sizes)
    elif isinstance(expected, Array):
        _check_array(name, value, expected, sizes)
    elif not isinstance(value, expected.kinds) or (isinstance(value, bool) and expected.kinds != BOOL.kinds):
        raise TypeError(f"{name} is not {expected.wanted}")


def _check_array(name: str, array: Any, expected: Array, sizes: dict[str, int]) -> None:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in expected.kinds:
        raise TypeError(f"{name} is not an array of the right type")
    if array.ndim != len(expected.shape) or any(
        sizes.setdefault(letter, size) != size for letter, size in zip(expected.shape, array.shape, strict=True)
    ):
        raise ValueError(f"{name} has shape {array.shape}, which is inconsistent with the other attributes")
    if expected.finite and not np.isfinite(array).all():
        raise ValueError(f"{name} holds values that are not finite")
