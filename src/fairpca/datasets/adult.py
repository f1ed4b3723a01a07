"""Adult (UCI, CC BY 4.0), bundled."""

from __future__ import annotations

import bz2
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from fairpca.datasets._people import bundled, columns_of, encode, offer

__all__ = ["load_adult"]

_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip
_NUMERIC = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_CATEGORICAL = ("workclass", "marital-status", "occupation", "relationship", "race", "native-country")
#: Levels that a smaller share of the people have get no column: standardised, it would fill a component of its own.
_LEAST_SHARE = 0.01


def load_adult(*, return_X_s: bool = False, as_frame: bool = False, scaled: bool = True) -> Bunch | tuple[Any, Any]:
    """Load Adult: 32,561 people in US census data of 1994, their sex, race, whether they earned over 50,000 dollars.

    The features are all columns that describe a person, as they are in the file: categories are one-hot encoded, a
    missing value is the level "unknown", and levels that fewer than 1 % of the people have get no column. Some of them
    say much about the sex: husband and wife are levels of the relationship. The column ``fnlwgt`` of the file is a
    survey weight and not a feature.

    Parameters
    ----------
    return_X_s : bool, default=False
        Return ``(X, sex)`` instead of everything.
    as_frame : bool, default=False
        Return pandas objects (needs pandas).
    scaled : bool, default=True
        Standardise each column to mean 0 and standard deviation 1; otherwise the raw capital gain would dominate.

    Returns
    -------
    Bunch
        ``data`` (32561, 43), ``sensitive_features`` ("female" or "male"), ``target`` (1 = over 50,000 dollars),
        ``race`` (for groups of another kind; leave out its columns of ``data`` then), ``sample_weight`` (the people
        of the population that a row stands for), ``feature_names`` and ``DESCR``, which tells how each column of the
        file is used.

    See Also
    --------
    load_german_credit : A smaller table.

    Examples
    --------
    >>> from fairpca.datasets import load_adult
    >>> adult = load_adult()
    >>> adult.data.shape, int((adult.sensitive_features == "female").sum())
    ((32561, 43), 10771)
    """
    lines = bz2.decompress(bundled("adult.data.bz2")).decode("ascii").split("\n")
    table = columns_of((line.split(", ") for line in lines if line), _COLUMNS)
    described = {name: table[name] for name in _NUMERIC} | {
        name: np.where(table[name] == "?", "unknown", table[name]) for name in _CATEGORICAL
    }
    names, data = encode(described, _NUMERIC, least=_LEAST_SHARE)
    people = {
        "sensitive_features": ("sex", np.char.lower(table["sex"])),
        "target": ("income", (table["income"] == ">50K").astype(np.int64)),
        "race": ("race", table["race"]),
        "sample_weight": ("fnlwgt", table["fnlwgt"].astype(np.float64)),
    }
    return offer(data, names, people, "adult.md", return_X_s=return_X_s, as_frame=as_frame, scaled=scaled)
