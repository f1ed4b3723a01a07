"""Whether attributes that were read from a file make a model that works."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from fairpca.moments import GroupMoments


def check_restored(estimator: Any) -> None:
    """Check that fit would accept the parameters, and that the attributes suffice to map a row there and back."""
    estimator._validate_params() if isinstance(estimator, PCA) else estimator._check_parameters()
    found, n_features = vars(estimator), estimator.n_features_in_
    if not isinstance(found.get("_moments"), GroupMoments | None):
        raise TypeError("_moments are no moments of groups")
    # A false number of features must not exhaust the memory.
    if n_features not in {part.shape[-1] for part in found.values() if isinstance(part, np.ndarray) and part.size}:
        raise ValueError(f"it has no arrays of {n_features} features")
    maps = [(estimator.transform, found.get("n_components_", n_features))]
    if hasattr(estimator, "inverse_transform"):
        maps.append((estimator.inverse_transform, n_features))
    rows = np.zeros((1, n_features))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names of features, and numbers that overflow
        for mapped, size in maps:
            rows = np.asarray(mapped(rows))
            if rows.shape != (1, size) or not np.isfinite(rows).all():
                raise ValueError("its attributes are inconsistent with each other, or not finite")
