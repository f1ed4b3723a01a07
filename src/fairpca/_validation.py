"""Validation of X, sensitive_features, sample_weight and parameters, and random seeds and generators.

Groups are returned as :class:`Groups`: the labels that occur, in a fixed order, and one integer code per row. The rest
of the library never uses raw labels.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite, check_array, check_random_state
from sklearn.utils.validation import validate_data

from fairpca._containers import as_array
from fairpca._frames import (
    check_not_lazy,
    drop_columns,
    is_categorical,
    is_frame,
    label_columns,
    split_named_columns,
    texts_by_column,
)
from fairpca._labels import is_missing, plain_labels, quoted, raise_missing

__all__ = [
    "Groups",
    "check_choice",
    "check_finite",
    "check_flag",
    "check_grouped_rows",
    "check_groups",
    "check_groups_given",
    "check_matrix",
    "check_n_components",
    "check_number",
    "check_plain_matrix",
    "check_sample_weight",
    "check_several_groups",
    "check_share",
    "check_wanted_components",
    "checks_keywords",
    "code_type",
    "generator",
    "groups_from_codes",
    "intersect_groups",
    "is_dask",
    "legacy_generator",
    "ordered_labels",
    "remember_sensitive_columns",
    "rng_for",
    "seed_from",
    "split_off_groups",
    "warn_of_memory",
    "warn_user",
    "without_sensitive_columns",
]

#: Integer labels within this span are encoded by a table look-up instead of a sort.
_TABLE_SPAN = 65_536
#: More groups than this share of the rows means that the column is a measurement, not a group.
_MAX_GROUP_SHARE = 0.5
_FEW_GROUPS = 10
_FEW_TEXTS = 4


@dataclass(frozen=True)
class Groups:
    """Encoded group membership: row ``i`` belongs to ``labels[codes[i]]``."""

    labels: tuple[Any, ...]
    codes: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)


def ordered_labels(labels: Iterable[Any]) -> tuple[Any, ...]:
    """Sort labels of any mixture of types, always in the same order."""
    labels = tuple(labels)
    try:
        return tuple(sorted(labels))
    except TypeError:
        return tuple(sorted(labels, key=lambda label: (type(label).__name__, str(label))))


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection; does not import Dask."""
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(X, "compute")


def check_matrix(estimator: Any, X: Any, *, reset: bool, min_samples: int = 1, finite: bool = True) -> Any:
    """Return X as a dense or CSR matrix of float64 or float32, remembered by ``estimator`` when ``reset``.

    ``finite=False`` leaves missing and infinite values to the caller (:func:`check_finite`). Rows of a fitted estimator
    may contain its sensitive columns.
    """
    X = X if reset else without_sensitive_columns(estimator, X)
    check = functools.partial(validate_data, estimator, reset=reset)
    return check_plain_matrix(X, min_samples=min_samples, finite=finite, check=check)


def check_plain_matrix(
    X: Any, *, min_samples: int = 1, finite: bool = True, check: Callable[..., Any] = check_array
) -> Any:
    """The same check where there is no estimator to remember feature names."""
    _check_eager(X)
    with _with_remedy(X):
        return check(
            as_array(X),
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_min_samples=min_samples,
            ensure_all_finite=finite,
        )


@contextlib.contextmanager
def _with_remedy(X: Any) -> Iterator[None]:
    """Add to the errors of scikit-learn about values of X what to do, and the columns where texts are."""
    try:
        yield
    except ValueError as error:
        problem = str(error).partition("\n")[0]
        if "could not convert string to float" in problem:
            problem = f"X has text where numbers are needed: {texts_by_column(X)}."
            remedy = "Encode it first, for example with OneHotEncoder in a ColumnTransformer, or leave it out; "
            remedy += "name a column of groups in sensitive_features."
        elif "contains NaN" in problem or "contains infinity" in problem:
            remedy = "Drop these rows, or fill the gaps first, for example with SimpleImputer in a pipeline."
        else:
            raise
        raise ValueError(f"{problem} {remedy}") from None


