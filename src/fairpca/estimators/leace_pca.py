"""LeacePCA: PCA of rows from which every linear trace of the group has been removed by the least change."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fairpca._validation import check_matrix, generator
from fairpca.estimators._base import Fit
from fairpca.estimators._dimension import all_directions
from fairpca.estimators._erased import group_bests, leading_of_erased_rows
from fairpca.estimators._kinds import in_kind
from fairpca.estimators._uncorrelated import UncorrelatedEstimator
from fairpca.moments._group_moments import Reduction
from fairpca.problems.erasure import Erasure, least_squares_erasure
from fairpca.problems.parity import check_available

__all__ = ["LeacePCA"]


class LeacePCA(UncorrelatedEstimator):
    """Principal components of rows from which everything that predicts the group linearly has been erased.

    First every row x is replaced by ``r(x) = x - W^+ P W (x - m)`` (least-squares concept erasure, Belrose et al.
    2023), where m is the pooled mean, W the pseudo-inverse of the square root of the pooled covariance S, and P the
    orthogonal projection on the column space of ``W cov(x, Z)``, with Z the indicators of the groups. Among all affine
    maps after which the rows are uncorrelated with the groups, this one changes the rows least. Then the components V
    are those of ordinary PCA of the erased rows, and the scores are ``V^T (r(x) - m)``.

    Parameters
    ----------
    n_components : int, float or None, default=2
        Number of dimensions kept, at most n_features minus the number of independent mean differences (one less than
        the number of groups) and of continuous sensitive features; None keeps that many. A share between 0 and 1: the
        fewest components with which every group keeps that share of its variance about the pooled mean
        (``partial_fit`` needs an integer). An error names the largest share reached if it is out of reach.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        V: orthonormal rows, the principal components of the erased rows, with uncorrelated scores, by descending
        variance; the largest entry of each is positive. They span the space of reconstructions.
    projection_ : ndarray of shape (n_components, n_features)
        The map from centred rows to scores, ``transform(X) = (X - mean_) @ projection_.T``: erasure and projection in
        one. Its rows are not orthonormal, and orthogonal to the differences between group means.
    erasure_ : ndarray of shape (n_features, n_features)
        The matrix A of the erasure, ``r(x) = mean_ + A (x - mean_)``; computed on access, see also :meth:`erase`.
    erased_directions_, erased_coefficients_ : ndarray of shape (n_erased, n_features)
        D and C with ``A = I - D^T C``: orthonormal rows that span what is subtracted, and how much of it.
    mean_, n_components_, n_features_in_, feature_names_in_, n_samples_seen_
        As in :class:`sklearn.decomposition.PCA`.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Variances of the scores, and their shares of the variance of the rows *before* erasure. On the training rows the
        sum of the shares is also one minus the reconstruction error divided by the variance.
    noise_variance_ : float
        Variance that is not explained, of the rows before erasure, per remaining dimension.
    groups_, group_counts_ : ndarray of shape (n_groups,)
    group_errors_, group_losses_ : ndarray of shape (n_groups,)
        Mean squared distance between the original rows and ``inverse_transform(transform(X))``, and how much lower it
        would be with the best projection for this group alone.
    continuous_ : list of str
        Names of the continuous sensitive features; empty without any. With these alone, ``groups_`` is ``["all"]``.
    continuous_slopes_ : ndarray of shape (n_continuous,)
        Length of the change of the mean scores per standard deviation of each of them: zero up to rounding.
    objective_ : float
        Minus the variance of the scores (divisor N).
    lower_bound_, duality_gap_ : float
        A lower bound on the objective of any linear map to n_components scores that are uncorrelated with the groups,
        with any linear reconstruction, where the objective is its error minus the variance of the rows.
    n_iter_, n_oracle_calls_ : int
    converged_ : bool

    See Also
    --------
    ParityPCA : The same parity by an orthogonal projection.

    Notes
    -----
    Both LeacePCA and ParityPCA give scores that are uncorrelated with the groups, so that no linear classifier predicts
    the group from them better than a constant on the training rows; neither hides it from other classifiers.
    ParityPCA is the best *orthogonal projection* with that property. LeacePCA is the best *linear* map: no
    d scores that are linear functions of the rows and uncorrelated with the groups allow a linear reconstruction of the
    original rows with a smaller mean squared error, so that its explained variance is at least that of ParityPCA.

    The price is that the map is oblique. ``inverse_transform(scores)`` is ``mean_ + scores @ components_``: the best
    linear reconstruction of the original rows from the scores, which lies in the space of erased rows, because what
    was erased cannot be restored. The projection of a row on ``components_`` is *not* its score. There is therefore no
    equivalent scikit-learn PCA, and ``to_sklearn`` raises.

    The map depends on the data only through the group means and the pooled covariance. Features may have any units:
    rank is decided after scaling each feature to unit variance. If features are nearly collinear along a difference
    between the groups, entries of ``projection_`` are large: new rows that leave the collinearity get large scores, and
    rounding errors of variances and errors grow with the square of the norm of ``projection_`` (a norm of 10,000: to
    about 1e-8 of the variance).

    References
    ----------
    Belrose, Schneider-Joseph, Ravfogel, Cotterell, Raff and Biderman (2023). LEACE: Perfect linear concept erasure in
    closed form. NeurIPS.

    Examples
    --------
    >>> from fairpca import LeacePCA, ParityPCA
    >>> from fairpca.datasets import load_german_credit
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> pca = LeacePCA(n_components=3).fit(X, sensitive_features=sex)
    >>> scores = pca.transform(X)
    >>> gap = scores[sex == "female"].mean(axis=0) - scores[sex == "male"].mean(axis=0)
    >>> bool(abs(gap).max() < 1e-10)
    True
    >>> orthogonal = ParityPCA(n_components=3).fit(X, sensitive_features=sex)
    >>> bool(pca.explained_variance_ratio_.sum() > orthogonal.explained_variance_ratio_.sum())
    True
    """

    def __init__(self, n_components: int | float | None = 2) -> None:
        self.n_components = n_components

    @property
    def erasure_(self) -> np.ndarray:
        return np.eye(self.n_features_in_) - self.erased_directions_.T @ self.erased_coefficients_

    @in_kind
    def erase(self, X: Any) -> np.ndarray:
        """The rows without linear traces of the group, in the original features: ``r(x)``.

        Examples
        --------
        >>> import numpy as np
        >>> from fairpca import LeacePCA
        >>> X, groups = np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 3.0], [4.0, 1.0]]), ["a", "a", "b", "b"]
        >>> erased = LeacePCA(n_components=1).fit(X, sensitive_features=groups).erase(X)
        >>> bool(np.allclose(erased[:2].mean(axis=0), erased[2:].mean(axis=0)))
        True
        """
        check_is_fitted(self)
        return self._erasure.of_rows(check_matrix(self, X, reset=False), self.mean_)

    def to_sklearn(self) -> Any:
        """Always raises: no orthogonal projection has the same scores and reconstructions."""
        raise TypeError(
            "LeacePCA erases before it projects, an affine map that scikit-learn's PCA cannot represent; use "
            "ParityPCA, or apply erase and fit sklearn.decomposition.PCA to the result."
        )

    @property
    def _encoder(self) -> np.ndarray:
        return self.projection_

    @property
    def _erasure(self) -> Erasure:
        return Erasure(self.erased_directions_.T, self.erased_coefficients_.T)

    def _all_components(self, reduction: Reduction) -> int:
        erased = least_squares_erasure(reduction).directions.shape[1]
        return max(all_directions(reduction) - erased, 1)

    def _takes_operators(self) -> bool:
        return isinstance(self.n_components, int | np.integer)

    def _solve(self, reduction: Reduction, n_components: int) -> Fit:
        erasure, rng = least_squares_erasure(reduction), generator(None, "LeacePCA")
        check_available(erasure.directions, n_components, "lower n_components")
        result = leading_of_erased_rows(reduction, erasure, n_components, rng)
        encoder = erasure.transpose(result.basis)
        # What is captured is that of the orthogonal projection without the oblique part of the map.
        captured, oblique = (
            np.einsum("aii->a", reduction.forms(columns)) for columns in (result.basis, result.basis - encoder)
        )
        return Fit(
            result=result,
            totals=reduction.traces(),
            captured=captured - oblique,
            best=group_bests(reduction, n_components, rng),
            score_covariance=reduction.coordinates.pooled_form(encoder),
            attributes={
                "erased_directions_": _lifted(reduction, erasure.directions).T.copy(),
                "erased_coefficients_": _lifted(reduction, erasure.coefficients).T.copy(),
            },
        )

    def _set_projection(self, basis: np.ndarray, reduction: Reduction, form: np.ndarray | None = None) -> None:
        super()._set_projection(basis, reduction, form)
        self.projection_ = self._erasure.transpose(self.components_.T).T.copy()


def _lifted(reduction: Reduction, vectors: np.ndarray) -> np.ndarray:
    """Vectors in coordinates of the reduction, as vectors of features."""
    if not vectors.size:
        return np.zeros((reduction.n_features, 0))
    basis, factor = np.linalg.qr(vectors)
    return reduction.lift(basis) @ factor
