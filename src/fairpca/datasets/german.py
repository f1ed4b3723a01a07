"""German credit (UCI, CC BY 4.0), bundled."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from fairpca._optional import require

__all__ = ["load_german_credit"]

_COLUMNS = (
    "checking_status", "duration", "credit_history", "purpose", "credit_amount", "savings", "employment",
    "installment_rate", "personal_status_sex", "other_debtors", "residence_since", "property", "age",
    "other_installment_plans", "housing", "existing_credits", "job", "people_liable", "telephone",
    "foreign_worker", "credit_risk",
)  # fmt: skip
_NUMERIC = frozenset(
    {
        "duration",
        "credit_amount",
        "installment_rate",
        "residence_since",
        "age",
        "existing_credits",
        "people_liable",
    }
)
_FEMALE = ("A92", "A95")


def load_german_credit(
    *, return_X_s: bool = False, as_frame: bool = False, scaled: bool = True
) -> Bunch | tuple[Any, Any]:
    """Load the German credit data: 1000 applicants, their sex, and whether the credit was repaid.

    Categories are one-hot encoded. The column that combines marital status and sex is left out of the features,
    since it would reveal the group.

    Parameters
    ----------
    return_X_s : bool, default=False
        Return ``(X, sex)`` instead of everything.
    as_frame : bool, default=False
        Return pandas objects (needs pandas).
    scaled : bool, default=True
        Standardise each column to mean 0 and standard deviation 1; otherwise the raw amount would dominate.

    Returns
    -------
    Bunch
        ``data`` (1000, 57), ``sensitive_features`` ("female" or "male"), ``target`` (1 = good credit, 0 = bad),
        ``feature_names`` and ``DESCR``.

    See Also
    --------
    make_toy : A small synthetic example.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> X.shape, sorted(set(sex.tolist()))
    ((1000, 57), ['female', 'male'])
    """
    folder = files("fairpca.datasets") / "data"
    rows = [line.split() for line in (folder / "german.data").read_text(encoding="ascii").splitlines()]
    table = dict(zip(_COLUMNS, map(np.array, zip(*rows, strict=True)), strict=True))
    sex = np.where(np.isin(table["personal_status_sex"], _FEMALE), "female", "male")
    names, columns = _encode(table)
    data = np.column_stack(columns)
    if scaled:
        data = (data - data.mean(axis=0)) / data.std(axis=0)
    target = (table["credit_risk"] == "1").astype(np.int64)
    if as_frame:
        data, sex, target = _frames(data, names, sex, target)
    if return_X_s:
        return data, sex
    return Bunch(
        data=data,
        sensitive_features=sex,
        target=target,
        feature_names=names,
        DESCR=(folder / "german.md").read_text(encoding="utf-8"),
    )


def _encode(table: dict[str, np.ndarray]) -> tuple[list[str], list[np.ndarray]]:
    """Numeric columns unchanged, and one 0/1 column for each level that occurs."""
    names: list[str] = []
    columns: list[np.ndarray] = []
    for name in _COLUMNS[:-1]:
        if name in _NUMERIC:
            names.append(name)
            columns.append(table[name].astype(np.float64))
        elif name != "personal_status_sex":
            for level in np.unique(table[name]):
                names.append(f"{name}={level}")
                columns.append((table[name] == level).astype(np.float64))
    return names, columns


def _frames(data: np.ndarray, names: list[str], sex: np.ndarray, target: np.ndarray) -> tuple[Any, Any, Any]:
    pd = require("pandas", "as_frame=True")
    return (
        pd.DataFrame(data, columns=names),
        pd.Series(sex, name="sex"),
        pd.Series(target, name="credit_risk"),
    )
