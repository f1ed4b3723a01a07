"""Fitted models on disk: arrays and JSON, nothing that is executed when it is loaded.

The file is an uncompressed zip archive of ``.npy`` arrays, as ``numpy.savez`` writes it. One of them, ``header``, holds
JSON: the format and its version, the class, its parameters and its fitted attributes. Only attributes that the class
declares are restored (``_saved_attributes``, using the kinds below), and only classes known to the caller: fairpca's
own, scikit-learn's PCA, and those passed as ``classes``. Pickle is neither written nor read.
"""

from fairpca._saved import BOOL, INTEGER, NUMBER, TEXT, Array, optional
from fairpca.persistence.models import SavedModel, load_model, read_model, save_model

__all__ = [
    "BOOL",
    "INTEGER",
    "NUMBER",
    "TEXT",
    "Array",
    "SavedModel",
    "load_model",
    "optional",
    "read_model",
    "save_model",
]
