"""Fitted models on disk: arrays and JSON, nothing that runs when it is loaded.

The file is an uncompressed zip archive of ``.npy`` arrays (as ``numpy.savez`` writes it) with one of them, ``header``,
holding JSON: format and its version, the class, its parameters, and its fitted attributes. Only classes and attribute
types listed here can come out of it; no pickle is written, and none would be read.
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import numbers
import struct
import types
import typing
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from fairpca import estimators
from fairpca._files import replace_file
from fairpca._validation import check_number
from fairpca.estimators.fair_pca import RelaxedProjection
from fairpca.moments import GroupMoments

__all__ = ["SavedModel", "load_model", "read_model", "save_model"]

_FORMAT, _VERSION = "fairpca model", 1
_ESTIMATORS: dict[str, Any] = {name: getattr(estimators, name) for name in estimators.__all__} | {"PCA": PCA}
_RECORDS: dict[str, Any] = {"GroupMoments": GroupMoments, "RelaxedProjection": RelaxedProjection}
#: Parameters that are code rather than part of the model.
_NOT_SAVED = frozenset({"callback", "n_jobs"})
#: JSON takes some 25 times as much memory as disk; names and levels of a hundred thousand columns fit in.
_MAX_HEADER_BYTES = 32 * 2**20


@dataclasses.dataclass(frozen=True)
class _Array:
    """Letters stand for sizes: d components, p features, g groups, and others that need only agree among themselves."""

    shape: str
    kinds: str = "fiu"
    finite: bool = False


@dataclasses.dataclass(frozen=True)
class _Record:
    kind: type
    fields: Mapping[str, Any]
    or_none: bool = False


@dataclasses.dataclass(frozen=True)
class _Plain:
    kinds: tuple[type, ...]
    wanted: str


_Expected = dict[str, _Array | _Record | _Plain]
_INTEGER, _NUMBER = _Plain((numbers.Integral,), "an integer"), _Plain((numbers.Real,), "a number")
_NUMBERS = _Plain((numbers.Real, tuple), "a number or a tuple of numbers")
_BOOL, _TEXT = _Plain((bool, np.bool_), "true or false"), _Plain((str,), "text")
_LIST, _TUPLE = _Plain((list,), "a list"), _Plain((tuple,), "a tuple")
_PER_GROUP = _Array("g")

_MOMENTS = _Record(
    GroupMoments,
    {
        "labels": _TUPLE,
        "counts": _Array("g", finite=True),
        "means": _Array("gp", finite=True),
        "scatters": _Array("gpp", finite=True),
    },
    or_none=True,
)
_RELAXED = _Record(
    RelaxedProjection,
    {
        "components": _Array("rp", finite=True),
        "eigenvalues": _Array("r"),
        "shrinkage": _Array("r", finite=True),
        "group_losses": _PER_GROUP,
        "objective": _NUMBER,
        "mean": _Array("p", finite=True),
    },
)
_ANY_FIT: _Expected = {
    "n_components_": _INTEGER,
    "n_features_in_": _INTEGER,
    "feature_names_in_": _Array("p", "OU"),
    "explained_variance_": _Array("d", finite=True),
    "explained_variance_ratio_": _Array("d"),
}
_LINEAR: _Expected = _ANY_FIT | {
    "components_": _Array("dp", finite=True),
    "mean_": _Array("p", finite=True),
    "noise_variance_": _NUMBER,
}
_GROUPED: _Expected = {"groups_": _Array("g", "biufUO"), "group_counts_": _PER_GROUP, "n_samples_seen_": _NUMBER}
_OF_GROUPS: _Expected = _LINEAR | _GROUPED | {"group_errors_": _PER_GROUP, "group_losses_": _PER_GROUP}
_SEARCHED: _Expected = {"objective_": _NUMBER, "n_iter_": _INTEGER, "n_oracle_calls_": _INTEGER, "converged_": _BOOL}
_OF_MOMENTS: _Expected = (
    _OF_GROUPS | _SEARCHED | {"_moments": _MOMENTS, "lower_bound_": _NUMBER, "duality_gap_": _NUMBER}
)
#: What a fit sets, by class: a file holds these attributes and no others.
_ATTRIBUTES: dict[str, _Expected] = {
    "FairPCA": _OF_MOMENTS | {"group_weights_": _PER_GROUP, "relaxed_": _RELAXED},
    "RobustFairPCA": _OF_MOMENTS
    | {"group_weights_": _PER_GROUP, "radii_": _PER_GROUP, "worst_case_group_errors_": _PER_GROUP, "history_": _LIST},
    "ParityPCA": _OF_MOMENTS | {"mean_difference_": _NUMBER, "covariance_difference_": _NUMBER},
    "KernelParityPCA": _ANY_FIT
    | _GROUPED
    | {
        "landmarks_": _Array("mp", finite=True),
        "dual_coef_": _Array("md", finite=True),
        "_shift": _Array("d", finite=True),
        "mean_difference_": _NUMBER,
    },
    "MMDFairPCA": _OF_GROUPS
    | _SEARCHED
    | {
        "mmd2_": _NUMBER,
        "pair_mmd2_": _Array("q"),
        "pairs_": _LIST,
        "tolerance_": _NUMBER,
        "pair_tolerance_": _Array("q"),
        "random_level_": _NUMBER,
        "bandwidth_": _NUMBERS,
        "penalty_": _NUMBER,
    },
    "PCA": _LINEAR | {"singular_values_": _Array("d"), "n_samples_": _INTEGER, "_fit_svd_solver": _TEXT},
}
#: Set by some fits only, by some versions of scikit-learn, or not yet by earlier versions of fairpca.
_OPTIONAL = frozenset({"feature_names_in_", "_fit_svd_solver", "tolerance_", "pair_tolerance_"})


@dataclasses.dataclass(frozen=True)
class SavedModel:
    """What a file holds: the fitted estimator, the version that wrote it, and the extra JSON given when saving."""

    estimator: Any
    fairpca_version: str
    extra: Any = None


def save_model(estimator: Any, path: Any, *, extra: Any = None) -> Path:
    """Write a fitted estimator: any of fairpca's, or scikit-learn's PCA.

    Parameters
    ----------
    estimator : fitted estimator
        Its class and parameters are stored by name and value. A ``random_state`` must be an integer or None; a
        ``callback`` is left out, and so is what no fit sets, such as the choice of ``set_output``.
    path : path-like
        The file appears complete or not at all.
    extra : JSON-able, optional
        Kept beside the model, for example how the columns of a file were prepared.

    Returns
    -------
    pathlib.Path

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from fairpca import FairPCA, load_model, save_model
    >>> rng = np.random.default_rng(0)
    >>> X, groups = rng.normal(size=(60, 4)), rng.integers(0, 2, 60)
    >>> pca = FairPCA(2).fit(X, sensitive_features=groups)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_model(pca, pathlib.Path(folder) / "model.npz")
    ...     again = load_model(path)
    >>> bool((again.transform(X) == pca.transform(X)).all())
    True
    """
    from fairpca import __version__

    name = type(estimator).__name__
    if _ESTIMATORS.get(name) is not type(estimator):
        raise TypeError(f"{name} cannot be saved; save one of {', '.join(sorted(_ESTIMATORS))}.")
    check_is_fitted(estimator)
    packer = _Packer()
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "fairpca": __version__,
        "class": name,
        "parameters": packer.parameters(estimator),
        "attributes": {key: packer.pack(value, key) for key, value in sorted(_fitted(estimator).items())},
        "extra": extra,
    }
    try:
        _check_model(estimator)
    except (ValueError, TypeError) as problem:
        raise ValueError(f"{name} cannot be saved: {str(problem).rstrip('.')}; fit it again.") from None
    text = json.dumps(header).encode()
    if len(text) > _MAX_HEADER_BYTES - 128:  # what precedes an array in its file
        raise ValueError(
            f"{name} cannot be saved: its names, labels and extra take more than {_MAX_HEADER_BYTES:,} bytes."
        )
    parts: dict[str, Any] = {"header": np.frombuffer(text, np.uint8), **packer.arrays}
    return replace_file(path, lambda stream: np.savez(stream, **parts))


def load_model(path: Any) -> Any:
    """Read a fitted estimator that :func:`save_model` wrote. Safe for files from strangers: nothing in them is run.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    estimator

    Raises
    ------
    ValueError
        If the file is no such model, was written by a later version, or is damaged.
    """
    return read_model(path).estimator


def read_model(path: Any) -> SavedModel:
    """The same with what was kept beside the model."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give a model file that save_model or `fairpca fit` wrote.")
    with path.open("rb") as stream:  # out here: a file that may not be opened is not a damaged one
        try:
            return _read(stream, path)
        except _VersionError as problem:
            raise ValueError(str(problem)) from None
        except _DAMAGE as problem:
            detail = str(problem) or type(problem).__name__
            raise ValueError(f"{path} is not a fairpca model, or it is damaged: {detail}") from None


