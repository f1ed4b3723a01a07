"""What all estimators share: projecting rows, and learning from group moments."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning

from fairpca._labels import quoted
from fairpca._progress import printed_steps
from fairpca._saved import (
    BOUNDED,
    FITTED,
    GROUPED,
    LINEAR,
    PER_GROUP,
    SCORED,
    SEARCHED,
    TUPLE,
    Array,
    Declared,
    Record,
)
from fairpca._validation import (
    check_grouped_rows,
    check_matrix,
    check_n_components,
    check_several_groups,
    check_wanted_components,
    checks_keywords,
    generator,
    is_dask,
    legacy_generator,
    remember_sensitive_columns,
    split_off_groups,
    warn_of_memory,
    warn_user,
)
from fairpca.estimators._adds_rows import AddsRows
from fairpca.estimators._dimension import all_directions, refuse_share, solve_for_wanted
from fairpca.estimators._html import fitted_html
from fairpca.estimators._row_projector import RowProjector
from fairpca.linalg import fix_signs, orthonormalise, threads_for
from fairpca.moments import GroupMoments
from fairpca.moments._accumulate import accumulate, chunk_moments
from fairpca.moments._factors import GroupFactors
from fairpca.moments._group_moments import Reduction
from fairpca.moments._row_space import RowSpace
from fairpca.moments.dask import as_dask_features, moments_from_dask, sample_of
from fairpca.problems.evaluation import Evaluation
from fairpca.protocols import SolverResult, Status

__all__ = ["Fit", "LinearProjection", "MomentEstimator", "label_array"]

#: Above this many features, p x p matrices are avoided where possible ...
MANY_FEATURES = 3000
#: ... and with at most this many rows, the problem is solved in the space they span.
FEW_ROWS = 2000
#: Estimated multiplications of a search in units of p^3, which decide whether it counts as short.
_PRODUCTS_OF_A_SEARCH = 5.0
_CONVERGED = (Status.OPTIMAL, Status.RELAXATION_SOLVED)
#: These are no failure to be warned of: the search did all that it can, and the gap says what is not known.
_FINISHED = (Status.STATIONARY, Status.UNCERTIFIED)


_MOMENTS: dict[str, Declared] = {
    "_moments": Record(
        GroupMoments,
        {
            "labels": TUPLE,
            "counts": Array("g", finite=True),
            "means": Array("gm", finite=True),  # of the features and, after them, continuous sensitive features
            "scatters": Array("gmm", finite=True),
        },
        or_none=True,
    )
}


class FloatTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer that accepts dense and sparse rows and preserves their precision."""

    _saved_attributes: ClassVar = FITTED

    def _check_transform_parameters(self) -> None:
        """Raise for parameters with which ``transform`` would fail: a saved model may come from an untrusted source."""

    def _sample_of_features(self, X: Any, sensitive_features: Any) -> Any:
        """Placeholder rows of a Dask collection without its sensitive columns, which are remembered."""
        features = as_dask_features(X, sensitive_features)[0]
        if hasattr(X, "columns"):
            remember_sensitive_columns(self, [name for name in X.columns if name not in features.columns])
        return sample_of(features)

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + fitted_html(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """scikit-learn's diagram, followed by the groups and the certificate of a fitted estimator."""
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += fitted_html(self)
        return bundle

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32", "float16"]
        return tags


class LinearProjection(RowProjector, FloatTransformer, metaclass=ABCMeta):
    """Projection on orthonormal components about the pooled mean; subclasses implement only the fit.

    See Also
    --------
    MomentEstimator : For methods that need group moments only.

    Examples
    --------
    >>> from fairpca import FairPCA, MMDFairPCA
    >>> from fairpca.estimators import LinearProjection
    >>> issubclass(FairPCA, LinearProjection), issubclass(MMDFairPCA, LinearProjection)
    (True, True)
    """

    # Pipeline, GridSearchCV and cross_validate pass the groups on without a request by the user.
    __metadata_request__fit = {"sensitive_features": True}  # noqa: RUF012 (scikit-learn reads a plain dict)

    _saved_attributes: ClassVar = SCORED | LINEAR | GROUPED | {"group_errors_": PER_GROUP, "group_losses_": PER_GROUP}

    components_: np.ndarray
    mean_: np.ndarray

    def _set_projection(self, basis: np.ndarray, reduction: Reduction, form: np.ndarray | None = None) -> None:
        """Set the attributes of scikit-learn's PCA from an orthonormal basis, in coordinates of the reduction.

        ``form`` is the covariance of the scores if they are not those of an orthogonal projection.
        """
        basis, values = self._oriented(basis, reduction.pooled_form(basis) if form is None else form)
        basis = fix_signs(reduction.lift(basis))
        p, d = basis.shape
        total, count = reduction.pooled_variance(), reduction.total_count
        captured = np.maximum(values, 0.0)
        unbiased = count / (count - 1.0) if count > 1 else 1.0
        self.components_ = np.ascontiguousarray(basis.T)
        self.mean_ = reduction.pooled_mean.copy()
        self.explained_variance_ = captured * unbiased
        self.explained_variance_ratio_ = captured / total if total > 0 else np.zeros(d)
        left_out = max(total - captured.sum(), 0.0)
        self.noise_variance_ = left_out * unbiased / (p - d) if p > d else 0.0
        self.n_components_ = d
        self.n_samples_seen_ = int(count) if float(count).is_integer() else count

    def _oriented(self, basis: np.ndarray, form: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The basis with uncorrelated scores, by descending variance, and the variances; ``form`` is ``V^T S V``."""
        values, rotation = np.linalg.eigh(form)
        return orthonormalise(basis @ rotation[:, ::-1]), values[::-1]

    def _warn_about(self, moments: Reduction, n_components: int) -> None:
        small = [
            f"{quoted(label)} ({count:g})"
            for label, count in zip(moments.labels, moments.counts, strict=True)
            if count < n_components
        ]
        if small:
            warn_user(
                f"Groups smaller than n_components={n_components}: {', '.join(small)}. Their own best projection "
                "is exact, so their errors and losses say little; merge small groups or lower n_components."
            )
        copies = moments.columns_fixed_by_group()
        if copies.size:
            names = getattr(self, "feature_names_in_", None)
            columns = ", ".join(repr(names[j]) if names is not None else f"column {j}" for j in copies[:5])
            warn_user(
                f"X contains the sensitive feature or a copy of it: {columns}. Drop it from X unless this is intended."
            )

    def _set_groups(self, moments: GroupMoments, matrices: np.ndarray) -> None:
        """Set the group attributes for the returned components; ``matrices`` are the M_a of the chosen centring."""
        self._set_labels(moments)
        found = Evaluation(matrices, self.components_.T)
        self.group_errors_, self.group_losses_ = found.errors, found.losses

    def _set_labels(self, moments: Reduction) -> None:
        self.groups_ = label_array(moments.labels)
        self.group_counts_ = moments.counts.copy()


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
    score_covariance: np.ndarray | None = field(default=None, kw_only=True)

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

    _saved_attributes: ClassVar = SEARCHED | BOUNDED | _MOMENTS

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
        self._check_parameters()
        reduction = self._reduce(X, sensitive_features, sample_weight)
        check_several_groups(reduction.labels, reduction.total_count)
        return self._learn(reduction)

    @checks_keywords
    def partial_fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Add these rows to all rows seen before. A chunk may contain a single group; groups may appear later.

        Adding is cheap: the components are computed when they are asked for, by a fitted attribute, a method such as
        ``transform``, or saving. Parameters as in :meth:`fit`.
        """
        self._check_parameters()
        refuse_share(self.n_components)
        before = self._rows_seen()
        return self._add(before, self._reduce_chunk(X, sensitive_features, sample_weight, reset=before is None))

    def _rows_seen(self) -> Any:
        """The moments of all rows so far, or None."""
        if vars(self).get("_moments") is None and "_moments" in vars(self):
            raise ValueError(
                "With this many features, fit keeps no moments that partial_fit could update; use partial_fit from the "
                "first chunk on, or a new estimator."
            )
        return vars(self).get("_moments")

    def _remember(self, reduction: Any) -> None:
        """Keep what further rows can be added to."""
        self._moments = reduction if isinstance(reduction, GroupMoments) else None

    def fit_moments(self, moments: GroupMoments) -> Self:
        """Fit to a summary computed elsewhere, for example merged from chunks or from several sites.

        Examples
        --------
        >>> import numpy as np
        >>> from fairpca import FairPCA
        >>> from fairpca.moments import group_moments
        >>> rng = np.random.default_rng(0)
        >>> X, groups = rng.normal(size=(60, 4)), rng.integers(0, 2, 60)
        >>> chunks = [(X[:30], groups[:30]), (X[30:], groups[30:])]
        >>> FairPCA(2).fit_moments(group_moments(chunks)).components_.shape
        (2, 4)
        """
        self._check_parameters()
        check_several_groups(moments.check().labels, moments.total_count)
        self.n_features_in_ = moments.n_features
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # those of an earlier fit; moments have none
        remember_sensitive_columns(self, [])
        return self._learn(moments)

    def _reduce(self, X: Any, sensitive_features: Any, sample_weight: Any) -> Reduction:
        """Reduce the data to group statistics, in the form that suits its shape."""
        if is_dask(X):
            return self._reduce_dask(X, sensitive_features, sample_weight, reset=True)
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

    def _reduce_chunk(self, X: Any, sensitive_features: Any, sample_weight: Any, *, reset: bool) -> GroupMoments:
        """The same for one chunk, which may have no rows or no positive weight."""
        if is_dask(X):
            return self._reduce_dask(X, sensitive_features, sample_weight, reset=reset)
        X, sensitive_features = split_off_groups(self, X, sensitive_features, reset=reset)
        X = check_matrix(self, X, reset=reset, min_samples=0, finite=False)
        return chunk_moments(X, sensitive_features, sample_weight)

    def _reduce_dask(self, X: Any, sensitive_features: Any, sample_weight: Any, *, reset: bool) -> GroupMoments:
        check_matrix(self, self._sample_of_features(X, sensitive_features), reset=reset)
        return moments_from_dask(X, sensitive_features=sensitive_features, sample_weight=sample_weight)

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

    def _keeps_more_with_more(self, reduction: Reduction) -> bool:
        """Whether no group's kept share of variance ever falls as components are added."""
        return False

    def _learn(self, reduction: Reduction) -> Self:
        verbose = getattr(self, "verbose", 0)  # the closed forms have no steps
        with printed_steps(verbose), threads_for(_PRODUCTS_OF_A_SEARCH * reduction.size**3):
            if self.n_components is None or isinstance(self.n_components, float):
                n_components, fit = solve_for_wanted(self, reduction)
            else:
                n_components, fit = check_n_components(self.n_components, reduction.n_features), None
            self._warn_about(reduction, n_components)
            fit = self._solve(reduction, n_components) if fit is None else fit
            self._store(reduction, fit)
        self._remember(reduction)
        self.__dict__.pop("_unsolved", None)
        self._warn_unless_converged(fit.result.status)
        return self

    def _check_parameters(self) -> None:
        """Raise for parameters that are invalid for any data, before any data is read. Subclasses add their own."""
        check_wanted_components(self.n_components)
        if getattr(self, "random_state", None) is not None:
            legacy_generator(self.random_state)  # raises if it is not a valid random state

    @abstractmethod
    def _solve(self, reduction: Reduction, n_components: int) -> Fit:
        """Run the search, without setting any attributes."""

    def _store(self, reduction: Reduction, fit: Fit) -> None:
        """Set the fitted attributes. The lower bound never exceeds the objective, not even by rounding."""
        result = fit.result
        self._set_projection(result.basis, reduction, fit.score_covariance)
        self._set_labels(reduction)
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


def label_array(labels: tuple[Any, ...]) -> np.ndarray:
    """Labels as an array of their own type where they share one, else of objects (tuples always)."""
    if len({type(label) for label in labels}) == 1 and not isinstance(labels[0], tuple):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array
