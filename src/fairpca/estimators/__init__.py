"""The scikit-learn objects in which data, problems and solvers meet."""

from fairpca.estimators.fair_pca import FairPCA

__all__ = ["FairPCA"]
