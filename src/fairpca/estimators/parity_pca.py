"""ParityPCA: components along which the groups have equal means and, optionally, similar covariances."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from fairpca._validation import check_choice, check_number
from fairpca.estimators._base import Fit
from fairpca.estimators._dimension import all_directions
from fairpca.estimators._erased import group_bests, leading_of_covariance, leading_of_erased_rows
from fairpca.estimators._parity import ParitySearch
from fairpca.estimators._uncorrelated import UncorrelatedEstimator
from fairpca.linalg import orthonormalise
from fairpca.moments import AttributeMoments
from fairpca.moments._factors import GroupFactors
from fairpca.moments._group_moments import Reduction
from fairpca.problems.erasure import Erasure
from fairpca.problems.parity import (
    check_available,
    covariance_gaps,
    mean_differences,
    mean_gaps,
    parity_problem,
    without_directions,
)
from fairpca.protocols import SolverResult, Status

__all__ = ["ParityPCA"]

_SOLVERS = ("auto", "sdp")


class ParityPCA(UncorrelatedEstimator):
    """Principal components that reveal little about the group: equal means and, optionally, similar covariances.

    Over orthonormal bases V with d columns it solves (Olfat and Aswani 2019, at rank d)

    ``max <S, V V^T> - mu max_ab ||V^T (Sigma_a - Sigma_b) V||_2``

    subject to ``||V^T (m_a - m_b)|| <= delta`` for all pairs of groups a, b, where S is the pooled covariance and
    m_a, Sigma_a are the mean and covariance of group a. A continuous sensitive feature z, such as age, adds the limit
    ``||V^T cov(x, z)|| / sd(z) <= delta``: with ``delta = 0`` the scores are uncorrelated with it.

    Parameters
    ----------
    n_components : int, float or None, default=2
        Number of dimensions kept. With ``mean_tolerance=0`` at most n_features minus the number of independent
        mean differences (one less than the number of groups) and of continuous sensitive features; None keeps that
        many, whatever the tolerance. A share between 0 and 1: the fewest components, up to that many, with which every
        group keeps that share of its variance about the pooled mean (``partial_fit`` needs an integer). An error names
        the largest share reached if it is out of reach.
    mean_tolerance : float, default=0.0
        delta: the largest accepted distance between two group means after projection, in the units of the data.
        With 0 the means are equal up to rounding. Of a continuous sensitive feature: the largest accepted change of the
        mean scores per standard deviation of it.
    covariance_penalty : float or None, default=None
        mu: how much variance to give up per unit of covariance difference. It has no units, since both are variances.
        None or 0 requests parity of means only. Around 0.5 the difference begins to vanish, and beyond some value (2 on
        the data of the papers) nothing changes any more.
    solver : {"auto", "sdp"}, default="auto"
        "auto" works on the subspace itself: closed form or exact search for the means, smoothing and quasi-Newton
        steps for the covariances. "sdp" is the paper's semidefinite relaxation, as a reference for small n_features
        (needs the extra ``fairpca[sdp]``).
    tol : float, default=1e-6
        Accuracy, relative to the total variance.
    max_iter : int, default=500
        Quasi-Newton steps at each temperature of the smoothing.
    verbose : int, default=0
        If positive, print the steps of the search in shares of the total variance; the closed form has none.
    random_state : int, RandomState or None
        For the additional random starts; None is a fixed seed.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal rows with uncorrelated scores, by descending variance; the largest entry of each is positive.
    mean_, explained_variance_, explained_variance_ratio_, noise_variance_, n_components_, n_features_in_, \
