"""The scikit-learn objects in which data, problems and solvers meet."""

from fairpca.estimators.fair_pca import FairPCA
from fairpca.estimators.kernel_parity_pca import KernelParityPCA
from fairpca.estimators.mmd_fair_pca import MMDFairPCA
from fairpca.estimators.parity_pca import ParityPCA
from fairpca.estimators.robust_fair_pca import RobustFairPCA

__all__ = ["FairPCA", "KernelParityPCA", "MMDFairPCA", "ParityPCA", "RobustFairPCA"]
