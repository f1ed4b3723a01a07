"""Learning from group moments: what all estimators share that need nothing else of the data."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fairpca._progress import printed_steps
from fairpca._validation import (
    check_choice,
    check_flag,
    check_grouped_rows,
    check_groups_given,
    check_matrix,
    check_n_components,
    check_number,
    check_several_groups,
    check_wanted_components,
    checks_keywords,
    generator,
    is_dask,
    legacy_generator,
    split_off_groups,
    warn_of_memory,
    warn_user,
)
from fairpca.estimators._adds_rows import AddsRows
from fairpca.estimators._dimension import SHARE_ROUNDING, all_directions, kept_shares, least_for_own, unreachable
from fairpca.estimators._linear_projection import LinearProjection
from fairpca.linalg import threads_for
from fairpca.moments import GroupMoments
from fairpca.moments._accumulate import accumulate, chunk_moments
from fairpca.moments._factors import GroupFactors
from fairpca.moments._group_moments import Reduction
from fairpca.moments._row_space import RowSpace
from fairpca.moments.dask import moments_from_dask
from fairpca.protocols import SolverResult, Status

#: Above this many features, p x p matrices are avoided where possible ...
MANY_FEATURES = 3000
#: ... and with at most this many rows, the problem is solved in the space they span.
FEW_ROWS = 2000
#: Parameters that mean the same in every estimator that has them, and their checks.
_COMMON_PARAMETERS: dict[str, Callable[[str, Any], Any]] = {
    "relative": check_flag,
    "center": functools.partial(check_choice, choices=("pooled", "group")),
    "tol": functools.partial(check_number, at_least=0),
    "max_iter": functools.partial(check_number, at_least=1, integer=True),
    "verbose": functools.partial(check_number, at_least=0, integer=True),
}
#: Estimated multiplications of a search in units of p^3, which decide whether it counts as short.
_PRODUCTS_OF_A_SEARCH = 5.0
_CONVERGED = (Status.OPTIMAL, Status.RELAXATION_SOLVED)
#: These are no failure to be warned of: the search did all that it can, and the gap says what is not known.
_FINISHED = (Status.STATIONARY, Status.UNCERTIFIED)


@dataclass(frozen=True)
class Fit:
    """The result of a search in the units of the data, with statistics of each group: what ``_solve`` returns.

    Attributes
    ----------
    result : SolverResult
        Its basis is in the coordinates of the reduction.
    totals : ndarray of shape (n_groups,)
        ``tr M_a``.
    captured : ndarray of shape (n_groups,)
        ``<M_a, V V^T>`` or, where the projection is not orthogonal, ``tr M_a`` minus the error.
    best : ndarray of shape (n_groups,)
        The most that any projection of this rank can capture of each group alone.
    score_covariance : ndarray or None
        Needed only where scores are not those of an orthogonal projection.
    attributes : dict
        Fitted attributes that only this estimator has, by name.

    See Also
    --------
    MomentEstimator : The base class whose ``_solve`` returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.estimators import Fit
    >>> from fairpca.protocols import SolverResult, Status
    >>> result = SolverResult(np.eye(3)[:, :1], -4.0, -4.0, np.ones(1), Status.OPTIMAL, n_iter=1, n_oracle_calls=1)
    >>> fit = Fit(result, totals=np.array([6.0]), captured=np.array([4.0]), best=np.array([4.5]))
    >>> fit.errors, fit.losses
    (array([2.]), array([0.5]))
    """

    result: SolverResult
    totals: np.ndarray
    captured: np.ndarray
    best: np.ndarray
    score_covariance: np.ndarray | None = None
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def errors(self) -> np.ndarray:
        return np.maximum(self.totals - self.captured, 0.0)

    @property
    def losses(self) -> np.ndarray:
        return self.best - self.captured


class MomentEstimator(AddsRows, LinearProjection):
    """An estimator that needs only the :class:`~fairpca.moments.GroupMoments` of the data.

    A subclass implements ``_solve``, from moments to a :class:`Fit`.

    See Also
    --------
    Fit : What ``_solve`` returns.
    LinearProjection : For methods that need the rows themselves.

    Examples
    --------
    PCA in which every group counts the same, whatever its size:

    >>> import numpy as np
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.estimators import Fit, MomentEstimator
    >>> from fairpca.linalg import top_eigenpairs
    >>> from fairpca.protocols import SolverResult, Status
    >>> class EqualWeightPCA(MomentEstimator):
    ...     def __init__(self, n_components=2):
    ...         self.n_components = n_components
    ...
    ...     def _solve(self, reduction, n_components):
    ...         matrices = reduction.second_moments("pooled")
    ...         values, basis = top_eigenpairs(matrices.mean(axis=0), n_components)
    ...         captured = np.einsum("pi,api->a", basis, matrices @ basis)
    ...         best = np.array([top_eigenpairs(one, n_components)[0].sum() for one in matrices])
    ...         value = -float(values.sum())  # an eigenproblem: the value is its own bound
    ...         weights = np.full(len(matrices), 1 / len(matrices))
    ...         result = SolverResult(basis, value, value, weights, Status.OPTIMAL, n_iter=1, n_oracle_calls=1)
    ...         return Fit(result, np.einsum("aii->a", matrices), captured, best)
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> EqualWeightPCA(3).fit(X, sensitive_features=sex).transform(X).shape
    (1000, 3)
    """

    __metadata_request__partial_fit = {"sensitive_features": True}  # noqa: RUF012

    _saved_attributes: ClassVar[tuple[str, ...]] = ("_moments",)

    _moments: GroupMoments | None  # None after a fit that formed no p x p matrix

    @checks_keywords
    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit to data.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, or Dask array or data frame of shape (n_samples, n_features)
        y : ignored
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
            The group of each row: numbers, strings, booleans, a Series, a categorical. With several columns, every
            combination that occurs is a group. Required. If X is a data frame (of pandas, polars or Dask): or the
            name of a column of X, or a list of names, which are then not features. With a Dask X: a Dask collection
            with the same chunks.
        sample_weight : array-like of shape (n_samples,), optional
            Counts like repeated rows.

        Returns
        -------
        self
        """
        return self._fit_rows(X, y, sensitive_features, None, sample_weight)

    @checks_keywords
    def partial_fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Add these rows to all rows seen before. A chunk may contain a single group; groups may appear later.

        Adding is cheap: the components are computed when they are asked for, by a fitted attribute, a method such as
        ``transform``, or saving. Parameters as in :meth:`fit`.
        """
        return self._add_rows(X, y, sensitive_features, None, sample_weight)

    def _rows_seen(self) -> Any:
        if vars(self).get("_moments") is None and "_moments" in vars(self):
            raise ValueError(
                "With this many features, fit keeps no moments that partial_fit could update; use partial_fit from the "
                "first chunk on, or a new estimator."
            )
        return vars(self).get("_moments")

    def _remember(self, reduction: Any) -> None:
        self._moments = reduction if isinstance(reduction, GroupMoments) else None

    def _check_reduction(self, reduction: Any) -> Any:
        check_several_groups(reduction.labels, reduction.total_count)
        return reduction

    def _measure(
        self, X: Any, y: Any, sensitive_features: Any, continuous: Any, sample_weight: Any, *, part: bool
    ) -> Reduction:
        """Reduce the rows to group statistics, in the form that suits their shape."""
        reset = not part or self._rows_seen() is None
        if is_dask(X):
            if sensitive_features is None:
                check_groups_given(None)  # before the columns are looked at, which may contain the groups
            self._check_dask(X, sensitive_features, reset=reset)
            return moments_from_dask(X, sensitive_features=sensitive_features, sample_weight=sample_weight)
        if part:
            X, sensitive_features = split_off_groups(self, X, sensitive_features, reset=reset)
            X = check_matrix(self, X, reset=reset, min_samples=0, finite=False)
            return chunk_moments(X, sensitive_features, sample_weight)
        # Finiteness is checked in the reduction.
        X, groups, weights = check_grouped_rows(self, X, sensitive_features, sample_weight, finite=False)
        if X.shape[1] > MANY_FEATURES and X.shape[0] <= FEW_ROWS and self._depends_on_subspace_only():
            return RowSpace(X, groups, weights, n_spare=self._spare_directions(*X.shape))
        if X.shape[1] > MANY_FEATURES and X.shape[0] > FEW_ROWS and self._takes_operators():
            return GroupFactors(X, groups, weights)
        # The sums of each group, and the matrices that the search works on.
        warn_of_memory(
            2 * len(groups) * X.shape[1] ** 2,
            f"{type(self).__name__} with {len(groups)} groups and {X.shape[1]} features",
            "reduce the features first (PCA to a few hundred dimensions keeps nearly all variance), or use FairPCA",
        )
        return accumulate(X, groups, weights)

    def _depends_on_subspace_only(self) -> bool:
        """Whether nothing in the search depends on the number of features."""
        return True

    def _takes_operators(self) -> bool:
        """Whether products with the second moments are enough for the search."""
        return False

    def _spare_directions(self, n_rows: int, n_features: int) -> int:
        """Directions without variance that the search may need in addition to the space of few rows."""
        if self.n_components is None:
            return 1
        # Some methods prefer directions without variance; for a share, at most one for each that the rows span.
        return n_rows if isinstance(self.n_components, float) else check_n_components(self.n_components, n_features)

    def _all_components(self, reduction: Reduction) -> int:
        """The largest possible number of components, which None stands for."""
        return all_directions(reduction)

    def _learn(self, reduction: Reduction) -> Self:
        verbose = getattr(self, "verbose", 0)  # the closed forms have no steps
        with printed_steps(verbose), threads_for(_PRODUCTS_OF_A_SEARCH * reduction.size**3):
            if isinstance(self.n_components, float):
                n_components, fit = self._solve_for_share(reduction, float(self.n_components))
            elif self.n_components is None:
                n_components, fit = self._all_components(reduction), None
            else:
                n_components, fit = check_n_components(self.n_components, reduction.n_features), None
            self._warn_about(reduction, n_components)
            fit = self._solve(reduction, n_components) if fit is None else fit
            self._store(reduction, fit)
        self._remember(reduction)
        self._warn_unless_converged(fit.result.status)
        return self

    def _solve_for_share(self, reduction: Reduction, share: float) -> tuple[int, Fit]:
        """The fewest components with which every group keeps the share of its variance, and their fit."""
        reached, last = {}, self._all_components(reduction)
        matrices = reduction.second_moments(getattr(self, "center", "pooled"))
        first = min(least_for_own(matrices, share), last) if isinstance(matrices, np.ndarray) else 1
        for d in range(first, last + 1):
            fit = self._solve(reduction, d)
            reached[d] = float(kept_shares(fit.captured, fit.totals).min())
            if reached[d] >= share - SHARE_ROUNDING:
                return d, fit
        raise unreachable(share, reached)

    def _check_parameters(self) -> None:
        """Raise for parameters that are invalid for any data, before any data is read. Subclasses add their own."""
        check_wanted_components(self.n_components)
        for name, check in _COMMON_PARAMETERS.items():
            if hasattr(self, name):
                check(name, getattr(self, name))
        legacy_generator(getattr(self, "random_state", None))  # raises if it is not a valid random state

    @abstractmethod
    def _solve(self, reduction: Reduction, n_components: int) -> Fit:
        """Run the search, without setting any attributes."""

    def _store(self, reduction: Reduction, fit: Fit) -> None:
        """Set the fitted attributes. The lower bound never exceeds the objective, not even by rounding."""
        self._forget()  # what an earlier fit set
        result = fit.result
        self.__dict__.update(fit.attributes)
        self._set_projection(result.basis, reduction, fit.score_covariance)
        self.group_errors_, self.group_losses_ = fit.errors, fit.losses
        self.objective_ = result.objective
        self.lower_bound_ = min(result.lower_bound, result.objective)
        self.duality_gap_ = self.objective_ - self.lower_bound_
        self.n_iter_ = max(result.n_iter, 1)
        self.n_oracle_calls_ = result.n_oracle_calls
        self.converged_ = result.status in _CONVERGED and bool(np.isfinite(self.duality_gap_))

    def _rng(self) -> np.random.Generator:
        """The random generator; reproducible even with ``random_state=None``."""
        return generator(self.random_state, type(self).__name__)

    def _advice(self, status: Status) -> str:
        """Which parameters to change after a search that ended with this status."""
        return "To close the gap, raise max_iter or tol." if status is Status.MAX_ITER else ""

    def _warn_unless_converged(self, status: Status) -> None:
        if self.converged_ or status in _FINISHED:
            return
        message = f"{type(self).__name__} stopped with a duality gap of {self.duality_gap_:.3g}. {status.value}"
        warn_user(f"{message} {self._advice(status)}".rstrip(), ConvergenceWarning)
