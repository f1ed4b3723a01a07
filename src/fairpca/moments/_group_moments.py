"""The summary of the data that every moment-based method works on, and the running sums behind it."""

from __future__ import annotations

import functools
import io
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairpca._archive import DAMAGE, read_archive, write_archive
from fairpca._validation import check_choice, ordered_labels
from fairpca._values import Packer, Unpacker
from fairpca.linalg import add_outer
from fairpca.moments._given_moments import check_moments, in_order

#: Operations between a row and a mean whose rounding matters even for few rows.
_ROUNDED_OPERATIONS = 16
#: Count, mean and scatter of a group.
Sums = Sequence[Any]
#: What the bytes of moments say they are, and the only version so far.
_FORMAT, _VERSION = "fairpca moments", 1


class Reduction(ABC):
    """Group statistics in the form that suits the data: matrices, coordinates in the span of few rows, or operators.

    Bases are given in the reduction's own ``size`` coordinates; :meth:`lift` maps them to features.
    """

    labels: tuple[Any, ...]
    counts: np.ndarray
    means: np.ndarray
    pooled_mean: np.ndarray

    @functools.cached_property
    def total_count(self) -> float:
        return float(self.counts.sum())

    @functools.cached_property
    def shares(self) -> np.ndarray:
        """``p_a = N_a / N``."""
        return self.counts / self.total_count

    @property
    def n_features(self) -> int:
        return self.means.shape[1]

    @property
    def size(self) -> int:
        return self.n_features

    @property
    def moments(self) -> GroupMoments:
        """The moments of the coordinates, if there are few enough of them to form matrices."""
        raise TypeError(f"{type(self).__name__} does not form matrices; use second_moments.")

    @property
    def coordinates(self) -> Reduction:
        """The same statistics of the coordinates in which bases are given."""
        return self.moments

    def lift(self, basis: np.ndarray) -> np.ndarray:
        """Map an orthonormal basis in coordinates to an orthonormal basis in the feature space."""
        return basis

    def forms(self, basis: np.ndarray, center: str = "pooled") -> np.ndarray:
        """``V^T M_a V`` for every group, of shape (k, d, d)."""
        return self.coordinates.forms(basis, center)

    def second_moments(self, center: str = "pooled") -> Any:
        """The ``M_a``: an array of shape (k, size, size) or, if that would be too large, operators."""
        return self.coordinates.second_moments(center)

    def traces(self, center: str = "pooled") -> np.ndarray:
        """``tr M_a``."""
        return self.coordinates.traces(center)

    def pooled_variance(self) -> float:
        """``tr S``, with S the covariance of all rows (divisor N): the average of the ``M_a``."""
        return float(self.shares @ self.traces())

    def pooled_form(self, basis: np.ndarray) -> np.ndarray:
        """``V^T S V``."""
        return np.tensordot(self.shares, self.forms(basis), axes=1)

    @abstractmethod
    def columns_fixed_by_group(self) -> np.ndarray:
        """Indices of columns that are constant within every group but differ between groups.

        Such a column is the sensitive feature, a copy of it, or a part of it such as an indicator of one group.
        """

    def mean_rounding(self) -> np.ndarray:
        """The size of a difference between two means that rounding alone can cause, for each feature: shape (p,).

        Rounding errors of a sum over N rows are proportional to their distance from the origin and grow like sqrt(N),
        as random errors do. An eigenvector mixes the features, so the spread of all limits the accuracy of each.
        """
        steps = _ROUNDED_OPERATIONS + np.sqrt(self.total_count)
        return np.finfo(float).eps * steps * (np.abs(self.means).max(axis=0) + np.sqrt(self.pooled_variance()))


