"""FairPCA: principal components that minimise the largest reconstruction loss of any group."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, ClassVar

import numpy as np

from fairpca._labels import quoted
from fairpca._saved import NUMBER, PER_GROUP, Array, Record
from fairpca._validation import check_choice, check_number
from fairpca.estimators._base import Fit, MomentEstimator
from fairpca.joint_range import JointRange, RangePoint
from fairpca.linalg import extend_by_leading
from fairpca.moments import GroupMoments, Reduction
from fairpca.problems import CRITERIA, balanced_problem
from fairpca.protocols import MakeProblem, RangeProblem, RangeSolution, RelaxedSolution, SolverResult, Status
from fairpca.solvers import (
    minimise_on_operators,
    minimise_on_range,
    multiplicative_weights,
    solve_sdp,
    tighten_bound,
)

__all__ = ["FairPCA", "RelaxedProjection", "complete_basis"]

_SOLVERS = ("auto", "dual", "mw", "sdp")
#: The gap if the data is used as an operator, relative to the total variance: each digit costs a pass over the rows.
_OPERATOR_TOL = 1e-5
#: Time limit of the search for a tighter bound.
_CERTIFY_SECONDS = 10.0
#: A direction captures nothing if its weighted variance is below this share of the largest.
_NOTHING = 1e-12


@dataclasses.dataclass(frozen=True)
class RelaxedProjection:
    """The solution of the 2018 paper: an optimum of the relaxation, of rank d or slightly more.

    Attributes
    ----------
    components : ndarray of shape (rank, n_features)
    eigenvalues : ndarray of shape (rank,)
        Eigenvalues of P, in (0, 1]; they sum to n_components.
    shrinkage : ndarray of shape (rank,)
        ``1 - sqrt(1 - eigenvalue)``, the factors of Algorithm 1.
    group_losses : ndarray of shape (n_groups,)
    objective : float
    """

    components: np.ndarray
    eigenvalues: np.ndarray
    shrinkage: np.ndarray
    group_losses: np.ndarray
    objective: float
    mean: np.ndarray

    @property
    def rank(self) -> int:
        return len(self.eigenvalues)

    def transform(self, X: Any) -> np.ndarray:
        """The paper's embedding, with ``rank`` coordinates."""
        return (np.asarray(X) - self.mean) @ self.components.T * self.shrinkage

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Rows reconstructed from the embedding; their errors are those of the relaxation."""
        return np.asarray(X) @ self.components + self.mean


_RELAXED = Record(
    RelaxedProjection,
    {
        "components": Array("rp", finite=True),
        "eigenvalues": Array("r"),
        "shrinkage": Array("r", finite=True),
        "group_losses": PER_GROUP,
        "objective": NUMBER,
        "mean": Array("p", finite=True),
    },
)


@dataclasses.dataclass(frozen=True)
class BalancedFit(Fit):
    """A fit with the optimum of the relaxation, in coordinates, what it captures of each group, and its objective."""

    relaxed: RelaxedSolution
    relaxed_captured: np.ndarray
    relaxed_objective: float


class FairPCA(MomentEstimator):
    """Principal components that serve every group as well as possible, solved to proven optimality.

    For the default criterion it solves, over d-dimensional projections P (Samadi et al. 2018),

    ``min_P max_a l_a(P)``,  ``l_a(P) = b_a - <M_a, P>``,

    where M_a is the second moment of group a about the pooled mean and b_a the most that any d dimensions could
    capture of that group alone: the *loss* of a group is what sharing the projection costs it.

    Parameters
    ----------
    n_components : int, default=2
        Number of dimensions kept, 1 to n_features.
    criterion : {"loss", "error", "variance", "nash"}, default="loss"
        What is balanced: the largest loss, the largest reconstruction error, the smallest captured variance, or
        the product of the captured variances (maximised).
    solver : {"auto", "dual", "mw", "sdp"}, default="auto"
        "dual" (= "auto") is exact and certified. "mw" and "sdp" are the algorithms of the 2018 paper, as references:
        multiplicative weights, and a semidefinite program with LP rounding (needs the extra ``fairpca[sdp]``).
    center : {"pooled", "group"}, default="pooled"
        Whether M_a is taken about the pooled mean or the group's own. ``mean_`` and ``transform`` stay pooled,
        since the group of a new row is not known.
    tol : float, default=1e-11
        Largest accepted gap between objective and bound, relative to the total variance.
    max_iter : int, default=500
    certify : bool or float, default=False
        With three or more groups the bound comes from a relaxation, which can leave a gap. If True, a search by branch
        and bound tightens it for up to 10 seconds; a number sets another time limit in seconds. Useful for few groups,
        up to about ten; not for ``criterion="nash"``. As the search depends on time, so does the bound.
    random_state : int, RandomState or None
        Used only if three or more groups need several roundings; results are reproducible even with None.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal rows with uncorrelated scores, by descending variance; the largest entry of each is positive.
    mean_, explained_variance_, explained_variance_ratio_, noise_variance_, n_components_, n_features_in_, \
