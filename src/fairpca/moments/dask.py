"""Group statistics of Dask arrays and data frames: one task a chunk, then a tree of merges.

:class:`DaskSample` is the counterpart of :class:`~fairpca.moments.GroupedSample` for the methods that compare whole
distributions: sums over chunks, or over pairs of chunks, of any function of their rows.

Every task is a pure function of its chunk, so the engine may repeat it elsewhere when a worker is lost. The rows
stay where they are; what travels is one (k, p, p) summary a chunk. Needs the extra ``fairpca[dask]``; Dask is only
imported once a Dask collection has been given.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fairpca._validation import Groups, check_groups, check_plain_matrix, check_sample_weight, is_dask
from fairpca.linalg import single_blas_thread
from fairpca.moments._accumulate import accumulate
from fairpca.moments._group_moments import GroupMoments
from fairpca.moments._grouped_sample import GroupedSample
from fairpca.moments._sources import merge_moments

__all__ = [
    "GATHERED_NUMBERS",
    "GATHERED_ROWS",
    "DaskSample",
    "DaskSource",
    "as_dask_features",
    "distinct_values",
    "is_dask",
    "moments_from_dask",
    "project_lazily",
    "sample_of",
]

#: Summaries merged by one task: wide enough for few tasks, narrow enough to spread the work.
_FAN_IN = 8
#: Chunks that one task compares with another chunk.
_PARTNERS = 16
#: Never more rows than this, nor more numbers, are brought together.
GATHERED_ROWS, GATHERED_NUMBERS = 64_000, 20_000_000


def as_dask_features(X: Any, sensitive_features: Any) -> tuple[Any, Any]:
    """Split off the sensitive column, or columns, where they are given by name; what is left must be numbers."""
    if sensitive_features is None:
        check_groups(None, 0)  # raises, in the words used everywhere
    _check_dimensions(X)
    if hasattr(X, "columns") and _is_by_name(sensitive_features):
        X, sensitive_features = _split_off(X, sensitive_features)
    _check_numbers(X)
    return X, sensitive_features


def _is_by_name(sensitive_features: Any) -> bool:
    """A name, or several; labels in memory cannot be meant, since no one knows where the chunks of a frame begin."""
    if isinstance(sensitive_features, list | tuple):
        return bool(sensitive_features) and all(map(_is_name, sensitive_features))
    return _is_name(sensitive_features)


def _is_name(value: Any) -> bool:
    return isinstance(value, str | numbers.Number)


def _split_off(X: Any, sensitive_features: Any) -> tuple[Any, Any]:
    several = isinstance(sensitive_features, list | tuple)
    names = list(sensitive_features) if several else [sensitive_features]
    for name in names:
        if name not in X.columns:
            raise ValueError(
                f"sensitive_features={name!r} is no column of X; name its columns, or give a collection cut like X."
            )
    return X.drop(columns=names), X[names if several else names[0]]


def _check_dimensions(X: Any) -> None:
    if getattr(X, "ndim", None) != 2:
        found = f" of shape {X.shape}" if hasattr(X, "chunks") else ""
        raise ValueError(
            "X must be a Dask data frame or a Dask array of two dimensions, rows and features; got a Dask "
            f"{type(X).__name__}{found}: use X.to_frame() or X.reshape(-1, 1) if it is a single feature."
        )


def _check_numbers(X: Any) -> None:
    """Told from the types alone, before a placeholder row of text reaches a conversion that cannot name the column."""
    if not hasattr(X, "columns"):
        if X.dtype.kind in "SUMm":
            raise ValueError(f"X holds {X.dtype}, not numbers: encode it as numbers first.")
        return
    for name, dtype in X.dtypes.items():
        kind = (dtype.categories.dtype if hasattr(dtype, "categories") else dtype).kind
        if kind not in "biuf":
            raise ValueError(
                f"Column {name!r} of X holds {dtype}, not numbers: drop it, encode it as numbers first, or name it in "
                "sensitive_features if it is the group."
            )


def sample_of(X: Any) -> Any:
    """Two rows of the right columns and types, for checks that need no data."""
    _check_dimensions(X)
    return X._meta_nonempty if hasattr(X, "_meta_nonempty") else np.zeros((2, X.shape[1]), dtype=X.dtype)


def moments_from_dask(X: Any, sensitive_features: Any, sample_weight: Any = None) -> GroupMoments:
    """The moments of all chunks, reduced by whichever scheduler is active.

    Parameters
    ----------
    X : dask array or data frame
    sensitive_features : dask array, series or data frame, array-like, dict of such, or names of columns of X
        Chunks must hold the same rows as those of X. What is in memory needs a Dask array X of known chunks.
    sample_weight : dask array or series, array-like, or one number for all rows, optional
    """
    import dask

    X, sensitive_features = as_dask_features(X, sensitive_features)
    n_features = _n_features(X)
    chunk, merge = dask.delayed(_chunk_moments, pure=True), dask.delayed(merge_moments, pure=True)
    chunks = _chunks(X, sensitive_features=sensitive_features, sample_weight=sample_weight)
    moments = _compute(_tree(merge, [chunk(*each, n_features) for each in chunks]))[0]
    if not moments.labels:
        raise ValueError("X has no rows (of positive weight).")
    if sample_weight is not None:
        check_sample_weight([moments.total_count], 1)  # a chunk may weigh little, all of them may not
    return moments


def project_lazily(X: Any, components: np.ndarray, mean: np.ndarray) -> Any:
    """The scores as a Dask array with the chunks of X."""
    rows = _whole_rows(X if hasattr(X, "chunks") else X.to_dask_array())
    dtype = rows.dtype if rows.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    return rows.map_blocks(
        _scores,
        components.T.astype(dtype),
        (mean @ components.T).astype(dtype),
        dtype=dtype,
        chunks=(rows.chunks[0], (len(components),)),
        meta=np.empty((0, len(components)), dtype=dtype),
    )


def distinct_values(X: Any, values: Any, name: str) -> np.ndarray:
    """The different values of a column cut like X, such as a label."""
    import dask

    unique = dask.delayed(_unique, pure=False)
    return np.unique(np.concatenate(_compute(*[unique(part) for _, part in _chunks(X, **{name: values})])))


class DaskSource:
    """Rows of a Dask collection, visited chunk by chunk where they are: a :class:`~fairpca.moments.RowSource`."""

    owns_threads = False

    def __init__(self, X: Any, sensitive_features: Any, sample_weight: Any = None) -> None:
        X, sensitive_features = as_dask_features(X, sensitive_features)
        self.n_features = _n_features(X)
        self._chunks = _chunks(X, sensitive_features=sensitive_features, sample_weight=sample_weight)

    def map_reduce(self, function: Callable[..., Any], merge: Callable[[Sequence[Any]], Any]) -> Any:
        """Values of chunks without rows are left out."""
        import dask

        apply, combine = dask.delayed(_apply_to_chunk, pure=False), dask.delayed(_merge_present, pure=False)
        values = [apply(function, number, *chunk) for number, chunk in enumerate(self._chunks)]
        found = _compute(_tree(lambda parts: combine(merge, parts), values))[0]
        if found is None:
            raise ValueError("X has no rows (of positive weight).")
        return found


def _apply_to_chunk(
    function: Callable[..., Any], number: int, X: Any, sensitive_features: Any, sample_weight: Any
) -> Any:
    checked = _checked_chunk(X, sensitive_features, sample_weight)
    return None if checked is None else function(number, *checked)


def _merge_present(merge: Callable[[Sequence[Any]], Any], parts: Sequence[Any]) -> Any:
    present = [part for part in parts if part is not None]
    return present[0] if len(present) == 1 else merge(present) if present else None


@dataclass(frozen=True, eq=False)
class _Plan:
    """How a chunk becomes a :class:`GroupedSample`: the cells of all chunks, their weights, and the common centre."""

    labels: tuple[Any, ...]
    cells: Callable[[Groups, Any], tuple[Groups, np.ndarray]]
    centre: np.ndarray
    totals: np.ndarray

    def part(self, X: Any, sensitive_features: Any, sample_weight: Any, y: Any) -> GroupedSample:
        """Rows sorted by cell; weights count in all chunks together, so they do not sum to one here."""
        k, n = len(self.labels), X.shape[0]
        if n == 0:
            return GroupedSample(self.labels, np.zeros((0, len(self.centre))), np.zeros(k + 1, np.intp), np.zeros(0))
        X = check_plain_matrix(X)
        cells, weights = self.cells(check_groups(sensitive_features, n), y)
        if sample_weight is not None:
            weights = weights * np.asarray(sample_weight, dtype=np.float64)
        code_of = {label: code for code, label in enumerate(self.labels)}
        codes = np.array([code_of.get(label, k) for label in cells.labels])[cells.codes]
        kept = np.flatnonzero((weights > 0) & (codes < k))
        order = kept[np.argsort(codes[kept], kind="stable")]
        rows = X[order].toarray() if sparse.issparse(X) else X[order]
        rows = np.asarray(rows, dtype=np.float64) - self.centre
        counts = np.bincount(codes[order], minlength=k)
        return GroupedSample(self.labels, rows, np.r_[0, np.cumsum(counts)], weights[order] / self.totals[codes[order]])


class DaskSample:
    """Rows of every chunk sorted by group, where they are: what :class:`GroupedSample` is to an array.

    Nothing but sums and small random samples ever leave the chunks. On a cluster the sorted chunks are kept in the
    workers' memory; other schedulers prepare them again for every sum, so that memory holds a few chunks only.

    Attributes
    ----------
    labels : tuple of length k
    counts : ndarray of shape (k,)
        Rows of each group.
    weight_squares : ndarray of shape (k,)
        Sums of the squared weights, where the weights of each group sum to one over all chunks.

    Examples
    --------
    >>> import dask.array as da, numpy as np
    >>> from fairpca.moments.dask import DaskSample
    >>> X, groups = da.from_array(np.arange(8.0).reshape(4, 2), chunks=(2, 2)), np.array(["a", "b", "b", "b"])
    >>> sample = DaskSample.from_dask(X, groups, labels=("a", "b"), centre=np.zeros(2))
    >>> sample.counts
    array([1, 3])
    >>> sample.sum_over_parts(lambda part: part.weights @ part.rows)  # both group means together
    array([4., 6.])
    """

    def __init__(self, parts: list[Any], plan: _Plan, sizes: np.ndarray, squares: np.ndarray) -> None:
        self._parts, self._plan, self._sizes = parts, plan, sizes
        self.labels, self.counts, self.weight_squares = plan.labels, sizes.sum(axis=0), squares

    @classmethod
    def from_dask(
        cls,
        X: Any,
        sensitive_features: Any,
        sample_weight: Any = None,
        y: Any = None,
        *,
        labels: tuple[Any, ...],
        centre: np.ndarray,
        cells: Callable[[Groups, Any], tuple[Groups, np.ndarray]] | None = None,
    ) -> DaskSample:
        """Count rows and weights of each group; ``cells`` may divide a chunk's groups further, or leave rows out."""
        import dask

        divide = cells or _as_they_are
        chunks = _chunks(X, sensitive_features=sensitive_features, sample_weight=sample_weight, y=y)
        plan = _Plan(tuple(labels), divide, np.zeros(_n_features(X)), np.ones(len(labels)))
        measure = dask.delayed(_sizes_and_weights, pure=False)
        sums = np.array(_compute(*[measure(plan, *chunk) for chunk in chunks]))
        present = np.flatnonzero(sums[:, 0].sum(axis=0) > 0)
        sizes, weights, squares = np.moveaxis(sums[:, :, present], 1, 0)
        totals = weights.sum(axis=0)
        plan = _Plan(tuple(labels[code] for code in present), divide, centre, totals)
        prepare = dask.delayed(_prepare, pure=False)
        parts = [prepare(plan, *chunk) for chunk in chunks]
        if _on_cluster():
            parts = list(dask.persist(*parts))
        return cls(parts, plan, sizes.astype(np.int64), squares.sum(axis=0) / totals**2)

    @property
    def n_rows(self) -> int:
        return int(self.counts.sum())

    @property
    def largest_gathered(self) -> int:
        """Rows that may be brought together."""
        return min(GATHERED_ROWS, GATHERED_NUMBERS // len(self._plan.centre))

    def sum_over_parts(self, function: Callable[..., np.ndarray], *arguments: Any) -> np.ndarray:
        """``sum_c function(rows of chunk c, *arguments)``; the function must be picklable on a cluster."""
        import dask

        apply, add = dask.delayed(function, pure=False), dask.delayed(_add, pure=False)
        return _compute(_tree(add, [apply(part, *arguments) for part in self._parts]))[0]

    def sum_over_pairs(self, basis: np.ndarray, function: Callable[..., np.ndarray], *arguments: Any) -> np.ndarray:
        """``sum_{c, c'} function(scores of chunk c, of chunk c', *arguments)``, where exchanging both transposes.

        A task sees the scores (not the rows) of one chunk and of a few others.
        """
        import dask

        project, compare = dask.delayed(_projected, pure=False), dask.delayed(_sum_of_pairs, pure=False)
        scores = [project(part, basis) for part in self._parts]
        sums = [
            compare(function, scores[i], scores[j : j + _PARTNERS], arguments, j == i)
            for i in range(len(scores))
            for j in range(i, len(scores), _PARTNERS)
        ]
        return _compute(_tree(dask.delayed(_add, pure=False), sums))[0]

    def subsample(self, size: int, rng: np.random.Generator) -> GroupedSample | DaskSample:
        """About ``size`` rows, as :meth:`GroupedSample.subsample` draws them; all chunks, where those are too many."""
        if min(size, self.n_rows) > self.largest_gathered:
            return self
        shares = self.counts / self.n_rows
        wanted = np.minimum(self.counts, np.maximum(50, np.rint(size * shares).astype(np.int64)))
        picked = [_divide(rng, sizes, count) for sizes, count in zip(self._sizes.T, wanted, strict=True)]
        parts = self._pick(np.stack(picked, axis=1), rng)
        rows = np.concatenate([part.rows[_cell(part, a)] for a in range(len(self.labels)) for part in parts])
        weights = [np.concatenate([part.weights[_cell(part, a)] for part in parts]) for a in range(len(self.labels))]
        return GroupedSample(
            self.labels, rows, np.r_[0, np.cumsum(wanted)], np.concatenate([part / part.sum() for part in weights])
        )

    def scores_at_random(
        self, basis: np.ndarray, size: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Scores of rows drawn uniformly from all groups together, and their weights (None where all are 1)."""
        if size >= self.n_rows:
            picked = self._sizes
        else:
            flat = _divide(rng, self._sizes.ravel(), size)
            picked = flat.reshape(self._sizes.shape)
        parts = self._pick(picked, rng, basis)
        weights = np.concatenate([part.weights * np.repeat(self._plan.totals, part.counts) for part in parts])
        return np.concatenate([part.rows for part in parts]), None if np.allclose(weights, 1.0) else weights

    def _pick(
        self, wanted: np.ndarray, rng: np.random.Generator, basis: np.ndarray | None = None
    ) -> list[GroupedSample]:
        """So many rows of each chunk and group."""
        import dask

        pick = dask.delayed(_pick_rows, pure=False)
        seeds = rng.integers(2**63, size=len(self._parts)).tolist()
        tasks = [pick(part, count, seed, basis) for part, count, seed in zip(self._parts, wanted, seeds, strict=True)]
        return list(_compute(*tasks))


def _compute(*tasks: Any) -> tuple:
    """Run tasks; where they run on threads of this process, those replace the threads of the linear algebra."""
    import dask

    with single_blas_thread():
        return dask.compute(*tasks)


def _as_they_are(groups: Groups, y: Any) -> tuple[Groups, np.ndarray]:
    return groups, np.ones(len(groups.codes))


def _prepare(plan: _Plan, *chunk: Any) -> GroupedSample:
    return plan.part(*chunk)


def _sizes_and_weights(plan: _Plan, *chunk: Any) -> np.ndarray:
    """Rows, weights and squared weights of each group, of shape (3, k)."""
    part = plan.part(*chunk)
    codes, k = np.repeat(np.arange(len(plan.labels)), part.counts), len(plan.labels)
    return np.stack(
        [np.bincount(codes, power, minlength=k) for power in (part.weights**0, part.weights, part.weights**2)]
    )


def _projected(part: GroupedSample, basis: np.ndarray) -> GroupedSample:
    return GroupedSample(part.labels, part.rows @ basis, part.starts, part.weights)


def _sum_of_pairs(
    function: Callable[..., np.ndarray],
    first: GroupedSample,
    others: Sequence[GroupedSample],
    arguments: tuple,
    with_itself: bool,
) -> np.ndarray:
    total: Any = 0.0
    for position, other in enumerate(others):
        value = function(first, other, *arguments)
        total = total + (value if with_itself and position == 0 else value + value.T)
    return total


def _pick_rows(part: GroupedSample, wanted: np.ndarray, seed: int, basis: np.ndarray | None) -> GroupedSample:
    rng = np.random.default_rng(seed)
    chosen = np.concatenate(
        [
            start + np.sort(rng.choice(count, int(size), replace=False))
            for start, count, size in zip(part.starts, part.counts, wanted, strict=False)
        ]
    ).astype(np.intp)
    rows = part.rows[chosen] if basis is None else part.rows[chosen] @ basis
    return GroupedSample(part.labels, rows, np.r_[0, np.cumsum(wanted)], part.weights[chosen])


def _divide(rng: np.random.Generator, sizes: np.ndarray, count: int) -> np.ndarray:
    """How many of ``count`` rows, drawn without replacement, lie in each of several sets."""
    return rng.multivariate_hypergeometric(sizes, int(count), method="marginals")


def _cell(part: GroupedSample, a: int) -> slice:
    return slice(part.starts[a], part.starts[a + 1])


def _unique(values: Any) -> np.ndarray:
    return np.unique(np.asarray(values))


def _add(values: Sequence[np.ndarray]) -> np.ndarray:
    return np.add.reduce(values)


def _tree(merge: Callable, level: list[Any]) -> Any:
    """One value from many, a few at a time."""
    while len(level) > 1:
        level = [merge(level[i : i + _FAN_IN]) for i in range(0, len(level), _FAN_IN)]
    return level[0]


def _on_cluster() -> bool:
    import dask.base

    scheduler = dask.base.get_scheduler()
    return type(getattr(scheduler, "__self__", None)).__module__.split(".")[0] == "distributed"


def _n_features(X: Any) -> int:
    return len(X.columns) if hasattr(X, "columns") else X.shape[1]


def _chunks(X: Any, **columns: Any) -> list[tuple]:
    """Each chunk of X with its pieces of the columns; what is None, or one weight for all rows, stays so."""
    rows = _whole_rows(X)
    parts = list(rows.to_delayed().ravel()) if hasattr(rows, "chunks") else rows.to_delayed()
    pieces = [
        [values] * len(parts) if _is_for_all_rows(name, values) else _aligned(name, values, rows, len(parts))
        for name, values in columns.items()
    ]
    return list(zip(parts, *pieces, strict=True))


def _is_for_all_rows(name: str, values: Any) -> bool:
    return values is None or (name == "sample_weight" and isinstance(values, numbers.Number))


def _scores(rows: Any, basis: np.ndarray, offset: np.ndarray) -> np.ndarray:
    rows = rows if rows.dtype == basis.dtype else rows.astype(basis.dtype)
    return rows @ basis - offset


def _whole_rows(X: Any) -> Any:
    return X.rechunk({1: -1}) if hasattr(X, "chunks") and X.numblocks[1] > 1 else X


def _aligned(name: str, values: Any, X: Any, n_parts: int) -> list[Any]:
    """One piece of ``values`` for each chunk of X."""
    if isinstance(values, dict) and any(map(is_dask, values.values())):
        columns = {key: _aligned(f"{name}[{key!r}]", column, X, n_parts) for key, column in values.items()}
        return [{key: pieces[part] for key, pieces in columns.items()} for part in range(n_parts)]
    if not is_dask(values):
        return _slices(name, values, X)
    if hasattr(values, "chunks"):
        known = hasattr(X, "chunks") and not np.isnan(np.sum(X.chunks[0])) and not np.isnan(np.sum(values.chunks[0]))
        if known and values.shape[0] == X.shape[0]:
            values = values.rechunk({0: X.chunks[0], **({1: -1} if values.ndim == 2 else {})})
        parts = list(values.to_delayed().ravel())
    else:
        parts = values.to_delayed()
    if len(parts) != n_parts:
        raise ValueError(
            f"{name} has {len(parts)} chunks, but X has {n_parts}: they must hold the same rows; rechunk or "
            "repartition one of them."
        )
    return parts


def _slices(name: str, values: Any, X: Any) -> list[Any]:
    """Cut what is in memory as X is cut, where the lengths of its chunks are known; it is checked as a whole."""
    if isinstance(values, str):
        _refuse_name(name, values)
    if not hasattr(X, "chunks") or np.isnan(np.sum(X.chunks[0])):
        by_name = ", or the name of a column," if name == "sensitive_features" and hasattr(X, "columns") else ""
        raise ValueError(
            f"{name} must be a Dask collection cut like X{by_name} because the lengths of its chunks are not known."
        )
    ends = np.cumsum(X.chunks[0])
    rows = [slice(end - size, end) for end, size in zip(ends.tolist(), X.chunks[0], strict=True)]
    if name == "sensitive_features":
        groups = check_groups(values, X.shape[0])
        return [Groups(groups.labels, groups.codes[part]) for part in rows]
    values = check_sample_weight(values, X.shape[0]) if name == "sample_weight" else np.asarray(values)
    if values.ndim == 0 or len(values) != X.shape[0]:
        raise ValueError(f"{name} has shape {values.shape}, but X has {X.shape[0]} rows: give one entry a row.")
    return [values[part] for part in rows]


def _refuse_name(name: str, column: str) -> None:
    if name == "sensitive_features":
        check_groups(column, 0)  # raises, in the words used everywhere
    raise TypeError(
        f"{name}={column!r} is a single string, but only sensitive_features may be the name of a column: give the "
        f"column itself, for example X[{column!r}], and drop it from X."
    )


def _chunk_moments(X: Any, sensitive_features: Any, sample_weight: Any, n_features: int) -> GroupMoments:
    checked = _checked_chunk(X, sensitive_features, sample_weight)
    if checked is None:
        return GroupMoments.empty(n_features)
    return accumulate(*checked, parallel=False)  # the scheduler has its own threads


def _checked_chunk(X: Any, sensitive_features: Any, sample_weight: Any) -> tuple[Any, Groups, np.ndarray | None] | None:
    """Rows, groups and weights of a chunk, or None if it has no rows, or no weight."""
    if X.shape[0] == 0:
        return None
    X = check_plain_matrix(X, finite=False)
    groups = check_groups(sensitive_features, X.shape[0])
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights is not None:
        if isinstance(sample_weight, numbers.Number):
            weights = np.full(X.shape[0], weights)
        if weights.shape != (X.shape[0],) or not (np.isfinite(weights) & (weights >= 0)).all():
            check_sample_weight(weights, X.shape[0])  # raises, in the words used everywhere
        if not weights.any():
            return None  # only all chunks together need a positive weight
    return X, groups, weights