def _check_eager(X: Any) -> None:
    if type(X).__name__ == "AnnData":
        raise TypeError(
            "X is an AnnData; use fairpca.anndata.pca(adata, groupby=...), which stores scores as scanpy does."
        )
    if not isinstance(X, np.ndarray):
        check_not_lazy("X", X)


def without_sensitive_columns(estimator: Any, X: Any) -> Any:
    """A frame without the columns that the fit of ``estimator`` took as groups; anything else is returned unchanged."""
    return drop_columns(X, getattr(estimator, "sensitive_feature_names_in_", ()))


def split_off_groups(estimator: Any, X: Any, sensitive_features: Any, *, reset: bool = True) -> tuple[Any, Any]:
    """Separate groups that are given as names of columns of a frame; ``estimator`` remembers the names if ``reset``."""
    _check_eager(X)
    check_groups_given(sensitive_features, X)
    names: list[Any] = []
    if hasattr(X, "columns") and is_frame(X):
        X, sensitive_features, names = split_named_columns(X, sensitive_features)
    if estimator is not None and reset:
        remember_sensitive_columns(estimator, names)
    return X, sensitive_features


def remember_sensitive_columns(estimator: Any, names: list[Any]) -> None:
    """Set ``sensitive_feature_names_in_``, with which ``transform`` accepts frames that contain these columns."""
    if names:
        estimator.sensitive_feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(estimator, "sensitive_feature_names_in_"):
        del estimator.sensitive_feature_names_in_


def check_grouped_rows(
    estimator: Any, X: Any, sensitive_features: Any, sample_weight: Any = None, *, finite: bool = True
) -> tuple[Any, Groups, np.ndarray | None]:
    """Check rows, groups and weights; the groups may be columns of a frame, which are then not features."""
    X, sensitive_features = split_off_groups(estimator, X, sensitive_features)
    if estimator is None:
        X = check_plain_matrix(X, finite=finite)
    else:
        X = check_matrix(estimator, X, reset=True, min_samples=2, finite=finite)
    return X, check_groups(sensitive_features, X.shape[0]), check_sample_weight(sample_weight, X.shape[0])


def check_finite(X: Any) -> None:
    """Raise an error for missing and infinite values."""
    with _with_remedy(X):
        assert_all_finite(X.data if sparse.issparse(X) else X, input_name="X")


def check_n_components(n_components: Any, n_features: int | None = None) -> int:
    """Return ``n_components`` as an int in 1..n_features; the upper limit is not checked before X is read."""
    if isinstance(n_components, bool) or not isinstance(n_components, int | np.integer):
        raise TypeError(f"n_components must be an integer, got {n_components!r}.")
    if n_components < 1 or (n_features is not None and n_components > n_features):
        number = "" if n_features is None else f", {n_features}"
        raise ValueError(f"n_components={n_components} must lie between 1 and the number of features{number}.")
    return int(n_components)


def check_wanted_components(n_components: Any) -> None:
    """Raise unless ``n_components`` is a number of components, None for all, or a share of the variance to keep."""
    if n_components is None or (isinstance(n_components, float) and 0 < n_components < 1):
        return
    if isinstance(n_components, bool) or not isinstance(n_components, int | np.integer):
        raise (ValueError if isinstance(n_components, float) else TypeError)(
            f"n_components must be an integer, a share of the variance between 0 and 1, or None for all components; "
            f"got {n_components!r}."
        )
    check_n_components(n_components)


def check_number(name: str, value: Any, *, at_least: float, integer: bool = False) -> Any:
    """Return a finite number that is large enough."""
    kinds = (int, np.integer) if integer else (int, float, np.integer, np.floating)
    wanted = f"{'an integer' if integer else 'a number'} of at least {at_least:g}"
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise TypeError(f"{name} must be {wanted}, got {value!r}.")
    if not at_least <= value < np.inf:
        raise ValueError(f"{name} must be {wanted}, got {value!r}.")
    return value


