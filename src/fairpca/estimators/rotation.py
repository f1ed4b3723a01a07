"""Rotated loadings, which are easier to name than components, in the same subspace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fairpca._optional import require
from fairpca._validation import check_choice
from fairpca.estimators._kinds import in_kind
from fairpca.linalg import fix_signs

__all__ = ["RotatedComponents", "rotate", "varimax"]

#: The search for the rotation stops once a step changes the criterion by less than this share.
_TOLERANCE = 1e-12
_MOST_STEPS = 1000


@dataclass(frozen=True, repr=False)
class RotatedComponents:
    """Loadings and scores after a rotation: what ``rotated`` of a fitted estimator returns.

    The subspace is that of the estimator, and so are all reconstructions, errors, losses and the certificate:
    ``mean_ + transform(X) @ loadings_.T`` equals ``inverse_transform(transform(X))`` of the estimator.

    Attributes
    ----------
    estimator : estimator
        The fitted estimator.
    rotation : ndarray of shape (n_components, n_components)
        The orthogonal matrix R.
    loadings_ : ndarray of shape (n_features, n_components)
        The loadings of the estimator times R, by descending sum of squares; the largest entry of each column is
        positive.

    See Also
    --------
    fairpca.plotting.LoadingsDisplay : Draws the loadings.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_german_credit
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> pca = FairPCA(n_components=4).fit(X, sensitive_features=sex)
    >>> rotated = pca.rotated("varimax")
    >>> restored = pca.mean_ + rotated.transform(X) @ rotated.loadings_.T
    >>> bool(np.allclose(restored, pca.inverse_transform(pca.transform(X))))
    True
    """

    estimator: Any
    rotation: np.ndarray
    loadings_: np.ndarray

    def __repr__(self) -> str:
        return f"<RotatedComponents: {self.loadings_.shape[1]} components of {self.loadings_.shape[0]} features>"

    @in_kind
    def transform(self, X: Any) -> Any:
        """Scores of variance 1 times R, which are uncorrelated with each other wherever the estimator's are."""
        spread = np.sqrt(self.estimator.explained_variance_)
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        return self.estimator.transform(X) @ (scale[:, None] * self.rotation)

    def to_frame(self) -> Any:
        """The loadings as a :class:`pandas.DataFrame`, one row per feature (needs pandas)."""
        names = getattr(self.estimator, "feature_names_in_", [f"x{j}" for j in range(len(self.loadings_))])
        columns = [f"component {j + 1}" for j in range(self.loadings_.shape[1])]
        return require("pandas", "to_frame").DataFrame(self.loadings_, index=list(names), columns=columns)


def rotate(estimator: Any, method: str) -> RotatedComponents:
    """Rotate the loadings of a fitted estimator."""
    check_choice("method", method, ("varimax",))
    check_is_fitted(estimator)
    loadings = estimator.loadings_
    rotation = varimax(loadings)
    rotation = rotation[:, np.argsort(-((loadings @ rotation) ** 2).sum(axis=0), kind="stable")]
    rotated = loadings @ rotation
    signed = fix_signs(rotated)
    flips = np.where((signed * rotated).sum(axis=0) < 0, -1.0, 1.0)
    return RotatedComponents(estimator, rotation * flips, signed)


def varimax(loadings: np.ndarray) -> np.ndarray:
    """The rotation R that maximises the variance of the squared entries of each column of ``loadings @ R`` (Kaiser).

    Each step takes the orthogonal matrix nearest to the gradient, which never lowers the criterion.
    """
    rotation, before = np.eye(loadings.shape[1]), 0.0
    for _ in range(_MOST_STEPS):
        rotated = loadings @ rotation
        gradient = loadings.T @ (rotated**3 - rotated * (rotated**2).mean(axis=0))
        left, values, right = np.linalg.svd(gradient)
        rotation = left @ right
        if values.sum() <= before * (1 + _TOLERANCE):
            break
        before = values.sum()
    return rotation
