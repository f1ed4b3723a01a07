"""KernelParityPCA: equal group means in the feature space of a kernel."""

from __future__ import annotations

import numbers
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from fairpca._validation import (
    Groups,
    check_choice,
    check_grouped_rows,
    check_matrix,
    check_number,
    check_several_groups,
    check_wanted_components,
    checks_keywords,
    generator,
    legacy_generator,
)
from fairpca.estimators._dimension import fewest_of_nested
from fairpca.estimators._kinds import in_kind
from fairpca.estimators._linear_projection import FloatTransformer
from fairpca.linalg import canonical_basis, fix_signs, threads_for
from fairpca.moments import GroupMoments
from fairpca.moments._accumulate import accumulate
from fairpca.problems.parity import mean_differences, mean_gaps, mean_parity_basis

__all__ = ["KernelParityPCA"]

_KERNELS = ("rbf", "poly", "linear")
#: Up to this many rows, each row is a landmark, and the result is exact.
_EXACT_ROWS = 2000
#: Number of landmarks beyond that.
_LANDMARKS = 500
#: Directions with less than this share of the leading eigenvalue, about the mean, are rounding errors.
_RANK_SHARE = 1e-10
#: Rows whose features are computed at a time.
_BLOCK_ROWS = 4096


class KernelParityPCA(FloatTransformer):
    """Kernel principal components along which all groups have the same mean (Kleindessner et al. 2023).

    With phi the feature map of the kernel, S the covariance of the ``phi(x_i)`` and m_a the mean of group a in the
    feature space, it solves

    ``max_V <S, V V^T>``  subject to  ``V^T (m_a - m_b) = 0`` for all groups a, b

    over orthonormal V in the feature space: :class:`ParityPCA` after a change of coordinates. The features are
    represented exactly by the kernel values at all training rows or, for many rows, by the projection on the span
    of some of them, the landmarks (Nystroem's method).

    Parameters
    ----------
    n_components : int, float or None, default=2
        Number of dimensions kept. None: all directions of the feature space with equal group means. A share between 0
        and 1: the fewest with which every group keeps that share of its variance in the feature space, about the mean
        of all rows.
    kernel : {"rbf", "poly", "linear"}, default="rbf"
        ``exp(-gamma ||x - y||^2)``, ``(gamma x.y + coef0)^degree`` or ``x.y``.
    gamma : float or None, default=None
        None means 1 / n_features, as in :class:`sklearn.decomposition.KernelPCA`.
    degree : int, default=3
        At least 1.
    coef0 : float, default=1
        Must not be negative, or the polynomial would not be a valid kernel.
    n_landmarks : int or None, default=None
        Rows, drawn at random, in whose span the features are represented. None takes all rows up to 2000, which is
        exact, and 500 of them beyond. The group means are equal to rounding either way; fewer landmarks cost
        variance, not parity.
    random_state : int, RandomState or None
        For the choice of landmarks; None is a fixed seed.

    Attributes
    ----------
    landmarks_ : array or sparse matrix of shape (n_landmarks, n_features)
        With the linear kernel on dense rows, centred at the mean of all rows.
    dual_coef_ : ndarray of shape (n_landmarks, n_components)
        Scores are ``k(x, landmarks_) @ dual_coef_`` up to a shift; the largest entry of each column is positive.
    explained_variance_ : ndarray of shape (n_components,)
        Variances of the scores (divisor n - 1), descending.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        As shares of the variance of all features in the span of the landmarks.
    groups_, group_counts_ : ndarray of shape (n_groups,)
    mean_difference_ : float
        The largest distance between two group means of the scores, zero to rounding.
    n_components_, n_features_in_, feature_names_in_, n_samples_seen_
        As in :class:`sklearn.decomposition.PCA`.

    See Also
    --------
    ParityPCA : The linear method, with a tolerance and a penalty on covariances.

    Notes
    -----
    The scores have equal group means, so linear rules on them find no difference of means. That is a statement about
    the kept directions of the feature space: equal means along *all* of them would, for the RBF kernel, mean equal
    distributions. Other differences, such as that of the spread of the scores, remain.

    References
    ----------
    Kleindessner, Donini, Russell and Zafar (2023). Efficient Fair PCA for Fair Representation Learning. AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import KernelParityPCA
    >>> rng = np.random.default_rng(0)
    >>> groups = np.repeat(["a", "b"], 100)
    >>> X = rng.normal(size=(200, 3))
    >>> X[:100] *= 2
    >>> scores = KernelParityPCA(2, gamma=0.2).fit_transform(X, sensitive_features=groups)
    >>> bool(abs(scores[:100].mean(axis=0) - scores[100:].mean(axis=0)).max() < 1e-10)
    True
    """

    # Pipeline, GridSearchCV and cross_validate pass the groups on without a request by the user.
    __metadata_request__fit = {"sensitive_features": True}  # noqa: RUF012 (scikit-learn reads a plain dict)

    _saved_attributes: ClassVar = ("_shift",)

    def __init__(
        self,
        n_components: int | float | None = 2,
        *,
        kernel: str = "rbf",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        n_landmarks: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    @checks_keywords
    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit to data.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
            The group of each row. Required. If X is a data frame: or the name of a column of X, or a list of names,
            which are then not features.
        sample_weight : array-like of shape (n_samples,), optional
            Counts like repeated rows.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, groups, weights = check_grouped_rows(self, X, sensitive_features, sample_weight)
        X = X.astype(np.float64) if sparse.issparse(X) else np.array(X, dtype=np.float64, order="C")
        self.landmarks_ = X[self._choose_landmarks(X.shape[0], weights)]
        if self.kernel == "linear" and not sparse.issparse(X):
            # Shifting the rows does not change the directions, but rows far from the origin would lose precision.
            self.landmarks_ = self.landmarks_ - np.average(X, axis=0, weights=weights)
        with threads_for(X.shape[0] * self.landmarks_.shape[0] ** 2):
            whitening, rounding = self._whitening()
            moments = self._feature_moments(X, whitening, groups, weights)
            check_several_groups(moments.labels, moments.total_count)
            basis = mean_parity_basis(moments, self._check_dimension(moments, rounding), rounding)
            self._set_components(moments, whitening, basis)
        return self

    @in_kind
    def transform(self, X: Any) -> np.ndarray:
        """Scores of the rows: ``k(X, landmarks_) @ dual_coef_``, shifted to mean zero on the training rows."""
        check_is_fitted(self)
        X = check_matrix(self, X, reset=False)
        with threads_for(X.shape[0] * self.landmarks_.size):
            batches = gen_batches(X.shape[0], _BLOCK_ROWS)
            blocks = [self._centred_kernel(X[rows]) @ self.dual_coef_ for rows in batches]
        return (np.concatenate(blocks) - self._shift).astype(X.dtype, copy=False)

    def _check_parameters(self) -> None:
        check_wanted_components(self.n_components)
        check_choice("kernel", self.kernel, _KERNELS)
        gamma: Any = self.gamma
        number = isinstance(gamma, numbers.Real) and not isinstance(gamma, bool)
        if gamma is not None and not (number and 0 < gamma < np.inf):
            raise ValueError(f"gamma={gamma!r} must be a positive number, or None for 1 / n_features.")
        check_number("degree", self.degree, at_least=1, integer=True)
        check_number("coef0", self.coef0, at_least=0)
        if self.n_landmarks is not None:
            check_number("n_landmarks", self.n_landmarks, at_least=2, integer=True)
        legacy_generator(self.random_state)  # raises if it is not a valid random state

    @property
    def _n_features_out(self) -> int:
        return self.dual_coef_.shape[1]

    def _choose_landmarks(self, n_rows: int, weights: np.ndarray | None) -> np.ndarray:
        candidates = np.arange(n_rows) if weights is None else np.flatnonzero(weights)
        wanted = self.n_landmarks
        if wanted is None:
            wanted = len(candidates) if len(candidates) <= _EXACT_ROWS else _LANDMARKS
        if wanted >= len(candidates):
            return candidates
        return np.sort(generator(self.random_state, "landmarks").choice(candidates, wanted, replace=False))

    def _kernel(self, X: Any) -> np.ndarray:
        return pairwise_kernels(
            X,
            self.landmarks_,
            metric=self.kernel,
            filter_params=True,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
        )

    def _centred_kernel(self, X: Any) -> np.ndarray:
        """Values minus their mean over the landmarks: coefficients sum to zero, and this part would only be rounded."""
        values = self._kernel(X)
        values -= values.mean(axis=1, keepdims=True)
        return values

    def _whitening(self) -> tuple[np.ndarray, np.ndarray]:
        """W with ``K W W^T K = K`` for the kernel K centred at the mean of the landmarks, and the rounding it lifts.

        ``k(x, landmarks) @ W`` are coordinates of phi(x), up to a shift, in the span of the differences of landmarks.
        Uncentred, a mean far from the origin would hide directions of variance below the rounding errors.
        """
        kernel = self._kernel(self.landmarks_)
        rounding = np.finfo(float).eps * float(np.abs(kernel).max()) * np.sqrt(len(kernel))
        kernel -= kernel.mean(axis=0)
        kernel -= kernel.mean(axis=1, keepdims=True)
        values, vectors = np.linalg.eigh(kernel)
        kept = values > max(_RANK_SHARE * values[-1], rounding)
        if not kept.any():
            raise ValueError(
                f"The kernel has the same value for all rows of X; choose another kernel than {self.kernel!r} (see "
                "gamma), or scale X."
            )
        whitening = vectors[:, kept] / np.sqrt(values[kept])
        return whitening, rounding * np.linalg.norm(whitening, axis=0)

    def _feature_moments(
        self, X: Any, whitening: np.ndarray, groups: Groups, weights: np.ndarray | None
    ) -> GroupMoments:
        """Moments of the features, a block of rows at a time."""
        moments = GroupMoments.empty(whitening.shape[1])
        for rows in gen_batches(X.shape[0], _BLOCK_ROWS):
            members = Groups(groups.labels, groups.codes[rows])
            features = self._centred_kernel(X[rows]) @ whitening
            moments = moments.merge(accumulate(features, members, None if weights is None else weights[rows]))
        return moments

    def _check_dimension(self, moments: GroupMoments, rounding: np.ndarray) -> int:
        available = moments.n_features - mean_differences(moments, rounding).shape[1]
        if self.n_components is None and available:
            return available
        if isinstance(self.n_components, float) and available:
            return fewest_of_nested(mean_parity_basis(moments, available, rounding), moments, self.n_components)
        if available < (self.n_components or 1):
            raise ValueError(
                f"n_components={self.n_components}, but the kernel features of these rows, with {self.n_features_in_} "
                f"feature(s), have only {available} directions with equal group means; lower n_components."
            )
        return int(self.n_components or 1)

    def _set_components(self, moments: GroupMoments, whitening: np.ndarray, basis: np.ndarray) -> None:
        covariance = moments.pooled_covariance()
        basis = canonical_basis(basis, covariance)
        # The signs in the whitened coordinates are arbitrary, so the sign rule is applied to the row coefficients.
        dual = whitening @ basis
        signed = fix_signs(dual)
        basis = basis * np.sign(np.einsum("mi,mi->i", signed, dual))
        total_count, total = moments.total_count, float(np.trace(covariance))
        captured = np.maximum(np.einsum("pi,pi->i", basis, covariance @ basis), 0.0)
        self.dual_coef_ = signed
        self._shift = moments.pooled_mean @ basis
        self.explained_variance_ = captured * total_count / (total_count - 1.0)
        self.explained_variance_ratio_ = captured / total if total > 0 else np.zeros_like(captured)
        self._set_labels(moments.labels, moments.counts)
        self.mean_difference_ = float(mean_gaps(moments, basis).max())
        self.n_components_ = basis.shape[1]
