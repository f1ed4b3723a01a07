"""The scikit-learn objects in which data, problems and solvers meet."""

from fairpca.estimators.fair_pca import FairPCA
from fairpca.estimators.mmd_fair_pca import MMDFairPCA

__all__ = ["FairPCA", "MMDFairPCA"]
