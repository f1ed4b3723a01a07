"""MMDFairPCA: projected groups with nearly the same distribution, as much variance as that allows."""

from __future__ import annotations

import contextlib
import functools
import numbers
import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from fairpca._validation import (
    Groups,
    check_choice,
    check_groups,
    check_matrix,
    check_n_components,
    check_sample_weight,
    check_several_groups,
    is_missing,
)
from fairpca.estimators._base import LinearProjection
from fairpca.linalg import orthonormalise, threads_for, top_eigenpairs
from fairpca.moments import GroupedSample, GroupMoments
from fairpca.moments._accumulate import accumulate
from fairpca.moments.dask import (
    DaskSample,
    as_dask_features,
    distinct_values,
    is_dask,
    moments_from_dask,
    sample_of,
)
from fairpca.problems.mmd import (
    Bandwidth,
    DiscrepancyProblem,
    FourierKernel,
    all_pairs,
    check_bandwidth,
    exact_kernel,
    exact_means,
    halved_bandwidths,
    kernel_means,
    pair_discrepancies,
    random_level,
    squared_distance_median,
)
from fairpca.problems.parity import mean_parity_basis
from fairpca.solvers.exact_penalty import (
    PenaltyResult,
    follow_within,
    minimise_constraint,
    minimise_within,
    refine_within,
    repms,
)
from fairpca.solvers.stiefel import random_frame

__all__ = ["MMDFairPCA"]

_NOTIONS = ("demographic_parity", "equal_opportunity", "equalized_odds")
_APPROXIMATIONS = ("auto", "exact", "fourier")
#: Up to this many rows the exact kernel sums cost less than enough Fourier features.
_EXACT_ROWS = 6000
#: Error of MMD^2 from single precision in the features.
_SINGLE_NOISE = 3e-9
#: Fourier features of the objective; those of the curvature model (shared among the pairs of groups) and its
#: rows.
_FEATURES = 600
_CURVATURE_FEATURES, _CURVATURE_ROWS = 700, 6000
#: Rows of the first subsample on which large data are solved, and the growth from one to the next.
_FIRST_ROWS, _ROW_GROWTH = 4000, 4
#: Minimisers of MMD^2 to start from: several where frames are small (p d up to this), so that paths are
#: cheap.
_SMALL_FRAME, _SMALL_STARTS = 50, 8
#: Frames so small (p d) that random ones hit every region within the tolerance; each of the best is started from.
_TINY_FRAME, _TINY_STARTS = 6, 4
#: Random frames from which the smallest MMD^2 is searched if no frame within the tolerance was found.
_SPARE_FRAMES = 48
#: Rounds in which the tolerance given to an approximate problem is corrected by the exact value on all rows.
_CORRECTIONS = 6
#: Rounds in which tolerance="auto" follows the level of random groups at the solution, and what counts as the same.
_SETTLING_ROUNDS, _SETTLED = 5, 0.01
#: Rows of a Dask collection from which the median distance is computed.
_BANDWIDTH_ROWS = 4000

