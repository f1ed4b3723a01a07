"""Limits ``c_j(V) <= 0`` on subspaces by the augmented Lagrangian, and non-smooth functions within such limits.

:class:`AugmentedTerm` is what a smooth search adds to its objective to keep the limits; its slopes are the next
multipliers.

``minimise_smoothed`` minimises a non-smooth function by smooth approximations of falling temperature. A problem offers
``smoothed(V, T)``, a little above its true value and with a gradient that is a weighted mean of those of the nearly
active pieces. Where that gradient vanishes at a small T, V is stationary for the true function. The multipliers of its
limits are updated as the temperature falls, and a few Newton steps at the end meet the limits to rounding.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fairpca.protocols import SmoothableProblem
from fairpca.solvers.stiefel.geometry import horizontal, retract_qr
from fairpca.solvers.stiefel.quasi_newton import StiefelResult, minimise_on_stiefel

_log = logging.getLogger(__name__)

#: The temperature falls by this factor from one search to the next, which starts where the last one ended.
_COOLING = 0.2
#: Warm searches only prepare the next one: their gradient need not be smaller than this share of the smoothing error.
_WARM_ACCURACY = 0.1
#: All starts are compared at this accuracy; only the best is followed further.
_COARSE = 1e-3
#: Stiffness of the limits at first; it grows where they are not met.
_FIRST_STIFFNESS = 1.0
#: Multiplier updates at the last temperature, at most, until the limits hold to this accuracy.
_LAST_UPDATES = 15
_LIMIT_ACCURACY = 1e-7
_RESTORATIONS = 10


@dataclass(frozen=True)
class AugmentedTerm:
    """``sum_j (max(0, l_j + kappa (c_j - target))^2 - l_j^2) / (2 kappa)``, with multipliers l and stiffness kappa."""

    multipliers: np.ndarray
    stiffness: float
    target: float = 0.0

    def __call__(self, limits: np.ndarray) -> tuple[float, np.ndarray]:
        """The value and its derivative by each ``c_j``, which at a minimiser is the updated multiplier."""
        slopes = np.maximum(0.0, self.multipliers + self.stiffness * (limits - self.target))
        value = float((slopes**2 - self.multipliers**2).sum()) / (2 * self.stiffness)
        return value, slopes


@dataclass(frozen=True)
class SmoothedResult:
    """The best subspace found, with the true value there and the gradient of the last smooth approximation."""

    basis: np.ndarray
    value: float
    gradient_norm: float
    multipliers: np.ndarray
    feasible: bool
    n_iter: int
    n_evaluations: int
    converged: bool


def minimise_smoothed(
    problem: SmoothableProblem, starts: Sequence[np.ndarray], *, tol: float, max_iter: int
) -> SmoothedResult:
    """Search from all starts to a coarse tolerance, and from the best of them to ``tol``.

    ``tol`` is absolute and holds for the smoothing error and for the gradient; ``max_iter`` counts iterations at
    each temperature. Whatever was best in the true function is returned, be it a start.
    """
    coarse = [_Search(problem, start, max(tol, _COARSE), max_iter).run() for start in starts]
    best = min(coarse, key=_rank)
    fine = _Search(problem, best.basis, tol, max_iter, best.multipliers).run()
    kept = [restore_limits(problem, start) for start in starts]
    candidates = [(fine.basis, fine.feasible), (best.basis, best.feasible), *kept]
    basis, feasible = min(candidates, key=lambda pair: (not pair[1], problem.value(pair[0])))
    value = problem.value(basis)
    return dataclasses.replace(
        fine,
        basis=basis,
        value=value,
        feasible=feasible,
        # A start may beat the search by the smoothing error; if by more, nothing shows that it is stationary.
        converged=fine.converged and fine.value - value <= tol,
        n_iter=fine.n_iter + sum(result.n_iter for result in coarse),
        n_evaluations=fine.n_evaluations + sum(result.n_evaluations for result in coarse),
    )


def _rank(result: SmoothedResult) -> tuple[bool, float]:
    return not result.feasible, result.value


class _Search:
    """The searches of one start, from warm to cold."""

    def __init__(
        self,
        problem: SmoothableProblem,
        start: np.ndarray,
        tol: float,
        max_iter: int,
        multipliers: np.ndarray | None = None,
    ) -> None:
        self._problem, self._tol, self._max_iter = problem, tol, max_iter
        self._basis = start
        self._multipliers = np.zeros(len(problem.limits(start))) if multipliers is None else multipliers
        self._stiffness = _FIRST_STIFFNESS
        self._violation = np.inf
        self._n_iter = self._n_evaluations = 0

    def run(self) -> SmoothedResult:
        for temperature in self._temperatures():
            last = self._minimise(temperature)
        for _ in range(_LAST_UPDATES if len(self._multipliers) else 0):
            if self._violation <= _LIMIT_ACCURACY:
                break
            last = self._minimise(temperature)
        basis, feasible = restore_limits(self._problem, self._basis)
        return SmoothedResult(
            basis=basis,
            value=self._problem.value(basis),
            gradient_norm=last.gradient_norm,
            multipliers=self._multipliers,
            feasible=feasible,
            n_iter=self._n_iter,
            n_evaluations=self._n_evaluations,
            converged=last.converged and feasible and self._violation <= _LIMIT_ACCURACY,
        )

    def _temperatures(self) -> Iterator[float]:
        """From the size of the pieces at the start down to a smoothing error of tol."""
        error = self._problem.smoothing_error(self._basis)
        coldest = self._tol / error if error > 0 else np.inf
        temperature = _COOLING * self._problem.spread(self._basis)
        while temperature > coldest:
            yield temperature
            temperature *= _COOLING
        yield coldest

    def _minimise(self, temperature: float) -> StiefelResult:
        """One search at fixed temperature and multipliers, and the update of the multipliers."""
        term = self._term()

        def lagrangian(basis: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = self._problem.smoothed(basis, temperature)
            if not len(self._multipliers):
                return value, gradient
            added, slopes = term(self._problem.limits(basis))
            return value + added, gradient + self._problem.limits_gradient(basis, slopes)

        tol = max(self._tol, _WARM_ACCURACY * temperature * self._problem.smoothing_error(self._basis))
        result = minimise_on_stiefel(lagrangian, self._basis, tol=tol, max_iter=self._max_iter)
        self._basis = result.basis
        self._n_iter += result.n_iter
        self._n_evaluations += result.n_evaluations
        self._update_multipliers()
        _log.info("temperature %.3g: value %.9g, gradient %.3g", temperature, result.value, result.gradient_norm)
        return result

    def _term(self) -> AugmentedTerm:
        return AugmentedTerm(self._multipliers, self._stiffness)

    def _update_multipliers(self) -> None:
        """The usual rule: stiffer where the limits (and complementarity) did not improve enough."""
        _, updated = self._term()(self._problem.limits(self._basis))
        violation = float(np.abs(updated - self._multipliers).max(initial=0.0)) / self._stiffness
        if violation > 0.25 * self._violation:
            self._stiffness *= 5.0
        self._multipliers, self._violation = updated, violation


def restore_limits(problem: SmoothableProblem, basis: np.ndarray) -> tuple[np.ndarray, bool]:
    """The nearest subspace, to first order, that keeps the limits: Newton steps on the violated ones."""
    for _ in range(_RESTORATIONS):
        violated = np.flatnonzero(problem.limits(basis) > 0)
        if not len(violated):
            return basis, True
        excess = problem.limits(basis)[violated] + np.finfo(float).eps
        units = np.zeros((len(violated), len(problem.limits(basis))))
        units[np.arange(len(violated)), violated] = 1.0
        slopes = np.stack([horizontal(basis, problem.limits_gradient(basis, unit)) for unit in units])
        gram = np.einsum("ipd,jpd->ij", slopes, slopes)
        step = np.tensordot(np.linalg.lstsq(gram, -excess, rcond=None)[0], slopes, axes=1)
        # At the maximum of a limit the slope vanishes and a Newton step has no end; by its curvature, of the order of
        # 1 as the limits are, this much is enough.
        longest = 2.0 * np.sqrt(excess.sum())
        basis = retract_qr(basis, step * min(1.0, longest / max(float(np.linalg.norm(step)), np.finfo(float).tiny)))
    return basis, bool((problem.limits(basis) <= _LIMIT_ACCURACY).all())
