"""fairpca: principal component analysis with balanced quality and parity between groups."""

from fairpca.estimators import FairPCA, KernelParityPCA, MMDFairPCA, ParityPCA, RobustFairPCA

__version__ = "0.1.0"

__all__ = [
    "FairPCA",
    "KernelParityPCA",
    "MMDFairPCA",
    "ParityPCA",
    "RobustFairPCA",
    "__version__",
]
