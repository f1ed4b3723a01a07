"""Smooth functions of a frame within limits: ``min f(V)`` subject to ``h_j(V) <= tolerance``, with ``h_j >= 0``.

A *path* is the method of multipliers for ``c_j = sqrt(h_j / tolerance) - 1``: minimise ``f`` plus the augmented term
by quasi-Newton steps on the Stiefel manifold, update the multipliers, and so on until the limits are met. Far from
them the term is about ``rho h`` with a rho that grows from step to step; close to them it makes the limits active. The
root makes the term quadratic in what ``h`` is the squared norm of, so that the Gauss-Newton curvature of ``h`` is a
good preconditioner all the way.

There are many local solutions, so paths begin at the starts given and at random frames, and then at random *hops* from
the best solution, as long as they lead to better ones. If no frame within the limits was found, the same hops are made
with the largest ``h_j`` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fairpca.linalg import Geodesic
from fairpca.protocols import PenaltyProblem
from fairpca.solvers.stiefel.augmented_lagrangian import AugmentedTerm
from fairpca.solvers.stiefel.geometry import horizontal, random_frame, retract_polar
from fairpca.solvers.stiefel.quasi_newton import StiefelResult, minimise_on_stiefel

#: Error from rounding alone of a constraint, a difference of numbers up to one.
ROUNDING = 1e-15
_TINY = np.finfo(float).tiny


class _Accuracy(NamedTuple):
    """Gradient norm (f is of the order of one) and iterations of a step; relative error of the limits at the end."""

    gradient: float
    iterations: int
    limits: float


#: Enough to compare paths, for what is returned, and for small frames, where that is cheap.
_ROUGH, _FINE, _FINEST = _Accuracy(2e-3, 40, 1e-2), _Accuracy(1e-4, 120, 2e-4), _Accuracy(1e-9, 120, 1e-9)
#: First stiffness of paths from the starts given, at most: soft, so that they stay where f is low; and from random
#: frames, in turn: firm, so that each finds the limits where it is.
_SOFT, _FIRM = 0.05, (0.3, 0.9, 0.1)
#: Stiffness of a hop next to the largest multiplier, in turn.
_HOP_STIFFNESS = (3.3, 10.0, 30.0)
#: Where a step left more than this share of the error, the term becomes so much stiffer.
_SLOW, _STIFFER = 0.25, 4.0
#: A path ends if so many steps in a row leave more than this share of the error: the limits cannot be met there.
_STUCK, _STUCK_STEPS = 0.7, 4
#: A path is given up where it promises a loss worse than the best by this share.
_HOPELESS = 0.2
#: Entries of a frame (p d) up to which paths are cheap; random starts, up to it and beyond, and how many of all may
#: agree before the rest is left out.
SMALL_FRAME, _SMALL_STARTS, _LARGE_STARTS, _AGREE = 50, 16, 3, 6
#: Length of the step that leaves a saddle point, and of those, in turn, that leave the region of a solution.
_KICK, _HOPS = 0.03, (0.6, 1.0)
#: Share of the tolerance below which a solution has slack; halvings of the path on which the tolerance is crossed.
_SLACK, _CROSSING_STEPS = 0.99, 12
#: Hops in a row that may be of no use, in exact problems and approximate ones, and where all so far have led back;
#: relative differences of values that count as the same solution, and as no gain.
_IDLE_HOPS, _IDLE_COARSE, _RETURNS, _SAME, _GAIN = 8, 3, 2, 1e-3, 1e-4
#: Norms by which the largest constraint is minimised: where three of them meet, a low power leads away.
_POWERS = (32.0, 128.0, 512.0)
#: Iterations for each, and between two computations of the curvature.
_LOWERING, _RENEWED = 200, 60
#: Random frames for the least violation (small frames, and large); steps made from each, after which the first so
#: many are followed whose subspaces differ by this squared sine.
_SMALL_SPARES, _LARGE_SPARES, _FIRST_STEPS, _FOLLOWED, _DIFFERENT = 200, 16, 4, 12, 0.003
#: The same around the lowest: how far the frames are, and how many are followed.
_NEAR, _NEAR_FOLLOWED = np.linspace(0.6, 1.5, 10), 2

#: From the ``h_j`` to a value that is added to the loss, and its derivative by each ``h_j``.
Term = Callable[[np.ndarray], tuple[float, np.ndarray]]


@dataclass(frozen=True)
class Solution:
    """A frame with its own values, and the multipliers there: what a factor e in ``sqrt(h_j)`` would bring."""

    basis: np.ndarray
    loss: float
    constraints: np.ndarray
    tolerance: float
    multipliers: np.ndarray
    stiffness: float = 1.0

    @property
    def constraint(self) -> float:
        return float(self.constraints.max())

    @property
    def feasible(self) -> bool:
        # With room for rounding: the same constraint, summed in another order, is within the limits, too.
        return self.constraint <= max(self.tolerance - ROUNDING, 0.5 * self.tolerance)

    @property
    def penalty(self) -> float:
        """The largest rho of ``f + rho h`` that the multipliers amount to."""
        return float(self.multipliers.max()) / (2.0 * self.tolerance)

    @property
    def estimate(self) -> float:
        """To first order, the loss where the limits are met and active."""
        return self.loss + float(self.multipliers @ (np.sqrt(self.constraints / self.tolerance) - 1.0))

    @property
    def rank(self) -> tuple[bool, float]:
        return not self.feasible, self.loss if self.feasible else self.constraint


#: Called after each step with its stage and where it ended; the search ends early if it returns True.
Report = Callable[[str, Solution], bool]


def minimise_term(
    problem: PenaltyProblem,
    basis: np.ndarray,
    term: Term,
    *,
    tol: float,
    max_iter: int,
    unit: float = 1.0,
    with_loss: bool = True,
    precondition: bool = True,
    until: float = -np.inf,
) -> StiefelResult:
    """Lower the loss plus the term, or the term alone, in these units; stop below ``until``."""

    def objective(frame: np.ndarray) -> tuple[float, np.ndarray]:
        here = problem.evaluate(frame)
        value, slopes = term(here.constraints)
        gradient = here.constraint_gradient(slopes)
        if with_loss:
            value, gradient = value + here.loss, gradient + here.loss_gradient
        return value / unit, gradient / unit

    here = problem.evaluate(basis)
    weight = max(float(term(here.constraints)[1].max()) / unit, _TINY)
    curvature = problem.curvature(basis) if precondition else None
    apply = None
    if curvature is not None:
        # f is a quadratic form, so its curvature is of the size of f itself, spread over the columns; without f, a
        # little of the identity keeps the model definite.
        size = 2.0 * max(abs(here.loss), 1e-8) / basis.shape[1]
        floor = size if with_loss else max(1e-4 * weight * float(curvature.values.max()), 1e-12)
        apply = curvature.preconditioner(weight, floor)
    return minimise_on_stiefel(
        objective,
        basis,
        tol=tol,
        max_iter=max_iter,
        invariant=problem.invariant,
        # Times a large weight rounding is more than a search could gain, and would take all its iterations.
        noise=weight * max(problem.noise, ROUNDING),
        precondition=apply,
        callback=lambda state: state.value <= until,
    )


def _rooted(augmented: AugmentedTerm, target: float) -> Term:
    """The augmented term of ``sqrt(h_j / target) - 1``."""

    def term(constraints: np.ndarray) -> tuple[float, np.ndarray]:
        roots = np.sqrt(np.maximum(constraints, _TINY) / target)
        value, slopes = augmented(roots - 1.0)
        return value, slopes / (2.0 * target * roots)

    return term


def norm_term(power: float) -> Term:
    """``(sum_j h_j^q)^(1/q)``: at most ``m^(1/q)`` times the largest of m."""

    def term(constraints: np.ndarray) -> tuple[float, np.ndarray]:
        largest = max(float(constraints.max()), _TINY)
        shares = constraints / largest
        size = float((shares**power).sum() ** (1.0 / power))
        return largest * size, (shares / size) ** (power - 1.0)

    return term


class LimitedSearch:
    """One place that owns the steps: paths, hops, and calls of ``report``; ``max_iter`` bounds the steps of a path.

    An ``approximate`` problem is searched less thoroughly: small gains are left to the exact one.
    """

    def __init__(
        self,
        problem: PenaltyProblem,
        tolerance: float,
        rng: np.random.Generator,
        report: Report,
        max_iter: int = 100,
        *,
        approximate: bool = False,
    ) -> None:
        self._gain, self._idle_hops = (_SAME, _IDLE_COARSE) if approximate else (_GAIN, _IDLE_HOPS)
        self.problem, self.tolerance, self.rng = problem, tolerance, rng
        self.report, self.max_iter, self.stopped = report, max_iter, False

    def solve(self, starts: Sequence[np.ndarray], *, alone: bool = False) -> Solution:
        """The best solution found from the starts and, unless ``alone``, random frames and hops from the best of them.

        If no frame within the limits was found, it is the one with the smallest ``max_j h_j``.
        """
        ends = self._ends(starts, 0 if alone else None)
        within = sorted((end for end in ends if end.constraint <= 4.0 * self.tolerance), key=lambda end: end.estimate)
        found = [end for end in ends if end.feasible]
        for end in within:
            if not found or end.estimate < min(found, key=_rank).loss:
                found.append(self.polish(end))
        best = min(found or ends, key=_rank)
        if not (best.feasible or self.stopped):
            best = self._closest([*(end.basis for end in ends), best.basis])
        if best.feasible and not (alone or self.stopped):
            best = self.improve(self._advanced(best, starts[0]))
            if best.basis.size <= SMALL_FRAME and not self.stopped and best.multipliers.any():
                best = min(best, *self._path(best.basis, best.multipliers, best.stiffness, _FINEST), key=_rank)
        return best

    def _ends(self, starts: Sequence[np.ndarray], n_random: int | None) -> list[Solution]:
        """Ends of rough paths, until several of the best agree."""
        first = self.problem.evaluate(starts[0]).constraints
        # The term is then about ``h / max_j h_j`` at the first start.
        soft = min(_SOFT, 2.0 * self.tolerance / max(float(first.max()), _TINY))
        ends: list[Solution] = []
        for start in starts:
            if not self.stopped:
                ends.append(self._path(start, np.zeros(len(first)), soft, _ROUGH)[-1])
        usual = _SMALL_STARTS if starts[0].size <= SMALL_FRAME else _LARGE_STARTS
        for i in range(usual if n_random is None else n_random):
            lowest = min((end.estimate for end in ends if end.constraint <= 1.1 * self.tolerance), default=np.inf)
            agreeing = sum(end.estimate - lowest <= _SAME * abs(lowest) for end in ends)
            if self.stopped or (np.isfinite(lowest) and agreeing >= _AGREE):
                break
            frame = random_frame(self.rng, *starts[0].shape)
            ends.append(self._path(frame, np.zeros(len(first)), _FIRM[i % 3], _ROUGH, _hopeless(lowest))[-1])
        return ends

    def _path(
        self, basis: np.ndarray, multipliers: np.ndarray, stiffness: float, accuracy: _Accuracy, ceiling: float = np.inf
    ) -> list[Solution]:
        """Steps of the method of multipliers; given up where they promise a loss above the ceiling."""
        target = max(self.tolerance * (1.0 - accuracy.limits) - 2.0 * ROUNDING, 0.4 * self.tolerance)
        path: list[Solution] = []
        before, stuck = np.inf, 0
        for _ in range(self.max_iter):
            augmented = AugmentedTerm(multipliers, stiffness)
            term = _rooted(augmented, target)
            basis = minimise_term(self.problem, basis, term, tol=accuracy.gradient, max_iter=accuracy.iterations).basis
            updated = augmented(np.sqrt(self.problem.evaluate(basis).constraints / target) - 1.0)[1]
            error = float(np.abs(updated - multipliers).max()) / stiffness
            multipliers = updated
            path.append(self._told("path" if accuracy is _ROUGH else "polish", basis, multipliers, stiffness))
            stuck = stuck + 1 if error > _STUCK * before else 0
            if error <= 0.5 * accuracy.limits or self.stopped or stuck == _STUCK_STEPS:
                break
            if len(path) > 1 and path[-1].estimate > ceiling:
                break
            stiffness *= _STIFFER if error > _SLOW * before else 1.0
            before = error
        return path

    def follow(self, earlier: Solution) -> Solution:
        """The solution near that of another problem or tolerance; a path of its own only if that leads nowhere."""
        end = self._path(earlier.basis, earlier.multipliers, earlier.stiffness, _ROUGH)[-1]
        near = self.polish(end)
        return near if near.feasible or self.stopped else self.solve([near.basis], alone=True)

    def improve(self, best: Solution) -> Solution:
        """What hops from a solution within the limits lead to."""
        if not best.feasible or self.stopped:
            return best
        return self._hop(best, self._nearby, lambda end: end.estimate)

    def polish(self, end: Solution) -> Solution:
        """The solution near the end of a path, with the limits active."""
        if self.stopped:
            return end
        # Where a reflection maps the problem to itself, searches end on its mirror, which may be a saddle point.
        return min(self._path(self._moved(end.basis, _KICK), end.multipliers, end.stiffness, _FINE), key=_rank)

    def _advanced(self, inside: Solution, outside: np.ndarray) -> Solution:
        """From a solution with slack, as far towards a frame beyond the limits as they allow, if that lowers the loss.

        No path leaves a frame at which loss and constraints are stationary together, such as one of directions in which
        the rows do not vary at all.
        """
        if inside.constraint >= _SLACK * self.tolerance:
            return inside
        path, low, high = Geodesic(inside.basis, outside), 0.0, 1.0
        for _ in range(_CROSSING_STEPS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._largest(path.basis(middle)) <= self.tolerance else (low, middle)
        basis = path.basis(low)
        here = self.problem.evaluate(basis)
        if here.loss >= inside.loss:
            return inside
        # The multiplier that balances the slopes of the loss and of the largest constraint.
        largest = (here.constraints == here.constraints.max()).astype(float)
        slope = horizontal(basis, here.constraint_gradient(largest)) / (2.0 * self.tolerance)
        along = -float(np.vdot(slope, horizontal(basis, here.loss_gradient)))
        multiplier = max(along, 0.0) / max(float(np.vdot(slope, slope)), _TINY)
        crossing = Solution(basis, here.loss, here.constraints, self.tolerance, multiplier * largest)
        stiffness = _HOP_STIFFNESS[-1] * max(multiplier, _SOFT)
        return min(crossing, *self._path(basis, crossing.multipliers, stiffness, _FINE), key=_rank)

    def _hop(
        self, best: Solution, attempt: Callable[[Solution, int], Solution], value: Callable[[Solution], float]
    ) -> Solution:
        """Leave a solution by random steps, as long as that now and then leads to a better one.

        Where all of the first hops lead back, there is nothing else near, and the search ends soon.
        """
        idle = returns = count = 0
        while idle < (_RETURNS if returns == count else self._idle_hops) and not self.stopped:
            trial = attempt(best, count)
            returns += abs(value(trial) - value(best)) <= _SAME * abs(value(best))
            outside, level = best.rank
            better = trial.rank < (outside, level - self._gain * abs(level))
            idle, best = (0, trial) if better else (idle + 1, best)
            count += 1
        return best

    def _nearby(self, best: Solution, count: int) -> Solution:
        start = self._moved(best.basis, _HOPS[count % len(_HOPS)])
        stiffness = _HOP_STIFFNESS[count % 3] * max(float(best.multipliers.max()), 1e-6)
        end = self._path(start, best.multipliers, stiffness, _ROUGH, _hopeless(best.loss))[-1]
        return self.polish(end) if end.estimate < best.loss - self._gain * abs(best.loss) else end

    def _closest(self, frames: Sequence[np.ndarray]) -> Solution:
        """No frame within the limits was found: the least violation that can be reached, and what lies within it."""
        shape = frames[0].shape
        count = _SMALL_SPARES if frames[0].size <= SMALL_FRAME else _LARGE_SPARES
        spares = [] if self.stopped else [random_frame(self.rng, *shape) for _ in range(count)]
        best = self._lowest([*frames, *spares], _FOLLOWED)
        best = self._hop(best, self._lower_nearby, lambda end: end.constraint)
        if not best.feasible or self.stopped:
            return best
        rough = self._path(best.basis, best.multipliers, _FIRM[0], _ROUGH)[-1]
        return min(best, rough, self.polish(rough), key=_rank)

    def _lower_nearby(self, best: Solution, _count: int) -> Solution:
        return best if best.feasible else self._lowest([self._moved(best.basis, far) for far in _NEAR], _NEAR_FOLLOWED)

    def _lowest(self, frames: Sequence[np.ndarray], count: int) -> Solution:
        """The least of the minima of the largest constraint from different frames: a few steps tell which to follow."""
        lowered = frames if self.stopped else [self._lower(frame, _POWERS[0], _FIRST_STEPS) for frame in frames]
        zero = np.zeros(len(self.problem.evaluate(frames[0]).constraints))
        found: list[Solution] = []
        followed: list[np.ndarray] = []
        for frame in sorted(lowered, key=self._largest):
            overlaps = [float(np.linalg.norm(other.T @ frame)) ** 2 for other in followed]
            if len(followed) < count and max(overlaps, default=0.0) < frame.shape[1] - _DIFFERENT:
                followed.append(frame)
                found.append(self._told("lower", self._lowered(frame), zero, _FIRM[0]))
            if self.stopped or (found and found[-1].feasible):
                break
        return min(found, key=_rank)

    def _lowered(self, basis: np.ndarray) -> np.ndarray:
        """A minimum of the largest constraint, by norms that come ever closer to it; never larger than at the start."""
        if self.stopped:
            return basis
        several = len(self.problem.evaluate(basis).constraints) > 1
        for power in _POWERS if several else _POWERS[:1]:
            basis = min(basis, self._lower(basis, power, _LOWERING), key=self._largest)
        return basis

    def _lower(self, basis: np.ndarray, power: float, max_iter: int) -> np.ndarray:
        term, left, within = norm_term(power), max_iter, 0.9 * self.tolerance
        while left > 0:
            unit = max(term(self.problem.evaluate(basis).constraints)[0], _TINY)
            inner = minimise_term(
                self.problem, basis, term, tol=1e-7, max_iter=min(_RENEWED, left), unit=unit, with_loss=False,
                until=within / unit,
            )  # fmt: skip
            basis, left = inner.basis, left - max(inner.n_iter, 1)
            if inner.converged or inner.value > 1.0 - 1e-6 or inner.value * unit <= within:
                break
        return basis

    def _largest(self, basis: np.ndarray) -> float:
        return float(self.problem.evaluate(basis).constraints.max())

    def _moved(self, basis: np.ndarray, length: float) -> np.ndarray:
        """A frame so far away, in a random direction."""
        noise = horizontal(basis, self.rng.standard_normal(basis.shape))
        return retract_polar(basis, length * noise / max(float(np.linalg.norm(noise)), _TINY))

    def _told(self, stage: str, basis: np.ndarray, multipliers: np.ndarray, stiffness: float) -> Solution:
        """The values at a frame, after ``report``, which may ask to stop."""
        here = self.problem.evaluate(basis)
        solution = Solution(basis, here.loss, here.constraints, self.tolerance, multipliers, stiffness)
        self.stopped = self.report(stage, solution) or self.stopped
        return solution


def _rank(solution: Solution) -> tuple[bool, float]:
    return solution.rank


def _hopeless(loss: float) -> float:
    return loss + _HOPELESS * abs(loss) if np.isfinite(loss) else np.inf