#: What zipfile, numpy and the checks raise on bytes that are not what they should be. A single flipped bit makes
#: zipfile see encryption (RuntimeError), methods it does not know (NotImplementedError) or impossible places (OSError).
_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, RuntimeError, OSError, EOFError, zipfile.BadZipFile,
           ArithmeticError, struct.error, SyntaxError)  # fmt: skip


def _read(stream: BinaryIO, path: Path) -> SavedModel:
    arrays = _read_arrays(stream)
    header = json.loads(arrays.pop("header").tobytes())
    _check_header(header, path)
    unpacker = _Unpacker(arrays)
    parameters = {str(name): unpacker.unpack(value) for name, value in header["parameters"].items()}
    estimator = _ESTIMATORS[header["class"]](**parameters)
    for name, value in header["attributes"].items():
        if name not in _ATTRIBUTES[header["class"]]:
            raise ValueError(f"it sets {name!r}, which no fit does")
        setattr(estimator, name, unpacker.unpack(value))
    _check_model(estimator)
    return SavedModel(estimator, str(header.get("fairpca", "")), header.get("extra"))


class _VersionError(Exception):
    """The file is of a format that this version does not know."""


class _Packer:
    """Values as JSON, with arrays set aside under a number."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def parameters(self, estimator: Any) -> dict[str, Any]:
        values = estimator.get_params(deep=False)
        return {name: self.pack(value, name) for name, value in values.items() if name not in _NOT_SAVED}

    def pack(self, value: Any, name: str) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, np.bool_):
            return bool(value)
        if isinstance(value, int | float) or (isinstance(value, np.generic) and value.dtype.kind in "iuf"):
            return {"number": value.item() if isinstance(value, np.generic) else value}
        if isinstance(value, np.str_):
            return str(value)
        if isinstance(value, np.ndarray):
            return self._array(value, name)
        if isinstance(value, list | tuple):
            return {type(value).__name__: [self.pack(part, name) for part in value]}
        if isinstance(value, dict):
            return {"dict": [[self.pack(key, name), self.pack(part, name)] for key, part in value.items()]}
        if type(value).__name__ in _RECORDS and dataclasses.is_dataclass(value):
            parts = {field.name: self.pack(getattr(value, field.name), name) for field in dataclasses.fields(value)}
            return {"record": type(value).__name__, "fields": parts}
        raise TypeError(
            f"{name} holds a {type(value).__name__}, which cannot be saved; use plain numbers, text and arrays (an "
            "integer for random_state)."
        )

    def _array(self, array: np.ndarray, name: str) -> dict[str, Any]:
        if array.dtype == object:
            return {"objects": [self.pack(part, name) for part in array.ravel().tolist()], "shape": list(array.shape)}
        if array.dtype.kind not in "biufU":
            raise TypeError(f"{name} holds an array of {array.dtype}, which cannot be saved.")
        key = f"a{len(self.arrays)}"
        self.arrays[key] = array
        return {"array": key}


class _Unpacker:
    """The inverse of :class:`_Packer`; an unknown tag is an error."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self._arrays = arrays

    def unpack(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | str):
            return value
        kinds: dict[str, Callable[[dict[str, Any]], Any]] = {
            "number": self._number,
            "array": lambda entry: self._arrays.pop(entry["array"]),  # used once, so that no copies fill the memory
            "list": lambda entry: [self.unpack(part) for part in entry["list"]],
            "tuple": lambda entry: tuple(self.unpack(part) for part in entry["tuple"]),
            "dict": lambda entry: {self.unpack(key): self.unpack(part) for key, part in entry["dict"]},
            "objects": self._objects,
            "record": self._record,
        }
        tag = next((kind for kind in kinds if isinstance(value, dict) and kind in value), None)
        if tag is None:
            raise ValueError("its header holds a value of unknown kind")
        return kinds[tag](value)

    def _number(self, entry: dict[str, Any]) -> int | float:
        value = entry["number"]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("its header holds a number that is none")
        return value

    def _objects(self, entry: dict[str, Any]) -> np.ndarray:
        array = np.empty(len(entry["objects"]), dtype=object)
        for i, part in enumerate(entry["objects"]):
            array[i] = self.unpack(part)
        return array.reshape([int(size) for size in entry["shape"]])

    def _record(self, entry: dict[str, Any]) -> Any:
        record = _RECORDS.get(entry["record"])
        if record is None:
            raise ValueError(f"its header names the unknown record {entry['record']!r}")
        return record(**{name: self.unpack(part) for name, part in entry["fields"].items()})


