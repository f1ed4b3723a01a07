"""FairPCA: the worst group's reconstruction loss as small as possible."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from fairpca._validation import (
    check_choice,
    check_groups,
    check_matrix,
    check_n_components,
    check_number,
    check_sample_weight,
    check_several_groups,
)
from fairpca.estimators import _base
from fairpca.estimators._base import MomentEstimator, is_wide
from fairpca.joint_range import JointRange
from fairpca.moments import GroupFactors, GroupMoments, RowSpace
from fairpca.problems import CRITERIA, balanced_problem
from fairpca.protocols import RangeProblem, RelaxedSolution, SolverResult, Status
from fairpca.solvers import (
    minimise_on_operators,
    minimise_on_range,
    multiplicative_weights,
    solve_sdp,
    spend_idle_directions,
)

__all__ = ["FairPCA", "RelaxedProjection"]

_SOLVERS = ("auto", "dual", "mw", "sdp")
#: The gap where data is used as an operator, relative to the total variance: each digit costs a pass over the rows.
_OPERATOR_TOL = 1e-5


@dataclasses.dataclass(frozen=True)
class RelaxedProjection:
    """The 2018 paper's solution: an optimum of the relaxation, of rank d or a little more.

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
        """The paper's embedding, of ``rank`` coordinates."""
        return (np.asarray(X) - self.mean) @ self.components.T * self.shrinkage

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Rows reconstructed from the embedding; their errors are those of the relaxation."""
        return np.asarray(X) @ self.components + self.mean


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
    random_state : int, RandomState or None
        Used only where three or more groups need several roundings; results are reproducible with None too.

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
        The dual solution: how much each group counts in the weighted PCA that the result is.
    objective_, lower_bound_, duality_gap_ : float
        The minimised quantity at the returned components, a bound that no projection can beat, and the difference.
    relaxed_ : RelaxedProjection
        The optimum of the convex relaxation, which may have extra dimensions with three or more groups.
    n_iter_, n_oracle_calls_ : int
    converged_ : bool

    See Also
    --------
    fairpca.metrics.reconstruction_loss : The same figures on other data.

    Notes
    -----
    With two groups the relaxation loses nothing, so the result is the exact optimum in n_components dimensions,
    without the extra dimension of the 2018 paper. With three or more, where the relaxation needs extra rank,
    ``duality_gap_`` is honest and the components are the best found.

    With more than 3000 features no p x p matrix is formed. At most 2000 rows: the problem is solved, exactly, in the
    space that they span. More rows: the data serves as an operator, the gap is closed to 1e-5 of the total variance (or
    ``tol``, if larger), and the bound holds up to a probability of 1e-10 (see docs/scaling.md).

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

    def __init__(
        self,
        n_components: int = 2,
        *,
        criterion: str = "loss",
        solver: str = "auto",
        center: str = "pooled",
        tol: float = 1e-11,
        max_iter: int = 500,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.criterion = criterion
        self.solver = solver
        self.center = center
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        if not is_wide(X) or X.shape[0] <= _base.FEW_ROWS or self.solver not in ("auto", "dual"):
            return super().fit(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        X = check_matrix(self, X, reset=True, min_samples=2, finite=False)  # GroupFactors sees to it
        groups = check_groups(sensitive_features, X.shape[0])
        weights = check_sample_weight(sample_weight, X.shape[0])
        factors = GroupFactors(X, groups, weights, center=self.center)
        check_several_groups(factors.labels, factors.total_count)
        n_components = check_n_components(self.n_components, factors.size)
        self._warn_about(factors, n_components)
        self._solve_with_operators(factors, n_components)
        self._moments = None
        return self

    fit.__doc__ = MomentEstimator.fit.__doc__

    def _solve_with_operators(self, factors: GroupFactors, n_components: int) -> None:
        """The same problem without p x p matrices; see :mod:`fairpca.solvers.range.operator_dual`."""
        criterion = self._check_parameters()
        traces = factors.traces()
        scale = float(factors.shares @ traces) or 1.0
        solution = minimise_on_operators(
            lambda best: balanced_problem(criterion, traces[:, None, None] / scale, best),
            factors,
            n_components,
            scale=scale,
            tol=max(self.tol, _OPERATOR_TOL),
            max_iter=self.max_iter,
            rng=self._rng(),
        )
        result, best = solution.result, solution.best
        problem = balanced_problem(criterion, traces[:, None, None] / scale, best)
        form = factors.pooled_form(result.basis)
        self._set_scores(result.basis, form, factors.pooled_variance(), factors.total_count, factors.pooled_mean)
        self._set_labels(factors)
        self.group_errors_ = np.maximum(traces - solution.captured * scale, 0.0)
        self.group_losses_ = (best - solution.captured) * scale
        self._set_certificate(result, problem, scale)
        self.relaxed_ = self._describe(solution.relaxed, solution.relaxed_captured * scale, problem, best, scale)
        self._warn_unless_converged(result.status.value)

    def _lift(self, space: RowSpace) -> None:
        super()._lift(space)
        components = space.lift(self.relaxed_.components.T).T
        self.relaxed_ = dataclasses.replace(self.relaxed_, components=components, mean=self.mean_)

    def _check_parameters(self) -> str:
        check_number("tol", self.tol, at_least=0)
        check_number("max_iter", self.max_iter, at_least=1, integer=True)
        return check_choice("criterion", self.criterion, CRITERIA)

    def _rng(self) -> np.random.Generator:
        seed = 0 if self.random_state is None else check_random_state(self.random_state).randint(2**31)
        return np.random.default_rng(seed)

    def _solve(self, moments: GroupMoments, n_components: int) -> None:
        criterion = self._check_parameters()
        matrices = moments.second_moments(check_choice("center", self.center, ("pooled", "group")))
        scale = float(moments.shares @ np.einsum("aii->a", matrices))
        if not scale > 0:
            scale = 1.0
        matrices /= scale  # tol is relative, and so is every threshold in the solvers
        joint = JointRange(matrices, n_components)
        vertices = [joint.point(unit) for unit in np.eye(len(matrices))]
        best = np.array([point.support for point in vertices])
        constant = self._constant_groups(moments, best * scale) if criterion == "nash" else []
        if constant:
            raise ValueError(f"criterion='nash' needs variance in every group; the rows of {constant[0]!r} have none.")
        problem = balanced_problem(criterion, matrices, best)
        result = spend_idle_directions(problem, joint, self._run(problem, joint, vertices))
        self._set_projection(result.basis, moments)
        matrices *= scale
        self._set_groups(moments, matrices, best * scale)
        self._set_certificate(result, problem, scale)
        self.relaxed_ = self._relaxed_projection(result, problem, joint, best, scale)
        self._warn_unless_converged(result.status.value)

    @staticmethod
    def _constant_groups(moments: GroupMoments, captured: np.ndarray) -> list[Any]:
        """Groups of which no projection captures more than the rounding of the means."""
        rounding = float((moments.mean_rounding() ** 2).sum())
        return [label for label, value in zip(moments.labels, captured, strict=True) if value <= rounding]

    def _can_learn_from(self, moments: GroupMoments) -> bool:
        if self.criterion != "nash":
            return True
        matrices = moments.second_moments(check_choice("center", self.center, ("pooled", "group")))
        constant = self._constant_groups(moments, np.einsum("aii->a", matrices))
        if constant:
            warnings.warn(
                f"criterion='nash' needs variance in every group, and the rows of {constant[0]!r} have none so far: "
                "the chunk is kept, and nothing is learnt before others bring some.",
                UserWarning,
                stacklevel=3,
            )
        return not constant

    def _run(self, problem: RangeProblem, joint: JointRange, vertices: list) -> SolverResult:
        solver = check_choice("solver", self.solver, _SOLVERS)
        if solver == "mw":
            return multiplicative_weights(problem, joint, tol=self.tol, max_iter=self.max_iter)
        if solver == "sdp":
            return solve_sdp(problem, joint, tol=self.tol)
        return minimise_on_range(problem, joint, vertices, tol=self.tol, max_iter=self.max_iter, rng=self._rng())

    def _set_certificate(self, result: SolverResult, problem: RangeProblem, scale: float) -> None:
        """The certificate in the units of the data; the bound never exceeds the objective, not even by rounding."""
        self.objective_ = problem.rescale(result.objective, scale, len(result.weights))
        self.lower_bound_ = problem.rescale(min(result.lower_bound, result.objective), scale, len(result.weights))
        self.duality_gap_ = self.objective_ - self.lower_bound_
        self.group_weights_ = result.weights / (1.0 if problem.normalised else scale)
        self.n_iter_ = max(result.n_iter, 1)
        self.n_oracle_calls_ = result.n_oracle_calls
        self.converged_ = result.status is Status.OPTIMAL

    def _relaxed_projection(
        self, result: SolverResult, problem: RangeProblem, joint: JointRange, best: np.ndarray, scale: float
    ) -> RelaxedProjection:
        """In the units of the data; ``joint`` holds the matrices after they were scaled back."""
        relaxed = result.relaxed or RelaxedSolution(result.basis, np.ones(result.basis.shape[1]))
        captured = np.einsum("pi,api,i->a", relaxed.basis, joint.matrices @ relaxed.basis, relaxed.eigenvalues)
        return self._describe(relaxed, captured, problem, best, scale)

    def _describe(
        self, relaxed: RelaxedSolution, captured: np.ndarray, problem: RangeProblem, best: np.ndarray, scale: float
    ) -> RelaxedProjection:
        return RelaxedProjection(
            components=relaxed.basis.T.copy(),
            eigenvalues=relaxed.eigenvalues,
            shrinkage=relaxed.shrinkage,
            group_losses=best * scale - captured,
            objective=problem.rescale(problem.value(captured / scale), scale, len(captured)),
            mean=self.mean_,
        )
