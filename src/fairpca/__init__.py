"""fairpca: principal component analysis with balanced quality and parity between groups."""

from fairpca.estimators import (
    AnchorPCA,
    FairPCA,
    KernelParityPCA,
    LeaceEraser,
    LeacePCA,
    MMDFairPCA,
    ParityPCA,
    RobustFairPCA,
)
from fairpca.persistence import load_model, save_model

__version__ = "0.3.0"

__all__ = [
    "AnchorPCA",
    "FairPCA",
    "KernelParityPCA",
    "LeaceEraser",
    "LeacePCA",
    "MMDFairPCA",
    "ParityPCA",
    "RobustFairPCA",
    "__version__",
    "load_model",
    "save_model",
]
