"""How much of each feature a projection keeps."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairpca.metrics._components import fitted_components

__all__ = ["communality"]


def communality(projector: Any) -> np.ndarray:
    """Sum of squared loadings of each feature.

    ``sum_i V_ji^2``, the diagonal of the projector: 1 for a feature that is kept entirely, 0 for one that is
    dropped. The communalities of all features sum to the number of components. As used by Lee et al. (2022,
    section J) to show how strongly a sensitive feature, or a proxy of it, enters the components.

    Parameters
    ----------
    projector : fitted estimator or array of shape (n_components, n_features)
        Orthonormal rows; of an estimator, its ``components_``.

    Returns
    -------
    ndarray of shape (n_features,)
        Between 0 and 1.

    See Also
    --------
    fairpca.plotting.CommunalityDisplay : Draws it.

    Examples
    --------
    >>> from fairpca.metrics import communality
    >>> communality([[0.6, 0.8, 0.0]])
    array([0.36, 0.64, 0.  ])
    """
    rows = fitted_components(projector, "projector")
    if rows.ndim != 2:
        raise ValueError(
            f"projector has {rows.ndim} dimensions; pass an array of shape (n_components, n_features) or a "
            "fitted estimator."
        )
    return np.einsum("ij,ij->j", rows, rows)
