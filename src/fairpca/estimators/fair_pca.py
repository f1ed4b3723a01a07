"""FairPCA: principal components that minimise the largest reconstruction loss of any group."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from fairpca._validation import check_choice, check_flag, check_number
from fairpca.estimators._base import Fit, MomentEstimator
from fairpca.estimators._erased import leading_of_covariance
from fairpca.estimators._group_variance import check_group_variance
from fairpca.joint_range import JointRange
from fairpca.linalg import extend_by_leading
from fairpca.moments._group_moments import Reduction
from fairpca.problems.balanced import CRITERIA, balanced_problem, best_captured, group_scales
from fairpca.protocols import MakeProblem, RangeProblem, RangeSolution, RelaxedSolution, SolverResult, Status
from fairpca.solvers.range.branch_and_bound import tighten_bound
from fairpca.solvers.range.dual import minimise_on_range
from fairpca.solvers.range.nested import minimise_nested
from fairpca.solvers.range.operator_dual import best_of_operators, leading_of_operator, minimise_on_operators
from fairpca.solvers.reference.mw import multiplicative_weights
from fairpca.solvers.reference.sdp import solve_sdp

__all__ = ["FairPCA", "RelaxedProjection", "complete_basis"]

_SOLVERS = ("auto", "dual", "mw", "sdp")
#: The gap if the data is used as an operator, relative to the total variance: each digit costs a pass over the rows.
_OPERATOR_TOL = 1e-5
#: Parts of the search for a tighter bound: a few seconds with up to a hundred features.
_CERTIFY_PARTS = 500
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


class FairPCA(MomentEstimator):
    """Principal components that serve every group as well as possible, solved to proven optimality.

    For the default criterion it solves, over d-dimensional projections P (Samadi et al. 2018),

    ``min_P max_a l_a(P)``,  ``l_a(P) = b_a - <M_a, P>``,

    where M_a is the second moment of group a about the pooled mean and b_a the most that any d dimensions could
    capture of that group alone: the *loss* of a group is what sharing the projection costs it.

    Parameters
    ----------
    n_components : int, float or None, default=2
        Number of dimensions kept, 1 to n_features. A share between 0 and 1: the fewest components with which every
        group keeps that share of its variance tr M_a (``partial_fit`` needs an integer). None: all, as in PCA.
    criterion : {"loss", "error", "variance", "nash", "mean"}, default="loss"
        What is balanced: the largest loss, the largest reconstruction error, the smallest captured variance, or
        the product of the captured variances (maximised). Or "mean", in closed form: the mean of the groups' errors,
        in which every group counts the same, whatever its size.
    relative : bool, default=False
        Whether loss, error and captured variance are taken as shares of each group's own variance tr M_a (Fries et al.
        2026). Otherwise a group that varies more counts more. Every group must have variance then. Criterion "nash"
        gives the same components either way.
    nested : bool, default=False
        Whether the components are found one by one, each the best given the earlier ones (Matakos et al. 2025), so that
        the first few of them are themselves a solution. For criterion "loss" and the default solver. The components
        then keep that order, and their scores may be correlated.
    solver : {"auto", "dual", "mw", "sdp"}, default="auto"
        "dual" (= "auto") is exact and certified. "mw" and "sdp" are the algorithms of the 2018 paper, as references:
        multiplicative weights, and a semidefinite program, rounded (needs the extra ``fairpca[sdp]``).
    center : {"pooled", "group"}, default="pooled"
        Whether M_a is taken about the pooled mean or the group's own. ``mean_`` and ``transform`` stay pooled,
        since the group of a new row is not known.
    tol : float, default=1e-11
        Largest accepted gap between objective and bound, relative to the total variance.
    max_iter : int, default=500
    certify : bool or int, default=False
        With three or more groups the bound comes from a relaxation, which can leave a gap. If True, a search by branch
        and bound tightens it, with up to 500 parts; a number sets another limit. Useful for few groups, up to about
        ten; not for ``criterion="nash"``.
    verbose : int, default=0
        If positive, print the steps of the search: value, bound and gap, in shares of the total variance.
    random_state : int, RandomState or None
        Used only if three or more groups need several roundings; None is a fixed seed.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal rows with uncorrelated scores, by descending variance (with ``nested=True``: in the order in which
        they were found); the largest entry of each is positive.
    mean_, explained_variance_, explained_variance_ratio_, noise_variance_, n_components_, n_features_in_, \
