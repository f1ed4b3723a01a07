"""The search of MMDFairPCA: problems at several sizes, starts, and the order in which they are solved."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairpca.linalg import orthonormalise, top_eigenpairs
from fairpca.moments import GroupedSample, GroupMoments
from fairpca.moments.bandwidths import Bandwidth, check_bandwidth, halved_bandwidths, squared_distance_median
from fairpca.moments.dask import DaskSample
from fairpca.moments.fourier import FourierKernel
from fairpca.moments.kernel_means import exact_kernel, exact_means, kernel_means
from fairpca.problems.mmd import DiscrepancyProblem, RandomLevels, pair_discrepancies, random_level
from fairpca.problems.parity import mean_parity_basis
from fairpca.solvers.stiefel.exact_penalty import (
    PenaltyResult,
    follow_within,
    hop_within,
    minimise_within,
    refine_within,
    repms,
)
from fairpca.solvers.stiefel.feasibility import minimise_constraint
from fairpca.solvers.stiefel.geometry import random_frame

__all__ = ["SMALL_FRAME", "DiscrepancySearch", "Sample", "Scores", "SearchSettings"]

#: Up to this many rows the exact kernel sums cost less than enough Fourier features.
_EXACT_ROWS = 6000
#: Error of MMD^2 from single precision in the features.
_SINGLE_NOISE = 3e-9
#: Fourier features of the objective; those of the curvature model (shared among the pairs of groups) and its rows.
_FEATURES = 600
_CURVATURE_FEATURES, _CURVATURE_ROWS = 700, 6000
#: Rows of the first subsample on which large data are solved, and the growth from one to the next.
_FIRST_ROWS, _ROW_GROWTH = 4000, 4
#: Minimisers of MMD^2 to start from: several where frames are small (p d up to this), so that paths are cheap.
SMALL_FRAME, _SMALL_STARTS, _LARGE_STARTS = 50, 8, 3
#: Frames so small (p d) that random ones hit every region within the tolerance; each of the best is started from.
_TINY_FRAME, _TINY_STARTS = 6, 4
#: Random frames from which the smallest MMD^2 is searched if no frame within the tolerance was found: where frames are
#: large, and small; more for tiny ones, as long as their kernels have no more than so many entries, since few rows make
#: many narrow valleys.
_LARGE_SPARES, _SMALL_SPARES, _TINY_SPARES, _TINY_ENTRIES = 16, 48, 200, 2_000_000
#: Rounds in which the tolerance given to an approximate problem is corrected by the exact value on all rows.
_CORRECTIONS = 6
#: Level of random groups, next to that at ordinary PCA, below which all rows of a pair count as the same.
_LEAST_LEVEL = 1e-9

Sample = GroupedSample | DaskSample
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
        sample: Sample,
        pairs: np.ndarray,
        dimension: int,
        rng: np.random.Generator,
        scores: Scores,
    ) -> None:
        self.settings, self.moments, self.sample, self.pairs = settings, moments, sample, pairs
        self.dimension, self.rng = dimension, rng
        self.automatic = settings.tolerance == "auto"
        self.limits = np.full(len(pairs), np.inf if self.automatic else float(settings.tolerance))
        self.covariance = moments.pooled_covariance()
        self.pca = top_eigenpairs(self.covariance, dimension)[1]
        self.bandwidth = self._bandwidth(scores)
        self.n_iter = self.n_evaluations = 0
        self._floor = 0.0
        self.stopped = False

    def _bandwidth(self, scores_by: Scores) -> Bandwidth:
        chosen = check_bandwidth(self.settings.bandwidth)
        if not isinstance(chosen, str):
            return chosen
        scores, sample_weight = scores_by(self.pca)
        sigma = float(np.sqrt(0.5 * squared_distance_median(scores, self.rng, sample_weight)))
        return halved_bandwidths(sigma) if chosen == "multiscale" else sigma

    def solve(self) -> PenaltyResult:
        """The best frame found; ``limits`` and ``n_evaluations`` belong to it afterwards."""
        means = exact_means(self.sample, self.pca, self.bandwidth)
        self._check_reach(means)
        if self.automatic:
            self._set_levels(means)
        at_pca = self._largest(means)
        if at_pca <= self.tolerance or self.dimension == self.moments.n_features:
            result = self._at_pca(at_pca)
        elif self._takes_features():
            result = self._solve_by_features(1.0 / at_pca)
        else:
            result = self._solve_exactly(1.0 / at_pca)
        return self._in_own_units(result) if self.automatic else result

    def _solve_exactly(self, penalty: float) -> PenaltyResult:
        """By exact kernel sums. With "auto" the limits are those at ordinary PCA first, and fixed.

        They are larger there, and a looser problem first led to more variance on three of three splits of COMPAS.
        """
        kernel = exact_kernel(self.bandwidth)
        problem = self._problem(self.sample, kernel, self.limits)
        result = self._solve_from_starts(problem, penalty)
        if self.automatic:
            problem = self._problem(self.sample, kernel, self._levels(self.sample))
            result = self._follow(problem, result, problem.tolerance)
        return self._refined(problem, self._hopped(problem, result))

    def _set_levels(self, means: np.ndarray) -> None:
        """With "auto": the limits at these means, and how small they may get elsewhere."""
        levels = random_level(self.sample, means, self.pairs)
        self._floor = max(_LEAST_LEVEL * float(levels.max()), np.finfo(float).tiny)
        self.limits = np.maximum(levels, self._floor)

    def _in_own_units(self, result: PenaltyResult) -> PenaltyResult:
        """With "auto": ``limits`` are those of the solution, and so is the unit of its constraint and penalty."""
        unit = self.tolerance
        self.limits = self._levels(self.sample)(exact_means(self.sample, result.basis, self.bandwidth))
        scale = self.tolerance / unit
        return replace(result, constraint=result.constraint * scale, penalty=result.penalty / scale)

    def _at_pca(self, discrepancy: float) -> PenaltyResult:
        """Ordinary PCA, where it will do or nothing else is possible."""
        total = max(np.trace(self.covariance), np.finfo(float).tiny)
        share = float(np.vdot(self.pca, self.covariance @ self.pca)) / total
        return PenaltyResult(self.pca, -share, discrepancy, 0.0, 0.0, 0, discrepancy <= self.tolerance)

    def _takes_features(self) -> bool:
        """Whether the kernel is approximated during the search: on request, or where the rows are many."""
        large = not isinstance(self.sample, GroupedSample) or self.sample.n_rows > _EXACT_ROWS
        return self.settings.approximation == "fourier" or (self.settings.approximation == "auto" and large)

    @property
    def tolerance(self) -> float:
        """What the constraints of all pairs must stay under once they are brought to one scale."""
        return float(self.limits.max())

    def _levels(self, sample: Sample) -> RandomLevels:
        """What random groups of these rows show on average, as the limits of "auto"."""
        return RandomLevels.of(sample, self.pairs, self._floor)

    def _largest(self, means: np.ndarray) -> float:
        """The largest MMD^2, each next to its own limit, in units of the tolerance."""
        limits = self._levels(self.sample)(means) if self.automatic else self.limits
        return float((pair_discrepancies(means, self.pairs) * (self.tolerance / limits)).max())

    def _hopped(self, problem: DiscrepancyProblem, result: PenaltyResult) -> PenaltyResult:
        """A better local solution near by, if there is one: with categorical features there are many of them."""
        if self.settings.solver == "repms" or self.stopped:
            return result
        options = {"tolerance": problem.tolerance, "outside": self.pca, **self._options()}
        return self._counted(problem, hop_within(problem, result, self.rng, **options))

    def _refined(self, problem: DiscrepancyProblem, result: PenaltyResult) -> PenaltyResult:
        """A more accurate solution for small frames, where that is cheap."""
        if self.pca.size > SMALL_FRAME or self.settings.solver == "repms" or self.stopped:
            return result
        callback = self._report
        return self._counted(problem, refine_within(problem, result, tolerance=problem.tolerance, callback=callback))

    def _check_reach(self, means: np.ndarray) -> None:
        """Where the kernel of any two rows is zero, MMD^2 is the same for all projections."""
        of_different_rows = means - np.diag(self.sample.weight_squares)
        if of_different_rows.max() <= np.finfo(float).eps:
            raise ValueError(
                f"bandwidth={self.settings.bandwidth!r} is too small next to the distances between the rows, so that "
                "MMD^2 does not depend on the projection; raise bandwidth or use 'median'."
            )

    def _problem(
        self, sample: Sample, kernel: Any, limits: np.ndarray | RandomLevels, noise: float = 0.0
    ) -> DiscrepancyProblem:
        """With a curvature model of its own, for which fewer features and rows will do."""
        count = max(_CURVATURE_FEATURES // len(self.pairs), 50)
        features = FourierKernel(self.bandwidth, self.dimension, count, self.rng)
        few = sample.subsample(_CURVATURE_ROWS, self.rng)
        assert isinstance(few, GroupedSample)
        unit = self.tolerance if isinstance(limits, RandomLevels) else None
        return DiscrepancyProblem(sample, self.covariance, kernel, self.pairs, features, few, noise, limits, unit)

    def _solve_from_starts(self, problem: DiscrepancyProblem, penalty: float) -> PenaltyResult:
        options = {"tolerance": problem.tolerance, "penalty": penalty, **self._options()}
        if self.settings.solver == "repms":
            result = repms(problem, self._interior(problem, 0.0), **options)
        else:
            count = _SMALL_STARTS if self.pca.size <= SMALL_FRAME else _LARGE_STARTS
            interiors = [self._interior(problem, 0.1 * problem.tolerance) for _ in range(count)]
            interiors += self._scanned(problem)
            result = minimise_within(problem, self._starts(), interiors, spares=self._spares(problem), **options)
        return self._counted(problem, result)

    def _interior(self, problem: DiscrepancyProblem, target: float) -> np.ndarray:
        """A minimiser of MMD^2 alone, from a random frame: the authors' start."""
        start = random_frame(self.rng, len(self.pca), self.dimension)
        return minimise_constraint(problem, start, target=target)

    def _scanned(self, problem: DiscrepancyProblem) -> list[np.ndarray]:
        """Of small frames: random ones within the tolerance, those with the most variance."""
        if self.pca.size > _TINY_FRAME:
            return []
        frames = [random_frame(self.rng, *self.pca.shape) for _ in range(_SMALL_SPARES)]
        points = [problem.evaluate(frame) for frame in frames]
        within = [(here.loss, i) for i, here in enumerate(points) if here.constraints.max() <= problem.tolerance]
        return [frames[i] for _, i in sorted(within)[:_TINY_STARTS]]

    def _spares(self, problem: DiscrepancyProblem) -> Iterator[np.ndarray]:
        count = _SMALL_SPARES if self.pca.size <= SMALL_FRAME else _LARGE_SPARES
        if self.pca.size <= _TINY_FRAME:
            count = max(count, min(_TINY_SPARES, _TINY_ENTRIES // problem.n_rows**2))
        return (random_frame(self.rng, *self.pca.shape) for _ in range(count))

    def _options(self) -> dict[str, Any]:
        return {"max_iter": self.settings.max_iter, "callback": self._report}

    def _report(self, state: dict[str, Any]) -> bool:
        """Count a penalty step and tell the caller of it; whether to stop, and nothing is begun after that."""
        self.n_iter += 1
        if self.settings.callback is not None:
            self.stopped = bool(self.settings.callback({**state, "n_iter": self.n_iter}))
        return self.stopped

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
            limits = self._levels(sample) if self.automatic else self.limits + self._excess_levels(sample, basis)
            problem = self._problem(sample, kernel, limits, noise=_SINGLE_NOISE)
            result = self._solve_from_starts(problem, penalty) if result is None else self._continue(problem, result)
            if self.stopped:
                return result
            if sample.n_rows == self.sample.n_rows:
                return self._corrected(problem, result)
            size *= _ROW_GROWTH

    def _excess_levels(self, sample: Sample, basis: np.ndarray) -> np.ndarray:
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
        starts = [result.basis, *(self._starts()[-1:] if self.pca.size <= SMALL_FRAME else [])]
        options = {"tolerance": problem.tolerance, "penalty": penalty, **self._options()}
        return self._counted(problem, minimise_within(problem, starts, **options))

    def _follow(self, problem: DiscrepancyProblem, result: PenaltyResult, tolerance: float) -> PenaltyResult:
        """From the solution with a tolerance that was a little different."""
        if self.stopped:
            return result
        return self._counted(problem, follow_within(problem, result, tolerance=tolerance, **self._options()))

    def _counted(self, problem: DiscrepancyProblem, result: PenaltyResult) -> PenaltyResult:
        self.n_evaluations += problem.n_evaluations
        problem.n_evaluations = 0
        return result

    def _corrected(self, problem: DiscrepancyProblem, result: PenaltyResult) -> PenaltyResult:
        """Features and kernel disagree a little, and a search exploits it: rescale the tolerance by their ratio."""
        best, target = None, self.tolerance
        for _ in range(_CORRECTIONS):
            exact = self._largest(exact_means(self.sample, result.basis, self.bandwidth))
            if exact <= self.tolerance and (best is None or result.loss < best.loss):
                best = result
            if 0.97 * self.tolerance <= exact <= self.tolerance or self.stopped:
                break
            # Where the features see less than there is, the difference does not shrink with the target.
            missing = exact - min(result.constraint, exact)
            lowered = self.tolerance * 0.985 - missing
            target = lowered if lowered > 0.2 * target else target * max(0.985 * self.tolerance / exact, 0.3)
            result = self._follow(problem, result, target)
        return result if best is None else best
