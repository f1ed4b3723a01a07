"""Group moments together with continuous sensitive features: what scores uncorrelated with an attribute need."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fairpca._containers import is_tensor
from fairpca._continuous import Measurements, all_rows, check_continuous
from fairpca._validation import Groups, check_plain_matrix, check_sample_weight, ordered_labels
from fairpca.moments._accumulate import accumulate
from fairpca.moments._group_moments import GroupMoments, Reduction
from fairpca.moments._tensors import accumulate_tensor

#: How many numbers are copied at a time to stand beside the attributes.
_BLOCK_NUMBERS = 4_000_000
#: A feature whose correlation with an attribute is 1 up to this is a copy of it.
_COPY = 1e-12
#: A feature with less spread than this share of its mean counts as constant.
_CONSTANT = 1e-9
#: A count that is whole up to this share of it was whole before the shares of the indicators were rounded.
_ROUNDED = 1e-6
#: Roles whose columns are indicators of labels.
_LABELS = {"group", "class"}


@dataclass(frozen=True, eq=False)
class JointMoments:
    """Moments of the features beside what an erasure refers to, as the columns of one table; mergeable.

    Unlike moments by group, they hold a single scatter matrix however many groups there are.

    Attributes
    ----------
    columns : tuple of (role, name)
        What stands after the features: indicators of labels (roles "group" and "class") and numbers ("continuous" and
        "number").
    joint : GroupMoments
        Moments of all columns, of all rows together.
    """

    columns: tuple[tuple[str, Any], ...]
    joint: GroupMoments

    @property
    def n_features(self) -> int:
        return self.joint.n_features - len(self.columns)

    @property
    def labels(self) -> tuple[Any, ...]:
        """The groups; none without rows."""
        return self.named("group") if self.joint.labels else ()

    def named(self, role: str) -> tuple[Any, ...]:
        """The labels of which there are rows, or the names of numbers."""
        return tuple(self.columns[j][1] for j in self._present(role))

    def counts(self) -> np.ndarray:
        """The number of rows of each group."""
        counts = self._means[self._present("group")] * self.joint.total_count
        whole = np.rint(counts)
        return np.where(abs(counts - whole) < _ROUNDED * counts, whole, counts)

    def beside(self, *roles: str) -> AttributeMoments | None:
        """The features with the columns of these roles, without the most frequent label, which the others determine."""
        kept = []
        for role in roles:
            found = self._present(role)
            frequent = max(found, key=lambda j: self._means[j], default=None) if role in _LABELS else None
            kept += [j for j in found if j != frequent]
        if not kept:
            return None
        chosen = self.joint.select([*range(self.n_features), *(self.n_features + j for j in kept)])
        return AttributeMoments(tuple(str(self.columns[j][1]) for j in kept), chosen)

    def merge(self, *others: JointMoments) -> JointMoments:
        """The summary of all rows together; a label need not occur in every part."""
        parts = [part for part in (self, *others) if part.joint.labels] or [self]
        for part in parts:
            if part._contents != parts[0]._contents:
                raise ValueError(
                    f"Cannot merge rows beside {sorted(parts[0]._contents)} and {sorted(part._contents)}: pass the "
                    "same continuous and y, of the same types, with every chunk."
                )
        found: dict[str, dict[Any, None]] = {}
        for role, name in (column for part in parts for column in part.columns):
            found.setdefault(role, {})[name] = None
        columns = tuple(
            (role, name)
            for role, names in found.items()
            for name in (ordered_labels(names) if role in _LABELS else names)
        )
        first, *rest = (part._aligned(columns) for part in parts)
        return JointMoments(columns, first.merge(*rest))

    @property
    def _means(self) -> np.ndarray:
        """Of an indicator: the share of the rows with this label."""
        return self.joint.pooled_mean[self.n_features :]

    def _present(self, role: str) -> list[int]:
        return [
            j for j, (one, _) in enumerate(self.columns) if one == role and (role not in _LABELS or self._means[j] > 0)
        ]

    @property
    def _contents(self) -> set[str]:
        return {role if role in _LABELS else f"{role} {name}" for role, name in self.columns}

    def _aligned(self, columns: tuple[tuple[str, Any], ...]) -> GroupMoments:
        """The joint moments with these columns: the indicator of a label that does not occur is zero."""
        if columns == self.columns:
            return self.joint
        place = {column: [self.n_features + j] for j, column in enumerate(self.columns)}
        return self.joint.sum_columns(
            [*([j] for j in range(self.n_features)), *(place.get(one, []) for one in columns)]
        )


@dataclass(frozen=True, eq=False)
class AttributeMoments(Reduction):
    """The moments of the features and of continuous sensitive features, as the columns of one table; mergeable.

    Attributes
    ----------
    names : tuple of str
        The continuous sensitive features.
    joint : GroupMoments
        Moments of the features, followed by the continuous sensitive features.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import ParityPCA
    >>> from fairpca.moments import attribute_moments
    >>> rng = np.random.default_rng(0)
    >>> age = rng.normal(40.0, 10.0, 60)
    >>> X = rng.normal(size=(60, 4)) + age[:, None] / 10
    >>> parts = [
    ...     attribute_moments(X[rows], sensitive_features=None, continuous=age[rows])
    ...     for rows in (slice(0, 20), slice(20, 60))
    ... ]
    >>> pca = ParityPCA(2).fit_moments(parts[0].merge(parts[1]))
    >>> bool(abs(np.corrcoef(pca.transform(X).T, age)[-1, :-1]).max() < 1e-10)
    True
    """

    names: tuple[str, ...]
    joint: GroupMoments

    def __post_init__(self) -> None:
        if not 0 < len(self.names) < self.joint.n_features:
            raise ValueError(
                f"names has {len(self.names)} entries, but joint has {self.joint.n_features} columns: the features "
                "come first, then one column per name."
            )

    @property
    def labels(self) -> tuple[Any, ...]:  # type: ignore[override]
        return self.joint.labels

    @property
    def counts(self) -> np.ndarray:  # type: ignore[override]
        return self.joint.counts

    @property
    def means(self) -> np.ndarray:  # type: ignore[override]
        return self.joint.means[:, : -len(self.names)]

    @property
    def pooled_mean(self) -> np.ndarray:  # type: ignore[override]
        return self.moments.pooled_mean

    @functools.cached_property
    def moments(self) -> GroupMoments:
        """The moments of the features alone."""
        return self.joint.select(np.arange(self.joint.n_features - len(self.names)))

    def check(self) -> AttributeMoments:
        """Return self if these can be the moments of data; raise otherwise."""
        self.joint.check()
        return self

    def merge(self, *others: AttributeMoments) -> AttributeMoments:
        """The summary of all rows together; every part needs the same continuous sensitive features."""
        for other in others:
            if other.names != self.names:
                raise ValueError(
                    f"Cannot merge moments with the continuous sensitive features {list(self.names)} and "
                    f"{list(other.names)}: pass the same columns, in the same order, with every chunk."
                )
        return AttributeMoments(self.names, self.joint.merge(*(other.joint for other in others)))

    def slopes(self) -> np.ndarray:
        """``cov(x, z) / sd(z)`` for every attribute z, of shape (n_attributes, p): change of the mean row per sd of z.

        Zero for an attribute that is constant.
        """
        q = len(self.names)
        spread = self.attribute_spreads()[:, None]
        covariances = self.joint.pooled_covariance()[-q:, :-q]
        return np.divide(covariances, spread, out=np.zeros_like(covariances), where=spread > 0)

    def attribute_spreads(self) -> np.ndarray:
        """Standard deviation of each attribute, 0 where it is constant up to rounding."""
        q = len(self.names)
        spread = np.sqrt(self.joint.pooled_variances()[-q:])
        size = np.abs(self.joint.means[:, -q:]).max(axis=0, initial=0.0)
        return np.where(spread > np.finfo(float).eps * np.sqrt(self.total_count) * size, spread, 0.0)

    def slope_rounding(self) -> np.ndarray:
        """How many times larger the rounding error of each slope is than that of a group mean: shape (n_attributes,).

        An attribute far from zero relative to its spread, such as a date in seconds, carries fewer digits.
        """
        spread = self.attribute_spreads()
        size = np.abs(self.joint.pooled_mean[-len(self.names) :])
        return 1.0 + np.divide(size, spread, out=np.zeros_like(size), where=spread > 0)

    def columns_fixed_by_group(self) -> np.ndarray:
        """Columns fixed by the group, and columns that are a linear function of an attribute."""
        spreads = np.sqrt(self.moments.pooled_variances())
        slopes = np.abs(self.slopes())
        varies = spreads > _CONSTANT * np.abs(self.pooled_mean)
        copies = varies & ((slopes >= (1.0 - _COPY) * spreads) & (slopes > 0)).any(axis=0)
        fixed = self.moments.columns_fixed_by_group()
        return np.union1d(fixed, np.flatnonzero(copies)).astype(np.intp)


def attribute_moments(
    X: Any, *, sensitive_features: Any, continuous: Any, sample_weight: Any = None
) -> AttributeMoments:
    """Reduce rows to moments of their features and continuous sensitive features, by group.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (N, p)
    sensitive_features : array-like or None
        The group of each row, or a data frame whose columns ``continuous`` names. With None, or if no other column is
        left, all rows are one group.
    continuous : str, list of str or array-like of shape (N,) or (N, n_attributes)
        Names of columns of ``sensitive_features``, or values.
    sample_weight : array-like of shape (N,), optional
        Counts like repeated rows.

    Returns
    -------
    AttributeMoments
        Mergeable: parts may be computed at different places.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.moments import attribute_moments
    >>> moments = attribute_moments(
    ...     np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 7.0]]), sensitive_features=None, continuous=[20.0, 30.0, 40.0]
    ... )
    >>> moments.names, moments.slopes().round(3)
    (('continuous0',), array([[1.633, 2.449]]))
    """
    X = check_plain_matrix(X, finite=False)
    groups, measured = check_continuous(sensitive_features, continuous, X.shape[0])
    return accumulate_attributes(X, groups, measured, check_sample_weight(sample_weight, X.shape[0]))


def accumulate_attributes(
    X: Any,
    groups: Groups,
    measured: Measurements,
    sample_weight: np.ndarray | None = None,
    *,
    parallel: bool = True,
) -> AttributeMoments:
    """Moments of validated data by group, with continuous sensitive features."""
    joint = _accumulate_beside(X, groups, measured.values, sample_weight, parallel)
    return AttributeMoments(measured.names, joint)


def accumulate_joint(
    X: Any, parts: dict[str, Groups | Measurements], sample_weight: np.ndarray | None = None, *, parallel: bool = True
) -> JointMoments:
    """Moments of validated data beside labels and numbers, by their roles."""
    columns, values = [], []
    for role, part in parts.items():
        if isinstance(part, Groups):  # indicators are exact in float32: rows in float32 need not be converted
            names, numbers = part.labels, np.eye(len(part), dtype=np.float32)[part.codes]
        else:
            names, numbers = part.names, part.values
        columns += [(role, name) for name in names]
        values.append(numbers)
    beside = np.hstack(values)
    if is_tensor(X):
        return JointMoments(tuple(columns), accumulate_tensor(X, beside, sample_weight))
    return JointMoments(tuple(columns), _accumulate_beside(X, all_rows(len(beside)), beside, sample_weight, parallel))


def _accumulate_beside(
    X: Any, groups: Groups, values: np.ndarray, sample_weight: np.ndarray | None, parallel: bool
) -> GroupMoments:
    """Moments of rows and values; a block of rows at a time is copied to stand beside its values."""
    joint = GroupMoments.empty(X.shape[1] + values.shape[1])
    step = max(_BLOCK_NUMBERS // X.shape[1], 1)
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        weights = None if sample_weight is None else sample_weight[rows]
        block, members = _beside(X[rows], values[rows]), Groups(groups.labels, groups.codes[rows])
        joint = joint.merge(accumulate(block, members, weights, parallel=parallel))
    return joint


def _beside(X: Any, values: np.ndarray) -> Any:
    if sparse.issparse(X):
        return sparse.hstack([X, sparse.csr_matrix(values)], format="csr")
    return np.hstack([X, values])