def _fitted(estimator: Any) -> dict[str, Any]:
    """What ``fit`` left on the object, private attributes included."""
    known = _ATTRIBUTES[type(estimator).__name__]
    return {name: value for name, value in vars(estimator).items() if name in known}


def _check_header(header: Any, path: Path) -> None:
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise ValueError("the header is missing")
    if header.get("version") != _VERSION:
        raise _VersionError(
            f"{path} has format version {header.get('version')!r}; this fairpca reads version {_VERSION}. "
            "Update fairpca."
        )
    if header.get("class") not in _ESTIMATORS:
        raise ValueError(f"it holds a {header.get('class')!r}, which is none of fairpca's estimators")


def _check_model(estimator: Any) -> None:
    """What the methods rely on: parameters of the right type, every attribute of a fit, shapes that fit together."""
    _check_parameters(estimator)
    expected, found = _ATTRIBUTES[type(estimator).__name__], vars(estimator)
    missing = expected.keys() - found.keys() - _OPTIONAL
    if missing:
        raise ValueError(f"it lacks {min(missing)}, which every fit sets")
    check_is_fitted(estimator)
    for name in ("n_components_", "n_features_in_"):
        check_number(name, found[name], at_least=1, integer=True)
    sizes = {"d": int(estimator.n_components_), "p": int(estimator.n_features_in_)}
    for name, what in expected.items():
        if name in found:
            _check_value(name, found[name], what, sizes)


