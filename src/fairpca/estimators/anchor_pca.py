"""AnchorPCA: components on which the groups' own principal subspaces agree."""

from __future__ import annotations

import numpy as np

from fairpca._validation import check_number
from fairpca.estimators._base import Fit, MomentEstimator
from fairpca.linalg import top_eigenpairs
from fairpca.moments._group_moments import Reduction
from fairpca.problems.balanced import best_captured
from fairpca.protocols import SolverResult, Status

__all__ = ["AnchorPCA"]

#: Agreements that differ by less than min(0.05, n^-0.4 / 2), n the size of the smallest group, count as equal: they
#: differ by chance even where the population's do not (the defaults of Seiter et al. 2026).
_LARGEST_TIE, _TIE_FACTOR, _TIE_EXPONENT = 0.05, 0.5, -0.4


class AnchorPCA(MomentEstimator):
    """Principal components that agree with those of every group alone, each group counting the same.

    With S_a the covariance of group a about its own mean, Pi_a the projection on the d leading components of S_a, and k
    groups, it maximises over d-dimensional projections P (Seiter et al. 2026)

    ``mean_a <S_a, P> + 2 k penalty mean_a <Pi_a, P>``.

    It is meant for a new group that is in none of the rows: directions that vary in all groups are likely to vary in
    that one, too.

    Parameters
    ----------
    n_components : int, float or None, default=2
        Number of dimensions kept, 1 to n_features. A share between 0 and 1: the fewest components with which every
        group keeps that share of its variance tr M_a (``partial_fit`` needs an integer). None: all, as in PCA.
    penalty : float, default=numpy.inf
        How much agreement counts, in units of the variance; 0 gives ``FairPCA(criterion="mean", center="group")``. If
        infinite, directions are taken in order of their agreement, and those that agree equally in order of their
        variance ``mean_a <S_a, P>``.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal rows with uncorrelated scores, by descending variance; the largest entry of each is positive.
    agreement_ : ndarray of shape (n_components,)
        ``mean_a ||Pi_a v||^2`` for each component v: 1 if it lies in the own principal subspace of every group.
    mean_, explained_variance_, explained_variance_ratio_, noise_variance_, n_components_, n_features_in_, \
feature_names_in_, n_samples_seen_
        As in :class:`sklearn.decomposition.PCA`.
    groups_, group_counts_ : ndarray of shape (n_groups,)
    group_errors_, group_losses_ : ndarray of shape (n_groups,)
        As in :class:`FairPCA`, about the pooled mean.
    objective_, lower_bound_, duality_gap_ : float
        Minus the sum above or, if the penalty is infinite, minus ``mean_a <Pi_a, P>``; the bound is the value of the
        leading eigenvectors, and the gap what is given up where agreements count as equal.
    n_iter_, n_oracle_calls_ : int
    converged_ : bool
        Always True: a closed form.

    See Also
    --------
    FairPCA : Minimises the largest loss instead.

    Notes
    -----
    Agreements count as equal if they differ from the largest of them by less than ``min(0.05, n ** -0.4 / 2)``, with n
    the size of the smallest group, as in the authors' code.

    On six tables, every group left out once, it kept less of the unseen group's variance than
    ``FairPCA(criterion="mean", center="group")`` in 26 of 40 groups, with two and with five components, and neither
    more nor less than the worst case throughout (docs/comparison.md).

    References
    ----------
    Seiter, Fries, von Kügelgen and Peters (2026). Anchor PCA. arXiv 2606.06233.

    Examples
    --------
    >>> from fairpca import AnchorPCA
    >>> from fairpca.datasets import load_german_credit
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> pca = AnchorPCA(n_components=3).fit(X, sensitive_features=sex)
    >>> pca.transform(X).shape
    (1000, 3)
    >>> bool((pca.agreement_ > 0.5).all())
    True
    """

    def __init__(self, n_components: int | float | None = 2, *, penalty: float = np.inf) -> None:
        self.n_components = n_components
        self.penalty = penalty

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.penalty != np.inf:
            check_number("penalty", self.penalty, at_least=0)

    def _solve(self, reduction: Reduction, n_components: int) -> Fit:
        within, matrices = reduction.second_moments("group"), reduction.second_moments()
        own = [top_eigenpairs(matrix, n_components)[1] for matrix in within]
        agreement = np.mean([basis @ basis.T for basis in own], axis=0)
        if self.penalty == np.inf:
            tie = min(_LARGEST_TIE, _TIE_FACTOR * float(reduction.counts.min()) ** _TIE_EXPONENT)
            target, basis = agreement, _in_order_of_agreement(agreement, within.mean(axis=0), n_components, tie)
        else:
            target = within.mean(axis=0) + 2.0 * len(within) * self.penalty * agreement
            basis = top_eigenpairs(target, n_components)[1]
        objective = -float(np.einsum("pi,pi->", basis, target @ basis))
        bound = -float(best_captured(target[None], n_components)[0])
        basis, _ = self._oriented(basis, reduction.pooled_form(basis))
        weights = np.full(len(within), 1.0 / len(within))
        return Fit(
            result=SolverResult(basis, objective, bound, weights, Status.OPTIMAL, n_iter=1, n_oracle_calls=1),
            totals=reduction.traces(),
            captured=np.einsum("pi,api->a", basis, matrices @ basis),
            best=best_captured(matrices, n_components),
            attributes={"agreement_": np.einsum("pi,pi->i", basis, agreement @ basis)},
        )


def _in_order_of_agreement(agreement: np.ndarray, variance: np.ndarray, count: int, tie: float) -> np.ndarray:
    """Leading eigenvectors of ``agreement``; among those within ``tie`` of the first, by ``variance``."""
    values, vectors = np.linalg.eigh(agreement)
    values, vectors, start, parts = values[::-1], vectors[:, ::-1], 0, []
    while start < count:
        stop = start + int((values[start:] >= values[start] - tie).sum())
        block = vectors[:, start:stop]
        parts.append(block @ top_eigenpairs(block.T @ variance @ block, min(stop, count) - start)[1])
        start = stop
    return np.hstack(parts)
