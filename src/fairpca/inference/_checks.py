"""Input validation shared by the tests and the cross-validation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fairpca._validation import (
    Groups,
    check_finite,
    check_groups,
    check_n_components,
    check_plain_matrix,
    check_sample_weight,
    check_several_groups,
    groups_from_codes,
    is_dask,
    split_off_groups,
)
from fairpca.moments._sources import ChunkSource, MemorySource, RowSource
from fairpca.moments.dask import DaskSource

__all__ = [
    "as_source",
    "check_clusters",
    "check_dimensions",
    "check_one_group_each",
    "in_memory_rows",
]

#: With more features than this, the p x p matrices, one per group and fold, would be too large.
_MANY_FEATURES = 3000


def as_source(X: Any, sensitive_features: Any, sample_weight: Any) -> RowSource:
    """Rows in memory, a Dask collection, or an iterable of chunks that can be read again."""
    if is_dask(X):
        source: RowSource = DaskSource(X, sensitive_features, sample_weight)
    elif sensitive_features is None and not hasattr(X, "shape") and _yields_tuples(X):
        source = ChunkSource(X)
    else:
        source = in_memory_rows(X, sensitive_features, sample_weight)
    if source.n_features > _MANY_FEATURES:
        raise ValueError(
            f"X has {source.n_features} features, too many for a matrix per group and fold (at most {_MANY_FEATURES}). "
            "With fewer rows than features, use sklearn.decomposition.PCA().fit_transform(X) in place of X: it keeps "
            "every distance between rows, so errors and losses are the same."
        )
    return source


def _yields_tuples(X: Any) -> bool:
    """Whether X may be chunks; iterators are accepted here, and rejected later with a clear error."""
    return not isinstance(X, list | tuple) or (len(X) > 0 and isinstance(X[0], tuple) and len(X[0]) in (2, 3))


def in_memory_rows(X: Any, sensitive_features: Any, sample_weight: Any) -> MemorySource:
    X, sensitive_features = split_off_groups(None, X, sensitive_features)
    X = check_plain_matrix(X, min_samples=2, finite=False)  # finiteness is checked in accumulate
    groups = check_groups(sensitive_features, X.shape[0])
    weights = check_sample_weight(sample_weight, X.shape[0])
    kept = None
    if weights is not None and not weights.all():  # rows with weight zero are dropped
        check_finite(X)
        kept = weights > 0
        X, weights, groups = X[kept], weights[kept], groups_from_codes(groups.codes[kept], groups.labels)
    check_several_groups(groups.labels, X.shape[0])
    return MemorySource(X, groups, weights, kept)


def check_clusters(clusters: Any, source: RowSource) -> np.ndarray | None:
    """Codes from 0, one per row with positive weight."""
    if clusters is None:
        return None
    if not isinstance(source, MemorySource):
        raise ValueError("clusters are supported for rows in memory only; pass a random sample of the clusters.")
    try:
        codes = check_groups(clusters, source.n_given).codes.astype(np.intp)
        return np.unique(source.select(codes), return_inverse=True)[1]
    except (TypeError, ValueError) as problem:
        raise type(problem)(str(problem).replace("sensitive_features", "clusters")) from None


def check_one_group_each(clusters: np.ndarray, groups: Groups) -> None:
    """Raise an error if a cluster has rows of several groups: its label could not be permuted."""
    pairs = np.unique(np.column_stack([clusters, groups.codes]), axis=0)
    if mixed := int(np.count_nonzero(np.bincount(pairs[:, 0]) > 1)):
        raise ValueError(
            f"clusters: {mixed} of them have rows of more than one group. The labels of whole clusters are permuted, "
            "so each must belong to one group: use a finer identifier (the person instead of the household)."
        )


def check_dimensions(n_components: Any, n_features: int, *, default: Iterable[int] = ()) -> tuple[int, ...]:
    """Numbers of components, ascending; None takes those of the default that do not exceed the features."""
    if n_components is None:
        n_components = [number for number in default if number <= n_features] or None
    if n_components is None:
        raise ValueError("n_components is required if the estimator does not have it: pass one number or several.")
    numbers = list(n_components) if isinstance(n_components, Iterable) else [n_components]
    if not numbers:
        raise ValueError("n_components is empty; pass one number or several.")
    return tuple(sorted({check_n_components(number, n_features) for number in numbers}))