def _check_parameters(estimator: Any) -> None:
    if isinstance(estimator, PCA):
        estimator._validate_params()
        return
    hints = typing.get_type_hints(type(estimator).__init__)
    for name, value in estimator.get_params(deep=False).items():
        if name not in _NOT_SAVED and not _is_of_type(value, hints[name]):
            raise TypeError(f"the parameter {name} is {value!r}, which fit does not take")
    check_number("n_components", estimator.n_components, at_least=1, integer=True)
    if isinstance(estimator, estimators.KernelParityPCA):
        estimator.check_kernel()  # the only parameters that transform uses


def _is_of_type(value: Any, hint: Any) -> bool:
    """Whether a value is of the annotated type; numpy's numbers count as Python's, and booleans not as numbers."""
    if hint is Any:
        return True
    if isinstance(hint, types.UnionType):
        return any(_is_of_type(value, part) for part in typing.get_args(hint))
    kind = {int: numbers.Integral, float: numbers.Real}.get(hint, hint)
    return isinstance(value, kind) and (hint is bool or not isinstance(value, bool))


def _check_value(name: str, value: Any, expected: _Array | _Record | _Plain, sizes: dict[str, int]) -> None:
    """``sizes`` are those met so far; new ones are added."""
    if isinstance(expected, _Record):
        if value is None and expected.or_none:
            return
        if not isinstance(value, expected.kind):
            raise TypeError(f"{name} is no {expected.kind.__name__}")
        for field, what in expected.fields.items():
            _check_value(f"{name}.{field}", getattr(value, field), what, sizes)
    elif isinstance(expected, _Array):
        _check_array(name, value, expected, sizes)
    elif not isinstance(value, expected.kinds) or (isinstance(value, bool) and expected is not _BOOL):
        raise TypeError(f"{name} is not {expected.wanted}")


def _check_array(name: str, array: Any, expected: _Array, sizes: dict[str, int]) -> None:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in expected.kinds:
        raise TypeError(f"{name} is not an array of the right type")
    if array.ndim != len(expected.shape) or any(
        sizes.setdefault(letter, size) != size for letter, size in zip(expected.shape, array.shape, strict=True)
    ):
        raise ValueError(f"{name} of shape {array.shape} and the other attributes do not fit together")
    if expected.finite and not np.isfinite(array).all():
        raise ValueError(f"{name} holds numbers that are not finite")


def _read_arrays(file: BinaryIO) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        _check_entries(entries, file.seek(0, io.SEEK_END))
        for entry in entries:
            with archive.open(entry) as stream:
                found[entry.filename.removesuffix(".npy")] = _read_array(stream, entry.file_size)
    return found


def _check_entries(entries: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse before reading what save_model does not write; entries within each other could fill the memory."""
    for entry in entries:
        if not entry.filename.endswith(".npy") or entry.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"it has an unexpected part {entry.filename!r}")
    sizes = {entry.filename: entry.file_size for entry in entries}
    if len(sizes) < len(entries) or sum(sizes.values()) > size:
        raise ValueError("its parts overlap")
    if not 0 < sizes.get("header.npy", 0) <= _MAX_HEADER_BYTES:
        raise ValueError("the header is missing")


def _read_array(stream: Any, size: int) -> np.ndarray:
    """One array; what its header promises must be what is there, so that no false size fills the memory."""
    start = stream.tell()
    version = np.lib.format.read_magic(stream)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, by_column, dtype = readers[version](stream)
    if dtype.kind not in "biufU" or math.prod(shape) * dtype.itemsize != size - (stream.tell() - start):
        raise ValueError("an array is not what its header says")
    content = bytearray(stream.read())
    return np.frombuffer(content, dtype).reshape(shape, order="F" if by_column else "C")
