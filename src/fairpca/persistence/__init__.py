"""Fitted models on disk: arrays and JSON, nothing that runs when it is loaded.

The file is an uncompressed zip archive of ``.npy`` arrays (as ``numpy.savez`` writes it) with one of them, ``header``,
holding JSON: format and its version, the class, its parameters, and its fitted attributes. Only attributes that the
class declares can come out of it (``_saved_attributes``, in the terms below), and only classes that the caller knows:
fairpca's own, scikit-learn's PCA, and those passed as ``classes``. No pickle is written, and none would be read.
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