def check_share(name: str, value: Any, example: float) -> float:
    """Return a number strictly between 0 and 1."""
    if not 0 < check_number(name, value, at_least=0.0) < 1:
        raise ValueError(f"{name}={value!r} must lie between 0 and 1, for example {example:g}.")
    return float(value)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``choices``."""
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}={value!r} is unknown; choose one of {', '.join(map(repr, choices))}.")
    return value


def check_flag(name: str, value: Any) -> bool:
    """Return a boolean."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def check_sample_weight(sample_weight: Any, n_samples: int, *, part: bool = False) -> np.ndarray | None:
    """Return weights that count like repeated rows (float64, finite, not negative), or None.

    With ``part=True``, for a part of the rows, the sum of the weights is not checked; it may be 0.
    """
    if sample_weight is None:
        return None
    check_not_lazy("sample_weight", sample_weight)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_samples,):
        raise ValueError(f"sample_weight has shape {weights.shape}, but X has {n_samples} rows; pass one per row.")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight must be finite and not negative; drop or correct the other rows.")
    if part:
        return weights
    if not weights.any():
        raise ValueError("sample_weight is zero for every row; at least two rows need a positive weight.")
    if weights.sum() <= 1 + 1e-9:
        raise ValueError(
            f"sample_weight sums to {weights.sum():g}. Weights count like repeated rows: scale them so that "
            "they sum to the number of rows (or of people) they stand for."
        )
    return weights


