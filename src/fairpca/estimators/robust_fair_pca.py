"""RobustFairPCA: trades total error against the gap between groups, robustly to shifts of each group's distribution."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from fairpca._validation import check_choice, check_number
from fairpca.estimators._base import Fit, MomentEstimator
from fairpca.estimators._group_variance import check_group_variance
from fairpca.joint_range import JointRange
from fairpca.moments._group_moments import Reduction
from fairpca.problems.balanced import best_captured, group_scales
from fairpca.problems.robust import RobustGap, check_radius, group_radii
from fairpca.protocols import SolverResult
from fairpca.solvers.range.convex_concave import descend_pieces
from fairpca.solvers.range.sweep import sweep_range
from fairpca.solvers.reference.subgradient import descend_subgradient

__all__ = ["RobustFairPCA"]

_SOLVERS = ("auto", "spectral", "subgradient")


class RobustFairPCA(MomentEstimator):
    """Principal components that trade total error against the gap between groups, robustly, solved globally.

    Solves, over d-dimensional projections P (Vu et al. 2022),

    ``min_P  sup_Q  E_Q[error] + penalty * max_{a != a'} |E_Q[error | a] - E_Q[error | a']|``,

    where Q ranges over all distributions whose moments of group a lie within eps_a of the observed ones
    (squared Wasserstein distance between Gaussians with these moments), with the shares of the groups fixed. With
    z_a = tr M_a - <M_a, P> the worst case has a closed form: F(z) is the maximum over pairs of groups of

    ``sum_b u_b (sqrt(z_b) +- sqrt(eps_b))^2``,  ``u_b = p_b + penalty [b = a] - penalty [b = a']``,

    with + where u_b >= 0, and - (with the difference clipped at zero) where u_b < 0. It holds for every penalty.

    Parameters
    ----------
    n_components : int, float or None, default=2
        Number of dimensions kept, 1 to n_features. A share between 0 and 1: the fewest components with which every
        group keeps that share of its variance tr M_a (``partial_fit`` needs an integer). None: all, as in PCA.
    radius : float, array-like of shape (n_groups,) or dict, default=0.1
        A number alpha gives eps_a = alpha / sqrt(N_a). Or one eps_a per group, in the order of ``groups_``, or
        a dict from label to eps_a. The eps_a are in squared units of the data (standardise X first) or, with
        ``relative=True``, shares of each group's own variance.
    penalty : float, default=1.0
        The weight lambda >= 0 of the gap. Zero, with radius zero, is ordinary PCA (unless ``relative=True``).
    relative : bool, default=False
        Whether errors are taken as shares of each group's own variance tr M_a: M_a / tr M_a replaces M_a. Otherwise a
        group that varies more decides. Every group must have variance then.
    solver : {"auto", "spectral", "subgradient"}, default="auto"
        "spectral" (= "auto"): for two groups a global optimum with an optimality certificate, for three or more the
        best stationary point from several starts. "subgradient" is the paper's Algorithm 1, as a reference: it has no
        certificate, and ``lower_bound_`` is then minus infinity.
    center : {"pooled", "group"}, default="pooled"
        Whether M_a is taken about the pooled mean or the group's own. ``mean_`` and ``transform`` stay pooled.
    n_init : int, default=20
        Number of random starts of solver "subgradient", in addition to the one from the pooled eigenvectors.
    max_iter : int, default=1000
        Largest number of eigenproblems of the sweep for two groups, or of steps per start of the other solvers.
    tol : float, default=1e-9
        Largest accepted gap between objective and bound, relative to both the objective and the total variance.
    verbose : int, default=0
        If positive, print the steps of the search: value, bound and gap, in shares of the total variance.
    random_state : int, RandomState or None
        For random starts; None is a fixed seed.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal rows with uncorrelated scores, by descending variance; the largest entry of each is positive.
    mean_, explained_variance_, explained_variance_ratio_, noise_variance_, n_components_, n_features_in_, \
feature_names_in_, n_samples_seen_
        As in :class:`sklearn.decomposition.PCA`.
    groups_, group_counts_ : ndarray of shape (n_groups,)
    group_variances_ : ndarray of shape (n_groups,)
        ``tr M_a``: the error that each group would have without any components.
    group_errors_, group_losses_ : ndarray of shape (n_groups,)
        Mean squared reconstruction error of each group, and the part of it that is due to sharing the projection;
        always in squared units of the data.
    worst_case_group_errors_ : ndarray of shape (n_groups,)
        ``(sqrt(error) + sqrt(eps))^2``: the largest error of each group within its radius, in the same units.
    radii_ : ndarray of shape (n_groups,)
        The eps_a, in the units of ``radius``.
    group_weights_ : ndarray of shape (n_groups,)
        Weights w, of any sign and with absolute values summing to one, by which the result trades off the errors of
        the groups: usually it is the PCA of ``sum_a w_a M_a``. If the best projection is not the PCA of any weighted
        sum (because the attainable errors do not form a convex set), they are the weights of the bound (two groups)
        or weights for which the result is stationary (three or more). A negative weight means that the gap is closed
        by raising the error of that group.
    objective_, lower_bound_, duality_gap_ : float
        The minimised quantity at the returned components, a lower bound for any projection, and the difference. For
        three or more groups the bound comes from a convex relaxation and is tight only for small radii. With
        ``relative=True`` in shares of the groups' variances, as is ``history_``.
    history_ : list of dict
        Progress: objective and bound after every split of the sweep; for three or more groups the objective after
        every descent; for solver "subgradient" the objective after every step, with one array per start.
    n_iter_, n_oracle_calls_ : int
    converged_ : bool
        Whether the gap closed. With three or more groups it does for small radii only: the components are otherwise
        stationary, and optimality is not certified. Always False for solver "subgradient", which has no bound.

    See Also
    --------
    FairPCA : Minimises the largest loss of a group, without a parameter.
    fairpca.model_selection.frontier : The whole trade-off.

    Notes
    -----
    Some projection attains equal errors if and only if the sum of the p - d smallest eigenvalues of M_1 - M_2 is at
    most zero and the sum of its p - d largest is at least zero. The condition given in the paper (Proposition 2.2,
    rank(M_1 - M_2) <= d) is too strong; see docs/robust.md.

    A small gap may come from a larger error of the group that is better off: look at ``group_errors_``, not only at
    their difference.

    References
    ----------
    Vu, Tran, Yue and Nguyen (2022). Distributionally Robust Fair Principal Components via Geodesic Descents.
    ICLR.

    Examples
    --------
    >>> from fairpca import RobustFairPCA
    >>> from fairpca.datasets import load_german_credit
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> pca = RobustFairPCA(n_components=3, radius=0.1, penalty=1.0).fit(X, sensitive_features=sex)
    >>> bool(pca.duality_gap_ <= 1e-9 * pca.objective_)
    True
    >>> bool((pca.worst_case_group_errors_ > pca.group_errors_).all())
    True
    """

    def __init__(
        self,
        n_components: int | float | None = 2,
        *,
        radius: Any = 0.1,
        penalty: float = 1.0,
        relative: bool = False,
        solver: str = "auto",
        center: str = "pooled",
        n_init: int = 20,
        max_iter: int = 1000,
        tol: float = 1e-9,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.radius = radius
        self.penalty = penalty
        self.relative = relative
        self.solver = solver
        self.center = center
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_radius(self.radius)
        check_number("penalty", self.penalty, at_least=0)
        check_choice("solver", self.solver, _SOLVERS)
        check_number("n_init", self.n_init, at_least=0, integer=True)

    def _depends_on_subspace_only(self) -> bool:
        return self.solver != "subgradient"  # its step length, that of the paper, depends on p

    def _solve(self, reduction: Reduction, n_components: int) -> Fit:
        if self.relative:
            check_group_variance(reduction, self.center, "relative=True")
        totals = reduction.traces(self.center)
        scales, unit = group_scales(totals, reduction.shares, relative=self.relative)
        radii = group_radii(self.radius, reduction.labels, reduction.counts)
        matrices = reduction.second_moments(self.center)
        matrices /= scales[:, None, None]  # in place: the array was made for this search
        joint = JointRange(matrices, n_components)
        result = self._run(RobustGap(reduction.shares, radii / unit, self.penalty, totals / scales), joint)
        captured = joint.captured(result.basis) * scales
        problem = RobustGap(reduction.shares, radii, self.penalty, totals * (unit / scales))
        errors = np.maximum(totals - captured, 0.0) * (unit / scales)
        history = [
            {key: value * unit if key in ("objective", "lower_bound") else value for key, value in record.items()}
            for record in result.history
        ]
        return Fit(
            result=dataclasses.replace(result, objective=problem.value(errors), lower_bound=result.lower_bound * unit),
            totals=totals,
            captured=captured,
            best=best_captured(matrices, n_components) * scales,
            attributes={
                "group_variances_": totals,
                "radii_": radii,
                "worst_case_group_errors_": problem.worst_case_errors(errors) * (scales / unit),
                "group_weights_": result.weights,
                "history_": history,
            },
        )

    def _run(self, problem: RobustGap, joint: JointRange) -> SolverResult:
        if self.solver == "subgradient" and joint.dimension < joint.size:
            # The paper's step 1 / sqrt(T + 1) is for standardised columns, whose total variance is p. Taken relative to
            # the total variance, it means the same for data in other units.
            step = joint.size / np.sqrt(self.max_iter + 1.0)
            return descend_subgradient(
                problem, joint, problem.shares, step=step, n_starts=self.n_init, max_iter=self.max_iter,
                rng=self._rng(),
            )  # fmt: skip
        if joint.n_matrices == 2:
            return sweep_range(problem, joint, tol=self.tol, max_iter=self.max_iter)
        return descend_pieces(problem, joint, problem.shares, tol=self.tol, max_iter=self.max_iter, rng=self._rng())