@dataclass(frozen=True, eq=False)
class GroupMoments(Reduction):
    """Count, mean and centred scatter of each group; frozen and mergeable.

    Merging is associative and commutative up to rounding, with :meth:`empty` as its identity element, so the
    summary does not depend on how the rows were divided into chunks or on the order of the chunks.

    Attributes
    ----------
    labels : tuple of length k
        Group labels, in a fixed order.
    counts : ndarray of shape (k,)
        Number of rows in each group, or their total weight.
    means : ndarray of shape (k, p)
    scatters : ndarray of shape (k, p, p)
        ``sum_i (x_i - mean_a)(x_i - mean_a)^T`` over the rows of each group.

    See Also
    --------
    group_moments : Computes them.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.moments import group_moments
    >>> X = np.array([[0.0, 1.0], [2.0, 1.0], [5.0, 3.0]])
    >>> moments = group_moments(X, sensitive_features=["a", "a", "b"])
    >>> moments.means
    array([[1., 1.],
           [5., 3.]])
    >>> moments.merge(moments).counts
    array([4., 2.])
    """

    labels: tuple[Any, ...]
    counts: np.ndarray
    means: np.ndarray
    scatters: np.ndarray

    def __post_init__(self) -> None:
        k, p = self.means.shape
        if self.counts.shape != (k,) or self.scatters.shape != (k, p, p) or len(self.labels) != k:
            raise ValueError(
                f"labels ({len(self.labels)}), counts {self.counts.shape}, means {self.means.shape} and "
                f"scatters {self.scatters.shape} do not describe the same groups and features."
            )
        if len(set(self.labels)) != k:
            raise ValueError(f"labels {self.labels!r} repeat a group; merge its parts first, with GroupMoments.merge.")
        for name in ("counts", "means", "scatters"):
            array = getattr(self, name).view()  # read-only here, without freezing the caller's own array
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def empty(cls, n_features: int) -> GroupMoments:
        """The summary of no rows."""
        return cls((), np.zeros(0), np.zeros((0, n_features)), np.zeros((0, n_features, n_features)))

    @classmethod
    def from_covariances(cls, covariances: Any, counts: Any, means: Any = None, ddof: float = 0) -> GroupMoments:
        """The summary of data known only by its covariance matrices, such as published ones or those of several sites.

        Parameters
        ----------
        covariances : dict of label -> array-like of shape (p, p), or array-like of shape (k, p, p)
            The groups of an array are labelled 0, 1, ...
        counts : dict of label -> number, or array-like of shape (k,)
            Number of rows in each group.
        means : dict of label -> array-like of shape (p,), or array-like of shape (k, p), optional
            By default, all group means are zero.
        ddof : float, default=0
            The divisor of the covariances is ``count - ddof``: use 1 for those of :func:`numpy.cov` and pandas.

        Returns
        -------
        GroupMoments

        Examples
        --------
        >>> import numpy as np
        >>> from fairpca import FairPCA
        >>> from fairpca.moments import GroupMoments
        >>> covariances = {"a": np.diag([4.0, 1.0, 1.0]), "b": np.diag([1.0, 1.0, 3.0])}
        >>> moments = GroupMoments.from_covariances(covariances, counts={"a": 50, "b": 70}, ddof=1)
        >>> FairPCA(1).fit_moments(moments).group_losses_.round(2)
        array([1.18, 1.18])
        """
        given = {"covariances": covariances, "counts": counts} | ({} if means is None else {"means": means})
        labels = ordered_labels(covariances) if isinstance(covariances, Mapping) else tuple(range(len(covariances)))
        matrices, numbers, *rest = (in_order(name, value, labels) for name, value in given.items())
        if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2]:
            raise ValueError(f"covariances has shape {matrices.shape}; give one square matrix per group.")
        if numbers.shape != (len(labels),) or not (numbers > ddof).all():
            raise ValueError(f"counts={counts!r} must be one number per group, each larger than ddof={ddof!r}.")
        centres = rest[0] if rest else np.zeros(matrices.shape[:2])
        return cls(labels, numbers, centres, matrices * (numbers - ddof)[:, None, None]).check()

    def to_bytes(self) -> bytes:
        """The summary as bytes, which :meth:`from_bytes` reads elsewhere: between Spark tasks, or from site to site.

        Labels must be numbers, text, or tuples of them. There are 8 bytes per entry of the matrices, k p (p + 1) in
        all.

        Examples
        --------
        >>> import numpy as np
        >>> from fairpca.moments import GroupMoments, group_moments
        >>> X, groups = np.arange(12.0).reshape(6, 2) ** 2, ["a", "b"] * 3
        >>> sites = [group_moments(X[rows], sensitive_features=groups[rows]) for rows in (slice(4), slice(4, None))]
        >>> first, second = (GroupMoments.from_bytes(site.to_bytes()) for site in sites)
        >>> bool(np.allclose(first.merge(second).scatters, group_moments(X, sensitive_features=groups).scatters))
        True
        """
        labels = Packer({}).pack(self.labels, "labels")
        header = {"class": "GroupMoments", "format": _FORMAT, "version": _VERSION, "labels": labels}
        stream = io.BytesIO()
        write_archive(stream, header, {"counts": self.counts, "means": self.means, "scatters": self.scatters})
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> GroupMoments:
        """The summary that :meth:`to_bytes` wrote, also from a stranger: nothing in the bytes is executed.

        Raises ValueError unless they can be the moments of data, or if a later version wrote them.
        """
        try:
            header, arrays = read_archive(io.BytesIO(content))
            if not isinstance(header, dict) or header.get("format") != _FORMAT:
                raise ValueError("the header is missing")
            if header.get("version") == _VERSION:
                labels = Unpacker({}, {}).unpack(header["labels"])
                sums = [arrays.pop(name) for name in ("counts", "means", "scatters")]
                if arrays or not isinstance(labels, tuple) or any(array.dtype != np.float64 for array in sums):
                    raise ValueError("its parts are not those of moments")
                with np.errstate(all="ignore"):  # numbers may be absurd
                    return cls(labels, *sums).check()
        except DAMAGE as problem:
            detail = str(problem) or type(problem).__name__
            raise ValueError(f"content is not what GroupMoments.to_bytes writes, or it is damaged: {detail}") from None
        raise ValueError(
            f"content has format version {header['version']!r}; this fairpca reads version {_VERSION}. Update fairpca."
        )

    @property
    def moments(self) -> GroupMoments:
        return self

    @functools.cached_property
    def pooled_mean(self) -> np.ndarray:  # type: ignore[override]
        return self.shares @ self.means

    def pooled_covariance(self) -> np.ndarray:
        """``S``: covariance of all rows about the pooled mean, with divisor N."""
        offsets, covariance = self.means - self.pooled_mean, self.scatters.sum(axis=0)
        covariance /= self.total_count
        return add_outer(covariance, (offsets * self.shares[:, None]).T, offsets.T)

    def forms(self, basis: np.ndarray, center: str = "pooled") -> np.ndarray:
        offsets = self._offsets(center) @ basis
        within = basis.T @ (self.scatters @ basis) / self.counts[:, None, None]
        return within + offsets[:, :, None] * offsets[:, None, :]

    def check(self) -> GroupMoments:
        """Return self if these can be the moments of data; raise otherwise.

        Examples
        --------
        >>> import numpy as np
        >>> from fairpca.moments import GroupMoments
        >>> GroupMoments(("a", "b"), np.array([2.0, 0.0]), np.zeros((2, 1)), np.ones((2, 1, 1))).check()
        Traceback (most recent call last):
            ...
        ValueError: counts of the groups 'b' are not positive numbers; leave out groups without rows.
        """
        check_moments(self.labels, self.counts, self.means, self.scatters)
        return self

    def second_moments(self, center: str | np.ndarray = "pooled") -> np.ndarray:
        """``M_a``: second moment of each group about the pooled mean, its own mean, or a given point.

        Returns a new array of shape (k, p, p).
        """
        moments = self.scatters / self.counts[:, None, None]
        for moment, offset in zip(moments, self._offsets(center), strict=True):
            add_outer(moment, offset[:, None], offset[:, None])
        return moments

    def traces(self, center: str = "pooled") -> np.ndarray:
        offsets = self._offsets(center)
        return np.einsum("ajj->a", self.scatters) / self.counts + np.einsum("aj,aj->a", offsets, offsets)

    def _offsets(self, center: str | np.ndarray) -> np.ndarray:
        """The means relative to the pooled mean, to themselves, or to a given point."""
        if isinstance(center, np.ndarray):
            return self.means - center
        own = check_choice("center", center, ("pooled", "group")) == "group"
        return self.means - (self.means if own else self.pooled_mean)

    def pooled_variances(self) -> np.ndarray:
        """The diagonal of ``S``."""
        offsets = self.means - self.pooled_mean
        return np.einsum("ajj->j", self.scatters) / self.total_count + self.shares @ offsets**2

    def select(self, columns: np.ndarray | Sequence[int]) -> GroupMoments:
        """The moments of the given features, in the given order."""
        chosen = np.asarray(columns, dtype=np.intp)
        return GroupMoments(
            self.labels, self.counts, self.means[:, chosen], self.scatters[:, chosen[:, None], chosen[None, :]]
        )

    def sum_columns(self, parts: Sequence[Sequence[int]]) -> GroupMoments:
        """The moments of features that are sums of the given ones, such as the indicator of several levels."""
        if all(len(part) == 1 for part in parts):
            return self.select([part[0] for part in parts])
        combine = np.zeros((self.n_features, len(parts)))
        for j, part in enumerate(parts):
            combine[list(part), j] = 1.0
        return GroupMoments(self.labels, self.counts, self.means @ combine, combine.T @ self.scatters @ combine)

    def merge_by(self, codes: np.ndarray, labels: Sequence[Any]) -> GroupMoments:
        """Merge the groups with the same code into one with that label; negative codes leave a group out."""
        groups = list(zip(self.counts, self.means, self.scatters, strict=True))
        members = {label: np.flatnonzero(codes == code) for code, label in enumerate(labels)}
        return _merged({label: [groups[i] for i in chosen] for label, chosen in members.items() if len(chosen)})

    def standardised(self, offsets: np.ndarray, scales: np.ndarray) -> GroupMoments:
        """The moments of ``(x - offsets) / scales``, without another pass over the rows.

        Examples
        --------
        >>> import numpy as np
        >>> from fairpca.moments import group_moments
        >>> moments = group_moments(np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 9.0]]), sensitive_features=["a", "a", "b"])
        >>> scales = np.sqrt(moments.pooled_variances())
        >>> bool(np.allclose(moments.standardised(moments.pooled_mean, scales).pooled_variances(), 1.0))
        True
        """
        means = (self.means - offsets) / scales
        return GroupMoments(self.labels, self.counts, means, self.scatters / (scales[:, None] * scales))

    def merge(self, *others: GroupMoments) -> GroupMoments:
        """The summary of all rows together; a group need not occur in every part."""
        parts = (self, *others)
        for part in others:
            if part.n_features != self.n_features:
                raise ValueError(
                    f"Cannot merge moments of {self.n_features} and {part.n_features} features: the chunks "
                    "must have the same columns."
                )
        found: dict[Any, list[Sums]] = {}
        for part in parts:
            for label, *sums in zip(part.labels, part.counts, part.means, part.scatters, strict=True):
                found.setdefault(label, []).append(sums)
        return _merged({label: found[label] for label in ordered_labels(found)}) if found else self

    def columns_fixed_by_group(self) -> np.ndarray:
        return fixed_by_group(self.counts, self.means, np.einsum("ajj->j", self.scatters))


