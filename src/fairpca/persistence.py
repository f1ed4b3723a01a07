"""Fitted models on disk: arrays and JSON, nothing that is executed when it is loaded.

The file is an uncompressed zip archive of ``.npy`` arrays, as ``numpy.savez`` writes it. One of them, ``header``, holds
JSON: the format and its version, the class, its parameters and its fitted attributes. Only classes known to the caller
are restored: fairpca's own, scikit-learn's PCA, and those passed as ``classes``. Pickle is neither written nor read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from fairpca._archive import DAMAGE, read_archive, write_archive
from fairpca._files import replace_file
from fairpca._values import Packer, Unpacker
from fairpca.estimators import ESTIMATORS
from fairpca.estimators._linear_projection import FloatTransformer
from fairpca.estimators._restored import check_restored
from fairpca.estimators.fair_pca import RelaxedProjection
from fairpca.moments import GroupMoments

__all__ = ["SavedModel", "load_model", "read_model", "save_model"]

_FORMAT, _VERSION = "fairpca model", 1
_CLASSES: dict[str, Any] = {**ESTIMATORS, "PCA": PCA}
_PRIVATE_OF_PCA = ("_fit_svd_solver",)
#: Attributes that are neither numbers, texts, arrays nor collections of these.
_RECORDS = {one.__name__: one for one in (GroupMoments, RelaxedProjection)}


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
        Its class, parameters and fitted attributes (names that end with an underscore) are stored by name and value. A
        class of your own is a subclass of ``fairpca.estimators.MomentEstimator`` or ``LinearProjection``; if it has
        private attributes that a fitted model needs, it names them in ``_saved_attributes``. A ``random_state`` must
        be an integer or None. A ``callback`` is not saved, nor is the choice made with ``set_output``.
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
    _check_class(type(estimator))
    check_is_fitted(estimator)
    getattr(estimator, "groups_", None)  # after partial_fit, asking is what computes the attributes
    fitted = {key: value for key, value in vars(estimator).items() if _is_fitted_attribute(type(estimator), key)}
    packer = Packer(_RECORDS)
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "fairpca": __version__,
        "class": name,
        "parameters": packer.parameters(estimator),
        "attributes": {key: packer.pack(value, key) for key, value in sorted(fitted.items())},
        "extra": extra,
    }
    try:
        check_restored(estimator)
    except (ValueError, TypeError) as problem:
        raise ValueError(f"{name} cannot be saved: {str(problem).rstrip('.')}; fit it again.") from None
    return replace_file(path, lambda stream: write_archive(stream, header, packer.arrays))


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
    path, known = Path(path), _known_classes(classes)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give a model file that save_model or `fairpca fit` wrote.")
    with path.open("rb") as stream:  # outside the try: a file that cannot be opened is not a damaged one
        try:
            header, arrays = read_archive(stream)
            if not isinstance(header, dict) or header.get("format") != _FORMAT:
                raise ValueError("the header is missing")
            if header.get("version") == _VERSION:
                return _restore(header, arrays, known)
        except DAMAGE as problem:
            detail = str(problem) or type(problem).__name__
            raise ValueError(f"{path} is not a fairpca model, or it is damaged: {detail}") from None
    raise ValueError(
        f"{path} has format version {header.get('version')!r}; this fairpca reads version {_VERSION}. Update fairpca."
    )


def _restore(header: dict[str, Any], arrays: dict[str, np.ndarray], known: dict[str, Any]) -> SavedModel:
    if header.get("class") not in known:
        raise ValueError(
            f"it holds a {header.get('class')!r}, which is not one of fairpca's estimators; pass a class of your own "
            "as classes=[...]"
        )
    found, unpacker = known[header["class"]], Unpacker(arrays, _RECORDS)
    parameters = {str(name): unpacker.unpack(value) for name, value in header["parameters"].items()}
    estimator = found(**parameters)
    for name, value in header["attributes"].items():
        if not _is_fitted_attribute(found, name):
            raise ValueError(f"it sets {name!r}, which fit never sets")
        setattr(estimator, name, unpacker.unpack(value))
    check_restored(estimator)
    return SavedModel(estimator, str(header.get("fairpca", "")), header.get("extra"))


def _known_classes(classes: Iterable[Any]) -> dict[str, Any]:
    """fairpca's estimators, scikit-learn's PCA and the caller's classes, by name."""
    found = dict(_CLASSES)
    for one in classes:
        _check_class(one)
        if found.setdefault(one.__name__, one) is not one:
            raise ValueError(f"classes holds two classes named {one.__name__}; rename one of them.")
    return found


def _check_class(estimator_class: Any) -> None:
    """Reject classes that are no estimators of this kind, and names that would be loaded as another class."""
    name = getattr(estimator_class, "__name__", repr(estimator_class))
    if not isinstance(estimator_class, type) or not issubclass(estimator_class, FloatTransformer | PCA):
        raise TypeError(
            f"{name} cannot be saved; save one of {', '.join(sorted(_CLASSES))}, or a subclass of "
            "fairpca.estimators.MomentEstimator or LinearProjection."
        )
    if _CLASSES.get(name, estimator_class) is not estimator_class:
        raise TypeError(f"{name} cannot be saved: fairpca already has a class of this name; rename yours.")


def _is_fitted_attribute(estimator_class: Any, name: str) -> bool:
    public = name.endswith("_") and not name.startswith("_")
    return public or any(name in getattr(one, "_saved_attributes", _PRIVATE_OF_PCA) for one in estimator_class.__mro__)
