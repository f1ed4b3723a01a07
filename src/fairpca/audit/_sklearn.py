"""A preparation in the words of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from fairpca._labels import is_missing
from fairpca.audit.preparation import Preparation
from fairpca.audit.rare import POOLED_LEVEL
from fairpca.audit.texts import MISSING_LEVEL


def column_transformer(preparation: Preparation) -> ColumnTransformer:
    """One entry per column, so that the features come in the same order."""
    parts: list[Any] = []
    if preparation.numeric:
        filled = SimpleImputer(strategy="median") if preparation.fills else "passthrough"
        parts.append(("numbers", make_pipeline(filled, _scaled(preparation)), list(preparation.numeric)))
    for name in preparation.levels:
        filled = FunctionTransformer(_with_missing_level, feature_names_out="one-to-one")
        encoded = make_pipeline(filled, _encoder(preparation, name), _scaled(preparation))
        parts.append((f"levels of {name}", encoded, [name]))
    for name, rows in preparation.imputed.items():
        indicator = MissingIndicator(features="all", sparse=False)
        scaled = _scaled(preparation, with_std=rows >= preparation.min_level)
        parts.append((f"gaps of {name}", make_pipeline(indicator, scaled), [name]))
    return ColumnTransformer(parts, sparse_threshold=0, verbose_feature_names_out=False)


def _scaled(preparation: Preparation, **options: bool) -> Any:
    return StandardScaler(**options) if preparation.standardised else "passthrough"


def _encoder(preparation: Preparation, name: str) -> OneHotEncoder:
    """Rare levels share a column, or have none if they are rare together."""
    levels = set(preparation.levels[name])
    rare = preparation.pooled.get(name, {}).keys() if POOLED_LEVEL in levels else set()
    return OneHotEncoder(
        categories=[np.array(sorted((levels | rare) - ({POOLED_LEVEL} if rare else set())), dtype=object)],
        min_frequency=preparation.min_level if rare else None, handle_unknown="infrequent_if_exist",
        sparse_output=False,
    )  # fmt: skip


def _with_missing_level(X: Any) -> np.ndarray:
    """SimpleImputer knows either None or NaN as a missing text; data frames have both, and NA."""
    texts = np.asarray(X, dtype=object)
    missing = np.array([is_missing(text) for text in texts.ravel()], dtype=bool).reshape(texts.shape)
    return np.where(missing, MISSING_LEVEL, texts)