def fixed_by_group(counts: np.ndarray, means: np.ndarray, within: np.ndarray) -> np.ndarray:
    """Columns without variation ``within`` groups whose means differ between groups."""
    if len(counts) < 2:
        return np.zeros(0, dtype=np.intp)
    spread = np.ptp(means, axis=0)
    size = np.abs(means).max(axis=0)
    rounding = counts.sum() * ((1e-12 * spread) ** 2 + (1e-14 * size) ** 2)
    return np.flatnonzero((spread > 1e-9 * size) & (within <= rounding))


def _merged(parts: Mapping[Any, Sequence[Sums]]) -> GroupMoments:
    """From the parts of each group."""
    counts, means, scatters = zip(*map(_merge_one, parts.values()), strict=True)
    return GroupMoments(tuple(parts), np.array(counts), np.stack(means), np.stack(scatters))


def _merge_one(parts: Sequence[Sums]) -> Sums:
    """Combine the count, mean and scatter of one group from its parts (the update of Chan, Golub and LeVeque)."""
    if len(parts) == 1:
        return parts[0]
    counts = np.array([count for count, _, _ in parts])
    means = np.stack([mean for _, mean, _ in parts])
    total = counts.sum()
    # Averaging differences from one of the means keeps the precision that means far from zero would lose.
    mean = means[0] + (counts / total) @ (means - means[0])
    offsets = (means - mean) * np.sqrt(counts)[:, None]
    scatter = offsets.T @ offsets
    for _, _, part in parts:
        scatter += part
    return float(total), mean, scatter
