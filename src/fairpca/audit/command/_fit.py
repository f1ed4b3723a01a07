"""``fairpca fit``: fit one method to a file and save the model."""

from __future__ import annotations

import argparse
import inspect
import json
import warnings
from typing import Any

from fairpca import estimators
from fairpca._labels import label_text
from fairpca.audit.command._audit import print_remarks
from fairpca.audit.command._options import load
from fairpca.audit.command._output import Command, check_output
from fairpca.audit.command._tables import clean
from fairpca.audit.model import PreparedModel

__all__ = ["FIT"]

#: Parameters whose values are functions.
_CODE = frozenset({"callback"})


def _run(arguments: argparse.Namespace) -> int:
    check_output(arguments.out, arguments.data, endings=(".npz",))
    estimator = _estimator(arguments)
    takes_moments = hasattr(estimator, "fit_moments")
    if arguments.stream and not takes_moments:
        raise ValueError(
            f"{arguments.method} compares the rows themselves, so it cannot be fitted in one pass: omit --stream, "
            "give a sample of the rows, or fit it to a Dask collection in Python."
        )
    # A method that needs the rows reads a large table into memory.
    data = load(arguments, stream=None if takes_moments else False)
    if not arguments.json:
        print_remarks(data, arguments)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if data.moments is not None:
            estimator.fit_moments(data.moments)
        else:
            weights = {} if data.weights is None else {"sample_weight": data.weights}
            values = {"continuous": data.continuous} if data.continuous else {}
            estimator.fit(data.X, data.label, sensitive_features=data.groups, **weights, **values)
    notes = list(dict.fromkeys(str(warning.message) for warning in caught))
    path = PreparedModel(estimator, data.preparation).save(arguments.out)
    _print_result(estimator, notes, str(path), as_json=arguments.json)
    return 0


def _estimator(arguments: argparse.Namespace) -> Any:
    estimator = getattr(estimators, arguments.method)(arguments.components)
    if arguments.continuous and "continuous" not in inspect.signature(estimator.fit).parameters:
        raise ValueError(
            f"--continuous: {arguments.method} knows groups only; choose ParityPCA or LeacePCA, or omit it."
        )
    known = sorted(set(estimator.get_params()) - set(_CODE))
    if "random_state" in known:
        estimator.set_params(random_state=arguments.seed)
    for name, _ in arguments.set:
        if name in _CODE:
            raise ValueError(f"--set {name} takes a function, which cannot be given here; omit it, or use Python.")
        if name not in known:
            raise ValueError(f"--set {name}: {arguments.method} has no such parameter; choose from {', '.join(known)}.")
    return estimator.set_params(**dict(arguments.set))


def _print_result(estimator: Any, notes: list[str], path: str, *, as_json: bool) -> None:
    errors, losses = (
        {
            label_text(group): float(one)
            for group, one in zip(estimator.groups_, getattr(estimator, name, ()), strict=False)
        }
        for name in ("group_errors_", "group_losses_")
    )
    ratios = getattr(estimator, "explained_variance_ratio_", None)
    kept = None if ratios is None else float(ratios.sum())
    if as_json:
        named = {"model": path, "estimator": type(estimator).__name__, "explained_variance": kept}
        print(json.dumps({**named, "error": errors, "loss": losses, "notes": notes}, indent=2))
        return
    print(" ".join(repr(estimator).split()))
    for group, error in errors.items():
        print(f"  {clean(group)}: error {error:.4f}, loss {losses[group]:.4f}")
    if kept is not None:
        print(f"  explained variance {kept:.1%}")
    for note in notes:
        print(f"  note: {note}")
    print(f"Model: {path}")


FIT = Command(
    "fit",
    _run,
    "fit one method to a file and save the model",
    "Fits one estimator and saves it together with the way the columns were prepared, so that `fairpca transform` "
    "treats new files the same way. The model file holds numbers and text only: loading one from an untrusted source "
    "executes nothing.",
    "example: fairpca fit credit.csv --sensitive sex --method FairPCA --components 5 --set criterion=error --out m.npz",
    {"out": "fairpca-model.npz"},
)
