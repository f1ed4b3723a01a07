"""What the loaders of bundled tables of people share: encoding, scaling, and what they return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from fairpca._optional import require


def bundled(name: str) -> bytes:
    """The content of a bundled file."""
    return (files("fairpca.datasets") / "data" / name).read_bytes()


def columns_of(rows: Iterable[list[str]], names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The texts of each column."""
    return dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))


def encode(
    table: Mapping[str, np.ndarray], numeric: Iterable[str], *, least: float = 0.0
) -> tuple[list[str], np.ndarray]:
    """Names and values: numeric columns unchanged, and indicators of the levels with a share of ``least`` or more."""
    features: dict[str, np.ndarray] = {}
    for name, texts in table.items():
        if name in numeric:
            features[name] = texts.astype(np.float64)
            continue
        for level in np.unique(texts):
            indicator = texts == level
            if indicator.mean() >= least:
                features[f"{name}={level}"] = indicator.astype(np.float64)
    return list(features), np.column_stack(list(features.values()))


def offer(
    data: np.ndarray,
    names: list[str],
    people: Mapping[str, tuple[str, np.ndarray]],
    description: str,
    *,
    return_X_s: bool,
    as_frame: bool,
    scaled: bool,
) -> Any:
    """What a loader returns. ``people``: by key of the Bunch, name and values of each column that is not a feature."""
    if scaled:
        data = (data - data.mean(axis=0)) / data.std(axis=0)
    found = {key: values for key, (_, values) in people.items()}
    if as_frame:
        pd = require("pandas", "as_frame=True")
        data = pd.DataFrame(data, columns=names)
        found = {key: pd.Series(values, name=name) for key, (name, values) in people.items()}
    if return_X_s:
        return data, found["sensitive_features"]
    return Bunch(data=data, **found, feature_names=names, DESCR=bundled(description).decode("utf-8"))
