"""German credit (UCI, CC BY 4.0), bundled."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from fairpca.datasets._people import bundled, columns_of, encode, offer

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
    load_adult : A larger table.

    Examples
    --------
    >>> from fairpca.datasets import load_german_credit
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> X.shape, sorted(set(sex.tolist()))
    ((1000, 57), ['female', 'male'])
    """
    lines = bundled("german.data").decode("ascii").splitlines()
    table = columns_of((line.split() for line in lines), _COLUMNS)
    sex = np.where(np.isin(table.pop("personal_status_sex"), _FEMALE), "female", "male")
    target = (table.pop("credit_risk") == "1").astype(np.int64)
    names, data = encode(table, _NUMERIC)
    people = {"sensitive_features": ("sex", sex), "target": ("credit_risk", target)}
    return offer(data, names, people, "german.md", return_X_s=return_X_s, as_frame=as_frame, scaled=scaled)