_Sample = GroupedSample | DaskSample
#: From a basis to scores of all rows, or of enough of them, and their weights.
_Scores = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray | None]]


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
    n_components : int, default=2
        Number of dimensions kept, 1 to n_features.
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
        always exact.
    solver : {"auto", "repms"}, default="auto"
        "repms" is the paper's penalty method with its parameters, which ends well inside the tolerance.
        "auto" starts from ordinary PCA, from mean parity and from minimisers of MMD^2, and makes the
        constraint active.
    max_iter : int, default=100
        Penalty steps from each start.
    callback : callable, optional
        Called after each penalty step with a dict (stage, n_iter, penalty, loss, constraint); the search ends
        early if it returns True.
    random_state : int, RandomState or None
        For starts, features and subsamples; results are reproducible with None too.

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
        itself will do.
    objective_ : float
        Minus the explained variance ratio.
    groups_, group_counts_, group_errors_, group_losses_ : ndarray of shape (n_groups,)
    n_iter_, n_oracle_calls_ : int
        Penalty steps, and evaluations of MMD^2 with its gradient.
    converged_ : bool
        Whether ``pair_mmd2_ <= pair_tolerance_``.

    See Also
    --------
    fairpca.metrics.mmd2 : The same figure on other data, with a permutation level.
    FairPCA : Balanced quality instead of parity.

    Notes
    -----
    MMD^2 is the biased estimate. A tolerance below ``random_level_`` asks for projected groups more alike
    than random halves of one population; the rows at hand can be matched so closely, new rows cannot. A
    warning says so. ``tolerance="auto"`` is that level: ``(sum_i c_i^2) (1 - mean of K_ij over i != j)`` with
    the signed weights c of a pair. It depends on the components, so they are found for the level at ordinary PCA
    first and again for the level at what was found, until it no longer changes.

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
        n_components: int = 2,
        *,
        tolerance: float | str = "auto",
        notion: str = "demographic_parity",
        bandwidth: str | float | tuple | list = "multiscale",
        approximation: str = "auto",
        solver: str = "auto",
        max_iter: int = 100,
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
        self.callback = callback
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit to data.

        Parameters
        ----------
        X : array-like, sparse matrix, or Dask array or data frame of shape (n_samples, n_features)
            The rows are needed one by one; sparse ones are made dense. Those of a Dask collection of more than 64,000
            rows (or 20 million numbers) stay where they are: each evaluation is a sum over its chunks.
        y : array-like of shape (n_samples,), optional
            A binary label, needed by "equal_opportunity" and "equalized_odds" and ignored otherwise.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
            The group of each row. Required. With a Dask X: a Dask collection with the same chunks, or the name of a
            column of X, which is then no feature.
        sample_weight : array-like of shape (n_samples,), optional
            Counts like repeated rows.

        Returns
        -------
        self
        """
        self._check_parameters()
        if is_dask(X):
            return self._solve(*self._reduce_dask(X, y, sensitive_features, sample_weight))
        X = check_matrix(self, X, reset=True, min_samples=2)
        groups = check_groups(sensitive_features, X.shape[0])
        weights = check_sample_weight(sample_weight, X.shape[0])
        moments = accumulate(X, groups, weights)
        dimension = self._check_moments(moments)
        cells, used = _cells(groups, y, self.notion)
        used = used if weights is None else used * weights
        sample = GroupedSample.from_rows(X, cells, used, moments.pooled_mean)
        with threads_for(sample.rows.size * X.shape[1]):
            return self._solve(moments, sample, dimension, self._rng(), lambda basis: (np.asarray(X @ basis), weights))

    def _reduce_dask(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any
    ) -> tuple[GroupMoments, _Sample, int, np.random.Generator, _Scores]:
        """The arguments of :meth:`_solve`; the rows stay in their chunks where they are many."""
        X, sensitive_features = as_dask_features(X, sensitive_features)
        check_matrix(self, sample_of(X), reset=True)
        moments = moments_from_dask(X, sensitive_features, sample_weight)
        dimension, rng = self._check_moments(moments), self._rng()
        data = (X, sensitive_features, sample_weight)
        everyone = DaskSample.from_dask(*data, labels=moments.labels, centre=moments.pooled_mean)
        sample = everyone
        if self.notion != "demographic_parity":
            values = _label_values(y if y is None else distinct_values(X, y, "y"), self.notion)
            labels = tuple((value, label) for value in values for label in moments.labels)
            cells = functools.partial(_cells_among, values, self.notion)
            sample = DaskSample.from_dask(*data, y, labels=labels, centre=moments.pooled_mean, cells=cells)
        if sample.n_rows > sample.largest_gathered and self.approximation == "exact":
            raise ValueError(
                f"approximation='exact' needs the rows in memory, but X is a Dask collection of {sample.n_rows} rows; "
                "use 'auto' or 'fourier', or give a sample."
            )
        draws = rng.spawn(1)[0]  # leaves the search the random numbers it would have in memory
        few = functools.partial(everyone.scores_at_random, size=_BANDWIDTH_ROWS, rng=draws)
        return moments, sample.subsample(sample.n_rows, draws), dimension, rng, few

    def _check_moments(self, moments: GroupMoments) -> int:
        check_several_groups(moments.labels, moments.total_count)
        dimension = check_n_components(self.n_components, moments.n_features)
        self._warn_about(moments, dimension)
        return dimension

    def _rng(self) -> np.random.Generator:
        seed = 0 if self.random_state is None else check_random_state(self.random_state).randint(2**31)
        return np.random.default_rng(seed)

    def _solve(
        self, moments: GroupMoments, sample: _Sample, dimension: int, rng: np.random.Generator, scores: _Scores
    ) -> Self:
        pairs = _pairs(sample.labels, moments.labels, self.notion)
        task = _Task(self, moments, sample, pairs, dimension, rng, scores)
        self._set_result(task, task.solve())
        return self

    def _check_parameters(self) -> None:
        check_choice("notion", self.notion, _NOTIONS)
        check_choice("approximation", self.approximation, _APPROXIMATIONS)
        check_choice("solver", self.solver, ("auto", "repms"))
        if self.tolerance != "auto":
            _check_positive("tolerance", self.tolerance, remedy=" or 'auto'")
        check_bandwidth(self.bandwidth)
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"callback={self.callback!r} must be a function of one argument, or None.")
        max_iter: Any = self.max_iter
        if not isinstance(max_iter, numbers.Integral) or int(max_iter) < 1:
            raise ValueError(f"max_iter={self.max_iter!r} must be a positive integer.")

    def _set_result(self, task: _Task, result: PenaltyResult) -> None:
        moments = task.moments
        self._set_projection(result.basis, moments)
        self._set_groups(moments, moments.second_moments("pooled"))
        values = exact_means(task.sample, self.components_.T, task.bandwidth)
        self.pairs_ = [(task.sample.labels[a], task.sample.labels[b]) for a, b in task.pairs]
        self.pair_mmd2_ = pair_discrepancies(values, task.pairs)
        self.mmd2_ = float(self.pair_mmd2_.max())
        levels = random_level(task.sample, values, task.pairs)
        self.random_level_ = float(levels.max())
        self.pair_tolerance_ = task.limits
        self.tolerance_ = float(task.limits.max())
        self.bandwidth_ = task.bandwidth
        self.penalty_ = float(result.penalty)
        self.objective_ = -float(self.explained_variance_ratio_.sum())
        self.n_iter_ = max(result.n_iter, 1)
        self.n_oracle_calls_ = task.n_evaluations
        self.converged_ = bool((self.pair_mmd2_ <= self.pair_tolerance_).all())
        self._warn_about_result()

    def _warn_about_result(self) -> None:
        if not self.converged_:
            steps = f"after {self.n_iter_} of max_iter={self.max_iter} penalty steps"
            reached = f"{self.mmd2_:.4g} {steps}" if self.solver == "repms" else f"the smallest found, {self.mmd2_:.4g}"
            warnings.warn(
                f"MMDFairPCA found no projection with MMD^2 <= tolerance={self._describe_tolerance()}; the components "
                f"have {reached}. Raise tolerance, lower n_components or raise max_iter.",
                ConvergenceWarning,
                stacklevel=5,
            )
        if self.tolerance != "auto" and self.tolerance_ < self.random_level_:
            warnings.warn(
                f"tolerance={self.tolerance:g} is below {self.random_level_:.3g}, the MMD^2 that random "
                "groups of these sizes show on average: these rows are matched more closely than new rows "
                "can be.",
                UserWarning,
                stacklevel=5,
            )

    def _describe_tolerance(self) -> str:
        if self.tolerance != "auto":
            return f"{self.tolerance:g}"
        return f"'auto' ({self.tolerance_:.3g}, the level of random groups)"


def _check_positive(name: str, value: Any, *, remedy: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < float(value) < np.inf:
        raise ValueError(f"{name}={value!r} must be a positive number{remedy}.")


def _cells(groups: Groups, y: Any, notion: str) -> tuple[Groups, np.ndarray]:
    """The sets of rows that are compared, and which rows take part (1.0) or not (0.0)."""
    n = len(groups.codes)
    if notion == "demographic_parity":
        return groups, np.ones(n)
    if y is not None and np.shape(y) != (n,):
        raise ValueError(f"y has shape {np.shape(y)}, but X has {n} rows: give one label a row.")
    return _cells_among(_label_values(None if y is None else _distinct_labels(y), notion), notion, groups, y)


def _distinct_labels(y: Any) -> np.ndarray:
    labels = np.asarray(y)
    missing = labels.dtype.kind == "f" and np.isnan(labels).any()
    if missing or (labels.dtype.kind == "O" and any(map(is_missing, labels.tolist()))):
        raise ValueError("y contains missing values (NaN or None); drop those rows or give them a label.")
    try:
        return np.unique(labels)
    except TypeError:
        raise TypeError("y mixes labels that have no order, such as numbers and text; use one type.") from None


def _label_values(found: np.ndarray | None, notion: str) -> list[Any]:
    if found is None:
        raise ValueError(f"notion={notion!r} compares rows with the same label: give a binary y to fit.")
    if len(found) != 2:
        raise ValueError(
            f"notion={notion!r} needs a binary y; it has {len(found)} different values. Compare one against the rest."
        )
    return found.tolist()


def _cells_among(values: list[Any], notion: str, groups: Groups, y: Any) -> tuple[Groups, np.ndarray]:
    """The cells of these rows, where ``values`` are the two labels of all rows."""
    codes = np.searchsorted(np.array(values), np.asarray(y))
    labels = tuple((value, label) for value in values for label in groups.labels)
    cells = Groups(labels, codes.astype(np.int64) * len(groups) + groups.codes)
    taking_part = codes == 1 if notion == "equal_opportunity" else np.ones(len(codes), dtype=bool)
    return cells, taking_part.astype(float)


def _pairs(cells: tuple, groups: tuple, notion: str) -> np.ndarray:
    """Pairs of cells to be compared: all groups, within each value of y that takes part."""
    if notion == "demographic_parity":
        return all_pairs(len(cells))
    values = sorted({value for value, _ in cells})
    missing = [(value, label) for value in values for label in groups if (value, label) not in cells]
    if missing:
        raise ValueError(
            f"notion={notion!r}: no row with (y, group) = {missing[0]!r}. Merge small groups or use "
            "notion='demographic_parity'."
        )
    pairs = all_pairs(len(cells))
    return np.array([(a, b) for a, b in pairs if cells[a][0] == cells[b][0]])


class _Task:
    """One fit: problems at several sizes, starts, and the order in which they are solved."""

    def __init__(
        self,
        parameters: MMDFairPCA,
        moments: GroupMoments,
        sample: _Sample,
        pairs: np.ndarray,
        dimension: int,
        rng: np.random.Generator,
        scores: _Scores,
    ) -> None:
        self.parameters, self.moments, self.sample, self.pairs = parameters, moments, sample, pairs
        self.dimension, self.rng = dimension, rng
        self.automatic = parameters.tolerance == "auto"
        #: Largest accepted MMD^2 of each pair; with "auto" not yet known.
        self.limits = np.full(len(pairs), np.inf if self.automatic else float(parameters.tolerance))
        self.covariance = moments.pooled_covariance()
        self.pca = top_eigenpairs(self.covariance, dimension)[1]
        self.bandwidth = self._bandwidth(scores)
        self.n_evaluations = 0

    def _bandwidth(self, scores_by: _Scores) -> Bandwidth:
        chosen = check_bandwidth(self.parameters.bandwidth)
        if not isinstance(chosen, str):
            return chosen
        scores, sample_weight = scores_by(self.pca)
        sigma = float(np.sqrt(0.5 * squared_distance_median(scores, self.rng, sample_weight)))
        return halved_bandwidths(sigma) if chosen == "multiscale" else sigma

    def solve(self) -> PenaltyResult:
        means = exact_means(self.sample, self.pca, self.bandwidth)
        self._check_reach(means)
        if self.automatic:
            self.limits = self._levels(means)
        at_pca = self._largest(means)
        if at_pca <= self.tolerance or self.dimension == self.moments.n_features:
            share = float(np.vdot(self.pca, self.covariance @ self.pca)) / max(
                np.trace(self.covariance), np.finfo(float).tiny
            )
            return PenaltyResult(self.pca, -share, at_pca, 0.0, 0.0, 0, at_pca <= self.tolerance)
        approximation = self.parameters.approximation
        in_memory = isinstance(self.sample, GroupedSample)
        large = not in_memory or self.sample.n_rows > _EXACT_ROWS
        if approximation == "fourier" or (approximation == "auto" and large):
            return self._solve_by_features(1.0 / at_pca)
        problem = self._problem(self.sample, exact_kernel(self.bandwidth), self.limits)
        return self._refined(problem, self._settled(problem, self._solve_from_starts(problem, 1.0 / at_pca)))

    @property
    def tolerance(self) -> float:
        """What the constraints of all pairs must stay under once they are brought to one scale."""
        return float(self.limits.max())

    def _levels(self, means: np.ndarray) -> np.ndarray:
        """What random groups show on average, for each pair; positive also where all its rows coincide."""
        levels = random_level(self.sample, means, self.pairs)
        return np.maximum(levels, max(1e-9 * levels.max(), np.finfo(float).tiny))

    def _largest(self, means: np.ndarray) -> float:
        """The largest MMD^2, each next to its own limit, in units of the largest limit."""
        return float((pair_discrepancies(means, self.pairs) * (self.tolerance / self.limits)).max())

    def _settled(self, problem: DiscrepancyProblem, result: PenaltyResult) -> PenaltyResult:
        """With "auto", refit until the tolerance is the level of random groups at the solution."""
        for _ in range(_SETTLING_ROUNDS if self.automatic else 0):
            levels = self._levels(exact_means(self.sample, result.basis, self.bandwidth))
            if np.abs(levels / self.limits - 1.0).max() <= _SETTLED:
                break
            out_of_reach = not result.feasible and (levels <= self.limits).all()
            self.limits = problem.limits = levels
            if out_of_reach:
                break
            result = self._follow(problem, result, problem.tolerance)
        return result

    def _refined(self, problem: DiscrepancyProblem, result: PenaltyResult) -> PenaltyResult:
        """Where frames are small, so that it is cheap, as accurately as the numbers allow."""
        if self.pca.size > _SMALL_FRAME or self.parameters.solver == "repms":
            return result
        callback = self.parameters.callback
        return self._counted(problem, refine_within(problem, result, tolerance=problem.tolerance, callback=callback))

    def _check_reach(self, means: np.ndarray) -> None:
        """Where the kernel of any two rows is zero, MMD^2 is the same for all projections."""
        of_different_rows = means - np.diag(self.sample.weight_squares)
        if of_different_rows.max() <= np.finfo(float).eps:
            raise ValueError(
                f"bandwidth={self.parameters.bandwidth!r} is too small next to the distances between the rows, so that "
                "MMD^2 does not depend on the projection; raise bandwidth or use 'median'."
            )

    def _problem(self, sample: _Sample, kernel: Any, limits: np.ndarray, noise: float = 0.0) -> DiscrepancyProblem:
        """With a curvature model of its own, for which fewer features and rows will do."""
        count = max(_CURVATURE_FEATURES // len(self.pairs), 50)
        features = FourierKernel(self.bandwidth, self.dimension, count, self.rng)
        few = sample.subsample(_CURVATURE_ROWS, self.rng)
        assert isinstance(few, GroupedSample)
        return DiscrepancyProblem(sample, self.covariance, kernel, self.pairs, features, few, noise, limits)

    def _solve_from_starts(self, problem: DiscrepancyProblem, penalty: float) -> PenaltyResult:
        repms_only = self.parameters.solver == "repms"
        options = {"tolerance": problem.tolerance, "penalty": penalty, **self._options()}
        if repms_only:
            result = repms(problem, self._interior(problem, 0.0), **options)
        else:
            count = _SMALL_STARTS if self.pca.size <= _SMALL_FRAME else 1
            interiors = [self._interior(problem, 0.1 * problem.tolerance) for _ in range(count)]
            interiors += self._scanned(problem)
            spares = (random_frame(self.rng, *self.pca.shape) for _ in range(_SPARE_FRAMES))
            result = minimise_within(problem, self._starts(), interiors, spares=spares, **options)
        return self._counted(problem, result)

    def _interior(self, problem: DiscrepancyProblem, target: float) -> np.ndarray:
        """A minimiser of MMD^2 alone, from a random frame: the authors' start."""
        start = random_frame(self.rng, len(self.pca), self.dimension)
        return minimise_constraint(problem, start, target=target)

    def _scanned(self, problem: DiscrepancyProblem) -> list[np.ndarray]:
        """Of small frames: random ones within the tolerance, those with the most variance."""
        if self.pca.size > _TINY_FRAME:
            return []
        frames = [random_frame(self.rng, *self.pca.shape) for _ in range(_SPARE_FRAMES)]
        points = [problem.evaluate(frame) for frame in frames]
        within = [(here.loss, i) for i, here in enumerate(points) if here.constraints.max() <= problem.tolerance]
        return [frames[i] for _, i in sorted(within)[:_TINY_STARTS]]

    def _options(self) -> dict[str, Any]:
        return {"max_iter": self.parameters.max_iter, "callback": self.parameters.callback}

    def _starts(self) -> list[np.ndarray]:
        starts = [self.pca]
        with contextlib.suppress(ValueError):  # fewer directions with equal means than components
            starts.append(mean_parity_basis(self.moments, self.dimension))
        # Ordinary PCA can be a saddle point (features of deficient rank); a touch of noise leaves it.
        return [
            orthonormalise(basis + 1e-3 * self.rng.standard_normal(basis.shape) / np.sqrt(basis.size))
            for basis in starts
        ]

    def _solve_by_features(self, penalty: float) -> PenaltyResult:
        """Random features on growing subsamples; the tolerance is corrected until the exact value fits."""
        kernel = FourierKernel(self.bandwidth, self.dimension, _FEATURES, self.rng)
        result, size = None, _FIRST_ROWS
        while True:
            sample = self.sample.subsample(size, self.rng)
            basis = self.pca if result is None else result.basis
            limits = self.limits + self._excess_levels(sample, basis)
            problem = self._problem(sample, kernel, limits, noise=_SINGLE_NOISE)
            result = self._solve_from_starts(problem, penalty) if result is None else self._continue(problem, result)
            if sample.n_rows == self.sample.n_rows:
                return self._corrected(problem, result)
            size *= _ROW_GROWTH

    def _excess_levels(self, sample: _Sample, basis: np.ndarray) -> np.ndarray:
        """How much more sampling noise a subsample shows than all rows, for each pair."""
        if sample.n_rows == self.sample.n_rows:
            return np.zeros(len(self.pairs))
        assert isinstance(sample, GroupedSample)
        values = kernel_means(sample, basis, self.bandwidth, dtype=np.float32).values
        return random_level(sample, values, self.pairs) * (1.0 - sample.n_rows / self.sample.n_rows)

    def _continue(self, problem: DiscrepancyProblem, result: PenaltyResult) -> PenaltyResult:
        """From the solution on fewer rows, by a path of its own: more rows may show a better region.

        Where frames are small, so that paths are cheap, from equal means (or PCA) too.
        """
        penalty = max(result.penalty / 2.0, 1e-6)
        starts = [result.basis, *(self._starts()[-1:] if self.pca.size <= _SMALL_FRAME else [])]
        options = {"tolerance": problem.tolerance, "penalty": penalty, **self._options()}
        return self._counted(problem, minimise_within(problem, starts, **options))

    def _follow(self, problem: DiscrepancyProblem, result: PenaltyResult, tolerance: float) -> PenaltyResult:
        """From the solution with a tolerance that was a little different."""
        return self._counted(problem, follow_within(problem, result, tolerance=tolerance, **self._options()))

    def _counted(self, problem: DiscrepancyProblem, result: PenaltyResult) -> PenaltyResult:
        self.n_evaluations += problem.n_evaluations
        problem.n_evaluations = 0
        return result

    def _corrected(self, problem: DiscrepancyProblem, result: PenaltyResult) -> PenaltyResult:
        """Features and kernel disagree a little, and a search exploits it: rescale the tolerance by their ratio.

        With "auto" the limits follow the level of random groups, which comes with the exact values.
        """
        best, limits, target = None, self.limits, self.tolerance
        for _ in range(_CORRECTIONS):
            means = exact_means(self.sample, result.basis, self.bandwidth)
            if self.automatic:
                target *= self._follow_levels(problem, means)
            exact = self._largest(means)
            if exact <= self.tolerance and (best is None or result.loss < best.loss):
                best, limits = result, self.limits
            if 0.97 * self.tolerance <= exact <= self.tolerance:
                break
            # Where the features see less than there is, the difference does not shrink with the target.
            missing = exact - min(result.constraint, exact)
            lowered = self.tolerance * 0.985 - missing
            target = lowered if lowered > 0.2 * target else target * max(0.985 * self.tolerance / exact, 0.3)
            result = self._follow(problem, result, target)
        if best is None:
            return result
        self.limits = limits
        return best

    def _follow_levels(self, problem: DiscrepancyProblem, means: np.ndarray) -> float:
        """Make the limits the levels of random groups at these means; by how much the largest changed."""
        before, self.limits = self.tolerance, self._levels(means)
        problem.limits = self.limits
        return self.tolerance / before