feature_names_in_, n_samples_seen_
        As in :class:`sklearn.decomposition.PCA`.
    groups_, group_counts_ : ndarray of shape (n_groups,)
    group_errors_, group_losses_ : ndarray of shape (n_groups,)
        Mean squared reconstruction error about the pooled mean, and how much lower it would be with the best projection
        for this group alone.
    mean_difference_ : float
        The largest ``||V^T (m_a - m_b)||`` over all pairs.
    continuous_ : list of str
        Names of the continuous sensitive features; empty without any. With these alone, ``groups_`` is ``["all"]``.
    continuous_slopes_ : ndarray of shape (n_continuous,)
        ``||V^T cov(x, z)|| / sd(z)`` for each of them.
    covariance_difference_ : float
        The largest ``||V^T (Sigma_a - Sigma_b) V||_2`` over all pairs.
    objective_ : float
        The minimised quantity at the returned components: ``mu * covariance_difference_`` minus the captured
        variance ``<S, V V^T>`` (divisor N).
    lower_bound_, duality_gap_ : float
        A lower bound for any projection within the mean limits, and the distance from it. The gap closes for parity of
        means (with three or more groups and a tolerance, if the relaxation is tight) and for one component; with a
        covariance penalty and several components the bound is valid but loose.
    n_iter_, n_oracle_calls_ : int
        Steps, and eigenproblems or evaluations of objective and gradient.
    converged_ : bool
        Whether the gap closed. With a covariance penalty it seldom does for several components: these are then
        stationary to ``tol``, from the best of several starts, and optimality is not certified.

    See Also
    --------
    KernelParityPCA : Equal means in the feature space of a kernel.
    LeacePCA : The same parity by an affine map instead of an orthogonal projection, for at least as much variance.
    fairpca.metrics.adversary_gap : How well a classifier still tells the groups apart.

    Notes
    -----
    With equal means no *linear* rule separates the groups by their average score; rules that use the spread or the
    shape of the distributions may. The covariance penalty addresses the spread, MMDFairPCA the whole distribution.

    The authors' published scripts divide the second moment matrix by N ||X||_F, so that their mu = 0.01 corresponds
    to about 0.01 ||X||_F here (2 for 700 standardised rows of 57 features).

    References
    ----------
    Olfat and Aswani (2019). Convex Formulations for Fair Principal Component Analysis. AAAI.

    Kleindessner, Donini, Russell and Zafar (2023). Efficient Fair PCA for Fair Representation Learning. AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import ParityPCA
    >>> from fairpca.datasets import load_german_credit
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> pca = ParityPCA(n_components=3).fit(X, sensitive_features=sex)
    >>> scores = pca.transform(X)
    >>> gap = scores[sex == "female"].mean(axis=0) - scores[sex == "male"].mean(axis=0)
    >>> bool(abs(gap).max() < 1e-10)
    True
    >>> closer = ParityPCA(n_components=3, covariance_penalty=1.0).fit(X, sensitive_features=sex)
    >>> bool(closer.covariance_difference_ < 0.5 * pca.covariance_difference_)
    True

    Scores that have equal means by sex and are uncorrelated with age:

    >>> column = list(load_german_credit().feature_names).index("age")
    >>> age, others = X[:, column], np.delete(X, column, axis=1)
    >>> both = ParityPCA(n_components=3).fit(others, sensitive_features=sex, continuous=age)
    >>> bool(abs(np.corrcoef(both.transform(others).T, age)[-1, :-1]).max() < 1e-10)
    True
    """

    def __init__(
        self,
        n_components: int | float | None = 2,
        *,
        mean_tolerance: float = 0.0,
        covariance_penalty: float | None = None,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 500,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.mean_tolerance = mean_tolerance
        self.covariance_penalty = covariance_penalty
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.random_state = random_state

    def _advice(self, status: Status) -> str:
        if self.solver == "sdp":
            return "The default solver='auto' is faster and more accurate."
        return super()._advice(status)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("mean_tolerance", self.mean_tolerance, at_least=0)
        if self.covariance_penalty is not None:
            check_number("covariance_penalty", self.covariance_penalty, at_least=0)
        check_choice("solver", self.solver, _SOLVERS)

    def _all_components(self, reduction: Reduction) -> int:
        return max(all_directions(reduction) - mean_differences(reduction).shape[1], 1)

    def _has_closed_form(self) -> bool:
        return self.solver == "auto" and not self.mean_tolerance and not self.covariance_penalty

    def _takes_operators(self) -> bool:
        return self._has_closed_form() and isinstance(self.n_components, int | np.integer)

    def _solve(self, reduction: Reduction, n_components: int) -> Fit:
        penalty = float(self.covariance_penalty or 0.0)
        if penalty > 0 and isinstance(reduction, AttributeMoments) and len(reduction.labels) < 2:
            raise ValueError(
                f"covariance_penalty={self.covariance_penalty!r} compares the covariances of groups, but all sensitive "
                "features are continuous: leave it out, or add a column of groups."
            )
        solve = self._solve_in_closed_form if self._has_closed_form() else self._solve_by_search
        result = solve(reduction, n_components)
        basis, coordinates = result.basis, reduction.coordinates
        gap = float(covariance_gaps(coordinates, basis).max(initial=0.0))
        objective = penalty * gap - float(np.trace(coordinates.pooled_form(basis)))
        return Fit(
            result=dataclasses.replace(result, objective=objective),
            totals=reduction.traces(),
            captured=np.einsum("aii->a", reduction.forms(basis)),
            best=group_bests(reduction, n_components, self._rng()),
            attributes={
                "mean_difference_": float(mean_gaps(coordinates, basis).max(initial=0.0)),
                "covariance_difference_": gap,
            },
        )

    def _solve_in_closed_form(self, reduction: Reduction, n_components: int) -> SolverResult:
        """Ordinary PCA of rows projected on the directions along which the groups have equal means."""
        directions = mean_differences(reduction)
        check_available(directions, n_components)
        if isinstance(reduction, GroupFactors):
            result = leading_of_erased_rows(reduction, Erasure(directions, directions), n_components, self._rng())
        else:
            covariance = without_directions(reduction.moments.pooled_covariance(), directions)
            result = leading_of_covariance(covariance, n_components, reduction.pooled_variance())
        basis = orthonormalise(result.basis - directions @ (directions.T @ result.basis))
        return dataclasses.replace(result, basis=basis)

    def _solve_by_search(self, reduction: Reduction, n_components: int) -> SolverResult:
        penalty, tolerance = float(self.covariance_penalty or 0.0), float(self.mean_tolerance)
        problem, frame = parity_problem(reduction, n_components, penalty=penalty, tolerance=tolerance)
        scale = reduction.pooled_variance() or 1.0  # the search is for a total variance of 1
        search = ParitySearch(problem.rescale(scale), self.tol, self.max_iter, self._rng())
        result = (search.solve_by_sdp if self.solver == "sdp" else search.solve)(n_components)
        return dataclasses.replace(result, basis=frame @ result.basis, lower_bound=result.lower_bound * scale)
