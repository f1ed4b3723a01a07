"""The components of a projection passed by the user."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

__all__ = ["fitted_components", "fitted_encoder", "fitted_projection"]


def fitted_components(projector: Any, name: str) -> np.ndarray:
    """``components_`` of a fitted linear estimator, or the array itself; ``name`` is the name of the argument."""
    components = getattr(projector, "components_", projector)
    if components is projector and hasattr(projector, "fit"):
        kind = type(projector).__name__
        check_is_fitted(projector, msg=f"{name} is a {kind} that is not fitted; call its fit first.")
        raise ValueError(
            f"{name} is a {kind}, which has no components_: kernel methods and other nonlinear methods have "
            "no linear reconstruction; pass a linear estimator."
        )
    return np.asarray(components, dtype=np.float64)


def fitted_encoder(projector: Any) -> np.ndarray | None:
    """Columns that map centred rows to scores, where they are not the components themselves; None if they are.

    LeacePCA has such a ``projection_``; it reconstructs rows from its scores by its components, as others do.
    """
    encoder = getattr(projector, "projection_", None)
    return None if encoder is None else np.asarray(encoder, dtype=np.float64).T


def fitted_projection(estimator: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """The basis and the encoder (see :func:`fitted_encoder`) of a fitted linear estimator."""
    return estimator.components_.T, fitted_encoder(estimator)
