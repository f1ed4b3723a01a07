"""The scikit-learn objects in which data, problems and solvers meet."""

from fairpca.estimators.fair_pca import FairPCA
from fairpca.estimators.kernel_parity_pca import KernelParityPCA
from fairpca.estimators.parity_pca import ParityPCA

__all__ = ["FairPCA", "KernelParityPCA", "ParityPCA"]
