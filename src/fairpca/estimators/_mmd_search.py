"""The fit of MMDFairPCA: where problems at several sizes, their limits and the search meet."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca.linalg import orthonormalise, top_eigenpairs
from fairpca.moments import GroupMoments
from fairpca.moments._grouped_sample import GroupedSample
from fairpca.moments.bandwidths import Bandwidth, check_bandwidth, halved_bandwidths, squared_distance_median
from fairpca.moments.fourier import FourierKernel
from fairpca.moments.kernel_means import GRID_ROWS, exact_kernel, kernel_means
from fairpca.problems.mmd import DiscrepancyProblem, RandomLevels, pair_discrepancies, random_level
from fairpca.problems.parity import mean_parity_basis
from fairpca.solvers.reference.repms import repms
from fairpca.solvers.stiefel.geometry import random_frame
from fairpca.solvers.stiefel.within_limits import SMALL_FRAME, LimitedSearch, Solution

__all__ = ["DiscrepancySearch", "Scores", "SearchSettings"]

#: Up to this many rows the exact kernel sums cost less than enough Fourier features.
_EXACT_ROWS = 6000
#: Error of MMD^2 from single precision in the features, and from the grid.
_SINGLE_NOISE, _GRID_NOISE = 3e-9, 1e-12
#: Fourier features of the objective; those of the curvature model (shared among the pairs of groups) and its rows.
_FEATURES = 600
_CURVATURE_FEATURES, _CURVATURE_ROWS = 700, 6000
#: Rows of the first subsample on which large data are solved, and the growth from one to the next.
_FIRST_ROWS, _ROW_GROWTH = 4000, 4
#: Rounds in which the tolerance given to an approximate problem is corrected by the exact value on all rows, what is
#: aimed at, and what ends them, as shares of the tolerance.
_CORRECTIONS, _AIM, _CLOSE = 6, 0.985, 0.97
#: Level of random groups, next to that at ordinary PCA, below which all rows of a pair count as the same.
_LEAST_LEVEL = 1e-9

_log = logging.getLogger(__name__)

#: From a basis to scores of all rows, or of enough of them, and their weights.
Scores = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray | None]]


@dataclass(frozen=True)
class SearchSettings:
    """The estimator's parameters of the same names, checked."""

    tolerance: float | str
    bandwidth: Any
    approximation: str
    solver: str
    max_iter: int
    callback: Callable[[dict[str, Any]], Any] | None