feature_names_in_, n_samples_seen_
        As in :class:`sklearn.decomposition.PCA`.
    groups_, group_counts_ : ndarray of shape (n_groups,)
    group_variances_ : ndarray of shape (n_groups,)
        ``tr M_a``: the error that each group would have without any components.
    group_errors_ : ndarray of shape (n_groups,)
        Mean squared reconstruction error of each group, always in squared units of the data.
    group_losses_ : ndarray of shape (n_groups,)
        In the same units. With two groups and criterion "loss" they are equal or, with ``relative=True``,
        ``group_losses_ / group_variances_`` are.
    group_weights_ : ndarray of shape (n_groups,)
        The dual solution: the weight of each M_a (with ``relative=True``: of each ``M_a / tr M_a``) in the weighted PCA
        that gives the result.
    objective_, lower_bound_, duality_gap_ : float
        The minimised quantity at the returned components, a lower bound for any projection, and the difference. With
        ``relative=True`` in shares of the groups' variances. With ``nested=True`` the bound is that of any projection,
        nested or not, so the gap contains what nesting costs.
    prefix_objectives_, prefix_lower_bounds_ : ndarray of shape (n_components,)
        Only with ``nested=True``: the largest loss with the first 1, 2, ... components, and the lower bound for any
        projection of that dimension.
    relaxed_ : RelaxedProjection
        The optimum of the convex relaxation, which may have extra dimensions with three or more groups.
    n_iter_, n_oracle_calls_ : int
    converged_ : bool
        With ``nested=True``: whether every step converged.

    See Also
    --------
    fairpca.metrics.reconstruction_loss : The same values on other data.
    fairpca.model_selection.components_needed : How many components every group needs.

    Notes
    -----
    With two groups the relaxation is tight (Shen, Davis, Lu and Bai 2025, arXiv 2503.00299), so the result is the exact
    optimum in n_components dimensions, without the extra dimension of the 2018 paper. With three or more groups the
    relaxation may need extra rank; then ``duality_gap_`` is valid but not zero, and the components are the best found.

    With more than 3000 features no p x p matrix is formed. With at most 2000 rows, the problem is solved exactly in the
    space that they span. With more rows, the data is used as an operator, the gap is closed to 1e-5 of the total
    variance (or ``tol``, if larger), and the bound fails with a probability below 1e-10 (see docs/scaling.md).

    Equal losses do not mean equal errors: a group that is harder to compress keeps a larger error.

    References
    ----------
    Samadi, Tantipongpipat, Morgenstern, Singh and Vempala (2018). The Price of Fair PCA: One Extra Dimension.
    NeurIPS.

    Matakos, Ciaperoni and Mannila (2025). Fair PCA, One Component at a Time. arXiv 2503.21563.

    Fries, Reichstein, Blei and Peters (2026). Worst-case low-rank approximations. arXiv 2603.11304.

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

    Losses as shares of each group's own variance:

    >>> pca = FairPCA(n_components=3, relative=True).fit(X, sensitive_features=sex)
    >>> first, second = pca.group_losses_ / pca.group_variances_
    >>> bool(abs(first - second) < 1e-9) and bool(abs(first - pca.objective_) < 1e-9)
    True

    Nested components: the first three of ten are a solution, too.

    >>> ten = FairPCA(n_components=10, nested=True).fit(X, sensitive_features=sex)
    >>> three = FairPCA(n_components=3, nested=True).fit(X, sensitive_features=sex)
    >>> bool(abs(ten.components_[:3] - three.components_).max() < 1e-9)
    True
    >>> bool((ten.prefix_lower_bounds_ <= ten.prefix_objectives_).all())
    True

    The fewest components with which every group keeps 80 % of its variance:

    >>> FairPCA(n_components=0.8).fit(X, sensitive_features=sex).n_components_
    29

    Every group counts the same, whatever its size:

    >>> pca = FairPCA(n_components=3, criterion="mean").fit(X, sensitive_features=sex)
    >>> bool(abs(pca.group_errors_.mean() - pca.objective_) < 1e-9)
    True
    """

    def __init__(
        self,
        n_components: int | float | None = 2,
        *,
        criterion: str = "loss",
        relative: bool = False,
        nested: bool = False,
        solver: str = "auto",
        center: str = "pooled",
        tol: float = 1e-11,
        max_iter: int = 500,
        certify: bool | int = False,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.criterion = criterion
        self.relative = relative
        self.nested = nested
        self.solver = solver
        self.center = center
        self.tol = tol
        self.max_iter = max_iter
        self.certify = certify
        self.verbose = verbose
        self.random_state = random_state

    def _advice(self, status: Status) -> str:
        if self.nested:
            return "Not every step converged; the gap also contains what nesting costs. See prefix_lower_bounds_."
        if status is Status.MAX_ITER and self.solver == "mw":
            return "To close the gap, raise max_iter or tol, or use solver='dual'."
        if status is Status.GAP:
            hint = "" if self.certify or self.criterion == "nash" else " certify=True searches for a tighter bound."
            return f"The solution with extra dimensions is in relaxed_.{hint}"
        return super()._advice(status)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("criterion", self.criterion, (*CRITERIA, "mean"))
        check_flag("nested", self.nested)
        check_choice("solver", self.solver, _SOLVERS)
        if self.nested and (self.criterion != "loss" or self.solver not in ("auto", "dual")):
            raise ValueError(
                f"nested=True is for criterion='loss' with solver='auto', got criterion={self.criterion!r} and "
                f"solver={self.solver!r}."
            )
        if not isinstance(self.certify, bool):
            check_number("certify", self.certify, at_least=0, integer=True)
        if self.certify and self.criterion == "nash":
            raise ValueError("certify tightens the bound on a largest term; use certify=False for criterion='nash'.")
        if self.criterion == "mean" and self.solver not in ("auto", "dual"):
            raise ValueError(f"criterion='mean' has a closed form; use solver='auto' instead of {self.solver!r}.")
        if self.solver == "mw" and self.criterion == "nash":
            raise ValueError("solver='mw' minimises a largest term; use solver='dual' for criterion='nash'.")

    def _spare_directions(self, n_rows: int, n_features: int) -> int:
        share = isinstance(self.n_components, float)  # has no use for directions without variance
        return 1 if share else super()._spare_directions(n_rows, n_features)

    def _takes_operators(self) -> bool:
        return self.solver in ("auto", "dual") and not self.nested

    def _solve(self, reduction: Reduction, n_components: int) -> Fit:
        if self.relative or self.criterion == "nash":
            check_group_variance(reduction, self.center, "relative=True" if self.relative else "criterion='nash'")
        totals = reduction.traces(self.center)
        scales, unit = group_scales(totals, reduction.shares, relative=self.relative)

        def make_problem(best: np.ndarray) -> RangeProblem:
            return balanced_problem(self.criterion, totals / scales, best)

        matrices = reduction.second_moments(self.center)
        prefixes: dict[str, np.ndarray] = {}
        if isinstance(matrices, np.ndarray):
            matrices /= scales[:, None, None]  # in place: the array was made for this search
        if self.criterion == "mean":
            solution = self._solve_mean(reduction, matrices, scales, n_components)
        elif self.nested:
            solution, prefixes = self._solve_nested(make_problem, matrices, n_components)
        elif isinstance(matrices, np.ndarray):
            solution = self._solve_on_matrices(make_problem, JointRange(matrices, n_components))
        else:
            tol, rng = max(self.tol, _OPERATOR_TOL), self._rng()
            solution = minimise_on_operators(
                make_problem, matrices, n_components, scale=scales, tol=tol, max_iter=self.max_iter, rng=rng
            )
        result, problem, k = solution.result, make_problem(solution.best), len(totals)
        relaxed = result.relaxed or RelaxedSolution(result.basis, np.ones(n_components))
        return Fit(  # in the units of the data
            result=dataclasses.replace(
                result,
                objective=problem.rescale(result.objective, unit, k),
                lower_bound=problem.rescale(result.lower_bound, unit, k),
            ),
            totals=totals,
            captured=solution.captured * scales,
            best=solution.best * scales,
            attributes={
                "group_variances_": totals,
                "group_weights_": result.weights / (1.0 if problem.normalised else unit),
                "relaxed_": RelaxedProjection(
                    components=reduction.lift(relaxed.basis).T.copy(),
                    eigenvalues=relaxed.eigenvalues,
                    shrinkage=1.0 - np.sqrt(np.clip(1.0 - relaxed.eigenvalues, 0.0, None)),
                    group_losses=(solution.best - solution.relaxed_captured) * scales,
                    objective=problem.rescale(problem.value(solution.relaxed_captured), unit, k),
                    mean=reduction.pooled_mean.copy(),
                ),
                **{name: values * unit for name, values in prefixes.items()},
            },
        )

    def _solve_nested(
        self, make_problem: MakeProblem, matrices: np.ndarray, n_components: int
    ) -> tuple[RangeSolution, dict[str, np.ndarray]]:
        """One component at a time; weights, bounds and relaxation are those of the joint problem of each dimension."""
        joint = [self._solve_on_matrices(make_problem, JointRange(matrices, d)) for d in range(1, n_components + 1)]

        def solve_step(problem: RangeProblem, complement: JointRange) -> SolverResult:
            return complete_basis(problem, complement, self._run(problem, complement))

        found = minimise_nested(np.array([one.best for one in joint]), matrices, solve_step)
        results = [*(one.result for one in joint), *found.steps]
        result = dataclasses.replace(
            joint[-1].result,
            basis=found.basis,
            objective=float(found.objectives[-1]),
            status=found.status,
            n_iter=sum(one.n_iter for one in results),
            n_oracle_calls=sum(one.n_oracle_calls for one in results),
        )
        bounds = np.minimum([one.result.lower_bound for one in joint], found.objectives)
        prefixes = {"prefix_objectives_": found.objectives, "prefix_lower_bounds_": bounds}
        return dataclasses.replace(joint[-1], result=result, captured=found.captured), prefixes

    def _solve_mean(self, reduction: Reduction, matrices: Any, scales: np.ndarray, n_components: int) -> RangeSolution:
        """Leading eigenvectors of the mean of the M_a, which are already divided by ``scales`` if they are formed."""
        weights = np.full(len(scales), 1.0 / len(scales))
        if isinstance(matrices, np.ndarray):
            result = leading_of_covariance(matrices.mean(axis=0), n_components)
            best = best_captured(matrices, n_components)
        else:
            tol, rng = max(self.tol, _OPERATOR_TOL), self._rng()
            mean = functools.partial(matrices.combined, weights / scales)
            result = leading_of_operator(mean, reduction.size, n_components, tol=tol, rng=rng)
            best = best_of_operators(matrices, n_components, tol=tol * float(scales.min()), rng=rng) / scales
        captured = np.einsum("aii->a", reduction.forms(result.basis, self.center)) / scales
        total = float((reduction.traces(self.center) / scales).mean())
        result = dataclasses.replace(
            result, objective=total + result.objective, lower_bound=total + result.lower_bound, weights=weights
        )
        return RangeSolution(result, best, captured, captured)

    def _solve_on_matrices(self, make_problem: MakeProblem, joint: JointRange) -> RangeSolution:
        problem = make_problem(joint.best)
        result = complete_basis(problem, joint, self._run(problem, joint))
        relaxed = result.relaxed or RelaxedSolution(result.basis, np.ones(joint.dimension))
        captured = joint.captured(relaxed.basis * np.sqrt(relaxed.eigenvalues))
        return RangeSolution(result, joint.best, joint.captured(result.basis), captured)

    def _run(self, problem: RangeProblem, joint: JointRange) -> SolverResult:
        if self.solver == "mw":
            return multiplicative_weights(problem, joint, tol=self.tol, max_iter=self.max_iter)
        if self.solver == "sdp":
            return solve_sdp(problem, joint, tol=self.tol)
        result = minimise_on_range(problem, joint, tol=self.tol, max_iter=self.max_iter, rng=self._rng())
        if not self.certify:
            return result
        max_parts = _CERTIFY_PARTS if self.certify is True else self.certify
        return tighten_bound(problem, joint, result, tol=self.tol, max_parts=max_parts)

    def _oriented(self, basis: np.ndarray, form: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (basis, form) if self.nested else super()._oriented(basis, form)


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
    captured = joint.captured(candidate)
    value = problem.value(captured)
    rounding = _NOTHING * float(np.abs(captured).sum())
    if value > result.objective + rounding and len(used) == joint.dimension:
        return result
    return dataclasses.replace(result, basis=candidate, objective=value)
