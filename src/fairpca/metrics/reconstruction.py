"""How well a projection represents each group: the quantities that FairPCA and RobustFairPCA balance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from fairpca._validation import (
    check_choice,
    check_flag,
    check_groups,
    check_plain_matrix,
    check_sample_weight,
    split_off_groups,
    without_sensitive_columns,
)
from fairpca.linalg import top_eigenpairs
from fairpca.metrics._components import fitted_components, fitted_encoder
from fairpca.metrics._group_values import GroupValues
from fairpca.moments import GroupMoments
from fairpca.moments._accumulate import accumulate
from fairpca.problems.evaluation import Evaluation, captured_variances, without_rounding

__all__ = [
    "check_projector",
    "explained_variance_ratio",
    "reconstruction_error",
    "reconstruction_loss",
]

Center = Literal["pooled", "group"]


def reconstruction_error(
    X: Any,
    projector: Any,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    center: Center = "pooled",
    mean: Any = None,
    relative: bool = False,
) -> float | GroupValues:
    """Mean squared distance between the rows and their reconstruction.

    ``z_a = tr M_a - <M_a, V V^T>``, with M_a the second moment of group a.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Any data, for example held-out rows.
    projector : fitted estimator or array of shape (n_components, n_features)
        Anything with orthonormal ``components_`` (fairpca's estimators, scikit-learn's PCA), or the matrix itself.
        For LeacePCA, whose scores are not those of an orthogonal projection, the reconstruction is that of
        ``inverse_transform(transform(X))``.
    sensitive_features : array-like, optional
        The groups; without them, the value for all rows is returned.
    sample_weight : array-like, optional
        Counts like repeated rows.
    center : {"pooled", "group"}, default="pooled"
        Distances about the projector's mean, or about each group's own mean in X.
    mean : array-like of shape (n_features,), optional
        Replaces the projector's mean. A bare matrix has none: then the mean of X is used.
    relative : bool, default=False
        Whether to divide by the variance ``tr M_a`` of each group in X, so that values are shares of it, as FairPCA
        with ``relative=True`` balances them. The value for a group without variance is 0.0.

    Returns
    -------
    float, or GroupValues when ``sensitive_features`` is given
        In squared units of the data. Its ``gap`` is the ABDiff of Vu et al. (2022), for two groups.

    See Also
    --------
    reconstruction_loss : The part due to sharing the components.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.metrics import reconstruction_error
    >>> X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    >>> errors = reconstruction_error(X, np.array([[1.0, 0.0]]), sensitive_features=["a", "a", "b", "b"])
    >>> errors["a"], errors["b"], errors.gap, errors.overall
    (0.0, 4.0, 4.0, 2.0)
    >>> reconstruction_error(X, np.array([[1.0, 0.0]]), sensitive_features=["a", "a", "b", "b"], relative=True)["b"]
    1.0
    """
    check_flag("relative", relative)
    view = _View(X, projector, sensitive_features, sample_weight, center, mean)
    return view.report(view.evaluation.errors, relative=relative)


def reconstruction_loss(
    X: Any,
    projector: Any,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    center: Center = "pooled",
    mean: Any = None,
    reference: tuple[Any, Any] | None = None,
    relative: bool = False,
) -> float | GroupValues:
    """Reconstruction error in excess of the best possible with the same number of components for each group alone.

    ``l_a = b_a - <M_a, V V^T>``, with b_a the sum of the largest eigenvalues of M_a (Samadi et al. 2018, Definition
    4.3): the variance that the group's own best components capture. The overall value is the loss of all rows taken as
    one group. Other parameters as in :func:`reconstruction_error`.

    Parameters
    ----------
    reference : (X, sensitive_features), optional
        The rows on which each group's own components are computed; default: the rows of X, as in the papers. Components
        that are evaluated on the rows they were computed from overfit, and more so the fewer rows a group has. If X
        was not used in fitting, pass the training rows: both sides of the comparison are then evaluated on new rows,
        and a loss may be negative.
    X, projector, sensitive_features, sample_weight, center, mean : as in reconstruction_error
        The rows, the projection, the groups and how they are measured.
    relative : bool, default=False
        Whether to divide by the variance of each group in X, as in :func:`reconstruction_error`.

    Returns
    -------
    float, or GroupValues when ``sensitive_features`` is given
        In squared units of the data, or a share of the variance if ``relative``.

    See Also
    --------
    fairpca.inference.cross_validate_groups : Losses on new rows with confidence intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.metrics import reconstruction_loss
    >>> X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    >>> dict(reconstruction_loss(X, np.array([[1.0, 0.0]]), sensitive_features=["a", "a", "b", "b"]))
    {'a': 0.0, 'b': 4.0}

    New rows of group b that vary in another direction than its training rows:

    >>> new = np.array([[3.0, 0.0], [-3.0, 0.0], [3.0, 0.0], [-3.0, 0.0]])
    >>> loss = reconstruction_loss(
    ...     new, np.array([[1.0, 0.0]]), sensitive_features=["a", "a", "b", "b"], reference=(X, ["a", "a", "b", "b"])
    ... )
    >>> loss["b"]
    -9.0
    """
    check_flag("relative", relative)
    view = _View(X, projector, sensitive_features, sample_weight, center, mean)
    if reference is None:
        return view.report(view.evaluation.losses, relative=relative)
    return view.report(view.losses_against(_reference_moments(reference, view)), relative=relative)


def _reference_moments(reference: Any, view: _View) -> GroupMoments:
    """Moments of the rows on which own components are computed, checked against the rows of X."""
    if not isinstance(reference, tuple) or len(reference) != 2:
        raise TypeError(
            "reference must be a pair (X, sensitive_features), for example the training rows and their groups."
        )
    rows, labels = split_off_groups(None, *reference) if view.grouped else reference
    rows = check_plain_matrix(rows)
    if rows.shape[1] != view.n_features:
        raise ValueError(f"reference has {rows.shape[1]} features, but X has {view.n_features}: pass the same columns.")
    labels = labels if view.grouped else np.zeros(rows.shape[0], dtype=np.uint8)
    moments = accumulate(rows, check_groups(labels, rows.shape[0]))
    missing = [label for label in view.labels if label not in moments.labels]
    if missing:
        raise ValueError(f"reference has no rows of group {missing[0]!r}, which occurs in sensitive_features.")
    return moments


def explained_variance_ratio(
    X: Any,
    projector: Any,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    center: Center = "pooled",
    mean: Any = None,
) -> float | GroupValues:
    """Share of the variance that the projection keeps, ``<M_a, V V^T> / tr M_a``: overall and by group.

    It is 1 minus the reconstruction error divided by the variance, and this is what is computed for LeacePCA, too.
    The value for a group without variance is 1.0.

    Parameters
    ----------
    X, projector, sensitive_features, sample_weight, center, mean : as in reconstruction_error
        The rows, the projection, the groups and how they are measured.

    Returns
    -------
    float, or GroupValues when ``sensitive_features`` is given
        Between 0 and 1.

    See Also
    --------
    reconstruction_error : What is not kept, in squared units.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.metrics import explained_variance_ratio
    >>> X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    >>> round(explained_variance_ratio(X, np.array([[1.0, 0.0]])), 3)
    0.2
    """
    view = _View(X, projector, sensitive_features, sample_weight, center, mean)
    return view.report(1.0 - view.relative(view.evaluation.errors))


class _View:
    """Second moments of the groups and, as the last one, of all rows, as a projector sees them."""

    def __init__(
        self, X: Any, projector: Any, sensitive_features: Any, sample_weight: Any, center: str, mean: Any
    ) -> None:
        self.grouped = sensitive_features is not None
        X, labels = split_off_groups(None, X, sensitive_features) if self.grouped else (X, None)
        X = check_plain_matrix(without_sensitive_columns(projector, X))
        groups = check_groups(labels if self.grouped else np.zeros(X.shape[0], dtype=np.uint8), X.shape[0])
        moments = accumulate(X, groups, check_sample_weight(sample_weight, X.shape[0]))
        self._basis = check_projector(projector, X.shape[1])
        point = _mean(projector, mean, moments)
        self._center = "group" if check_choice("center", center, ("pooled", "group")) == "group" else point
        self.labels, self.n_features = moments.labels, moments.n_features
        self._matrices = self._with_all_rows(moments, range(len(self.labels)))
        self.evaluation = Evaluation(self._matrices, self._basis, fitted_encoder(projector))

    def _with_all_rows(self, moments: GroupMoments, order: Sequence[int]) -> np.ndarray:
        matrices = moments.second_moments(self._center)
        return np.concatenate([matrices[list(order)], np.tensordot(moments.shares, matrices, axes=1)[None]])

    def losses_against(self, reference: GroupMoments) -> np.ndarray:
        """Losses relative to components computed from other rows."""
        others = self._with_all_rows(reference, [reference.labels.index(label) for label in self.labels])
        own = [
            captured_variances(matrix[None], top_eigenpairs(other, self._basis.shape[1])[1])[0]
            for matrix, other in zip(self._matrices, others, strict=True)
        ]
        return without_rounding(np.array(own) - self.evaluation.captured, self.evaluation.totals)

    def relative(self, values: np.ndarray) -> np.ndarray:
        """As shares of the variance; 0 where there is none."""
        totals = self.evaluation.totals
        return np.divide(values, totals, out=np.zeros_like(values), where=totals > 0)

    def report(self, values: np.ndarray, *, relative: bool = False) -> float | GroupValues:
        *by_group, overall = map(float, self.relative(values) if relative else values)
        return GroupValues(dict(zip(self.labels, by_group, strict=True)), overall) if self.grouped else overall


def check_projector(projector: Any, n_features: int) -> np.ndarray:
    """An orthonormal basis, in columns, of the subspace that a projector keeps."""
    components = np.atleast_2d(fitted_components(projector, "projector"))
    if components.ndim != 2 or components.shape[1] != n_features:
        raise ValueError(
            f"projector has components of shape {components.shape}, but X has {n_features} features: pass a fitted "
            "estimator or an array of shape (n_components, n_features)."
        )
    gram = components @ components.T
    if not np.allclose(gram, np.eye(len(gram)), atol=1e-5):
        raise ValueError(
            "projector must have orthonormal components; for other components pass "
            "numpy.linalg.qr(components.T)[0].T, which spans the same subspace."
        )
    return components.T


def _mean(projector: Any, mean: Any, moments: GroupMoments) -> np.ndarray:
    if mean is None:
        mean = getattr(projector, "mean_", None)
    if mean is None:
        # An estimator without a mean does not center; a bare matrix is applied to centered rows.
        fitted = hasattr(projector, "components_")
        mean = np.zeros(moments.n_features) if fitted else moments.pooled_mean
    mean = np.asarray(mean, dtype=np.float64)
    if mean.shape != (moments.n_features,):
        raise ValueError(f"mean has shape {mean.shape}; X has {moments.n_features} features.")
    return mean
