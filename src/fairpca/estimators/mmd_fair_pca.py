"""MMDFairPCA: projected groups with nearly the same distribution, as much variance as that allows."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fairpca._progress import printed_steps
from fairpca._validation import (
    check_choice,
    check_grouped_rows,
    check_n_components,
    check_number,
    check_several_groups,
    check_wanted_components,
    checks_keywords,
    generator,
    is_dask,
    legacy_generator,
    seed_from,
    warn_user,
)
from fairpca.estimators._compared_rows import compared_cells, compared_pairs
from fairpca.estimators._dimension import all_directions, kept_shares, least_for_own, unreachable
from fairpca.estimators._linear_projection import LinearProjection
from fairpca.estimators._mmd_search import DiscrepancySearch, Scores, SearchSettings
from fairpca.linalg import threads_for
from fairpca.moments import GroupMoments
from fairpca.moments._accumulate import accumulate
from fairpca.moments._grouped_sample import GroupedSample
from fairpca.moments.bandwidths import check_bandwidth
from fairpca.moments.dask import gather_rows
from fairpca.moments.kernel_means import kernel_means
from fairpca.problems.mmd import pair_discrepancies, random_level
from fairpca.solvers.stiefel.within_limits import ROUNDING, Solution

__all__ = ["MMDFairPCA"]

_NOTIONS = ("demographic_parity", "equal_opportunity", "equalized_odds")
_APPROXIMATIONS = ("auto", "exact", "fourier")


class MMDFairPCA(LinearProjection):
    """Principal components whose projected groups are distributed alike, measured by MMD^2.

    Solves, over orthonormal V of shape (p, d) (Lee et al. 2022),

    ``max <S, V V^T> / tr S``  subject to  ``MMD^2(groups a and b, projected by V) <= tolerance``  for all a,
    b,

    with the kernel ``exp(-|z - z'|^2 / (2 bandwidth^2))``, or the mean of several. A parity method: a small MMD^2
    means that this kernel tells the projected groups apart no better than it would random ones; a strong reader may
    still (see :func:`fairpca.metrics.readability`). It says nothing on how well each group is represented (see
    FairPCA for that).

    Parameters
    ----------
    n_components : int, float or None, default=2
        Number of dimensions kept, 1 to n_features; None: all, as in PCA. A share between 0 and 1: the fewest
        components, tried one by one, that keep that share of every group's variance within the tolerance; an error
        names the largest share reached if it is out of reach.
    tolerance : "auto" or float, default="auto"
        Largest accepted MMD^2 (biased estimate, on the rows given) between any two groups. "auto": for each pair what
        random groups of its sizes show on average at the returned components. Random groups of rows: a row with a
        weight is still one row.
    notion : {"demographic_parity", "equal_opportunity", "equalized_odds"}, default="demographic_parity"
        Which rows are compared: all; those with the positive label; those with each label, separately. The
        last two need a binary ``y`` in ``fit``; the larger of its two values is the positive one.
    bandwidth : "multiscale", "median", float or tuple of float, default="multiscale"
        The kernel's sigma. "median": ``2 sigma^2`` is the median squared distance between rows projected by
        ordinary PCA (a sample of pairs where there are millions; of the positive distances where most rows
        coincide), the rule of the paper. "multiscale": the mean of the kernels at that sigma, its half, quarter and
        eighth, since a kernel as wide as the median distance hardly sees fine differences. A tuple: the mean of the
        kernels at these widths.
    approximation : {"auto", "exact", "fourier"}, default="auto"
        How MMD^2 is computed during the search: exactly, O(n^2); or with orthogonal random Fourier features
        on growing subsamples, O(n), corrected by exact values. "auto" is exact up to 6000 rows. ``mmd2_`` is
        always exact; in one or two dimensions a grid makes that O(n) for more than 20,000 rows.
    solver : {"auto", "repms"}, default="auto"
        "repms" is the paper's penalty method with its parameters, which ends well inside the tolerance.
        "auto" starts from ordinary PCA, from mean parity and from random frames, and makes the constraint active.
    max_iter : int, default=100
        Steps of the method of multipliers from each start.
    verbose : int, default=0
        If positive, print each step: its number and stage, the share of variance, and MMD^2 over its tolerance.
    callback : callable, optional
        Called after each step of the search with a dict (stage, n_iter, penalty, loss, constraint); the search ends
        early if it returns True.
    random_state : int, RandomState or None
        For starts, features and subsamples; None is a fixed seed.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal rows with uncorrelated scores, by descending variance; the largest entry of each is
        positive.
    mean_, explained_variance_, explained_variance_ratio_, noise_variance_, n_components_, n_features_in_, \
feature_names_in_, n_samples_seen_
        As in :class:`sklearn.decomposition.PCA`.
    mmd2_ : float
        Largest MMD^2 between two groups at the returned components: exact, all rows.
    pair_mmd2_ : ndarray of shape (n_pairs,)
        The same for each of ``pairs_``.
    pairs_ : list of (label, label)
        With "equal_opportunity" and "equalized_odds" a label is the tuple (value of y, group).
    tolerance_ : float
        The tolerance that was used, the largest over the pairs.
    pair_tolerance_ : ndarray of shape (n_pairs,)
        The same for each of ``pairs_``; they differ only with ``tolerance="auto"``.
    random_level_ : float
        What MMD^2 would be on average between random groups of these sizes, at the returned components; the largest
        over the pairs.
    bandwidth_ : float or tuple of float
        The sigma of the kernel, or of each kernel, the widest first.
    penalty_ : float
        The largest multiplier: what a unit of MMD^2 between the hardest pair costs in variance ratio; 0 where PCA
        itself will do, nan where no projection within the tolerance was found.
    objective_ : float
        Minus the explained variance ratio.
    groups_, group_counts_, group_errors_, group_losses_ : ndarray of shape (n_groups,)
    n_iter_, n_oracle_calls_ : int
        Steps of the search (with penalties, or for the least MMD^2 alone), and evaluations of MMD^2 with its gradient.
    converged_ : bool
        Whether ``pair_mmd2_ <= pair_tolerance_``.

    See Also
    --------
    fairpca.metrics.mmd2 : The same statistic on other data, with a permutation level.
    FairPCA : Balanced quality instead of parity.

    Notes
    -----
    MMD^2 is the biased estimate. A tolerance below ``random_level_`` asks for projected groups more alike
    than random halves of one population; the rows at hand can be matched so closely, new rows cannot. A
    warning says so. ``tolerance="auto"`` is that level: ``(sum_i c_i^2) (1 - mean of K_ij over i != j)`` with
    the signed weights c of a pair. It depends on the components, so it is part of the constraint: the search keeps
    ``MMD^2 <= level`` with the level at the same components.

    The problem is not convex: the result is the best local solution found, at which the constraint is active.

    References
    ----------
    Lee, Kim, Olfat, Hasegawa-Johnson and Yoo (2022). Fast and Efficient MMD-based Fair PCA via Optimization
    over Stiefel Manifold. AAAI.

    Examples
    --------
    >>> from fairpca import MMDFairPCA
    >>> from fairpca.datasets import make_same_moments
    >>> X, groups = make_same_moments(n_samples=400, random_state=0)
    >>> pca = MMDFairPCA(n_components=1).fit(X, sensitive_features=groups)
    >>> pca.mmd2_ <= pca.tolerance_
    True
    >>> pca.transform(X).shape
    (400, 1)
    """

    def __init__(
        self,
        n_components: int | float | None = 2,
        *,
        tolerance: float | str = "auto",
        notion: str = "demographic_parity",
        bandwidth: str | float | tuple | list = "multiscale",
        approximation: str = "auto",
        solver: str = "auto",
        max_iter: int = 100,
        verbose: int = 0,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.tolerance = tolerance
        self.notion = notion
        self.bandwidth = bandwidth
        self.approximation = approximation
        self.solver = solver
        self.max_iter = max_iter
        self.verbose = verbose
        self.callback = callback
        self.random_state = random_state

    @checks_keywords
    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit to data.

        Parameters
        ----------
        X : array-like, sparse matrix, or Dask array or data frame of shape (n_samples, n_features)
            The rows are needed one by one; sparse ones are made dense. Of a Dask collection of more than 64,000 rows
            (or 20 million numbers) a random sample of that size is fitted, with a warning.
        y : array-like of shape (n_samples,), optional
            A binary label, needed by "equal_opportunity" and "equalized_odds" and ignored otherwise.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
            The group of each row. Required. If X is a data frame: or the name of a column of X, or a list of names,
            which are then not features. With a Dask X: a Dask collection with the same chunks.
        sample_weight : array-like of shape (n_samples,), optional
            Counts like repeated rows.

        Returns
        -------
        self
        """
        with printed_steps(self.verbose):
            return self._fit(X, y, sensitive_features, sample_weight)

    def _fit(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, fewer: np.ndarray | None = None
    ) -> Self:
        """The same; ``fewer`` is a solution with fewer columns to start from."""
        self._check_parameters()
        if is_dask(X):
            self._check_dask(X, sensitive_features, reset=True)
            y = None if self.notion == "demographic_parity" else y
            X, groups, weights, y = gather_rows(X, sensitive_features, sample_weight, y, seed_from(self.random_state))
        else:
            X, groups, weights = check_grouped_rows(self, X, sensitive_features, sample_weight)
        moments = accumulate(X, groups, weights)
        dimension = self._check_moments(moments)
        cells, used = compared_cells(groups, y, self.notion)
        used = used if weights is None else used * weights
        sample = GroupedSample.from_rows(X, cells, used, moments.pooled_mean)
        with threads_for(sample.rows.size * X.shape[1]):
            return self._solve(
                moments, sample, dimension, self._rng(), lambda basis: (np.asarray(X @ basis), weights), fewer
            )

    def _check_moments(self, moments: GroupMoments) -> int:
        """The number of components or, for a share, the smallest that might do."""
        check_several_groups(moments.labels, moments.total_count)
        if isinstance(self.n_components, float):
            return least_for_own(moments.second_moments(), self.n_components)
        if self.n_components is None:
            return all_directions(moments)
        return check_n_components(self.n_components, moments.n_features)

    def _rng(self) -> np.random.Generator:
        return generator(self.random_state, type(self).__name__)

    def _solve(
        self,
        moments: GroupMoments,
        sample: GroupedSample,
        dimension: int,
        rng: np.random.Generator,
        scores: Scores,
        fewer: np.ndarray | None = None,
    ) -> Self:
        pairs = compared_pairs(sample.labels, moments.labels, self.notion)
        settings = SearchSettings(
            self.tolerance, self.bandwidth, self.approximation, self.solver, self.max_iter, self.callback
        )
        n_iter = n_evaluations = 0

        def solve(d: int) -> tuple[DiscrepancySearch, Solution]:
            nonlocal n_iter, n_evaluations
            search = DiscrepancySearch(settings, moments, sample, pairs, d, copy.deepcopy(rng), scores, fewer)
            search.n_iter, search.n_evaluations = n_iter, n_evaluations
            result = search.solve()
            n_iter, n_evaluations = search.n_iter, search.n_evaluations
            return search, result

        share = isinstance(self.n_components, float)
        search, result = self._solve_for_share(solve, moments, dimension) if share else solve(dimension)
        self._warn_about(moments, search.dimension)
        self._set_result(search, result)
        return self

    def _solve_for_share(
        self, solve: Callable[[int], tuple[DiscrepancySearch, Solution]], moments: GroupMoments, first: int
    ) -> tuple[DiscrepancySearch, Solution]:
        """The first number of components within the tolerance that keeps the share in every group."""
        share, matrices, reached = float(self.n_components or 0.0), moments.second_moments(), {}
        for d in range(first, moments.n_features + 1):
            search, result = solve(d)
            if search.stopped:
                return search, result
            if not result.feasible:  # with more components, the groups are hardly ever closer together
                break
            captured = np.einsum("pi,api->a", result.basis, matrices @ result.basis)
            reached[d] = float(kept_shares(captured, moments.traces()).min())
            if reached[d] >= share:
                return search, result
        if not reached:
            raise ValueError(
                f"n_components={share:g} needs {first} components or more, and no projection with {first} was found "
                f"within tolerance={self.tolerance!r}; raise tolerance or lower the share."
            )
        raise unreachable(share, reached, " within the tolerance")

    def _check_parameters(self) -> None:
        """Refuse parameters that no data could suit; nothing is read before."""
        check_wanted_components(self.n_components)
        legacy_generator(self.random_state)  # refuses what is not a random state
        check_choice("notion", self.notion, _NOTIONS)
        check_choice("approximation", self.approximation, _APPROXIMATIONS)
        check_choice("solver", self.solver, ("auto", "repms"))
        if self.tolerance != "auto":
            _check_positive("tolerance", self.tolerance, remedy=" or 'auto'")
            if float(self.tolerance) < ROUNDING:
                raise ValueError(
                    f"tolerance={self.tolerance!r} is less than the rounding error of MMD^2; use at least "
                    f"{ROUNDING:g}, or 'auto'."
                )
        check_bandwidth(self.bandwidth)
        check_number("verbose", self.verbose, at_least=0, integer=True)
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"callback={self.callback!r} must be a function of one argument, or None.")
        max_iter: Any = self.max_iter
        if not isinstance(max_iter, numbers.Integral) or int(max_iter) < 1:
            raise ValueError(f"max_iter={self.max_iter!r} must be a positive integer.")

    def _set_result(self, search: DiscrepancySearch, result: Solution) -> None:
        moments = search.moments
        self._set_projection(result.basis, moments)
        self._set_groups(moments, moments.second_moments("pooled"))
        values = kernel_means(search.sample, self.components_.T, search.bandwidth).values
        self.pairs_ = [(search.sample.labels[a], search.sample.labels[b]) for a, b in search.pairs]
        self.pair_mmd2_ = pair_discrepancies(values, search.pairs)
        self.mmd2_ = float(self.pair_mmd2_.max())
        levels = random_level(search.sample, values, search.pairs)
        self.random_level_ = float(levels.max())
        self.pair_tolerance_ = search.limits
        self.tolerance_ = float(search.limits.max())
        self.bandwidth_ = search.bandwidth
        self.objective_ = -float(self.explained_variance_ratio_.sum())
        self.n_iter_ = max(search.n_iter, 1)
        self.n_oracle_calls_ = search.n_evaluations
        self.converged_ = bool((self.pair_mmd2_ <= self.pair_tolerance_).all())
        self.penalty_ = float(result.multipliers.max()) / (2.0 * self.tolerance_) if self.converged_ else np.nan
        self._warn_about_result()

    def _warn_about_result(self) -> None:
        if not self.converged_:
            steps = f"after {self.n_iter_} of max_iter={self.max_iter} penalty steps"
            reached = f"{self.mmd2_:.4g} {steps}" if self.solver == "repms" else f"the smallest found, {self.mmd2_:.4g}"
            warn_user(
                f"MMDFairPCA found no projection with MMD^2 <= tolerance={self._describe_tolerance()}; the components "
                f"have {reached}. Raise tolerance, lower n_components or raise max_iter.",
                ConvergenceWarning,
            )
        if self.tolerance != "auto" and self.tolerance_ < self.random_level_:
            warn_user(
                f"tolerance={self.tolerance:g} is below {self.random_level_:.3g}, the MMD^2 that random "
                "groups of these sizes show on average: these rows are matched more closely than new rows "
                "can be.",
            )

    def _describe_tolerance(self) -> str:
        if self.tolerance != "auto":
            return f"{self.tolerance:g}"
        return f"'auto' ({self.tolerance_:.3g}, the level of random groups)"


def _check_positive(name: str, value: Any, *, remedy: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < float(value) < np.inf:
        raise ValueError(f"{name}={value!r} must be a positive number{remedy}.")
