"""Saving and loading fitted models."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from sklearn.utils.validation import check_is_fitted

from fairpca._archive import DAMAGE, read_archive, write_archive
from fairpca._values import Packer, Unpacker
from fairpca.persistence._checks import (
    check_model,
    check_savable,
    declared_attributes,
    fitted_attributes,
    known_classes,
    record_types,
)

_FORMAT, _VERSION = "fairpca model", 1


@dataclasses.dataclass(frozen=True)
class SavedModel:
    """Contents of a file: the fitted estimator, the version that wrote it, and the extra JSON given when saving.

    Attributes
    ----------
    estimator : estimator
        Fitted, as it was saved.
    fairpca_version : str
        The version that wrote the file.
    extra : object
        The JSON value that was stored with it.

    See Also
    --------
    read_model : Returns it.

    Examples
    --------
    >>> import os, tempfile
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import make_toy
    >>> from fairpca.persistence import read_model, save_model
    >>> X, groups = make_toy(random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_model(FairPCA(1).fit(X, sensitive_features=groups), os.path.join(folder, "model.npz"))
    ...     model = read_model(path)
    >>> model.fairpca_version.count(".")
    2
    """

    estimator: Any
    fairpca_version: str
    extra: Any = None


def save_model(estimator: Any, path: Any, *, extra: Any = None) -> Path:
    """Write a fitted estimator: any of fairpca's, scikit-learn's PCA, or one of your own.

    Parameters
    ----------
    estimator : fitted estimator
        Its class and parameters are stored by name and value. A class of your own is a subclass of
        ``fairpca.estimators.MomentEstimator`` or ``LinearProjection`` that declares the attributes it adds to theirs in
        ``_saved_attributes``, using the kinds in :mod:`fairpca.persistence`. A ``random_state`` must be an integer or
        None. A ``callback`` is not saved, nor is anything that ``fit`` does not set, such as the choice made with
        ``set_output``.
    path : path-like
        The file appears complete or not at all.
    extra : JSON-able, optional
        Stored with the model, for example how the columns of a file were prepared.

    Returns
    -------
    pathlib.Path
        Where the model is.

    See Also
    --------
    load_model : Reads it.

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
    check_savable(type(estimator))
    check_is_fitted(estimator)
    packer = Packer(record_types(type(estimator)))
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "fairpca": __version__,
        "class": name,
        "parameters": packer.parameters(estimator),
        "attributes": {key: packer.pack(value, key) for key, value in sorted(fitted_attributes(estimator).items())},
        "extra": extra,
    }
    try:
        check_model(estimator)
    except (ValueError, TypeError) as problem:
        raise ValueError(f"{name} cannot be saved: {str(problem).rstrip('.')}; fit it again.") from None
    return write_archive(path, header, packer.arrays)


def load_model(path: Any, *, classes: Iterable[type] = ()) -> Any:
    """Read a fitted estimator that :func:`save_model` wrote. Safe for untrusted files: nothing in them is executed.

    Parameters
    ----------
    path : path-like
    classes : iterable of classes, default=()
        Estimator classes of your own that the file may hold. The file itself never decides which code is imported.

    Returns
    -------
    estimator
        Fitted, as it was saved.

    Raises
    ------
    ValueError
        If the file is not a saved model, was written by a later version, or is damaged.

    See Also
    --------
    save_model : Writes the file.
    read_model : Also returns what was stored with the model.
    fairpca.audit.load : With the preparation of the columns that `fairpca fit` stored.

    Examples
    --------
    >>> import os, tempfile
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import make_toy
    >>> from fairpca.persistence import load_model, save_model
    >>> X, groups = make_toy(random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_model(FairPCA(1).fit(X, sensitive_features=groups), os.path.join(folder, "model.npz"))
    ...     model = load_model(path)
    >>> model.transform(X).shape
    (300, 1)
    """
    return read_model(path, classes=classes).estimator


def read_model(path: Any, *, classes: Iterable[type] = ()) -> SavedModel:
    """Read the estimator together with the version that wrote it and the ``extra`` that was stored with it.

    Parameters
    ----------
    path, classes : as in load_model
        The file, and classes of your own that it may hold.

    Returns
    -------
    SavedModel
        The estimator and what was stored with it.

    See Also
    --------
    load_model : The estimator alone.

    Examples
    --------
    >>> import os, tempfile
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import make_toy
    >>> from fairpca.persistence import read_model, save_model
    >>> X, groups = make_toy(random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_model(FairPCA(1).fit(X, sensitive_features=groups), os.path.join(folder, "model.npz"))
    ...     model = read_model(path)
    >>> type(model.estimator).__name__, model.extra
    ('FairPCA', None)
    """
    path, known = Path(path), known_classes(classes)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give a model file that save_model or `fairpca fit` wrote.")
    with path.open("rb") as stream:  # outside the try: a file that cannot be opened is not a damaged one
        try:
            return _read(stream, path, known)
        except _VersionError as problem:
            raise ValueError(str(problem)) from None
        except DAMAGE as problem:
            detail = str(problem) or type(problem).__name__
            raise ValueError(f"{path} is not a fairpca model, or it is damaged: {detail}") from None


def _read(stream: BinaryIO, path: Path, known: dict[str, Any]) -> SavedModel:
    header, arrays = read_archive(stream)
    _check_header(header, path, known)
    found = known[header["class"]]
    declared, unpacker = declared_attributes(found), Unpacker(arrays, record_types(found))
    parameters = {str(name): unpacker.unpack(value) for name, value in header["parameters"].items()}
    estimator = found(**parameters)
    for name, value in header["attributes"].items():
        if name not in declared:
            raise ValueError(f"it sets {name!r}, which fit never sets")
        setattr(estimator, name, unpacker.unpack(value))
    check_model(estimator)
    return SavedModel(estimator, str(header.get("fairpca", "")), header.get("extra"))


class _VersionError(Exception):
    """The file has a format version that this release cannot read."""


def _check_header(header: Any, path: Path, known: dict[str, Any]) -> None:
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise ValueError("the header is missing")
    if header.get("version") != _VERSION:
        raise _VersionError(
            f"{path} has format version {header.get('version')!r}; this fairpca reads version {_VERSION}. "
            "Update fairpca."
        )
    if header.get("class") not in known:
        raise ValueError(
            f"it holds a {header.get('class')!r}, which is not one of fairpca's estimators; pass a class of your own "
            "as classes=[...]"
        )
