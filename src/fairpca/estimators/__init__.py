"""The scikit-learn objects in which data, problems and solvers meet."""

from fairpca.estimators.fair_pca import FairPCA
from fairpca.estimators.robust_fair_pca import RobustFairPCA

__all__ = ["FairPCA", "RobustFairPCA"]
