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
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from fairpca import estimators
from fairpca._files import replace_file
from fairpca.estimators.fair_pca import RelaxedProjection
from fairpca.moments import GroupMoments

__all__ = ["SavedModel", "load_model", "read_model", "save_model"]

_FORMAT, _VERSION = "fairpca model", 1
_ESTIMATORS: dict[str, Any] = {name: getattr(estimators, name) for name in estimators.__all__} | {"PCA": PCA}
_RECORDS: dict[str, Any] = {"GroupMoments": GroupMoments, "RelaxedProjection": RelaxedProjection}
#: Parameters that are code rather than part of the model.
_NOT_SAVED = frozenset({"callback", "n_jobs"})
_MAX_HEADER_BYTES = 256 * 2**20


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
        ``callback`` is left out.
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
    text = json.dumps(header).encode()
    parts: dict[str, Any] = {"header": np.frombuffer(text, np.uint8), **packer.arrays}
    return _replace(Path(path), lambda stream: np.savez(stream, **parts))


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
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist.")
    try:
        arrays = _read_arrays(path)
        header = json.loads(arrays.pop("header").tobytes())
        _check_header(header, path)
        estimator = _ESTIMATORS[header["class"]](**_parameters(header))
        unpacker = _Unpacker(arrays)
        for name, value in header["attributes"].items():
            _check_attribute_name(name, estimator)
            setattr(estimator, name, unpacker.unpack(value))
        _check_model(estimator)
        return SavedModel(estimator, str(header.get("fairpca", "")), header.get("extra"))
    except _VersionError as problem:
        raise ValueError(str(problem)) from None
    except (ValueError, TypeError, KeyError, AttributeError, zipfile.BadZipFile, EOFError, RecursionError) as problem:
        detail = str(problem) or type(problem).__name__
        raise ValueError(f"{path} is not a fairpca model, or it is damaged: {detail}") from None


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
        if isinstance(value, int | float) or (isinstance(value, np.generic) and value.dtype.kind in "biuf"):
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
            "array": lambda entry: self._arrays[entry["array"]],
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
    return {name: value for name, value in vars(estimator).items() if _is_fitted_name(name, estimator)}


def _is_fitted_name(name: str, estimator: Any) -> bool:
    """Neither a parameter nor anything the class defines: a file cannot replace a method."""
    taken = name in estimator.get_params(deep=False) or hasattr(type(estimator), name)
    return name.isidentifier() and not name.startswith("__") and not taken


def _check_attribute_name(name: str, estimator: Any) -> None:
    if not _is_fitted_name(name, estimator):
        raise ValueError(f"it sets {name!r}, which no fit does")


def _parameters(header: dict[str, Any]) -> dict[str, Any]:
    unpacker = _Unpacker({})
    return {str(name): unpacker.unpack(value) for name, value in header["parameters"].items()}


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
    """What transform relies on: shapes that fit together, and finite numbers."""
    check_is_fitted(estimator)
    for name, value in vars(estimator).items():
        if name in {"components_", "mean_"} and not np.isfinite(value).all():
            raise ValueError(f"{name} holds numbers that are not finite")
    if not hasattr(estimator, "mean_"):
        return
    components, mean = estimator.components_, estimator.mean_
    if components.ndim != 2 or mean.shape != (components.shape[1],):
        raise ValueError(f"components_ of shape {components.shape} and mean_ of shape {mean.shape} do not fit together")
    if getattr(estimator, "n_features_in_", mean.size) != mean.size:
        raise ValueError("n_features_in_ is not the number of columns of components_")


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(path) as archive:
        found = {}
        for entry in archive.infolist():
            if not entry.filename.endswith(".npy") or entry.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"it has an unexpected part {entry.filename!r}")
            with archive.open(entry) as stream:
                found[entry.filename.removesuffix(".npy")] = _read_array(stream, entry.file_size)
    if "header" not in found or found["header"].nbytes > _MAX_HEADER_BYTES:
        raise ValueError("the header is missing")
    return found


def _read_array(stream: Any, size: int) -> np.ndarray:
    """One array; what its header promises must be what is there, so that no false size fills the memory."""
    content = io.BytesIO(stream.read(size))
    version = np.lib.format.read_magic(content)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, _, dtype = readers[version](content)
    if dtype.kind not in "biufU" or math.prod(shape) * dtype.itemsize != size - content.tell():
        raise ValueError("an array is not what its header says")
    content.seek(0)
    return np.load(content, allow_pickle=False)


def _replace(path: Path, write: Callable[[BinaryIO], Any]) -> Path:
    def fill(temporary: Path) -> None:
        with temporary.open("wb") as stream:
            write(stream)

    return replace_file(path, fill)