feature_names_in_, n_samples_seen_
        As in :class:`sklearn.decomposition.PCA`.
    groups_, group_counts_ : ndarray of shape (n_groups,)
    group_errors_ : ndarray of shape (n_groups,)
        Mean squared reconstruction error of each group.
    group_losses_ : ndarray of shape (n_groups,)
        Equal for two groups (criterion "loss").
    group_weights_ : ndarray of shape (n_groups,)
        The dual solution: the weight of each group in the weighted PCA that gives the result.
    objective_, lower_bound_, duality_gap_ : float
        The minimised quantity at the returned components, a lower bound for any projection, and the difference.
    relaxed_ : RelaxedProjection
        The optimum of the convex relaxation, which may have extra dimensions with three or more groups.
    n_iter_, n_oracle_calls_ : int
    converged_ : bool

    See Also
    --------
    fairpca.metrics.reconstruction_loss : The same values on other data.

    Notes
    -----
    With two groups the relaxation is tight, so the result is the exact optimum in n_components dimensions, without the
    extra dimension of the 2018 paper. With three or more groups the relaxation may need extra rank; then
    ``duality_gap_`` is valid but not zero, and the components are the best found.

    With more than 3000 features no p x p matrix is formed. With at most 2000 rows, the problem is solved exactly in the
    space that they span. With more rows, the data is used as an operator, the gap is closed to 1e-5 of the total
    variance (or ``tol``, if larger), and the bound fails with a probability below 1e-10 (see docs/scaling.md).

    Equal losses do not mean equal errors: a group that is harder to compress keeps a larger error.

    References
    ----------
    Samadi, Tantipongpipat, Morgenstern, Singh and Vempala (2018). The Price of Fair PCA: One Extra Dimension.
    NeurIPS.

    Tantipongpipat, Samadi, Singh, Morgenstern and Vempala (2019). Multi-Criteria Dimensionality Reduction with
    Applications to Fairness. NeurIPS.

    Examples
    --------
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_german_credit
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> pca = FairPCA(n_components=3).fit(X, sensitive_features=sex)
    >>> first, second = pca.group_losses_
    >>> bool(abs(first - second) < 1e-9)
    True
    >>> bool(pca.duality_gap_ < 1e-9)
    True
    >>> pca.transform(X).shape
    (1000, 3)
    """

    _saved_attributes: ClassVar = {"group_weights_": PER_GROUP, "relaxed_": _RELAXED}

    def __init__(
        self,
        n_components: int = 2,
        *,
        criterion: str = "loss",
        solver: str = "auto",
        center: str = "pooled",
        tol: float = 1e-11,
        max_iter: int = 500,
        certify: bool | float = False,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.criterion = criterion
        self.solver = solver
        self.center = center
        self.tol = tol
        self.max_iter = max_iter
        self.certify = certify
        self.random_state = random_state

    def _advice(self, status: Status) -> str:
        if status is Status.MAX_ITER and self.solver == "mw":
            return "To close the gap, raise max_iter or tol, or use solver='dual'."
        if status is Status.GAP:
            hint = "" if self.certify or self.criterion == "nash" else " certify=True searches for a tighter bound."
            return f"The solution with extra dimensions is in relaxed_.{hint}"
        return super()._advice(status)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("criterion", self.criterion, CRITERIA)
        check_choice("solver", self.solver, _SOLVERS)
        check_choice("center", self.center, ("pooled", "group"))
        check_number("tol", self.tol, at_least=0)
        check_number("max_iter", self.max_iter, at_least=1, integer=True)
        if not isinstance(self.certify, bool):
            check_number("certify", self.certify, at_least=0)
        if self.certify and self.criterion == "nash":
            raise ValueError("certify tightens the bound on a largest term; use certify=False for criterion='nash'.")
        if self.solver == "mw" and self.criterion == "nash":
            raise ValueError("solver='mw' minimises a largest term; use solver='dual' for criterion='nash'.")

    def _takes_operators(self) -> bool:
        return self.solver in ("auto", "dual")

    def _can_learn_from(self, moments: GroupMoments) -> bool:
        constant = self._constant_groups(moments)
        if constant:
            warnings.warn(
                f"criterion='nash' needs variance in every group, and the rows of {quoted(constant[0])} have none so "
                "far: the chunk is kept, but no components are learned until later chunks add some.",
                UserWarning,
                stacklevel=3,
            )
        return not constant

    def _constant_groups(self, reduction: Reduction) -> list[Any]:
        """Groups whose variance is within the rounding error of the means; matters only for criterion "nash"."""
        if self.criterion != "nash":
            return []
        rounding = float((reduction.mean_rounding() ** 2).sum())
        totals = reduction.traces(self.center)
        return [label for label, total in zip(reduction.labels, totals, strict=True) if total <= rounding]

    def _solve(self, reduction: Reduction, n_components: int) -> BalancedFit:
        constant = self._constant_groups(reduction)
        if constant:
            raise ValueError(
                f"criterion='nash' needs variance in every group; the rows of {quoted(constant[0])} have none."
            )
        totals = reduction.traces(self.center)
        scale = float(reduction.shares @ totals)
        scale = scale if scale > 0 else 1.0  # tol is relative, and so is every threshold in the solvers

        def make_problem(best: np.ndarray) -> RangeProblem:
            return balanced_problem(self.criterion, totals / scale, best)

        matrices = reduction.second_moments(self.center)
        if isinstance(matrices, np.ndarray):
            matrices /= scale  # in place: the array was made for this search
            solution = self._solve_on_matrices(make_problem, JointRange(matrices, n_components))
        else:
            tol, rng = max(self.tol, _OPERATOR_TOL), self._rng()
            solution = minimise_on_operators(
                make_problem, matrices, n_components, scale=scale, tol=tol, max_iter=self.max_iter, rng=rng
            )
        return _in_units(solution, make_problem(solution.best), totals, scale)

    def _solve_on_matrices(self, make_problem: MakeProblem, joint: JointRange) -> RangeSolution:
        vertices = joint.vertices()
        best = np.array([point.support for point in vertices])
        problem = make_problem(best)
        result = complete_basis(problem, joint, self._run(problem, joint, vertices))
        relaxed = result.relaxed or RelaxedSolution(result.basis, np.ones(joint.dimension))
        captured = joint.captured(relaxed.basis * np.sqrt(relaxed.eigenvalues))
        return RangeSolution(result, best, joint.captured(result.basis), captured)

    def _run(self, problem: RangeProblem, joint: JointRange, vertices: list[RangePoint]) -> SolverResult:
        if self.solver == "mw":
            return multiplicative_weights(problem, joint, tol=self.tol, max_iter=self.max_iter)
        if self.solver == "sdp":
            return solve_sdp(problem, joint, tol=self.tol)
        result = minimise_on_range(problem, joint, vertices, tol=self.tol, max_iter=self.max_iter, rng=self._rng())
        if not self.certify:
            return result
        seconds = _CERTIFY_SECONDS if self.certify is True else float(self.certify)
        return tighten_bound(problem, joint, result, tol=self.tol, seconds=seconds)

    def _store(self, reduction: Reduction, fit: BalancedFit) -> None:  # type: ignore[override]
        super()._store(reduction, fit)
        self.group_weights_ = fit.result.weights
        self.relaxed_ = RelaxedProjection(
            components=reduction.lift(fit.relaxed.basis).T.copy(),
            eigenvalues=fit.relaxed.eigenvalues,
            shrinkage=1.0 - np.sqrt(np.clip(1.0 - fit.relaxed.eigenvalues, 0.0, None)),
            group_losses=fit.best - fit.relaxed_captured,
            objective=fit.relaxed_objective,
            mean=self.mean_,
        )


def _in_units(solution: RangeSolution, problem: RangeProblem, totals: np.ndarray, scale: float) -> BalancedFit:
    """Convert a solution for matrices divided by ``scale`` to the units of the data, in which ``totals`` are given."""
    result, k = solution.result, len(totals)
    return BalancedFit(
        result=dataclasses.replace(
            result,
            objective=problem.rescale(result.objective, scale, k),
            lower_bound=problem.rescale(result.lower_bound, scale, k),
            weights=result.weights / (1.0 if problem.normalised else scale),
        ),
        totals=totals,
        captured=solution.captured * scale,
        best=solution.best * scale,
        relaxed=result.relaxed or RelaxedSolution(result.basis, np.ones(result.basis.shape[1])),
        relaxed_captured=solution.relaxed_captured * scale,
        relaxed_objective=problem.rescale(problem.value(solution.relaxed_captured), scale, k),
    )


def complete_basis(problem: RangeProblem, joint: JointRange, result: SolverResult) -> SolverResult:
    """Replace directions that capture nothing of the weighted matrices by the leading ones of all matrices together.

    None of the weighted matrices captures less as a result, since they are positive semidefinite. If the value rises
    because of another matrix, the result is left unchanged. A basis of fewer than d columns is completed in the same
    way.
    """
    basis = result.basis
    values, vectors = np.linalg.eigh(basis.T @ joint.combine(result.weights) @ basis)
    used = values > _NOTHING * max(values.max(initial=0.0), np.finfo(float).tiny)
    if used.all() and len(used) == joint.dimension:
        return result
    candidate = extend_by_leading(basis @ vectors[:, used], joint.matrices.sum(axis=0), joint.dimension)
    value = problem.value(joint.captured(candidate))
    if value > result.objective and len(used) == joint.dimension:
        return result
    return dataclasses.replace(result, basis=candidate, objective=value)