def checks_keywords(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method, so that a wrong argument names the user's class, and what was probably meant."""
    parameters = list(inspect.signature(method).parameters.values())[1:]
    known = [one.name for one in parameters]
    n_positional = sum(one.kind is not one.KEYWORD_ONLY for one in parameters)

    @functools.wraps(method)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) > n_positional:
            raise TypeError(
                f"{type(self).__name__}.{method.__name__}() takes {' and '.join(known[:n_positional])} by position; "
                f"pass {', '.join(f'{name}=...' for name in known[n_positional:])} by keyword."
            )
        for name in kwargs.keys() - set(known):
            meant = difflib.get_close_matches(name, known, 1) or ["sensitive_features"]
            raise TypeError(
                f"{type(self).__name__}.{method.__name__}() got an unexpected keyword argument {name!r}; did you mean "
                f"{meant[0]}? It takes {', '.join(known)}."
            )
        return method(self, *args, **kwargs)

    return checked


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called fairpca, directly or through scikit-learn."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("fairpca", "sklearn"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def free_memory() -> float:
    """Bytes that can be used without swapping; infinite where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return np.inf


def warn_of_memory(n_numbers: float, what: str, remedy: str) -> None:
    """Warn before more than a quarter of the free memory is filled with numbers in double precision."""
    n_bytes, free = 8.0 * n_numbers, free_memory()
    if n_bytes > 0.25 * free:
        warn_user(f"{what} will take {n_bytes / 1e9:.2g} GB of the {free / 1e9:.2g} GB of free memory; {remedy}.")


def check_groups_given(sensitive_features: Any, X: Any = None) -> None:
    """Raise an error for what is clearly neither groups nor the name of a column; runs before X is validated."""
    if sensitive_features is None:
        raise ValueError(
            "sensitive_features is required: pass the group of each row, for example "
            "fit(X, sensitive_features=df['sex']). Without groups, use sklearn.decomposition.PCA."
        )
    if isinstance(sensitive_features, str | bytes) and not (hasattr(X, "columns") and is_frame(X)):
        raise TypeError(
            f"sensitive_features={sensitive_features!r} is the name of a column, but X is an array without names (in a "
            "pipeline, the previous step returned one): pass the column itself, for example "
            f"df[{sensitive_features!r}], or keep the names with set_output(transform='pandas')."
        )


def check_groups(sensitive_features: Any, n_samples: int) -> Groups:
    """Encode ``sensitive_features``: one column of labels, or several whose intersections are the groups.

    Groups that are already encoded are returned unchanged.
    """
    check_groups_given(sensitive_features)
    sensitive_features = as_array(sensitive_features)
    if isinstance(sensitive_features, Groups):
        return sensitive_features
    if isinstance(sensitive_features, np.ndarray) and sensitive_features.ndim == 1:
        columns = [sensitive_features]
    else:
        columns = label_columns(sensitive_features)
    for column in columns:
        if len(column) != n_samples:
            raise ValueError(
                f"sensitive_features has {len(column)} rows, but X has {n_samples}: they must describe the same rows."
            )
    encoded = [_encode(column) for column in columns]
    return encoded[0] if len(encoded) == 1 else intersect_groups(encoded)


def check_several_groups(labels: Iterable[Any], n_samples: float) -> None:
    """Raise an error for a single group, which is trivially balanced, and for columns that are not groups."""
    labels = tuple(labels)
    if len(labels) > max(_FEW_GROUPS, _MAX_GROUP_SHARE * n_samples):
        raise ValueError(
            f"sensitive_features has {len(labels)} different values in {n_samples:g} rows; that looks like a "
            "measurement rather than groups. Bin it first, for example with numpy.digitize or pandas.cut, or pass it "
            "to ParityPCA or LeacePCA as continuous."
        )
    if len(labels) < 2:
        raise ValueError(
            f"sensitive_features contains a single group, {quoted(labels[0])}; at least two are needed. "
            "With one group, use sklearn.decomposition.PCA."
        )


def _encode(column: Any) -> Groups:
    """Labels and codes of one column, by the fastest method for its type."""
    if not isinstance(column, np.ndarray) and is_categorical(column):
        return _encode_categorical(column)
    array = np.asarray(column)
    if array.dtype.kind == "b":
        return groups_from_codes(array.astype(np.intp), (False, True))
    if array.dtype.kind in "iu" and array.size:
        return _encode_integers(array)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise_missing()
    if array.dtype.kind == "f" and (array == np.rint(array)).all() and np.abs(array).max(initial=0) < 2**53:
        return _encode_integers(array.astype(np.int64))  # 0.0 and 1.0 are the labels 0 and 1
    if array.dtype.kind in "mM":
        return _encode_times(array)
    return _encode_by_hashing(array)


def _encode_times(array: np.ndarray) -> Groups:
    if np.isnat(array).any():
        raise_missing()
    distinct, codes = np.unique(array, return_inverse=True)
    return Groups(tuple(plain_labels(distinct)), codes.reshape(-1).astype(code_type(len(distinct))))


def _encode_integers(array: np.ndarray) -> Groups:
    low, high = int(array.min()), int(array.max())
    if high - low >= _TABLE_SPAN:
        values, codes = np.unique(array, return_inverse=True)
        return Groups(tuple(values.tolist()), codes.reshape(-1))
    # Signed types may be too narrow for a difference: 127 - (-128) is not an int8.
    wide = array.astype(np.int64, copy=False) if array.dtype.kind == "i" else array
    return groups_from_codes((wide - wide.dtype.type(low)).astype(np.intp), range(low, high + 1))


def _encode_few_texts(array: np.ndarray) -> Groups | None:
    """Compare all rows with the first one not yet encoded, and so on; None if there are more than a few labels."""
    rest = np.ones(len(array), dtype=bool)
    labels: list[str] = []
    codes = np.zeros(len(array), dtype=code_type(_FEW_TEXTS))
    while rest.any():
        if len(labels) == _FEW_TEXTS:
            return None
        label = array[rest.argmax()]
        same = array == label
        codes[same], rest = len(labels), rest & ~same
        labels.append(str(label))
    return groups_from_codes(codes, labels)


def _encode_by_hashing(array: np.ndarray) -> Groups:
    few = _encode_few_texts(array) if array.dtype.kind == "U" else None  # three times as fast
    if few is not None:
        return few
    values = array.tolist()
    try:
        distinct = set(values)
    except TypeError:
        raise TypeError(
            "sensitive_features contains values that cannot be labels (lists or sets, for example); use numbers, "
            "strings or booleans."
        ) from None
    if any(is_missing(label) for label in distinct):
        raise_missing()
    labels = ordered_labels(distinct)
    code_of = {label: code for code, label in enumerate(labels)}
    codes = np.fromiter(map(code_of.__getitem__, values), code_type(len(labels)), len(values))
    return Groups(labels, codes)


def _encode_categorical(column: Any) -> Groups:
    """Only the categories that occur, in the order the user gave them."""
    categorical = column.cat if hasattr(column, "cat") else column
    codes = np.asarray(categorical.codes)
    if codes.size and codes.min() < 0:
        raise_missing()
    return groups_from_codes(codes, plain_labels(np.asarray(categorical.categories)))


def groups_from_codes(codes: np.ndarray, categories: Sequence[Any]) -> Groups:
    """Groups of an already encoded column; only the categories that occur, in our own order."""
    present = np.flatnonzero(np.bincount(codes, minlength=len(categories)))
    labels = [categories[code] for code in present.tolist()]
    order = {label: rank for rank, label in enumerate(ordered_labels(labels))}
    table = np.zeros(len(categories), dtype=code_type(len(present)))
    table[present] = [order[label] for label in labels]
    return Groups(ordered_labels(labels), table[codes])


def intersect_groups(encoded: list[Groups]) -> Groups:
    """The combinations of labels that occur, as tuples."""
    sizes = [len(groups) for groups in encoded]
    codes = np.ravel_multi_index([groups.codes for groups in encoded], sizes)
    present, inverse = np.unique(codes, return_inverse=True)
    positions = np.column_stack(np.unravel_index(present, sizes)).tolist()
    labels = [tuple(groups.labels[j] for groups, j in zip(encoded, row, strict=True)) for row in positions]
    return Groups(tuple(labels), inverse.reshape(-1).astype(code_type(len(labels))))


def code_type(n_groups: int) -> np.dtype:
    """The smallest integer type: small codes are radix sorted, several times faster than by comparison."""
    return np.dtype(np.uint16 if n_groups <= _TABLE_SPAN else np.int64)


def seed_from(random_state: Any) -> int:
    """A seed for our own generators, drawn from a ``random_state`` in scikit-learn's sense.

    Examples
    --------
    >>> from fairpca._validation import seed_from
    >>> seed_from(None), seed_from(1) == seed_from(1), seed_from(1) == seed_from(2)
    (0, True, False)
    """
    return 0 if random_state is None else int(legacy_generator(random_state).randint(2**31))


def generator(random_state: Any, purpose: str) -> np.random.Generator:
    """A generator seeded by :func:`seed_from`, for one purpose."""
    return rng_for(seed_from(random_state), purpose)


def rng_for(seed: int, purpose: str) -> np.random.Generator:
    """A generator of our own: it never draws what ``default_rng(seed)`` draws for a user, nor for another purpose.

    A sample drawn with the seed that made the data would depend on the data.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca._validation import rng_for
    >>> bool(rng_for(0, "blocks").random() == np.random.default_rng(0).random())
    False
    """
    return np.random.default_rng(np.random.SeedSequence([seed, int.from_bytes(purpose.encode(), "big")]))


def legacy_generator(random_state: Any) -> np.random.RandomState:
    """A generator of the type that scikit-learn uses; None is a fixed seed, unlike in scikit-learn."""
    try:
        return check_random_state(0 if random_state is None else random_state)
    except ValueError:
        raise ValueError(
            f"random_state={random_state!r} must be an integer from 0 to 2**32 - 1, a numpy RandomState, or None for a "
            "fixed seed."
        ) from None