class DiscrepancySearch:
    """One fit.

    Attributes
    ----------
    limits : ndarray of shape (n_pairs,)
        Largest accepted MMD^2 of each pair; with the tolerance "auto" known after :meth:`solve` only.
    bandwidth : float or tuple of float
    n_iter, n_evaluations : int
        Penalty steps, and evaluations of MMD^2 with its gradient, so far.
    stopped : bool
        Whether the callback asked to end the search.
    """

    def __init__(
        self,
        settings: SearchSettings,
        moments: GroupMoments,
        sample: GroupedSample,
        pairs: np.ndarray,
        dimension: int,
        rng: np.random.Generator,
        scores: Scores,
        fewer: np.ndarray | None = None,
    ) -> None:
        self.settings, self.moments, self.sample, self.pairs = settings, moments, sample, pairs
        self.dimension, self.rng, self.fewer = dimension, rng, fewer
        self.automatic = settings.tolerance == "auto"
        self.limits = np.full(len(pairs), np.inf if self.automatic else float(settings.tolerance))
        self.covariance = moments.pooled_covariance()
        self.pca = top_eigenpairs(self.covariance, dimension)[1]
        self.bandwidth = self._bandwidth(scores)
        self.n_iter = self.n_evaluations = 0
        self._problems: list[DiscrepancyProblem] = []
        self._floor = 0.0
        self.stopped = False

    def _bandwidth(self, scores_by: Scores) -> Bandwidth:
        chosen = check_bandwidth(self.settings.bandwidth)
        if not isinstance(chosen, str):
            return chosen
        scores, sample_weight = scores_by(self.pca)
        sigma = float(np.sqrt(0.5 * squared_distance_median(scores, self.rng, sample_weight)))
        return halved_bandwidths(sigma) if chosen == "multiscale" else sigma

    def solve(self) -> Solution:
        """The best frame found; ``limits`` and ``n_evaluations`` belong to it afterwards."""
        means = kernel_means(self.sample, self.pca, self.bandwidth).values
        self._check_reach(means)
        if self.automatic:
            self._set_levels(means)
        at_pca = self._largest(means)
        if at_pca <= self.tolerance or self.dimension == self.moments.n_features:
            result = self._at_pca(at_pca)
        elif self.settings.solver == "repms":
            result = self._solve_by_paper(at_pca)
        elif self._takes_features():
            result = self._solve_by_features()
        else:
            limits = self._levels(self.sample) if self.automatic else self.limits
            search = self._search(self.sample, exact_kernel(self.bandwidth), limits)
            result = search.solve(self._starts(), alone=self._extends_large)
        self.n_evaluations += sum(problem.n_evaluations for problem in self._problems)
        if self.automatic:
            self.limits = self._levels(self.sample)(kernel_means(self.sample, result.basis, self.bandwidth).values)
        return result

    def _set_levels(self, means: np.ndarray) -> None:
        """With "auto": the limits at these means, and how small they may get elsewhere."""
        levels = random_level(self.sample, means, self.pairs)
        self._floor = max(_LEAST_LEVEL * float(levels.max()), np.finfo(float).tiny)
        self.limits = np.maximum(levels, self._floor)

    def _at_pca(self, discrepancy: float) -> Solution:
        """Ordinary PCA, where it will do or nothing else is possible."""
        total = max(np.trace(self.covariance), np.finfo(float).tiny)
        share = float(np.vdot(self.pca, self.covariance @ self.pca)) / total
        return Solution(self.pca, -share, np.array([discrepancy]), self.tolerance, np.zeros(1))

    def _takes_features(self) -> bool:
        """Whether the kernel is approximated during the search: on request, or where the rows are many."""
        large = self.sample.n_rows > _EXACT_ROWS
        return self.settings.approximation == "fourier" or (self.settings.approximation == "auto" and large)

    @property
    def tolerance(self) -> float:
        """What the constraints of all pairs must stay under once they are brought to one scale."""
        return float(self.limits.max())

    def _levels(self, sample: GroupedSample) -> RandomLevels:
        """What random groups of these rows show on average, as the limits of "auto"."""
        return RandomLevels.of(sample, self.pairs, self._floor)

    def _largest(self, means: np.ndarray) -> float:
        """The largest MMD^2, each next to its own limit, in units of the tolerance."""
        limits = self._levels(self.sample)(means) if self.automatic else self.limits
        return float((pair_discrepancies(means, self.pairs) * (self.tolerance / limits)).max())

    def _check_reach(self, means: np.ndarray) -> None:
        """Where the kernel of any two rows is zero, MMD^2 is the same for all projections."""
        of_different_rows = means - np.diag(self.sample.weight_squares)
        if of_different_rows.max() <= np.finfo(float).eps:
            raise ValueError(
                f"bandwidth={self.settings.bandwidth!r} is too small next to the distances between the rows, so that "
                "MMD^2 does not depend on the projection; raise bandwidth or use 'median'."
            )

    def _problem(
        self, sample: GroupedSample, kernel: Any, limits: np.ndarray | RandomLevels, noise: float = 0.0
    ) -> DiscrepancyProblem:
        """With a curvature model of its own, for which fewer features and rows will do."""
        count = max(_CURVATURE_FEATURES // len(self.pairs), 50)
        features = FourierKernel(self.bandwidth, self.dimension, count, self.rng)
        few = sample.subsample(_CURVATURE_ROWS, self.rng)
        unit = self.tolerance if isinstance(limits, RandomLevels) else None
        problem = DiscrepancyProblem(sample, self.covariance, kernel, self.pairs, features, few, noise, limits, unit)
        self._problems.append(problem)
        return problem

    def _search(
        self, sample: GroupedSample, kernel: Any, limits: np.ndarray | RandomLevels, noise: float = 0.0
    ) -> LimitedSearch:
        problem = self._problem(sample, kernel, limits, noise)
        approximate = sample.n_rows < self.sample.n_rows
        return LimitedSearch(
            problem, self.tolerance, self.rng, self._report, self.settings.max_iter, approximate=approximate
        )

    def _report(self, stage: str, solution: Solution) -> bool:
        """Count a step and tell the caller of it; whether to stop, and nothing is begun after that."""
        self.n_iter += 1
        excess = solution.constraint / solution.tolerance
        _log.info("step %d (%s): variance %.5f, MMD^2 / tolerance %.4f", self.n_iter, stage, -solution.loss, excess)
        if self.settings.callback is not None:
            state = {"penalty": solution.penalty, "loss": solution.loss, "constraint": solution.constraint}
            self.stopped = bool(self.settings.callback({"stage": stage, "n_iter": self.n_iter, **state}))
        return self.stopped

    @property
    def _extends_large(self) -> bool:
        """Whether an earlier solution is all to start from: other paths cost little in small frames only."""
        return self.fewer is not None and self.pca.size > SMALL_FRAME

    def _starts(self) -> list[np.ndarray]:
        """Frames to start from: mean parity, and ordinary PCA or what extends an earlier solution."""
        starts = [self.pca]
        with contextlib.suppress(ValueError):  # fewer directions with equal means than components
            starts.append(mean_parity_basis(self.moments, self.dimension))
        if self.fewer is not None:
            starts[0] = self._extended(self.fewer)
        # Ordinary PCA can be a saddle point (features of deficient rank); a touch of noise leaves it.
        return [
            orthonormalise(basis + 1e-3 * self.rng.standard_normal(basis.shape) / np.sqrt(basis.size))
            for basis in starts
        ]

    def _extended(self, fewer: np.ndarray) -> np.ndarray:
        """An earlier basis and, beside it, the directions of equal means with the most variance."""
        apart = (self.moments.means - self.moments.pooled_mean).T
        missing = self.dimension - fewer.shape[1]
        for taken in (np.column_stack([fewer, apart]), fewer):
            left = _complement(taken)
            if left.shape[1] >= missing:
                break
        more = left @ top_eigenpairs(left.T @ self.covariance @ left, missing)[1]
        return orthonormalise(np.column_stack([fewer, more]))

    def _solve_by_paper(self, at_pca: float) -> Solution:
        """Algorithm 1 of the paper, from the authors' start and with their first penalty."""
        features = FourierKernel(self.bandwidth, self.dimension, _FEATURES, self.rng)
        kernel = features if self._takes_features() else exact_kernel(self.bandwidth)
        limits = self._levels(self.sample) if self.automatic else self.limits
        problem = self._problem(self.sample, kernel, limits, _SINGLE_NOISE if kernel is features else 0.0)
        start = random_frame(self.rng, *self.pca.shape)
        return repms(
            problem,
            start,
            tolerance=self.tolerance,
            penalty=1.0 / at_pca,
            report=self._report,
            max_iter=self.settings.max_iter,
        )

    def _solve_by_features(self) -> Solution:
        """Random features on growing subsamples; the tolerance is corrected until the exact value fits.

        In one or two dimensions all rows are summed exactly in the end, by a grid.
        """
        features = FourierKernel(self.bandwidth, self.dimension, _FEATURES, self.rng)
        by_grid = self.dimension <= 2 and self.sample.n_rows > GRID_ROWS
        result, size = None, _FIRST_ROWS
        while True:
            sample = self.sample.subsample(size, self.rng)
            basis = self.pca if result is None else result.basis
            limits = self._levels(sample) if self.automatic else self.limits + self._excess_levels(sample, basis)
            exactly = by_grid and sample.n_rows > GRID_ROWS
            kernel = exact_kernel(self.bandwidth) if exactly else features
            search = self._search(sample, kernel, limits, noise=_GRID_NOISE if exactly else _SINGLE_NOISE)
            if result is None:
                result = search.solve(self._starts(), alone=self._extends_large)
            else:
                result = search.improve(search.follow(result))
            if self.stopped or sample.n_rows == self.sample.n_rows:
                return result if exactly or self.stopped else self._corrected(search, result)
            size = self.sample.n_rows if by_grid else size * _ROW_GROWTH

    def _excess_levels(self, sample: GroupedSample, basis: np.ndarray) -> np.ndarray:
        """How much more sampling noise a subsample shows than all rows, for each pair."""
        if sample.n_rows == self.sample.n_rows:
            return np.zeros(len(self.pairs))
        values = kernel_means(sample, basis, self.bandwidth).values
        return random_level(sample, values, self.pairs) * (1.0 - sample.n_rows / self.sample.n_rows)

    def _corrected(self, search: LimitedSearch, result: Solution) -> Solution:
        """Features and kernel disagree a little, and a search exploits it: rescale the tolerance by their ratio."""
        best, target = None, self.tolerance
        for _ in range(_CORRECTIONS):
            exact = self._largest(kernel_means(self.sample, result.basis, self.bandwidth).values)
            if exact <= self.tolerance and (best is None or result.loss < best.loss):
                best = result
            if _CLOSE * self.tolerance <= exact <= self.tolerance or self.stopped:
                break
            # Where the features see less than there is, the difference does not shrink with the target.
            missing = exact - min(result.constraint, exact)
            lowered = _AIM * self.tolerance - missing
            target = lowered if lowered > 0.2 * target else target * max(_AIM * self.tolerance / exact, 0.3)
            search.tolerance = target
            result = search.follow(result)
        return result if best is None else best


def _complement(columns: np.ndarray) -> np.ndarray:
    """Orthonormal columns orthogonal to these."""
    vectors, values, _ = np.linalg.svd(columns)
    return vectors[:, int((values > 1e-9 * values[0]).sum()) :]
