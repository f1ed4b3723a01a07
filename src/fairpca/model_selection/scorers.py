"""Scorers that know groups, for ``scoring=`` in scikit-learn's ``cross_validate`` and ``GridSearchCV``.

All are larger for better projections, as scikit-learn expects, so that errors and gaps have a minus sign. They evaluate
fitted linear projections (fairpca's, scikit-learn's PCA), alone or in a pipeline; in a pipeline, rows pass through the
steps before the projection first. The groups come by metadata routing: enable it, and pass
``params={"sensitive_features": groups}`` to ``cross_validate``, or ``sensitive_features=groups`` to the ``fit`` of
``GridSearchCV``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest

from fairpca._validation import split_off_groups
from fairpca.metrics import explained_variance_ratio, mmd2, reconstruction_error

__all__ = [
    "GroupScorer",
    "error_gap",
    "group_mmd2",
    "worst_group_error",
    "worst_group_share",
]


class GroupScorer:
    """A scorer ``scorer(estimator, X, y=None, *, sensitive_features, sample_weight=None)``.

    Parameters
    ----------
    name : str
    measure : callable
        ``measure(projection, X, *, sensitive_features, sample_weight) -> float``; larger is better.

    See Also
    --------
    fairpca.inference.cross_validate_groups : Errors and losses of each group on new rows, with intervals.

    Examples
    --------
    >>> from sklearn import config_context
    >>> from sklearn.model_selection import cross_validate
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_german_credit
    >>> from fairpca.metrics import reconstruction_error
    >>> from fairpca.model_selection.scorers import GroupScorer
    >>> def error_of_women(projection, X, **groups):
    ...     return -reconstruction_error(X, projection, **groups)["female"]
    >>> scorer = GroupScorer("error_of_women", error_of_women)
    >>> X, sex = load_german_credit(return_X_s=True)
    >>> with config_context(enable_metadata_routing=True):
    ...     found = cross_validate(FairPCA(3), X, scoring=scorer, params={"sensitive_features": sex}, cv=4)
    >>> found["test_score"].shape
    (4,)
    """

    def __init__(self, name: str, measure: Callable[..., float]) -> None:
        self.name, self._measure = name, measure
        self._requests: dict[str, bool | str | None] = {"sensitive_features": True, "sample_weight": None}
        self.__doc__ = measure.__doc__

    def __call__(
        self, estimator: Any, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> float:
        """The score of a fitted estimator on these rows."""
        if sensitive_features is None:
            raise ValueError(
                f"The scorer {self.name} needs sensitive_features: call sklearn.set_config(enable_metadata_routing="
                "True), then pass params={'sensitive_features': groups} to cross_validate, or "
                "sensitive_features=groups to the fit of GridSearchCV."
            )
        X, sensitive_features = split_off_groups(None, X, sensitive_features)
        projection, rows = _before_projection(estimator, X)
        given = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        return float(self._measure(projection, rows, **given))

    def set_score_request(self, **requests: bool | str | None) -> GroupScorer:
        """A copy that requests other metadata: ``sample_weight=True``, or another name for ``sensitive_features``."""
        unknown = set(requests) - set(self._requests)
        if unknown:
            raise TypeError(
                f"{unknown.pop()!r} is not metadata of this scorer; choose from {', '.join(self._requests)}."
            )
        other = copy.copy(self)
        other._requests = self._requests | requests
        return other

    def get_metadata_routing(self) -> MetadataRequest:
        """What scikit-learn passes to this scorer."""
        routing = MetadataRequest(owner=self)
        for name, alias in self._requests.items():
            routing.score.add_request(param=name, alias=alias)
        return routing

    def __repr__(self) -> str:
        return self.name


def _before_projection(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The projection in an estimator, and the rows that reach it."""
    if not isinstance(estimator, Pipeline):
        return estimator, X
    places = [place for place, (_, step) in enumerate(estimator.steps) if hasattr(step, "components_")]
    if not places:
        raise ValueError("The pipeline contains no fitted projection, such as FairPCA, that could be scored by group.")
    place = places[-1]
    return estimator[place], estimator[:place].transform(X) if place else X


def _worst_group_error(projection: Any, X: Any, **groups: Any) -> float:
    """Minus the largest mean squared reconstruction error of any group.

    It always improves with the number of components: use it to compare methods, or as one of several scorers.
    """
    return -reconstruction_error(X, projection, **groups).max  # type: ignore[union-attr]


def _error_gap(projection: Any, X: Any, **groups: Any) -> float:
    """Minus the largest difference between the reconstruction errors of two groups."""
    return -reconstruction_error(X, projection, **groups).gap  # type: ignore[union-attr]


def _worst_group_share(projection: Any, X: Any, **groups: Any) -> float:
    """The smallest share of its variance that any group keeps, between 0 and 1."""
    return explained_variance_ratio(X, projection, **groups).min  # type: ignore[union-attr]


def _group_mmd2(projection: Any, X: Any, **groups: Any) -> float:
    """Minus the largest squared MMD between the scores of two groups: 0 if their distributions are equal."""
    return -mmd2(np.asarray(projection.transform(X)), **groups)


worst_group_error = GroupScorer("worst_group_error", _worst_group_error)
error_gap = GroupScorer("error_gap", _error_gap)
worst_group_share = GroupScorer("worst_group_share", _worst_group_share)
group_mmd2 = GroupScorer("group_mmd2", _group_mmd2)
